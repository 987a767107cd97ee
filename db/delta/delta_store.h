//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>

#include "db/delta/delta_async_reads.h"
#include "db/delta/delta_cache.h"
#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_table_factory.h"
#include "port/likely.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// What a column family with delta separation has beside its Versions: how its
// delta files are written and read, what reads have found there, and which
// flushes and jobs are under way. What lies in the files, a Version says
// (DeltaVersion).
//
// ColumnFamilyData has one from the time it is opened or created on, if the
// option is on, or if the MANIFEST names delta files; and then as long as it
// lives, as jobs and readers must not see it come or go.
//
// Thread-safety: reading is thread-safe. What concerns flushes and jobs needs
// the DB mutex.
class DeltaStore {
 public:
  DeltaStore(DeltaTableFamily family, const MutableCFOptions& options);
  DeltaStore(const DeltaStore&) = delete;
  DeltaStore& operator=(const DeltaStore&) = delete;

  DeltaTableFactory* tables() { return &tables_; }
  const DeltaTableFactory& tables() const { return tables_; }

  // nullptr if there is none: operands do not go to delta files any more, or
  // delta_cache_size is 0.
  DeltaCache* cache() const {
    return cache_ != nullptr && cache_->is_on() ? cache_.get() : nullptr;
  }

  // After SetOptions().
  // REQUIRES: DB mutex held
  void Update(const MutableCFOptions& options);
  // A fold is about to be committed: see DeltaCache::OnFold().
  void OnFold(uint64_t next_epoch) {
    if (cache_ != nullptr) {
      cache_->OnFold(next_epoch);
    }
  }

  // The reader lives as long as the file's meta. Opens it if need be: with
  // read_tier kBlockCacheTier that is Incomplete.
  Status GetReader(const ReadOptions& read_options, const DeltaFileMeta& file,
                   DeltaFileReader** reader) const {
    *reader = file.OpenedReader();
    return LIKELY(*reader != nullptr) ? Status::OK()
                                      : OpenReader(read_options, file, reader);
  }

  FileSystem* fs() const { return async_reads_->fs(); }

  // Point reads ask it whether they begin to read delta files early.
  DeltaAsyncReads* async_reads() const { return async_reads_.get(); }

  // A flush has taken its epoch, or is over, whatever became of it. Epochs of
  // running flushes are above what merges and collections may take in, as their
  // files would come too late otherwise. See DeltaFlush.
  // REQUIRES: DB mutex held
  void OnFlushBegin(uint64_t epoch) {
    running_flushes_.emplace(epoch, std::this_thread::get_id());
  }
  void OnFlushEnd(uint64_t epoch) { running_flushes_.erase(epoch); }
  // UINT64_MAX if none is running.
  uint64_t OldestRunningFlush() const {
    return running_flushes_.empty() ? UINT64_MAX
                                    : running_flushes_.begin()->first;
  }
  // Does one run that this thread, in OnFlushBegin() of a listener, would not
  // wait for in vain?
  bool IsFlushedByOthers() const {
    return std::any_of(running_flushes_.begin(), running_flushes_.end(),
                       [self = std::this_thread::get_id()](const auto& flush) {
                         return flush.second != self;
                       });
  }

  // Merges and collections.
  // REQUIRES: DB mutex held
  DeltaJobState& jobs() { return jobs_; }
  // below: all operands that are meant are in delta files with lower epochs.
  void AddFoldWishes(const DeltaFoldWishes& wishes, uint64_t below) {
    if (!wishes.empty()) {
      jobs_.AddWishes(wishes, below, tables_.settings()->ucmp());
    }
  }

  // Where compactions put wishes. Needs no mutex.
  DeltaHolds* holds() { return &holds_; }
  const DeltaJobState& jobs() const { return jobs_; }

 private:
  Status OpenReader(const ReadOptions& read_options, const DeltaFileMeta& file,
                    DeltaFileReader** reader) const;

  const std::unique_ptr<DeltaAsyncReads> async_reads_;
  DeltaTableFactory tables_;
  const std::unique_ptr<DeltaCache> cache_;
  // The option that the cache's size comes from, as it is now.
  uint64_t cache_size_option_;
  // Epochs, and the threads that took them.
  std::map<uint64_t, std::thread::id> running_flushes_;
  DeltaJobState jobs_;
  DeltaHolds holds_;
};

}  // namespace ROCKSDB_NAMESPACE
