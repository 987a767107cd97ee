//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_bucket_intake.h"

#include <algorithm>
#include <utility>

#include "db/delta/delta_damage.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns for each bucket of one table the index of the bucket of another table
// that has the same lower bound, or kNone.
constexpr size_t kNone = SIZE_MAX;

std::vector<size_t> Match(const DeltaBucketTable& buckets,
                          const DeltaBucketTable& old, const Comparator* ucmp) {
  std::vector<size_t> result(buckets.size(), kNone);
  if (buckets.empty() || old.empty()) {
    return result;
  }
  // The first buckets have no bound.
  result[0] = 0;
  auto p = buckets.Next(buckets.Begin());
  auto o = old.Next(old.Begin());
  size_t old_index = 1;
  for (size_t i = 1; p != buckets.End(); p = buckets.Next(p), ++i) {
    const Slice bound = buckets.LowerBound(p);
    int order = 1;
    while (o != old.End() &&
           (order = ucmp->Compare(old.LowerBound(o), bound)) < 0) {
      o = old.Next(o);
      ++old_index;
    }
    if (o != old.End() && order == 0) {
      result[i] = old_index;
    }
  }
  return result;
}

Status EstimateFile(const DeltaBucketTable& buckets, const Comparator* ucmp,
                    const DeltaStore& store, const ReadOptions& read_options,
                    const DeltaFileMeta& meta,
                    const DeltaBucketIntake::File* old,
                    const std::vector<size_t>& old_buckets,
                    DeltaBucketIntake::File* file) {
  if (old != nullptr && !old->error.ok()) {
    old = nullptr;  // its offsets are not known
  }
  const DeltaFileDescription& description = meta.description();
  file->number = description.number;
  file->last_epoch = description.last_epoch;
  file->offsets.reserve(buckets.size() + 1);
  DeltaFileReader* reader = nullptr;
  size_t i = 0;
  for (auto p = buckets.Begin(); p != buckets.End(); p = buckets.Next(p), ++i) {
    const Slice bound = buckets.LowerBound(p);
    uint64_t offset = 0;
    if (i == 0 || ucmp->Compare(bound, description.smallest) <= 0) {
      // All of the file is after the bound.
      file->first_bucket = file->last_bucket = i;
    } else if (ucmp->Compare(bound, description.largest) > 0) {
      offset = description.raw_bytes;
    } else if (old != nullptr && old_buckets[i] != kNone) {
      offset = old->offsets[old_buckets[i]];
      file->last_bucket = i;
    } else {
      file->last_bucket = i;
      if (reader == nullptr && file->error.ok()) {
        Status s = store.GetReader(read_options, meta, &reader);
        if (s.IsCorruption()) {
          file->error = std::move(s);
        } else if (!s.ok()) {
          return s;
        }
      }
      if (reader != nullptr) {
        offset = static_cast<uint64_t>(
            static_cast<double>(
                reader->ApproximateOffsetOf(read_options, bound)) /
            static_cast<double>(std::max<uint64_t>(description.size, 1)) *
            static_cast<double>(description.raw_bytes));
      }
    }
    // The table's result is arbitrary if it cannot read a block.
    offset = std::min(offset, description.raw_bytes);
    if (i > 0) {
      offset = std::max(offset, file->offsets.back());
    }
    file->offsets.push_back(offset);
  }
  file->offsets.push_back(description.raw_bytes);
  return Status::OK();
}

}  // namespace

Status DeltaBucketIntake::Estimate(
    const DeltaVersion& version, const DeltaStore& store,
    const ReadOptions& read_options, const DeltaBucketIntake* old,
    std::shared_ptr<const DeltaBucketIntake>* result) {
  const DeltaBucketTable& buckets = version.Buckets();
  std::vector<File> files;
  std::vector<size_t> old_buckets;
  if (!buckets.empty()) {
    if (old != nullptr) {
      old_buckets = Match(buckets, old->buckets_, version.user_comparator());
    }
    using Kind = DeltaFileDescription::Kind;
    for (Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      for (const DeltaVersion::FilePtr& meta : version.RecentFiles(kind)) {
        if (meta->description().tier != DeltaFileDescription::Tier::kMerged) {
          continue;
        }
        const File* of_old = nullptr;
        if (old != nullptr) {
          const auto it = std::find_if(
              old->files_.begin(), old->files_.end(),
              [&](const File& file) { return file.number == meta->number(); });
          if (it != old->files_.end()) {
            of_old = &*it;
          }
        }
        Status s = EstimateFile(buckets, version.user_comparator(), store,
                                read_options, *meta, of_old, old_buckets,
                                &files.emplace_back());
        if (!s.ok()) {
          return s;
        }
      }
    }
  }
  *result =
      std::make_shared<const DeltaBucketIntake>(buckets, std::move(files));
  return Status::OK();
}

bool DeltaBucketIntake::AddUnreadableTo(DeltaDamage* damage,
                                        const Comparator* ucmp) const {
  bool is_any_new = false;
  for (const File& file : files_) {
    if (file.error.ok()) {
      continue;
    }
    size_t i = 0;
    for (auto p = buckets_.Begin();
         p != buckets_.End() && i <= file.last_bucket; ++i) {
      const auto next = buckets_.Next(p);
      if (i >= file.first_bucket && buckets_.State(p).floor < file.last_epoch) {
        DeltaEdit::KeyRange range;
        range.begin = buckets_.LowerBound(p).ToString();
        if (next != buckets_.End()) {
          range.end = buckets_.LowerBound(next).ToString();
        }
        if (damage->StateOf(range, ucmp) != DeltaDamage::State::kDamaged) {
          damage->Add(range, /*num_buckets=*/1, file.error, ucmp);
          is_any_new = true;
        }
      }
      p = next;
    }
  }
  return is_any_new;
}

size_t DeltaBucketIntake::ApproximateMemoryUsage() const {
  size_t usage = sizeof(*this);
  for (const File& file : files_) {
    usage += sizeof(file) + file.offsets.capacity() * sizeof(uint64_t);
  }
  return usage;
}

}  // namespace ROCKSDB_NAMESPACE
