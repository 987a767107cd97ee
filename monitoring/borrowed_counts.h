//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "rocksdb/iostats_context.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/perf_level.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// What a thread counts while it works for another one, in its PerfContext and
// its IOStatsContext. The other one adds it to its own, so that it has counted
// as if it had done the work itself; times as well, though they overlap.
//
//   BorrowedCounts counts;   // on the thread that has the work done
//   counts.Begin();          // on the one that does it
//   counts.End();            // there, too
//   counts.AddToThread();    // on the first one
//
// What the working thread had counted for itself is lost: it is for threads
// that only work for others.
//
// Used by one thread at a time.
class BorrowedCounts {
 public:
  // With the PerfLevel and the other settings of the calling thread.
  BorrowedCounts();
  BorrowedCounts(const BorrowedCounts&) = delete;
  BorrowedCounts& operator=(const BorrowedCounts&) = delete;

  // From Begin() to End() the calling thread has the settings of the other one.
  void Begin();
  void End();

  // Once.
  void AddToThread();

 private:
  const PerfLevel perf_level_;
  const bool has_levels_;
  const bool disable_iostats_;
  PerfContext perf_;
  IOStatsContext iostats_{};
};

// The PerfContext of the calling thread as it was: for what is tried and, if it
// fails, tried again by somebody who counts it.
class SavedPerfCounts {
 public:
  SavedPerfCounts();
  SavedPerfCounts(const SavedPerfCounts&) = delete;
  SavedPerfCounts& operator=(const SavedPerfCounts&) = delete;

  // REQUIRES: the thread that has saved them, with the same settings.
  void Restore();

 private:
  PerfContextBase perf_;
  std::optional<std::map<uint32_t, PerfContextByLevel>> levels_;
};

}  // namespace ROCKSDB_NAMESPACE
