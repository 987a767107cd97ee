//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_layout.h"

#include "db/version_edit.h"
#include "options/cf_options.h"
#include "test_util/testharness.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

class PathLayoutTest : public testing::Test {
 protected:
  static FileMetaData MakeFile(uint32_t path_id, uint64_t oldest_blob_file,
                               uint8_t mask) {
    FileMetaData file;
    file.fd = FileDescriptor(10, path_id, 1000, 1, 2);
    file.smallest = InternalKey("a", 1, kTypeValue);
    file.largest = InternalKey("z", 2, kTypeValue);
    file.oldest_blob_file_number = oldest_blob_file;
    file.blob_refs.path_mask = mask;
    file.epoch_number = 1;
    return file;
  }

  static std::string Encode(const FileMetaData& file) {
    VersionEdit edit;
    edit.AddFile(1, file);
    std::string encoded;
    EXPECT_TRUE(edit.EncodeTo(&encoded, /* ts_sz */ 0));
    return encoded;
  }

  MutableCFOptions options_;
};

TEST_F(PathLayoutTest, WithoutLayoutBlobsBelongToPathZero) {
  ASSERT_FALSE(PathLayout::IsSet(options_));
  ASSERT_EQ(PathLayout::SstPathIdOr(options_, 3, 2), 2);
  ASSERT_EQ(PathLayout::BlobPathId(options_, 3), 0);
  ASSERT_EQ(PathLayout::ManualPathId(options_, 3, 0), 0);
  ASSERT_EQ(PathLayout::ManualPathId(options_, 3, 2), 2);
  // Without a layout no SST file is misplaced, and blobs belong to path 0.
  for (uint32_t path_id = 0; path_id < 4; ++path_id) {
    ASSERT_TRUE(PathLayout::CanMove(
        options_, MakeFile(path_id, kInvalidBlobFileNumber, 0), 5));
    ASSERT_TRUE(PathLayout::CanMove(options_, MakeFile(path_id, 7, 0), 5));
    ASSERT_FALSE(PathLayout::CanMove(options_, MakeFile(path_id, 7, 2), 5));
  }
}

TEST_F(PathLayoutTest, LastEntryServesDeeperLevels) {
  options_.level_sst_path_ids = {2, 0, 1};
  options_.level_blob_path_ids = {3};
  ASSERT_TRUE(PathLayout::HasSstLayout(options_));
  ASSERT_TRUE(PathLayout::HasBlobLayout(options_));
  const uint32_t expected[] = {2, 0, 1, 1, 1, 1, 1};
  for (int level = 0; level < 7; ++level) {
    ASSERT_EQ(PathLayout::SstPathId(options_, level), expected[level]);
    ASSERT_EQ(PathLayout::SstPathIdOr(options_, level, 3), expected[level]);
    ASSERT_EQ(PathLayout::ManualPathId(options_, level, 0), expected[level]);
    ASSERT_EQ(PathLayout::ManualPathId(options_, level, 3), 3);
    ASSERT_EQ(PathLayout::BlobPathId(options_, level), 3);
  }
}

TEST_F(PathLayoutTest, BlobPathMaskHasThePathsOfTheBlobs) {
  ASSERT_EQ(PathLayout::BlobPathMask(MakeFile(0, kInvalidBlobFileNumber, 0)),
            0);
  ASSERT_EQ(PathLayout::BlobPathMask(MakeFile(0, kInvalidBlobFileNumber, 6)),
            0);
  ASSERT_EQ(PathLayout::BlobPathMask(MakeFile(0, 7, 0)), 1);
  ASSERT_EQ(PathLayout::BlobPathMask(MakeFile(0, 7, 6)), 6);

  FileMetaData file = MakeFile(0, 7, 6);
  PathLayout::SetBlobPath(2, &file);
  ASSERT_EQ(file.blob_refs.path_mask, 4);
  PathLayout::SetBlobPath(0, &file);
  ASSERT_EQ(file.blob_refs.path_mask, 0);
  file.oldest_blob_file_number = kInvalidBlobFileNumber;
  PathLayout::SetBlobPath(2, &file);
  ASSERT_EQ(file.blob_refs.path_mask, 0);
}

TEST_F(PathLayoutTest, MovesOnlyToLevelsOfItsPaths) {
  options_.level_sst_path_ids = {0, 1};
  options_.level_blob_path_ids = {0, 0, 2};
  const FileMetaData plain = MakeFile(1, kInvalidBlobFileNumber, 0);
  ASSERT_FALSE(PathLayout::CanMove(options_, plain, 0));
  ASSERT_TRUE(PathLayout::CanMove(options_, plain, 1));
  ASSERT_TRUE(PathLayout::CanMove(options_, plain, 2));

  const FileMetaData on_0 = MakeFile(1, 7, 0);
  ASSERT_TRUE(PathLayout::CanMove(options_, on_0, 1));
  ASSERT_FALSE(PathLayout::CanMove(options_, on_0, 2));
  const FileMetaData on_2 = MakeFile(1, 7, 4);
  ASSERT_FALSE(PathLayout::CanMove(options_, on_2, 1));
  ASSERT_TRUE(PathLayout::CanMove(options_, on_2, 2));
  ASSERT_TRUE(PathLayout::CanMove(options_, on_2, 6));
  ASSERT_FALSE(PathLayout::IsMisplaced(options_, on_2, 6));
  const FileMetaData on_both = MakeFile(1, 7, 5);
  for (int level = 0; level < 7; ++level) {
    ASSERT_FALSE(PathLayout::CanMove(options_, on_both, level));
    ASSERT_TRUE(PathLayout::IsMisplaced(options_, on_both, level));
  }
}

TEST_F(PathLayoutTest, DeltaFilesFollowLevelsOrTheirOwnOption) {
  options_ = MutableCFOptions(ColumnFamilyOptions());
  ASSERT_FALSE(PathLayout::NamesPaths(options_));
  ASSERT_EQ(PathLayout::RecentDeltaPathId(options_), 0);
  ASSERT_EQ(PathLayout::SortedDeltaPathId(options_, 7), 0);
  options_.level_sst_path_ids = {2, 0, 1};
  ASSERT_EQ(PathLayout::RecentDeltaPathId(options_), 2);
  ASSERT_EQ(PathLayout::SortedDeltaPathId(options_, 7), 1);
  ASSERT_EQ(PathLayout::SortedDeltaPathId(options_, 2), 0);
  options_.delta_sorted_path_id = 3;
  ASSERT_EQ(PathLayout::RecentDeltaPathId(options_), 2);
  ASSERT_EQ(PathLayout::SortedDeltaPathId(options_, 7), 3);
  options_.level_sst_path_ids.clear();
  ASSERT_EQ(PathLayout::SortedDeltaPathId(options_, 7), 3);
  // It is no layout of SST or blob files.
  ASSERT_FALSE(PathLayout::IsSet(options_));
  ASSERT_TRUE(PathLayout::NamesPaths(options_));
}

TEST_F(PathLayoutTest, ValidateNamesTheBadPathId) {
  ASSERT_OK(PathLayout::Validate({}, {}, -1, 1));
  ASSERT_OK(PathLayout::Validate({0, 1, 2, 3}, {3}, 3, 4));
  Status s = PathLayout::Validate({0, 1, 2}, {}, -1, 2);
  ASSERT_TRUE(s.IsInvalidArgument());
  ASSERT_NE(s.ToString().find("level_sst_path_ids: path id 2 of level 2 names "
                              "no path: cf_paths (or db_paths) has 2"),
            std::string::npos)
      << s.ToString();
  s = PathLayout::Validate({0}, {0, 9}, -1, 12);
  ASSERT_TRUE(s.IsInvalidArgument());
  ASSERT_NE(s.ToString().find("level_blob_path_ids: path id 9 of level 1"),
            std::string::npos);
  ASSERT_TRUE(PathLayout::Validate({4}, {}, -1, 8).IsInvalidArgument());
  s = PathLayout::Validate({}, {0}, 2, 2);
  ASSERT_TRUE(s.IsInvalidArgument());
  ASSERT_NE(s.ToString().find("delta_sorted_path_id: path id 2 names no path"),
            std::string::npos)
      << s.ToString();
  s = PathLayout::Validate({}, {}, 4, 8);
  ASSERT_NE(s.ToString().find("delta_sorted_path_id: path id 4 is beyond"),
            std::string::npos)
      << s.ToString();
}

TEST_F(PathLayoutTest, MaskIsStoredInTheManifest) {
  for (uint8_t mask = 2; mask < 16; ++mask) {
    VersionEdit edit;
    ASSERT_OK(edit.DecodeFrom(Encode(MakeFile(1, 7, mask))));
    ASSERT_EQ(edit.GetNewFiles().size(), 1);
    const FileMetaData& file = edit.GetNewFiles()[0].second;
    ASSERT_EQ(file.blob_refs.path_mask, mask);
    ASSERT_EQ(file.fd.GetPathId(), 1);
    ASSERT_EQ(file.oldest_blob_file_number, 7);
    const std::string text = std::to_string(mask);
    ASSERT_NE(edit.DebugString().find("blob_path_mask:" + text + " "),
              std::string::npos);
    ASSERT_NE(edit.DebugJSON(1).find("\"BlobPathMask\": " + text + ","),
              std::string::npos);
  }
  // The mask of path 0 alone takes no byte, whether it is 0 or 1.
  const std::string stock = Encode(MakeFile(1, 7, 0));
  ASSERT_EQ(Encode(MakeFile(1, 7, 1)), stock);
  std::string tag;
  PutVarint32(&tag, NewFileCustomTag::kBlobPathMask);
  PutLengthPrefixedSlice(&tag, Slice("\x04", 1));
  const std::string with_mask = Encode(MakeFile(1, 7, 4));
  ASSERT_EQ(with_mask.size(), stock.size() + tag.size());
  ASSERT_EQ(stock.find(tag), std::string::npos);
  const size_t at = with_mask.find(tag);
  ASSERT_NE(at, std::string::npos);
  std::string without = with_mask;
  without.erase(at, tag.size());
  ASSERT_EQ(without, stock);
  VersionEdit edit;
  ASSERT_OK(edit.DecodeFrom(stock));
  ASSERT_EQ(edit.GetNewFiles()[0].second.blob_refs.path_mask, 0);
  ASSERT_EQ(edit.DebugString().find("blob_path_mask"), std::string::npos);
  ASSERT_EQ(edit.DebugJSON(1).find("BlobPathMask"), std::string::npos);

  for (char bad : {'\x00', '\x10', '\xff'}) {
    std::string corrupt = with_mask;
    corrupt[at + tag.size() - 1] = bad;
    ASSERT_TRUE(edit.DecodeFrom(corrupt).IsCorruption());
  }
  std::string two_bytes = without;
  tag.clear();
  PutVarint32(&tag, NewFileCustomTag::kBlobPathMask);
  PutLengthPrefixedSlice(&tag, "\x04\x04");
  two_bytes.insert(at, tag);
  ASSERT_TRUE(edit.DecodeFrom(two_bytes).IsCorruption());
  // A reader that does not know the field may skip it: it must only refuse blob
  // files on other paths, and these have a field of their own.
  ASSERT_EQ(NewFileCustomTag::kBlobPathMask &
                NewFileCustomTag::kCustomTagNonSafeIgnoreMask,
            0);
}

TEST_F(PathLayoutTest, PathIdsBeyondTheListMeanTheLastPath) {
  const std::vector<DbPath> paths = {{"/fast", 0}, {"/slow", 0}};
  ASSERT_EQ(PathLayout::Directory(paths, 0), "/fast");
  ASSERT_EQ(PathLayout::Directory(paths, 1), "/slow");
  ASSERT_EQ(PathLayout::Directory(paths, 3), "/slow");
  ASSERT_EQ(PathLayout::BlobFileName(paths, 12, 1), "/slow/000012.blob");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
