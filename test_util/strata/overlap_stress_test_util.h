//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The parameters of a run of OverlapStress. Everything that is not specified
// here is determined by the seed: options of the DB, operations, pauses.
struct OverlapStressOptions {
  std::string path;  // The directory of the DB, which the run destroys.
  uint64_t seed = 1;
  double seconds = 10;

  bool address_map = true;
  bool lsm_bypass = true;
  bool delta_separation = false;
  bool merged_values = false;
  bool compaction_filter = false;
  bool merges = true;
  bool range_deletions = true;
  // Threads sleep randomly at sync points. This has no effect in release
  // builds.
  bool pauses = true;

  uint32_t writers = 2;  // Threads, each with a range of keys of its own.
  uint32_t readers = 2;  // Threads that read all keys.
  uint32_t keys = 150;   // Keys of each writer in each column family.
  // The run stops after this many findings.
  size_t max_findings = 10;

  // Returns "map=1 bypass=1 ...", for messages.
  std::string Describe() const;
  // Returns the arguments of the stress program that repeat the run.
  std::string Arguments() const;
};

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
