//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "rocksdb/perf_context.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A copy of the calling thread's PerfContext, to undo the counts of a failed
// attempt: the attempt is repeated, and only the repetition must be counted.
// The IOStatsContext is not part of it.
//
// Used only by the thread that creates it.
class SavedPerfCounts {
 public:
  SavedPerfCounts();
  SavedPerfCounts(const SavedPerfCounts&) = delete;
  SavedPerfCounts& operator=(const SavedPerfCounts&) = delete;

  // Sets the thread's PerfContext to the copy.
  // REQUIRES: per-level counts have not been switched on or off since the
  // object was created.
  void Restore();

 private:
  PerfContextBase perf_;
  std::optional<std::map<uint32_t, PerfContextByLevel>> levels_;
};

}  // namespace ROCKSDB_NAMESPACE
