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
#include "test_util/strata/history_variants_test_util.h"
#include "test_util/strata/history_words_test_util.h"
#include "test_util/strata/metamorphic_run_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A history that went wrong with some options.
struct MetamorphicFinding {
  enum class Kind {
    kWrong,    // an answer contradicts the model, or that with stock options
    kDied,     // the process aborted
    kHung,     // the process did not end
    kMistake,  // a step was wrong: an error of the generator
  };

  Kind kind = Kind::kWrong;
  // The options; a set without lists stands for the history's own ones.
  HistoryVariant set;
  std::string what;
  // MetamorphicOutcome::schedule_seed of the run.
  uint64_t schedule_seed = 0;
};

// Runs a history with its own options and with others, and compares.
//
// Not thread-safe.
class MetamorphicCheck {
 public:
  // Runs steps with these options.
  using Runner = std::function<MetamorphicOutcome(
      const std::vector<HistoryWords>&, const std::vector<HistoryOptionList>&)>;

  explicit MetamorphicCheck(Runner runner) : runner_(std::move(runner)) {}
  MetamorphicCheck(const MetamorphicCheck&) = delete;
  MetamorphicCheck& operator=(const MetamorphicCheck&) = delete;

  // Runs the steps with their own options, and remembers the output. Returns
  // what went wrong.
  std::optional<MetamorphicFinding> RunOwn(
      const std::vector<HistoryWords>& steps);

  // Runs the steps with other options. Returns what went wrong; answers that
  // differ from those of RunOwn() are wrong.
  // REQUIRES: RunOwn(steps) was the last call of RunOwn(), and found nothing
  std::optional<MetamorphicFinding> RunSet(
      const std::vector<HistoryWords>& steps, const HistoryVariant& set);

  // The output of the last call of RunOwn().
  const std::vector<HistoryInterpreter::Output>& own_outputs() const {
    return own_outputs_;
  }
  size_t num_runs() const { return num_runs_; }
  size_t num_steps() const { return num_steps_; }

 private:
  std::optional<MetamorphicFinding> Judge(const HistoryVariant& set,
                                          const MetamorphicOutcome& outcome);

  const Runner runner_;
  std::vector<HistoryInterpreter::Output> own_outputs_;
  size_t num_runs_ = 0;
  size_t num_steps_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
