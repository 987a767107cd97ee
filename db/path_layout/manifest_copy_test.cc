//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_copy.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "db/log_reader.h"
#include "db/path_layout/manifest_test_util.h"
#include "db/version_edit.h"
#include "file/sequence_file_reader.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

class ManifestCopyTest : public ManifestTestBase {
 protected:
  ManifestCopyTest() : ManifestTestBase("manifest_copy_test") {}

  // Returns the records of a MANIFEST.
  std::vector<std::string> Records(const std::string& contents) {
    std::atomic<int> reads{0};
    log::Reader reader(
        nullptr,
        std::make_unique<SequentialFileReader>(
            std::make_unique<test::SeqStringSource>(contents, &reads),
            "contents"),
        /*reporter=*/nullptr, /*checksum=*/true, /*log_num=*/0);
    std::vector<std::string> records;
    Slice record;
    std::string scratch;
    while (reader.ReadRecord(&record, &scratch)) {
      records.push_back(record.ToString());
    }
    return records;
  }

  Status Copy(uint64_t size, const PathIdMap& path_ids) {
    return CopyManifest(
        fs_.get(), fname_, size,
        [&](uint32_t) -> const PathIdMap& { return path_ids; }, &copy_,
        &is_changed_);
  }

  std::string copy_;
  bool is_changed_ = false;
};

TEST_F(ManifestCopyTest, RecordsWithoutOtherPathsStayWhatTheyAre) {
  VersionEdit first;
  first.SetDBId("id");
  first.SetNextFile(50);
  VersionEdit file;
  file.AddFile(1, Sst(7, /*path_id=*/0));
  file.DeleteFile(0, 6);
  VersionEdit wal;
  wal.AddWal(11, WalMetadata(100));
  const uint64_t size = Write({Encode(first), Encode(file), Encode(wal)});
  ASSERT_OK(Copy(size, PathIdMap()));
  EXPECT_FALSE(is_changed_);
  EXPECT_EQ(copy_, Read());

  // Nothing changes either if each path keeps its id.
  VersionEdit other;
  other.AddFile(1, Sst(8, /*path_id=*/2));
  PathIdMap same;
  for (uint32_t id = 0; id < PathLayout::kMaxPaths; ++id) {
    same.Set(id, id);
  }
  ASSERT_OK(Copy(Write({Encode(other)}), same));
  EXPECT_FALSE(is_changed_);
  EXPECT_EQ(copy_, Read());
}

TEST_F(ManifestCopyTest, AllKindsOfFilesGetTheirNewPath) {
  FileMetaData sst = Sst(7, /*path_id=*/3);
  sst.oldest_blob_file_number = 9;
  sst.blob_refs.path_mask = 0b1010;
  VersionEdit edit;
  edit.SetColumnFamily(4);
  edit.AddFile(2, sst);
  edit.AddBlobFile(BlobFileAddition(9, 5, 600, "", "", /*path_id=*/1,
                                    /*index_bytes=*/77,
                                    /*is_collected=*/true));
  edit.AddBlobFile(BlobFileAddition(10, 5, 600, "", "", /*path_id=*/3));
  DeltaEdit deltas;
  deltas.AddFile(Delta(12, /*path_id=*/2));
  edit.SetDeltaEdit(std::move(deltas));
  edit.MarkAtomicGroup(1);
  VersionEdit unchanged;
  unchanged.SetLogNumber(5);
  const uint64_t size = Write({Encode(edit), Encode(unchanged)});

  for (const bool is_one_directory : {true, false}) {
    PathIdMap ids;
    if (!is_one_directory) {
      ids.Set(1, 2);
      ids.Set(2, 0);
      ids.Set(3, 1);
    }
    ASSERT_OK(Copy(size, ids));
    EXPECT_TRUE(is_changed_);
    const std::vector<std::string> records = Records(copy_);
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[1], Encode(unchanged));
    VersionEdit copied;
    ASSERT_OK(copied.DecodeFrom(records[0]));
    EXPECT_EQ(copied.GetColumnFamily(), 4U);
    EXPECT_TRUE(copied.IsInAtomicGroup());
    EXPECT_EQ(copied.GetRemainingEntries(), 1U);
    ASSERT_EQ(copied.GetNewFiles().size(), 1U);
    const auto& [level, file] = copied.GetNewFiles()[0];
    EXPECT_EQ(level, 2);
    EXPECT_EQ(file.fd.GetNumber(), 7U);
    EXPECT_EQ(file.fd.GetFileSize(), 1000U);
    EXPECT_EQ(file.fd.GetPathId(), is_one_directory ? 0U : 1U);
    EXPECT_EQ(PathLayout::BlobPathMask(file), is_one_directory ? 1 : 0b0110);
    EXPECT_EQ(file.epoch_number, 7U);
    ASSERT_EQ(copied.GetBlobFileAdditions().size(), 2U);
    const BlobFileAddition& blob = copied.GetBlobFileAdditions()[0];
    EXPECT_EQ(blob, BlobFileAddition(9, 5, 600, "", "",
                                     is_one_directory ? 0 : 2, 77, true));
    EXPECT_EQ(copied.GetBlobFileAdditions()[1].GetPathId(),
              is_one_directory ? 0U : 1U);
    ASSERT_NE(copied.GetDeltaEdit(), nullptr);
    EXPECT_EQ(copied.GetDeltaEdit()->files()[0], Delta(12, 0));
  }
}

// A file with an id of its own has it in each record, and the mask of an SST
// file follows the blob files.
TEST_F(ManifestCopyTest, FilesCanHaveTheirOwnPath) {
  FileMetaData sst = Sst(7, /*path_id=*/1);
  sst.oldest_blob_file_number = 10;
  VersionEdit edit;
  edit.AddFile(0, sst);
  edit.AddFile(0, Sst(8, /*path_id=*/1));
  edit.AddBlobFile(BlobFileAddition(9, 5, 600, "", "", /*path_id=*/0));
  edit.AddBlobFile(BlobFileAddition(10, 5, 600, "", "", /*path_id=*/0));
  DeltaEdit deltas;
  deltas.AddFile(Delta(12, /*path_id=*/1));
  edit.SetDeltaEdit(std::move(deltas));
  VersionEdit move;
  move.DeleteFile(0, 7);
  move.AddFile(1, sst);
  PathIdMap ids;
  ids.SetFile(7, 3);
  ids.SetFile(12, 2);
  ids.SetBlobFile(9, /*from=*/0, /*to=*/1);
  ids.SetBlobFile(10, /*from=*/0, /*to=*/2);
  ASSERT_OK(Copy(Write({Encode(edit), Encode(move)}), ids));
  EXPECT_TRUE(is_changed_);
  const std::vector<std::string> records = Records(copy_);
  ASSERT_EQ(records.size(), 2U);
  VersionEdit copied;
  ASSERT_OK(copied.DecodeFrom(records[0]));
  ASSERT_EQ(copied.GetNewFiles().size(), 2U);
  EXPECT_EQ(copied.GetNewFiles()[0].second.fd.GetPathId(), 3U);
  EXPECT_EQ(PathLayout::BlobPathMask(copied.GetNewFiles()[0].second), 0b100);
  EXPECT_EQ(copied.GetNewFiles()[1].second.fd.GetPathId(), 0U);
  ASSERT_EQ(copied.GetBlobFileAdditions().size(), 2U);
  EXPECT_EQ(copied.GetBlobFileAdditions()[0].GetPathId(), 1U);
  EXPECT_EQ(copied.GetBlobFileAdditions()[1].GetPathId(), 2U);
  ASSERT_NE(copied.GetDeltaEdit(), nullptr);
  EXPECT_EQ(copied.GetDeltaEdit()->files()[0].path_id, 2U);
  VersionEdit moved;
  ASSERT_OK(moved.DecodeFrom(records[1]));
  EXPECT_EQ(moved.GetNewFiles()[0].second.fd.GetPathId(), 3U);
}

// Each column family has its own paths.
TEST_F(ManifestCopyTest, PathsAreThoseOfTheColumnFamily) {
  std::vector<std::string> records;
  for (uint32_t family = 0; family < 2; ++family) {
    VersionEdit edit;
    edit.SetColumnFamily(family);
    edit.AddFile(0, Sst(7 + family, /*path_id=*/1));
    records.push_back(Encode(edit));
  }
  PathIdMap ids[2];
  ids[1].Set(1, 3);
  ASSERT_OK(CopyManifest(
      fs_.get(), fname_, Write(records),
      [&](uint32_t family) -> const PathIdMap& { return ids[family]; }, &copy_,
      &is_changed_));
  const std::vector<std::string> copied = Records(copy_);
  ASSERT_EQ(copied.size(), 2U);
  for (uint32_t family = 0; family < 2; ++family) {
    VersionEdit edit;
    ASSERT_OK(edit.DecodeFrom(copied[family]));
    EXPECT_EQ(edit.GetNewFiles()[0].second.fd.GetPathId(),
              family == 0 ? 0U : 3U);
  }
}

// A DB appends records to its MANIFEST while the first ones are copied.
TEST_F(ManifestCopyTest, WhatFollowsIsNotRead) {
  VersionEdit edit;
  edit.AddFile(0, Sst(7, /*path_id=*/1));
  // A record of several blocks, so that the end is in the middle of one.
  VersionEdit large;
  large.SetDBId(std::string(100000, 'x'));
  const uint64_t size = Write({Encode(large), Encode(edit)});
  const std::string complete = Read();
  ASSERT_OK(Copy(size, PathIdMap()));
  const std::string expected = copy_;
  for (const std::string& tail : {std::string(1, '\1'), std::string(6, '\0'),
                                  std::string(5000, '\7'), complete}) {
    ASSERT_OK(WriteStringToFile(Env::Default(), complete + tail, fname_));
    ASSERT_OK(Copy(size, PathIdMap()));
    EXPECT_EQ(copy_, expected);
    EXPECT_TRUE(is_changed_);
  }
}

TEST_F(ManifestCopyTest, DamageIsCorruptionWithFileAndOffset) {
  VersionEdit edit;
  edit.AddFile(0, Sst(7, /*path_id=*/1));
  VersionEdit next;
  next.SetLogNumber(8);
  const uint64_t begin = Write({Encode(edit)});
  const uint64_t size = Write({Encode(edit), Encode(next)});
  const std::string complete = Read();

  // The size is not the end of a record.
  for (const uint64_t wrong : {begin - 1, begin + 1, size - 1, size + 1}) {
    const Status s = Copy(wrong, PathIdMap());
    EXPECT_TRUE(s.IsCorruption()) << wrong << ": " << s.ToString();
    EXPECT_NE(s.ToString().find(fname_ + ", offset "), std::string::npos)
        << s.ToString();
  }
  // Each byte is covered by a checksum or is part of one.
  for (size_t i = 0; i < complete.size(); ++i) {
    std::string damaged = complete;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    ASSERT_OK(WriteStringToFile(Env::Default(), damaged, fname_));
    const Status s = Copy(size, PathIdMap());
    EXPECT_TRUE(s.IsCorruption()) << i << ": " << s.ToString();
  }
  // A record that is none.
  const Status s = Copy(Write({Encode(edit), "\177\177"}), PathIdMap());
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find("offset " + std::to_string(begin)),
            std::string::npos)
      << s.ToString();
}

TEST_F(ManifestCopyTest, FilesOfOldVersionsAreRefused) {
  FileMetaData old = Sst(7, /*path_id=*/1);
  VersionEdit edit;
  edit.AddFile(0, old);
  std::string record = Encode(edit);
  // Removes the field of the epoch number: tag, length, number.
  const std::string field{NewFileCustomTag::kEpochNumber, 1, 7};
  const size_t at = record.find(field);
  ASSERT_NE(at, std::string::npos);
  record.erase(at, field.size());
  const uint64_t size = Write({record});
  const Status s = Copy(size, PathIdMap());
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_NE(s.ToString().find("SST file #7"), std::string::npos)
      << s.ToString();
  PathIdMap same;
  same.Set(1, 1);
  ASSERT_OK(Copy(size, same));
  EXPECT_EQ(copy_, Read());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
