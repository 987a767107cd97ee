//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/feature_set.h"

#include <string>

#include "options/strata/option_values_test_util.h"
#include "options/strata/strata_option_table.h"
#include "port/stack_trace.h"
#include "rocksdb/options.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(FeatureSetTest, NamesAreParsed) {
  FeatureSet features;
  ASSERT_OK(FeatureSet::Parse("map", &features));
  EXPECT_EQ(features, FeatureSet(FeatureSet::kMap));
  ASSERT_OK(FeatureSet::Parse("wal_buffer,map,deltas,map", &features));
  EXPECT_EQ(features.ToString(), "map, deltas, wal_buffer");
  EXPECT_TRUE(features.Has(FeatureSet::kDeltas));
  EXPECT_FALSE(features.Has(FeatureSet::kLayouts));
  ASSERT_OK(FeatureSet::Parse(
      "map,deltas,layouts,wal_buffer,merged_values,write_groups", &features));
  EXPECT_EQ(features, FeatureSet::All());

  for (const char* wrong :
       {"", "maps", "map,", ",map", "map,,deltas", "map "}) {
    FeatureSet unchanged = FeatureSet::kLayouts;
    const Status s = FeatureSet::Parse(wrong, &unchanged);
    EXPECT_TRUE(s.IsInvalidArgument()) << wrong;
    EXPECT_NE(s.ToString().find("merged_values, write_groups"),
              std::string::npos)
        << s.ToString();
    EXPECT_EQ(unchanged, FeatureSet(FeatureSet::kLayouts)) << wrong;
  }
}

TEST(FeatureSetTest, SetsAreCombined) {
  FeatureSet features;
  EXPECT_TRUE(features.IsEmpty());
  EXPECT_EQ(features.ToString(), "");
  features.Add(FeatureSet::kMap);
  features.Add(FeatureSet::kWriteGroups);
  EXPECT_TRUE(features.Intersects(FeatureSet::All()));
  EXPECT_FALSE(features.Intersects(FeatureSet::kDeltas));
  EXPECT_FALSE(FeatureSet().Intersects(FeatureSet::All()));
  EXPECT_EQ(features.Intersection(FeatureSet::kMap),
            FeatureSet(FeatureSet::kMap));
  EXPECT_EQ(features.Intersection(FeatureSet::All()), features);
  EXPECT_TRUE(features.Intersection(FeatureSet::kDeltas).IsEmpty());
}

#define STRATA_HAS_FEATURE(kind, name, ...) \
  EXPECT_FALSE(FeatureSet::OfOption(#name).IsEmpty()) << #name;

TEST(FeatureSetTest, EachOptionBelongsToAFeature) {
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_HAS_FEATURE)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_HAS_FEATURE)
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_HAS_FEATURE)
#define STRATA_REMOVED_HAS_FEATURE(name) STRATA_HAS_FEATURE(uint32, name)
  STRATA_REMOVED_MUTABLE_CF_OPTIONS(STRATA_REMOVED_HAS_FEATURE)
  EXPECT_EQ(FeatureSet::OfOption("blob_gc_space_amp_limit"),
            FeatureSet(FeatureSet::kMap));
  EXPECT_EQ(FeatureSet::OfOption("blob_hot_bytes").ToString(), "map, layouts");
  EXPECT_EQ(FeatureSet::OfOption("delta_sorted_path_id").ToString(),
            "deltas, layouts");
  EXPECT_EQ(FeatureSet::OfOption("cf_paths"), FeatureSet(FeatureSet::kLayouts));
  EXPECT_TRUE(FeatureSet::OfOption("enable_blob_files").IsEmpty());
  EXPECT_TRUE(FeatureSet::OfOption("").IsEmpty());
}

#define STRATA_CHANGE(kind, name, ...) \
  options.name = OtherOptionValue(options.name);
#define STRATA_EQUALS_DEFAULT(kind, name, ...) \
  EXPECT_EQ(options.name, defaults.name) << #name;

TEST(FeatureSetTest, OptionsOfAllFeaturesAreReset) {
  ColumnFamilyOptions options;
  const ColumnFamilyOptions defaults;
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHANGE)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_CHANGE)
  options.cf_paths = {{"/a", 1}, {"/b", 1}};
  options.enable_blob_files = true;
  FeatureSet::All().ResetOptions(&options);
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_EQUALS_DEFAULT)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_EQUALS_DEFAULT)
  EXPECT_EQ(options.cf_paths.size(), 2u);
  EXPECT_TRUE(options.enable_blob_files);
}

TEST(FeatureSetTest, DBOptionsOfAllFeaturesAreReset) {
  DBOptions options;
  const DBOptions defaults;
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHANGE)
  options.create_if_missing = true;
  FeatureSet::All().ResetOptions(&options);
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_EQUALS_DEFAULT)
  EXPECT_TRUE(options.create_if_missing);
}

TEST(FeatureSetTest, OptionsOfOtherFeaturesStay) {
  ColumnFamilyOptions options;
  options.enable_blob_address_map = true;
  options.enable_delta_separation = true;
  options.blob_gc_space_amp_limit = 3;
  options.blob_hot_bytes = 4;
  options.delta_sorted_path_id = 1;
  options.level_blob_path_ids = {1};
  FeatureSet(FeatureSet::kLayouts).ResetOptions(&options);
  EXPECT_TRUE(options.enable_blob_address_map);
  EXPECT_TRUE(options.enable_delta_separation);
  EXPECT_EQ(options.blob_gc_space_amp_limit, 3);
  EXPECT_EQ(options.blob_hot_bytes, 0u);
  EXPECT_EQ(options.delta_sorted_path_id, -1);
  EXPECT_TRUE(options.level_blob_path_ids.empty());
  DBOptions db_options;
  db_options.wal_mmap_buffer_size = 65536;
  db_options.max_write_groups_per_leader = 8;
  FeatureSet(FeatureSet::kWriteGroups).ResetOptions(&db_options);
  EXPECT_EQ(db_options.wal_mmap_buffer_size, 65536u);
  EXPECT_EQ(db_options.max_write_groups_per_leader, 1u);
}

TEST(FeatureSetTest, DifferentOptionsOfTheFeatures) {
  ColumnFamilyOptions a;
  ColumnFamilyOptions b;
  EXPECT_EQ(FeatureSet::All().DifferentOption(a, b), "");
  b.level_blob_path_ids = {1};
  b.cf_paths = {{"/a", 1}};
  EXPECT_EQ(FeatureSet::All().DifferentOption(a, b), "level_blob_path_ids");
  EXPECT_EQ(FeatureSet(FeatureSet::kLayouts).DifferentOption(a, b),
            "level_blob_path_ids");
  EXPECT_EQ(FeatureSet(FeatureSet::kMap).DifferentOption(a, b), "");
  DBOptions c;
  DBOptions d;
  d.wal_mmap_buffer_size = 65536;
  EXPECT_EQ(FeatureSet(FeatureSet::kWalBuffer).DifferentOption(c, d),
            "wal_mmap_buffer_size");
  EXPECT_EQ(FeatureSet(FeatureSet::kMap).DifferentOption(c, d), "");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
