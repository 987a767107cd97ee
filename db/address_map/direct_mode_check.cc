//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/direct_mode_check.h"

#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/table_cache.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

DirectModeCheck::DirectModeCheck(
    SequenceNumber earliest_reader, Version* version,
    const ReadOptions& read_options,
    const std::function<bool(int level, const FileMetaData&)>& is_older)
    : earliest_reader_(earliest_reader),
      version_(version),
      read_options_(read_options),
      comparator_(version->cfd()->user_comparator()) {
  const VersionStorageInfo& files = *version->storage_info();
  for (int level = 0; level < files.num_non_empty_levels(); ++level) {
    Run run;
    for (const FileMetaData* file : files.LevelFiles(level)) {
      if (file->blob_refs.mapped.PointCeiling(file->fd.largest_seqno) == 0 ||
          !is_older(level, *file)) {
        continue;
      }
      run.files.push_back(file);
      if (level == 0) {
        runs_.push_back(std::move(run));
        run = Run();
      }
    }
    if (!run.files.empty()) {
      runs_.push_back(std::move(run));
    }
  }
}

bool DirectModeCheck::IsSafe(const Slice& user_key, SequenceNumber seq) {
  if (seq > earliest_reader_) {
    return false;
  }
  if (runs_.empty()) {
    return true;
  }
  if (!has_last_ || user_key != Slice(last_key_)) {
    last_answer_ = !MayHaveOlderNonDirect(user_key);
    last_key_.assign(user_key.data(), user_key.size());
    has_last_ = true;
  }
  return last_answer_;
}

bool DirectModeCheck::MayHaveOlderNonDirect(const Slice& user_key) {
  ColumnFamilyData* const cfd = version_->cfd();
  IterKey key;
  bool key_is_set = false;
  for (Run& run : runs_) {
    while (run.next < run.files.size() &&
           comparator_->Compare(run.files[run.next]->largest.user_key(),
                                user_key) < 0) {
      ++run.next;
    }
    // The versions of a key may be spread over consecutive files.
    for (size_t i = run.next;
         i < run.files.size() &&
         comparator_->Compare(run.files[i]->smallest.user_key(), user_key) <= 0;
         ++i) {
      if (!key_is_set) {
        key.SetInternalKey(user_key, kMaxSequenceNumber, kValueTypeForSeek);
        key_is_set = true;
      }
      if (cfd->table_cache()->MayHaveNonDirect(
              read_options_, key.GetInternalKey(), *run.files[i],
              cfd->internal_comparator(), version_->GetMutableCFOptions())) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace ROCKSDB_NAMESPACE
