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
  // Calls each of `later` in a thread of its own while the first edit of
  // `first` is written to the MANIFEST. Each of them logs one list of edits;
  // these are queued in this order and are tried as one group.
  void LogBehind(const std::function<void()>& first,
                 const std::vector<std::function<void()>>& later) {
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
            return;  // This call writes an edit of `later`.
          }
          for (const std::function<void()>& log : later) {
            const size_t before = num_queued.load();
            threads.emplace_back(log);
            num_queued.wait(before);
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
    first();
    for (port::Thread& thread : threads) {
      thread.join();
    }
    DisableCallBacks();
    EXPECT_EQ(later.size() + 1, num_queued.load());
  }

  // Logs the edits as one group: they are queued in this order while the
  // MANIFEST is written for another edit.
  std::vector<Result> LogTogether(const std::vector<VersionEdit*>& edits) {
    std::vector<Result> results(edits.size());
    std::vector<std::function<void()>> later;
    for (size_t i = 0; i < edits.size(); ++i) {
      later.emplace_back(
          [this, i, &edits, &results] { results[i] = Log(edits[i]); });
    }
    LogBehind(
        [this] {
          VersionEdit first;
          EXPECT_TRUE(Log(&first).ok());
        },
        later);
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

// The edits of an atomic group wait behind the drop of one of its families, and
// are tried twice: first in one group with an edit that the edit before them
// makes impossible.
TEST_F(RefusedEditTest, AtomicGroupKeepsItsNumbersWhenItIsTriedAgain) {
  Options options = CurrentOptions();
  options.disable_auto_compactions = true;
  CreateAndReopenWithCF({"first", "dropped", "last"}, options);
  ASSERT_OK(Put("key", "value"));
  ASSERT_OK(Flush());
  std::vector<LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(1, files.size());

  VersionEdit deletion;
  deletion.DeleteFile(/*level=*/0, files[0].file_number);
  VersionEdit same_deletion;
  same_deletion.DeleteFile(/*level=*/0, files[0].file_number);
  VersionEdit members[3];
  autovector<ColumnFamilyData*> cfds;
  autovector<autovector<VersionEdit*>> edit_lists;
  for (size_t i = 0; i < 3; ++i) {
    cfds.push_back(
        static_cast<ColumnFamilyHandleImpl*>(handles_[i + 1])->cfd());
    members[i].SetColumnFamily(cfds[i]->GetID());
    members[i].MarkAtomicGroup(static_cast<uint32_t>(2 - i));
    autovector<VersionEdit*> edit_list;
    edit_list.push_back(&members[i]);
    edit_lists.push_back(edit_list);
  }

  // The sizes of the atomic groups that are written.
  std::vector<size_t> sizes;
  SyncPoint::GetInstance()->SetCallBack(
      "VersionSet::ProcessManifestWrites:CheckOneAtomicGroup", [&](void* arg) {
        sizes.push_back(static_cast<std::vector<VersionEdit*>*>(arg)->size());
      });
  Result of_deletion;
  Result of_same_deletion;
  Status of_group;
  LogBehind([&] { ASSERT_OK(db_->DropColumnFamily(handles_[2])); },
            {[&] { of_deletion = Log(&deletion); },
             [&] {
               InstrumentedMutexLock lock(dbfull()->mutex());
               of_group = dbfull()->GetVersionSet()->LogAndApply(
                   cfds, ReadOptions(), WriteOptions(), edit_lists,
                   dbfull()->mutex(), /*dir_contains_current_file=*/nullptr,
                   /*new_descriptor_log=*/false, /*new_cf_options=*/nullptr);
             },
             [&] { of_same_deletion = Log(&same_deletion); }});
  ASSERT_TRUE(of_deletion.IsCorruption());
  ASSERT_OK(of_group);
  ASSERT_TRUE(of_same_deletion.ok());
  ASSERT_EQ(std::vector<size_t>{2}, sizes);

  ReopenWithColumnFamilies({"default", "first", "last"}, options);
  ASSERT_EQ("NOT_FOUND", Get(0, "key"));
}
#endif  // !NDEBUG

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  RegisterCustomObjects(argc, argv);
  return RUN_ALL_TESTS();
}
