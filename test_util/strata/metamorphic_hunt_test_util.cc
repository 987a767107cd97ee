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
#include "test_util/strata/history_options_test_util.h"
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

// Adds options with which jobs run in the background, where a list does not say
// otherwise: a schedule has nothing to choose between the steps of a history
// that waits for each of its jobs.
void AddBackgroundJobs(std::vector<HistoryVariant>* sets) {
  const HistoryOptionList options = {
      {"disable_auto_compactions", "false"},
      {"level0_file_num_compaction_trigger", "2"},
      {"max_background_jobs", "4"}};
  for (HistoryVariant& set : *sets) {
    for (HistoryOptionList& list : set.lists) {
      for (const auto& [name, value] : options) {
        if (HistoryOptions::Find(list, name) == nullptr) {
          HistoryOptions::Set(name, value, &list);
        }
      }
    }
  }
}

class Hunt {
 public:
  explicit Hunt(const MetamorphicHuntOptions& options)
      : options_(options),
        check_([this](const std::vector<HistoryWords>& steps,
                      const std::vector<HistoryOptionList>& lists) {
          return RunOnce(steps, lists);
        }),
        next_schedule_seed_(options.schedules.first_seed) {}

  MetamorphicHuntResult Run() {
    has_direct_io_ = Env::Default()->CreateDirIfMissing(options_.root).ok() &&
                     test::IsDirectIOSupported(Env::Default(), options_.root);
    Env::Default()->DeleteDir(options_.root).PermitUncheckedError();
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
  bool has_schedules() const { return options_.schedules.run != nullptr; }

  MetamorphicOutcome RunOnce(const std::vector<HistoryWords>& steps,
                             const std::vector<HistoryOptionList>& lists) {
    if (!has_schedules()) {
      return MetamorphicRun::Run(steps, lists, options_.root,
                                 options_.timeout_seconds);
    }
    MetamorphicOutcome outcome =
        options_.schedules.run(steps, lists, schedule_seed_);
    outcome.schedule_seed = schedule_seed_;
    return outcome;
  }

  void RunHistory(uint64_t seed) {
    ++result_.num_histories;
    const std::vector<HistoryWords> steps =
        MetamorphicGenerator(seed).Steps(options_.num_steps);
    std::vector<HistoryVariant> sets =
        MetamorphicOptionSets::Choose(seed, steps, options_.num_sets);
    if (!has_direct_io_) {
      RemoveDirectIo(&sets);
    }
    if (has_schedules()) {
      AddBackgroundJobs(&sets);
    }
    schedule_seed_ = next_schedule_seed_;
    std::optional<MetamorphicFinding> finding = check_.RunOwn(steps);
    std::optional<size_t> number;
    for (size_t i = 0; i < sets.size() && !finding.has_value(); ++i) {
      if (options_.only_set.value_or(i) == i) {
        number = i;
        finding = RunSet(steps, sets[i]);
      }
    }
    if (!number.has_value()) {
      next_schedule_seed_ += options_.schedules.seed_step;
    }
    if (finding.has_value()) {
      const std::string flags = Flags(seed, number, finding->schedule_seed);
      Report(seed, flags, {steps, std::move(*finding)});
    }
  }

  // Runs the steps with all schedules of the set.
  std::optional<MetamorphicFinding> RunSet(
      const std::vector<HistoryWords>& steps, const HistoryVariant& set) {
    std::optional<MetamorphicFinding> finding;
    const size_t num_runs = has_schedules() ? options_.schedules.per_set : 1;
    for (size_t i = 0; i < num_runs && !finding.has_value(); ++i) {
      schedule_seed_ = next_schedule_seed_;
      next_schedule_seed_ += options_.schedules.seed_step;
      finding = check_.RunSet(steps, set);
    }
    return finding;
  }

  // Returns the arguments of the program that repeat a run.
  // set: the number of the set; std::nullopt for the history's own options.
  std::string Flags(uint64_t seed, std::optional<size_t> set,
                    uint64_t schedule_seed) const {
    if (!has_schedules()) {
      return "--seed=" + std::to_string(seed);
    }
    std::string flags = "--history_seed=" + std::to_string(seed) +
                        " --schedule_seed=" + std::to_string(schedule_seed) +
                        " --histories=1 --schedules=1";
    if (!set.has_value()) {
      flags += " --sets=0";
    } else {
      flags += " --sets=" + std::to_string(options_.num_sets) +
               " --set=" + std::to_string(*set);
    }
    if (options_.num_steps != 0) {
      flags += " --steps=" + std::to_string(options_.num_steps);
    }
    return flags;
  }

  // flags: Flags() of the run that went wrong.
  void Report(uint64_t seed, const std::string& flags,
              MetamorphicShrinker::Case found) {
    constexpr int kTries = 3;
    const Stopwatch watch;
    MetamorphicShrinker shrinker(
        &check_, [&] { return watch.Seconds() < options_.shrink_seconds; },
        kTries,
        // The first try has the schedule that went wrong. A history without
        // some steps may need another one.
        [this](const MetamorphicShrinker::Case& best, int number) {
          schedule_seed_ =
              best.finding.schedule_seed +
              static_cast<uint64_t>(number) * options_.schedules.seed_step;
        });
    const std::string first = found.finding.what;
    bool is_repeatable = false;
    const MetamorphicShrinker::Case small =
        shrinker.Shrink(std::move(found), &is_repeatable);
    // For the expected output.
    schedule_seed_ = small.finding.schedule_seed;
    check_.RunOwn(small.steps);
    const std::string schedule_seed = std::to_string(schedule_seed_);
    const std::string path = options_.root + "-" + std::to_string(seed) +
                             (has_schedules() ? "-" + schedule_seed : "") +
                             ".txt";
    std::vector<std::string> head = {
        std::string("Found by ")
            .append(has_schedules() ? "seeded_metamorphic_test "
                                    : "metamorphic_test ")
            .append(flags)};
    if (has_schedules()) {
      head.push_back("It goes wrong with --schedule_seed=" + schedule_seed +
                     ".");
    }
    std::ofstream(path) << MetamorphicScript(
        head, small.steps, small.finding.set, check_.own_outputs());
    std::string text =
        "seed " + std::to_string(seed) + ", " +
        (has_schedules() ? "schedule seed " + schedule_seed + ", " : "") +
        small.finding.set.name + ": " + Name(small.finding.kind) +
        (is_repeatable ? "" : " (not seen again)") + "; " +
        std::to_string(small.steps.size()) + " steps in " + path + "\n";
    if (has_schedules()) {
      text += "the whole history: " + options_.schedules.command + " " + flags +
              "\nthe steps of the script: " + options_.schedules.command +
              " --replay=" + path + " --schedule_seed=" + schedule_seed + "\n";
    }
    text.append(small.finding.what).append("\n");
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
  // The seed of the schedule of the next run, and of the run with a set that
  // follows.
  uint64_t schedule_seed_ = 0;
  uint64_t next_schedule_seed_;
};

}  // namespace

MetamorphicHuntResult RunMetamorphicHunt(
    const MetamorphicHuntOptions& options) {
  return Hunt(options).Run();
}

}  // namespace ROCKSDB_NAMESPACE
