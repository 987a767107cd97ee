//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_options_test_util.h"
#include "test_util/strata/history_words_test_util.h"
#include "test_util/strata/metamorphic_run_test_util.h"
#include "test_util/strata/seeded_run_test_util.h"
#include "test_util/strata/seeded_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Runs histories as MetamorphicRun does, but with threads whose schedule a seed
// chooses (see SeededThreads): thread 0 takes the steps, while the jobs in the
// background of the DB overtake each other and the steps. Each run has a
// process of its own, which RunSeed() starts. Its steps and options reach it
// through a file beside SeededRoot(), and what it finds comes back through
// another one.
//
// Invariant: the outcome and text() are functions of the arguments of Run().
//
// Not thread-safe.
class SeededMetamorphicRunner {
 public:
  // A run that takes longer in real time has hung. It is far above the time
  // that a run takes, which sanitizers multiply by ten.
  static constexpr unsigned kTimeoutSeconds = 300;

  // history: the name by which StartSeededTest() knows RunHere(), or a function
  // that calls it.
  explicit SeededMetamorphicRunner(std::string history)
      : history_(std::move(history)) {}
  SeededMetamorphicRunner(const SeededMetamorphicRunner&) = delete;
  SeededMetamorphicRunner& operator=(const SeededMetamorphicRunner&) = delete;

  // Runs the history. A deadlock has the outcome of a process that hangs. The
  // files of a process that has died or hung remain in SeededRoot() until the
  // next run.
  // lists: as for MetamorphicRun::Run().
  // REQUIRES: each step is valid, the process has one thread, and main() has
  // called StartSeededTest()
  MetamorphicOutcome Run(const std::vector<HistoryWords>& steps,
                         const std::vector<HistoryOptionList>& lists,
                         uint64_t schedule_seed,
                         unsigned timeout_seconds = kTimeoutSeconds);

  // SeededRun::text of the last run: the hash of all steps of the threads, and
  // that of each file, if the process has finished.
  const std::string& text() const { return text_; }

  // The history, in the process that RunSeed() has started.
  static SeededResult RunHere(uint64_t schedule_seed, const std::string& root);

  // The options of its threads. An odd seed has the policy kPriorities, an even
  // one kUniform.
  static SeededThreads::Options ThreadOptions(uint64_t schedule_seed);

 private:
  const std::string history_;
  std::string text_;
};

}  // namespace ROCKSDB_NAMESPACE
