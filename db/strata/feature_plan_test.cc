//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/feature_plan.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/path_layout/path_layout.h"
#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"
#include "utilities/merge_operators.h"
#include "utilities/strata/unknown_merge_operator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Work = FeaturePlan::Work;

const std::vector<DbPath> kOnePath = {{"/db", 1000}};
const std::vector<DbPath> kTwoPaths = {{"/fast", 1000}, {"/slow", 1000}};

FeatureSet SetOf(const std::string& names) {
  FeatureSet features;
  EXPECT_OK(FeatureSet::Parse(names, &features));
  return features;
}

ManifestFamily::File File(FileType type, uint32_t path_id, uint64_t size,
                          uint8_t blob_path_mask = 0, uint64_t entries = 0) {
  ManifestFamily::File file = {type, /*number=*/7, path_id, size};
  file.blob_path_mask = blob_path_mask;
  file.entries = entries;
  return file;
}

// A family with two SST files, the second one on path 1.
ManifestFeatures::Family Family(const FeatureSet& features) {
  ManifestFeatures::Family family;
  family.name = "two";
  family.features = features;
  family.files = {File(kTableFile, 0, 100, 1), File(kTableFile, 1, 200, 2)};
  for (const ManifestFamily::File& file : family.files) {
    family.tables.Add(file);
  }
  family.distant_tables.Add(family.files[1]);
  family.tables_of_distant_blobs.Add(family.files[1]);
  if (features.Has(FeatureSet::kLayouts)) {
    family.files.push_back(File(kBlobFile, 1, 5000, 0, /*entries=*/10));
    family.blobs.Add(family.files.back());
    family.distant_blobs.Add(family.files.back());
  }
  if (features.Has(FeatureSet::kMap)) {
    family.files.push_back(File(kBlobFile, 0, 1000, 0, /*entries=*/10));
    family.blobs.Add(family.files.back());
    family.mapped_blobs.Add(family.files.back());
  }
  if (features.Has(FeatureSet::kDeltas)) {
    family.files.push_back(File(kDeltaFile, 0, 30, 0, /*entries=*/2));
    family.deltas.Add(family.files.back());
  }
  return family;
}

ColumnFamilyOptions OptionsWithOperator() {
  ColumnFamilyOptions options;
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  return options;
}

FeaturePlan::Family Plan(const FeatureSet& features, bool into_first_path,
                         const ManifestFeatures::Family& family,
                         const std::vector<DbPath>& paths) {
  FeaturePlan plan(features, into_first_path);
  EXPECT_OK(plan.Add(family, OptionsWithOperator(), paths));
  EXPECT_EQ(plan.HasWork(), plan.families()[0].work != Work::kNone);
  return plan.families()[0];
}

Work WorkOf(const std::string& features, const std::string& data,
            const std::vector<DbPath>& paths = kTwoPaths,
            bool into_first_path = false) {
  return Plan(SetOf(features), into_first_path,
              Family(data.empty() ? FeatureSet() : SetOf(data)), paths)
      .work;
}

// All devices have so much room.
class RoomFS : public FileSystemWrapper {
 public:
  explicit RoomFS(const std::map<std::string, uint64_t>& room)
      : FileSystemWrapper(FileSystem::Default()), room_(room) {}
  const char* Name() const override { return "RoomFS"; }
  IOStatus GetFreeSpace(const std::string& path, const IOOptions& /*options*/,
                        uint64_t* free, IODebugContext* /*dbg*/) override {
    *free = room_.at(path);
    return IOStatus::OK();
  }

 private:
  const std::map<std::string, uint64_t> room_;
};

}  // namespace

TEST(FeaturePlanTest, WorkFollowsFromTheData) {
  EXPECT_EQ(WorkOf("map,deltas,layouts", ""), Work::kNone);
  EXPECT_EQ(WorkOf("map", "map"), Work::kRewrite);
  EXPECT_EQ(WorkOf("deltas", "deltas"), Work::kCompact);
  EXPECT_EQ(WorkOf("layouts", "layouts"), Work::kMove);
  EXPECT_EQ(WorkOf("deltas,layouts", "deltas,layouts"), Work::kCompact);
  EXPECT_EQ(WorkOf("map,deltas,layouts", "map,deltas,layouts"), Work::kRewrite);
  // What is not to go stays.
  EXPECT_EQ(WorkOf("deltas,layouts", "map"), Work::kNone);
  EXPECT_EQ(WorkOf("map,wal_buffer", "deltas,layouts"), Work::kNone);
  EXPECT_EQ(WorkOf("layouts", "map,deltas,layouts"), Work::kMove);
  // RocksDB reads SST files on any path.
  EXPECT_EQ(WorkOf("layouts", "", kTwoPaths, /*into_first_path=*/true),
            Work::kMove);
  // The last path was given up.
  EXPECT_EQ(WorkOf("layouts", "layouts", kOnePath), Work::kRewrite);
}

TEST(FeaturePlanTest, NeedsAreThoseOfEachDirectory) {
  using Needs = std::map<std::string, uint64_t>;
  FeaturePlan::Family planned =
      Plan(SetOf("map"), false, Family(SetOf("map")), kTwoPaths);
  // Without an SST layout all SST files go to the path that has most of them.
  EXPECT_EQ(planned.needs, (Needs{{"/fast", 1000}, {"/slow", 300}}));
  EXPECT_EQ(planned.bytes, 1300u);
  EXPECT_EQ(planned.target_path_id, 1u);
  // Only the second SST file has values on path 1.
  planned = Plan(SetOf("layouts"), false, Family(SetOf("layouts")), kTwoPaths);
  EXPECT_EQ(planned.needs, (Needs{{"/fast", 5000}, {"/slow", 200}}));
  planned = Plan(SetOf("layouts"), true, Family(SetOf("layouts")), kTwoPaths);
  EXPECT_EQ(planned.needs, (Needs{{"/fast", 5200}}));
  // Without blob files a fold may write as much as the SST files have.
  planned = Plan(SetOf("deltas"), false, Family(SetOf("deltas")), kOnePath);
  EXPECT_EQ(planned.needs, (Needs{{"/db", 300 + 300 + 30}}));
  // Two operands make two values, of a tenth of the blob file each.
  planned = Plan(SetOf("deltas"), false, Family(SetOf("map,deltas")), kOnePath);
  EXPECT_EQ(planned.needs, (Needs{{"/db", 300 + 202 + 300 + 30}}));
  EXPECT_EQ(planned.target_path_id, 0u);
  planned = Plan(SetOf("wal_buffer"), false, Family(SetOf("map")), kTwoPaths);
  EXPECT_TRUE(planned.needs.empty());
}

// With an SST layout, compactions put all SST files on the path of the last
// level.
TEST(FeaturePlanTest, NeedsFollowTheLayout) {
  using Needs = std::map<std::string, uint64_t>;
  const auto needs = [](int level, CompactionStyle style, bool dynamic,
                        const std::vector<uint32_t>& ids) {
    ManifestFeatures::Family family = Family(SetOf("map"));
    family.files[1].level = level;
    ColumnFamilyOptions options;
    options.compaction_style = style;
    options.level_compaction_dynamic_level_bytes = dynamic;
    options.num_levels = 4;
    options.level_sst_path_ids = ids;
    FeaturePlan plan(SetOf("map"), /*into_first_path=*/false);
    EXPECT_OK(plan.Add(family, options, kTwoPaths));
    EXPECT_EQ(plan.families()[0].target_path_id, 0u);
    return plan.families()[0].needs;
  };
  const Needs fast{{"/fast", 1300}};
  const Needs both{{"/fast", 1000}, {"/slow", 300}};
  EXPECT_EQ(needs(2, kCompactionStyleLevel, false, {0, 0, 1}), both);
  EXPECT_EQ(needs(2, kCompactionStyleLevel, false, {1, 1, 0}), fast);
  EXPECT_EQ(needs(1, kCompactionStyleLevel, false, {0, 0, 1}), fast);
  EXPECT_EQ(needs(0, kCompactionStyleLevel, false, {0, 1, 0}), both);
  EXPECT_EQ(needs(0, kCompactionStyleLevel, true, {0, 0, 0, 1}), both);
  EXPECT_EQ(needs(0, kCompactionStyleUniversal, false, {0, 0, 0, 1}), both);
}

// Delta files that stay do not stay on a path of the layout.
TEST(FeaturePlanTest, DeltaFilesMoveToTheFirstPath) {
  using Needs = std::map<std::string, uint64_t>;
  ManifestFeatures::Family family = Family(SetOf("deltas"));
  family.files.push_back(File(kDeltaFile, 1, 40, 0, /*entries=*/2));
  family.deltas.Add(family.files.back());
  family.distant_deltas.Add(family.files.back());
  FeaturePlan::Family planned =
      Plan(SetOf("layouts"), false, family, kTwoPaths);
  EXPECT_EQ(planned.work, Work::kMove);
  EXPECT_EQ(planned.needs, (Needs{{"/fast", 40}, {"/slow", 200}}));
  EXPECT_EQ(Plan(SetOf("layouts"), false, family, kOnePath).work, Work::kNone);
  EXPECT_EQ(Plan(SetOf("layouts,deltas"), false, family, kTwoPaths).work,
            Work::kCompact);
  EXPECT_EQ(Plan(SetOf("map"), false, family, kTwoPaths).work, Work::kNone);

  ColumnFamilyOptions options;
  options.enable_delta_separation = true;
  options.level_sst_path_ids = {0, 1};
  options.delta_sorted_path_id = 1;
  const FeaturePlan plan(SetOf("layouts"), /*into_first_path=*/false);
  for (int i = 0; i < 2; ++i) {
    plan.SetSessionOptions(kTwoPaths, &options);
    EXPECT_EQ(options.delta_sorted_path_id, 0);
    EXPECT_TRUE(options.enable_delta_separation);
  }
}

TEST(FeaturePlanTest, SpaceIsCheckedFamilyByFamily) {
  FeaturePlan plan(SetOf("map"), /*into_first_path=*/false);
  const ManifestFeatures::Family family = Family(SetOf("map"));
  ASSERT_OK(plan.Add(family, OptionsWithOperator(), kTwoPaths));
  ASSERT_OK(plan.Add(family, OptionsWithOperator(), kTwoPaths));
  // One after the other.
  RoomFS room({{"/fast", 1000}, {"/slow", 300}});
  EXPECT_OK(plan.CheckSpace(&room, 0));
  const Status s = plan.CheckSpace(&room, 1);
  EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
  EXPECT_NE(s.ToString().find("column family two"), std::string::npos)
      << s.ToString();
  // Both directories are on one device.
  RoomFS one({{"/fast", 1299}, {"/slow", 1299}});
  EXPECT_TRUE(plan.CheckSpace(&one, 0).IsNoSpace());
  RoomFS enough({{"/fast", 1300}, {"/slow", 1300}});
  EXPECT_OK(plan.CheckSpace(&enough, 0));
}

TEST(FeaturePlanTest, WhatCannotBeConvertedIsRefused) {
  FeaturePlan plan(FeatureSet::All(), /*into_first_path=*/false);
  ColumnFamilyOptions options;
  Status s = plan.Add(Family(SetOf("deltas")), options, kOnePath);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("LDBTool::Run()"), std::string::npos)
      << s.ToString();
  options.merge_operator = std::make_shared<UnknownMergeOperator>("Own", "Own");
  s = plan.Add(Family(SetOf("deltas")), options, kOnePath);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("[two]"), std::string::npos) << s.ToString();
  EXPECT_NE(s.ToString().find("\"Own\""), std::string::npos) << s.ToString();
  // Operands in SST files stay as they are.
  EXPECT_OK(plan.Add(Family(SetOf("map")), options, kOnePath));
  FeaturePlan without_deltas(SetOf("map"), /*into_first_path=*/false);
  EXPECT_OK(without_deltas.Add(Family(SetOf("map,deltas")), options, kOnePath));

  options.compaction_style = kCompactionStyleNone;
  EXPECT_TRUE(
      plan.Add(Family(SetOf("map")), options, kOnePath).IsNotSupported());
  EXPECT_OK(plan.Add(Family(FeatureSet()), options, kOnePath));
  options.compaction_style = kCompactionStyleFIFO;
  FeaturePlan moves(FeatureSet::All(), /*into_first_path=*/true);
  EXPECT_TRUE(
      moves.Add(Family(FeatureSet()), options, kTwoPaths).IsNotSupported());
  EXPECT_OK(plan.Add(Family(FeatureSet()), options, kTwoPaths));
}

// Other options than Strata's, and those of features that stay, do not change.
TEST(FeaturePlanTest, SessionOptionsKeepThePaths) {
  ColumnFamilyOptions loaded;
  loaded.enable_blob_files = true;
  loaded.enable_blob_address_map = true;
  loaded.enable_delta_separation = true;
  loaded.level_sst_path_ids = {0, 1};
  loaded.level_blob_path_ids = {1};
  loaded.path_prices = {2, 1};
  loaded.blob_hot_bytes = 1 << 20;
  loaded.delta_sorted_path_id = 1;
  const FeaturePlan all(FeatureSet::All(), /*into_first_path=*/false);
  ColumnFamilyOptions options = loaded;
  // The second open has the options of the first one.
  for (int i = 0; i < 2; ++i) {
    all.SetSessionOptions(kTwoPaths, &options);
    EXPECT_FALSE(options.enable_blob_address_map);
    EXPECT_FALSE(options.enable_delta_separation);
    EXPECT_TRUE(options.enable_blob_files);
    EXPECT_EQ(options.level_sst_path_ids, loaded.level_sst_path_ids);
    EXPECT_EQ(options.level_blob_path_ids, std::vector<uint32_t>{0});
    EXPECT_EQ(options.path_prices, loaded.path_prices);
    EXPECT_EQ(options.blob_hot_bytes, 0u);
    EXPECT_EQ(options.delta_sorted_path_id, -1);
  }
  options = loaded;
  FeaturePlan(FeatureSet::All(), /*into_first_path=*/true)
      .SetSessionOptions(kTwoPaths, &options);
  EXPECT_EQ(options.level_sst_path_ids, std::vector<uint32_t>{0});
  EXPECT_EQ(options.level_blob_path_ids, std::vector<uint32_t>{0});

  // With one path there is nothing to keep.
  options = loaded;
  all.SetSessionOptions(kOnePath, &options);
  EXPECT_FALSE(PathLayout::NamesPaths(MutableCFOptions(options)));

  // The path of hot values was the only option with a path.
  options = ColumnFamilyOptions();
  options.enable_blob_address_map = true;
  options.blob_hot_bytes = 1 << 20;
  FeaturePlan(SetOf("map"), false).SetSessionOptions(kTwoPaths, &options);
  EXPECT_EQ(options.blob_hot_bytes, 0u);
  EXPECT_TRUE(PathLayout::NamesPaths(MutableCFOptions(options)));

  // Layouts that are to stay.
  options = loaded;
  FeaturePlan(SetOf("map,deltas"), false)
      .SetSessionOptions(kTwoPaths, &options);
  EXPECT_EQ(options.level_sst_path_ids, loaded.level_sst_path_ids);
  EXPECT_EQ(options.level_blob_path_ids, loaded.level_blob_path_ids);

  // FIFO compaction allows no layout.
  options = ColumnFamilyOptions();
  options.compaction_style = kCompactionStyleFIFO;
  options.path_prices = {2, 1};
  all.SetSessionOptions(kTwoPaths, &options);
  EXPECT_TRUE(options.level_blob_path_ids.empty());
  EXPECT_EQ(options.path_prices, loaded.path_prices);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
