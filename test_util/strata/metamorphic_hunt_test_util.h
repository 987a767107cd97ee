//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/metamorphic_check_test_util.h"

namespace ROCKSDB_NAMESPACE {

// How the seeds of a hunt choose the schedules of threads. The first run with a
// set has the first seed, the next run the next one, and so on. A run with a
// history's own options has the seed of the run that follows.
struct MetamorphicSchedules {
  // Runs a history with the schedule of the seed. Empty if the system schedules
  // the threads.
  std::function<MetamorphicOutcome(const std::vector<HistoryWords>&,
                                   const std::vector<HistoryOptionList>&,
                                   uint64_t schedule_seed)>
      run;
  uint64_t first_seed = 1;
  // The distance of two seeds.
  uint64_t seed_step = 1;
  // With how many schedules a history runs with each set of options.
  size_t per_set = 4;
  // The command that starts the program, for a finding to tell how to repeat
  // the run.
  std::string command;
};

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
  // The number of the only set, from 0, with which a history runs besides its
  // own options.
  std::optional<size_t> only_set;
  // How long a history that goes wrong is made shorter.
  double shrink_seconds = 180;
  // A run that takes longer has hung. Without effect on schedules.run.
  int timeout_seconds = 120;
  // A directory that the runs make and remove; scripts lie beside it.
  std::string root;
  // With schedules.run, each set has jobs in the background.
  MetamorphicSchedules schedules;
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
// "<root>-<seed>.txt", or "<root>-<seed>-<seed of the schedule>.txt".
// REQUIRES: the process has one thread
MetamorphicHuntResult RunMetamorphicHunt(const MetamorphicHuntOptions& options);

}  // namespace ROCKSDB_NAMESPACE
