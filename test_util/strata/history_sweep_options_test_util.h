//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Which points a sweep runs.
struct HistorySweepOptions {
  // All points of all variants; otherwise some of one variant, at random.
  bool all = false;
  // The number of points if not all of them are run.
  size_t num_points = 3;
  uint32_t seed = 1;
  // Only this script, variant ("own" for the script's own options), kind of
  // fault, and point "KIND:N"; any if empty. `after` is the point behind which
  // a sweep of all points goes on.
  std::string script;
  std::string variant;
  std::string kind;
  std::string point;
  std::string after;

  // Sets the options that environment variables STRATA_SWEEP... say; see
  // docs/fault-sweeps.md. Returns false and sets *error if one is malformed.
  static bool FromEnvironment(HistorySweepOptions* options, std::string* error);
};

}  // namespace ROCKSDB_NAMESPACE
