//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_options_file.h"

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kText =
    "[DBOptions]\n"
    "  create_if_missing=true\n"
    "  # strata: max_write_groups_per_leader=8\n";
// The name of the mark follows.
const char* const kOfSession =
    "[DBOptions]\n"
    "  create_if_missing=false\n"
    "  # strata: wal_mmap_buffer_size=65536\n"
    "  listeners=";
const char* const kKept =
    "[DBOptions]\n"
    "  # strata: wal_mmap_buffer_size=65536\n"
    "  create_if_missing=true\n";
const char* const kOfOther =
    "[DBOptions]\n"
    "  max_open_files=7\n"
    "  # strata: max_write_groups_per_leader=2\n";

}  // namespace

class LdbOptionsFileTest : public testing::Test {
 public:
  LdbOptionsFileTest()
      : dbname_(test::PerThreadDBPath("ldb_options_file_test")),
        env_(Env::Default()) {
    EXPECT_OK(DestroyDir(env_, dbname_));
    EXPECT_OK(env_->CreateDir(dbname_));
    Write("OPTIONS-000007", "[DBOptions]\n");
    Write("OPTIONS-000010", kText);
    EXPECT_OK(file_.Load(env_, dbname_));
  }
  ~LdbOptionsFileTest() override { EXPECT_OK(DestroyDir(env_, dbname_)); }

  void Write(const std::string& name, const std::string& text) {
    EXPECT_OK(WriteStringToFile(env_, text, dbname_ + "/" + name));
  }
  std::string OfSession() {
    return std::string(kOfSession) + file_.mark()->Name() + "\n";
  }

  // An open writes a file and deletes all but two.
  void Open(const std::string& name, const std::string& text,
            const std::string& deleted) {
    Write(name, text);
    EXPECT_OK(env_->DeleteFile(dbname_ + "/" + deleted));
  }

  std::string Read(const std::string& name) {
    std::string text;
    EXPECT_OK(ReadFileToString(env_, dbname_ + "/" + name, &text));
    return text;
  }

  size_t NumFiles() {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(dbname_, &names));
    return names.size();
  }

  const std::string dbname_;
  Env* const env_;
  LdbOptionsFile file_;
};

TEST_F(LdbOptionsFileTest, TextIsKeptOverSeveralOpens) {
  EXPECT_EQ(file_.name(), "OPTIONS-000010");
  EXPECT_EQ(file_.text(), kText);
  ASSERT_OK(file_.CheckNewest());
  Open("OPTIONS-000099", OfSession(), "OPTIONS-000007");
  EXPECT_TRUE(file_.CheckNewest().IsBusy());
  ASSERT_OK(file_.KeepAfterOpen());
  EXPECT_EQ(file_.name(), "OPTIONS-000099");
  EXPECT_EQ(Read("OPTIONS-000099"), kKept);
  ASSERT_OK(file_.CheckNewest());
  // Numbers decide which one is newer, not names.
  Open("OPTIONS-1000000", OfSession(), "OPTIONS-000010");
  ASSERT_OK(file_.KeepAfterOpen());
  EXPECT_EQ(Read("OPTIONS-1000000"), kKept);
  EXPECT_EQ(file_.text(), kText);
  ASSERT_OK(file_.Replace("new"));
  EXPECT_EQ(Read("OPTIONS-1000000"), "new");
  std::string name;
  std::string text;
  ASSERT_OK(LdbOptionsFile::ReadNewest(env_, dbname_, &name, &text));
  EXPECT_EQ(name, "OPTIONS-1000000");
  EXPECT_EQ(text, "new");
  EXPECT_EQ(NumFiles(), 2u);
}

TEST_F(LdbOptionsFileTest, AnotherProcessHasOpenedTheDatabase) {
  Open("OPTIONS-000020", kOfOther, "OPTIONS-000007");
  Open("OPTIONS-000030", OfSession(), "OPTIONS-000010");
  const Status s = file_.KeepAfterOpen();
  EXPECT_TRUE(s.IsBusy());
  EXPECT_NE(s.ToString().find(dbname_ + ": was opened by another process"),
            std::string::npos)
      << s.ToString();
  EXPECT_EQ(Read("OPTIONS-000020"), kOfOther);
  EXPECT_EQ(Read("OPTIONS-000030"), kOfOther);
}

// An open that changes options, such as TransactionDB::Open(), writes a file
// for each change.
TEST_F(LdbOptionsFileTest, SeveralFilesOfAnOpen) {
  Write("OPTIONS-000020", OfSession());
  Open("OPTIONS-000030", OfSession(), "OPTIONS-000007");
  ASSERT_OK(file_.KeepAfterOpen());
  EXPECT_EQ(file_.name(), "OPTIONS-000030");
  EXPECT_EQ(Read("OPTIONS-000030"), kKept);
  EXPECT_EQ(Read("OPTIONS-000010"), kText);
  ASSERT_OK(file_.CheckNewest());
}

// Nothing tells whether another process has opened the database: its file would
// be deleted, too.
TEST_F(LdbOptionsFileTest, OnlyFilesOfTheSession) {
  Open("OPTIONS-000020", OfSession(), "OPTIONS-000007");
  Open("OPTIONS-000030", OfSession(), "OPTIONS-000010");
  EXPECT_TRUE(file_.KeepAfterOpen().IsBusy());
  EXPECT_EQ(Read("OPTIONS-000030"), kKept);
}

// Another process has opened the database before, and the open has written two.
TEST_F(LdbOptionsFileTest, SeveralFilesAfterAnotherProcess) {
  Open("OPTIONS-000020", kOfOther, "OPTIONS-000007");
  Write("OPTIONS-000030", OfSession());
  Open("OPTIONS-000040", OfSession(), "OPTIONS-000010");
  EXPECT_TRUE(file_.KeepAfterOpen().IsBusy());
  EXPECT_EQ(Read("OPTIONS-000040"), kOfOther);
}

TEST_F(LdbOptionsFileTest, AnOpenWithoutFile) {
  ASSERT_OK(file_.KeepAfterOpen());
  EXPECT_EQ(Read("OPTIONS-000010"), kText);
  // What it has written is older by its number.
  Open("OPTIONS-000009", OfSession(), "OPTIONS-000007");
  ASSERT_OK(file_.KeepAfterOpen());
  EXPECT_EQ(file_.name(), "OPTIONS-000010");
  EXPECT_EQ(Read("OPTIONS-000010"), kText);
  // The newest one is another process's.
  Write("OPTIONS-000011", kOfOther);
  EXPECT_TRUE(file_.KeepAfterOpen().IsBusy());
  EXPECT_EQ(Read("OPTIONS-000011"), kOfOther);
}

TEST_F(LdbOptionsFileTest, NoFile) {
  EXPECT_OK(env_->DeleteFile(dbname_ + "/OPTIONS-000007"));
  EXPECT_OK(env_->DeleteFile(dbname_ + "/OPTIONS-000010"));
  EXPECT_TRUE(file_.CheckNewest().IsNotFound());
  EXPECT_NOK(file_.Replace("new"));
  LdbOptionsFile other;
  EXPECT_TRUE(other.Load(env_, dbname_).IsNotFound());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
