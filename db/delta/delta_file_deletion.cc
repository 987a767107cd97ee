//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_deletion.h"

#include <algorithm>
#include <cassert>

#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_verifier.h"
#include "db/delta/delta_version.h"
#include "db/version_edit.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

}  // namespace

DeltaOperandBounds DeltaOperandBounds::Of(const DeltaVersion* version) {
  DeltaOperandBounds bounds;
  if (version == nullptr) {
    return bounds;
  }
  const Comparator* const ucmp = version->user_comparator();
  version->ForEachFile([&](const DeltaVersion::FilePtr& ptr) {
    const DeltaFileDescription& file = ptr->description();
    if (file.kind != Kind::kOperands) {
      return;
    }
    if (!bounds.has_operands ||
        ucmp->Compare(file.smallest, bounds.smallest) < 0) {
      bounds.smallest = file.smallest;
    }
    if (!bounds.has_operands ||
        ucmp->Compare(file.largest, bounds.largest) > 0) {
      bounds.largest = file.largest;
    }
    bounds.largest_seq = std::max(bounds.largest_seq, file.largest_seq);
    bounds.has_operands = true;
  });
  return bounds;
}

void DeltaClipBounds::Extend(const DeltaVersion* version, bool has_sst_files,
                             const Comparator* ucmp, Slice* smallest,
                             Slice* largest) {
  const DeltaOperandBounds operands = DeltaOperandBounds::Of(version);
  smallest_ = smallest->ToString();
  largest_ = largest->ToString();
  if (operands.has_operands) {
    if (!has_sst_files || ucmp->Compare(operands.smallest, smallest_) < 0) {
      smallest_ = operands.smallest;
    }
    if (!has_sst_files || ucmp->Compare(operands.largest, largest_) > 0) {
      largest_ = operands.largest;
    }
  }
  *smallest = smallest_;
  *largest = largest_;
}

DeltaFileDeletion::Cover DeltaFileDeletion::CoverOf(
    const std::vector<UserKeyRangeOpt>& ranges, bool include_end,
    const Slice& smallest, const Slice& largest, const Comparator* ucmp) {
  std::vector<std::pair<std::string, std::string>> found;
  Cover cover;
  for (const UserKeyRangeOpt& range : ranges) {
    Slice start = smallest;
    if (range.start.has_value() && ucmp->Compare(*range.start, start) > 0) {
      start = *range.start;
    }
    Slice end = largest;
    bool has_end = true;
    if (range.limit.has_value() && ucmp->Compare(*range.limit, end) <= 0) {
      end = *range.limit;
      has_end = include_end;
    }
    const int order = ucmp->Compare(start, end);
    if (order < 0) {
      found.emplace_back(start.ToString(), end.ToString());
    }
    // A range anchor excludes its end.
    if (order <= 0 && has_end) {
      cover.keys.push_back(end.ToString());
    }
  }
  const auto is_less = [ucmp](const std::string& a, const std::string& b) {
    return ucmp->Compare(a, b) < 0;
  };
  std::sort(cover.keys.begin(), cover.keys.end(), is_less);
  cover.keys.erase(std::unique(cover.keys.begin(), cover.keys.end(),
                               [ucmp](const auto& a, const auto& b) {
                                 return ucmp->Equal(a, b);
                               }),
                   cover.keys.end());
  std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    return is_less(a.first, b.first);
  });
  for (auto& range : found) {
    if (!cover.ranges.empty() &&
        !is_less(cover.ranges.back().second, range.first)) {
      std::string& end = cover.ranges.back().second;
      if (is_less(end, range.second)) {
        end = std::move(range.second);
      }
    } else {
      cover.ranges.push_back(std::move(range));
    }
  }
  return cover;
}

std::unique_ptr<DeltaFileDeletion> DeltaFileDeletion::Begin(
    DeltaStore* store, const DeltaVersion* version,
    const std::vector<UserKeyRangeOpt>& ranges, bool include_end,
    const std::function<uint64_t()>& new_file_number,
    std::function<void()> on_end) {
  const DeltaOperandBounds bounds = DeltaOperandBounds::Of(version);
  if (!bounds.has_operands) {
    return nullptr;
  }
  Cover cover = CoverOf(ranges, include_end, bounds.smallest, bounds.largest,
                        version->user_comparator());
  std::erase_if(cover.keys, [version](const std::string& key) {
    const Slice slice = key;
    return !version->OverlapsRange(&slice, &slice);
  });
  std::erase_if(cover.ranges, [version](const auto& range) {
    const Slice start = range.first;
    const Slice end = range.second;
    return !version->OverlapsRange(&start, &end);
  });
  if (cover.keys.empty() && cover.ranges.empty()) {
    return nullptr;
  }
  const uint64_t epoch = new_file_number();
  const uint64_t number = new_file_number();
  return std::unique_ptr<DeltaFileDeletion>(
      new DeltaFileDeletion(store, std::move(cover), bounds.largest_seq, epoch,
                            number, std::move(on_end)));
}

DeltaFileDeletion::DeltaFileDeletion(DeltaStore* store, Cover cover,
                                     SequenceNumber seq, uint64_t epoch,
                                     uint64_t number,
                                     std::function<void()> on_end)
    : store_(store),
      cover_(std::move(cover)),
      seq_(seq),
      epoch_(epoch),
      number_(number),
      on_end_(std::move(on_end)) {
  store_->OnFlushBegin(epoch_);
}

DeltaFileDeletion::~DeltaFileDeletion() { Close(); }

void DeltaFileDeletion::Close() {
  if (is_closed_) {
    return;
  }
  is_closed_ = true;
  store_->OnFlushEnd(epoch_);
  if (on_end_) {
    on_end_();
  }
}

Status DeltaFileDeletion::AddAnchors(DeltaFileBuilder* builder) const {
  Status s;
  for (const std::string& key : cover_.keys) {
    s = builder->AddAnchor(key, /*seq=*/0);
    if (!s.ok()) {
      return s;
    }
  }
  for (const auto& [start, end] : cover_.ranges) {
    s = builder->AddRangeAnchor(start, end, /*seq=*/0);
    if (!s.ok()) {
      return s;
    }
  }
  return s;
}

Status DeltaFileDeletion::Publish(const Output& output) {
  assert(file_.number == 0);
  const DeltaTableFactory& tables = *store_->tables();
  DeltaFileBuilder::Options options;
  options.number = number_;
  options.path_id = output.path_id;
  options.kind = Kind::kAnchors;
  options.tier = Tier::kFlushed;
  options.has_global_seq = true;
  options.db_id = output.db_id;
  options.job_id = output.job_id;
  options.reason = TableFileCreationReason::kMisc;
  options.file_options = output.file_options;
  options.write_options = output.write_options;
  Status s = DeltaFileBuilder::Create(tables, options, &builder_);
  if (!s.ok()) {
    return s;
  }
  DeltaFileDescription file;
  s = AddAnchors(builder_.get());
  if (s.ok()) {
    s = builder_->Finish(&file);
  }
  if (s.ok()) {
    DeltaFileBuilder::AssignGlobalSeq(seq_, epoch_, &file);
    // Checked as after a flush: if the file cannot be opened, the operands in
    // the ranges cannot be read.
    const auto settings = tables.settings();
    const auto uncached =
        NewUncachedDeltaTables(*settings->family, settings->options);
    std::unique_ptr<DeltaFileReader> reader;
    s = DeltaFileReader::Open(*uncached, ReadOptions(), file, &reader);
  }
  if (s.ok()) {
    s = output.directory->FsyncWithDirOptions(
        IOOptions(), /*dbg=*/nullptr,
        DirFsyncOptions(DirFsyncOptions::FsyncReason::kNewFileSynced));
  }
  TEST_SYNC_POINT_CALLBACK("DeltaFileDeletion::Publish:Synced", &s);
  if (s.ok()) {
    file_ = std::move(file);
  } else {
    builder_->Abandon();
  }
  return s;
}

void DeltaFileDeletion::Abandon() {
  assert(file_.number != 0);
  file_ = DeltaFileDescription();
  builder_->Abandon();
}

void DeltaFileDeletion::AddTo(VersionEdit* edit) const {
  assert(file_.number != 0);
  edit->AddDeltaFiles({file_});
}

}  // namespace ROCKSDB_NAMESPACE
