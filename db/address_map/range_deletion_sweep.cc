//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/range_deletion_sweep.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/address_map/prepare_blob_index.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "memory/arena.h"
#include "table/internal_iterator.h"
#include "table/merging_iterator.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Number of keys between calls of the check.
constexpr uint64_t kKeysPerCheck = 1024;
// Number of failed ranges after which the sweep ends: then more than single
// blocks cannot be read.
constexpr size_t kMaxFailures = 16;

}  // namespace

RangeDeletionSweep::RangeDeletionSweep(ColumnFamilyData* cfd, Version* version,
                                       const FileOptions& file_options,
                                       std::function<Status()> check)
    : cfd_(cfd),
      version_(version),
      file_options_(file_options),
      check_(std::move(check)) {}

bool RangeDeletionSweep::HasMapped(
    int level, const std::vector<CommittedRangeDeletion>& deletions) const {
  const Comparator* const ucmp = cfd_->user_comparator();
  const auto& files = version_->storage_info()->LevelFiles(level);
  return std::any_of(files.begin(), files.end(), [&](const FileMetaData* file) {
    return file->blob_refs.mapped.Any() &&
           ucmp->Compare(file->smallest.user_key(), deletions.back().end) < 0 &&
           ucmp->Compare(file->largest.user_key(), deletions.front().start) >=
               0;
  });
}

Status RangeDeletionSweep::Run(uint64_t max_steps,
                               std::vector<CommittedRangeDeletion>* deletions) {
  assert(max_steps > 0);
  if (cfd_->address_map_store()->map()->NumEntries() == 0) {
    deletions->clear();
  }
  if (deletions->empty()) {
    return Status::OK();
  }
  SequenceNumber oldest = kMaxSequenceNumber;
  for (const CommittedRangeDeletion& deletion : *deletions) {
    oldest = std::min(oldest, deletion.oldest);
  }
  assert(oldest > 0);
  ReadOptions read_options(Env::IOActivity::kCompaction);
  read_options.total_order_seek = true;
  read_options.fill_cache = false;
  read_options.rate_limiter_priority = Env::IO_LOW;
  const std::string last_end = deletions->back().end;
  const Slice upper(last_end);
  read_options.iterate_upper_bound = &upper;
  Arena arena;
  MergeIteratorBuilder builder(&cfd_->internal_comparator(), &arena);
  const int num_levels = version_->storage_info()->num_non_empty_levels();
  for (int level = 0; level < num_levels; ++level) {
    if (HasMapped(level, *deletions)) {
      version_->AddIteratorsForLevel(read_options, file_options_, &builder,
                                     level, /*allow_unprepared_value=*/true,
                                     /*read_seq=*/oldest - 1);
    }
  }
  const ScopedArenaPtr<InternalIterator> iter(builder.Finish());
  if (iter == nullptr) {
    deletions->clear();
    return Status::OK();
  }

  steps_left_ = max_steps;
  steps_ = 0;
  stopped_ = Status::OK();
  must_stop_ = is_positioned_ = false;
  std::vector<CommittedRangeDeletion> left;
  Status first_error;
  size_t next = 0;
  while (next < deletions->size() && left.size() < kMaxFailures) {
    CommittedRangeDeletion* const deletion = &(*deletions)[next];
    const Status s = SweepRange(iter.get(), deletion);
    if (must_stop_) {
      break;
    }
    ++next;
    if (!s.ok()) {
      first_error.UpdateIfOk(s);
      left.push_back(std::move(*deletion));
      is_positioned_ = false;
    }
  }
  left.insert(left.end(),
              std::make_move_iterator(deletions->begin() +
                                      static_cast<ptrdiff_t>(next)),
              std::make_move_iterator(deletions->end()));
  *deletions = std::move(left);
  return stopped_.ok() ? first_error : stopped_;
}

Status RangeDeletionSweep::SweepRange(InternalIterator* iter,
                                      CommittedRangeDeletion* deletion) {
  const Comparator* const ucmp = cfd_->user_comparator();
  AddressMapStore* const blobs = cfd_->address_map_store();
  if (steps_left_ == 0) {
    must_stop_ = true;
  }
  if (must_stop_ || !Step()) {
    return Status::OK();
  }
  if (!is_positioned_ ||
      (iter->Valid() &&
       ucmp->Compare(ExtractUserKey(iter->key()), deletion->start) < 0)) {
    iter->Seek(
        InternalKey(deletion->start, kMaxSequenceNumber, kValueTypeForSeek)
            .Encode());
    is_positioned_ = true;
  }
  // The user key at which the steps were used up.
  std::optional<std::string> last_key;
  for (; iter->Valid(); iter->Next()) {
    ParsedInternalKey key;
    Status s = ParseInternalKey(iter->key(), &key, /*log_err_key=*/false);
    if (!s.ok()) {
      return s;
    }
    if (ucmp->Compare(key.user_key, deletion->end) >= 0) {
      break;
    }
    if (last_key.has_value()) {
      must_stop_ = ucmp->Compare(key.user_key, *last_key) != 0;
    }
    if (must_stop_ || !Step()) {
      deletion->start.assign(key.user_key.data(), key.user_key.size());
      return Status::OK();
    }
    if (steps_left_ == 0 && !last_key.has_value()) {
      // The rest begins with another user key. If it began with this one, a key
      // with more entries than there are steps would be read again and again.
      last_key = key.user_key.ToString();
    }
    ++entries_read_;
    if (key.sequence >= deletion->seq || key.type != kTypeBlobIndex) {
      continue;
    }
    s = PrepareBlobIndex(iter, &key);
    if (!s.ok()) {
      return s;
    }
    const Slice value = iter->value();
    if (!MappedBlobIndex::IsMapped(value)) {
      continue;
    }
    MappedBlobIndex index;
    s = index.DecodeFrom(value);
    if (!s.ok()) {
      return s;
    }
    if (index.birth < deletion->born_before &&
        blobs->map()->Remove(
            MapName{blobs->HashOf(key.user_key), key.sequence, index.birth})) {
      ++values_removed_;
    }
  }
  return iter->status();
}

bool RangeDeletionSweep::Step() {
  steps_left_ -= steps_left_ > 0;
  if (++steps_ % kKeysPerCheck == 0) {
    TEST_SYNC_POINT("RangeDeletionSweep::Step:Check");
    stopped_ = check_();
    must_stop_ = !stopped_.ok();
  }
  return !must_stop_;
}

}  // namespace ROCKSDB_NAMESPACE
