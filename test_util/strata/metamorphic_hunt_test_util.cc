//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/metamorphic_hunt_test_util.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <utility>

#include "rocksdb/env.h"
#include "test_util/strata/history_variants_test_util.h"
#include "test_util/strata/metamorphic_generator_test_util.h"
#include "test_util/strata/metamorphic_option_sets_test_util.h"
#include "test_util/strata/metamorphic_run_test_util.h"
#include "test_util/strata/metamorphic_script_test_util.h"
#include "test_util/strata/metamorphic_shrinker_test_util.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

namespace {

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

const char* Name(MetamorphicFinding::Kind kind) {
  switch (kind) {
    case MetamorphicFinding::Kind::kWrong:
      return "wrong answer";
    case MetamorphicFinding::Kind::kDied:
      return "the process ended";
    case MetamorphicFinding::Kind::kHung:
      return "the process hung";
    case MetamorphicFinding::Kind::kMistake:
      return "mistake in a step";
  }
  return "";
}

// Removes options that the file system of the test does not have.
void RemoveDirectIo(std::vector<HistoryVariant>* sets) {
  for (HistoryVariant& set : *sets) {
    for (HistoryOptionList& list : set.lists) {
      std::erase_if(list, [](const auto& option) {
        return option.first.find("use_direct_") == 0;
      });
    }
  }
}

class Hunt {
 public:
  explicit Hunt(const MetamorphicHuntOptions& options)
      : options_(options),
        check_([this](const std::vector<HistoryWords>& steps,
                      const std::vector<HistoryOptionList>& lists) {
          return MetamorphicRun::Run(steps, lists, options_.root,
                                     options_.timeout_seconds);
        }) {}

  MetamorphicHuntResult Run() {
    has_direct_io_ = Env::Default()->CreateDirIfMissing(options_.root).ok() &&
                     test::IsDirectIOSupported(Env::Default(), options_.root);
    const Stopwatch watch;
    for (uint64_t seed = options_.seed;
         watch.Seconds() < options_.seconds &&
         (options_.num_histories == 0 ||
          result_.num_histories < options_.num_histories);
         ++seed) {
      RunHistory(seed);
    }
    result_.num_runs = check_.num_runs();
    result_.num_steps = check_.num_steps();
    return std::move(result_);
  }

 private:
  void RunHistory(uint64_t seed) {
    ++result_.num_histories;
    const std::vector<HistoryWords> steps =
        MetamorphicGenerator(seed).Steps(options_.num_steps);
    std::vector<HistoryVariant> sets =
        MetamorphicOptionSets::Choose(seed, steps, options_.num_sets);
    if (!has_direct_io_) {
      RemoveDirectIo(&sets);
    }
    std::optional<MetamorphicFinding> finding = check_.RunOwn(steps);
    for (size_t i = 0; i < sets.size() && !finding.has_value(); ++i) {
      finding = check_.RunSet(steps, sets[i]);
    }
    if (finding.has_value()) {
      Report(seed, {steps, std::move(*finding)});
    }
  }

  void Report(uint64_t seed, MetamorphicShrinker::Case found) {
    constexpr int kTries = 3;
    const Stopwatch watch;
    MetamorphicShrinker shrinker(
        &check_, [&] { return watch.Seconds() < options_.shrink_seconds; },
        kTries);
    const std::string first = found.finding.what;
    bool is_repeatable = false;
    const MetamorphicShrinker::Case small =
        shrinker.Shrink(std::move(found), &is_repeatable);
    // For the expected output.
    check_.RunOwn(small.steps);
    const std::string path =
        options_.root + "-" + std::to_string(seed) + ".txt";
    std::ofstream(path) << MetamorphicScript(
        {"Found by metamorphic_test --seed=" + std::to_string(seed)},
        small.steps, small.finding.set, check_.own_outputs());
    std::string text =
        "seed " + std::to_string(seed) + ", " + small.finding.set.name + ": " +
        Name(small.finding.kind) + (is_repeatable ? "" : " (not seen again)") +
        "; " + std::to_string(small.steps.size()) + " steps in " + path + "\n" +
        small.finding.what + "\n";
    if (first != small.finding.what) {
      text.append("at first: ").append(first).append("\n");
    }
    printf("%s", text.c_str());
    fflush(stdout);
    result_.findings.push_back(std::move(text));
  }

  const MetamorphicHuntOptions& options_;
  bool has_direct_io_ = false;
  MetamorphicCheck check_;
  MetamorphicHuntResult result_;
};

}  // namespace

MetamorphicHuntResult RunMetamorphicHunt(
    const MetamorphicHuntOptions& options) {
  return Hunt(options).Run();
}

}  // namespace ROCKSDB_NAMESPACE
