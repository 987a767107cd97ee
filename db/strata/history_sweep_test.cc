//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Runs each history script again and again with a fault at another operation on
// files, see HistorySweep. As a test this runs some points of each script, at
// random. docs/fault-sweeps.md says which environment variables make it run
// others, or all.

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "test_util/strata/history_check_test_util.h"
#include "test_util/strata/history_flips_test_util.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/history_model_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/strata/history_sweep_judge_test_util.h"
#include "test_util/strata/history_sweep_kind_test_util.h"
#include "test_util/strata/history_sweep_report_test_util.h"
#include "test_util/strata/history_sweep_run_test_util.h"
#include "test_util/strata/history_sweep_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A point takes less than a second, and some more with sanitizers.
constexpr uint64_t kHangSeconds = 300;

std::string Root() { return test::PerThreadDBPath("history_sweep_test"); }

// What the environment says, and what the points of the process have shown.
struct Sweeps {
  HistorySweepOptions options;
  HistorySweepTotals totals;
  HistorySweepWatch watch{kHangSeconds};
};

Sweeps* sweeps = nullptr;

std::vector<std::string> ChosenScripts() {
  std::vector<std::string> names = HistoryScriptNames();
  HistorySweepOptions options;
  std::string error;
  if (HistorySweepOptions::FromEnvironment(&options, &error) &&
      !options.script.empty()) {
    std::erase_if(
        names, [&](const std::string& name) { return name != options.script; });
  }
  return names;
}

}  // namespace

class HistorySweepTest : public testing::TestWithParam<std::string> {};

TEST_P(HistorySweepTest, KeepsThePromise) {
  HistoryScript script;
  ASSERT_OK(ReadHistoryScript(GetParam(), &script));
  HistorySweep sweep(sweeps->options, Root(), &sweeps->totals, &sweeps->watch);
  sweep.Run(GetParam(), script);
  for (const std::string& finding : sweep.findings()) {
    ADD_FAILURE() << finding;
  }
}

INSTANTIATE_TEST_CASE_P(
    Scripts, HistorySweepTest, testing::ValuesIn(ChosenScripts()),
    [](const testing::TestParamInfo<std::string>& param_info) {
      std::string name = param_info.param;
      std::replace_if(
          name.begin(), name.end(), [](char ch) { return isalnum(ch) == 0; },
          '_');
      return name;
    });

TEST(HistorySweepScriptsTest, ScriptsAreFound) {
  ASSERT_FALSE(ChosenScripts().empty())
      << "no such script, or no testdata/history above the test binary or the "
         "current directory";
}

// The sweep itself.

namespace {

HistoryScript Parse(const std::string& text) {
  HistoryScript script;
  const Status s = HistoryScript::Parse("t", text, &script);
  EXPECT_TRUE(s.ok()) << s.ToString();
  return script;
}

constexpr char kSmall[] =
    "variants: map\n"
    "open blobs=20\n"
    "put a @30 sync\n"
    "flush\n"
    "merge a 1\n"
    "get a\n"
    "----\n"
    "@30,1\n";

}  // namespace

TEST(HistorySweepOfOneScriptTest, EachPointOfAKindRuns) {
  const HistoryScript script = Parse(kSmall);
  for (const char* kind : {"sync", "rename", "lost-dirsync"}) {
    SCOPED_TRACE(kind);
    HistorySweepPoint point;
    ASSERT_TRUE(HistorySweepPoint::Parse(std::string(kind) + ":1", &point));
    size_t num_points = 0;
    {
      HistorySweepRun run(script, /*variant=*/nullptr, Root());
      ASSERT_OK(run.Start());
      num_points = run.RunWithoutFault().NumPoints(*point.kind);
    }
    ASSERT_GT(num_points, 0);

    HistorySweepOptions options;
    options.all = true;
    options.kind = kind;
    options.variant = "own";
    HistorySweepTotals totals;
    HistorySweep sweep(options, Root(), &totals, &sweeps->watch);
    sweep.Run("t", script);
    ASSERT_EQ(totals.points(), num_points);
    for (const std::string& finding : sweep.findings()) {
      ADD_FAILURE() << finding;
    }
  }
}

// If the files of a path could not be moved, the DB opens with the path.
TEST(HistorySweepOfOneScriptTest, PathIsGivenBackIfItsFilesDidNotMove) {
  const HistoryScript script = Parse(
      "variants: none\n"
      "open paths=2 enable_delta_separation=true delta_sorted_path_id=1\n"
      "merge a 1\n"
      "flush\n"
      "compact\n"
      "setoptions delta_sorted_path_id=0\n"
      "compact\n"
      "reopen paths=1\n"
      "get a\n"
      "----\n"
      "1\n");
  HistorySweepOptions options;
  options.all = true;
  options.kind = "create";
  HistorySweepTotals totals;
  HistorySweep sweep(options, Root(), &totals, &sweeps->watch);
  sweep.Run("t", script);
  ASSERT_GT(totals.points(), 0);
  for (const std::string& finding : sweep.findings()) {
    ADD_FAILURE() << finding;
  }
}

// Without a step that has failed because of the fault, a DB that does not open
// with fewer paths is not opened with all of them.
TEST(HistorySweepOfOneScriptTest, PathIsNotGivenBackIfNoStepHasFailed) {
  const HistoryScript script = Parse(
      "variants: none\n"
      "open paths=2 enable_delta_separation=true delta_sorted_path_id=1\n"
      "merge a 1\n"
      "flush\n"
      "compact\n"
      "setoptions delta_sorted_path_id=5\n"
      "reopen paths=1\n"
      "----\n");
  HistorySweepTrace trace;
  {
    HistorySweepRun run(script, /*variant=*/nullptr, Root());
    ASSERT_OK(run.Start());
    trace = run.RunWithoutFault();
  }
  // The files are on the path, so it does not open.
  ASSERT_EQ(trace.is_open.size(), 6);
  ASSERT_FALSE(trace.is_open.back());
  ASSERT_EQ(trace.errors_before, (std::vector<size_t>{0, 0, 0, 0, 0, 1}));
  trace.is_open.back() = true;
  HistorySweepPoint point;
  ASSERT_TRUE(HistorySweepPoint::Parse("create:1000000", &point));
  for (const bool has_failed : {false, true}) {
    SCOPED_TRACE(has_failed);
    trace.errors_before.back() = has_failed ? 0 : 1;
    HistorySweepRun run(script, /*variant=*/nullptr, Root());
    ASSERT_OK(run.Start());
    const HistorySweepRun::End end = run.RunWithFault(trace, point);
    ASSERT_EQ(end == HistorySweepRun::End::kDone, has_failed);
    ASSERT_EQ(run.refusal().IsInvalidArgument(), !has_failed);
  }
}

// A script with a mistake is a finding, and no point of it runs.
TEST(HistorySweepOfOneScriptTest, ScriptMustRunWithoutAFault) {
  HistorySweepOptions options;
  options.variant = "own";
  HistorySweepTotals totals;
  HistorySweep sweep(options, Root(), &totals, &sweeps->watch);
  sweep.Run("t", Parse("open\nput a\n----\nok\n"));
  ASSERT_EQ(sweep.findings().size(), 1);
  ASSERT_NE(sweep.findings()[0].find("STRATA_SWEEP_SCRIPT=t"),
            std::string::npos);
  ASSERT_EQ(totals.points(), 0);
}

TEST(HistorySweepOfOneScriptTest, SampleHasAsManyPointsAsAsked) {
  const HistoryScript script = Parse(kSmall);
  for (const char* kind : {"", "flip"}) {
    SCOPED_TRACE(kind);
    HistorySweepOptions options;
    options.num_points = 10;
    options.kind = kind;
    HistorySweepTotals totals;
    HistorySweep sweep(options, Root(), &totals, &sweeps->watch);
    sweep.Run("t", script);
    for (const std::string& finding : sweep.findings()) {
      ADD_FAILURE() << finding;
    }
    ASSERT_EQ(totals.points(), 10);
  }
}

TEST(HistorySweepPointTest, NamesOfKindsAreUnique) {
  for (const HistorySweepKind& kind : HistorySweepKinds()) {
    HistorySweepPoint point;
    ASSERT_TRUE(
        HistorySweepPoint::Parse(std::string(kind.name) + ":12", &point));
    ASSERT_EQ(point.kind, &kind);
    ASSERT_EQ(point.n, 12);
    ASSERT_EQ(point.ToString(), std::string(kind.name) + ":12");
  }
  HistorySweepPoint point;
  ASSERT_FALSE(HistorySweepPoint::Parse("", &point));
  ASSERT_FALSE(HistorySweepPoint::Parse("write", &point));
  ASSERT_FALSE(HistorySweepPoint::Parse("write:", &point));
  ASSERT_FALSE(HistorySweepPoint::Parse("write:0", &point));
  ASSERT_FALSE(HistorySweepPoint::Parse("writ:1", &point));
}

// The judge: a DB that lies is found.

class HistorySweepJudgeTest : public testing::Test {
 protected:
  using Outcome = HistorySweepOutcome;

  HistorySweepJudgeTest() : interpreter_(Root(), /*overrides=*/{}) {
    EXPECT_OK(interpreter_.Start());
    Run({"open"});
    Run({"put", "a", "1"});
    Run({"flush"});
  }

  HistoryDb& Db() { return interpreter_.db(); }
  HistorySweepJudge Judge() { return {&Db(), interpreter_.mutable_findings()}; }
  const std::vector<std::string>& Findings() const {
    return interpreter_.findings().disagreements();
  }

  void Run(const HistoryWords& words) {
    HistoryInterpreter::Output output;
    interpreter_.Run(words, "step: ", &output);
  }

  // Writes to the DB, but not to the model.
  void WriteBehindTheModel(const std::string& key, const std::string& value) {
    ASSERT_OK(Db().db()->Put(WriteOptions(), key, value));
    ASSERT_OK(Db().db()->Flush(FlushOptions()));
  }
  // Writes to the model, but not to the DB.
  void WriteToTheModel(const std::string& key, const std::string& value) {
    HistoryModel::Write write;
    write.ops.emplace_back();
    write.ops.back().cf = kDefaultColumnFamilyName;
    write.ops.back().key = key;
    write.ops.back().columns[""] = value;
    Db().model().Append(std::move(write));
  }

  static const HistorySweepKind& Kind(const std::string& name) {
    HistorySweepPoint point;
    EXPECT_TRUE(HistorySweepPoint::Parse(name + ":1", &point));
    return *point.kind;
  }

  // Changes a byte in the middle of the only SST file.
  HistoryFlip FlipInTable() {
    Db().Close();
    std::vector<HistoryFlip> flips;
    EXPECT_OK(HistoryFlips::List(Db(), &flips));
    std::erase_if(
        flips, [](const HistoryFlip& flip) { return flip.type != kTableFile; });
    EXPECT_FALSE(flips.empty());
    const HistoryFlip flip = flips.empty() ? HistoryFlip() : flips[0];
    EXPECT_OK(HistoryFlips::Apply(flip));
    return flip;
  }

  HistoryInterpreter interpreter_;
};

TEST_F(HistorySweepJudgeTest, RightAnswersAreNoFindings) {
  ASSERT_EQ(Judge().JudgeAfterError(true), Outcome::kWentOn);
  ASSERT_EQ(Judge().JudgeAfterCrash(Kind("crash"), false, false),
            Outcome::kReopened);
  Db().Close();
  ASSERT_EQ(Judge().JudgeAfterError(true), Outcome::kReopened);
  ASSERT_TRUE(Findings().empty()) << Findings()[0];
}

TEST_F(HistorySweepJudgeTest, ErrorsFromWhichTheDbComesBackAreNoFindings) {
  Run({"put", "b", "2"});
  Run({"fail", "SYNC", "*.sst", "count=1"});
  Run({"flush"});
  ASSERT_NE(Judge().JudgeAfterError(true), Outcome::kRefused);
  ASSERT_TRUE(Findings().empty()) << Findings()[0];
}

TEST_F(HistorySweepJudgeTest, WrongValueIsFoundAfterAnError) {
  WriteBehindTheModel("a", "2");
  Judge().JudgeAfterError(true);
  ASSERT_FALSE(Findings().empty());
}

TEST_F(HistorySweepJudgeTest, UnknownKeyIsFoundAfterAnError) {
  WriteBehindTheModel("b", "2");
  Judge().JudgeAfterError(true);
  ASSERT_FALSE(Findings().empty());
}

TEST_F(HistorySweepJudgeTest, LostWriteIsFoundAfterAReopen) {
  Db().Close();
  WriteToTheModel("b", "2");
  Judge().JudgeAfterError(true);
  ASSERT_FALSE(Findings().empty());
}

TEST_F(HistorySweepJudgeTest, CrashMayLoseWhatIsNotDurable) {
  WriteToTheModel("b", "2");
  Judge().JudgeAfterCrash(Kind("crash"), false, false);
  ASSERT_TRUE(Findings().empty()) << Findings()[0];
}

TEST_F(HistorySweepJudgeTest, LostDurableWriteIsFoundAfterACrash) {
  WriteToTheModel("b", "2");
  Db().model().MarkDurable();
  Judge().JudgeAfterCrash(Kind("crash"), false, false);
  ASSERT_FALSE(Findings().empty());
}

TEST_F(HistorySweepJudgeTest, LaterWriteWithoutAnEarlierOneIsFound) {
  WriteToTheModel("b", "2");
  WriteToTheModel("c", "3");
  WriteBehindTheModel("c", "3");
  Judge().JudgeAfterCrash(Kind("crash-blocks"), false, false);
  ASSERT_FALSE(Findings().empty());
}

TEST_F(HistorySweepJudgeTest, LostSyncMayLoseWritesAndInventsNone) {
  WriteToTheModel("b", "2");
  Db().model().MarkDurable();
  Judge().JudgeAfterCrash(Kind("lost-sync"), false, false);
  ASSERT_TRUE(Findings().empty()) << Findings()[0];
  ASSERT_OK(Db().db()->Put(WriteOptions(), "a", "never"));
  ASSERT_OK(Db().db()->Flush(FlushOptions()));
  Judge().JudgeAfterCrash(Kind("lost-sync"), false, false);
  ASSERT_FALSE(Findings().empty());
}

TEST_F(HistorySweepJudgeTest, DamageMayGiveErrors) {
  Judge().JudgeAfterFlip(FlipInTable());
  ASSERT_TRUE(Findings().empty()) << Findings()[0];
}

TEST_F(HistorySweepJudgeTest, WrongValueIsFoundAfterADamage) {
  Db().Close();
  WriteToTheModel("a", "2");
  std::vector<HistoryFlip> flips;
  ASSERT_OK(HistoryFlips::List(Db(), &flips));
  // An OPTIONS file is not read.
  const auto flip = std::find_if(
      flips.begin(), flips.end(),
      [](const HistoryFlip& each) { return each.type == kOptionsFile; });
  ASSERT_NE(flip, flips.end());
  Judge().JudgeAfterFlip(*flip);
  ASSERT_FALSE(Findings().empty());
}

TEST_F(HistorySweepJudgeTest, RefusalMustBeAllowedAndNameAFile) {
  const Status named = Status::Corruption("bad block", "/x/db/000012.sst");
  ASSERT_EQ(Judge().JudgeRefusal(named, true), Outcome::kRefused);
  ASSERT_TRUE(Findings().empty()) << Findings()[0];
  Judge().JudgeRefusal(Status::Corruption("bad block"), true);
  ASSERT_EQ(Findings().size(), 1);
  Judge().JudgeRefusal(named, false);
  ASSERT_EQ(Findings().size(), 2);
}

TEST_F(HistorySweepJudgeTest, NamesOfFilesAreFoundInMessages) {
  ASSERT_TRUE(HistorySweepJudge::NamesFile("Corruption: /a/db/000012.sst: x"));
  ASSERT_TRUE(HistorySweepJudge::NamesFile("The file MANIFEST-000005."));
  ASSERT_TRUE(HistorySweepJudge::NamesFile("CURRENT: no newline"));
  ASSERT_TRUE(HistorySweepJudge::NamesFile("no blob file #7"));
  ASSERT_TRUE(HistorySweepJudge::NamesFile(
      "Path id 1 of column family default is missing: the directory /a/p1 has "
      "none of its files"));
  ASSERT_FALSE(HistorySweepJudge::NamesFile(""));
  ASSERT_FALSE(HistorySweepJudge::NamesFile("Corruption: block checksum # x"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  ROCKSDB_NAMESPACE::Sweeps sweeps;
  std::string error;
  if (!ROCKSDB_NAMESPACE::HistorySweepOptions::FromEnvironment(&sweeps.options,
                                                               &error)) {
    fprintf(stderr, "%s\n", error.c_str());
    return 2;
  }
  ROCKSDB_NAMESPACE::sweeps = &sweeps;
  const int code = RUN_ALL_TESTS();
  printf("%s; seed %u\n", sweeps.totals.ToString().c_str(),
         sweeps.options.seed);
  const bool is_one_point = !sweeps.options.point.empty();
  if (is_one_point && sweeps.totals.points() == 0) {
    fprintf(stderr, "The point was not run: the script has no such variant.\n");
    return 2;
  }
  return code;
}
