//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Readers see correct values while another thread commits an atomic flush.

#include <atomic>
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

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
