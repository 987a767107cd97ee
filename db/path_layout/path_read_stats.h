//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "db/path_layout/path_job_stats.h"
#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"
#include "util/core_local.h"

namespace ROCKSDB_NAMESPACE {

// Counts the reads from each of a column family's paths, separately for SST
// files, blob files and delta files. Exists only for a column family with more
// than one path. The files' readers (RandomAccessFileReader) share its
// ownership, because an open iterator may keep a reader alive longer than the
// column family keeps its counters.
//
// Also has the counters of jobs (PathJobStats), which exist for the same column
// families.
//
// Thread-safe. Add() touches one cache line of the calling core, and another
// one in a thread that works for a job.
class PathReadStats {
 public:
  enum class FileKind : uint32_t { kSst = 0, kBlob = 1, kDelta = 2 };

  // The number of path ids that a FileDescriptor can store.
  static constexpr uint32_t kMaxPaths = 4;

  struct Counts {
    uint64_t reads = 0;
    uint64_t bytes = 0;
  };

  PathReadStats() = default;
  PathReadStats(const PathReadStats&) = delete;
  PathReadStats& operator=(const PathReadStats&) = delete;

  // Returns the index of the counters of a file, which its reader stores.
  static uint32_t Slot(FileKind kind, uint32_t path_id) {
    return static_cast<uint32_t>(kind) * kMaxPaths + path_id % kMaxPaths;
  }

  // Counts a request that returned `bytes` bytes. A request that returned none
  // (it failed, or was behind the end) is not counted.
  void Add(uint32_t slot, size_t bytes) {
    if (bytes == 0) {
      return;
    }
    Counter& counter = (*shards_.Access())[slot];
    counter.reads.fetch_add(1, std::memory_order_relaxed);
    counter.bytes.fetch_add(bytes, std::memory_order_relaxed);
    jobs_.AddRead(slot % kMaxPaths, bytes);
  }

  // Returns the counts. They are exact if no read is in progress.
  Counts Get(FileKind kind, uint32_t path_id) const;

  // Returns what jobs have read and written.
  PathJobStats& jobs() { return jobs_; }
  const PathJobStats& jobs() const { return jobs_; }

 private:
  static_assert(kMaxPaths == PathJobStats::kMaxPaths);
  static constexpr size_t kNumKinds = 3;
  static constexpr size_t kSlots = kNumKinds * kMaxPaths;

  struct Counter {
    std::atomic<uint64_t> reads{0};
    std::atomic<uint64_t> bytes{0};
  };

  struct ALIGN_AS(CACHE_LINE_SIZE) Shard : public std::array<Counter, kSlots> {
  };

  CoreLocalArray<Shard> shards_;
  PathJobStats jobs_;
};

}  // namespace ROCKSDB_NAMESPACE
