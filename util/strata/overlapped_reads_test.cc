//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/overlapped_reads.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/deferred_read_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "util/aligned_buffer.h"

namespace ROCKSDB_NAMESPACE {

class OverlappedReadsTest : public testing::Test {
 protected:
  using Trouble = DeferredReadFileSystem::Trouble;

  OverlappedReadsTest()
      : fname_(test::PerThreadDBPath("overlapped_reads_test_file")) {
    for (int i = 0; data_.size() < 20000; ++i) {
      data_ += std::to_string(i) + ";";
    }
    EXPECT_OK(WriteStringToFile(&fs_, data_, fname_, /*should_sync=*/false));
    Open(FileOptions());
  }
  ~OverlappedReadsTest() override {
    file_.reset();
    EXPECT_EQ(0, fs_.under_way);
    EXPECT_EQ(0, fs_.handles);
    EXPECT_OK(fs_.DeleteFile(fname_, IOOptions(), /*dbg=*/nullptr));
  }

  void Open(const FileOptions& options) {
    std::unique_ptr<FSRandomAccessFile> file;
    ASSERT_OK(fs_.NewRandomAccessFile(fname_, options, &file, nullptr));
    file_ = std::make_unique<OverlappedReadFile>(std::move(file));
  }

  std::string Read(uint64_t offset, size_t n) {
    std::string scratch(n, '\0');
    Slice result;
    EXPECT_OK(file_->Read(offset, n, IOOptions(), &result, scratch.data(),
                          /*dbg=*/nullptr));
    EXPECT_EQ(scratch.data(), result.data());
    return result.ToString();
  }

  // Returns the events, and forgets them.
  std::string Events() {
    std::string events = fs_.EventsOf({""});
    fs_.events.clear();
    return events;
  }

  DeferredReadFileSystem fs_;
  const std::string fname_;
  std::string data_;
  std::unique_ptr<OverlappedReadFile> file_;
};

TEST_F(OverlappedReadsTest, BegunReadsAreTakenOnce) {
  OverlappedReads reads(&fs_);
  ASSERT_TRUE(reads.empty());
  ASSERT_TRUE(reads.Begin(*file_, 1000, 500, IOOptions()));
  ASSERT_TRUE(reads.Begin(*file_, 3000, 10, IOOptions()));
  ASSERT_FALSE(reads.empty());
  ASSERT_EQ("begin begin", Events());
  {
    OverlappedReads::Scope scope(&reads);
    // The later read is taken first, and then a part of the earlier one.
    ASSERT_EQ(data_.substr(3000, 10), Read(3000, 10));
    ASSERT_EQ("end", Events());
    ASSERT_EQ(data_.substr(1100, 400), Read(1100, 400));
    ASSERT_EQ("end", Events());
    ASSERT_TRUE(reads.empty());
    // Each read is taken once.
    ASSERT_EQ(data_.substr(3000, 10), Read(3000, 10));
    ASSERT_EQ("read", Events());
  }
}

TEST_F(OverlappedReadsTest, OtherReadsAreNotTaken) {
  std::optional<OverlappedReads> reads(&fs_);
  ASSERT_TRUE(reads->Begin(*file_, 1000, 500, IOOptions()));
  Events();
  // Without a scope the read is not taken.
  ASSERT_EQ(data_.substr(1000, 500), Read(1000, 500));
  {
    OverlappedReads::Scope scope(&*reads);
    ASSERT_EQ(data_.substr(999, 500), Read(999, 500));
    ASSERT_EQ(data_.substr(1001, 500), Read(1001, 500));
    ASSERT_EQ(data_.substr(1500, 1), Read(1500, 1));
    ASSERT_EQ(data_.substr(9000, 500), Read(9000, 500));
    {
      OverlappedReads::Scope none(nullptr);
      ASSERT_EQ(data_.substr(1000, 500), Read(1000, 500));
    }
    // Another thread and another file do not take it.
    std::thread other(
        [&] { ASSERT_EQ(data_.substr(1000, 500), Read(1000, 500)); });
    other.join();
    const std::unique_ptr<OverlappedReadFile> begun = std::move(file_);
    Open(FileOptions());
    ASSERT_EQ(data_.substr(1000, 500), Read(1000, 500));
    ASSERT_FALSE(reads->empty());
    ASSERT_EQ(
        "read read read read read read read "
        "read",
        Events());
    // The destructor waits for a read that was not taken.
    reads.reset();
    ASSERT_EQ("end", Events());
  }
}

TEST_F(OverlappedReadsTest, FailedReadsAreRepeated) {
  for (const Trouble trouble :
       {Trouble::kNone, Trouble::kRefused, Trouble::kAtOnce, Trouble::kFailed,
        Trouble::kShort, Trouble::kOwnMemory, Trouble::kPollFails}) {
    SCOPED_TRACE(static_cast<int>(trouble));
    fs_.trouble = trouble;
    bool says_so = false;
    SyncPoint::GetInstance()->SetCallBack("FaultInjectionIgnoreError",
                                          [&](void*) { says_so = true; });
    SyncPoint::GetInstance()->EnableProcessing();
    std::optional<OverlappedReads> reads(&fs_);
    ASSERT_EQ(trouble != Trouble::kRefused,
              reads->Begin(*file_, 5, 100, IOOptions()));
    ASSERT_EQ(trouble != Trouble::kAtOnce && trouble != Trouble::kRefused,
              reads->is_async());
    reads->Begin(*file_, 7, 100, IOOptions());
    {
      OverlappedReads::Scope scope(&*reads);
      ASSERT_EQ(data_.substr(5, 100), Read(5, 100));
    }
    const bool has_read =
        trouble != Trouble::kNone && trouble != Trouble::kAtOnce;
    ASSERT_EQ(has_read ? 1 : 0,
              std::count(fs_.events.begin(), fs_.events.end(),
                         "read " + fname_.substr(fname_.rfind('/') + 1)));
    reads.reset();
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    // The sync point tells tests that inject errors to ignore this one.
    ASSERT_EQ(has_read, says_so);
    ASSERT_EQ(0, fs_.under_way);
    ASSERT_EQ(0, fs_.handles);
    Events();
  }
  // Damaged data is taken, and the reader has to notice it.
  fs_.trouble = Trouble::kCorrupt;
  OverlappedReads reads(&fs_);
  ASSERT_TRUE(reads.Begin(*file_, 5, 100, IOOptions()));
  OverlappedReads::Scope scope(&reads);
  ASSERT_NE(data_.substr(5, 100), Read(5, 100));
}

// Direct reads are aligned, and RandomAccessFileReader asks for the same pages.
TEST_F(OverlappedReadsTest, DirectReadsAreTakenByPages) {
  FileOptions options;
  options.use_direct_reads = true;
  std::unique_ptr<FSRandomAccessFile> file;
  if (!fs_.NewRandomAccessFile(fname_, options, &file, nullptr).ok()) {
    ROCKSDB_GTEST_SKIP("No direct I/O here");
    return;
  }
  Open(options);
  const size_t page = file_->GetRequiredBufferAlignment();
  ASSERT_LT(page, data_.size() / 3);
  OverlappedReads reads(&fs_);
  ASSERT_TRUE(reads.Begin(*file_, page - 3, 10, IOOptions()));
  ASSERT_TRUE(reads.Begin(*file_, 2 * page, page, IOOptions()));
  OverlappedReads::Scope scope(&reads);
  AlignedBuffer buffer;
  buffer.Alignment(page);
  buffer.AllocateNewBuffer(2 * page);
  const auto read = [&](uint64_t offset, size_t n) {
    Slice result;
    EXPECT_OK(file_->Read(offset, n, IOOptions(), &result, buffer.Destination(),
                          /*dbg=*/nullptr));
    return result.ToString();
  };
  Events();
  ASSERT_EQ(data_.substr(0, 2 * page), read(0, 2 * page));
  ASSERT_EQ(data_.substr(2 * page, page), read(2 * page, page));
  ASSERT_EQ("end end", Events());

  // These reads go beyond the end of the file.
  const uint64_t last = data_.size() - data_.size() % page;
  ASSERT_LT(last, data_.size());
  ASSERT_TRUE(reads.Begin(*file_, last + 3, 10, IOOptions()));
  ASSERT_TRUE(reads.Begin(*file_, last - 3, 10, IOOptions()));
  ASSERT_EQ("begin begin", Events());
  ASSERT_EQ(data_.substr(last), read(last, page));
  ASSERT_EQ(data_.substr(last - page), read(last - page, 2 * page));
  ASSERT_EQ("end end", Events());
}

TEST_F(OverlappedReadsTest, LongReadsAreNotBegun) {
  OverlappedReads reads(&fs_);
  ASSERT_FALSE(
      reads.Begin(*file_, 0, OverlappedReads::kMaxReadSize + 1, IOOptions()));
  ASSERT_TRUE(reads.is_async());
  ASSERT_EQ("", Events());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
