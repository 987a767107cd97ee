//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileAddition;
class ColumnFamilyData;
class CompactionState;
class PathIoTimes;
class TableCache;
struct FileMetaData;

// The kinds of work for which a thread reads and writes the files of a path.
enum class PathJob : uint8_t {
  kNone,  // reads of the application, ingestion, the open of a DB
  kFlush,
  kCompaction,
  // Jobs that copy or sort the values of an address map, or clean it.
  kBlobGc,
  // Merges of delta files, collections of buckets, folds.
  kDelta,
};
inline constexpr size_t kNumPathJobs = 5;

// While the object lives, its thread works for `job`. Objects nest.
//
// Invariant: an object is destroyed by the thread that has created it, in the
// reverse order.
class PathJobScope {
 public:
  // cfd: the column family whose files the job writes; the times of writes
  //     count for it. It must live as long as the object. nullptr: no times.
  explicit PathJobScope(PathJob job, const ColumnFamilyData* cfd = nullptr);
  ~PathJobScope();
  PathJobScope(const PathJobScope&) = delete;
  PathJobScope& operator=(const PathJobScope&) = delete;

  // Returns the job of the calling thread.
  static PathJob Current();
  // Returns where the times of the calling thread's job count; nullptr:
  // nowhere, as for a column family with one path.
  static PathIoTimes* CurrentTimes();

 private:
  const PathJob before_;
  PathIoTimes* const times_before_;
};

// The bytes that jobs have read from, and written to, each path of a column
// family since it was opened. A file counts as written when it is complete and,
// in a compaction, when its directory is to be synced. So the bytes are missing
// if a job fails before this point, and are counted if it fails later.
//
// A read counts for the job of the thread in which it ends. A thread of
// BlobReadPool has the job of the thread that has asked for the read.
//
// Thread-safe.
class PathJobStats {
 public:
  // The number of path ids that a FileDescriptor can store.
  static constexpr uint32_t kMaxPaths = 4;

  struct Counts {
    uint64_t read = 0;     // bytes
    uint64_t written = 0;  // bytes
  };

  PathJobStats() = default;
  PathJobStats(const PathJobStats&) = delete;
  PathJobStats& operator=(const PathJobStats&) = delete;

  // Counts bytes for the job of the calling thread. Reads that are for no job
  // touch no memory.
  void AddRead(uint32_t path_id, uint64_t bytes) {
    const PathJob job = PathJobScope::Current();
    if (job != PathJob::kNone) {
      Of(job, path_id).read.fetch_add(bytes, std::memory_order_relaxed);
    }
  }
  void AddWritten(uint32_t path_id, uint64_t bytes) {
    Of(PathJobScope::Current(), path_id)
        .written.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Counts a blob file that was written.
  void AddWritten(const BlobFileAddition& file);

  Counts Get(PathJob job, uint32_t path_id) const;

 private:
  struct Counter {
    std::atomic<uint64_t> read{0};
    std::atomic<uint64_t> written{0};
  };

  Counter& Of(PathJob job, uint32_t path_id) {
    return counters_[static_cast<size_t>(job)][path_id % kMaxPaths];
  }

  std::array<std::array<Counter, kMaxPaths>, kNumPathJobs> counters_;
};

// Counts the files that BuildTable() has written. Does nothing for a column
// family with one path.
// table_cache: that of the column family; may be nullptr.
// file: has no bytes if there is no SST file.
// blob_files: the blob files of this call; may be nullptr.
void CountPathOutputs(const TableCache* table_cache, const FileMetaData& file,
                      const std::vector<BlobFileAddition>* blob_files);
// Counts the files that all subcompactions have written.
void CountPathOutputs(CompactionState& compaction);

}  // namespace ROCKSDB_NAMESPACE
