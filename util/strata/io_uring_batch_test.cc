//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/io_uring_batch.h"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/utilities/object_registry.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"

extern "C" bool RocksDbIOUringEnable() { return true; }

namespace ROCKSDB_NAMESPACE {

class IOUringBatchTest : public testing::Test {
 protected:
  static constexpr size_t kPiece = 100;

  IOUringBatchTest()
      : fs_(FileSystem::Default()),
        fname_(test::PerThreadDBPath("io_uring_batch_test_file")) {
    for (int i = 0; data_.size() < 100000; ++i) {
      data_ += std::to_string(i) + ";";
    }
    EXPECT_OK(
        WriteStringToFile(fs_.get(), data_, fname_, /*should_sync=*/false));
    EXPECT_OK(fs_->NewRandomAccessFile(fname_, FileOptions(), &file_, nullptr));
    SyncPoint::GetInstance()->SetCallBack(
        "IOUringBatch::SubmitAll:Submitted",
        [this](void* arg) { submitted_.push_back(*static_cast<int*>(arg)); });
    SyncPoint::GetInstance()->EnableProcessing();
  }
  ~IOUringBatchTest() override {
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    EXPECT_OK(fs_->DeleteFile(fname_, IOOptions(), nullptr));
  }

  bool IsSupported() const {
    return CheckFSFeatureSupport(fs_.get(), FSSupportedOps::kAsyncIO);
  }

  // Begins a read. Returns false if there is no room.
  bool Begin(uint64_t offset) {
    auto read = std::make_unique<Read>();
    read->request.offset = offset;
    read->request.len = kPiece;
    read->scratch.resize(kPiece);
    read->request.scratch = read->scratch.data();
    const IOStatus s = file_->ReadAsync(
        read->request, IOOptions(),
        [](FSReadRequest& done, void* arg) {
          static_cast<Read*>(arg)->result = done.result.ToString();
          done.status.PermitUncheckedError();  // it may have been given up
        },
        read.get(), &read->handle, &read->deleter, nullptr);
    read->request.status.PermitUncheckedError();
    if (s.ok()) {
      reads_.push_back(std::move(read));
    } else {
      EXPECT_TRUE(s.IsBusy()) << s.ToString();
    }
    return s.ok();
  }

  void EndAll() { End(fs_.get()); }
  void End(FileSystem* fs) {
    for (const auto& read : reads_) {
      std::vector<void*> handles{read->handle};
      ASSERT_OK(fs->Poll(handles, 1));
      ASSERT_EQ(data_.substr(read->request.offset, kPiece), read->result);
      read->deleter(read->handle);
    }
    reads_.clear();
  }

  struct Read {
    FSReadRequest request;
    std::string scratch;
    std::string result;
    void* handle = nullptr;
    IOHandleDeleter deleter;
  };

  const std::shared_ptr<FileSystem> fs_;
  const std::string fname_;
  std::string data_;
  std::unique_ptr<FSRandomAccessFile> file_;
  std::vector<std::unique_ptr<Read>> reads_;
  // Number of reads of each submission of a batch.
  std::vector<int> submitted_;
};

TEST_F(IOUringBatchTest, ReadsOfABatchAreSubmittedTogether) {
  if (!IsSupported()) {
    ROCKSDB_GTEST_SKIP("No io_uring here");
    return;
  }
  ASSERT_TRUE(Begin(1));
  EndAll();
  { IOUringBatch batch; }
  ASSERT_TRUE(submitted_.empty());
  for (int round = 0; round < 3; ++round) {
    {
      IOUringBatch batch;
      for (uint64_t i = 0; i < 10; ++i) {
        IOUringBatch inner;
        ASSERT_TRUE(Begin(1000 * i + 7));
      }
      ASSERT_TRUE(submitted_.empty());
    }
    ASSERT_EQ((std::vector<int>{10}), submitted_);
    EndAll();
    submitted_.clear();
    // Reads outside of a batch are submitted alone.
    ASSERT_TRUE(Begin(3));
    ASSERT_TRUE(Begin(5));
    ASSERT_TRUE(submitted_.empty());
    EndAll();
  }
}

// There are more reads than the ring has room for.
TEST_F(IOUringBatchTest, FullRingIsSubmittedEarly) {
  if (!IsSupported()) {
    ROCKSDB_GTEST_SKIP("No io_uring here");
    return;
  }
  constexpr int kReads = 700;
  {
    IOUringBatch batch;
    for (int i = 0; i < kReads; ++i) {
      ASSERT_TRUE(Begin(static_cast<uint64_t>(i)));
    }
    ASSERT_FALSE(submitted_.empty());
  }
  ASSERT_LT(1u, submitted_.size());
  ASSERT_EQ(kReads, std::accumulate(submitted_.begin(), submitted_.end(), 0));
  EndAll();
}

// A caller waits for a read before the batch ends, or aborts it.
TEST_F(IOUringBatchTest, WaitingOrAbortingSubmitsTheBatch) {
  if (!IsSupported()) {
    ROCKSDB_GTEST_SKIP("No io_uring here");
    return;
  }
  for (const bool aborts : {false, true}) {
    {
      IOUringBatch batch;
      ASSERT_TRUE(Begin(100));
      ASSERT_TRUE(Begin(200));
      if (aborts) {
        std::vector<void*> handles{reads_[0]->handle, reads_[1]->handle};
        ASSERT_OK(fs_->AbortIO(handles));
        for (const auto& read : reads_) {
          read->deleter(read->handle);
        }
        reads_.clear();
      } else {
        EndAll();
      }
      ASSERT_EQ((std::vector<int>{2}), submitted_);
      ASSERT_TRUE(Begin(300));
      ASSERT_EQ((std::vector<int>{2}), submitted_);
    }
    ASSERT_EQ((std::vector<int>{2, 1}), submitted_);
    EndAll();
    submitted_.clear();
  }
}

// Each file system has a ring of its own, and a batch collects the reads of the
// first ring only.
TEST_F(IOUringBatchTest, BatchCollectsReadsOfOneRing) {
  if (!IsSupported()) {
    ROCKSDB_GTEST_SKIP("No io_uring here");
    return;
  }
  std::shared_ptr<FileSystem> other;
  ConfigOptions config_options;
  config_options.registry = ObjectRegistry::NewInstance();
  ASSERT_OK(FileSystem::CreateFromString(config_options, "posix://", &other));
  ASSERT_NE(fs_.get(), other.get());
  std::unique_ptr<FSRandomAccessFile> file;
  ASSERT_OK(other->NewRandomAccessFile(fname_, FileOptions(), &file, nullptr));
  std::vector<std::unique_ptr<Read>> of_other;
  {
    IOUringBatch batch;
    ASSERT_TRUE(Begin(100));
    file_.swap(file);
    reads_.swap(of_other);
    ASSERT_TRUE(Begin(200));
    ASSERT_TRUE(Begin(300));
    file_.swap(file);
    reads_.swap(of_other);
    ASSERT_TRUE(Begin(400));
  }
  ASSERT_EQ((std::vector<int>{2}), submitted_);
  EndAll();
  reads_.swap(of_other);
  End(other.get());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
