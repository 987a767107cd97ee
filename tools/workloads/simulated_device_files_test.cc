// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/simulated_device_files.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/mock_time_env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

// Files that say that they use direct I/O, but do not.
class DirectWritableFile : public FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  bool use_direct_io() const override { return true; }
  IOStatus PositionedAppend(const Slice& data, uint64_t /*offset*/,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    return target()->Append(data, options, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t /*offset*/,
                            const IOOptions& options,
                            const DataVerificationInfo& /*info*/,
                            IODebugContext* dbg) override {
    return target()->Append(data, options, dbg);
  }
};

class DirectRandomRWFile : public FSRandomRWFileOwnerWrapper {
 public:
  using FSRandomRWFileOwnerWrapper::FSRandomRWFileOwnerWrapper;
  bool use_direct_io() const override { return true; }
};

class NoSizeFile : public FSRandomAccessFileOwnerWrapper {
 public:
  using FSRandomAccessFileOwnerWrapper::FSRandomAccessFileOwnerWrapper;
  IOStatus GetFileSize(uint64_t* /*size*/) override {
    return IOStatus::NotSupported("GetFileSize");
  }
};

}  // namespace

// A latency is 100 us for reads, 50 for writes, 30 for syncs; a microsecond
// transfers 1000 bytes.
class SimulatedDeviceFilesTest : public testing::Test {
 public:
  SimulatedDeviceFilesTest()
      : clock_(SystemClock::Default()),
        dir_(test::PerThreadDBPath("simulated_device_files_test")),
        device_(DeviceProfile{100, 50, 1000, 1000, 0, 0, /*queue_depth=*/2,
                              /*sync_us=*/30},
                &clock_),
        fault_fs_(
            std::make_shared<FaultInjectionTestFS>(FileSystem::Default())) {
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
    EXPECT_OK(Env::Default()->CreateDirIfMissing(dir_));
    for (int i = 0; i < 200'000; ++i) {
      contents_.push_back(static_cast<char>('a' + i % 23));
    }
  }
  ~SimulatedDeviceFilesTest() override {
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
  }

 protected:
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  // Returns the microseconds since the last call.
  uint64_t Elapsed() {
    const uint64_t now = clock_.NowMicros();
    return now - std::exchange(last_, now);
  }

  // Makes a file of `size` bytes and opens it.
  std::unique_ptr<SimulatedRandomAccessFile> RandomAccess(
      size_t size, bool has_size = true) {
    EXPECT_OK(WriteStringToFile(Env::Default(), contents_.substr(0, size),
                                Path("file")));
    std::unique_ptr<FSRandomAccessFile> file;
    EXPECT_OK(fs()->NewRandomAccessFile(Path("file"), FileOptions(), &file,
                                        /*dbg=*/nullptr));
    if (!has_size) {
      file = std::make_unique<NoSizeFile>(std::move(file));
    }
    return std::make_unique<SimulatedRandomAccessFile>(std::move(file),
                                                       &device_, &reads_);
  }

  std::unique_ptr<SimulatedWritableFile> Writable(bool direct = false,
                                                  FileSystem* fs = nullptr) {
    std::unique_ptr<FSWritableFile> file;
    EXPECT_OK((fs == nullptr ? this->fs() : fs)
                  ->NewWritableFile(Path("file"), FileOptions(), &file,
                                    /*dbg=*/nullptr));
    if (direct) {
      file = std::make_unique<DirectWritableFile>(std::move(file));
    }
    return std::make_unique<SimulatedWritableFile>(std::move(file), &device_);
  }

  std::string Contents() {
    std::string data;
    EXPECT_OK(ReadFileToString(Env::Default(), Path("file"), &data));
    return data;
  }

  static FileSystem* fs() { return FileSystem::Default().get(); }
  SimulatedDevice::Stats Stats() const { return device_.device().GetStats(); }

  MockSystemClock clock_;
  const std::string dir_;
  TimedDevice device_;
  SimulatedAsyncReads reads_;
  std::shared_ptr<FaultInjectionTestFS> fault_fs_;
  std::string contents_;
  uint64_t last_ = 0;
  const IOOptions io_;
};

TEST_F(SimulatedDeviceFilesTest, ReadsTakeTheirTimeAndGetTheirBytes) {
  const auto file = RandomAccess(10'000);
  std::string scratch(20'000, '\0');
  Slice result;
  ASSERT_OK(file->Read(1000, 2000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(result.ToString(), contents_.substr(1000, 2000));
  EXPECT_EQ(Elapsed(), 102u);
  // At the end of the file.
  ASSERT_OK(file->Read(9000, 5000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(result.ToString(), contents_.substr(9000, 1000));
  EXPECT_EQ(Elapsed(), 101u);
  // Behind it.
  for (const uint64_t offset : {uint64_t{10'000}, uint64_t{1} << 40}) {
    ASSERT_OK(file->Read(offset, 10, io_, &result, scratch.data(), nullptr));
    EXPECT_TRUE(result.empty());
    EXPECT_EQ(Elapsed(), 0u);
  }
  EXPECT_EQ(Stats().reads, 2u);
  EXPECT_EQ(Stats().read_bytes, 3000u);
}

TEST_F(SimulatedDeviceFilesTest, AFileMayGrow) {
  const auto file = RandomAccess(1000);
  std::string scratch(20'000, '\0');
  Slice result;
  ASSERT_OK(file->Read(0, 2000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(result.size(), 1000u);
  EXPECT_EQ(Elapsed(), 101u);
  std::unique_ptr<FSWritableFile> writer;
  ASSERT_OK(
      fs()->ReopenWritableFile(Path("file"), FileOptions(), &writer, nullptr));
  ASSERT_OK(writer->Append(contents_.substr(1000, 4000), io_, nullptr));
  ASSERT_OK(writer->Close(io_, nullptr));
  ASSERT_OK(file->Read(0, 20'000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(result.ToString(), contents_.substr(0, 5000));
  EXPECT_EQ(Elapsed(), 105u);
}

TEST_F(SimulatedDeviceFilesTest, AReadOfAFileWithoutASizeCostsWhatItAsksFor) {
  const auto file = RandomAccess(1000, /*has_size=*/false);
  std::string scratch(2000, '\0');
  Slice result;
  ASSERT_OK(file->Read(0, 2000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(result.ToString(), contents_.substr(0, 1000));
  EXPECT_EQ(Elapsed(), 102u);
}

TEST_F(SimulatedDeviceFilesTest, RequestsOfMultiReadArriveTogether) {
  const auto file = RandomAccess(10'000);
  constexpr size_t kReads = 4;
  std::string scratch[kReads];
  FSReadRequest requests[kReads];
  for (size_t i = 0; i < kReads; ++i) {
    scratch[i].resize(1000);
    requests[i].offset = 2000 * i;
    requests[i].len = 1000;
    requests[i].scratch = scratch[i].data();
  }
  requests[3].offset = 9500;
  ASSERT_OK(file->MultiRead(requests, kReads, io_, nullptr));
  for (size_t i = 0; i < kReads; ++i) {
    ASSERT_OK(requests[i].status);
    EXPECT_EQ(requests[i].result.ToString(),
              contents_.substr(requests[i].offset, i == 3 ? 500 : 1000));
  }
  // Two at a time: from 0 to 101 and from 1 to 102, from 101 to 202 and from
  // 102 to 202.5.
  EXPECT_EQ(Elapsed(), 203u);
  EXPECT_EQ(Stats().reads, 4u);
  EXPECT_EQ(Stats().read_bytes, 3500u);
}

TEST_F(SimulatedDeviceFilesTest, ThereIsNoPrefetch) {
  const auto file = RandomAccess(10'000);
  EXPECT_TRUE(file->Prefetch(0, 1000, io_, nullptr).IsNotSupported());
  EXPECT_EQ(Elapsed(), 0u);
  EXPECT_EQ(Stats().requests(), 0u);
}

TEST_F(SimulatedDeviceFilesTest, SequentialReadsHaveAReadAhead) {
  ASSERT_OK(WriteStringToFile(Env::Default(), contents_, Path("file")));
  std::unique_ptr<FSSequentialFile> base;
  ASSERT_OK(
      fs()->NewSequentialFile(Path("file"), FileOptions(), &base, nullptr));
  SimulatedSequentialFile file(std::move(base), &device_);
  std::string scratch(200'000, '\0');
  Slice result;
  std::string data;
  // The first window ends at 131,072, the second one at 259,072.
  const uint64_t expected[] = {132, 32, 32, 32, 132, 32, 8, 0, 0};
  for (const uint64_t micros : expected) {
    ASSERT_OK(file.Read(32'000, io_, &result, scratch.data(), nullptr));
    data += result.ToString();
    EXPECT_EQ(Elapsed(), micros) << data.size();
  }
  EXPECT_EQ(data, contents_);
  EXPECT_EQ(Stats().reads, 2u);
  EXPECT_EQ(Stats().read_bytes, contents_.size());
}

TEST_F(SimulatedDeviceFilesTest, SkippedBytesAreNotRead) {
  ASSERT_OK(WriteStringToFile(Env::Default(), contents_, Path("file")));
  std::unique_ptr<FSSequentialFile> base;
  ASSERT_OK(
      fs()->NewSequentialFile(Path("file"), FileOptions(), &base, nullptr));
  SimulatedSequentialFile file(std::move(base), &device_);
  std::string scratch(200'000, '\0');
  Slice result;
  ASSERT_OK(file.Read(1000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(Elapsed(), 101u);
  ASSERT_OK(file.Skip(1000));
  EXPECT_EQ(Elapsed(), 0u);
  ASSERT_OK(file.Read(1000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(result.ToString(), contents_.substr(2000, 1000));
  EXPECT_EQ(Elapsed(), 1u);
  // Behind the window.
  ASSERT_OK(file.Skip(150'000));
  ASSERT_OK(file.Read(1000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(result.ToString(), contents_.substr(153'000, 1000));
  EXPECT_EQ(Elapsed(), 101u);
}

TEST_F(SimulatedDeviceFilesTest, BufferedWritesArePaidBySyncs) {
  const auto file = Writable();
  ASSERT_OK(file->Append(contents_.substr(0, 4000), io_, nullptr));
  ASSERT_OK(file->Append(contents_.substr(4000, 1000), io_,
                         DataVerificationInfo(), nullptr));
  ASSERT_OK(file->Flush(io_, nullptr));
  EXPECT_EQ(Elapsed(), 0u);
  ASSERT_OK(file->Sync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 50u + 5 + 30);
  // Nothing is left to write.
  ASSERT_OK(file->Fsync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 30u);
  ASSERT_OK(file->Append(contents_.substr(5000, 2000), io_, nullptr));
  ASSERT_OK(file->Fsync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 50u + 2 + 30);
  ASSERT_OK(file->Close(io_, nullptr));
  EXPECT_EQ(Elapsed(), 0u);
  EXPECT_EQ(Contents(), contents_.substr(0, 7000));
  EXPECT_EQ(Stats().writes, 2u);
  EXPECT_EQ(Stats().write_bytes, 7000u);
  EXPECT_EQ(Stats().syncs, 3u);
}

TEST_F(SimulatedDeviceFilesTest, ACloseWritesWhatNoSyncHasWritten) {
  const auto file = Writable();
  ASSERT_OK(file->Append(contents_.substr(0, 3000), io_, nullptr));
  ASSERT_OK(file->Close(io_, nullptr));
  EXPECT_EQ(Elapsed(), 53u);
  EXPECT_EQ(Contents(), contents_.substr(0, 3000));
  EXPECT_EQ(Stats().syncs, 0u);
}

TEST_F(SimulatedDeviceFilesTest, RangeSyncsWaitForTheOneBefore) {
  const auto file = Writable();
  ASSERT_OK(file->Append(contents_.substr(0, 5000), io_, nullptr));
  ASSERT_OK(file->RangeSync(0, 4000, io_, nullptr));
  EXPECT_EQ(Elapsed(), 0u);
  ASSERT_OK(file->Append(contents_.substr(5000, 5000), io_, nullptr));
  // It waits for 4000 bytes, and starts the other 6000.
  ASSERT_OK(file->RangeSync(4000, 10'000, io_, nullptr));
  EXPECT_EQ(Elapsed(), 54u);
  ASSERT_OK(file->Close(io_, nullptr));
  EXPECT_EQ(Elapsed(), 56u);
  EXPECT_EQ(Stats().writes, 2u);
  EXPECT_EQ(Stats().write_bytes, 10'000u);
  EXPECT_EQ(Contents(), contents_.substr(0, 10'000));
}

TEST_F(SimulatedDeviceFilesTest, ASyncWaitsForRangeSyncs) {
  const auto file = Writable();
  ASSERT_OK(file->Append(contents_.substr(0, 5000), io_, nullptr));
  ASSERT_OK(file->RangeSync(0, 5000, io_, nullptr));
  ASSERT_OK(file->Sync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 55u + 30);
  ASSERT_OK(file->Close(io_, nullptr));
}

TEST_F(SimulatedDeviceFilesTest, DirectWritesPayAtOnce) {
  const auto file = Writable(/*direct=*/true);
  ASSERT_TRUE(file->use_direct_io());
  ASSERT_OK(file->Append(contents_.substr(0, 1000), io_, nullptr));
  EXPECT_EQ(Elapsed(), 51u);
  ASSERT_OK(file->Append(contents_.substr(1000, 2000), io_,
                         DataVerificationInfo(), nullptr));
  EXPECT_EQ(Elapsed(), 52u);
  ASSERT_OK(
      file->PositionedAppend(contents_.substr(3000, 3000), 3000, io_, nullptr));
  EXPECT_EQ(Elapsed(), 53u);
  ASSERT_OK(file->PositionedAppend(contents_.substr(6000, 4000), 6000, io_,
                                   DataVerificationInfo(), nullptr));
  EXPECT_EQ(Elapsed(), 54u);
  ASSERT_OK(file->RangeSync(0, 10'000, io_, nullptr));
  EXPECT_EQ(Elapsed(), 0u);
  ASSERT_OK(file->Sync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 30u);
  ASSERT_OK(file->Close(io_, nullptr));
  EXPECT_EQ(Elapsed(), 0u);
  EXPECT_EQ(Contents(), contents_.substr(0, 10'000));
  EXPECT_EQ(Stats().writes, 4u);
}

TEST_F(SimulatedDeviceFilesTest, ErrorsOfWritesAreReturned) {
  const auto file = Writable(/*direct=*/false, fault_fs_.get());
  ASSERT_OK(file->Append(contents_.substr(0, 1000), io_, nullptr));
  fault_fs_->SetFilesystemActive(false, IOStatus::IOError("injected"));
  EXPECT_TRUE(file->Append("more", io_, nullptr).IsIOError());
  EXPECT_EQ(Elapsed(), 0u);
  EXPECT_TRUE(file->Sync(io_, nullptr).IsIOError());
  // The bytes that were appended were written all the same; a sync that fails
  // takes its time.
  EXPECT_EQ(Elapsed(), 50u + 1 + 30);
  EXPECT_EQ(Stats().write_bytes, 1000u);
  fault_fs_->SetFilesystemActive(true);
  ASSERT_OK(file->Close(io_, nullptr));
}

TEST_F(SimulatedDeviceFilesTest, RandomRWFiles) {
  ASSERT_OK(WriteStringToFile(Env::Default(), contents_.substr(0, 10'000),
                              Path("file")));
  std::unique_ptr<FSRandomRWFile> base;
  ASSERT_OK(fs()->NewRandomRWFile(Path("file"), FileOptions(), &base, nullptr));
  SimulatedRandomRWFile file(std::move(base), &device_);
  ASSERT_OK(file.Write(2000, std::string(1000, 'X'), io_, nullptr));
  ASSERT_OK(file.Flush(io_, nullptr));
  EXPECT_EQ(Elapsed(), 0u);
  std::string scratch(5000, '\0');
  Slice result;
  ASSERT_OK(file.Read(1999, 1002, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(result.ToString(), contents_.substr(1999, 1) +
                                   std::string(1000, 'X') +
                                   contents_.substr(3000, 1));
  // 1002 bytes take a microsecond and 2 ns.
  EXPECT_EQ(Elapsed(), 102u);
  ASSERT_OK(file.Read(9000, 5000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(result.size(), 1000u);
  EXPECT_EQ(Elapsed(), 101u);
  ASSERT_OK(file.Read(10'000, 5000, io_, &result, scratch.data(), nullptr));
  EXPECT_EQ(Elapsed(), 0u);
  ASSERT_OK(file.Sync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 50u + 1 + 30);
  ASSERT_OK(file.Write(0, "Y", io_, nullptr));
  ASSERT_OK(file.Fsync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 50u + 1 + 30);
  ASSERT_OK(file.Write(1, "Z", io_, nullptr));
  ASSERT_OK(file.Close(io_, nullptr));
  EXPECT_EQ(Elapsed(), 51u);
  EXPECT_EQ(Contents().substr(0, 2), "YZ");
}

TEST_F(SimulatedDeviceFilesTest, DirectRandomRWFilesPayAtOnce) {
  ASSERT_OK(WriteStringToFile(Env::Default(), contents_.substr(0, 10'000),
                              Path("file")));
  std::unique_ptr<FSRandomRWFile> base;
  ASSERT_OK(fs()->NewRandomRWFile(Path("file"), FileOptions(), &base, nullptr));
  SimulatedRandomRWFile file(
      std::make_unique<DirectRandomRWFile>(std::move(base)), &device_);
  ASSERT_OK(file.Write(0, std::string(1000, 'X'), io_, nullptr));
  EXPECT_EQ(Elapsed(), 51u);
  ASSERT_OK(file.Sync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 30u);
  ASSERT_OK(file.Close(io_, nullptr));
}

TEST_F(SimulatedDeviceFilesTest, DirectoriesAreSynced) {
  std::unique_ptr<FSDirectory> base;
  ASSERT_OK(fs()->NewDirectory(dir_, io_, &base, nullptr));
  SimulatedDirectory directory(std::move(base), &device_);
  ASSERT_OK(directory.Fsync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 30u);
  ASSERT_OK(directory.FsyncWithDirOptions(io_, nullptr, DirFsyncOptions()));
  EXPECT_EQ(Elapsed(), 30u);
  EXPECT_EQ(Stats().syncs, 2u);
  directory.Close(io_, nullptr).PermitUncheckedError();
}

TEST_F(SimulatedDeviceFilesTest, ADeviceMayNeedNoSyncs) {
  TimedDevice device(DeviceProfile{0, 50, 0, 0, 0, 0, 1, /*sync_us=*/0},
                     &clock_);
  std::unique_ptr<FSWritableFile> base;
  ASSERT_OK(fs()->NewWritableFile(Path("file"), FileOptions(), &base, nullptr));
  SimulatedWritableFile file(std::move(base), &device);
  ASSERT_OK(file.Append("x", io_, nullptr));
  ASSERT_OK(file.Sync(io_, nullptr));
  EXPECT_EQ(Elapsed(), 50u);
  EXPECT_EQ(device.device().GetStats().syncs, 0u);
  ASSERT_OK(file.Close(io_, nullptr));
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
