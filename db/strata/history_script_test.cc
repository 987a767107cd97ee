//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/history_check_test_util.h"
#include "test_util/strata/history_fault_fs_test_util.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/history_model_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string Root() { return test::PerThreadDBPath("history_script_test"); }

// Returns the complaints about a script, one per line.
std::string Check(const std::string& text, std::string* rewritten = nullptr) {
  HistoryScript script;
  const Status s = HistoryScript::Parse("t", text, &script);
  if (!s.ok()) {
    return s.getState();
  }
  std::string ignored;
  std::string all;
  for (const std::string& complaint : CheckHistoryScript(
           script, Root(), rewritten == nullptr ? &ignored : rewritten)) {
    all.append(complaint).append("\n");
  }
  return all;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

// The scripts.

class HistoryScriptTest : public testing::Test,
                          public testing::WithParamInterface<std::string> {};

TEST_P(HistoryScriptTest, OutputIsAsExpected) {
  const std::string path = FindHistoryScripts() + "/" + GetParam() + ".txt";
  HistoryScript script;
  ASSERT_OK(ReadHistoryScript(GetParam(), &script));
  std::string rewritten;
  const std::vector<std::string> complaints =
      CheckHistoryScript(script, Root(), &rewritten);
  for (const std::string& complaint : complaints) {
    ADD_FAILURE() << complaint;
  }
  // The test still fails: the new text must be reviewed, and the test run
  // again.
  if (!rewritten.empty() && std::getenv("STRATA_REWRITE") != nullptr) {
    ASSERT_OK(WriteStringToFile(Env::Default(), rewritten, path + ".new"));
    ASSERT_OK(Env::Default()->RenameFile(path + ".new", path));
  }
}

INSTANTIATE_TEST_CASE_P(
    Scripts, HistoryScriptTest, testing::ValuesIn(HistoryScriptNames()),
    [](const testing::TestParamInfo<std::string>& param_info) {
      std::string name = param_info.param;
      std::replace_if(
          name.begin(), name.end(), [](char ch) { return isalnum(ch) == 0; },
          '_');
      return name;
    });

TEST(HistoryScriptsTest, ScriptsAreFound) {
  ASSERT_FALSE(HistoryScriptNames().empty())
      << "no testdata/history above the test binary or the current directory; "
         "set STRATA_TESTDATA to the project's testdata directory";
}

// The language.

class HistoryLanguageTest : public testing::Test {
 protected:
  static std::string ParseError(const std::string& text) {
    HistoryScript script;
    const Status s = HistoryScript::Parse("f.txt", text, &script);
    return s.ok() ? "" : s.getState();
  }
};

TEST_F(HistoryLanguageTest, ParsesBlocksAndRewritesThem) {
  const std::string text =
      "# head\n"
      "variants: none\n"
      "open paths=2   # two\n"
      "put a 1\n"
      "----\n"
      "ok\n"
      "\n"
      "# second\n"
      "scan\n"
      "----\n"
      "----\n"
      "x\n"
      "\n"
      "y\n"
      "----\n"
      "----\n"
      "\n"
      "# tail\n";
  HistoryScript script;
  ASSERT_OK(HistoryScript::Parse("f.txt", text, &script));
  ASSERT_EQ(script.blocks().size(), 2);
  ASSERT_FALSE(script.all_variants());
  ASSERT_TRUE(script.variants().empty());
  const HistoryBlock& first = script.blocks()[0];
  ASSERT_EQ(first.commands.size(), 2);
  ASSERT_EQ(first.commands[0].words,
            (std::vector<std::string>{"open", "paths=2"}));
  ASSERT_EQ(first.commands[0].line, 3);
  ASSERT_EQ(first.commands[1].line, 4);
  ASSERT_EQ(first.expected, "ok\n");
  ASSERT_EQ(first.expected_line, 6);
  ASSERT_EQ(script.blocks()[1].expected, "x\n\ny\n");
  ASSERT_EQ(script.Rewrite({"ok\n", "x\n\ny\n"}), text);

  const std::string changed = script.Rewrite({"x\n\ny\n", "ok\n"});
  HistoryScript again;
  ASSERT_OK(HistoryScript::Parse("f.txt", changed, &again));
  ASSERT_EQ(again.blocks()[0].expected, "x\n\ny\n");
  ASSERT_EQ(again.blocks()[1].expected, "ok\n");
  ASSERT_EQ(again.Rewrite({"x\n\ny\n", "ok\n"}), changed);
}

TEST_F(HistoryLanguageTest, ParseErrorsNameTheLine) {
  ASSERT_EQ(ParseError(""), "f.txt:1: no commands");
  ASSERT_EQ(ParseError("# only this\n"), "f.txt:1: no commands");
  ASSERT_EQ(ParseError("open\n"), "f.txt:1: no \"----\" follows the commands");
  ASSERT_EQ(ParseError("open\n----\nok\n\nput a 1\nget a\n"),
            "f.txt:6: no \"----\" follows the commands");
  ASSERT_EQ(ParseError("----\nok\n"), "f.txt:1: \"----\" without a command");
  ASSERT_EQ(ParseError("open\n----\nok\n----\n"),
            "f.txt:4: \"----\" within an output");
  ASSERT_EQ(ParseError("open\n----\n----\na\n\n"),
            "f.txt:2: the second pair of \"----\" is missing");
  ASSERT_EQ(ParseError("open\n----\n----\na\n----\n----\nput\n"),
            "f.txt:7: an empty line must follow the output");
  ASSERT_EQ(ParseError("open\nvariants: none\n----\nok\n"),
            "f.txt:2: \"variants:\" stands behind a command");
  ASSERT_EQ(ParseError("variants:\nopen\n----\nok\n"),
            "f.txt:1: \"variants:\" needs names, \"all\" or \"none\"");
}

TEST_F(HistoryLanguageTest, WrongCommandsAreReported) {
  const std::string head = "variants: none\nopen\n----\nok\n\n";
  ASSERT_EQ(Check(head + "pat a 1\n----\nok\n"),
            "t:6: unknown command \"pat\"\n");
  ASSERT_EQ(Check(head + "put a\n----\nok\n"),
            "t:6: usage: put KEY VALUE [sync]\n");
  ASSERT_EQ(Check(head + "cf=x put a 1\n----\nok\n"),
            "t:6: no column family \"x\"\n");
  ASSERT_EQ(Check(head + "get a @s\n----\nok\n"), "t:6: no snapshot \"s\"\n");
  ASSERT_EQ(Check(head + "get a\nnext i\n----\nok\n"),
            "t:7: no such iterator\n");
  ASSERT_EQ(Check("variants: none\nopen layout=diagonal\n----\nok\n"),
            "t:2: no such value: \"layout=diagonal\"\n");
  ASSERT_EQ(Check("variants: some\nopen\n----\nok\n"),
            "t:1: no variant \"some\"\n");
  ASSERT_TRUE(Contains(Check("variants: none\nopen flying=1\n----\nok\n"),
                       "error: Invalid argument: "));
}

TEST_F(HistoryLanguageTest, CommandsOnAClosedDbFail) {
  ASSERT_EQ(Check("variants: none\nget a\n----\nerror: the DB is closed\n"),
            "");
}

// The runner.

class HistoryRunnerTest : public testing::Test {};

constexpr char kGood[] =
    "open paths=2\n"
    "put a 1\n"
    "put b @100\n"
    "snapshot s\n"
    "merge a 2\n"
    "flush\n"
    "get a\n"
    "get a @s\n"
    "get b\n"
    "----\n"
    "1,2\n"
    "1\n"
    "@100\n";

TEST_F(HistoryRunnerTest, RightScriptHasNoComplaints) {
  ASSERT_EQ(Check(kGood), "");
}

TEST_F(HistoryRunnerTest, WrongExpectationFailsAndIsRewritten) {
  std::string text = kGood;
  text.replace(text.find("----\n1,2\n"), 9, "----\n1,3\n");
  std::string rewritten;
  const std::string complaints = Check(text, &rewritten);
  ASSERT_TRUE(
      Contains(complaints, "t:11: expected:\n1,3\n1\n@100\nbut it is:\n1,2\n"));
  ASSERT_EQ(rewritten, kGood);
  ASSERT_EQ(Check(rewritten, &rewritten), "");
  ASSERT_EQ(rewritten, "");
}

// A difference between options in what readers see fails the script, although
// each run agrees with its model. A difference in the files does not.
TEST_F(HistoryRunnerTest, VariantsCompareWhatReadersSee) {
  const char* text =
      "variants: universal blobs\n"
      "open\n"
      "put a @100\n"
      "flush\n"
      "blobs\n"
      "----\n"
      "(no blob files)\n";
  ASSERT_EQ(Check(text), "");
  // This read fails with blob files only.
  ASSERT_TRUE(Contains(
      Check("variants: blobs\n"
            "open\n"
            "put a @100\n"
            "flush\n"
            "fail READ *.blob\n"
            "get a\n"
            "----\n"
            "@100\n"),
      "t:6: without variant:\n@100\nbut it is (under \"blobs\"):\nerror: IO "
      "error"));
}

TEST_F(HistoryRunnerTest, CrashKeepsWhatIsDurable) {
  ASSERT_EQ(Check("open paths=2\n"
                  "put a 1\n"
                  "flush\n"
                  "put b 2 sync\n"
                  "put c 3\n"
                  "crash\n"
                  "scan\n"
                  "----\n"
                  "a=1\n"
                  "b=2\n"),
            "");
  // A file whose sync failed is not durable: the flush fails and its data is
  // lost in the crash.
  ASSERT_TRUE(Contains(Check("variants: none\n"
                             "open\n"
                             "put a 1\n"
                             "fail SYNC *.sst\n"
                             "flush\n"
                             "crash\n"
                             "scan\n"
                             "----\n"
                             "x\n"),
                       "error: IO error: injected by the script: db/N.sst\n"
                       "(empty)\n"));
}

TEST_F(HistoryRunnerTest, IteratorsMoveAndKeepTheirView) {
  ASSERT_EQ(Check("open\n"
                  "put a 1\n"
                  "put b 2\n"
                  "put c 3\n"
                  "iter i\n"
                  "iter j a c\n"
                  "del b\n"
                  "flush\n"
                  "seek i b\n"
                  "next i 2\n"
                  "seekforprev i bb\n"
                  "prev i 2\n"
                  "last j\n"
                  "first j\n"
                  "close-iter i\n"
                  "scan\n"
                  "scan reverse\n"
                  "----\n"
                  "b=2\n"
                  "c=3\n"
                  ".\n"
                  "b=2\n"
                  "a=1\n"
                  ".\n"
                  "b=2\n"
                  "a=1\n"
                  "a=1\n"
                  "c=3\n"
                  "c=3\n"
                  "a=1\n"),
            "");
}

TEST_F(HistoryRunnerTest, WritesOfAllKindsAreRead) {
  ASSERT_EQ(Check("open\n"
                  "family create f\n"
                  "batch put a 1 ; merge a 2 ; cf=f put x 9\n"
                  "entity e _=0 p=1 q=@50\n"
                  "fill k 8 10 @30\n"
                  "ingest put m 1 ; put n 2\n"
                  "singledel m\n"
                  "delrange k09 k99\n"
                  "scan\n"
                  "cf=f scan\n"
                  "get e\n"
                  "getentity e\n"
                  "multiget a e zz\n"
                  "verify\n"
                  "----\n"
                  "a=1,2\n"
                  "e={_=0 p=1 q=@50}\n"
                  "k08=@30:k08\n"
                  "n=2\n"
                  "x=9\n"
                  "0\n"
                  "{_=0 p=1 q=@50}\n"
                  "a=1,2\n"
                  "e=0\n"
                  "zz=(not found)\n"),
            "");
}

TEST_F(HistoryRunnerTest, DeleteFilesInRangeBlursSnapshots) {
  ASSERT_EQ(Check("variants: none\n"
                  "open\n"
                  "put a 1\n"
                  "flush\n"
                  "compactlevel 0 2\n"
                  "put a 2\n"
                  "flush\n"
                  "compactlevel 0 1\n"
                  "snapshot s\n"
                  "deletefilesinrange a b\n"
                  "scan\n"
                  "verify\n"
                  "iter i @s\n"
                  "first i\n"
                  "iter new\n"
                  "first new\n"
                  "----\n"
                  "(empty)\n"
                  ".\n"),
            "");
}

// An iterator that is open has its own Version.
TEST_F(HistoryRunnerTest, DeleteFilesInRangeLeavesIteratorsAlone) {
  ASSERT_EQ(Check("variants: none\n"
                  "open\n"
                  "put a 1\n"
                  "flush\n"
                  "compactlevel 0 1\n"
                  "iter i\n"
                  "deletefilesinrange a b\n"
                  "first i\n"
                  "----\n"
                  "a=1\n"),
            "");
}

// Steps from a program.

TEST(HistoryInterpreterTest, ProgramRunsStepsAndSeesTheModel) {
  HistoryInterpreter interpreter(Root(), /*overrides=*/{});
  ASSERT_OK(interpreter.Start());
  const auto run = [&](const HistoryWords& words) {
    HistoryInterpreter::Output output;
    interpreter.Run(words, "p: ", &output);
    return output.text;
  };
  ASSERT_EQ(run({"open", "blobs=0"}), "");
  ASSERT_EQ(run({"put", "a", "1"}), "");
  ASSERT_EQ(run({"flush"}), "");
  ASSERT_EQ(run({"merge", "a", "2"}), "");
  ASSERT_EQ(run({"get", "a"}), "1,2\n");
  const HistoryModel::Contents expected = {{"a", {{"", "1,2"}}}};
  ASSERT_EQ(interpreter.db().model().Now(kDefaultColumnFamilyName), expected);
  interpreter.Finish("p: ");
  ASSERT_OK(interpreter.findings().mistake());
  ASSERT_TRUE(interpreter.findings().disagreements().empty());
  ASSERT_EQ(run({"pat", "a", "1"}), "");
  ASSERT_EQ(std::string(interpreter.findings().mistake().getState()),
            "p: unknown command \"pat\"");
}

TEST(HistoryInterpreterTest, TableDescribesEachStep) {
  ASSERT_FALSE(HistoryInterpreter::Steps().empty());
  for (const auto& [name, step] : HistoryInterpreter::Steps()) {
    ASSERT_EQ(name, step.name);
    ASSERT_NE(step.run, nullptr);
    // The usage is the name, and the arguments if there are any.
    ASSERT_EQ((std::string(step.usage) + " ").find(name + " "), 0);
  }
}

// The model.

TEST(HistoryModelTest, RecoversDurableWritesAndPrefixesOfTheOthers) {
  using Op = HistoryModel::Op;
  const auto put = [](const std::string& key, bool is_durable,
                      bool has_failed) {
    HistoryModel::Write write;
    write.ops.emplace_back();
    Op& op = write.ops.back();
    op.cf = "f";
    op.key = key;
    op.columns[""] = key;
    write.is_durable = is_durable;
    write.has_failed = has_failed;
    return write;
  };
  const auto contents = [](const std::string& keys) {
    HistoryModel::AllContents all;
    all["f"];
    for (const char key : keys) {
      all["f"][std::string(1, key)][""] = std::string(1, key);
    }
    return all;
  };
  const auto make = [&]() {
    HistoryModel model;
    model.CreateFamily("f");
    model.Append(put("a", false, false));
    model.MarkDurable();
    model.Append(put("b", false, false));
    model.Append(put("c", true, false));
    model.Append(put("d", false, true));
    return model;
  };
  struct {
    const char* found;
    bool after_close;
    bool after_crash;
  } cases[] = {{"abc", true, true},  {"abcd", true, true},
               {"ac", false, true},  {"acd", false, false},
               {"ab", false, false}, {"bc", false, false},
               {"", false, false},   {"abce", false, false}};
  for (const auto& test_case : cases) {
    SCOPED_TRACE(test_case.found);
    HistoryModel closed = make();
    ASSERT_EQ(closed.Recover(contents(test_case.found), false),
              test_case.after_close);
    HistoryModel crashed = make();
    ASSERT_EQ(crashed.Recover(contents(test_case.found), true),
              test_case.after_crash);
    if (test_case.after_crash) {
      // The recovered contents are the history now.
      ASSERT_EQ(crashed.Now("f"), contents(test_case.found).at("f"));
      ASSERT_FALSE(crashed.Recover(contents("a"), true));
    }
  }
}

TEST(HistoryFaultFSTest, PatternsMatchWholePaths) {
  ASSERT_TRUE(HistoryFaultFS::Matches("*.sst", "db/000001.sst"));
  ASSERT_TRUE(HistoryFaultFS::Matches("db/*", "db/000001.sst"));
  ASSERT_TRUE(HistoryFaultFS::Matches("p*/*1*", "p1/000012.sst"));
  ASSERT_TRUE(HistoryFaultFS::Matches("*", ""));
  ASSERT_TRUE(HistoryFaultFS::Matches("a*ab", "aaab"));
  ASSERT_FALSE(HistoryFaultFS::Matches("*.sst", "db/000001.sst2"));
  ASSERT_FALSE(HistoryFaultFS::Matches("db", "db/CURRENT"));
  ASSERT_FALSE(HistoryFaultFS::Matches("", "a"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
