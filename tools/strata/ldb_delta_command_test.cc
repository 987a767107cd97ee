//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_delta_command.h"

#include <memory>
#include <string>
#include <vector>

#include "db/delta/db_delta_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/file_checksum.h"
#include "test_util/strata/ldb_call_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::HandMadeDeltas;

namespace {

// The order of bytes, by a name that ldb does not know.
class UnknownComparator : public Comparator {
 public:
  const char* Name() const override { return "test.UnknownComparator"; }
  int Compare(const Slice& a, const Slice& b) const override {
    return a.compare(b);
  }
  void FindShortestSeparator(std::string* /*start*/,
                             const Slice& /*limit*/) const override {}
  void FindShortSuccessor(std::string* /*key*/) const override {}
  bool CanKeysWithDifferentByteContentsBeEqual() const override {
    return false;
  }
};

}  // namespace

class LdbDeltaCommandTest : public testing::Test {
 protected:
  using Kind = DeltaFileDescription::Kind;
  using Tier = DeltaFileDescription::Tier;

  LdbDeltaCommandTest()
      : dbname_(test::PerThreadDBPath("ldb_delta_command_test")),
        env_(Env::Default()) {
    EXPECT_OK(DestroyDir(env_, dbname_));
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.merge_operator = MergeOperators::CreateStringAppendOperator();
    options_.enable_delta_separation = true;
    options_.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  }
  ~LdbDeltaCommandTest() override {
    Close();
    EXPECT_OK(DestroyDir(env_, dbname_));
  }

  void Open() {
    const std::vector<ColumnFamilyDescriptor> families = {
        {kDefaultColumnFamilyName, options_}, {"two", options_}};
    ASSERT_OK(DB::Open(options_, dbname_, families, &handles_, &db_));
  }

  void Close() {
    for (ColumnFamilyHandle* handle : handles_) {
      EXPECT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    db_.reset();
  }

  HandMadeDeltas Deltas(int family) {
    return HandMadeDeltas(db_.get(), handles_[family]);
  }

  // Returns the exit code, and stores what the command prints in output_.
  int Run(const std::vector<std::string>& args) {
    return RunLdb(args, Options(), &output_);
  }
  int RunOnDb(std::vector<std::string> args) {
    args.insert(args.begin(), {"--db=" + dbname_, "--try_load_options"});
    return Run(args);
  }

  bool Printed(const std::string& text) {
    return output_.find(text) != std::string::npos;
  }

  std::string NameOf(const DeltaFileDescription& file) const {
    return DeltaFileName(dbname_, file.number);
  }

  const std::string dbname_;
  Env* const env_;
  Options options_;
  std::vector<ColumnFamilyHandle*> handles_;
  std::unique_ptr<DB> db_;
  std::string output_;
};

TEST_F(LdbDeltaCommandTest, VerifyFindsDamagedAndMissingFiles) {
  Open();
  const DeltaFileDescription operands =
      Deltas(0).Flush({{"a", 10, "1"}, {"b", 11, "1"}});
  const DeltaFileDescription anchors =
      Deltas(0).FlushAnchors({{"a", 15}}, {{"b", "c", 16}});
  const DeltaFileDescription others = Deltas(1).Flush({{"a", 20, "1"}});
  Close();
  for (const std::string option : {"--threads=1", "--threads=3"}) {
    ASSERT_EQ(0, RunOnDb({"verify_delta_store", option})) << output_;
    EXPECT_TRUE(Printed("[default] 2 delta files")) << output_;
    EXPECT_TRUE(Printed("2 keys have 2 operands; 0 errors")) << output_;
    EXPECT_TRUE(Printed("[two] 1 delta files")) << output_;
    EXPECT_TRUE(Printed("OK")) << output_;
  }
  EXPECT_NE(0, RunOnDb({"verify_delta_store", "--threads=0"}));
  EXPECT_TRUE(Printed("--threads must be at least 1")) << output_;
  EXPECT_NE(0, RunOnDb({"verify_delta_store", "k1"}));
  EXPECT_TRUE(Printed("takes no parameters")) << output_;

  // The file is damaged, so its checksum is wrong.
  ASSERT_OK(test::CorruptFile(env_, NameOf(anchors), 5, 1));
  EXPECT_NE(0, RunOnDb({"verify_delta_store"}));
  EXPECT_TRUE(Printed("2 errors in delta files")) << output_;
  EXPECT_TRUE(
      Printed("[default] Delta file #" + std::to_string(anchors.number)))
      << output_;
  EXPECT_TRUE(Printed(NameOf(anchors))) << output_;

  // The file is missing, and the DB opens nevertheless.
  ASSERT_OK(env_->DeleteFile(NameOf(others)));
  EXPECT_NE(0, RunOnDb({"verify_delta_store"}));
  EXPECT_TRUE(Printed(NameOf(others))) << output_;
  EXPECT_TRUE(Printed("4 errors in delta files")) << output_;
  EXPECT_NE(0, RunOnDb({"checkconsistency"}));
}

TEST_F(LdbDeltaCommandTest, VerifySucceedsWithoutDeltas) {
  Open();
  Close();
  ASSERT_EQ(0, RunOnDb({"verify_delta_store"})) << output_;
  EXPECT_TRUE(Printed("OK")) << output_;
  EXPECT_FALSE(Printed("delta files")) << output_;
}

TEST_F(LdbDeltaCommandTest, DumpShowsFilesOfEveryKind) {
  Open();
  const DeltaFileDescription operands =
      Deltas(0).Flush({{"a", 12, "two"}, {"a", 10, "one"}, {"b", 11, "x"}});
  const DeltaFileDescription anchors =
      Deltas(1).FlushAnchors({{"a", 15}}, {{"b", "c", 16}});
  HandMadeDeltas deltas = Deltas(0);
  const DeltaFileDescription sorted = deltas.WriteOperands(
      deltas.BuilderOptions(Kind::kOperands, Tier::kSorted), {{"k", 10, "1"}},
      {{"f", 7}, {"m", 8}}, "t");
  // The file is in no Version, so the DB deletes it when it is closed.
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, NameOf(sorted), &contents));
  Close();
  const std::string copy = NameOf({.number = 9999});
  ASSERT_OK(WriteStringToFile(env_, contents, copy));

  ASSERT_EQ(0, Run({"dump_delta", "--path=" + NameOf(operands)})) << output_;
  EXPECT_TRUE(Printed("operands, flushed, epochs ")) << output_;
  EXPECT_TRUE(Printed("column family 0 \"default\"")) << output_;
  EXPECT_TRUE(Printed("3 entries, 0 ranges")) << output_;
  EXPECT_TRUE(Printed("'a' @ 12 : two\n'a' @ 10 : one\n'b' @ 11 : x\n"))
      << output_;
  ASSERT_EQ(0, Run({"dump_delta", "--path=" + NameOf(operands), "--hex",
                    "--max_keys=1"}))
      << output_;
  EXPECT_TRUE(Printed("'0x61' @ 12 : 0x74776F\n")) << output_;
  EXPECT_FALSE(Printed("0x62")) << output_;

  ASSERT_EQ(0, Run({"dump_delta", "--path=" + NameOf(anchors)})) << output_;
  EXPECT_TRUE(Printed("anchors, flushed, epochs ")) << output_;
  EXPECT_TRUE(Printed("column family 1 \"two\"")) << output_;
  EXPECT_TRUE(Printed("'a' @ 15\n['b', 'c') @ 16\n")) << output_;

  ASSERT_EQ(0, Run({"dump_delta", "--path=" + copy})) << output_;
  EXPECT_TRUE(Printed("operands, sorted, buckets 2")) << output_;
  EXPECT_TRUE(
      Printed("bucket from 'f' floor 7\n  bucket from 'm' floor 8\n"
              "  to 't'\n"))
      << output_;
  // The general command recognizes the type by the name.
  ASSERT_EQ(0, Run({"dump", "--path=" + NameOf(operands)})) << output_;
  EXPECT_TRUE(Printed("two")) << output_;

  EXPECT_NE(0, Run({"dump_delta", "x"}));
  EXPECT_NE(0, Run({"dump_delta", "--path=" + dbname_ + "/CURRENT"}));
  EXPECT_TRUE(Printed("Not the name of a delta file")) << output_;
  EXPECT_NE(0,
            Run({"dump_delta", "--path=" + NameOf(operands), "--max_keys=-1"}));
  EXPECT_NE(0, Run({"dump_delta", "--path=" + dbname_ + "/000777.delta"}));
  EXPECT_TRUE(Printed("000777.delta")) << output_;
  ASSERT_OK(test::CorruptFile(env_, NameOf(operands), 5, 1));
  EXPECT_NE(0, Run({"dump_delta", "--path=" + NameOf(operands)}));
  EXPECT_TRUE(Printed(NameOf(operands))) << output_;
}

TEST_F(LdbDeltaCommandTest, DumpUsesTheComparator) {
  options_.comparator = ReverseBytewiseComparator();
  Open();
  const DeltaFileDescription anchors = Deltas(0).FlushAnchors(
      {{"b", 11}, {"a", 10}}, {{"d", "b", 12}, {"c", "a", 13}});
  Close();
  ASSERT_EQ(0, Run({"dump_delta", "--path=" + NameOf(anchors)})) << output_;
  EXPECT_TRUE(Printed("'b' @ 11\n'a' @ 10\n['d', 'c') @ 12\n")) << output_;
}

// A program that has such a comparator passes it to LDBTool::Run().
TEST_F(LdbDeltaCommandTest, DumpNeedsAKnownComparator) {
  const UnknownComparator comparator;
  options_.comparator = &comparator;
  Open();
  const DeltaFileDescription operands = Deltas(0).Flush({{"a", 12, "two"}});
  Close();
  const std::string path = "--path=" + NameOf(operands);
  ASSERT_EQ(1, Run({"dump_delta", path}));
  EXPECT_TRUE(Printed("The comparator is not known: test.UnknownComparator"))
      << output_;
  // The options of the database do not have it either.
  ASSERT_EQ(1, Run({"--db=" + dbname_, "--try_load_options=false", "dump_delta",
                    path}));
  EXPECT_TRUE(Printed("The comparator is not known")) << output_;
  Options options;
  options.comparator = &comparator;
  ASSERT_EQ(0, RunLdb({"dump_delta", path}, options, &output_)) << output_;
  EXPECT_TRUE(Printed("'a' @ 12 : two\n")) << output_;

  // The one of the column family is taken with a database.
  const std::vector<ColumnFamilyDescriptor> families = {
      {kDefaultColumnFamilyName, options_}, {"two", ColumnFamilyOptions()}};
  const std::string db = "--db=" + dbname_;
  const auto run_with_families = [&](const std::string& family) {
    const std::string flag = "--column_family=" + family;
    const std::vector<const char*> argv = {
        "./ldb",      db.c_str(),   "--try_load_options=false",
        flag.c_str(), "dump_delta", path.c_str()};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int result =
        LDBCommandRunner::RunCommand(static_cast<int>(argv.size()), argv.data(),
                                     Options(), LDBOptions(), &families);
    output_ = testing::internal::GetCapturedStdout() +
              testing::internal::GetCapturedStderr();
    return result;
  };
  EXPECT_EQ(0, run_with_families(kDefaultColumnFamilyName)) << output_;
  EXPECT_TRUE(Printed("'a' @ 12 : two\n")) << output_;
  EXPECT_EQ(1, run_with_families("two")) << output_;
  EXPECT_TRUE(Printed("The comparator is not known")) << output_;
}

TEST_F(LdbDeltaCommandTest, ListsOfLiveFilesHaveDeltaFiles) {
  Open();
  const DeltaFileDescription file = Deltas(0).Flush({{"a", 12, "two"}});
  Close();
  for (const std::string option : {"", "--sort_by_filename"}) {
    std::vector<std::string> args = {"list_live_files_metadata"};
    if (!option.empty()) {
      args.push_back(option);
    }
    ASSERT_EQ(0, RunOnDb(args)) << output_;
    EXPECT_TRUE(Printed(NameOf(file))) << output_;
  }
  ASSERT_EQ(0, RunOnDb({"dump_live_files"})) << output_;
  EXPECT_TRUE(Printed("Delta File " + NameOf(file))) << output_;
  EXPECT_TRUE(Printed("two")) << output_;
}

TEST_F(LdbDeltaCommandTest, HelpNamesTheCommands) {
  ASSERT_EQ(0, Run({"--help"}));
  EXPECT_TRUE(
      Printed("  dump_delta --path=<path_to_a_delta_file> [--hex] [--key_hex] "
              "[--value_hex] [--max_keys=<N>]\n"))
      << output_;
  EXPECT_TRUE(Printed("  verify_delta_store [--threads=<int,e.g.:4>]\n"))
      << output_;
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
