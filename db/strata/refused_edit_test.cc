//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// VersionSet::LogAndApply() with an edit that cannot be applied to the state
// returns Corruption to the edit's writer, and no later writer waits forever.

#include <atomic>
#include <functional>
#include <vector>

#include "db/column_family.h"
#include "db/db_test_util.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "port/port.h"
#include "port/stack_trace.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

class RefusedEditTest : public DBTestBase {
 protected:
  // The status and the callback that the writer of an edit gets.
  struct Result {
    Status status;
    Status of_callback;
    int num_callbacks = 0;

    bool IsCorruption() const {
      return status.IsCorruption() && of_callback.IsCorruption() &&
             num_callbacks == 1;
    }
    bool ok() const {
      return status.ok() && of_callback.ok() && num_callbacks == 1;
    }
  };

  RefusedEditTest() : DBTestBase("refused_edit_test", /*env_do_fsync=*/false) {}

  // Returns an edit that deletes a file that does not exist.
  static VersionEdit RefusedEdit() {
    VersionEdit edit;
    edit.DeleteFile(/*level=*/0, /*file=*/uint64_t{1} << 40);
    return edit;
  }

  static std::function<void(const Status&)> CallbackOf(Result* result) {
    return [result](const Status& s) {
      ++result->num_callbacks;
      result->of_callback = s;
    };
  }

  Result Log(VersionEdit* edit) {
    Result result;
    VersionSet* const versions = dbfull()->GetVersionSet();
    InstrumentedMutexLock lock(dbfull()->mutex());
    result.status = versions->LogAndApply(
        versions->GetColumnFamilySet()->GetDefault(), ReadOptions(),
        WriteOptions(), edit, dbfull()->mutex(),
        /*dir_contains_current_file=*/nullptr, /*new_descriptor_log=*/false,
        /*column_family_options=*/nullptr, CallbackOf(&result));
    return result;
  }

#ifndef NDEBUG
  // Logs the edits as one group: they are queued in this order while the
  // MANIFEST is written for another edit.
  std::vector<Result> LogTogether(const std::vector<VersionEdit*>& edits) {
    std::vector<Result> results(edits.size());
    std::vector<port::Thread> threads;
    std::atomic<size_t> num_queued{0};
    SyncPoint::GetInstance()->SetCallBack(
        "VersionSet::LogAndApply:BeforeWriterWaiting", [&](void*) {
          num_queued.fetch_add(1);
          num_queued.notify_all();
        });
    SyncPoint::GetInstance()->SetCallBack(
        "VersionSet::LogAndApply:WriteManifest", [&](void*) {
          if (!threads.empty()) {
            return;  // This call writes one of `edits`.
          }
          for (size_t i = 0; i < edits.size(); ++i) {
            const size_t before = num_queued.load();
            threads.emplace_back(
                [this, i, &edits, &results] { results[i] = Log(edits[i]); });
            num_queued.wait(before);
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
    VersionEdit first;
    EXPECT_TRUE(Log(&first).ok());
    for (port::Thread& thread : threads) {
      thread.join();
    }
    DisableCallBacks();
    EXPECT_EQ(edits.size() + 1, num_queued.load());
    return results;
  }
#endif  // !NDEBUG

  // Checks that later edits are not held up.
  void CheckFlush() {
    ASSERT_OK(Put("key", "value"));
    ASSERT_OK(Flush());
    Reopen(CurrentOptions());
    ASSERT_EQ("value", Get("key"));
  }
};

TEST_F(RefusedEditTest, SingleEditIsRefused) {
  VersionEdit refused = RefusedEdit();
  ASSERT_TRUE(Log(&refused).IsCorruption());
  CheckFlush();
}

TEST_F(RefusedEditTest, EditsOfSeveralFamiliesAreRefusedTogether) {
  CreateColumnFamilies({"other"}, CurrentOptions());
  ReopenWithColumnFamilies({"default", "other"}, CurrentOptions());
  for (const bool is_first : {true, false}) {
    autovector<ColumnFamilyData*> cfds;
    autovector<autovector<VersionEdit*>> edit_lists;
    std::vector<std::function<void(const Status&)>> callbacks;
    VersionEdit edits[2];
    edits[is_first ? 0 : 1] = RefusedEdit();
    Result results[2];
    for (size_t i = 0; i < 2; ++i) {
      cfds.push_back(static_cast<ColumnFamilyHandleImpl*>(handles_[i])->cfd());
      edits[i].SetColumnFamily(cfds[i]->GetID());
      autovector<VersionEdit*> edit_list;
      edit_list.push_back(&edits[i]);
      edit_lists.push_back(edit_list);
      callbacks.push_back(CallbackOf(&results[i]));
    }
    Status s;
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      s = dbfull()->GetVersionSet()->LogAndApply(
          cfds, ReadOptions(), WriteOptions(), edit_lists, dbfull()->mutex(),
          /*dir_contains_current_file=*/nullptr, /*new_descriptor_log=*/false,
          /*new_cf_options=*/nullptr, callbacks);
    }
    for (Result& result : results) {
      result.status = s;
      ASSERT_TRUE(result.IsCorruption());
    }
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(Put(i, "key", "value"));
      ASSERT_OK(Flush(i));
    }
  }
}

#ifndef NDEBUG
TEST_F(RefusedEditTest, RefusedLeadersDoNotFailALaterEdit) {
  VersionEdit refused = RefusedEdit();
  VersionEdit also_refused = RefusedEdit();
  VersionEdit good;
  const std::vector<Result> results =
      LogTogether({&refused, &also_refused, &good});
  ASSERT_TRUE(results[0].IsCorruption());
  ASSERT_TRUE(results[1].IsCorruption());
  ASSERT_TRUE(results[2].ok());
  CheckFlush();
}

// The writer that leads the group gets the error, too, because an edit of
// another writer could have made its own one impossible.
TEST_F(RefusedEditTest, RefusedEditFailsItsLeaderButNotALaterEdit) {
  VersionEdit good;
  VersionEdit refused = RefusedEdit();
  VersionEdit also_good;
  const std::vector<Result> results =
      LogTogether({&good, &refused, &also_good});
  ASSERT_TRUE(results[0].IsCorruption());
  ASSERT_TRUE(results[1].IsCorruption());
  ASSERT_TRUE(results[2].ok());
  CheckFlush();
}
#endif  // !NDEBUG

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  RegisterCustomObjects(argc, argv);
  return RUN_ALL_TESTS();
}
