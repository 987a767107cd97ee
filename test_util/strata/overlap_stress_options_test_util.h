//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

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

  // Returns the arguments of the stress program that repeat the run.
  std::string Arguments() const;
};

}  // namespace ROCKSDB_NAMESPACE
