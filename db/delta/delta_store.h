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

// The delta separation state of a column family that is not part of a Version:
// how its delta files are written and read, the cache of what reads have found
// in them, and the flushes and jobs that are running. The set of delta files is
// part of the Version (DeltaVersion).
//
// ColumnFamilyData has a DeltaStore from when it is opened or created if the
// option is on or the MANIFEST names delta files. The store then lives as long
// as the ColumnFamilyData, so that jobs and readers never see it appear or
// disappear.
//
// Thread-safety: functions for reads are thread-safe. Functions for flushes and
// jobs require the DB mutex.
class DeltaStore {
 public:
  DeltaStore(DeltaTableFamily family, const MutableCFOptions& options);
  DeltaStore(const DeltaStore&) = delete;
  DeltaStore& operator=(const DeltaStore&) = delete;

  DeltaTableFactory* tables() { return &tables_; }
  const DeltaTableFactory& tables() const { return tables_; }

  // Returns the cache, or nullptr if it is off: because operands no longer go
  // to delta files, or because delta_cache_size is 0.
  DeltaCache* cache() const {
    return cache_ != nullptr && cache_->is_on() ? cache_.get() : nullptr;
  }
  // Returns what cache() has. Evictions are counted while it is off, too: their
  // number never becomes smaller.
  SieveTable::Stats CacheStats() const {
    return cache_ != nullptr ? cache_->GetStats() : SieveTable::Stats();
  }
  // In bytes; 0 if the cache is off.
  size_t CacheCapacity() const {
    return cache_ != nullptr ? cache_->capacity() : 0;
  }

  // Applies options that SetOptions() has changed.
  // REQUIRES: DB mutex held
  void Update(const MutableCFOptions& options);
  // Evicts what Update() has left no room for in the cache.
  // REQUIRES: before the next Update(); DB mutex not held, as it takes seconds
  void TrimCache();
  // To be called before a fold is committed, see DeltaCache::OnFold().
  void OnFold(uint64_t next_epoch) {
    if (cache_ != nullptr) {
      cache_->OnFold(next_epoch);
    }
  }

  // Sets *reader to the reader of the file, which lives as long as the file's
  // meta. Opens the file if necessary; with read_tier kBlockCacheTier that
  // returns Incomplete instead.
  Status GetReader(const ReadOptions& read_options, const DeltaFileMeta& file,
                   DeltaFileReader** reader) const {
    *reader = file.OpenedReader();
    return LIKELY(*reader != nullptr) ? Status::OK()
                                      : OpenReader(read_options, file, reader);
  }

  FileSystem* fs() const { return async_reads_->fs(); }

  // Decides whether point reads begin to read delta files early.
  DeltaAsyncReads* async_reads() const { return async_reads_.get(); }

  // Registers a flush that has taken its epoch (see DeltaFlush). Until
  // OnFlushEnd(), merges and collections take in lower epochs only: files of
  // this flush would be added too late otherwise.
  // REQUIRES: DB mutex held
  void OnFlushBegin(uint64_t epoch) {
    running_flushes_.emplace(epoch, std::this_thread::get_id());
  }
  // Unregisters a flush, successful or not.
  // REQUIRES: DB mutex held
  void OnFlushEnd(uint64_t epoch) { running_flushes_.erase(epoch); }
  // Returns the lowest epoch of a running flush, UINT64_MAX if none is running.
  // REQUIRES: DB mutex held
  uint64_t OldestRunningFlush() const {
    return running_flushes_.empty() ? UINT64_MAX
                                    : running_flushes_.begin()->first;
  }
  // Returns true if a flush of another thread is running. A flush of this
  // thread does not count: called from a listener's OnFlushBegin(), this thread
  // would wait for its own flush forever.
  // REQUIRES: DB mutex held
  bool IsFlushedByOthers() const {
    return std::any_of(running_flushes_.begin(), running_flushes_.end(),
                       [self = std::this_thread::get_id()](const auto& flush) {
                         return flush.second != self;
                       });
  }

  // State of merges and collections.
  // REQUIRES: DB mutex held
  DeltaJobState& jobs() { return jobs_; }
  // Adds keys whose operands are to be folded.
  // below: all operands that are meant are in delta files with lower epochs.
  // REQUIRES: DB mutex held
  void AddFoldWishes(const DeltaFoldWishes& wishes, uint64_t below) {
    if (!wishes.empty()) {
      jobs_.AddWishes(wishes, below, tables_.settings()->ucmp());
    }
  }

  // Collects the fold wishes of compactions. Does not require the DB mutex.
  DeltaHolds* holds() { return &holds_; }
  // REQUIRES: DB mutex held
  const DeltaJobState& jobs() const { return jobs_; }

 private:
  Status OpenReader(const ReadOptions& read_options, const DeltaFileMeta& file,
                    DeltaFileReader** reader) const;

  const std::unique_ptr<DeltaAsyncReads> async_reads_;
  DeltaTableFactory tables_;
  const std::unique_ptr<DeltaCache> cache_;
  // The current value of the option that the cache's size is derived from.
  uint64_t cache_size_option_;
  // Epochs of running flushes, and the threads that registered them.
  std::map<uint64_t, std::thread::id> running_flushes_;
  DeltaJobState jobs_;
  DeltaHolds holds_;
};

}  // namespace ROCKSDB_NAMESPACE
