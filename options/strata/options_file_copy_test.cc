//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/options_file_copy.h"

#include <string>

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

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
