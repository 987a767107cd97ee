//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The commit of an atomic flush: what readers see meanwhile, and what a caller
// waits for.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/metadata.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class AtomicFlushInstallTest : public DBTestBase {
 public:
  AtomicFlushInstallTest()
      : DBTestBase("atomic_flush_install_test", /*env_do_fsync=*/false) {}

  Status CompactFirstFile(ColumnFamilyHandle* family) {
    ColumnFamilyMetaData meta;
    db_->GetColumnFamilyMetaData(family, &meta);
    const SstFileMetaData& file = meta.levels[0].files[0];
    return db_->CompactFiles(CompactionOptions(), family,
                             {file.db_path + "/" + file.name}, 1);
  }
};

// A compaction of the first column family leads the group of edits that
// contains the flush, and installs its SuperVersion before the flush gets the
// DB mutex. Readers at this moment apply each operand once: from the memtable
// or from the flushed file, not from both.
TEST_F(AtomicFlushInstallTest, OperandsAreSeenOnce) {
  Options options = CurrentOptions();
  options.atomic_flush = true;
  options.disable_auto_compactions = true;
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  CreateAndReopenWithCF({"other"}, options);
  for (ColumnFamilyHandle* family : handles_) {
    ASSERT_OK(db_->Put(WriteOptions(), family, "k", "a"));
  }
  ASSERT_OK(db_->Flush(FlushOptions(), handles_));
  for (ColumnFamilyHandle* family : handles_) {
    ASSERT_OK(db_->Merge(WriteOptions(), family, "k", "b"));
  }

  std::mutex mutex;
  std::condition_variable changed;
  int queued = 0;
  const auto wait_for = [&](int n) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return queued >= n; });
  };
  SyncPoint::GetInstance()->SetCallBack(
      "VersionSet::LogAndApply:BeforeWriterWaiting", [&](void*) {
        std::lock_guard<std::mutex> lock(mutex);
        ++queued;
        changed.notify_all();
      });
  std::atomic<bool> is_first{true};
  SyncPoint::GetInstance()->SetCallBack("VersionSet::LogAndApply:WriteManifest",
                                        [&](void*) {
                                          if (is_first.exchange(false)) {
                                            wait_for(3);
                                          }
                                        });
  std::vector<std::string> seen;
  bool has_read = false;
  EnableCallBack("VersionSet::LogAndApply:WakeUpAndDone", [&](void* arg) {
    auto* const db_mutex = static_cast<InstrumentedMutex*>(arg);
    db_mutex->Unlock();
    std::thread([&] {
      for (ColumnFamilyHandle* family : handles_) {
        std::string value;
        const Status s = db_->Get(ReadOptions(), family, "k", &value);
        seen.push_back(s.ok() ? value : s.ToString());
      }
    }).join();
    db_mutex->Lock();
    std::lock_guard<std::mutex> lock(mutex);
    has_read = true;
    changed.notify_all();
  });

  Status first;
  Status leader;
  Status flush;
  std::thread first_thread([&] { first = CompactFirstFile(handles_[1]); });
  wait_for(1);
  std::thread leader_thread([&] { leader = CompactFirstFile(handles_[0]); });
  wait_for(2);
  std::thread flush_thread(
      [&] { flush = db_->Flush(FlushOptions(), handles_); });
  first_thread.join();
  leader_thread.join();
  flush_thread.join();
  {
    // Flush() may return as soon as the edit is committed, which is before the
    // callback has read.
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return has_read; });
  }
  DisableCallBacks();
  ASSERT_OK(first);
  ASSERT_OK(leader);
  ASSERT_OK(flush);
  ASSERT_EQ(seen, std::vector<std::string>({"a,b", "a,b"}));
  for (ColumnFamilyHandle* family : handles_) {
    std::string value;
    ASSERT_OK(db_->Get(ReadOptions(), family, "k", &value));
    ASSERT_EQ(value, "a,b");
  }
}

// Flush() returns when all its families are flushed, also if another flush has
// committed one of them before. The ids of memtables, which a wait compares,
// are numbers of a family of its own: "default" has the larger ones here.
TEST_F(AtomicFlushInstallTest, FlushWaitsForEachFamily) {
  Options options = CurrentOptions();
  options.atomic_flush = true;
  options.disable_auto_compactions = true;
  options.max_write_buffer_number = 8;
  CreateAndReopenWithCF({"other"}, options);
  const auto put = [&](int family) {
    WriteOptions write_options;
    write_options.disableWAL = true;
    ASSERT_OK(db_->Put(write_options, handles_[family], "k", "v"));
  };
  for (int i = 0; i < 5; ++i) {
    put(0);
    ASSERT_OK(db_->Flush(FlushOptions(), handles_[0]));
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool may_begin = false;
  bool has_returned = false;
  int flushes = 0;
  // The job of the first flush begins when the second one was requested. The
  // job of the second one waits for its Flush(), which would return if it did
  // not wait for the job.
  EnableCallBack("DBImpl::BackgroundCallFlush:start", [&](void*) {
    std::unique_lock<std::mutex> lock(mutex);
    if (++flushes == 1) {
      changed.wait(lock, [&] { return may_begin; });
    } else {
      changed.wait_for(lock, std::chrono::milliseconds(300),
                       [&] { return has_returned; });
    }
  });
  SyncPoint::GetInstance()->SetCallBack(
      "DBImpl::AtomicFlushMemTables:BeforeWaitForBgFlush", [&](void*) {
        std::lock_guard<std::mutex> lock(mutex);
        may_begin = flushes > 0;
        changed.notify_all();
      });
  put(1);
  FlushOptions no_wait;
  no_wait.wait = false;
  ASSERT_OK(db_->Flush(no_wait, handles_[1]));
  {
    // The job of the first flush has begun, so the next call lets it go on.
    std::unique_lock<std::mutex> lock(mutex);
    while (flushes == 0) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
  put(0);
  ASSERT_OK(db_->Flush(FlushOptions(), handles_));
  for (ColumnFamilyHandle* family : handles_) {
    uint64_t unflushed = 1;
    ASSERT_TRUE(db_->GetIntProperty(
        family, DB::Properties::kNumImmutableMemTable, &unflushed));
    EXPECT_EQ(unflushed, 0U) << family->GetName();
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    has_returned = true;
    changed.notify_all();
  }
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  DisableCallBacks();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
