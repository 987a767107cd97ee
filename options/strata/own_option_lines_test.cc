//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/own_option_lines.h"

#include <sstream>
#include <string>

#include "file/filename.h"
#include "options/options_parser.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/testharness.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

TEST(OwnOptionLinesTest, HidesAndRevealsOwnOptionsOnly) {
  const std::string section =
      "max_open_files=-1\n  wal_mmap_buffer_size=65536\n  "
      "enable_merged_value_cache=true\n  wal_dir=\n  ";
  EXPECT_EQ(
      OwnOptionLines::Hide(section),
      "max_open_files=-1\n  # strata: wal_mmap_buffer_size=65536\n  # strata: "
      "enable_merged_value_cache=true\n  wal_dir=\n  ");
  EXPECT_EQ(OwnOptionLines::Hide(""), "");
  EXPECT_EQ(OwnOptionLines::Hide("cf_paths=x"), "# strata: cf_paths=x");
  EXPECT_EQ(OwnOptionLines::Reveal("  # strata: cf_paths=x"), "cf_paths=x");
  for (const char* line : {"", "  ", "# a comment", "# strata", "wal_dir=x"}) {
    EXPECT_EQ(OwnOptionLines::Hide(line), line);
    EXPECT_EQ(OwnOptionLines::Reveal(line), line);
  }
}

class OwnOptionLinesDBTest : public testing::Test {
 protected:
  OwnOptionLinesDBTest()
      : dbname_(test::PerThreadDBPath("own_option_lines_test")) {
    options_.create_if_missing = true;
    options_.merge_operator = MergeOperators::CreateStringAppendOperator();
    EXPECT_OK(DestroyDB(dbname_, options_));
  }
  ~OwnOptionLinesDBTest() override { EXPECT_OK(DestroyDB(dbname_, options_)); }

  // Returns the text of the latest OPTIONS file.
  std::string File() {
    std::string name;
    std::string text;
    EXPECT_OK(GetLatestOptionsFileName(dbname_, Env::Default(), &name));
    EXPECT_OK(ReadFileToString(Env::Default(), dbname_ + "/" + name, &text));
    return text;
  }

  const std::string dbname_;
  Options options_;
};

// The parser of RocksDB sees none of the options that RocksDB does not have,
// and Strata loads the values that were set.
TEST_F(OwnOptionLinesDBTest, RocksDBSeesNoOwnOption) {
  options_.enable_pipelined_write = false;
  options_.max_write_groups_per_leader = 7;
  options_.wal_mmap_buffer_size = 1 << 20;
  options_.enable_merged_value_cache = true;
  options_.merged_value_cache_size = 12345;
  options_.enable_blob_files = true;
  options_.enable_blob_address_map = true;
  options_.enable_lsm_bypass = false;
  options_.blob_gc_space_amp_limit = 1.7;
  options_.blob_scan_sort_budget = 2.5;
  options_.blob_hot_bytes = 123456;
  options_.blob_hot_path_id = 1;
  options_.enable_delta_separation = true;
  options_.delta_bucket_size = 65536;
  options_.delta_max_buckets = 100;
  options_.delta_bucket_split_ratio = 0.7;
  options_.delta_cache_size = 4096;
  options_.cf_paths = {{dbname_, 1 << 30}, {dbname_ + "/b#1", 1 << 30}};
  options_.level_sst_path_ids = {0, 1};
  options_.level_blob_path_ids = {1};
  options_.delta_sorted_path_id = 1;
  options_.path_prices = {0.39, 0.19};
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options_, dbname_, &db));
  db.reset();

  std::istringstream lines(File());
  std::string line;
  size_t hidden = 0;
  while (std::getline(lines, line)) {
    if (OwnOptionLines::Reveal(line) != line) {
      ++hidden;
    }
    const std::string seen = RocksDBOptionsParser::TrimAndRemoveComment(line);
    EXPECT_FALSE(OwnOptionLines::IsOwn(seen.substr(0, seen.find('=')))) << seen;
    for (const char* word :
         {"blob_address_map", "lsm_bypass", "delta_s", "delta_b",
          "merged_value", "path_id", "path_p", "cf_paths", "write_groups",
          "wal_mmap", "space_amp_limit", "blob_hot"}) {
      EXPECT_EQ(seen.find(word), std::string::npos) << seen;
    }
  }
  EXPECT_EQ(hidden, 20u) << File();

  Options loaded;
  std::vector<ColumnFamilyDescriptor> families;
  ASSERT_OK(LoadLatestOptions(ConfigOptions(), dbname_, &loaded, &families));
  ASSERT_EQ(families.size(), 1u);
  const ColumnFamilyOptions& cf = families[0].options;
  EXPECT_EQ(loaded.max_write_groups_per_leader, 7u);
  EXPECT_EQ(loaded.wal_mmap_buffer_size, size_t{1} << 20);
  EXPECT_TRUE(cf.enable_merged_value_cache);
  EXPECT_EQ(cf.merged_value_cache_size, 12345u);
  EXPECT_TRUE(cf.enable_blob_address_map);
  EXPECT_FALSE(cf.enable_lsm_bypass);
  EXPECT_EQ(cf.blob_gc_space_amp_limit, 1.7);
  EXPECT_EQ(cf.blob_scan_sort_budget, 2.5);
  EXPECT_EQ(cf.blob_hot_bytes, 123456u);
  EXPECT_EQ(cf.blob_hot_path_id, 1u);
  EXPECT_TRUE(cf.enable_delta_separation);
  EXPECT_EQ(cf.delta_bucket_size, 65536u);
  EXPECT_EQ(cf.delta_max_buckets, 100u);
  EXPECT_EQ(cf.delta_bucket_split_ratio, 0.7);
  EXPECT_EQ(cf.delta_cache_size, 4096u);
  ASSERT_EQ(cf.cf_paths.size(), 2u);
  EXPECT_EQ(cf.cf_paths[1].path, dbname_ + "/b#1");
  EXPECT_EQ(cf.level_sst_path_ids, options_.level_sst_path_ids);
  EXPECT_EQ(cf.level_blob_path_ids, options_.level_blob_path_ids);
  EXPECT_EQ(cf.delta_sorted_path_id, 1);
  EXPECT_EQ(cf.path_prices, options_.path_prices);
  EXPECT_OK(
      CheckOptionsCompatibility(ConfigOptions(), dbname_, loaded, families));
}

// A file of an older version, in which these options are not comments, is
// loaded.
TEST_F(OwnOptionLinesDBTest, PlainLinesAreLoadedToo) {
  options_.enable_merged_value_cache = true;
  options_.max_write_groups_per_leader = 7;
  options_.enable_pipelined_write = false;
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options_, dbname_, &db));
  db.reset();
  std::string text = File();
  const std::string mark = "# strata: ";
  size_t count = 0;
  for (size_t at = text.find(mark); at != std::string::npos;
       at = text.find(mark)) {
    text.erase(at, mark.size());
    ++count;
  }
  EXPECT_EQ(count, 2u);
  const std::string name = OptionsFileName(dbname_, 999999);
  ASSERT_OK(WriteStringToFile(Env::Default(), text, name));
  Options loaded;
  std::vector<ColumnFamilyDescriptor> families;
  ASSERT_OK(LoadLatestOptions(ConfigOptions(), dbname_, &loaded, &families));
  EXPECT_EQ(loaded.max_write_groups_per_leader, 7u);
  EXPECT_TRUE(families[0].options.enable_merged_value_cache);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
