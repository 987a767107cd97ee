//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/metamorphic_check_test_util.h"

namespace ROCKSDB_NAMESPACE {

struct MetamorphicHuntOptions {
  // The first history has this seed, the next one the next number.
  uint64_t seed = 1;
  // The hunt begins no history after this time.
  double seconds = 60;
  // The largest number of histories; 0 for any number.
  size_t num_histories = 0;
  // The number of steps of a history; 0 if its seed chooses it.
  size_t num_steps = 0;
  // With how many sets of options a history runs, besides its own.
  size_t num_sets = 8;
  // How long a history that goes wrong is made shorter.
  double shrink_seconds = 180;
  // A run that takes longer has hung.
  int timeout_seconds = 120;
  // A directory that the runs make and remove; scripts lie beside it.
  std::string root;
};

struct MetamorphicHuntResult {
  size_t num_histories = 0;
  size_t num_runs = 0;
  size_t num_steps = 0;
  // Texts about the histories that went wrong, each with the seed and the path
  // of the script.
  std::vector<std::string> findings;
};

// Runs random histories with random options until the time is up. Each that
// goes wrong is made shorter and written as a history script,
// "<root>-<seed>.txt".
// REQUIRES: the process has one thread
MetamorphicHuntResult RunMetamorphicHunt(const MetamorphicHuntOptions& options);

}  // namespace ROCKSDB_NAMESPACE
