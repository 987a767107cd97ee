//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/manifest_features.h"

#include <memory>
#include <string>
#include <vector>

#include "db/path_layout/path_copy_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"

namespace ROCKSDB_NAMESPACE {

class ManifestFeaturesTest : public PathCopyTestBase {
 public:
  ManifestFeaturesTest() : PathCopyTestBase("manifest_features_test") {}

  ManifestFeatures Read() {
    ManifestFeatures features;
    EXPECT_OK(features.ReadRecords(fs_.get(), dbname_));
    EXPECT_OK(features.ReadFamilies(
        fs_.get(), [](const std::string&) { return BytewiseComparator(); }));
    return features;
  }

  void FlushAll() {
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_OK(db_->Flush(FlushOptions(), handle));
    }
  }
};

TEST_F(ManifestFeaturesTest, RocksDBsOwnDatabaseHasNone) {
  OpenNew({FeatureOptions(kBlobs, "a", 2, {}, {}), PlainOptions()});
  PutRange(0, 0, kKeys);
  PutRange(1, 0, kKeys);
  FlushAll();
  Close();
  const ManifestFeatures features = Read();
  EXPECT_TRUE(features.records().IsEmpty());
  ASSERT_EQ(features.families().size(), 2u);
  EXPECT_EQ(features.families()[0].name, kDefaultColumnFamilyName);
  EXPECT_EQ(features.families()[1].name, "cf1");
  for (const ManifestFeatures::Family& family : features.families()) {
    EXPECT_TRUE(family.features.IsEmpty());
    EXPECT_EQ(family.tables.files, 1u);
    EXPECT_GT(family.tables.bytes, 0u);
    EXPECT_EQ(family.blobs.files, 1u);
    EXPECT_GT(family.blobs.bytes, uint64_t{kKeys} * 100);
    EXPECT_EQ(family.files.size(), 2u);
    EXPECT_EQ(features.comparators().at(family.name),
              BytewiseComparator()->Name());
  }
}

TEST_F(ManifestFeaturesTest, FilesOfEachFeatureAreCounted) {
  const std::vector<Options> options = {
      FeatureOptions(kDeltas, "a", 2, {1}, {}),
      FeatureOptions(kMap, "b", 2, {0}, {0}),
      FeatureOptions(kBlobs, "c", 2, {0, 1}, {1})};
  OpenNew(options);
  FillDeltas();
  PutRange(1, 0, kKeys);
  PutRange(2, 0, kKeys);
  FlushAll();
  Close();
  const ManifestFeatures features = Read();
  FeatureSet all = FeatureSet::kMap;
  all.Add(FeatureSet::kDeltas);
  all.Add(FeatureSet::kLayouts);
  EXPECT_EQ(features.records(), all);
  ASSERT_EQ(features.families().size(), 3u);
  const ManifestFeatures::Family& deltas = features.families()[0];
  EXPECT_EQ(deltas.features, FeatureSet(FeatureSet::kDeltas));
  EXPECT_GE(deltas.deltas.files, 2u);
  EXPECT_EQ(deltas.distant_deltas.files, deltas.deltas.files);
  EXPECT_EQ(deltas.blobs.files, 0u);
  const ManifestFeatures::Family& map = features.families()[1];
  EXPECT_EQ(map.features, FeatureSet(FeatureSet::kMap));
  EXPECT_EQ(map.mapped_tables.files, 1u);
  EXPECT_EQ(map.mapped_blobs.files, 1u);
  EXPECT_EQ(map.mapped_blobs.bytes, map.blobs.bytes);
  EXPECT_EQ(map.hot_blobs.files, 0u);
  EXPECT_EQ(map.distant_blobs.files, 0u);
  const ManifestFeatures::Family& layout = features.families()[2];
  EXPECT_EQ(layout.features, FeatureSet(FeatureSet::kLayouts));
  EXPECT_EQ(layout.distant_blobs.files, 1u);
  EXPECT_EQ(layout.tables_of_distant_blobs.files, 1u);
  EXPECT_EQ(layout.distant_tables.files, 0u);
  EXPECT_EQ(layout.mapped_blobs.files, 0u);
}

// Records of files that are gone, and of a family that was dropped, are in the
// MANIFEST until there is a new one.
TEST_F(ManifestFeaturesTest, RecordsOutliveFiles) {
  std::vector<Options> options = {FeatureOptions(kMap, "a", 2, {0}, {0}),
                                  PlainOptions()};
  OpenNew(options);
  PutRange(0, 0, kKeys);
  FlushAll();
  options[0].enable_blob_address_map = false;
  ASSERT_OK(Open(options, /*create_families=*/false));
  CompactRangeOptions compact;
  compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(compact, Handle(0), nullptr, nullptr));
  // The blob file leaves the version in the background.
  WaitForCompactOptions wait;
  wait.wait_for_purge = true;
  ASSERT_OK(db_->WaitForCompact(wait));
  Close();
  ManifestFeatures features = Read();
  EXPECT_EQ(features.records(), FeatureSet(FeatureSet::kMap));
  EXPECT_TRUE(features.families()[0].features.IsEmpty());
  EXPECT_GT(features.families()[0].tables.files, 0u);
  for (const ManifestFamily::File& file : features.families()[0].files) {
    EXPECT_EQ(file.level, file.type == kTableFile ? 1 : 0);
  }
  ASSERT_OK(Open(options, /*create_families=*/false));
  ASSERT_OK(db_->DropColumnFamily(Handle(1)));
  Close();
  features = Read();
  EXPECT_TRUE(features.records().IsEmpty());
  ASSERT_EQ(features.families().size(), 1u);
  EXPECT_EQ(features.comparators().size(), 1u);
}

TEST_F(ManifestFeaturesTest, MarkOfAWalBuffer) {
  Options options = PlainOptions();
  options.wal_mmap_buffer_size = 65536;
  options.env = env_;
  OpenNew({options});
  ManifestFeatures features = Read();
  EXPECT_EQ(features.records(), FeatureSet(FeatureSet::kWalBuffer));
  Close();
  features = Read();
  EXPECT_TRUE(features.records().IsEmpty());
}

TEST_F(ManifestFeaturesTest, WalsThatAnOpenReplays) {
  const std::vector<Options> options = {PlainOptions(), PlainOptions()};
  OpenNew(options);
  std::unique_ptr<WalFile> first;
  ASSERT_OK(db_->GetCurrentWalFile(&first));
  PutRange(0, 0, 5, 0, /*wal=*/true);
  PutRange(1, 0, 5, 0, /*wal=*/true);
  EXPECT_LE(Read().MinWalNumber(/*allow_2pc=*/false), first->LogNumber());
  // The other family's entries are in this WAL alone.
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  std::unique_ptr<WalFile> second;
  ASSERT_OK(db_->GetCurrentWalFile(&second));
  ASSERT_GT(second->LogNumber(), first->LogNumber());
  EXPECT_LE(Read().MinWalNumber(/*allow_2pc=*/false), first->LogNumber());
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(1)));
  EXPECT_EQ(Read().MinWalNumber(/*allow_2pc=*/false), second->LogNumber());
  EXPECT_LE(Read().MinWalNumber(/*allow_2pc=*/true), second->LogNumber());
  // A column family that is dropped needs none, and one without entries does
  // not need an old one.
  PutRange(1, 0, 5, 1, /*wal=*/true);
  PutRange(0, 0, 5, 1, /*wal=*/true);
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  EXPECT_EQ(Read().MinWalNumber(/*allow_2pc=*/false), second->LogNumber());
  ASSERT_OK(db_->DropColumnFamily(Handle(1)));
  EXPECT_GT(Read().MinWalNumber(/*allow_2pc=*/false), second->LogNumber());
  Close();
}

TEST_F(ManifestFeaturesTest, NoDatabase) {
  ManifestFeatures features;
  EXPECT_NOK(features.ReadRecords(fs_.get(), dbname_ + "_none"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
