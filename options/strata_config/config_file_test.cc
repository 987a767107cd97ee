//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_file.h"

#include <string>
#include <vector>

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Section = ConfigFile::Section;

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Parses a text that has an error, and checks that the error has these parts.
// Returns what it is.
std::string ExpectError(const std::string& text,
                        const std::vector<std::string>& parts) {
  ConfigFile file;
  EXPECT_OK(ConfigFile::Parse("before", "[DBOptions \"/before\"]", &file));
  const Status s = ConfigFile::Parse("/c.ini", text, &file);
  EXPECT_TRUE(s.IsInvalidArgument()) << text;
  for (const std::string& part : parts) {
    EXPECT_TRUE(Has(s.ToString(), part)) << s.ToString() << " lacks " << part;
  }
  // The file that was parsed before is as it was.
  EXPECT_EQ("before", file.name());
  EXPECT_EQ(1U, file.sections().size());
  return s.ToString();
}

}  // namespace

TEST(ConfigFileTest, EmptyFilesHaveNoSections) {
  for (const char* text : {"", "\n", "# nothing\n\n  \t# here", "\r\n"}) {
    ConfigFile file;
    ASSERT_OK(ConfigFile::Parse("/c.ini", text, &file));
    EXPECT_TRUE(file.sections().empty());
    EXPECT_EQ("/c.ini", file.name());
  }
}

TEST(ConfigFileTest, SectionsAndLinesAreInTheOrderOfTheText) {
  ConfigFile file;
  ASSERT_OK(ConfigFile::Parse("/c.ini",
                              "# comment\n"
                              "[DBOptions \"/data/*\"]  # comment\n"
                              "  max_background_jobs = 8   # comment\r\n"
                              "\n"
                              "db_log_dir=/x \\# y\n"
                              "[CFOptions\t\"/data/db\"  \"a \\\"b\\\"]\"]\n"
                              "compression_opts={level=1;strategy=2}\n"
                              "[CFOptions\"*\"\"*\"]",
                              &file));
  ASSERT_EQ(3U, file.sections().size());
  const Section& first = file.sections()[0];
  EXPECT_EQ(Section::kDB, first.kind);
  EXPECT_EQ(2U, first.number);
  EXPECT_EQ("/data/*", first.db.text());
  ASSERT_EQ(2U, first.lines.size());
  EXPECT_EQ("max_background_jobs", first.lines[0].name);
  EXPECT_EQ("8", first.lines[0].value);
  EXPECT_EQ(3U, first.lines[0].number);
  EXPECT_EQ("/x \\# y", first.lines[1].value);
  EXPECT_EQ(5U, first.lines[1].number);
  const Section& second = file.sections()[1];
  EXPECT_EQ(Section::kColumnFamily, second.kind);
  EXPECT_EQ(6U, second.number);
  EXPECT_EQ("/data/db", second.db.literal());
  EXPECT_EQ("a \"b\"]", second.family.literal());
  ASSERT_EQ(1U, second.lines.size());
  EXPECT_EQ("{level=1;strategy=2}", second.lines[0].value);
  EXPECT_TRUE(file.sections()[2].family.MatchesAll());
  EXPECT_TRUE(file.sections()[2].lines.empty());
  EXPECT_EQ("/c.ini:7", file.At(7));
}

// Sections with one pattern can follow each other; only one section cannot have
// two lines of one option.
TEST(ConfigFileTest, LaterSectionsMayRepeatOptions) {
  ConfigFile file;
  ASSERT_OK(ConfigFile::Parse("/c.ini",
                              "[DBOptions \"*\"]\nmax_open_files=1\n"
                              "[DBOptions \"*\"]\nmax_open_files=2\n",
                              &file));
  ExpectError(
      "[DBOptions \"*\"]\nmax_open_files=1\n# c\nmax_open_files = 1\n",
      {"/c.ini:4", "max_open_files stands in the section twice", "line 2"});
}

TEST(ConfigFileTest, ErrorsNameTheLine) {
  ExpectError("x=1\n", {"/c.ini:1", "x stands before the first section"});
  ExpectError("\n\nword\n", {"/c.ini:3", "\"word\" is neither"});
  ExpectError("[DBOptions \"*\"]\n=1\n", {"/c.ini:2", "is neither"});
  ExpectError(std::string("[DBOptions \"*\"]\na=\0\n", 20),
              {"/c.ini:2", "zero byte"});
  ExpectError("\n[DBOptions \"*\"\n", {"/c.ini:2", "ends with \"]\""});
  ExpectError("[\n", {"/c.ini:1", "ends with"});
  ExpectError("[]\n", {"/c.ini:1", "\"\" is no section"});
  ExpectError("[Version]\n", {"/c.ini:1", "\"Version\" is no section"});
  ExpectError("[TableOptions/BlockBasedTable \"default\"]\n",
              {"/c.ini:1", "is no section"});
  ExpectError("[DBOptions]\n", {"/c.ini:1", "has 0 patterns"});
  ExpectError("[DBOptions \"/a\" \"b\"]\n", {"/c.ini:1", "has 2 patterns"});
  ExpectError("[CFOptions \"default\"]\n", {"/c.ini:1", "has 1 patterns"});
  ExpectError("[CFOptions \"/a\" \"b\" \"c\"]\n", {"has 3 patterns"});
  ExpectError("[DBOptions /a]\n", {"/c.ini:1", "quotation marks"});
  ExpectError("[DBOptions \"/a\" x]\n", {"/c.ini:1", "quotation marks"});
  ExpectError("[DBOptions \"/a]\n", {"/c.ini:1", "quotation mark is missing"});
  ExpectError("[DBOptions \"/a\\\"]\n", {"quotation mark is missing"});
  // A comment begins in the pattern.
  ExpectError("[DBOptions \"/a#b\"]\n", {"/c.ini:1"});
  ExpectError("[DBOptions \"\"]\n", {"/c.ini:1", "a pattern is empty"});
  ExpectError("[CFOptions \"/a\" \"\"]\n", {"a pattern is empty"});
  ExpectError("[DBOptions \"/" + std::string(5000, 'a') + "\"]\n",
              {"/c.ini:1", "more than 4096 bytes"});
}

// Such a section would never match, which nothing would tell.
TEST(ConfigFileTest, RelativeNamesOfDatabasesAreRefused) {
  for (const char* name : {"data/db", "./db", "~/db", "default"}) {
    ExpectError(std::string("[DBOptions \"") + name + "\"]\n",
                {"/c.ini:1", name, "matches no database"});
  }
}

// The form that our own options have in OPTIONS files would be a comment.
TEST(ConfigFileTest, HiddenLinesOfOptionsFilesAreRefused) {
  ExpectError(
      "[CFOptions \"*\" \"*\"]\n"
      "  # strata: enable_merged_value_cache=true\n",
      {"/c.ini:2", "enable_merged_value_cache", "without \"# strata:\""});
  ConfigFile file;
  EXPECT_OK(ConfigFile::Parse("/c.ini",
                              "# strata: these are our options\n"
                              "# strata: a=b\n"
                              "## strata: enable_merged_value_cache=true\n",
                              &file));
}

TEST(ConfigFileTest, SomeOptionsCannotBeSet) {
  for (const char* option :
       {"wal_dir=/wal", "persist_stats_to_disk=true", "env=x",
        "best_efforts_recovery=true", "table_factory.block_size=1",
        "compaction_options_universal.size_ratio=1",
        "rate_limiter_bytes_per_sec=0", "rate_limiter_bytes_per_sec=x",
        "rate_limiter_bytes_per_sec=9223372036854775808",
        "rate_limiter_bytes_per_sec="}) {
    const std::string text = option;
    ExpectError("[DBOptions \"*\"]\n" + text + "\n",
                {"/c.ini:2", text.substr(0, text.find('='))});
  }
  ConfigFile file;
  EXPECT_OK(ConfigFile::Parse(
      "/c.ini", "[DBOptions \"*\"]\nrate_limiter_bytes_per_sec=1m", &file));
}

class ConfigFileLoadTest : public testing::Test {
 protected:
  ConfigFileLoadTest()
      : dir_(test::PerThreadDBPath("config_file_test")), env_(Env::Default()) {
    EXPECT_OK(DestroyDir(env_, dir_));
    EXPECT_OK(env_->CreateDirIfMissing(dir_));
  }
  ~ConfigFileLoadTest() override { EXPECT_OK(DestroyDir(env_, dir_)); }

  void ExpectLoadError(const std::string& name, const std::string& part) {
    ConfigFile file;
    const Status s = ConfigFile::Load(name, &file);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_TRUE(Has(s.ToString(), name)) << s.ToString();
    EXPECT_TRUE(Has(s.ToString(), part)) << s.ToString();
  }

  const std::string dir_;
  Env* const env_;
};

TEST_F(ConfigFileLoadTest, FileIsRead) {
  const std::string name = dir_ + "/c.ini";
  // Longer than what is read at once.
  std::string text = "[DBOptions \"/a\"]\n";
  for (int i = 0; i < 5000; ++i) {
    text += "# a comment of some length, " + std::to_string(i) + "\n";
  }
  text += "max_open_files = 100\n";
  ASSERT_OK(WriteStringToFile(env_, text, name));
  ConfigFile file;
  ASSERT_OK(ConfigFile::Load(name, &file));
  ASSERT_EQ(1U, file.sections().size());
  ASSERT_EQ(1U, file.sections()[0].lines.size());
  EXPECT_EQ(5002U, file.sections()[0].lines[0].number);
}

TEST_F(ConfigFileLoadTest, FilesThatCannotBeReadAreRefused) {
  ExpectLoadError(dir_ + "/none", "cannot be read");
  ExpectLoadError(dir_, "cannot be read");  // a directory
  const std::string name = dir_ + "/c.ini";
  ASSERT_OK(WriteStringToFile(
      env_, std::string(ConfigFile::kMaxBytes + 1, '\n'), name));
  ExpectLoadError(name, "more than");
  ASSERT_OK(WriteStringToFile(env_, "\nx\n", name));
  ExpectLoadError(name, ":2");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
