//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_test_util.h"

#include <utility>

#include "db/log_writer.h"
#include "file/writable_file_writer.h"
#include "rocksdb/env.h"

namespace ROCKSDB_NAMESPACE {

ManifestTestBase::ManifestTestBase(const std::string& name)
    : fs_(FileSystem::Default()), fname_(test::PerThreadDBPath(name)) {}

ManifestTestBase::~ManifestTestBase() {
  fs_->DeleteFile(fname_, IOOptions(), nullptr).PermitUncheckedError();
}

FileMetaData ManifestTestBase::Sst(uint64_t number, uint32_t path_id) {
  FileMetaData file;
  file.fd = FileDescriptor(number, path_id, /*file_size=*/1000,
                           /*smallest_seqno=*/1, /*largest_seqno=*/9);
  file.smallest = InternalKey("a", 9, kTypeValue);
  file.largest = InternalKey("z", 1, kTypeValue);
  file.epoch_number = number;
  return file;
}

DeltaFileDescription ManifestTestBase::Delta(uint64_t number,
                                             uint32_t path_id) {
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

std::string ManifestTestBase::Encode(const VersionEdit& edit) {
  std::string record;
  EXPECT_TRUE(edit.EncodeTo(&record, /*ts_sz=*/0));
  return record;
}

uint64_t ManifestTestBase::Write(const std::vector<std::string>& records) {
  std::unique_ptr<WritableFileWriter> file;
  EXPECT_OK(
      WritableFileWriter::Create(fs_, fname_, FileOptions(), &file, nullptr));
  log::Writer writer(std::move(file), /*log_number=*/0,
                     /*recycle_log_files=*/false);
  for (const std::string& record : records) {
    EXPECT_OK(writer.AddRecord(WriteOptions(), record));
  }
  EXPECT_OK(writer.Close(WriteOptions()));
  uint64_t size = 0;
  EXPECT_OK(fs_->GetFileSize(fname_, IOOptions(), &size, nullptr));
  return size;
}

std::string ManifestTestBase::Read() {
  std::string contents;
  EXPECT_OK(ReadFileToString(fs_.get(), fname_, &contents));
  return contents;
}

}  // namespace ROCKSDB_NAMESPACE
