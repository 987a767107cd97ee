//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/write_path/wal_buffer.h"

#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/write_path/wal_buffer_recovery.h"
#include "env/composite_env_wrapper.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env_encryption.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/coding.h"
#include "util/crc32c.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Counts appends to files, and can make them fail.
class AppendingFS final : public FileSystemWrapper {
 public:
  explicit AppendingFS(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "AppendingFS"; }

  IOStatus NewWritableFile(const std::string& fname, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    IOStatus s = target()->NewWritableFile(fname, options, result, dbg);
    if (s.ok()) {
      *result = std::make_unique<File>(std::move(*result), this);
    }
    return s;
  }

  IOStatus ReopenWritableFile(const std::string& fname,
                              const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result,
                              IODebugContext* dbg) override {
    IOStatus s = target()->ReopenWritableFile(fname, options, result, dbg);
    if (s.ok()) {
      *result = std::make_unique<ReopenedFile>(std::move(*result), this);
    }
    return s;
  }

  std::atomic<int> appends{0};
  std::atomic<int> flushes{0};
  // Number of appends with a checksum.
  std::atomic<int> verified{0};
  // If `fails` is set, an append writes `written_by_failures` bytes and fails.
  std::atomic<bool> fails{false};
  size_t written_by_failures = 0;
  // If set, the file is not truncated, or not synced.
  std::atomic<bool> truncates_fail{false};
  std::atomic<bool> syncs_fail{false};
  // Number of syncs of files that were not reopened.
  std::atomic<int> syncs{0};
  // Number of truncations that have not failed.
  std::atomic<int> truncates{0};
  // Number of syncs of reopened files, after their last append.
  std::atomic<int> reopened_syncs{0};

 private:
  class File final : public FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSWritableFile>&& target, AppendingFS* fs)
        : FSWritableFileOwnerWrapper(std::move(target)), fs_(fs) {}
    using FSWritableFileOwnerWrapper::Append;
    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      ++fs_->appends;
      if (fs_->fails) {
        const size_t size = std::min(fs_->written_by_failures, data.size());
        EXPECT_OK(target()->Append(Slice(data.data(), size), options, dbg));
        return IOStatus::IOError("the device is gone");
      }
      return target()->Append(data, options, dbg);
    }
    IOStatus Append(const Slice& data, const IOOptions& options,
                    const DataVerificationInfo& info,
                    IODebugContext* dbg) override {
      EXPECT_EQ(crc32c::Value(data.data(), data.size()),
                DecodeFixed32(info.checksum.data()));
      ++fs_->verified;
      return Append(data, options, dbg);
    }
    IOStatus Flush(const IOOptions& options, IODebugContext* dbg) override {
      ++fs_->flushes;
      return target()->Flush(options, dbg);
    }
    IOStatus Truncate(uint64_t size, const IOOptions& options,
                      IODebugContext* dbg) override {
      if (fs_->truncates_fail) {
        return IOStatus::IOError("the device is gone");
      }
      ++fs_->truncates;
      return target()->Truncate(size, options, dbg);
    }
    IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
      ++fs_->syncs;
      return fs_->syncs_fail ? IOStatus::IOError("the device is gone")
                             : target()->Sync(options, dbg);
    }

   private:
    AppendingFS* const fs_;
  };

  class ReopenedFile final : public FSWritableFileOwnerWrapper {
   public:
    ReopenedFile(std::unique_ptr<FSWritableFile>&& target, AppendingFS* fs)
        : FSWritableFileOwnerWrapper(std::move(target)), fs_(fs) {}
    using FSWritableFileOwnerWrapper::Append;
    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      fs_->reopened_syncs = 0;
      return target()->Append(data, options, dbg);
    }
    IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
      ++fs_->reopened_syncs;
      return target()->Sync(options, dbg);
    }

   private:
    AppendingFS* const fs_;
  };
};

}  // namespace

class WalBufferTest : public testing::Test {
 protected:
  static constexpr size_t kSize = 4096;
  static constexpr size_t kRoom = kSize - WalBufferFormat::kHeaderSize;

  WalBufferTest()
      : fs_(std::make_shared<AppendingFS>(FileSystem::Default())),
        dir_(test::PerThreadDBPath("wal_buffer_test")) {
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
    EXPECT_OK(fs_->CreateDir(dir_, IOOptions(), nullptr));
    EXPECT_OK(WalBuffer::Create(fs_, dir_, kSize, IOOptions(),
                                /*statistics=*/nullptr,
                                /*info_log=*/nullptr, &buffer_));
    fs_->appends = 0;
  }
  ~WalBufferTest() override {
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
  }

  std::string WalName(uint64_t number) { return LogFileName(dir_, number); }

  std::unique_ptr<FSWritableFile> NewWal(uint64_t number) {
    std::unique_ptr<FSWritableFile> file;
    EXPECT_OK(
        fs_->NewWritableFile(WalName(number), FileOptions(), &file, nullptr));
    return buffer_->Wrap(number, WalName(number), std::move(file));
  }

  static IOStatus Append(FSWritableFile* file, const std::string& data) {
    return file->Append(data, IOOptions(), nullptr);
  }
  static IOStatus Sync(FSWritableFile* file) {
    return file->Sync(IOOptions(), nullptr);
  }
  static IOStatus Truncate(FSWritableFile* file, uint64_t size) {
    return file->Truncate(size, IOOptions(), nullptr);
  }
  static uint64_t SizeOf(FSWritableFile* file) {
    return file->GetFileSize(IOOptions(), nullptr);
  }

  // Has a sync of the WAL fail after it has written so many of the bytes in the
  // buffer. Appends fail from then on.
  void FailSync(FSWritableFile* wal, size_t written) {
    fs_->fails = true;
    fs_->written_by_failures = written;
    ASSERT_TRUE(Sync(wal).IsIOError());
    fs_->written_by_failures = 0;
  }

  std::string Read(const std::string& fname) {
    std::string data;
    EXPECT_OK(ReadFileToString(FileSystem::Default().get(), fname, &data));
    return data;
  }
  std::string FileOf(uint64_t number) { return Read(WalName(number)); }

  WalBufferRecovery Recovery() {
    return WalBufferRecovery(fs_.get(), dir_, IOOptions(),
                             /*info_log=*/nullptr);
  }

  // Returns the bytes that files would lack if the process ended now. They
  // belong to the WAL `number`.
  std::string Missing(uint64_t number) {
    WalBufferRecovery::Missing missing;
    EXPECT_OK(Recovery().Find(WALRecoveryMode::kAbsoluteConsistency, &missing));
    EXPECT_TRUE(missing.bytes.empty() || missing.wal_number == number);
    EXPECT_TRUE(missing.bytes.empty() || missing.size == FileOf(number).size());
    return missing.bytes;
  }
  std::string Recovered(uint64_t number) {
    return FileOf(number) + Missing(number);
  }

  const std::shared_ptr<AppendingFS> fs_;
  const std::string dir_;
  std::unique_ptr<WalBuffer> buffer_;
};

TEST_F(WalBufferTest, AppendsStayInTheBufferUntilWriteOut) {
  auto wal = NewWal(5);
  ASSERT_EQ("", Missing(5));
  // The first bytes of a WAL go to its file.
  ASSERT_OK(Append(wal.get(), "01"));
  ASSERT_EQ(1, fs_->appends);
  ASSERT_EQ(1, fs_->flushes);
  ASSERT_EQ("01", FileOf(5));
  ASSERT_EQ("", Missing(5));
  ASSERT_OK(Append(wal.get(), "abc"));
  ASSERT_OK(Append(wal.get(), "def"));
  ASSERT_EQ(1, fs_->appends);
  ASSERT_EQ("01", FileOf(5));
  ASSERT_EQ("abcdef", Missing(5));
  ASSERT_EQ(8, wal->GetFileSize(IOOptions(), nullptr));
  ASSERT_OK(wal->Flush(IOOptions(), nullptr));
  ASSERT_EQ(1, fs_->appends);
  ASSERT_EQ(1, fs_->flushes);
  ASSERT_OK(buffer_->WriteOut(IOOptions()));
  ASSERT_EQ(2, fs_->appends);
  ASSERT_EQ(2, fs_->flushes);
  ASSERT_EQ("01abcdef", FileOf(5));
  ASSERT_EQ("", Missing(5));
  ASSERT_OK(buffer_->WriteOut(IOOptions()));
  ASSERT_EQ(2, fs_->appends);
  ASSERT_OK(Append(wal.get(), "ghi"));
  ASSERT_EQ("ghi", Missing(5));
  ASSERT_EQ(11, wal->GetFileSize(IOOptions(), nullptr));
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
  ASSERT_EQ("01abcdefghi", FileOf(5));
  wal.reset();
  buffer_->Remove();
  ASSERT_TRUE(fs_->FileExists(WalBufferFileName(dir_), IOOptions(), nullptr)
                  .IsNotFound());
}

TEST_F(WalBufferTest, SyncAndCloseWriteTheBufferOut) {
  const std::vector<std::function<IOStatus(FSWritableFile*)>> calls = {
      [](FSWritableFile* wal) { return wal->Sync(IOOptions(), nullptr); },
      [](FSWritableFile* wal) { return wal->Fsync(IOOptions(), nullptr); },
      [](FSWritableFile* wal) {
        return wal->RangeSync(0, 3, IOOptions(), nullptr);
      },
      [](FSWritableFile* wal) { return wal->Close(IOOptions(), nullptr); }};
  auto wal = NewWal(5);
  std::string all = "0";
  ASSERT_OK(Append(wal.get(), all));
  for (const auto& call : calls) {
    ASSERT_OK(Append(wal.get(), "abc"));
    ASSERT_EQ(all, FileOf(5));
    ASSERT_OK(call(wal.get()));
    all += "abc";
    ASSERT_EQ(all, FileOf(5));
    ASSERT_EQ("", Missing(5));
  }
}

// Bytes that are in the buffer alone are dropped without the file.
TEST_F(WalBufferTest, TruncateDropsBytesOfTheBuffer) {
  auto wal = NewWal(5);
  ASSERT_OK(Append(wal.get(), "ab"));
  ASSERT_OK(Append(wal.get(), "cd"));
  ASSERT_OK(Append(wal.get(), "xyz"));
  ASSERT_OK(Truncate(wal.get(), 7));
  ASSERT_EQ("abcdxyz", Recovered(5));
  ASSERT_OK(Truncate(wal.get(), 4));
  ASSERT_EQ(4, SizeOf(wal.get()));
  ASSERT_EQ("ab", FileOf(5));
  ASSERT_EQ("cd", Missing(5));
  ASSERT_OK(Append(wal.get(), "ef"));
  ASSERT_EQ("abcdef", Recovered(5));
  ASSERT_OK(Truncate(wal.get(), 2));
  ASSERT_EQ("", Missing(5));
  ASSERT_OK(Append(wal.get(), "gh"));
  ASSERT_EQ("gh", Missing(5));
  ASSERT_EQ(1, fs_->appends);
  ASSERT_EQ(0, fs_->truncates);
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
  ASSERT_EQ("abgh", FileOf(5));
}

// Bytes that were written out are dropped from the file. The next append goes
// to the file, as the buffer knows none of the bytes before it.
TEST_F(WalBufferTest, TruncateDropsBytesOfTheFile) {
  auto wal = NewWal(5);
  ASSERT_OK(Append(wal.get(), "ab"));
  ASSERT_OK(Append(wal.get(), "cdef"));
  ASSERT_OK(Sync(wal.get()));
  ASSERT_OK(Append(wal.get(), "gh"));
  ASSERT_OK(Truncate(wal.get(), 3));
  ASSERT_EQ(3, SizeOf(wal.get()));
  ASSERT_EQ("abc", FileOf(5));
  ASSERT_EQ("", Missing(5));
  ASSERT_OK(buffer_->WriteOut(IOOptions()));
  ASSERT_OK(Append(wal.get(), "i"));
  ASSERT_EQ("abci", FileOf(5));
  ASSERT_OK(Append(wal.get(), "jk"));
  ASSERT_EQ("jk", Missing(5));
  ASSERT_OK(Truncate(wal.get(), 0));
  ASSERT_EQ("", FileOf(5));
  ASSERT_EQ("", Missing(5));
  ASSERT_OK(Append(wal.get(), "l"));
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
  ASSERT_EQ("l", FileOf(5));
}

// After a failed write the file may have some bytes that are dropped, and some
// that are kept. The latter are written again.
TEST_F(WalBufferTest, TruncateAfterAFailedWriteKeepsTheBytesBefore) {
  for (const size_t written : {0, 2, 3, 5, 6}) {
    for (const size_t kept : {0, 3, 6}) {
      SCOPED_TRACE(written * 10 + kept);
      const uint64_t number = 100 + written * 10 + kept;
      auto wal = NewWal(number);
      ASSERT_OK(Append(wal.get(), "12"));
      ASSERT_OK(Append(wal.get(), "abcdef"));
      FailSync(wal.get(), written);
      ASSERT_OK(Truncate(wal.get(), 2 + kept));
      const std::string all = "12" + std::string("abcdef").substr(0, kept);
      ASSERT_EQ(all.size(), SizeOf(wal.get()));
      ASSERT_EQ(all, Recovered(number));
      fs_->fails = false;
      ASSERT_OK(Append(wal.get(), "gh"));
      ASSERT_EQ(all + "gh", Recovered(number));
      ASSERT_OK(Sync(wal.get()));
      ASSERT_EQ(all + "gh", FileOf(number));
      ASSERT_OK(wal->Close(IOOptions(), nullptr));
      ASSERT_EQ(all + "gh", FileOf(number));
    }
  }
}

// A sync would make the bytes before them durable, while those of older WALs
// may not be.
TEST_F(WalBufferTest, TruncateSyncsOnlyIfDroppedBytesMayBeDurable) {
  for (const bool was_synced : {false, true}) {
    SCOPED_TRACE(was_synced);
    auto wal = NewWal(was_synced ? 6 : 5);
    ASSERT_OK(Append(wal.get(), "12"));
    ASSERT_OK(Append(wal.get(), "abcdef"));
    ASSERT_OK(was_synced ? Sync(wal.get()) : buffer_->WriteOut(IOOptions()));
    fs_->syncs = 0;
    ASSERT_OK(Truncate(wal.get(), 5));
    ASSERT_EQ(was_synced ? 1 : 0, fs_->syncs);
    ASSERT_OK(Append(wal.get(), "ghi"));
    ASSERT_OK(Truncate(wal.get(), 5));
    ASSERT_EQ(was_synced ? 1 : 0, fs_->syncs);
    ASSERT_OK(Truncate(wal.get(), 4));
    ASSERT_EQ(was_synced ? 2 : 0, fs_->syncs);
    ASSERT_OK(wal->Close(IOOptions(), nullptr));
    ASSERT_EQ("12ab", FileOf(was_synced ? 6 : 5));
  }
}

// A sync that fails may have made the bytes durable.
TEST_F(WalBufferTest, TruncateSyncsAfterAFailedSync) {
  auto wal = NewWal(5);
  ASSERT_OK(Append(wal.get(), "12"));
  ASSERT_OK(Append(wal.get(), "abc"));
  fs_->syncs_fail = true;
  ASSERT_TRUE(Sync(wal.get()).IsIOError());
  fs_->syncs_fail = false;
  fs_->syncs = 0;
  ASSERT_OK(Truncate(wal.get(), 2));
  ASSERT_EQ(1, fs_->syncs);
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
  ASSERT_EQ("12", FileOf(5));
}

// A file that cannot be truncated gets nothing, and no newer WAL does, until it
// is truncated.
TEST_F(WalBufferTest, FailedTruncateIsTriedAgainBeforeAnythingIsWritten) {
  const std::vector<std::function<IOStatus(FSWritableFile*)>> calls = {
      [](FSWritableFile* wal) { return Append(wal, "g"); },
      [](FSWritableFile* wal) { return Sync(wal); },
      [](FSWritableFile* wal) { return wal->Flush(IOOptions(), nullptr); },
      [](FSWritableFile* wal) { return wal->Fsync(IOOptions(), nullptr); },
      [](FSWritableFile* wal) { return Truncate(wal, 5); },
      [this](FSWritableFile*) { return buffer_->WriteOut(IOOptions()); },
      [this](FSWritableFile*) { return buffer_->FinishCut(IOOptions()); }};
  for (const bool is_written_out : {false, true}) {
    for (const bool is_sync : {false, true}) {
      if (is_sync && !is_written_out) {
        continue;  // the file is truncated without a sync
      }
      for (size_t i = 0; i < calls.size(); ++i) {
        const uint64_t number =
            10 + i * 4 + uint64_t{is_written_out} * 2 + uint64_t{is_sync};
        SCOPED_TRACE(number);
        std::atomic<bool>& fails =
            is_sync ? fs_->syncs_fail : fs_->truncates_fail;
        auto wal = NewWal(number);
        auto newer = NewWal(number + 100);
        ASSERT_OK(Append(wal.get(), "12"));
        ASSERT_OK(Append(wal.get(), "abcdef"));
        if (is_written_out) {
          ASSERT_OK(Sync(wal.get()));
        } else {
          FailSync(wal.get(), /*written=*/5);
          fs_->fails = false;
        }
        fails = true;
        ASSERT_TRUE(Truncate(wal.get(), 5).IsIOError());
        ASSERT_EQ(5, SizeOf(wal.get()));
        // If the process ended now, nothing that is kept would be lost.
        ASSERT_TRUE(Slice(Recovered(number)).starts_with("12abc"));
        for (const auto& call : calls) {
          ASSERT_TRUE(call(wal.get()).IsIOError());
        }
        ASSERT_TRUE(Append(newer.get(), "new").IsIOError());
        ASSERT_EQ("", FileOf(number + 100));
        ASSERT_EQ(5, SizeOf(wal.get()));
        fails = false;
        ASSERT_OK(calls[i](wal.get()));
        const std::string all = i == 0 ? "12abcg" : "12abc";
        ASSERT_EQ(all, Recovered(number));
        ASSERT_OK(Append(newer.get(), "new"));
        ASSERT_EQ(all, FileOf(number));
        ASSERT_OK(wal->Close(IOOptions(), nullptr));
        ASSERT_OK(newer->Close(IOOptions(), nullptr));
        ASSERT_EQ(all, FileOf(number));
        ASSERT_EQ("new", FileOf(number + 100));
      }
    }
  }
}

// A close says that dropped bytes may still be there.
TEST_F(WalBufferTest, CloseFailsIfTheFileCannotBeTruncated) {
  auto wal = NewWal(5);
  ASSERT_OK(Append(wal.get(), "12"));
  ASSERT_OK(Append(wal.get(), "abcdef"));
  FailSync(wal.get(), /*written=*/5);
  fs_->truncates_fail = true;
  ASSERT_TRUE(Truncate(wal.get(), 4).IsIOError());
  ASSERT_TRUE(wal->Close(IOOptions(), nullptr).IsIOError());
  wal.reset();
  fs_->truncates_fail = false;
  fs_->fails = false;
  ASSERT_EQ("12abcde", Recovered(5));
  // The file has all bytes that the buffer keeps.
  ASSERT_OK(buffer_->WriteOut(IOOptions()));
  ASSERT_TRUE(buffer_->Remove());
  ASSERT_EQ("12abcde", FileOf(5));
}

// A WAL whose bytes bypass the buffer because an older one could not be written
// is truncated, too. Then it is known what it has, and the buffer takes its
// bytes as soon as the older WAL is written.
TEST_F(WalBufferTest, TruncateOfAWalThatBypassesTheBuffer) {
  auto first = NewWal(5);
  ASSERT_OK(Append(first.get(), "12"));
  ASSERT_OK(Append(first.get(), "abcdef"));
  auto second = NewWal(6);
  fs_->fails = true;
  ASSERT_TRUE(Append(second.get(), "lost").IsIOError());
  ASSERT_OK(Truncate(second.get(), 0));
  fs_->written_by_failures = 3;
  ASSERT_TRUE(Append(second.get(), "lost").IsIOError());
  ASSERT_EQ("los", FileOf(6));
  ASSERT_OK(Truncate(second.get(), 0));
  ASSERT_EQ("", FileOf(6));
  ASSERT_TRUE(Slice(Recovered(5)).starts_with("12abcdef"));
  fs_->fails = false;
  fs_->written_by_failures = 0;
  ASSERT_OK(Append(second.get(), "x"));
  ASSERT_EQ("12abcdef", FileOf(5));
  ASSERT_EQ("x", FileOf(6));
  ASSERT_OK(Append(second.get(), "yz"));
  ASSERT_EQ("yz", Missing(6));
  ASSERT_OK(first->Close(IOOptions(), nullptr));
  ASSERT_OK(second->Close(IOOptions(), nullptr));
  ASSERT_EQ("xyz", FileOf(6));
}

// Other threads write the buffer out while bytes are appended and dropped.
TEST_F(WalBufferTest, SyncsBesideTruncatesLoseNothing) {
  auto wal = NewWal(5);
  std::atomic<bool> is_done{false};
  std::thread syncing([&] {
    while (!is_done) {
      ASSERT_OK(Sync(wal.get()));
    }
  });
  std::string all;
  Random rnd(304);
  for (int i = 0; i < 2000; ++i) {
    const std::string data = rnd.RandomString(50);
    ASSERT_OK(Append(wal.get(), data));
    if (rnd.OneIn(3)) {
      ASSERT_OK(Truncate(wal.get(), all.size()));
    } else {
      all += data;
    }
  }
  is_done = true;
  syncing.join();
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
  ASSERT_EQ(all, FileOf(5));
}

TEST_F(WalBufferTest, FullBufferIsWrittenOut) {
  auto wal = NewWal(5);
  std::string all;
  Random rnd(301);
  for (int i = 0; i < 1000; ++i) {
    const std::string data = rnd.RandomString(rnd.Uniform(200));
    ASSERT_OK(Append(wal.get(), data));
    all += data;
    ASSERT_EQ(all, Recovered(5));
  }
  ASSERT_GE(all.size() / (kRoom - 200) + 1, fs_->appends);
  // These appends fill the buffer exactly, or are larger than it.
  ASSERT_OK(buffer_->WriteOut(IOOptions()));
  for (const size_t size :
       {kRoom, size_t{1}, kRoom + 1, size_t{1}, 3 * kRoom, kRoom, kRoom}) {
    const std::string data = rnd.RandomString(static_cast<int>(size));
    ASSERT_OK(Append(wal.get(), data));
    all += data;
    ASSERT_EQ(all, Recovered(5));
    ASSERT_EQ(all.size(), wal->GetFileSize(IOOptions(), nullptr));
  }
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
  ASSERT_EQ(all, FileOf(5));
}

// All bytes of a WAL are in its file before the next WAL gets any, and the
// first bytes of the next WAL are in its own file.
TEST_F(WalBufferTest, AppendToTheNextWalWritesTheBufferOut) {
  auto first = NewWal(5);
  auto second = NewWal(6);
  ASSERT_OK(Append(first.get(), "a"));
  ASSERT_OK(Append(first.get(), "bc"));
  ASSERT_EQ("bc", Missing(5));
  ASSERT_OK(Append(second.get(), "d"));
  ASSERT_EQ("abc", FileOf(5));
  ASSERT_EQ("d", FileOf(6));
  ASSERT_OK(Append(second.get(), "e"));
  ASSERT_EQ("d", FileOf(6));
  ASSERT_EQ("e", Missing(6));
  ASSERT_EQ(3, fs_->appends);
  ASSERT_OK(first->Sync(IOOptions(), nullptr));
  ASSERT_OK(first->Close(IOOptions(), nullptr));
  first.reset();
  ASSERT_EQ("e", Missing(6));
  ASSERT_OK(second->Close(IOOptions(), nullptr));
  ASSERT_EQ("de", FileOf(6));
}

// The header of a WAL may be written long before the previous WAL ends.
TEST_F(WalBufferTest, HeaderOfTheNextWalMayComeEarly) {
  auto first = NewWal(5);
  auto second = NewWal(6);
  ASSERT_OK(Append(first.get(), "a"));
  ASSERT_OK(Append(second.get(), "header"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(Append(first.get(), "b"));
  }
  ASSERT_EQ("abbb", Recovered(5));
  ASSERT_OK(Append(second.get(), "c"));
  ASSERT_EQ("abbb", FileOf(5));
  ASSERT_EQ("headerc", FileOf(6));
  ASSERT_OK(Append(second.get(), "d"));
  ASSERT_EQ("d", Missing(6));
  ASSERT_OK(first->Close(IOOptions(), nullptr));
  ASSERT_OK(second->Close(IOOptions(), nullptr));
  ASSERT_EQ("headercd", FileOf(6));
}

// No byte is lost at whatever point the process ends.
TEST_F(WalBufferTest, NoByteIsLostWheneverTheProcessEnds) {
  auto wal = NewWal(5);
  std::string all;
  int seen = 0;
  const auto check = [&](void*) {
    ++seen;
    ASSERT_EQ(all, Recovered(5));
  };
  for (const char* point : {"WalBuffer::WriteOutLocked:Before",
                            "WalBuffer::WriteOutLocked:Written"}) {
    SyncPoint::GetInstance()->SetCallBack(point, check);
  }
  SyncPoint::GetInstance()->EnableProcessing();
  Random rnd(302);
  for (int i = 0; i < 300; ++i) {
    const std::string data = rnd.RandomString(rnd.Uniform(300));
    if (rnd.OneIn(10)) {
      ASSERT_OK(buffer_->WriteOut(IOOptions()));
    }
    ASSERT_OK(Append(wal.get(), data));
    all += data;
  }
  ASSERT_LT(20, seen);
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
}

// A write that failed, or was partial, loses nothing and writes nothing twice.
TEST_F(WalBufferTest, FailedWriteLosesAndRepeatsNothing) {
  for (const size_t written : {0, 2, 6}) {
    SCOPED_TRACE(written);
    const uint64_t number = 10 + written;
    auto wal = NewWal(number);
    ASSERT_OK(Append(wal.get(), "12"));
    ASSERT_OK(buffer_->WriteOut(IOOptions()));
    ASSERT_OK(Append(wal.get(), "abcdef"));
    fs_->fails = true;
    fs_->written_by_failures = written;
    ASSERT_TRUE(wal->Sync(IOOptions(), nullptr).IsIOError());
    fs_->written_by_failures = 0;
    ASSERT_EQ("12abcdef", Recovered(number));
    ASSERT_EQ(written == 6, wal->Sync(IOOptions(), nullptr).ok());
    fs_->fails = written != 6;
    ASSERT_EQ(written == 6, Append(wal.get(), "g").ok());
    fs_->fails = false;
    ASSERT_EQ(written == 6 ? "12abcdefg" : "12abcdef", Recovered(number));
    ASSERT_OK(wal->Sync(IOOptions(), nullptr));
    ASSERT_EQ(written == 6 ? "12abcdefg" : "12abcdef", FileOf(number));
    ASSERT_OK(wal->Close(IOOptions(), nullptr));
  }
}

// This is a real error of the operating system. After it the file object does
// not know the size of its file, which has preallocated space until it is
// closed.
TEST_F(WalBufferTest, FullDiskLosesAndRepeatsNothing) {
  struct rlimit unlimited;
  ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &unlimited));
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  auto wal = NewWal(5);
  wal->SetPreallocationBlockSize(32 << 10);
  wal->PrepareWrite(0, 100, IOOptions(), nullptr);
  ASSERT_OK(Append(wal.get(), "0123"));
  ASSERT_OK(wal->Sync(IOOptions(), nullptr));
  ASSERT_OK(Append(wal.get(), "abcdef"));
  struct rlimit limit = unlimited;
  limit.rlim_cur = 6;
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
  const IOStatus s = wal->Sync(IOOptions(), nullptr);
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &unlimited));
  signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(s.ok());
  ASSERT_EQ("0123ab", FileOf(5));
  ASSERT_EQ("0123abcdef", Recovered(5));
  ASSERT_OK(wal->Sync(IOOptions(), nullptr));
  ASSERT_EQ("0123abcdef", FileOf(5));
  ASSERT_OK(Append(wal.get(), "gh"));
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
  ASSERT_EQ("0123abcdefgh", FileOf(5));
}

// A WAL that could not be written does not keep newer WALs from being written.
TEST_F(WalBufferTest, FailedWriteDoesNotStopTheNextWal) {
  for (const bool is_deleted : {false, true}) {
    auto first = NewWal(5);
    ASSERT_OK(Append(first.get(), "ab"));
    ASSERT_OK(Append(first.get(), "cdef"));
    fs_->fails = true;
    fs_->written_by_failures = 2;
    ASSERT_TRUE(first->Sync(IOOptions(), nullptr).IsIOError());
    fs_->written_by_failures = 0;
    auto second = NewWal(6);
    ASSERT_TRUE(Append(second.get(), "lost").IsIOError());
    ASSERT_EQ("abcdef", Recovered(5));
    ASSERT_TRUE(first->Close(IOOptions(), nullptr).IsIOError());
    fs_->fails = false;
    first.reset();
    // The failed append to this WAL may have written anything, so later appends
    // bypass the buffer.
    ASSERT_OK(Append(second.get(), "new"));
    ASSERT_EQ("new", FileOf(6));
    ASSERT_OK(second->Close(IOOptions(), nullptr));
    second = NewWal(7);
    ASSERT_OK(Append(second.get(), "gh"));
    ASSERT_EQ("gh", FileOf(7));
    ASSERT_EQ("abcdef", Recovered(5));
    if (is_deleted) {
      ASSERT_OK(fs_->DeleteFile(WalName(5), IOOptions(), nullptr));
      ASSERT_OK(buffer_->WriteOut(IOOptions()));
    } else {
      // The buffer stays where the next open of the DB finds it.
      buffer_->Remove();
      ASSERT_EQ("abcdef", Recovered(5));
      ASSERT_OK(buffer_->WriteOut(IOOptions()));
      ASSERT_EQ("abcdef", FileOf(5));
    }
    // From here on the buffer takes appends again.
    ASSERT_OK(Append(second.get(), "ij"));
    ASSERT_EQ("ghij", FileOf(7));
    ASSERT_OK(Append(second.get(), "kl"));
    ASSERT_EQ("ghij", FileOf(7));
    ASSERT_EQ("kl", Missing(7));
    ASSERT_OK(second->Close(IOOptions(), nullptr));
    ASSERT_EQ("ghijkl", FileOf(7));
  }
}

TEST_F(WalBufferTest, BufferedBytesAreWrittenWithAChecksum) {
  auto wal = NewWal(5);
  DataVerificationInfo info;
  char checksum[4];
  ASSERT_OK(Append(wal.get(), "plain"));
  for (const char* data : {"abc", "def"}) {
    EncodeFixed32(checksum, crc32c::Value(data, 3));
    info.checksum = Slice(checksum, sizeof(checksum));
    ASSERT_OK(wal->Append(data, IOOptions(), info, nullptr));
  }
  ASSERT_EQ(0, fs_->verified);
  ASSERT_EQ("plainabcdef", Recovered(5));
  ASSERT_OK(wal->Sync(IOOptions(), nullptr));
  ASSERT_EQ(1, fs_->verified);
  ASSERT_EQ(2, fs_->appends);
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
  ASSERT_EQ("plainabcdef", FileOf(5));
}

TEST_F(WalBufferTest, SyncsBesideAppendsLoseNothing) {
  auto wal = NewWal(5);
  std::atomic<bool> is_done{false};
  std::thread syncing([&] {
    while (!is_done) {
      ASSERT_OK(wal->Sync(IOOptions(), nullptr));
    }
  });
  std::string all;
  Random rnd(303);
  for (int i = 0; i < 20000; ++i) {
    const std::string data = rnd.RandomString(50);
    ASSERT_OK(Append(wal.get(), data));
    all += data;
  }
  is_done = true;
  syncing.join();
  ASSERT_OK(wal->Close(IOOptions(), nullptr));
  ASSERT_EQ(all, FileOf(5));
}

// A file system is refused, and no file is left there, if a mapped file does
// not show the bytes of the file.
TEST_F(WalBufferTest, FileSystemsWithoutPlainMappingsAreRefused) {
  std::shared_ptr<EncryptionProvider> provider;
  ASSERT_OK(EncryptionProvider::CreateFromString(ConfigOptions(), "CTR://test",
                                                 &provider));
  const std::unique_ptr<Env> memory(NewMemEnv(Env::Default()));
  for (const std::shared_ptr<FileSystem>& fs :
       {std::shared_ptr<FileSystem>(
            NewEncryptedFS(FileSystem::Default(), provider)),
        memory->GetFileSystem()}) {
    const std::string dir = dir_ + "/other";
    ASSERT_OK(fs->CreateDirIfMissing(dir, IOOptions(), nullptr));
    std::unique_ptr<WalBuffer> buffer;
    const Status s = WalBuffer::Create(fs, dir, kSize, IOOptions(), nullptr,
                                       nullptr, &buffer);
    ASSERT_TRUE(s.IsNotSupported()) << fs->Name() << " " << s.ToString();
    ASSERT_NE(std::string::npos, s.ToString().find("wal_mmap_buffer_size"));
    ASSERT_EQ(nullptr, buffer);
    ASSERT_TRUE(fs->FileExists(WalBufferFileName(dir), IOOptions(), nullptr)
                    .IsNotFound());
  }
}

// Recovery.

class WalBufferRecoveryTest : public WalBufferTest {
 protected:
  // Writes "0123" to the file and "abcdef" to the buffer.
  void Prepare() {
    wal_ = NewWal(5);
    ASSERT_OK(Append(wal_.get(), "0123"));
    ASSERT_OK(wal_->Sync(IOOptions(), nullptr));
    ASSERT_OK(Append(wal_.get(), "abcdef"));
    buffer_file_ = Read(WalBufferFileName(dir_));
  }
  ~WalBufferRecoveryTest() override {
    // The destructor of the WAL runs no callbacks of the test.
    SyncPoint::GetInstance()->DisableProcessing();
    wal_.reset();
  }
  void Write(const std::string& fname, const std::string& data) {
    ASSERT_OK(WriteStringToFile(FileSystem::Default().get(), data, fname));
  }
  Status Recover(WALRecoveryMode mode) { return Recovery().Recover(mode); }

  std::unique_ptr<FSWritableFile> wal_;
  std::string buffer_file_;
};

TEST_F(WalBufferRecoveryTest, AppendsTheMissingBytes) {
  Prepare();
  // An earlier recovery may have written a part of the bytes before it ended.
  for (const char* in_file :
       {"0123", "0123a", "0123abcde", "0123abcdef", "0123abcdefgh"}) {
    Write(WalName(5), in_file);
    Write(WalBufferFileName(dir_), buffer_file_);
    ASSERT_OK(Recover(WALRecoveryMode::kAbsoluteConsistency));
    ASSERT_EQ(
        std::string("0123abcdefgh").substr(0, strlen(in_file) > 10 ? 12 : 10),
        FileOf(5));
    ASSERT_TRUE(fs_->FileExists(WalBufferFileName(dir_), IOOptions(), nullptr)
                    .IsNotFound());
    // The buffer does not exist any more.
    ASSERT_OK(Recover(WALRecoveryMode::kAbsoluteConsistency));
  }
}

TEST_F(WalBufferRecoveryTest, FailedRecoveryCanBeRepeated) {
  Prepare();
  SyncPoint::GetInstance()->SetCallBack(
      "WalBufferRecovery::Write:Opened", [](void* arg) {
        *static_cast<IOStatus*>(arg) = IOStatus::IOError("the device is gone");
      });
  SyncPoint::GetInstance()->EnableProcessing();
  ASSERT_TRUE(Recover(WALRecoveryMode::kPointInTimeRecovery).IsIOError());
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  ASSERT_EQ("0123abcdef", Recovered(5));
  ASSERT_OK(Recover(WALRecoveryMode::kPointInTimeRecovery));
  ASSERT_EQ("0123abcdef", FileOf(5));
}

TEST_F(WalBufferRecoveryTest, BufferOfADeletedWalIsIgnored) {
  Prepare();
  ASSERT_OK(fs_->DeleteFile(WalName(5), IOOptions(), nullptr));
  ASSERT_OK(Recover(WALRecoveryMode::kAbsoluteConsistency));
  ASSERT_TRUE(fs_->FileExists(WalName(5), IOOptions(), nullptr).IsNotFound());
}

// After a loss of power, files may lack any bytes that were not synced. The
// buffer is not applied to such a WAL.
TEST_F(WalBufferRecoveryTest, BufferIsNotAppliedToDamagedFiles) {
  Prepare();
  std::string damaged = buffer_file_;
  damaged[WalBufferFormat::kHeaderSize] = 'x';
  const std::pair<std::string, std::string> cases[] = {
      {"012", buffer_file_},    // the end of the WAL is lost
      {"0x23", buffer_file_},   // a page before the end is lost
      {"0123x", buffer_file_},  // a page that was written out is lost
      {"0123", damaged}};       // a page of the buffer is lost
  for (const auto& [wal, buffer] : cases) {
    SCOPED_TRACE(wal);
    for (const WALRecoveryMode mode :
         {WALRecoveryMode::kAbsoluteConsistency,
          WALRecoveryMode::kPointInTimeRecovery,
          WALRecoveryMode::kTolerateCorruptedTailRecords,
          WALRecoveryMode::kSkipAnyCorruptedRecords}) {
      Write(WalName(5), wal);
      Write(WalBufferFileName(dir_), buffer);
      const Status s = Recover(mode);
      if (mode == WALRecoveryMode::kAbsoluteConsistency) {
        ASSERT_TRUE(s.IsCorruption()) << s.ToString();
        ASSERT_NE(std::string::npos,
                  s.ToString().find(WalBufferFileName(dir_)));
      } else {
        ASSERT_OK(s);
      }
      ASSERT_EQ(wal, FileOf(5));
    }
  }
}

// The WAL ends before the bytes that the buffer knows of.
TEST_F(WalBufferRecoveryTest, BufferIsNotAppliedBehindAGap) {
  Prepare();
  ASSERT_OK(wal_->Sync(IOOptions(), nullptr));
  ASSERT_OK(Append(wal_.get(), "ghi"));
  buffer_file_ = Read(WalBufferFileName(dir_));
  for (const std::string all = "0123abcdef"; size_t size : {0, 1, 4, 5, 9}) {
    SCOPED_TRACE(size);
    Write(WalName(5), all.substr(0, size));
    Write(WalBufferFileName(dir_), buffer_file_);
    ASSERT_TRUE(Recover(WALRecoveryMode::kAbsoluteConsistency).IsCorruption());
    ASSERT_OK(Recover(WALRecoveryMode::kPointInTimeRecovery));
    ASSERT_EQ(all.substr(0, size), FileOf(5));
  }
}

// A buffer is deleted only after its bytes are durable in the WAL.
TEST_F(WalBufferRecoveryTest, AppendedBytesAreSynced) {
  Prepare();
  fs_->reopened_syncs = 0;
  ASSERT_OK(Recover(WALRecoveryMode::kPointInTimeRecovery));
  ASSERT_EQ("0123abcdef", FileOf(5));
  ASSERT_EQ(1, fs_->reopened_syncs);
}

// Bytes that were synced are there, whatever has become of the buffer.
TEST_F(WalBufferRecoveryTest, DamagedBufferDoesNoHarmAfterASync) {
  Prepare();
  ASSERT_OK(wal_->Sync(IOOptions(), nullptr));
  std::string damaged = buffer_file_;
  damaged[WalBufferFormat::kHeaderSize] = 'x';
  for (const bool has_wal : {true, false}) {
    Write(WalBufferFileName(dir_), damaged);
    ASSERT_OK(Recover(WALRecoveryMode::kAbsoluteConsistency));
    if (has_wal) {
      ASSERT_EQ("0123abcdef", FileOf(5));
      ASSERT_OK(fs_->DeleteFile(WalName(5), IOOptions(), nullptr));
    }
  }
}

TEST_F(WalBufferRecoveryTest, ForeignBufferIsRefusedAndSetAsideByRepair) {
  Prepare();
  Write(WalBufferFileName(dir_), std::string(5000, 'x'));
  for (const WALRecoveryMode mode : {WALRecoveryMode::kAbsoluteConsistency,
                                     WALRecoveryMode::kPointInTimeRecovery}) {
    const Status s = Recover(mode);
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  }
  ASSERT_EQ(std::string(5000, 'x'), Read(WalBufferFileName(dir_)));
  std::vector<std::string> set_aside;
  const auto add = [&set_aside](const std::string& fname) {
    set_aside.push_back(fname);
  };
  ASSERT_OK(Recovery().RecoverForRepair(add));
  ASSERT_EQ(std::vector<std::string>{WalBufferFileName(dir_)}, set_aside);
  // A usable buffer is not set aside.
  Write(WalBufferFileName(dir_), buffer_file_);
  ASSERT_OK(Recovery().RecoverForRepair(add));
  ASSERT_EQ(1, set_aside.size());
  ASSERT_EQ("0123abcdef", FileOf(5));
  ASSERT_TRUE(Recovery().IsAmong({"000001.log", WalBufferFileName("")}));
  ASSERT_TRUE(Recovery().IsAmong({"WALBUFFER"}));
  ASSERT_FALSE(Recovery().IsAmong({"WALBUFFER2", "000001.log", ""}));
}

// A WAL is read together with the bytes that its file lacks.
TEST_F(WalBufferRecoveryTest, ReadsContinueWithTheMissingBytes) {
  Prepare();
  WalBufferRecovery::Missing missing;
  ASSERT_OK(Recovery().Find(WALRecoveryMode::kAbsoluteConsistency, &missing));
  // Bytes that are appended later are not read.
  ASSERT_OK(Append(wal_.get(), "later"));
  ASSERT_OK(wal_->Sync(IOOptions(), nullptr));
  const std::string all = "0123abcdef";
  char scratch[100];
  Slice result;
  for (size_t piece = 1; piece < 12; ++piece) {
    for (size_t skipped = 0; skipped < 12; ++skipped) {
      std::unique_ptr<FSSequentialFile> file;
      ASSERT_OK(
          fs_->NewSequentialFile(WalName(5), FileOptions(), &file, nullptr));
      file = WalBufferRecovery::Append(std::move(file), missing);
      ASSERT_OK(file->Skip(skipped));
      std::string read;
      do {
        ASSERT_OK(file->Read(piece, IOOptions(), &result, scratch, nullptr));
        read.append(result.data(), result.size());
        // A shorter piece is the last one.
      } while (result.size() == piece);
      ASSERT_EQ(all.substr(std::min(skipped, all.size())), read);
    }
  }
}

// Bytes of the buffer are not read in place of bytes that the WAL has lost, and
// reads at a position, which would find only the bytes of the file, are
// refused.
TEST_F(WalBufferRecoveryTest, ReadsOfAWalThatHasBecomeShorterFail) {
  Prepare();
  WalBufferRecovery::Missing missing;
  ASSERT_OK(Recovery().Find(WALRecoveryMode::kAbsoluteConsistency, &missing));
  ASSERT_EQ(4u, missing.size);
  Write(WalName(5), "01");
  std::unique_ptr<FSSequentialFile> file;
  ASSERT_OK(fs_->NewSequentialFile(WalName(5), FileOptions(), &file, nullptr));
  file = WalBufferRecovery::Append(std::move(file), missing);
  char scratch[100];
  Slice result;
  ASSERT_TRUE(file->PositionedRead(0, 2, IOOptions(), &result, scratch, nullptr)
                  .IsNotSupported());
  ASSERT_OK(file->Read(2, IOOptions(), &result, scratch, nullptr));
  ASSERT_EQ("01", result);
  const IOStatus s = file->Read(8, IOOptions(), &result, scratch, nullptr);
  ASSERT_TRUE(s.IsIOError()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find("shorter"));
}

namespace {

// Returns IOError for the size of each file, also of one that does not exist.
class NoSizeFS final : public FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "NoSizeFS"; }
  IOStatus GetFileSize(const std::string& /*fname*/,
                       const IOOptions& /*options*/, uint64_t* /*size*/,
                       IODebugContext* /*dbg*/) override {
    return IOStatus::IOError("no size");
  }
};

}  // namespace

TEST_F(WalBufferRecoveryTest, ErrorOfASizeIsNotTakenForAMissingBuffer) {
  Prepare();
  NoSizeFS fs(fs_);
  const WalBufferRecovery recovery(&fs, dir_, IOOptions(),
                                   /*info_log=*/nullptr);
  WalBufferRecovery::Missing missing;
  const auto find = [&] {
    return recovery.Find(WALRecoveryMode::kPointInTimeRecovery, &missing);
  };
  Status s = find();
  ASSERT_TRUE(s.IsIOError()) << s.ToString();
  ASSERT_OK(
      fs_->DeleteFile(WalBufferFileName(dir_), IOOptions(), /*dbg=*/nullptr));
  ASSERT_OK(find());
  ASSERT_TRUE(missing.bytes.empty());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
