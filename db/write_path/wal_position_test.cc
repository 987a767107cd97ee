//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/write_path/wal_position.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/log_reader.h"
#include "db/log_writer.h"
#include "file/sequence_file_reader.h"
#include "file/writable_file_writer.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/compression.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

class FailingReporter final : public log::Reader::Reporter {
 public:
  void Corruption(size_t bytes, const Status& status,
                  uint64_t /*log_number*/) override {
    ADD_FAILURE() << bytes << " bytes: " << status.ToString();
  }
};

}  // namespace

class WalPositionTest : public testing::Test {
 protected:
  ~WalPositionTest() override {
    writer_.reset();
    fs_->DeleteFile(fname_, IOOptions(), nullptr).PermitUncheckedError();
  }

  void NewWriter(CompressionType compression) {
    std::unique_ptr<WritableFileWriter> file;
    ASSERT_OK(WritableFileWriter::Create(fs_, fname_, FileOptions(), &file,
                                         /*dbg=*/nullptr));
    writer_ = std::make_unique<log::Writer>(
        std::move(file), /*log_number=*/1, /*recycle_log_files=*/false,
        /*manual_flush=*/false, compression);
    ASSERT_OK(writer_->AddCompressionTypeRecord(WriteOptions()));
  }
  void Add(const std::string& record, SequenceNumber seqno) {
    ASSERT_OK(writer_->AddRecord(WriteOptions(), record, seqno));
  }
  void AddTimestampSizes(const UnorderedMap<uint32_t, size_t>& sizes) {
    ASSERT_OK(
        writer_->MaybeAddUserDefinedTimestampSizeRecord(WriteOptions(), sizes));
  }
  void CutBack(const WalPosition& position) {
    ASSERT_OK(writer_->CutBack(WriteOptions(), position));
    ASSERT_EQ(position.offset, writer_->file()->GetFileSize());
    uint64_t size = 0;
    ASSERT_OK(fs_->GetFileSize(fname_, IOOptions(), &size, nullptr));
    ASSERT_EQ(position.offset, size);
    ASSERT_EQ(position.offset % log::kBlockSize,
              writer_->TEST_block_offset() % log::kBlockSize);
    ASSERT_EQ(position.last_seqno, writer_->GetLastSeqnoRecorded());
  }

  // Closes the file, reads all records, and checks them.
  void CheckRecords(const std::vector<std::string>& records,
                    const UnorderedMap<uint32_t, size_t>& sizes = {}) {
    ASSERT_OK(writer_->Close(WriteOptions()));
    std::unique_ptr<FSSequentialFile> file;
    ASSERT_OK(fs_->NewSequentialFile(fname_, FileOptions(), &file, nullptr));
    FailingReporter reporter;
    log::Reader reader(
        /*info_log=*/nullptr,
        std::make_unique<SequentialFileReader>(std::move(file), fname_),
        &reporter, /*checksum=*/true, /*log_num=*/1);
    Slice record;
    std::string scratch;
    for (const std::string& expected : records) {
      ASSERT_TRUE(reader.ReadRecord(&record, &scratch,
                                    WALRecoveryMode::kAbsoluteConsistency));
      ASSERT_TRUE(record == expected) << record.size();
    }
    ASSERT_FALSE(reader.ReadRecord(&record, &scratch,
                                   WALRecoveryMode::kAbsoluteConsistency));
    ASSERT_EQ(sizes, reader.GetRecordedTimestampSize());
  }

  const std::shared_ptr<FileSystem> fs_ = FileSystem::Default();
  const std::string fname_ = test::PerThreadDBPath("wal_position_test.log");
  std::unique_ptr<log::Writer> writer_;
};

// The WAL is as if the records behind the position had never been there,
// wherever in a block it is.
TEST_F(WalPositionTest, RecordsAreTakenBack) {
  std::vector<CompressionType> compressions = {kNoCompression};
  if (StreamingCompressionTypeSupported(kZSTD)) {
    compressions.push_back(kZSTD);
  }
  std::vector<size_t> sizes = {0, 1, 3 * log::kBlockSize};
  for (size_t left = 0; left <= log::kHeaderSize + 1; ++left) {
    sizes.push_back(log::kBlockSize - log::kHeaderSize - left);
  }
  Random rnd(301);
  for (const CompressionType compression : compressions) {
    for (const size_t size : sizes) {
      if (size == 0 && compression != kNoCompression) {
        continue;
      }
      SCOPED_TRACE(size);
      const std::string first = rnd.RandomString(static_cast<int>(size));
      const std::string third = rnd.RandomString(70000);
      NewWriter(compression);
      const WalPosition begin = writer_->GetPosition();
      Add("taken back", 4);
      CutBack(begin);
      Add(first, 5);
      const WalPosition behind_first = writer_->GetPosition();
      for (const size_t taken : {10, 100000}) {
        Add(rnd.RandomString(static_cast<int>(taken)), 9);
        CutBack(behind_first);
      }
      Add("second", 6);
      Add(third, 7);
      CheckRecords({first, "second", third});
    }
  }
}

// The size of a family's timestamps is recorded again if its record was taken
// back, and only then.
TEST_F(WalPositionTest, TimestampSizesAreTakenBack) {
  NewWriter(kNoCompression);
  AddTimestampSizes({{1, 8}});
  Add("first", 5);
  const WalPosition behind_first = writer_->GetPosition();
  AddTimestampSizes({{1, 8}, {2, 8}, {3, 8}});
  Add("taken back", 6);
  CutBack(behind_first);
  AddTimestampSizes({{1, 8}, {2, 8}});
  Add("second", 6);
  const WalPosition behind_second = writer_->GetPosition();
  // This size has not reached the file yet.
  AddTimestampSizes({{3, 8}});
  CutBack(behind_second);
  AddTimestampSizes({{1, 8}, {2, 8}, {3, 8}});
  Add("third", 7);
  CheckRecords({"first", "second", "third"}, {{1, 8}, {2, 8}, {3, 8}});
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
