//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Automatic compactions that could not be scheduled beside an exclusive manual
// one are scheduled when it ends.

#include <chrono>
#include <string>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

class ManualCompactionScheduleTest : public DBTestBase {
 public:
  ManualCompactionScheduleTest()
      : DBTestBase("manual_compaction_schedule_test",
                   /*env_do_fsync=*/false) {}

 protected:
  // Opens a DB whose family "other" is compacted when it has two files in level
  // 0, and has one of them. It gets the second one while a manual compaction is
  // about to begin.
  void OpenForCompactionBesideManual() {
    Options options = CurrentOptions();
    options.level0_file_num_compaction_trigger = 2;
    CreateAndReopenWithCF({"other"}, options);
    ASSERT_OK(Put(1, "a", "1"));
    ASSERT_OK(Flush(1));
    SyncPoint::GetInstance()->SetCallBack(
        "DBImpl::RunManualCompaction:NotScheduled", [this](void* mutex) {
          if (has_begun_) {
            return;
          }
          has_begun_ = true;
          auto* const db_mutex = static_cast<InstrumentedMutex*>(mutex);
          db_mutex->Unlock();
          ASSERT_OK(Put(1, "a", "2"));
          ASSERT_OK(Flush(1));
          ASSERT_EQ(NumTableFilesAtLevel(0, 1), 2);
          db_mutex->Lock();
        });
    SyncPoint::GetInstance()->EnableProcessing();
  }

  void CheckOtherFamilyIsCompacted() {
    ASSERT_TRUE(has_begun_);
    WaitForCompactOptions wait;
    wait.timeout = std::chrono::seconds(60);
    ASSERT_OK(db_->WaitForCompact(wait));
    ASSERT_EQ(NumTableFilesAtLevel(0, 1), 0);
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }

 private:
  bool has_begun_ = false;
};

TEST_F(ManualCompactionScheduleTest, AfterCompaction) {
  OpenForCompactionBesideManual();
  ASSERT_OK(Put(0, "a", "1"));
  ASSERT_OK(Flush(0));
  CompactRangeOptions compact;
  compact.exclusive_manual_compaction = true;
  ASSERT_OK(db_->CompactRange(compact, handles_[0], nullptr, nullptr));
  CheckOtherFamilyIsCompacted();
}

TEST_F(ManualCompactionScheduleTest, WithoutFilesToCompact) {
  OpenForCompactionBesideManual();
  ASSERT_OK(dbfull()->TEST_CompactRange(/*level=*/1, nullptr, nullptr,
                                        handles_[0],
                                        /*disallow_trivial_move=*/true));
  CheckOtherFamilyIsCompacted();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
