//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/options_file_copy.h"

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

const char* const kText =
    "# This is a RocksDB option file.\n"
    "\n"
    "[Version]\n"
    "  rocksdb_version=11.8.1\n"
    "\n"
    "[DBOptions]\n"
    "  wal_dir=/wal\n"
    "  max_open_files=-1\n"
    "  db_log_dir=/log\n"
    "\n"
    "[CFOptions \"default\"]\n"
    "  num_levels=7\n"
    "  # strata: level_sst_path_ids=0:1\n"
    "  # strata: level_blob_path_ids=1\n"
    "  # strata: path_prices=0.25:0.02\n"
    "  # strata: blob_hot_bytes=1000000\n"
    "  # strata: blob_hot_path_id=1\n"
    "  # strata: cf_paths=/fast,/slow:100\n"
    "  # strata: delta_sorted_path_id=1\n"
    "  # strata: enable_blob_address_map=true\n"
    "  \n"
    "[TableOptions/BlockBasedTable \"default\"]\n"
    "  block_size=4096\n"
    "  \n"
    "[CFOptions \"wal_dir=x\"]\n"
    "  num_levels=7\n";

TEST(OptionsFileCopyTest, ACopyInOneDirectoryNamesNoOther) {
  std::string expected = kText;
  const auto replace = [&](const std::string& from, const std::string& to) {
    expected.replace(expected.find(from), from.size(), to);
  };
  replace("wal_dir=/wal", "wal_dir=");
  replace("db_log_dir=/log", "db_log_dir=");
  replace("  # strata: level_sst_path_ids=0:1\n", "");
  replace("  # strata: level_blob_path_ids=1\n", "");
  replace("  # strata: path_prices=0.25:0.02\n", "");
  replace("  # strata: blob_hot_bytes=1000000\n", "");
  replace("  # strata: blob_hot_path_id=1\n", "");
  replace("  # strata: cf_paths=/fast,/slow:100\n", "");
  replace("  # strata: delta_sorted_path_id=1\n", "");
  EXPECT_TRUE(OptionsFileCopy::HasPaths(kText));
  EXPECT_EQ(OptionsFileCopy::IntoOneDirectory(kText, /*keeps_wal_dir=*/false),
            expected);
  EXPECT_FALSE(OptionsFileCopy::HasPaths(expected));
  EXPECT_EQ(
      OptionsFileCopy::IntoOneDirectory(expected, /*keeps_wal_dir=*/false),
      expected);
}

TEST(OptionsFileCopyTest, ABackupKeepsTheDirectoryOfTheWals) {
  const std::string copy =
      OptionsFileCopy::IntoOneDirectory(kText, /*keeps_wal_dir=*/true);
  EXPECT_NE(copy.find("  wal_dir=/wal\n"), std::string::npos) << copy;
  EXPECT_NE(copy.find("  db_log_dir=/log\n"), std::string::npos) << copy;
  EXPECT_FALSE(OptionsFileCopy::HasPaths(copy));
  EXPECT_EQ(copy.find("path_id"), std::string::npos) << copy;
}

TEST(OptionsFileCopyTest, OtherFormsOfALine) {
  // Without the mark, with blanks, and without a line break at the end.
  EXPECT_TRUE(OptionsFileCopy::HasPaths("[CFOptions \"a\"]\ncf_paths = /x"));
  EXPECT_EQ(OptionsFileCopy::IntoOneDirectory(
                "[CFOptions \"a\"]\r\n cf_paths = /x\r\n num_levels=7", false),
            "[CFOptions \"a\"]\r\n num_levels=7");
  // A comment is no option.
  EXPECT_FALSE(OptionsFileCopy::HasPaths("[CFOptions \"a\"]\n# cf_paths=/x\n"));
  EXPECT_FALSE(OptionsFileCopy::HasPaths(""));
  EXPECT_EQ(OptionsFileCopy::IntoOneDirectory("", false), "");
}

TEST(OptionsFileCopyTest, SectionsOfOtherFamiliesAreLeftOut) {
  const std::string text = kText;
  EXPECT_EQ(OptionsFileCopy::OnlyFamilies(text, {"default", "wal_dir=x"}),
            text);
  EXPECT_EQ(OptionsFileCopy::OnlyFamilies(text, {"default"}),
            text.substr(0, text.find("[CFOptions \"wal_dir=x\"]")));
  const size_t begin = text.find("[CFOptions \"default\"]");
  const size_t end = text.find("[CFOptions \"wal_dir=x\"]");
  EXPECT_EQ(OptionsFileCopy::OnlyFamilies(text, {"wal_dir=x"}),
            text.substr(0, begin) + text.substr(end));
}

TEST(OptionsFileCopyTest, ACopyHasTheLayoutsOfItsFamilies) {
  CopyLayout::ColumnFamily layout;
  layout.cf_paths = {{"/copy", 7}, {"/x,y", 0}};
  layout.level_sst_path_ids = {0, 1};
  layout.level_blob_path_ids = {1};
  layout.delta_sorted_path_id = 0;
  const auto layout_of =
      [&](const std::string& family) -> const CopyLayout::ColumnFamily* {
    return family == "default" ? &layout : nullptr;
  };
  std::set<std::string> families;
  std::string copy;
  ASSERT_OK(OptionsFileCopy::IntoLayout(kText, /*keeps_wal_dir=*/false,
                                        layout_of, &families, &copy));
  EXPECT_EQ(families, (std::set<std::string>{"default", "wal_dir=x"}));
  std::string expected =
      OptionsFileCopy::IntoOneDirectory(kText, /*keeps_wal_dir=*/false);
  const std::string header = "[CFOptions \"default\"]\n";
  expected.insert(expected.find(header) + header.size(),
                  "  # strata: level_sst_path_ids=0:1\n"
                  "  # strata: level_blob_path_ids=1\n"
                  "  # strata: delta_sorted_path_id=0\n"
                  "  # strata: cf_paths=/copy:7,/x%2Cy:0\n");
  EXPECT_EQ(copy, expected);
  std::set<std::string> directories;
  ASSERT_OK(OptionsFileCopy::AddPaths(copy, &directories));
  EXPECT_EQ(directories, (std::set<std::string>{"/copy", "/x,y"}));

  // The names of families are escaped.
  const std::string escaped =
      "[CFOptions \"a\\#b\"]\n  compaction_style=kCompactionStyleFIFO\n";
  const auto always = [&](const std::string&) { return &layout; };
  Status s =
      OptionsFileCopy::IntoLayout(escaped, false, always, &families, &copy);
  EXPECT_EQ(families, (std::set<std::string>{"a#b"}));
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_NE(s.ToString().find("a#b"), std::string::npos) << s.ToString();
  ASSERT_OK(
      OptionsFileCopy::IntoLayout(escaped, false, layout_of, &families, &copy));
  EXPECT_EQ(copy, escaped);

  // A header without line break.
  ASSERT_OK(OptionsFileCopy::IntoLayout("[CFOptions \"a\"]", false, always,
                                        &families, &copy));
  EXPECT_EQ(copy.rfind("[CFOptions \"a\"]\n  # strata: ", 0), 0U) << copy;

  EXPECT_NOK(OptionsFileCopy::AddPaths("[CFOptions \"a\"]\ncf_paths=/a:b\n",
                                       &directories));
}

// The paths of the database itself are replaced where there are some.
TEST(OptionsFileCopyTest, PathsThatMoved) {
  const std::string old_line = "  # strata: cf_paths=/fast,/slow:100\n";
  std::string expected = kText;
  expected.replace(expected.find(old_line), old_line.size(),
                   "  # strata: cf_paths=/fast,/new%2Cone:100\n");
  std::vector<DbPath> paths(2);
  paths[0].path = "/fast";
  paths[0].target_size = std::numeric_limits<uint64_t>::max();
  paths[1].path = "/new,one";
  paths[1].target_size = 100;
  std::set<std::string> families;
  // A family without paths gets none.
  EXPECT_EQ(OptionsFileCopy::ReplacePaths(
                kText, [&](const std::string&) { return &paths; }, &families),
            expected);
  EXPECT_EQ(families, std::set<std::string>{"default"});
  EXPECT_EQ(OptionsFileCopy::ReplacePaths(
                kText, [](const std::string&) { return nullptr; }, &families),
            kText);
  EXPECT_EQ(families, std::set<std::string>{"default"});
  // The form without a comment is read, too.
  EXPECT_EQ(OptionsFileCopy::ReplacePaths(
                "[CFOptions \"a\"]\n  cf_paths=/x",
                [&](const std::string&) { return &paths; }, &families),
            "[CFOptions \"a\"]\n  # strata: cf_paths=/fast,/new%2Cone:100\n");
  EXPECT_EQ(families, std::set<std::string>{"a"});
}

TEST(OptionsFileCopyTest, OwnOptionIsAdded) {
  const std::string text =
      "[DBOptions]\n"
      "[CFOptions \"a\"]\n"
      "  num_levels=7\n"
      "[TableOptions/BlockBasedTable \"a\"]\n"
      "[CFOptions \"b\"]";
  EXPECT_EQ(
      OptionsFileCopy::WithOwnOption(text, {"a"}, "level_blob_path_ids", "0"),
      "[DBOptions]\n"
      "[CFOptions \"a\"]\n"
      "  # strata: level_blob_path_ids=0\n"
      "  num_levels=7\n"
      "[TableOptions/BlockBasedTable \"a\"]\n"
      "[CFOptions \"b\"]");
  EXPECT_EQ(
      OptionsFileCopy::WithOwnOption(text, {"b"}, "level_blob_path_ids", "0"),
      text + "\n  # strata: level_blob_path_ids=0\n");
  EXPECT_EQ(
      OptionsFileCopy::WithOwnOption(text, {}, "level_blob_path_ids", "0"),
      text);
}

TEST(OptionsFileCopyTest, OwnOptionsOfAnotherText) {
  const std::string text =
      "[DBOptions]\n"
      "  create_if_missing=true\n"
      "  # strata: wal_mmap_buffer_size=65536\n"
      "[CFOptions \"a\"]\n"
      "  prefix_extractor=application.Prefix\n"
      "  # strata: enable_delta_separation=true\n"
      "[TableOptions/BlockBasedTable \"a\"]\n"
      "  block_size=4096\n"
      "[CFOptions \"b\"]\n"
      "  # strata: enable_delta_separation=true\n"
      "  num_levels=7";
  const std::string other =
      "[DBOptions]\n"
      "  create_if_missing=false\n"
      "  # strata: max_write_groups_per_leader=8\n"
      "[CFOptions \"a\"]\n"
      "  prefix_extractor=nullptr\n"
      "  # strata: level_blob_path_ids=0\n"
      "  # strata: cf_paths=/fast,/slow\n"
      "[CFOptions \"c\"]\n"
      "  # strata: cf_paths=/other";
  EXPECT_EQ(OptionsFileCopy::WithOwnOptionsOf(text, other),
            "[DBOptions]\n"
            "  # strata: max_write_groups_per_leader=8\n"
            "  create_if_missing=true\n"
            "[CFOptions \"a\"]\n"
            "  # strata: level_blob_path_ids=0\n"
            "  # strata: cf_paths=/fast,/slow\n"
            "  prefix_extractor=application.Prefix\n"
            "[TableOptions/BlockBasedTable \"a\"]\n"
            "  block_size=4096\n"
            "[CFOptions \"b\"]\n"
            "  num_levels=7");
  EXPECT_EQ(OptionsFileCopy::WithOwnOptionsOf("[CFOptions \"c\"]", other),
            "[CFOptions \"c\"]\n  # strata: cf_paths=/other\n");
  EXPECT_EQ(OptionsFileCopy::WithOwnOptionsOf(text, ""),
            OptionsFileCopy::WithoutOwnOptions(
                text, [](const std::string&) { return true; }));
}

TEST(OptionsFileCopyTest, OwnOptionsAreListedAndLeftOut) {
  const std::string text =
      "[DBOptions]\n"
      "  max_open_files=-1\n"
      "  # strata: wal_mmap_buffer_size=65536\n"
      "[CFOptions \"a\"]\n"
      "  # a comment: cf_paths=/x\n"
      "  # strata: cf_paths=/fast,/slow\n"
      "delta_max_buckets = 8\n"
      "  num_levels=7\n"
      "[TableOptions/BlockBasedTable \"a\"]\n"
      "  cf_paths=/no/option\n"
      "[CFOptions \"b\"]\n"
      "  # strata: enable_delta_separation=true";
  std::string found;
  for (const auto& option : OptionsFileCopy::OwnOptions(text)) {
    found += option.family + "|" + option.name + "|" + option.value + "\n";
  }
  EXPECT_EQ(found,
            "|wal_mmap_buffer_size|65536\n"
            "a|cf_paths|/fast,/slow\n"
            "a|delta_max_buckets|8\n"
            "b|enable_delta_separation|true\n");
  EXPECT_EQ(OptionsFileCopy::WithoutOwnOptions(
                text, [](const std::string&) { return true; }),
            "[DBOptions]\n"
            "  max_open_files=-1\n"
            "[CFOptions \"a\"]\n"
            "  # a comment: cf_paths=/x\n"
            "  num_levels=7\n"
            "[TableOptions/BlockBasedTable \"a\"]\n"
            "  cf_paths=/no/option\n"
            "[CFOptions \"b\"]\n");
  const std::string kept = OptionsFileCopy::WithoutOwnOptions(
      text, [](const std::string& name) { return name == "cf_paths"; });
  EXPECT_EQ(
      kept.size() + std::string("  # strata: cf_paths=/fast,/slow\n").size(),
      text.size());
  EXPECT_EQ(kept.find("/slow"), std::string::npos) << kept;
  EXPECT_EQ(OptionsFileCopy::WithoutOwnOptions(
                text, [](const std::string&) { return false; }),
            text);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
