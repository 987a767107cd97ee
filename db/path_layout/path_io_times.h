//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class Logger;
class SystemClock;

// The kinds of operations whose time is measured.
enum class PathIo : uint8_t { kRead, kWrite, kSync };
inline constexpr size_t kNumPathIos = 3;

// The time that the reads, writes and syncs of background jobs take on each
// path of a column family. A slow device shows here, and in LOG.
//
// Invariants:
// 1. An operation that takes kSlowMicros or longer is counted as slow.
// 2. LOG gets a line for a slow operation, but at most one for each path in
//    kLogIntervalMicros. The line says how many there were since the last one.
// 3. Only SST, blob and delta files are measured. The job that makes such a
//    file closes it, while a MANIFEST or WAL that a job begins lives longer
//    than the column family of the job, and with it this object, may. A blob
//    file of blob direct write, which may do that, too, is made without a job.
//
// Thread-safe.
class PathIoTimes {
 public:
  // The number of path ids that a FileDescriptor can store.
  static constexpr uint32_t kMaxPaths = 4;
  // Longer than a sync of some 100 MB takes on a disk that works.
  static constexpr uint64_t kSlowMicros = 1000 * 1000;
  static constexpr uint64_t kLogIntervalMicros = 60 * 1000 * 1000;

  struct Counts {
    uint64_t operations = 0;
    uint64_t micros = 0;  // all operations took it
    uint64_t max_micros = 0;
  };

  // paths: those of the column family.
  // clock, logger: must live as long as jobs run. logger may be nullptr.
  PathIoTimes(const std::vector<DbPath>& paths, SystemClock* clock,
              Logger* logger);
  PathIoTimes(const PathIoTimes&) = delete;
  PathIoTimes& operator=(const PathIoTimes&) = delete;

  SystemClock* clock() const { return clock_; }

  // Counts an operation of a job.
  // REQUIRES: path_id < kMaxPaths
  void Add(PathIo io, uint32_t path_id, uint64_t micros,
           const std::string& file_name);

  Counts Get(PathIo io, uint32_t path_id) const;
  // Returns the number of slow operations of all kinds.
  uint64_t NumSlow(uint32_t path_id) const;

  // Makes the writes and syncs of a new file count, if it is an SST, blob or
  // delta file on one of the paths.
  // REQUIRES: this object lives as long as such a file is open for writing
  void Measure(const std::string& file_name,
               std::unique_ptr<FSWritableFile>* file);

 private:
  class MeasuredFile;

  struct Counter {
    std::atomic<uint64_t> operations{0};
    std::atomic<uint64_t> micros{0};
    std::atomic<uint64_t> max_micros{0};
  };
  struct Slowness {
    std::atomic<uint64_t> count{0};
    // The time of the last line in LOG, and `count` at that time.
    std::atomic<uint64_t> logged_micros{0};
    std::atomic<uint64_t> logged_count{0};
  };

  void NoteSlow(PathIo io, uint32_t path_id, uint64_t micros,
                const std::string& file_name);

  // The directories of the paths, without slashes at the end.
  std::vector<std::string> directories_;
  SystemClock* const clock_;
  Logger* const logger_;
  std::array<std::array<Counter, kMaxPaths>, kNumPathIos> counters_;
  std::array<Slowness, kMaxPaths> slowness_;
};

// Calls PathIoTimes::Measure() for a file that a job creates, if the job of the
// calling thread measures its files (PathJobScope).
void MeasurePathFile(const std::string& file_name,
                     std::unique_ptr<FSWritableFile>* file);

}  // namespace ROCKSDB_NAMESPACE
