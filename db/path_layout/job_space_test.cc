//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/job_space.h"

#include <set>
#include <string>
#include <vector>

#include "file/strata/space_needs.h"
#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "test_util/strata/small_devices_fs_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

MutableCFOptions FamilyOptions(size_t write_buffer_size = 100) {
  MutableCFOptions options{ColumnFamilyOptions()};
  options.write_buffer_size = write_buffer_size;
  options.enable_blob_files = true;
  options.blob_file_starting_level = 0;
  return options;
}

double NoValues() {
  ADD_FAILURE() << "No values are rewritten";
  return 0;
}

}  // namespace

class FlushSpaceTest : public testing::Test {
 protected:
  FlushSpaceTest() {
    for (const DbPath& path : paths_) {
      fs_.AddDevice({path.path}, 0);
    }
  }

  // Returns the bytes that the flushes need on each path.
  std::vector<uint64_t> Needed() {
    std::vector<uint64_t> result;
    for (const DbPath& path : paths_) {
      // The free bytes of the others differ, so that no two are one device.
      uint64_t other = uint64_t{1} << 40;
      for (const DbPath& each : paths_) {
        fs_.SetFree(each.path, ++other);
      }
      uint64_t needed = 0;
      for (; needed < 10000; ++needed) {
        fs_.SetFree(path.path, needed);
        SpaceNeeds needs;
        flushes_.AddTo(/*are_required=*/true, &needs);
        if (needs.Check(&fs_).ok()) {
          break;
        }
      }
      result.push_back(needed);
    }
    return result;
  }

  const std::vector<DbPath> paths_ = {{"/a", 0}, {"/b", 0}, {"/c", 0}};
  SmallDevicesFS fs_{FileSystem::Default()};
  FlushSpace flushes_;
};

TEST_F(FlushSpaceTest, WithoutALayoutTheFirstPathIsNeeded) {
  flushes_.Add(paths_, FamilyOptions(), /*unflushed=*/0,
               /*writes_blobs_directly=*/false);
  EXPECT_EQ(Needed(), (std::vector<uint64_t>{100, 0, 0}));
}

TEST_F(FlushSpaceTest, PathsOfLevel0AreNeeded) {
  MutableCFOptions options = FamilyOptions();
  options.level_sst_path_ids = {1, 0};
  options.level_blob_path_ids = {2, 0};
  flushes_.Add(paths_, options, 0, false);
  EXPECT_EQ(Needed(), (std::vector<uint64_t>{0, 100, 100}));
}

TEST_F(FlushSpaceTest, BlobPathIsNeededOnlyIfAFlushWritesBlobs) {
  MutableCFOptions options = FamilyOptions();
  options.level_sst_path_ids = {0};
  options.level_blob_path_ids = {1};
  options.blob_file_starting_level = 1;
  flushes_.Add(paths_, options, 0, /*writes_blobs_directly=*/false);
  EXPECT_EQ(Needed(), (std::vector<uint64_t>{100, 0, 0}));
  options.enable_blob_files = false;
  options.blob_file_starting_level = 0;
  flushes_.Add(paths_, options, 0, /*writes_blobs_directly=*/false);
  EXPECT_EQ(Needed(), (std::vector<uint64_t>{100, 0, 0}));
  options.enable_blob_files = true;
  options.blob_file_starting_level = 1;
  flushes_.Add(paths_, options, 0, /*writes_blobs_directly=*/true);
  EXPECT_EQ(Needed(), (std::vector<uint64_t>{100, 100, 0}));
}

// The largest write buffer, as in RocksDB, or the memtables that are there.
TEST_F(FlushSpaceTest, LargestWriteBufferOrAllMemtablesAreNeeded) {
  MutableCFOptions options = FamilyOptions(100);
  options.level_sst_path_ids = {0};
  options.level_blob_path_ids = {1};
  flushes_.Add(paths_, options, /*unflushed=*/70, false);
  EXPECT_EQ(Needed(), (std::vector<uint64_t>{100, 100, 0}));
  options = FamilyOptions(200);
  options.level_sst_path_ids = {0};
  options.level_blob_path_ids = {2};
  flushes_.Add(paths_, options, /*unflushed=*/120, false);
  EXPECT_EQ(Needed(), (std::vector<uint64_t>{200, 100, 200}));
  flushes_.Add(paths_, options, /*unflushed=*/150, false);
  EXPECT_EQ(Needed(), (std::vector<uint64_t>{340, 100, 270}));
  EXPECT_EQ(flushes_.write_buffer(), 200);
  EXPECT_EQ(flushes_.unflushed(), 340);
}

TEST_F(FlushSpaceTest, ReservesNeedNotBeRequired) {
  flushes_.Add(paths_, FamilyOptions(), 1000, false);
  SpaceNeeds needs;
  flushes_.AddTo(/*are_required=*/false, &needs);
  EXPECT_OK(needs.Check(&fs_));
  needs.Require("/a");
  EXPECT_TRUE(needs.Check(&fs_).IsNoSpace());
}

TEST(CompactionSpaceTest, InputsBecomeSstFiles) {
  CompactionSpace space(FamilyOptions(), /*output_level=*/1,
                        /*blob_path_id=*/0, /*gc_cutoff=*/0, NoValues);
  space.AddInput(0, 10, /*blob_path_mask=*/0);
  space.AddInput(1, 5, /*blob_path_mask=*/1);
  EXPECT_EQ(space.sst_bytes(), 15);
  EXPECT_EQ(space.blob_bytes(), 0);
}

TEST(CompactionSpaceTest, ValuesOnAnotherPathAreMoved) {
  CompactionSpace space(FamilyOptions(), /*output_level=*/1,
                        /*blob_path_id=*/1, /*gc_cutoff=*/0,
                        [] { return 20.0; });
  space.AddInput(0, 10, /*blob_path_mask=*/1);  // on path 0
  EXPECT_EQ(space.blob_bytes(), 200);
  space.AddInput(1, 5, /*blob_path_mask=*/2);  // on path 1
  EXPECT_EQ(space.blob_bytes(), 200);
  space.AddInput(1, 3, /*blob_path_mask=*/3);  // on both
  EXPECT_EQ(space.blob_bytes(), 260);
  EXPECT_EQ(space.sst_bytes(), 18);
}

TEST(CompactionSpaceTest, GarbageCollectionRewritesAPartOfTheValues) {
  CompactionSpace space(FamilyOptions(), /*output_level=*/1,
                        /*blob_path_id=*/0, /*gc_cutoff=*/0.25,
                        [] { return 20.0; });
  space.AddInput(0, 10, /*blob_path_mask=*/1);
  EXPECT_EQ(space.blob_bytes(), 50);
  space.AddInput(0, 10, /*blob_path_mask=*/0);
  EXPECT_EQ(space.blob_bytes(), 50);
  EXPECT_EQ(space.sst_bytes(), 20);
}

TEST(CompactionSpaceTest, ValuesOfUpperLevelsMayBeSeparated) {
  MutableCFOptions options = FamilyOptions();
  options.blob_file_starting_level = 2;
  CompactionSpace separating(options, /*output_level=*/2, /*blob_path_id=*/0,
                             /*gc_cutoff=*/0, NoValues);
  separating.AddInput(1, 10, /*blob_path_mask=*/0);
  separating.AddInput(2, 7, /*blob_path_mask=*/1);
  EXPECT_EQ(separating.sst_bytes(), 17);
  EXPECT_EQ(separating.blob_bytes(), 10);
  CompactionSpace keeping(options, /*output_level=*/1, /*blob_path_id=*/0,
                          /*gc_cutoff=*/0, NoValues);
  keeping.AddInput(0, 10, /*blob_path_mask=*/0);
  EXPECT_EQ(keeping.sst_bytes(), 10);
  EXPECT_EQ(keeping.blob_bytes(), 0);
}

TEST(CompactionSpaceTest, WithoutBlobFilesValuesGoToSstFiles) {
  MutableCFOptions options = FamilyOptions();
  options.enable_blob_files = false;
  CompactionSpace space(options, /*output_level=*/1, /*blob_path_id=*/0,
                        /*gc_cutoff=*/0.5, [] { return 20.0; });
  space.AddInput(0, 10, /*blob_path_mask=*/1);
  EXPECT_EQ(space.sst_bytes(), 110);
  space.AddInput(0, 10, /*blob_path_mask=*/2);
  EXPECT_EQ(space.sst_bytes(), 320);
  EXPECT_EQ(space.blob_bytes(), 0);
}

TEST(LayoutDirectoriesTest, DirectoriesOfAllLevelsCount) {
  using Names = std::set<std::string>;
  const std::vector<DbPath> paths = {{"/a", 0}, {"/b", 0}, {"/c", 0}};
  MutableCFOptions options = FamilyOptions();
  EXPECT_EQ(LayoutDirectories(paths, options, 4), (Names{"/a", "/b", "/c"}));
  options.level_sst_path_ids = {0};
  EXPECT_EQ(LayoutDirectories(paths, options, 4), (Names{"/a"}));
  options.level_sst_path_ids = {0, 0, 1};
  EXPECT_EQ(LayoutDirectories(paths, options, 2), (Names{"/a"}));
  EXPECT_EQ(LayoutDirectories(paths, options, 3), (Names{"/a", "/b"}));
  options.level_sst_path_ids = {0};
  options.level_blob_path_ids = {2, 1};
  EXPECT_EQ(LayoutDirectories(paths, options, 4), (Names{"/a", "/b", "/c"}));
  options.blob_file_starting_level = 1;
  EXPECT_EQ(LayoutDirectories(paths, options, 4), (Names{"/a", "/b"}));
  options.enable_blob_files = false;
  EXPECT_EQ(LayoutDirectories(paths, options, 4), (Names{"/a"}));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
