//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The metamorphic test (see metamorphic_test.cc) with threads whose schedule is
// a function of a seed (see SeededThreads): a random history has the same
// answers with all options, and with all interleavings of the jobs in the
// background. As a test this runs fixed pairs of a history's seed and a
// schedule's seed. With --histories or --seconds it is a program that searches:
//
//   seeded_metamorphic_test --seconds=3600 [--histories=N] [--history_seed=1]
//     [--schedule_seed=1] [--schedules=4] [--pct] [--sets=8] [--set=N]
//     [--steps=N] [--shrink_seconds=180]
//   seeded_metamorphic_test --replay=FILE [--schedule_seed=1] [--schedules=1]
//     [--pct]
//
// Each set of options runs with that many schedules, of consecutive seeds; with
// --pct all of them have the policy kPriorities. --set=N is the only set that
// runs, from 0. A finding is printed with the arguments that repeat it; the
// options and the steps that are left of it are written as a history script,
// which --replay=FILE runs with the script's own options and with others.
// STRATA_SEEDED_TRACE=FILE gets all steps of the last run.
//
// The exit code is 1 if an answer was wrong or a process ended or hung.

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/env.h"
#include "test_util/strata/history_check_test_util.h"
#include "test_util/strata/history_options_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/strata/history_variants_test_util.h"
#include "test_util/strata/metamorphic_check_test_util.h"
#include "test_util/strata/metamorphic_generator_test_util.h"
#include "test_util/strata/metamorphic_hunt_test_util.h"
#include "test_util/strata/metamorphic_run_test_util.h"
#include "test_util/strata/metamorphic_script_test_util.h"
#include "test_util/strata/seeded_metamorphic_test_util.h"
#include "test_util/strata/seeded_run_test_util.h"
#include "test_util/strata/test_flags_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Steps = std::vector<HistoryWords>;
using Lists = std::vector<HistoryOptionList>;

// The histories of StartSeededTest().
constexpr char kHistory[] = "metamorphic";
constexpr char kAborts[] = "aborts";
constexpr char kDeadlocks[] = "deadlocks";
constexpr char kSpins[] = "spins";

// Runs the history with this callback of a sync point that each flush reaches.
SeededResult RunWithCallback(uint64_t seed, const std::string& root,
                             const std::function<void(void*)>& callback) {
  SyncPoint::GetInstance()->SetCallBack("FlushJob::Start", callback);
  SyncPoint::GetInstance()->EnableProcessing();
  return SeededMetamorphicRunner::RunHere(seed, root);
}

SeededResult RunAborting(uint64_t seed, const std::string& root) {
  return RunWithCallback(seed, root, [](void*) { std::abort(); });
}

SeededResult RunDeadlocking(uint64_t seed, const std::string& root) {
  static std::mutex mutex;
  return RunWithCallback(seed, root, [](void*) {
    mutex.lock();
    mutex.lock();
  });
}

// The thread keeps the baton, and takes no step.
SeededResult RunSpinning(uint64_t seed, const std::string& root) {
  return RunWithCallback(seed, root, [](void*) {
    static volatile bool goes_on = true;
    while (goes_on) {
    }
  });
}

// A directory beside which scripts lie.
std::string Root() { return test::TmpDir() + "/seeded_metamorphic"; }

// Returns the command that starts this program with files of the same paths,
// on which a run depends.
std::string Command() {
  const char* const directory = std::getenv("TEST_TMPDIR");
  return (directory == nullptr ? std::string()
                               : std::string("TEST_TMPDIR=") + directory + " ")
      .append(program_invocation_name);
}

// Returns options of a hunt with this runner.
MetamorphicHuntOptions HuntOptions(SeededMetamorphicRunner* runner) {
  MetamorphicHuntOptions options;
  options.root = Root();
  options.schedules.run = [runner](const Steps& steps, const Lists& lists,
                                   uint64_t schedule_seed) {
    return runner->Run(steps, lists, schedule_seed);
  };
  options.schedules.command = Command();
  return options;
}

// Returns options of a hunt for short histories that `run` only pretends to
// run.
template <typename Run>
MetamorphicHuntOptions FakeHuntOptions(const Run& run) {
  MetamorphicHuntOptions options;
  options.root = Root();
  options.num_steps = 30;
  options.schedules.run = run;
  options.schedules.command = "program";
  return options;
}

void Print(const MetamorphicHuntResult& result) {
  std::printf("%zu histories, %zu runs, %zu steps, %zu findings\n",
              result.num_histories, result.num_runs, result.num_steps,
              result.findings.size());
  std::fflush(stdout);
}

// Runs the script with its own options, and with each of its variants and its
// overrides, with these schedules. Returns what went wrong.
std::vector<std::string> Replay(const HistoryScript& script,
                                const MetamorphicSchedules& schedules) {
  SeededMetamorphicRunner runner(kHistory);
  uint64_t schedule_seed = schedules.first_seed;
  MetamorphicCheck check([&](const Steps& steps, const Lists& lists) {
    return runner.Run(steps, lists, schedule_seed);
  });
  const Steps steps = MetamorphicSteps(script);
  std::vector<std::string> complaints;
  const std::vector<HistoryVariant> variants =
      ChooseHistoryVariants(script, Root(), &complaints);
  Env::Default()->DeleteDir(Root()).PermitUncheckedError();
  // Returns true if nothing went wrong.
  const auto judge = [&](const std::string& name,
                         const std::optional<MetamorphicFinding>& finding) {
    const std::string& text = runner.text();
    std::printf("schedule seed %" PRIu64 ", %s: %s\n", schedule_seed,
                name.c_str(),
                finding.has_value() ? "wrong"
                                    : text.substr(0, text.find('\n')).c_str());
    std::fflush(stdout);
    if (finding.has_value()) {
      complaints.push_back("schedule seed " + std::to_string(schedule_seed) +
                           ", " + name + ": " + finding->what);
    }
    return !finding.has_value();
  };
  for (size_t i = 0; i < schedules.per_set; ++i) {
    if (judge("own options", check.RunOwn(steps))) {
      for (const HistoryVariant& variant : variants) {
        judge(variant.name, check.RunSet(steps, variant));
      }
    }
    schedule_seed += schedules.seed_step;
  }
  return complaints;
}

Status ReadScript(const std::string& path, HistoryScript* script) {
  std::string text;
  const Status s = ReadFileToString(Env::Default(), path, &text);
  return s.ok() ? HistoryScript::Parse(path, text, script) : s;
}

// Options with which the DB has jobs of all kinds in the background.
const HistoryOptionList& BusyOptions() {
  static const HistoryOptionList kOptions = {
      {"blobs", "20"},
      {"enable_blob_address_map", "true"},
      {"blob_gc_space_amp_limit", "1.01"},
      {"blob_file_size", "512"},
      {"enable_delta_separation", "true"},
      {"delta_bucket_size", "4096"},
      {"disable_auto_compactions", "false"},
      {"level0_file_num_compaction_trigger", "2"},
      {"target_file_size_base", "1024"},
      {"max_bytes_for_level_base", "4096"},
      {"max_background_jobs", "4"}};
  return kOptions;
}

// Returns a history of many flushes, so that jobs overlap with steps.
Steps BusySteps() {
  Steps steps = {{"open"}};
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i % 5);
    steps.push_back({"put", "a" + n, "@100:A" + std::to_string(i)});
    steps.push_back({"merge", "b" + n, "m" + std::to_string(i)});
    steps.push_back({"flush"});
    steps.push_back({"get", "a" + n});
  }
  steps.push_back({"crash"});
  steps.push_back({"scan"});
  return steps;
}

// Returns a random history of a DB without transactions, which allow fewer
// options.
Steps RandomSteps() {
  for (uint64_t seed = 1;; ++seed) {
    Steps steps = MetamorphicGenerator(seed).Steps(40);
    if (steps[0][1] == "db=plain") {
      return steps;
    }
  }
}

std::vector<std::string> Texts(const MetamorphicOutcome& outcome) {
  std::vector<std::string> texts;
  for (const HistoryInterpreter::Output& output : outcome.outputs) {
    texts.push_back(output.text);
  }
  return texts;
}

}  // namespace

// Runs.

// The same two seeds have the same steps of threads, the same bytes in all
// files, and the same outputs; other seeds of the schedule have the same
// outputs alone.
TEST(SeededMetamorphicTest, SeedsDetermineTraceAndFiles) {
  SeededMetamorphicRunner runner(kHistory);
  for (const bool is_random : {false, true}) {
    const Steps steps = is_random ? RandomSteps() : BusySteps();
    std::set<std::vector<std::string>> outputs;
    std::set<std::string> texts;
    // Seeds of both policies.
    for (const uint64_t seed : {2, 3}) {
      SCOPED_TRACE(seed);
      const MetamorphicOutcome outcome =
          runner.Run(steps, {BusyOptions()}, seed);
      ASSERT_EQ(outcome.end, MetamorphicOutcome::End::kFinished)
          << outcome.last_words;
      ASSERT_EQ(outcome.mistake, "");
      ASSERT_TRUE(outcome.disagreements.empty()) << outcome.disagreements[0];
      ASSERT_EQ(outcome.schedule_seed, seed);
      const std::string text = runner.text();
      ASSERT_TRUE(text.starts_with("trace ")) << text;
      // The names of files are the same on all runs; see SeededRoot().
      ASSERT_NE(text.find("/seeded_run/db/MANIFEST-"), std::string::npos)
          << text;
      const MetamorphicOutcome again = runner.Run(steps, {BusyOptions()}, seed);
      ASSERT_EQ(runner.text(), text);
      ASSERT_EQ(Texts(again), Texts(outcome));
      texts.insert(text);
      outputs.insert(Texts(outcome));
    }
    ASSERT_EQ(texts.size(), 2);
    // What a random history loses in a crash may depend on the schedule.
    ASSERT_TRUE(is_random || outputs.size() == 1);
  }
  RemoveSeededFiles();
}

TEST(SeededMetamorphicTest, OutputsAndEndsAreTold) {
  const Steps steps = {{"open"}, {"put", "a", "1"}, {"flush"}, {"get", "a"}};
  SeededMetamorphicRunner runner(kHistory);
  const MetamorphicOutcome finished = runner.Run(steps, {}, 1);
  ASSERT_EQ(finished.end, MetamorphicOutcome::End::kFinished)
      << finished.last_words;
  ASSERT_EQ(Texts(finished), (std::vector<std::string>{"", "", "", "1\n"}));
  ASSERT_EQ(runner.Run({{"open"}, {"put", "a"}}, {}, 1).mistake,
            "step 1: usage: put KEY VALUE [sync]");
  // A list that replaces nothing is no mistake.
  ASSERT_EQ(Texts(runner.Run(steps, {{}}, 1)), Texts(finished));

  const MetamorphicOutcome died =
      SeededMetamorphicRunner(kAborts).Run(steps, {}, 1);
  ASSERT_EQ(died.end, MetamorphicOutcome::End::kDied);
  ASSERT_EQ(died.outputs.size(), 2);
  ASSERT_NE(died.last_words.find("signal 6"), std::string::npos)
      << died.last_words;

  const MetamorphicOutcome deadlocked =
      SeededMetamorphicRunner(kDeadlocks).Run(steps, {}, 1);
  ASSERT_EQ(deadlocked.end, MetamorphicOutcome::End::kHung);
  ASSERT_EQ(deadlocked.outputs.size(), 2);
  ASSERT_EQ(deadlocked.last_words.find("SeededThreads: deadlock"), 0)
      << deadlocked.last_words;

  const MetamorphicOutcome spun =
      SeededMetamorphicRunner(kSpins).Run(steps, {}, 1, /*timeout_seconds=*/1);
  ASSERT_EQ(spun.end, MetamorphicOutcome::End::kHung);
  RemoveSeededFiles();
}

TEST(SeededMetamorphicTest, SeedsChooseThePolicyAndTheLength) {
  std::set<uint64_t> lengths;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const SeededSchedule::Options options =
        SeededMetamorphicRunner::ThreadOptions(seed).schedule;
    ASSERT_EQ(options.seed, seed);
    ASSERT_EQ(options.policy, seed % 2 == 0
                                  ? SeededSchedule::Policy::kUniform
                                  : SeededSchedule::Policy::kPriorities);
    lengths.insert(options.expected_steps);
  }
  ASSERT_EQ(lengths.size(), 8);
}

// Findings and their scripts.

// A history has a wrong answer in one in three schedules, and only with sets of
// options that have jobs in the background. The finding names the seeds, and
// has arguments that repeat it.
TEST(SeededHuntTest, FindingNamesItsSeeds) {
  size_t num_runs = 0;
  const auto run = [&](const Steps& steps, const Lists& lists,
                       uint64_t schedule_seed) {
    ++num_runs;
    MetamorphicOutcome outcome;
    outcome.outputs.resize(steps.size());
    for (const HistoryOptionList& list : lists) {
      if (HistoryOptions::Find(list, "disable_auto_compactions") != nullptr &&
          schedule_seed % 3 == 0) {
        outcome.outputs[0].text = "wrong\n";
      }
    }
    return outcome;
  };
  MetamorphicHuntOptions options = FakeHuntOptions(run);
  options.seed = 7;
  options.num_histories = 1;
  options.schedules.first_seed = 4;
  const MetamorphicHuntResult result = RunMetamorphicHunt(options);
  ASSERT_EQ(result.findings.size(), 1);
  const std::string& finding = result.findings[0];
  const std::string path = Root() + "-7-6.txt";
  for (const std::string& part :
       {std::string("seed 7, schedule seed 6, "), std::string("wrong answer"),
        "1 steps in " + path,
        std::string("program --history_seed=7 --schedule_seed=6 --histories=1 "
                    "--schedules=1 --sets=8 --set=0 --steps=30\n"),
        "program --replay=" + path + " --schedule_seed=6\n"}) {
    ASSERT_NE(finding.find(part), std::string::npos) << part << "\n" << finding;
  }
  HistoryScript script;
  ASSERT_OK(ReadScript(path, &script));
  ASSERT_EQ(MetamorphicSteps(script).size(), 1);

  // The arguments lead to the same run.
  num_runs = 0;
  options.schedules.first_seed = 6;
  options.schedules.per_set = 1;
  options.only_set = 0;
  options.shrink_seconds = 0;
  ASSERT_EQ(RunMetamorphicHunt(options).findings.size(), 1);
  // With the own options and with the set, and for the expected output.
  ASSERT_EQ(num_runs, 3);
  // Other schedules, or another policy, have no finding.
  options.schedules.first_seed = 1;
  options.schedules.per_set = 2;
  ASSERT_EQ(RunMetamorphicHunt(options).findings.size(), 0);
  options.schedules.seed_step = 2;
  ASSERT_EQ(RunMetamorphicHunt(options).findings.size(), 1);
  ASSERT_OK(Env::Default()->DeleteFile(path));
  ASSERT_OK(Env::Default()->DeleteFile(Root() + "-7-3.txt"));
}

// A finding of a run with the own options has arguments without a set.
TEST(SeededHuntTest, FindingOfOwnOptionsNamesItsSeeds) {
  const auto run = [](const Steps& steps, const Lists& lists,
                      uint64_t schedule_seed) {
    MetamorphicOutcome outcome;
    outcome.outputs.resize(steps.size());
    if (lists.empty() && schedule_seed == 9) {
      outcome.disagreements.push_back("no");
    }
    return outcome;
  };
  MetamorphicHuntOptions options = FakeHuntOptions(run);
  options.num_histories = 3;
  options.num_sets = 0;
  options.schedules.first_seed = 8;
  const MetamorphicHuntResult result = RunMetamorphicHunt(options);
  ASSERT_EQ(result.findings.size(), 1);
  ASSERT_NE(result.findings[0].find(
                "program --history_seed=2 --schedule_seed=9 --histories=1 "
                "--schedules=1 --sets=0 --steps=30\n"),
            std::string::npos)
      << result.findings[0];
  ASSERT_OK(Env::Default()->DeleteFile(Root() + "-2-9.txt"));
}

// A script whose overrides lie about the merge operator goes wrong with each
// schedule; without them it does not.
TEST(SeededReplayTest, ScriptIsReplayed) {
  const Steps steps = {{"open"},  {"put", "a", "x"}, {"merge", "a", "y"},
                       {"flush"}, {"get", "a"},      {"scan"}};
  MetamorphicSchedules schedules;
  schedules.per_set = 1;
  HistoryScript script;
  ASSERT_OK(HistoryScript::Parse(
      "right", MetamorphicScript({"head"}, steps, {"", {BusyOptions()}}, {}),
      &script));
  ASSERT_EQ(MetamorphicSteps(script), steps);
  const std::vector<std::string> none = Replay(script, schedules);
  ASSERT_TRUE(none.empty()) << none[0];

  ASSERT_OK(HistoryScript::Parse(
      "wrong",
      MetamorphicScript({}, steps, {"", {{{"merge_operator", "max"}}}}, {}),
      &script));
  const std::vector<std::string> complaints = Replay(script, schedules);
  ASSERT_EQ(complaints.size(), 1);
  ASSERT_EQ(complaints[0].find("schedule seed 1, overrides: step 4: "), 0)
      << complaints[0];
  RemoveSeededFiles();
}

// The hunt.

// Pairs of seeds, with a schedule of each policy.
TEST(SeededHuntTest, AnswersDoNotDependOnSchedules) {
  SeededMetamorphicRunner runner(kHistory);
  MetamorphicHuntOptions options = HuntOptions(&runner);
  options.seconds = 1e9;
  options.num_histories = 4;
  options.num_steps = 40;
  options.num_sets = 1;
  options.schedules.per_set = 2;
  const MetamorphicHuntResult result = RunMetamorphicHunt(options);
  Print(result);
  for (const std::string& finding : result.findings) {
    ADD_FAILURE() << finding;
  }
  RemoveSeededFiles();
}

namespace {

// Sets what the flags choose.
// per_set: the number of schedules without a flag.
void SetSchedules(const TestFlags& flags, size_t per_set,
                  MetamorphicSchedules* schedules) {
  schedules->first_seed = flags.Integer("schedule_seed", 1);
  schedules->per_set = flags.Integer("schedules", per_set);
  if (flags.Has("pct")) {
    // Odd seeds; see SeededMetamorphicRunner::ThreadOptions().
    schedules->first_seed |= 1;
    schedules->seed_step = 2;
  }
}

int RunReplay(const TestFlags& flags) {
  HistoryScript script;
  const Status s = ReadScript(flags.Text("replay", ""), &script);
  if (!s.ok()) {
    std::fprintf(stderr, "%s\n", s.ToString().c_str());
    return 2;
  }
  MetamorphicSchedules schedules;
  SetSchedules(flags, /*per_set=*/1, &schedules);
  const std::vector<std::string> complaints = Replay(script, schedules);
  for (const std::string& complaint : complaints) {
    std::printf("%s\n", complaint.c_str());
  }
  return complaints.empty() ? 0 : 1;
}

int RunProgram(const TestFlags& flags) {
  SeededMetamorphicRunner runner(kHistory);
  MetamorphicHuntOptions options = HuntOptions(&runner);
  SetSchedules(flags, options.schedules.per_set, &options.schedules);
  options.seed = flags.Integer("history_seed", 1);
  options.seconds = flags.Number("seconds", 1e9);
  options.num_histories = flags.Integer("histories", 0);
  options.num_steps = flags.Integer("steps", 0);
  options.num_sets = flags.Integer("sets", options.num_sets);
  if (flags.Has("set")) {
    options.only_set = flags.Integer("set", 0);
  }
  options.shrink_seconds =
      flags.Number("shrink_seconds", options.shrink_seconds);
  const MetamorphicHuntResult result = RunMetamorphicHunt(options);
  Print(result);
  RemoveSeededFiles();
  return result.findings.empty() ? 0 : 1;
}

int Main(int argc, char** argv) {
  if (!StartSeededTest(argc, argv,
                       {{kHistory, SeededMetamorphicRunner::RunHere},
                        {kAborts, RunAborting},
                        {kDeadlocks, RunDeadlocking},
                        {kSpins, RunSpinning}},
                       SeededMetamorphicRunner::ThreadOptions)) {
    return 1;
  }
  const TestFlags flags(argc, argv);
  if (flags.Has("replay")) {
    return RunReplay(flags);
  }
  if (flags.Has("seconds") || flags.Has("histories")) {
    return RunProgram(flags);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) { return ROCKSDB_NAMESPACE::Main(argc, argv); }
