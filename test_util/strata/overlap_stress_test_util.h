//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/overlap_stress_options_test_util.h"

namespace ROCKSDB_NAMESPACE {

struct OverlapStressResult {
  // Wrong answers and errors, one line each.
  std::vector<std::string> findings;
  // Time of the first finding, in seconds since the run began; 0 if there is
  // none.
  double first_finding_seconds = 0;
  uint64_t writes = 0;
  uint64_t reads = 0;   // Point reads, by key.
  uint64_t views = 0;   // Reads of old snapshots and iterators, by view.
  uint64_t jobs = 0;    // Jobs that the stress test requested.
  uint64_t pauses = 0;  // Sleeps at sync points.
  // These counts of the DB's statistics show whether the tested events
  // happened.
  uint64_t restarts = 0;  // Reads that asked the map again.
  uint64_t renamed = 0;   // Values that became direct.
  uint64_t swept = 0;     // Values that a range deletion removed from the map.
  uint64_t folded = 0;    // Operands that were merged into values.
};

// Writes, reads and runs jobs on a DB from many threads at the same time, and
// compares each result with a model that has exactly one correct result for it,
// or the few that concurrent writes allow. Uses only the public API. Jobs and
// reads overtake each other because threads sleep at sync points.
//
// The rules by which results are checked:
//  * Each key has one writer, which therefore knows its value at any time.
//  * Another thread must find the latest version that was acknowledged, or
//    found by an earlier read, before it began, or a later version whose write
//    was begun.
//  * The results of one MultiGet() are those of one moment.
//  * A snapshot or an iterator shows the contents at its creation.
//
// Not thread-safe. REQUIRES: there is no other run in the process, since it
// uses SyncPoint.
OverlapStressResult RunOverlapStress(const OverlapStressOptions& options);

}  // namespace ROCKSDB_NAMESPACE
