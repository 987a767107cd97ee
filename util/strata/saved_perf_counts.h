//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "rocksdb/perf_context.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A copy of the calling thread's PerfContext, to undo what an attempt has
// counted: an attempt that fails is repeated, and only the repetition counts.
// The IOStatsContext is not part of it.
//
// Thread-safety: an object is used by the thread that made it.
class SavedPerfCounts {
 public:
  SavedPerfCounts();
  SavedPerfCounts(const SavedPerfCounts&) = delete;
  SavedPerfCounts& operator=(const SavedPerfCounts&) = delete;

  // REQUIRES: per-level counts have not been switched on or off since the
  // object was made.
  void Restore();

 private:
  PerfContextBase perf_;
  std::optional<std::map<uint32_t, PerfContextByLevel>> levels_;
};

}  // namespace ROCKSDB_NAMESPACE
