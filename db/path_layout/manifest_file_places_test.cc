//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_file_places.h"

#include <memory>
#include <string>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/log_writer.h"
#include "db/path_layout/manifest_records.h"
#include "db/version_edit.h"
#include "file/writable_file_writer.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class ManifestFilePlacesTest : public testing::Test {
 protected:
  ManifestFilePlacesTest()
      : fs_(FileSystem::Default()),
        fname_(test::PerThreadDBPath("manifest_file_places_test")) {}
  ~ManifestFilePlacesTest() override {
    fs_->DeleteFile(fname_, IOOptions(), nullptr).PermitUncheckedError();
  }

  static FileMetaData Sst(uint64_t number, uint32_t path_id) {
    FileMetaData file;
    file.fd = FileDescriptor(number, path_id, /*file_size=*/1000,
                             /*smallest_seqno=*/1, /*largest_seqno=*/9);
    file.smallest = InternalKey("a", 9, kTypeValue);
    file.largest = InternalKey("z", 1, kTypeValue);
    file.epoch_number = number;
    return file;
  }
  static DeltaFileDescription Delta(uint64_t number, uint32_t path_id) {
    DeltaFileDescription file;
    file.number = number;
    file.path_id = path_id;
    file.size = 500;
    file.kind = DeltaFileDescription::Kind::kOperands;
    file.tier = DeltaFileDescription::Tier::kFlushed;
    file.first_epoch = file.last_epoch = 3;
    file.smallest = "a";
    file.largest = "z";
    file.smallest_seq = 1;
    file.largest_seq = 9;
    file.num_entries = 4;
    file.raw_bytes = 100;
    return file;
  }
  void Add(const VersionEdit& edit) {
    std::string record;
    ASSERT_TRUE(edit.EncodeTo(&record, /*ts_sz=*/0));
    records_.push_back(record);
  }
  uint64_t Write() {
    std::unique_ptr<WritableFileWriter> file;
    EXPECT_OK(
        WritableFileWriter::Create(fs_, fname_, FileOptions(), &file, nullptr));
    log::Writer writer(std::move(file), /*log_number=*/0,
                       /*recycle_log_files=*/false);
    for (const std::string& record : records_) {
      EXPECT_OK(writer.AddRecord(WriteOptions(), record));
    }
    EXPECT_OK(writer.Close(WriteOptions()));
    uint64_t size = 0;
    EXPECT_OK(fs_->GetFileSize(fname_, IOOptions(), &size, nullptr));
    return size;
  }

  const std::shared_ptr<FileSystem> fs_;
  const std::string fname_;
  std::vector<std::string> records_;
};

TEST_F(ManifestFilePlacesTest, FilesAtTheEnd) {
  VersionEdit first;
  FileMetaData sst = Sst(10, 1);
  sst.oldest_blob_file_number = 20;
  sst.blob_refs.path_mask = 0b110;
  first.AddFile(0, sst);
  first.AddFile(0, Sst(11, 0));
  first.AddBlobFile(BlobFileAddition(20, 5, 600, "", "", /*path_id=*/2));
  DeltaEdit deltas;
  deltas.AddFile(Delta(30, /*path_id=*/3));
  DeltaFileDescription sorted = Delta(31, /*path_id=*/1);
  sorted.tier = DeltaFileDescription::Tier::kSorted;
  sorted.first_epoch = sorted.last_epoch = 0;
  deltas.AddFile(sorted);
  first.SetDeltaEdit(std::move(deltas));
  Add(first);

  VersionEdit create;
  create.SetColumnFamily(4);
  create.AddColumnFamily("four");
  Add(create);
  VersionEdit flush;
  flush.SetColumnFamily(4);
  flush.AddFile(0, Sst(12, 0));
  Add(flush);

  // File 10 moves, 11 is deleted.
  VersionEdit move;
  move.DeleteFile(0, 10);
  move.AddFile(2, sst);
  move.DeleteFile(0, 11);
  Add(move);

  ManifestColumnFamilies families;
  uint64_t size = Write();
  ASSERT_OK(ReadManifestFilePlaces(fs_.get(), fname_, size, &families));
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[0].name, "default");
  ASSERT_EQ(families[0].files.size(), 4U);
  const FileInManifest& moved = families[0].files[10];
  EXPECT_EQ(moved.type, kTableFile);
  EXPECT_EQ(moved.path_id, 1U);
  EXPECT_EQ(moved.level, 2);
  EXPECT_EQ(moved.blob_path_mask, 0b110);
  EXPECT_EQ(moved.oldest_blob_file, 20U);
  EXPECT_EQ(families[0].files[20].type, kBlobFile);
  EXPECT_EQ(families[0].files[20].path_id, 2U);
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
  Add(drop);
  size = Write();
  ASSERT_OK(ReadManifestFilePlaces(fs_.get(), fname_, size, &families));
  EXPECT_EQ(families.size(), 1U);
}

TEST_F(ManifestFilePlacesTest, DamageAndErrorsOfTheCaller) {
  VersionEdit edit;
  edit.AddFile(0, Sst(10, 1));
  Add(edit);
  records_.push_back("\177\177");
  uint64_t size = Write();
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

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
