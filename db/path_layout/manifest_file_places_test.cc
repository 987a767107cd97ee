//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_file_places.h"

#include <string>
#include <utility>
#include <vector>

#include "db/path_layout/manifest_records.h"
#include "db/path_layout/manifest_test_util.h"
#include "port/stack_trace.h"

namespace ROCKSDB_NAMESPACE {

class ManifestFilePlacesTest : public ManifestTestBase {
 protected:
  ManifestFilePlacesTest() : ManifestTestBase("manifest_file_places_test") {}
};

TEST_F(ManifestFilePlacesTest, FilesAtTheEnd) {
  std::vector<std::string> records;
  VersionEdit first;
  FileMetaData sst = Sst(10, 1);
  sst.oldest_blob_file_number = 20;
  sst.blob_refs.path_mask = 0b110;
  first.AddFile(0, sst);
  first.AddFile(0, Sst(11, 0));
  first.AddBlobFile(BlobFileAddition(20, 5, 600, "", "", /*path_id=*/2));
  first.AddBlobFile(BlobFileAddition(21, 5, 600, "", "", /*path_id=*/0,
                                     /*index_bytes=*/100, /*collected=*/true,
                                     HotMark::WithHome(2)));
  DeltaEdit deltas;
  deltas.AddFile(Delta(30, /*path_id=*/3));
  DeltaFileDescription sorted = Delta(31, /*path_id=*/1);
  sorted.tier = DeltaFileDescription::Tier::kSorted;
  sorted.first_epoch = sorted.last_epoch = 0;
  deltas.AddFile(sorted);
  first.SetDeltaEdit(std::move(deltas));
  records.push_back(Encode(first));

  VersionEdit create;
  create.SetColumnFamily(4);
  create.AddColumnFamily("four");
  records.push_back(Encode(create));
  VersionEdit flush;
  flush.SetColumnFamily(4);
  flush.AddFile(0, Sst(12, 0));
  records.push_back(Encode(flush));

  // File 10 moves, 11 is deleted.
  VersionEdit move;
  move.DeleteFile(0, 10);
  move.AddFile(2, sst);
  move.DeleteFile(0, 11);
  records.push_back(Encode(move));

  ManifestColumnFamilies families;
  uint64_t size = Write(records);
  ASSERT_OK(ReadManifestFilePlaces(fs_.get(), fname_, size, &families));
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[0].name, "default");
  ASSERT_EQ(families[0].files.size(), 5U);
  const FileInManifest& moved = families[0].files[10];
  EXPECT_EQ(moved.type, kTableFile);
  EXPECT_EQ(moved.path_id, 1U);
  EXPECT_EQ(moved.level, 2);
  EXPECT_EQ(moved.blob_path_mask, 0b110);
  EXPECT_EQ(moved.oldest_blob_file, 20U);
  EXPECT_EQ(families[0].files[20].type, kBlobFile);
  EXPECT_EQ(families[0].files[20].path_id, 2U);
  EXPECT_FALSE(families[0].files[20].hot.is_hot());
  EXPECT_EQ(families[0].files[21].path_id, 0U);
  EXPECT_EQ(families[0].files[21].hot, HotMark::WithHome(2));
  EXPECT_EQ(families[0].files[30].type, kDeltaFile);
  EXPECT_EQ(families[0].files[30].path_id, 3U);
  EXPECT_FALSE(families[0].files[30].is_sorted);
  EXPECT_EQ(families[0].files[31].type, kDeltaFile);
  EXPECT_EQ(families[0].files[31].path_id, 1U);
  EXPECT_TRUE(families[0].files[31].is_sorted);
  EXPECT_EQ(families[4].name, "four");
  EXPECT_EQ(families[4].files.count(12), 1U);

  VersionEdit drop;
  drop.SetColumnFamily(4);
  drop.DropColumnFamily();
  records.push_back(Encode(drop));
  size = Write(records);
  ASSERT_OK(ReadManifestFilePlaces(fs_.get(), fname_, size, &families));
  EXPECT_EQ(families.size(), 1U);
}

TEST_F(ManifestFilePlacesTest, DamageAndErrorsOfTheCaller) {
  VersionEdit edit;
  edit.AddFile(0, Sst(10, 1));
  const uint64_t size = Write({Encode(edit), "\177\177"});
  ManifestColumnFamilies families;
  Status s = ReadManifestFilePlaces(fs_.get(), fname_, size, &families);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find(fname_ + ", offset "), std::string::npos)
      << s.ToString();
  s = ReadManifestFilePlaces(fs_.get(), fname_, size + 1, &families);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  int calls = 0;
  s = ForEachManifestRecord(fs_.get(), fname_, size, [&](const Slice&) {
    ++calls;
    return Status::Aborted("enough");
  });
  EXPECT_TRUE(s.IsAborted()) << s.ToString();
  EXPECT_EQ(calls, 1);
  EXPECT_NOK(ReadManifestFilePlaces(fs_.get(), fname_ + "_", size, &families));
}

TEST_F(ManifestFilePlacesTest, EndThatARecoveryReads) {
  std::vector<std::string> records;
  VersionEdit edit;
  edit.AddFile(0, Sst(10, 1));
  records.push_back(Encode(edit));
  const uint64_t end = Write(records);
  uint64_t found = 0;
  ASSERT_OK(FindEndOfManifest(fs_.get(), fname_, &found));
  EXPECT_EQ(found, end);

  // The first edit of a group, with the second one torn, or not there.
  VersionEdit grouped;
  grouped.AddFile(0, Sst(11, 1));
  grouped.MarkAtomicGroup(/*remaining_entries=*/1);
  records.push_back(Encode(grouped));
  const uint64_t end_of_first = Write(records);
  ASSERT_OK(FindEndOfManifest(fs_.get(), fname_, &found));
  EXPECT_EQ(found, end);
  VersionEdit second;
  second.AddFile(0, Sst(12, 1));
  second.MarkAtomicGroup(/*remaining_entries=*/0);
  records.push_back(Encode(second));
  const uint64_t end_of_group = Write(records);
  std::string contents;
  ASSERT_OK(ReadFileToString(fs_.get(), fname_, &contents));
  for (const uint64_t size :
       {end_of_first, end_of_first + 3, end_of_first + 9, end_of_group - 1}) {
    ASSERT_OK(WriteStringToFile(fs_.get(), contents.substr(0, size), fname_));
    ASSERT_OK(FindEndOfManifest(fs_.get(), fname_, &found));
    EXPECT_EQ(found, end) << size;
    ManifestColumnFamilies families;
    ASSERT_OK(ReadManifestFilePlaces(fs_.get(), fname_, found, &families));
    EXPECT_EQ(families[0].files.size(), 1U);
  }
  ASSERT_OK(WriteStringToFile(fs_.get(), contents, fname_));
  ASSERT_OK(FindEndOfManifest(fs_.get(), fname_, &found));
  EXPECT_EQ(found, end_of_group);

  // Damage is not an end.
  contents[end / 2] ^= 1;
  ASSERT_OK(WriteStringToFile(fs_.get(), contents, fname_));
  const Status s = FindEndOfManifest(fs_.get(), fname_, &found);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find(fname_), std::string::npos) << s.ToString();
  EXPECT_NOK(FindEndOfManifest(fs_.get(), fname_ + "_", &found));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
