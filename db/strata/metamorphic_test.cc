//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// One random history, with all options the same answers: see
// MetamorphicGenerator and MetamorphicCheck. As a test this runs histories
// with fixed seeds, or for $STRATA_METAMORPHIC_SECONDS from a fresh seed, which
// it prints. With --seconds it is a program that runs for the given time:
//
//   metamorphic_test --seconds=3600 [--seed=1] [--histories=N] [--steps=N]
//     [--sets=N] [--shrink_seconds=N] [--db=DIR]
//   metamorphic_test --replay=FILE     runs a history script
//   metamorphic_test --print --seed=1  prints a history and its options
//
// The exit code is 1 if an answer was wrong or a process ended or hung.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/strata/exit_child_test_util.h"
#include "test_util/strata/history_check_test_util.h"
#include "test_util/strata/metamorphic_check_test_util.h"
#include "test_util/strata/metamorphic_generator_test_util.h"
#include "test_util/strata/metamorphic_hunt_test_util.h"
#include "test_util/strata/metamorphic_option_sets_test_util.h"
#include "test_util/strata/metamorphic_run_test_util.h"
#include "test_util/strata/metamorphic_script_test_util.h"
#include "test_util/strata/metamorphic_shrinker_test_util.h"
#include "test_util/strata/metamorphic_state_test_util.h"
#include "test_util/strata/test_flags_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Steps = std::vector<HistoryWords>;

std::string Root() { return test::PerThreadDBPath("metamorphic_test"); }

constexpr int kTimeoutSeconds = 120;

MetamorphicOutcome RunSteps(const Steps& steps,
                            const std::vector<HistoryOptionList>& lists) {
  return MetamorphicRun::Run(steps, lists, Root(), kTimeoutSeconds);
}

void Print(const MetamorphicHuntResult& result) {
  printf("%zu histories, %zu runs, %zu steps, %zu findings\n",
         result.num_histories, result.num_runs, result.num_steps,
         result.findings.size());
  fflush(stdout);
}

}  // namespace

// The flags.

TEST(TestFlagsTest, ValuesAreFound) {
  std::string words[] = {"program", "--a=1.5", "--b",       "--c=x=y",
                         "d=4",     "--e=2",   "--e=12345", "--f="};
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  const TestFlags flags(static_cast<int>(argv.size()), argv.data());
  ASSERT_EQ(flags.Number("a", 0), 1.5);
  ASSERT_TRUE(flags.Has("b"));
  ASSERT_EQ(flags.Text("c", ""), "x=y");
  ASSERT_FALSE(flags.Has("d"));
  ASSERT_EQ(flags.Integer("d", 7), 7);
  ASSERT_EQ(flags.Integer("e", 7), 12345);
  ASSERT_EQ(flags.Text("f", "otherwise"), "");
}

// The generator.

TEST(MetamorphicGeneratorTest, SeedDecidesTheHistory) {
  const Steps steps = MetamorphicGenerator(7).Steps(0);
  ASSERT_EQ(MetamorphicGenerator(7).Steps(0), steps);
  ASSERT_NE(MetamorphicGenerator(8).Steps(0), steps);
  ASSERT_EQ(MetamorphicGenerator(7).Steps(50).size(), 50);
}

// Every step of a history is valid, and all kinds of steps but those for
// scripts occur.
TEST(MetamorphicGeneratorTest, HistoriesAreValidAndHaveAllSteps) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Steps steps = MetamorphicGenerator(seed).Steps(200);
    ASSERT_EQ(MetamorphicState::Valid(steps), steps) << "seed " << seed;
    for (HistoryWords words : steps) {
      std::string cf;
      HistoryArguments::TakeFamily(&words, &cf);
      seen.insert(words[0]);
      if (words[0] == "txn") {
        seen.insert("txn " + words[2]);
      }
      std::string paths;
      if (HistoryArguments::TakeNamed(&words, "paths", &paths)) {
        seen.insert(words[0] + " with paths");
        seen.insert("paths=" + paths);
      }
    }
  }
  // Those that a history has no use for: faults, and what shows files.
  const std::set<std::string> kWithout = {
      "close",  "destroy",   "fail",     "device",      "unfail",
      "resume", "files",     "blobs",    "deltas",      "ls",
      "verify", "pathstats", "property", "compactfiles"};
  for (const auto& step : HistoryInterpreter::Steps()) {
    ASSERT_EQ(seen.count(step.first) != 0 || step.first == "verify",
              kWithout.count(step.first) == 0 || step.first == "verify")
        << step.first;
  }
  for (const char* action :
       {"begin", "put", "merge", "del", "entity", "get", "getforupdate",
        "getentity", "scan", "savepoint", "rollbacktosavepoint", "prepare",
        "commit", "rollback"}) {
    ASSERT_EQ(seen.count(std::string("txn ") + action), 1) << action;
  }
  // Copies in several directories. The DB gets its paths from the options.
  for (const char* what : {"checkpoint with paths", "backup with paths",
                           "paths=2", "paths=p1,db", "paths=p1,p2,p3"}) {
    ASSERT_EQ(seen.count(what), 1) << what;
  }
  ASSERT_EQ(seen.count("open with paths"), 0);
}

// A prepared transaction survives a crash if it was synced.
TEST(MetamorphicStateTest, DoubtfulTransactionIsNotUsed) {
  for (const bool is_synced : {false, true}) {
    Steps steps = {{"open", "db=locking"},
                   {"txn", "T1", "begin"},
                   {"txn", "T1", "prepare"},
                   {"crash"},
                   {"txn", "T2", "begin"}};
    if (is_synced) {
      steps.insert(steps.end() - 2, {"syncwal"});
    }
    Steps with_use = steps;
    with_use.push_back({"txn", "T1", "rollback"});
    with_use.push_back({"txn", "T1", "begin"});
    ASSERT_EQ(MetamorphicState::Valid(with_use), is_synced ? with_use : steps);
  }
}

TEST(MetamorphicStateTest, StepsThatHaveLostWhatTheyNeedAreLeftOut) {
  const Steps steps = {{"open"},
                       {"release", "S"},
                       {"snapshot", "S"},
                       {"get", "a", "@S"},
                       {"get", "a", "@T"},
                       {"singledel", "s1"},
                       {"put", "s1", "x"},
                       {"put", "s1", "y"},
                       {"merge", "s1", "y"},
                       {"delrange", "s", "t"},
                       {"singledel", "s1"},
                       {"put", "s1", "z"},
                       {"crash"},
                       {"singledel", "s1"},
                       {"get", "a", "@S"},
                       {"next", "I"},
                       {"iter", "I", "+tailing"},
                       {"prev", "I"},
                       {"next", "I"},
                       {"txn", "T", "begin"},
                       {"open"}};
  const Steps valid = {
      {"open"},           {"snapshot", "S"},         {"get", "a", "@S"},
      {"put", "s1", "x"}, {"delrange", "s", "t"},    {"put", "s1", "z"},
      {"crash"},          {"iter", "I", "+tailing"}, {"next", "I"}};
  ASSERT_EQ(MetamorphicState::Valid(steps), valid);
  ASSERT_EQ(MetamorphicState::NumComparable(valid), 6);
  ASSERT_EQ(MetamorphicState::NumComparable({{"open"}, {"syncwal"}, {"crash"}}),
            3);
}

TEST(MetamorphicOptionSetsTest, SeedDecidesTheSets) {
  const auto names = [](uint64_t seed) {
    std::string all;
    for (const HistoryVariant& set :
         MetamorphicOptionSets::Choose(seed, {{"open"}}, 20)) {
      all.append(set.name).append(" ");
      for (const HistoryOptionList& list : set.lists) {
        for (const auto& option : list) {
          all.append(option.first).append("=").append(option.second);
        }
      }
    }
    return all;
  };
  ASSERT_EQ(names(3), names(3));
  ASSERT_NE(names(3), names(4));
}

// Each set opens a DB of each kind.
TEST(MetamorphicOptionSetsTest, SetsAreAllowed) {
  for (const char* kind : {"plain", "optimistic", "locking", "write-prepared",
                           "write-unprepared"}) {
    const Steps steps = {{"open", std::string("db=") + kind},
                         {"put", "a", "@100"},
                         {"flush"},
                         {"reopen"},
                         {"merge", "a", "b"},
                         {"reopen"},
                         {"get", "a"}};
    for (const HistoryVariant& set :
         MetamorphicOptionSets::Choose(5, steps, 12)) {
      const MetamorphicOutcome outcome = RunSteps(steps, set.lists);
      ASSERT_EQ(outcome.last_words, "");
      ASSERT_EQ(outcome.outputs.size(), steps.size());
      ASSERT_EQ(outcome.outputs.back().text, "@100,b\n")
          << kind << " " << MetamorphicScript({}, steps, set, outcome.outputs);
    }
  }
}

// Runs and their ends.

TEST(MetamorphicRunTest, OutputsAndEndsAreTold) {
  const Steps steps = {{"open"}, {"put", "a", "1"}, {"flush"}, {"get", "a"}};
  const MetamorphicOutcome finished = RunSteps(steps, {});
  ASSERT_EQ(finished.end, MetamorphicOutcome::End::kFinished);
  ASSERT_EQ(finished.outputs.size(), 4);
  ASSERT_EQ(finished.outputs[3].text, "1\n");
  ASSERT_TRUE(finished.disagreements.empty());
  ASSERT_EQ(finished.mistake, "");

  ASSERT_EQ(RunSteps({{"open"}, {"put", "a"}}, {}).mistake,
            "step 1: usage: put KEY VALUE [sync]");

  // The process inherits the callbacks.
  SyncPoint::GetInstance()->SetCallBack("FlushJob::Start",
                                        [](void*) { std::abort(); });
  SyncPoint::GetInstance()->EnableProcessing();
  const MetamorphicOutcome died = RunSteps(steps, {});
  SyncPoint::GetInstance()->ClearAllCallBacks();
  ASSERT_EQ(died.end, MetamorphicOutcome::End::kDied);
  ASSERT_EQ(died.outputs.size(), 2);
  ASSERT_NE(died.last_words.find("signal 6"), std::string::npos)
      << died.last_words;

  SyncPoint::GetInstance()->SetCallBack("FlushJob::Start", [](void*) {
    Env::Default()->SleepForMicroseconds(60 * 1000 * 1000);
  });
  const MetamorphicOutcome hung =
      MetamorphicRun::Run(steps, {}, Root(), /*timeout_seconds=*/1);
  SyncPoint::GetInstance()->ClearAllCallBacks();
  SyncPoint::GetInstance()->DisableProcessing();
  ASSERT_EQ(hung.end, MetamorphicOutcome::End::kHung);
}

// In a process of its own, as the thread would make later tests fail.
TEST(MetamorphicRunTest, ProcessWithThreadsIsRefused) {
  ASSERT_EXIT(
      {
        Env::Default()->IncBackgroundThreadsIfNeeded(1, Env::Priority::LOW);
        Env::Default()->Schedule([](void*) {}, nullptr, Env::Priority::LOW);
        const MetamorphicOutcome outcome = RunSteps({{"open"}}, {});
        fprintf(stderr, "%s\n", outcome.mistake.c_str());
        ExitChild(outcome.outputs.empty() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "more than one thread");
}

// Shrinking.

namespace {

// A DB that answers a read wrongly if a merge, a flush and the read follow one
// another in this order, with the option "bad". Its open fails without the
// option "needed", unless there are no options.
MetamorphicOutcome RunFake(const Steps& steps,
                           const std::vector<HistoryOptionList>& lists) {
  bool is_bad = false;
  bool is_open = lists.empty();
  for (const HistoryOptionList& list : lists) {
    is_bad |= HistoryOptions::Find(list, "bad") != nullptr;
    is_open |= HistoryOptions::Find(list, "needed") != nullptr;
  }
  MetamorphicOutcome outcome;
  if (!is_open) {
    outcome.outputs.emplace_back();
    outcome.outputs.back().text = "error: Invalid argument: no option needed\n";
    return outcome;
  }
  size_t progress = 0;
  static const char* const kOrder[] = {"merge", "flush", "get"};
  for (const HistoryWords& words : steps) {
    outcome.outputs.emplace_back();
    if (progress < 3 && words[0] == kOrder[progress]) {
      ++progress;
    }
    if (is_bad && progress == 3) {
      outcome.outputs.back().text = "wrong";
    }
  }
  return outcome;
}

}  // namespace

TEST(MetamorphicShrinkerTest, FewestStepsAndOptionsAreLeft) {
  MetamorphicCheck check(RunFake);
  Steps steps = MetamorphicGenerator(11).Steps(150);
  steps.insert(steps.begin() + 20, {"merge", "k", "@5000:A1"});
  steps.insert(steps.begin() + 90, {"flush"});
  steps.insert(steps.begin() + 140, {"get", "k"});
  const HistoryVariant set = {
      "set",
      {{{"a", "1"}}, {{"b", "2"}, {"bad", "3"}, {"c", "4"}, {"needed", "5"}}}};
  ASSERT_FALSE(check.RunOwn(steps).has_value());
  const std::optional<MetamorphicFinding> finding = check.RunSet(steps, set);
  ASSERT_TRUE(finding.has_value());
  ASSERT_EQ(finding->kind, MetamorphicFinding::Kind::kWrong);

  MetamorphicShrinker shrinker(
      &check, [] { return true; }, /*num_tries=*/1);
  bool is_repeatable = false;
  const MetamorphicShrinker::Case small =
      shrinker.Shrink({steps, *finding}, &is_repeatable);
  ASSERT_TRUE(is_repeatable);
  ASSERT_EQ(small.steps.size(), 4);
  ASSERT_EQ(small.steps[0][0], "open");
  ASSERT_EQ(small.steps[1][0], "merge");
  ASSERT_EQ(small.steps[2], HistoryWords{"flush"});
  ASSERT_EQ(small.steps[3][0], "get");
  ASSERT_EQ(small.finding.set.lists.size(), 1);
  ASSERT_EQ(small.finding.set.lists[0],
            (HistoryOptionList{{"bad", "3"}, {"needed", "5"}}));

  // Without time the case stays as it is.
  MetamorphicShrinker hasty(
      &check, [] { return false; }, /*num_tries=*/1);
  ASSERT_EQ(hasty.Shrink({steps, *finding}, &is_repeatable).steps, steps);
  ASSERT_FALSE(is_repeatable);
}

// After a transaction that could not be checked the answers may differ.
TEST(MetamorphicCheckTest, UndecidedOutputEndsTheComparison) {
  using Kind = HistoryOutputKind;
  const Steps steps = {{"open"}, {"txn", "T", "commit"}, {"get", "a"}};
  const HistoryVariant set = {"set", {{{"a", "1"}}}};
  for (const auto& [own, other, is_found] :
       {std::make_tuple(Kind::kSame, Kind::kSame, true),
        std::make_tuple(Kind::kStructural, Kind::kStructural, true),
        std::make_tuple(Kind::kUndecided, Kind::kSame, false),
        std::make_tuple(Kind::kSame, Kind::kUndecided, false)}) {
    MetamorphicCheck check(
        [&, own = own, other = other](
            const Steps&, const std::vector<HistoryOptionList>& lists) {
          MetamorphicOutcome outcome;
          outcome.outputs.resize(3);
          outcome.outputs[1].kind = lists.empty() ? own : other;
          outcome.outputs[1].text = lists.empty() ? "" : "error: busy\n";
          outcome.outputs[2].text = lists.empty() ? "1\n" : "2\n";
          return outcome;
        });
    ASSERT_FALSE(check.RunOwn(steps).has_value());
    ASSERT_EQ(check.RunSet(steps, set).has_value(), is_found);
  }
}

// RocksDB's compaction drops a deletion that hides nothing, and with it the
// conflict of a transaction whose snapshot is older. The answers of a history
// that depend on it are not compared, and others are.
TEST(MetamorphicRunTest, ConflictWithADeletionIsUndecided) {
  const auto kind_of = [](const Steps& before, const std::string& action) {
    // A memtable that is kept after its flush has the deletion, too.
    Steps steps = {
        {"open", "db=locking", "max_write_buffer_size_to_maintain=1"},
        {"put", "kept", "1"},
        {"txn", "T", "begin", "snapshot"}};
    steps.insert(steps.end(), before.begin(), before.end());
    steps.push_back({"txn", "T", action, "k"});
    if (action == "put") {
      steps.back().emplace_back("1");
    }
    const MetamorphicOutcome outcome = RunSteps(steps, {});
    EXPECT_TRUE(outcome.disagreements.empty());
    EXPECT_EQ(outcome.mistake, "");
    EXPECT_EQ(outcome.outputs.size(), steps.size());
    return std::make_pair(outcome.outputs.back().kind,
                          outcome.outputs.back().text.substr(0, 20));
  };
  const std::string kBusy = "error: Resource busy";
  const Steps kDelete = {{"del", "k"}, {"flush"}};
  const Steps kDropped = {{"del", "k"},
                          {"flush"},
                          {"compact", "bottommost=force"},
                          {"put", "kept", "2"},
                          {"flush"}};
  for (const char* action : {"put", "getforupdate"}) {
    ASSERT_EQ(kind_of(kDelete, action),
              std::make_pair(HistoryOutputKind::kUndecided, kBusy));
    const auto dropped = kind_of(kDropped, action);
    ASSERT_EQ(dropped.first, HistoryOutputKind::kUndecided);
    ASSERT_NE(dropped.second, kBusy);
    ASSERT_EQ(kind_of({{"put", "k", "1"}}, action),
              std::make_pair(HistoryOutputKind::kSame, kBusy));
    ASSERT_EQ(kind_of({{"del", "other"}}, action).first,
              HistoryOutputKind::kSame);
  }
  ASSERT_EQ(kind_of(kDelete, "get").first, HistoryOutputKind::kSame);
}

// A DB with another merge operator than the history's is found to be wrong, and
// the script that is made of it fails, too.
TEST(MetamorphicShrinkerTest, LyingDbIsFound) {
  MetamorphicCheck check(RunSteps);
  const Steps steps = {
      {"open"},  {"put", "b", "1"}, {"put", "a", "x"}, {"merge", "a", "y"},
      {"flush"}, {"scan"},          {"get", "a"},      {"get", "b"}};
  const HistoryVariant set = {
      "lie", {{{"write_buffer_size", "100000"}, {"merge_operator", "max"}}}};
  ASSERT_FALSE(check.RunOwn(steps).has_value());
  const std::optional<MetamorphicFinding> finding = check.RunSet(steps, set);
  ASSERT_TRUE(finding.has_value());
  MetamorphicShrinker shrinker(
      &check, [] { return true; }, /*num_tries=*/1);
  bool is_repeatable = false;
  const MetamorphicShrinker::Case small =
      shrinker.Shrink({steps, *finding}, &is_repeatable);
  // The history ends with a check of all contents.
  ASSERT_EQ(small.steps,
            (Steps{{"open"}, {"put", "a", "x"}, {"merge", "a", "y"}}));
  ASSERT_EQ(small.finding.set.lists[0],
            (HistoryOptionList{{"merge_operator", "max"}}));

  ASSERT_FALSE(check.RunOwn(small.steps).has_value());
  HistoryScript script;
  ASSERT_OK(HistoryScript::Parse(
      "t",
      MetamorphicScript({"head"}, small.steps, small.finding.set,
                        check.own_outputs()),
      &script));
  // In a process of its own: see MetamorphicRun::Run().
  ASSERT_EXIT(
      {
        std::string rewritten;
        for (const std::string& complaint :
             CheckHistoryScript(script, Root(), &rewritten)) {
          fprintf(stderr, "%s\n", complaint.c_str());
        }
        ExitChild(rewritten.empty() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "under .overrides.");
}

// The hunt.

// Histories of fixed seeds, or, for $STRATA_METAMORPHIC_SECONDS, from
// $STRATA_METAMORPHIC_SEED or a fresh seed on.
TEST(MetamorphicTest, AnswersDoNotDependOnOptions) {
  MetamorphicHuntOptions options;
  options.root = Root();
  options.seed = 5;
  options.num_histories = 11;
  options.seconds = 1e9;
  if (const char* seconds = std::getenv("STRATA_METAMORPHIC_SECONDS")) {
    const char* const seed = std::getenv("STRATA_METAMORPHIC_SEED");
    options.seed = seed != nullptr ? std::strtoull(seed, nullptr, 10)
                                   : std::random_device()() % 1000000000;
    options.num_histories = 0;
    options.seconds = std::atof(seconds);
  }
  printf("seed %" PRIu64 "\n", options.seed);
  fflush(stdout);
  const MetamorphicHuntResult result = RunMetamorphicHunt(options);
  Print(result);
  for (const std::string& finding : result.findings) {
    ADD_FAILURE() << finding;
  }
  ASSERT_GT(result.num_histories, 0);
}

namespace {

int Replay(const std::string& path) {
  std::string text;
  Status s = ReadFileToString(Env::Default(), path, &text);
  HistoryScript script;
  if (s.ok()) {
    s = HistoryScript::Parse(path, text, &script);
  }
  if (!s.ok()) {
    fprintf(stderr, "%s\n", s.ToString().c_str());
    return 2;
  }
  std::string rewritten;
  const std::vector<std::string> complaints =
      CheckHistoryScript(script, Root(), &rewritten);
  for (const std::string& complaint : complaints) {
    printf("%s\n", complaint.c_str());
  }
  return complaints.empty() ? 0 : 1;
}

void PrintHistory(uint64_t seed, const MetamorphicHuntOptions& options) {
  const Steps steps = MetamorphicGenerator(seed).Steps(options.num_steps);
  printf("%s", MetamorphicScript({}, steps, HistoryVariant(), {}).c_str());
  for (const HistoryVariant& set :
       MetamorphicOptionSets::Choose(seed, steps, options.num_sets)) {
    printf("\n%s", MetamorphicScript({set.name}, {}, set, {}).c_str());
  }
}

int RunProgram(const TestFlags& flags) {
  MetamorphicHuntOptions options;
  options.root = flags.Text("db", Root());
  options.seed = flags.Integer("seed", 1);
  options.seconds = flags.Number("seconds", 1e9);
  options.num_histories = flags.Integer("histories", 0);
  options.num_steps = flags.Integer("steps", 0);
  options.num_sets = flags.Integer("sets", options.num_sets);
  options.shrink_seconds =
      flags.Number("shrink_seconds", options.shrink_seconds);
  if (flags.Has("print")) {
    PrintHistory(options.seed, options);
    return 0;
  }
  const MetamorphicHuntResult result = RunMetamorphicHunt(options);
  Print(result);
  return result.findings.empty() ? 0 : 1;
}

}  // namespace

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  const ROCKSDB_NAMESPACE::TestFlags flags(argc, argv);
  if (flags.Has("replay")) {
    return ROCKSDB_NAMESPACE::Replay(flags.Text("replay", ""));
  }
  if (flags.Has("seconds") || flags.Has("histories") || flags.Has("print")) {
    return ROCKSDB_NAMESPACE::RunProgram(flags);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
