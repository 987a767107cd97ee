//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/options_without_features.h"

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kText =
    "[DBOptions]\n"
    "  max_open_files=-1\n"
    "  # strata: wal_mmap_buffer_size=65536\n"
    "[CFOptions \"a\"]\n"
    "  num_levels=7\n"
    "  # strata: blob_hot_bytes=1000\n"
    "  # strata: blob_hot_path_id=1\n"
    "  # strata: enable_blob_address_map=true\n"
    "  # strata: cf_paths=/fast,/slow\n"
    "[CFOptions \"b\"]\n"
    "  # strata: level_sst_path_ids=0:1\n"
    "  # strata: enable_blob_address_map=true\n"
    "  # strata: cf_paths=/fast,/slow\n";

bool Always(const std::string& /*family*/) { return true; }
bool Never(const std::string& /*family*/) { return false; }

}  // namespace

TEST(OptionsWithoutFeaturesTest, AllOptionsGo) {
  const OptionsWithoutFeatures options(kText, FeatureSet::All());
  EXPECT_EQ(options.features().ToString(), "map, layouts, wal_buffer");
  EXPECT_TRUE(options.families_losing_paths().empty());
  EXPECT_EQ(options.Text(Always),
            "[DBOptions]\n"
            "  max_open_files=-1\n"
            "[CFOptions \"a\"]\n"
            "  num_levels=7\n"
            "[CFOptions \"b\"]\n");
}

TEST(OptionsWithoutFeaturesTest, NothingGoes) {
  const OptionsWithoutFeatures options(kText, FeatureSet::kDeltas);
  EXPECT_TRUE(options.features().IsEmpty());
  EXPECT_EQ(options.Text(Always), kText);
}

// Only options of the map name the paths of the first column family.
TEST(OptionsWithoutFeaturesTest, PathsThatStayAreNamed) {
  const OptionsWithoutFeatures options(kText, FeatureSet::kMap);
  EXPECT_EQ(options.features().ToString(), "map");
  EXPECT_EQ(options.families_losing_paths(), std::set<std::string>{"a"});
  const std::string begin =
      "[DBOptions]\n"
      "  max_open_files=-1\n"
      "  # strata: wal_mmap_buffer_size=65536\n"
      "[CFOptions \"a\"]\n";
  const std::string end =
      "  num_levels=7\n"
      "  # strata: cf_paths=/fast,/slow\n"
      "[CFOptions \"b\"]\n"
      "  # strata: level_sst_path_ids=0:1\n"
      "  # strata: cf_paths=/fast,/slow\n";
  EXPECT_EQ(options.Text(Always),
            begin + "  # strata: level_blob_path_ids=0\n" + end);
  EXPECT_EQ(options.Text(Never), begin + end);
}

TEST(OptionsWithoutFeaturesTest, FifoCompactionHasNoOptionThatNamesPaths) {
  ColumnFamilyOptions options;
  EXPECT_TRUE(OptionsWithoutFeatures::CanNamePaths(options));
  options.compaction_style = kCompactionStyleFIFO;
  EXPECT_FALSE(OptionsWithoutFeatures::CanNamePaths(options));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
