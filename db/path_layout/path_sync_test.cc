//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_sync.h"

#include "db/blob/blob_file_addition.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/path_layout/path_test_util.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

BlobFileAddition BlobFile(uint64_t number, uint32_t path_id) {
  return BlobFileAddition(number, /*total_blob_count=*/1,
                          /*total_blob_bytes=*/100, /*checksum_method=*/"",
                          /*checksum_value=*/"", path_id);
}

void AddTable(VersionEdit* edit, uint64_t number, uint32_t path_id) {
  FileMetaData file;
  file.fd = FileDescriptor(number, path_id, 1000);
  file.smallest = InternalKey("a", 1, kTypeValue);
  file.largest = InternalKey("b", 1, kTypeValue);
  file.fd.smallest_seqno = 1;
  file.fd.largest_seqno = 1;
  file.epoch_number = 1;
  edit->AddFile(1, file);
}

}  // namespace

class PathSyncTest : public PathTestBase {
 public:
  PathSyncTest() : PathTestBase("path_sync_test") {}

  ColumnFamilyData* Family(int family) {
    return static_cast_with_check<ColumnFamilyHandleImpl>(Handle(family))
        ->cfd();
  }
};

TEST_F(PathSyncTest, ContainsThePathsThatWereAdded) {
  OutputDirectories outputs;
  EXPECT_TRUE(outputs.empty());
  outputs.Add(3);
  EXPECT_FALSE(outputs.empty());
  EXPECT_TRUE(outputs.Contains(3));
  EXPECT_FALSE(outputs.Contains(0));
  outputs.Add({BlobFile(7, 0), BlobFile(8, 2)});
  EXPECT_TRUE(outputs.Contains(0));
  EXPECT_FALSE(outputs.Contains(1));
  EXPECT_TRUE(outputs.Contains(2));
  outputs.Remove(0);
  outputs.Remove(2);
  outputs.Remove(3);
  EXPECT_TRUE(outputs.empty());
}

TEST_F(PathSyncTest, AddsTheOutputsOfAnEdit) {
  VersionEdit edit;
  AddTable(&edit, 5, 1);
  AddTable(&edit, 6, 1);
  edit.AddBlobFile(BlobFile(7, 3));
  edit.DeleteFile(0, 4);
  OutputDirectories outputs;
  outputs.AddOutputs(edit);
  EXPECT_FALSE(outputs.Contains(0));
  EXPECT_TRUE(outputs.Contains(1));
  EXPECT_FALSE(outputs.Contains(2));
  EXPECT_TRUE(outputs.Contains(3));
}

TEST_F(PathSyncTest, SyncsEachDirectoryOnce) {
  Options options = PathOptions("a", 4, {0}, {0});
  // Path 3 is path 1 under another id.
  options.cf_paths[3].path = options.cf_paths[1].path;
  Options other = PathOptions("b", 1, {0}, {0});
  other.cf_paths.push_back(options.cf_paths[0]);
  OpenNew({options, other});

  fs_->TakeSyncCounts();
  OutputDirectories outputs;
  outputs.Add(0);
  outputs.Add(1);
  outputs.Add(3);
  ASSERT_OK(outputs.Sync(*Family(0)));
  std::map<std::string, int> expected{{PathOf("a", 0), 1}, {PathOf("a", 1), 1}};
  EXPECT_EQ(fs_->TakeSyncCounts(), expected);

  // Directories that were synced before are skipped, across families as well.
  autovector<std::string> synced{PathOf("a", 1)};
  ASSERT_OK(outputs.Sync(*Family(0), IOOptions(), &synced));
  expected = {{PathOf("a", 0), 1}};
  EXPECT_EQ(fs_->TakeSyncCounts(), expected);
  OutputDirectories others;
  others.Add(0);
  others.Add(1);
  ASSERT_OK(others.Sync(*Family(1), IOOptions(), &synced));
  expected = {{PathOf("b", 0), 1}};
  EXPECT_EQ(fs_->TakeSyncCounts(), expected);

  ASSERT_OK(OutputDirectories().Sync(*Family(0)));
  EXPECT_TRUE(fs_->TakeSyncCounts().empty());
}

TEST_F(PathSyncTest, SyncReturnsErrors) {
  OpenNew({PathOptions("a", 2, {0}, {1})});
  OutputDirectories outputs;
  outputs.Add(1);
  fs_->PowerOff();
  EXPECT_NOK(outputs.Sync(*Family(0)));
  fs_->SetFilesystemActive(true);
  EXPECT_OK(outputs.Sync(*Family(0)));
}

TEST_F(PathSyncTest, FlushedMaskHasThePathsOfAllReferences) {
  // A family that already has a blob file on path 2.
  Options options = PathOptions("a", 4, {0}, {2});
  OpenNew({options});
  PutRange(0, 0, 1);
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  VersionStorageInfo* before = Family(0)->current()->storage_info();
  ASSERT_EQ(before->GetBlobFiles().size(), 1u);
  const uint64_t earlier = before->GetBlobFiles()[0]->GetBlobFileNumber();

  FileMetaData file;
  EXPECT_EQ(FlushedBlobPathMask(file, {}, {}, *before), 0);
  // Without references the mask is 0, whatever the edit adds.
  EXPECT_EQ(FlushedBlobPathMask(file, {BlobFile(100, 1)}, {}, *before), 0);

  file.oldest_blob_file_number = 100;
  EXPECT_EQ(FlushedBlobPathMask(file, {BlobFile(100, 0)}, {}, *before), 0);
  EXPECT_EQ(FlushedBlobPathMask(file, {BlobFile(100, 1)}, {}, *before), 2);
  EXPECT_EQ(FlushedBlobPathMask(file, {BlobFile(100, 0), BlobFile(101, 1)},
                                {BlobFile(102, 3)}, *before),
            1 | 2 | 8);

  // The SST file refers to the earlier blob file.
  file.oldest_blob_file_number = earlier;
  EXPECT_EQ(FlushedBlobPathMask(file, {}, {}, *before), 4);
  EXPECT_EQ(FlushedBlobPathMask(file, {BlobFile(100, 1)}, {}, *before), 2 | 4);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
