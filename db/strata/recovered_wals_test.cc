//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests that a sync makes everything durable that was written before it, also
// what an earlier process wrote to WALs that recoveries have left.

#include <memory>
#include <string>

#include "db/db_impl/db_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test_util/strata/history_fault_fs_test_util.h"
#include "test_util/strata/history_unsynced_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class RecoveredWalsTest : public StrataDBTestBase {
 protected:
  RecoveredWalsTest()
      : StrataDBTestBase("recovered_wals_test"),
        fs_(std::make_shared<HistoryFaultFS>(env_->GetFileSystem(), dbname_)),
        fault_env_(NewCompositeEnv(fs_)) {}
  ~RecoveredWalsTest() override {
    Close();
    last_options_.env = env_;
  }

  Options WalOptions() const {
    Options options = CurrentOptions();
    options.env = fault_env_.get();
    options.create_if_missing = true;
    options.avoid_flush_during_recovery = true;
    options.avoid_flush_during_shutdown = true;
    return options;
  }
  // Opens the DB again, with the bytes that were not synced: the process has
  // ended, and the system goes on.
  void Restart() {
    const Options options = last_options_;
    Reopen(options);
    ASSERT_TRUE(FilesOnDisk(kTableFile).empty());
  }
  void LosePower() {
    Close();
    ASSERT_OK(
        fs_->unsynced().Drop(HistoryUnsynced::Survivors::kNone, /*seed=*/1));
  }
  void FailSyncsOfWals() {
    HistoryFaultFS::Rule rule;
    rule.op = HistoryFileOp::kSync;
    rule.pattern = "*.log";
    fs_->AddRule(rule);
  }

  const std::shared_ptr<HistoryFaultFS> fs_;
  const std::unique_ptr<Env> fault_env_;
};

TEST_F(RecoveredWalsTest, SyncIncludesRecoveredWals) {
  for (const bool calls_sync_wal : {true, false}) {
    SCOPED_TRACE(calls_sync_wal);
    DestroyAndReopen(WalOptions());
    ASSERT_OK(Put("a", "1"));
    Restart();
    ASSERT_OK(Put("b", "2"));
    Restart();
    if (calls_sync_wal) {
      ASSERT_OK(Put("c", "3"));
      ASSERT_OK(db_->SyncWAL());
    } else {
      WriteOptions sync;
      sync.sync = true;
      ASSERT_OK(Put("c", "3", sync));
    }
    ASSERT_OK(Put("d", "4"));
    LosePower();
    Restart();
    EXPECT_EQ("1", Get("a"));
    EXPECT_EQ("2", Get("b"));
    EXPECT_EQ("3", Get("c"));
    EXPECT_EQ("NOT_FOUND", Get("d"));
  }
}

TEST_F(RecoveredWalsTest, OpenFailsIfTheyCannotBeSynced) {
  DestroyAndReopen(WalOptions());
  ASSERT_OK(Put("a", "1"));
  Close();
  FailSyncsOfWals();
  const Options options = WalOptions();
  const Status s = TryReopen(options);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(std::string::npos, s.ToString().find("injected")) << s.ToString();
  fs_->ClearRules();
  Reopen(options);
  EXPECT_EQ("1", Get("a"));
}

// Where everything is flushed, WALs are not needed any more.
TEST_F(RecoveredWalsTest, FlushedWalsAreNotSynced) {
  DestroyAndReopen(WalOptions());
  ASSERT_OK(Put("a", "1"));
  Close();
  FailSyncsOfWals();
  Options options = WalOptions();
  options.avoid_flush_during_recovery = false;
  Reopen(options);
  EXPECT_EQ("1", Get("a"));
  // The WAL of the last process is empty.
  options.avoid_flush_during_recovery = true;
  Reopen(options);
  EXPECT_EQ("1", Get("a"));
  fs_->ClearRules();
}

// The values of a prepared transaction stay in the WAL of an earlier process
// until it is committed, and after that until they are flushed.
TEST_F(RecoveredWalsTest, CommitIncludesAPreparedTransaction) {
  Close();
  const Options options = WalOptions();
  ASSERT_OK(DestroyDB(dbname_, options));
  std::unique_ptr<TransactionDB> db;
  const auto open = [&] {
    db.reset();
    TransactionDB* opened = nullptr;
    ASSERT_OK(
        TransactionDB::Open(options, TransactionDBOptions(), dbname_, &opened));
    db.reset(opened);
  };
  open();
  std::unique_ptr<Transaction> txn(db->BeginTransaction(WriteOptions()));
  ASSERT_OK(txn->SetName("name"));
  ASSERT_OK(txn->Put("a", "1"));
  ASSERT_OK(txn->Prepare());
  txn.reset();
  open();
  txn.reset(db->GetTransactionByName("name"));
  ASSERT_NE(nullptr, txn);
  ASSERT_OK(txn->Commit());
  ASSERT_OK(db->SyncWAL());
  txn.reset();
  db.reset();
  ASSERT_OK(
      fs_->unsynced().Drop(HistoryUnsynced::Survivors::kNone, /*seed=*/1));
  open();
  std::string value;
  ASSERT_OK(db->Get(ReadOptions(), "a", &value));
  EXPECT_EQ("1", value);
  db.reset();
}

// With two-phase commit an open reads the WALs of earlier processes, although
// their values were flushed, until the MANIFEST says that no transaction needs
// them.
TEST_F(RecoveredWalsTest, FlushedWalsAreSyncedWithTwoPhaseCommit) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Options options = WalOptions();
    options.avoid_flush_during_recovery = false;
    options.allow_2pc = true;  // as TransactionDB::Open() sets it
    DestroyAndReopen(options);
    Random rnd(static_cast<uint32_t>(seed));
    for (int i = 0; i < 40; ++i) {
      ASSERT_OK(Put(Key(i), rnd.RandomString(500)));
    }
    Reopen(options);
    WriteOptions sync;
    sync.sync = true;
    ASSERT_OK(Put("a", "1", sync));
    Close();
    ASSERT_OK(
        fs_->unsynced().Drop(HistoryUnsynced::Survivors::kRandomBlocks, seed));
    ASSERT_OK(TryReopen(options));
    EXPECT_EQ("1", Get("a"));
    EXPECT_NE("NOT_FOUND", Get(Key(39)));
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  RegisterCustomObjects(argc, argv);
  return RUN_ALL_TESTS();
}
