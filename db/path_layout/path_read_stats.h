//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "db/path_layout/path_io_times.h"
#include "db/path_layout/path_job_stats.h"
#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/system_clock.h"
#include "util/core_local.h"

namespace ROCKSDB_NAMESPACE {

// Counts the reads from each of a column family's paths, separately for SST
// files, blob files and delta files. Exists only for a column family with more
// than one path. The files' readers (RandomAccessFileReader) share its
// ownership, because an open iterator may keep a reader alive longer than the
// column family keeps its counters.
//
// Also has the counters of jobs (PathJobStats), and the times of their reads
// and writes (PathIoTimes), which exist for the same column families.
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
    // The reads that were measured (PathReadTimer), and the time they took. A
    // read of several ranges counts once, and asynchronous reads do not count.
    uint64_t timed_reads = 0;
    uint64_t nanos = 0;
  };

  PathReadStats() = default;
  explicit PathReadStats(std::unique_ptr<PathIoTimes> times)
      : times_(std::move(times)) {}
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

  // Counts the time of a read from the file. The reads of jobs also count in
  // times(). REQUIRES: times() != nullptr
  void AddTime(uint32_t slot, uint64_t nanos, const std::string& file_name) {
    Counter& counter = (*shards_.Access())[slot];
    counter.timed_reads.fetch_add(1, std::memory_order_relaxed);
    counter.nanos.fetch_add(nanos, std::memory_order_relaxed);
    if (PathJobScope::Current() != PathJob::kNone) {
      times_->Add(PathIo::kRead, slot % kMaxPaths, nanos / 1000, file_name);
    }
  }

  // Returns the counts. They are exact if no read is in progress.
  Counts Get(FileKind kind, uint32_t path_id) const;

  // Returns what jobs have read and written.
  PathJobStats& jobs() { return jobs_; }
  const PathJobStats& jobs() const { return jobs_; }

  // Returns the times of jobs; nullptr if nothing is measured.
  PathIoTimes* times() { return times_.get(); }
  const PathIoTimes* times() const { return times_.get(); }

 private:
  static_assert(kMaxPaths == PathJobStats::kMaxPaths);
  static_assert(kMaxPaths == PathIoTimes::kMaxPaths);
  static constexpr size_t kNumKinds = 3;
  static constexpr size_t kSlots = kNumKinds * kMaxPaths;

  struct Counter {
    std::atomic<uint64_t> reads{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> timed_reads{0};
    std::atomic<uint64_t> nanos{0};
  };

  struct ALIGN_AS(CACHE_LINE_SIZE) Shard : public std::array<Counter, kSlots> {
  };

  CoreLocalArray<Shard> shards_;
  PathJobStats jobs_;
  const std::unique_ptr<PathIoTimes> times_;
};

// Measures the read during which it lives, if the column family of the file has
// several paths.
class PathReadTimer {
 public:
  // stats: may be nullptr.
  // slot: PathReadStats::Slot() of the file.
  PathReadTimer(PathReadStats* stats, uint32_t slot,
                const std::string& file_name)
      : stats_(stats != nullptr && stats->times() != nullptr ? stats : nullptr),
        slot_(slot),
        file_name_(file_name),
        begin_(stats_ == nullptr ? 0 : stats_->times()->clock()->NowNanos()) {}
  ~PathReadTimer() {
    if (stats_ != nullptr) {
      const uint64_t end = stats_->times()->clock()->NowNanos();
      stats_->AddTime(slot_, end > begin_ ? end - begin_ : 0, file_name_);
    }
  }
  PathReadTimer(const PathReadTimer&) = delete;
  PathReadTimer& operator=(const PathReadTimer&) = delete;

 private:
  PathReadStats* const stats_;
  const uint32_t slot_;
  const std::string& file_name_;
  const uint64_t begin_;
};

}  // namespace ROCKSDB_NAMESPACE
