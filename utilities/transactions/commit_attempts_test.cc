//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "utilities/transactions/commit_attempts.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/write_controller.h"
#include "port/port.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test_util/strata/history_fault_fs_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/cast_util.h"
#include "util/coding.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class CommitAttemptsTest : public testing::Test {
 protected:
  CommitAttemptsTest()
      : path_(test::PerThreadDBPath("commit_attempts_test")),
        fs_(std::make_shared<HistoryFaultFS>(Env::Default()->GetFileSystem(),
                                             path_)),
        env_(NewCompositeEnv(fs_)) {
    options_.env = env_.get();
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.merge_operator = MergeOperators::CreateUInt64AddOperator();
    // A commit past the memtable makes two immutable ones.
    options_.max_write_buffer_number = 8;
    // The next open replays the WALs.
    options_.avoid_flush_during_shutdown = true;
    // The tests call Resume().
    options_.max_bgerror_resume_count = 0;
    write_options_.no_slowdown = true;
  }
  ~CommitAttemptsTest() override {
    Close();
    EXPECT_OK(DestroyDB(path_, options_));
  }

  void Close() {
    txn_.reset();
    if (db_ == nullptr) {
      return;
    }
    for (ColumnFamilyHandle* handle : handles_) {
      EXPECT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    db_.reset();
  }
  // The process ends, and another one opens the database.
  void Restart() {
    Close();
    TransactionDB* db = nullptr;
    ASSERT_OK(TransactionDB::Open(
        options_, txn_db_options_, path_,
        {{kDefaultColumnFamilyName, options_}, {"other", options_}}, &handles_,
        &db));
    db_.reset(db);
  }
  void OpenEmpty(TxnDBWritePolicy policy = WRITE_COMMITTED,
                 bool two_write_queues = false) {
    Close();
    ASSERT_OK(DestroyDB(path_, options_));
    txn_db_options_.write_policy = policy;
    options_.two_write_queues = two_write_queues;
    Restart();
  }

  void Begin() {
    txn_.reset(db_->BeginTransaction(write_options_, txn_options_));
    ASSERT_OK(txn_->SetName("name"));
  }
  // Prepares a transaction that adds 1 to a counter of each column family.
  void PrepareIncrement() {
    Begin();
    std::string one;
    PutFixed64(&one, 1);
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_OK(txn_->Merge(handle, "counter", one));
    }
    ASSERT_OK(txn_->Prepare());
  }
  // Prepares a transaction that writes a value to each column family.
  void PrepareValue() {
    Begin();
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_OK(txn_->Put(handle, "key", "value"));
    }
    ASSERT_OK(txn_->Prepare());
  }

  // A Commit() that does not come to the WAL.
  void StallCommit() {
    const std::unique_ptr<WriteControllerToken> stop = StopWrites();
    const Status s = txn_->Commit();
    ASSERT_TRUE(s.IsIncomplete()) << s.ToString();
  }
  std::unique_ptr<WriteControllerToken> StopWrites() {
    return static_cast_with_check<DBImpl>(db_->GetRootDB())
        ->TEST_write_controler()
        .GetStopToken();
  }
  // A Commit() whose next operation of this kind on a WAL fails.
  void FailCommitInWal(HistoryFileOp op, bool is_retryable) {
    HistoryFaultFS::Rule rule;
    rule.op = op;
    rule.pattern = "*.log";
    rule.count = 1;
    rule.retryable = is_retryable;
    fs_->AddRule(rule);
    const Status s = txn_->Commit();
    ASSERT_TRUE(s.IsIOError()) << s.ToString();
    fs_->ClearRules();
  }

  std::string Get(ColumnFamilyHandle* handle, const std::string& key,
                  const ReadOptions& read_options = ReadOptions()) {
    std::string value;
    const Status s = db_->Get(read_options, handle, key, &value);
    return s.ok() ? value : s.IsNotFound() ? "NOT_FOUND" : s.ToString();
  }
  void ExpectCounters(uint64_t expected) {
    std::string value = "NOT_FOUND";
    if (expected > 0) {
      value.clear();
      PutFixed64(&value, expected);
    }
    for (ColumnFamilyHandle* handle : handles_) {
      EXPECT_EQ(value, Get(handle, "counter"));
    }
  }
  void ExpectValues(const std::string& expected) {
    for (ColumnFamilyHandle* handle : handles_) {
      EXPECT_EQ(expected, Get(handle, "key"));
    }
  }
  uint64_t NumMemtableEntries() {
    uint64_t count = 0;
    EXPECT_TRUE(db_->GetIntProperty(
        handles_[0], DB::Properties::kNumEntriesActiveMemTable, &count));
    return count;
  }
  // A write to the WAL would have the sequence number of the failed one.
  void PutWithoutWal() {
    WriteOptions without_wal;
    without_wal.disableWAL = true;
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_OK(db_->Put(without_wal, handle, "key", "value"));
    }
  }
  void FlushAll() {
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_OK(db_->Flush(FlushOptions(), handle));
    }
  }
  void ExpectNothingPrepared() {
    std::vector<Transaction*> prepared;
    db_->GetAllPreparedTransactions(&prepared);
    EXPECT_TRUE(prepared.empty());
  }
  // Calls write(), whose write to the DB joins the group of another one that
  // puts the value, and returns the status of write(). The statuses of both are
  // the same.
  template <typename Write>
  Status BehindAnotherWrite(const Write& write, const std::string& key,
                            const std::string& value) {
    std::atomic<bool> leads{false};
    std::atomic<bool> follows{false};
    SyncPoint* const sync_point = SyncPoint::GetInstance();
    const auto wait_for_follower = [&](void* /*arg*/) {
      leads = true;
      while (!follows) {
        std::this_thread::yield();
      }
    };
    sync_point->SetCallBack("DBImpl::WriteImpl:BeforeLeaderEnters",
                            wait_for_follower);
    sync_point->SetCallBack(
        "DBImplWrite::PipelinedWriteImpl:AfterJoinBatchGroup",
        wait_for_follower);
    sync_point->SetCallBack("WriteThread::JoinBatchGroup:BeganWaiting",
                            [&](void* /*arg*/) { follows = true; });
    sync_point->EnableProcessing();
    Status leader_status;
    port::Thread leader([&] {
      leader_status =
          db_->GetRootDB()->Put(write_options_, handles_[0], key, value);
    });
    while (!leads) {
      std::this_thread::yield();
    }
    const Status s = write();
    leader.join();
    sync_point->DisableProcessing();
    sync_point->ClearAllCallBacks();
    EXPECT_EQ(s.ToString(), leader_status.ToString());
    return s;
  }

  const std::string path_;
  const std::shared_ptr<HistoryFaultFS> fs_;
  const std::unique_ptr<Env> env_;
  Options options_;
  TransactionDBOptions txn_db_options_;
  WriteOptions write_options_;
  TransactionOptions txn_options_;
  std::vector<ColumnFamilyHandle*> handles_;
  std::unique_ptr<TransactionDB> db_;
  std::unique_ptr<Transaction> txn_;
};

// The parameters are the write policy, and whether there are two write queues.
class CommitAttemptsPolicyTest
    : public CommitAttemptsTest,
      public testing::WithParamInterface<std::tuple<TxnDBWritePolicy, bool>> {
 protected:
  void OpenWithParams() {
    OpenEmpty(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};

TEST_P(CommitAttemptsPolicyTest, RepeatedCommitIsAppliedOnce) {
  OpenWithParams();
  PrepareIncrement();
  StallCommit();
  StallCommit();
  ASSERT_OK(txn_->Commit());
  ExpectCounters(1);
  Restart();
  ExpectCounters(1);
  FlushAll();
  Restart();
  ExpectCounters(1);
  ExpectNothingPrepared();
}

TEST_P(CommitAttemptsPolicyTest, RollbackAfterAFailedCommit) {
  OpenWithParams();
  PrepareValue();
  StallCommit();
  ASSERT_OK(txn_->Rollback());
  ExpectValues("NOT_FOUND");
  // The locks are released.
  ASSERT_OK(db_->Put(write_options_, handles_[0], "key", "new"));
  ASSERT_OK(db_->Put(write_options_, handles_[1], "key", "new"));
  Restart();
  ExpectValues("new");
  ExpectNothingPrepared();
}

// The batch does not grow, and is replayed once.
TEST_P(CommitAttemptsPolicyTest, CommitTimeBatch) {
  txn_options_.use_only_the_last_commit_time_batch_for_recovery = true;
  OpenWithParams();
  PrepareIncrement();
  WriteBatch* const batch = txn_->GetCommitTimeWriteBatch();
  ASSERT_OK(batch->Put("state", "1"));
  // A write sets the sequence number, which comes first.
  const std::string contents = batch->Data().substr(sizeof(SequenceNumber));
  for (int i = 0; i < 2; ++i) {
    StallCommit();
    EXPECT_EQ(contents, batch->Data().substr(sizeof(SequenceNumber)));
    EXPECT_FALSE(batch->HasCommit());
    EXPECT_TRUE(batch->GetWalTerminationPoint().is_cleared());
  }
  ASSERT_OK(txn_->Commit());
  ExpectCounters(1);
  Restart();
  ExpectCounters(1);
  EXPECT_EQ("1", Get(handles_[0], "state"));
}

// The write of the marker fails after, or before, it has come to the WAL.
TEST_P(CommitAttemptsPolicyTest, CommitAfterARecovery) {
  write_options_.sync = true;
  for (const HistoryFileOp op : {HistoryFileOp::kSync, HistoryFileOp::kWrite}) {
    SCOPED_TRACE(HistoryFileOpName(op));
    OpenWithParams();
    PrepareIncrement();
    FailCommitInWal(op, /*is_retryable=*/true);
    ASSERT_NOK(txn_->Commit());
    ASSERT_OK(db_->Resume());
    ExpectCounters(0);
    // This attempt does not come to the WAL.
    StallCommit();
    ASSERT_OK(txn_->Commit());
    ExpectCounters(1);
    Restart();
    ExpectCounters(1);
    ExpectNothingPrepared();
    FlushAll();
    Restart();
    ExpectCounters(1);
  }
}

TEST_P(CommitAttemptsPolicyTest, RollbackAfterARecovery) {
  write_options_.sync = true;
  for (const HistoryFileOp op : {HistoryFileOp::kSync, HistoryFileOp::kWrite}) {
    SCOPED_TRACE(HistoryFileOpName(op));
    OpenWithParams();
    PrepareValue();
    FailCommitInWal(op, /*is_retryable=*/true);
    ASSERT_OK(db_->Resume());
    ASSERT_OK(txn_->Rollback());
    ExpectValues("NOT_FOUND");
    Restart();
    ExpectValues("NOT_FOUND");
    ExpectNothingPrepared();
  }
}

// Another write leads the one of the transaction, which then has to learn from
// its leader which WAL has its record.
TEST_F(CommitAttemptsTest, FollowerOfAnotherWrite) {
  write_options_.sync = true;
  for (const bool is_pipelined : {false, true}) {
    SCOPED_TRACE(is_pipelined);
    options_.enable_pipelined_write = is_pipelined;
    OpenEmpty();
    PrepareValue();
    HistoryFaultFS::Rule rule;
    rule.op = HistoryFileOp::kSync;
    rule.pattern = "*.log";
    rule.count = 1;
    rule.retryable = true;
    fs_->AddRule(rule);
    const auto commit = [this] { return txn_->Commit(); };
    const Status s = BehindAnotherWrite(commit, "other", "value");
    ASSERT_TRUE(s.IsIOError()) << s.ToString();
    fs_->ClearRules();
    ASSERT_OK(db_->Resume());
    ExpectValues("NOT_FOUND");
    ASSERT_OK(txn_->Commit());
    ExpectValues("value");
    Restart();
    ExpectValues("value");
    EXPECT_EQ("NOT_FOUND", Get(handles_[0], "other"));
    ExpectNothingPrepared();
  }
}

// The object is used again for a transaction without a commit-time batch, which
// does not replace the last state by an empty one.
TEST_P(CommitAttemptsPolicyTest, StateOutlivesTheNextUseOfTheObject) {
  txn_options_.use_only_the_last_commit_time_batch_for_recovery = true;
  OpenWithParams();
  PrepareValue();
  ASSERT_OK(txn_->GetCommitTimeWriteBatch()->Put("state", "1"));
  ASSERT_OK(txn_->Commit());
  ASSERT_EQ(txn_.get(),
            db_->BeginTransaction(write_options_, txn_options_, txn_.get()));
  ASSERT_OK(txn_->SetName("another"));
  ASSERT_OK(txn_->Put(handles_[0], "key", "new"));
  ASSERT_OK(txn_->Prepare());
  ASSERT_OK(txn_->Commit());
  FlushAll();
  EXPECT_EQ("1", Get(handles_[0], "state"));
  Restart();
  EXPECT_EQ("1", Get(handles_[0], "state"));
}

INSTANTIATE_TEST_CASE_P(Policies, CommitAttemptsPolicyTest,
                        testing::Combine(testing::Values(WRITE_COMMITTED,
                                                         WRITE_PREPARED,
                                                         WRITE_UNPREPARED),
                                         testing::Bool()));

TEST_F(CommitAttemptsTest, EntriesAreInsertedOnce) {
  OpenEmpty();
  ASSERT_OK(db_->Put(write_options_, "key", "value"));
  Begin();
  ASSERT_OK(txn_->SingleDelete("key"));
  ASSERT_OK(txn_->Prepare());
  StallCommit();
  ASSERT_OK(txn_->Commit());
  EXPECT_EQ(2, NumMemtableEntries());
  EXPECT_EQ("NOT_FOUND", Get(handles_[0], "key"));
}

TEST_F(CommitAttemptsTest, ProtectedBatches) {
  write_options_.protection_bytes_per_key = 8;
  OpenEmpty();
  PrepareIncrement();
  ASSERT_OK(txn_->GetCommitTimeWriteBatch()->Put("state", "1"));
  StallCommit();
  ASSERT_OK(txn_->GetCommitTimeWriteBatch()->Put("state", "2"));
  ASSERT_OK(txn_->Commit());
  ExpectCounters(1);
  EXPECT_EQ("2", Get(handles_[0], "state"));
  Restart();
  ExpectCounters(1);
  EXPECT_EQ("2", Get(handles_[0], "state"));
}

// The batch becomes a memtable of its own, and may fail before that.
TEST_F(CommitAttemptsTest, CommitPastTheMemtable) {
  txn_options_.commit_bypass_memtable = true;
  OpenEmpty();
  PrepareValue();
  StallCommit();
  std::string value;
  ASSERT_OK(txn_->Get(ReadOptions(), handles_[0], "key", &value));
  EXPECT_EQ("value", value);
  StallCommit();
  ASSERT_OK(txn_->Commit());
  EXPECT_EQ(0, NumMemtableEntries());
  ExpectValues("value");
  FlushAll();
  ExpectValues("value");
  Restart();
  ExpectValues("value");

  // The object is used again.
  ASSERT_OK(db_->Delete(write_options_, handles_[0], "key"));
  ASSERT_OK(db_->Delete(write_options_, handles_[1], "key"));
  PrepareValue();
  StallCommit();
  ASSERT_OK(txn_->Rollback());
  ExpectValues("NOT_FOUND");
  ASSERT_EQ(txn_.get(),
            db_->BeginTransaction(write_options_, txn_options_, txn_.get()));
  ASSERT_OK(txn_->SetName("another"));
  ASSERT_OK(txn_->Put(handles_[0], "key", "new"));
  ASSERT_OK(txn_->Prepare());
  ASSERT_OK(txn_->Commit());
  EXPECT_EQ("new", Get(handles_[0], "key"));
  Restart();
  EXPECT_EQ("new", Get(handles_[0], "key"));
  EXPECT_EQ("NOT_FOUND", Get(handles_[1], "key"));
}

TEST_F(CommitAttemptsTest, CommitPastTheMemtableAfterARecovery) {
  txn_options_.commit_bypass_memtable = true;
  write_options_.sync = true;
  OpenEmpty();
  PrepareIncrement();
  ASSERT_OK(txn_->GetCommitTimeWriteBatch()->Put("state", "1"));
  FailCommitInWal(HistoryFileOp::kSync, /*is_retryable=*/true);
  ASSERT_OK(db_->Resume());
  ASSERT_OK(txn_->Commit());
  ExpectCounters(1);
  EXPECT_EQ("1", Get(handles_[0], "state"));
  Restart();
  ExpectCounters(1);
  EXPECT_EQ("1", Get(handles_[0], "state"));
  ExpectNothingPrepared();
}

// Each of several WALs has a commit marker.
TEST_F(CommitAttemptsTest, SeveralRecoveries) {
  write_options_.sync = true;
  OpenEmpty();
  PrepareIncrement();
  for (int i = 0; i < 3; ++i) {
    FailCommitInWal(HistoryFileOp::kSync, /*is_retryable=*/true);
    ASSERT_OK(db_->Resume());
  }
  ASSERT_OK(txn_->Commit());
  ExpectCounters(1);
  Restart();
  ExpectCounters(1);
}

// Writes go on after the error, without a recovery. (The next open need not
// accept the WAL then, as in RocksDB: sequence numbers are in it twice.)
TEST_F(CommitAttemptsTest, CommitWithoutARecovery) {
  options_.paranoid_checks = false;
  write_options_.sync = true;
  OpenEmpty();
  PrepareIncrement();
  FailCommitInWal(HistoryFileOp::kSync, /*is_retryable=*/false);
  const Status s = txn_->Commit();
  ASSERT_TRUE(s.IsAborted()) << s.ToString();
  PutWithoutWal();
  FlushAll();
  ASSERT_OK(txn_->Commit());
  ExpectCounters(1);
}

// A recovery that ends while the next attempt is being made does not matter.
TEST_F(CommitAttemptsTest, CommitIsRefusedUntilTheRecoveryIsOver) {
  write_options_.sync = true;
  OpenEmpty();
  PrepareIncrement();
  FailCommitInWal(HistoryFileOp::kSync, /*is_retryable=*/true);
  const Status s = txn_->Commit();
  ASSERT_TRUE(s.IsAborted()) << s.ToString();
  EXPECT_NE(std::string::npos, s.ToString().find("after the recovery"))
      << s.ToString();
  ASSERT_OK(db_->Resume());
  ASSERT_OK(txn_->Commit());
  ExpectCounters(1);
  Restart();
  ExpectCounters(1);
  ExpectNothingPrepared();
}

TEST_F(CommitAttemptsTest, CommitIsRefusedIfSomeFamiliesAreFlushed) {
  options_.paranoid_checks = false;
  write_options_.sync = true;
  OpenEmpty();
  PrepareIncrement();
  FailCommitInWal(HistoryFileOp::kSync, /*is_retryable=*/false);
  PutWithoutWal();
  ASSERT_OK(db_->Flush(FlushOptions(), handles_[0]));
  const Status s = txn_->Commit();
  ASSERT_TRUE(s.IsAborted()) << s.ToString();
  EXPECT_NE(std::string::npos, s.ToString().find("Transaction name"))
      << s.ToString();
  ExpectCounters(0);
  ASSERT_OK(db_->Flush(FlushOptions(), handles_[1]));
  ASSERT_OK(txn_->Commit());
  ExpectCounters(1);
}

TEST_F(CommitAttemptsTest, CommitWithASnapshot) {
  OpenEmpty();
  PrepareIncrement();
  // The snapshot needs a timestamp.
  txn_->SetSnapshotOnNextOperation();
  ASSERT_TRUE(txn_->Commit().IsInvalidArgument());
  std::shared_ptr<const Snapshot> snapshot;
  {
    const std::unique_ptr<WriteControllerToken> stop = StopWrites();
    ASSERT_TRUE(
        txn_->CommitAndTryCreateSnapshot(nullptr, 1, &snapshot).IsIncomplete());
  }
  ASSERT_EQ(nullptr, snapshot);
  ASSERT_OK(txn_->CommitAndTryCreateSnapshot(nullptr, 1, &snapshot));
  ASSERT_NE(nullptr, snapshot);
  ExpectCounters(1);
  std::string one;
  PutFixed64(&one, 1);
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot.get();
  EXPECT_EQ(one, Get(handles_[0], "counter", at_snapshot));
  txn_.reset();
  snapshot.reset();
  db_->ReleaseTimestampedSnapshotsOlderThan(kMaxTxnTimestamp);
}

// Keys with timestamps: the timestamp of the last attempt counts.
TEST_F(CommitAttemptsTest, CommitTimestamps) {
  options_.comparator = test::BytewiseComparatorWithU64TsWrapper();
  options_.merge_operator = nullptr;
  write_options_.sync = true;
  const auto get_at = [this](uint64_t ts) {
    std::string encoded;
    const Slice slice = EncodeU64Ts(ts, &encoded);
    ReadOptions read_options;
    read_options.timestamp = &slice;
    EXPECT_EQ(Get(handles_[0], "key", read_options),
              Get(handles_[1], "key", read_options));
    return Get(handles_[0], "key", read_options);
  };
  for (const bool is_in_wal : {false, true}) {
    SCOPED_TRACE(is_in_wal);
    OpenEmpty();
    PrepareValue();
    ASSERT_OK(txn_->SetCommitTimestamp(10));
    if (is_in_wal) {
      FailCommitInWal(HistoryFileOp::kSync, /*is_retryable=*/true);
      ASSERT_OK(db_->Resume());
    } else {
      StallCommit();
    }
    ASSERT_OK(txn_->SetCommitTimestamp(20));
    ASSERT_OK(txn_->Commit());
    EXPECT_EQ("NOT_FOUND", get_at(15));
    EXPECT_EQ("value", get_at(20));
    Restart();
    EXPECT_EQ("NOT_FOUND", get_at(15));
    EXPECT_EQ("value", get_at(20));
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
