//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with enable_blob_address_map and transactions, or with write
// policies under which sequence numbers do not say what a reader sees.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/db_impl/db_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapWritePolicyTest : public AddressMapDBTestBase {
 public:
  DBAddressMapWritePolicyTest()
      : AddressMapDBTestBase("db_address_map_write_policy_test") {}
};

TEST_F(DBAddressMapWritePolicyTest, TransactionsConflictWithDirectValues) {
  Options options = MapOptions();
  // Memtables keep no history, so files are read.
  options.max_write_buffer_size_to_maintain = 0;
  Destroy(options);
  Close();
  TransactionDB* raw = nullptr;
  ASSERT_OK(
      TransactionDB::Open(options, TransactionDBOptions(), dbname_, &raw));
  const std::unique_ptr<TransactionDB> db(raw);
  ASSERT_OK(db->Put(WriteOptions(), "k", Value(1)));
  ASSERT_OK(db->Flush(FlushOptions()));
  for (const bool conflict : {false, true}) {
    const std::unique_ptr<Transaction> txn(
        db->BeginTransaction(WriteOptions()));
    txn->SetSnapshot();
    if (conflict) {
      ASSERT_OK(db->Put(WriteOptions(), "k", Value(2)));
      ASSERT_OK(db->Flush(FlushOptions()));
    }
    const Status s = txn->Put("k", Value(3));
    EXPECT_EQ(s.IsBusy(), conflict) << s.ToString();
    std::string value;
    ASSERT_OK(txn->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, conflict ? Value(2) : Value(3));
  }
}

TEST_F(DBAddressMapWritePolicyTest, WritePreparedReadsOnlyCommittedValues) {
  Options options = MapOptions();
  Destroy(options);
  Close();
  TransactionDBOptions txn_options;
  txn_options.write_policy = WRITE_PREPARED;
  TransactionDB* raw = nullptr;
  ASSERT_OK(TransactionDB::Open(options, txn_options, dbname_, &raw));
  std::unique_ptr<TransactionDB> db(raw);
  std::string value;
  ASSERT_OK(db->Put(WriteOptions(), "k", Value(1)));
  ASSERT_OK(db->Flush(FlushOptions()));
  std::unique_ptr<Transaction> txn(db->BeginTransaction(WriteOptions()));
  ASSERT_OK(txn->SetName("one"));
  ASSERT_OK(txn->Put("k", Value(2)));
  ASSERT_OK(txn->Prepare());
  ASSERT_OK(db->Flush(FlushOptions()));  // including uncommitted data
  ASSERT_OK(db->Get(ReadOptions(), "k", &value));
  EXPECT_EQ(value, Value(1));
  ASSERT_OK(txn->Commit());
  ASSERT_OK(db->Get(ReadOptions(), "k", &value));
  EXPECT_EQ(value, Value(2));
  ASSERT_OK(ForceCompaction(db.get()));
  ASSERT_OK(db->Get(ReadOptions(), "k", &value));
  EXPECT_EQ(value, Value(2));
  txn.reset();
  txn.reset(db->BeginTransaction(WriteOptions()));
  ASSERT_OK(txn->SetName("two"));
  ASSERT_OK(txn->Put("k", Value(3)));
  ASSERT_OK(txn->Prepare());
  ASSERT_OK(db->Flush(FlushOptions()));
  ASSERT_OK(txn->Rollback());
  ASSERT_OK(db->Get(ReadOptions(), "k", &value));
  EXPECT_EQ(value, Value(2));
  ASSERT_OK(db->Flush(FlushOptions()));
  ASSERT_OK(ForceCompaction(db.get()));
  ASSERT_OK(db->Get(ReadOptions(), "k", &value));
  EXPECT_EQ(value, Value(2));
}

// After a crash the value below a prepared one still exists, because the
// transaction may be rolled back.
TEST_F(DBAddressMapWritePolicyTest, ValueBelowAPreparedOneSurvivesACrash) {
  for (const TxnDBWritePolicy policy : {WRITE_PREPARED, WRITE_UNPREPARED}) {
    for (const bool commit : {false, true}) {
      Options options = MapOptions();
      options.blob_file_size = 1000;
      options.avoid_flush_during_shutdown = true;
      Destroy(options);
      Close();
      TransactionDBOptions txn_options;
      txn_options.write_policy = policy;
      std::string path = dbname_;
      std::unique_ptr<TransactionDB> db;
      std::unique_ptr<Transaction> txn;
      const auto open = [&] {
        TransactionDB* raw = nullptr;
        ASSERT_OK(TransactionDB::Open(options, txn_options, path, &raw));
        db.reset(raw);
      };
      const auto check = [&](int k) {
        std::string value;
        ASSERT_OK(db->Get(ReadOptions(), "k", &value));
        EXPECT_EQ(value, Value(k));
        ASSERT_OK(db->Get(ReadOptions(), "l", &value));
        EXPECT_EQ(value, Value(7));
        const std::unique_ptr<Iterator> iter(db->NewIterator(ReadOptions()));
        EXPECT_EQ(Scan(iter.get()), "k=" + Value(k) + ";l=" + Value(7) + ";");
      };
      open();
      ASSERT_FALSE(HasFatalFailure());
      ASSERT_OK(db->Put(WriteOptions(), "k", Value(1)));
      ASSERT_OK(db->Flush(FlushOptions()));
      ASSERT_OK(db->Put(WriteOptions(), "l", Value(6)));
      ASSERT_OK(db->Put(WriteOptions(), "l", Value(7)));
      ASSERT_OK(db->Flush(FlushOptions()));
      txn.reset(db->BeginTransaction(WriteOptions()));
      ASSERT_OK(txn->SetName("one"));
      ASSERT_OK(txn->Put("k", Value(2)));
      ASSERT_OK(txn->Prepare());
      ASSERT_OK(db->Flush(FlushOptions()));
      check(1);
      ASSERT_FALSE(HasFatalFailure());

      // The next open has no image of the map.
      for (int round = 0; round < 2; ++round) {
        // Copies the files that a crash would leave.
        const std::string next = dbname_ + "_" + std::to_string(round);
        ASSERT_OK(env_->CreateDirIfMissing(next));
        ASSERT_OK(db->DisableFileDeletions());
        // The deletions of the flush began before that.
        DBImpl* const live = static_cast<DBImpl*>(db->GetRootDB());
        ASSERT_OK(live->TEST_WaitForBackgroundWork());
        ASSERT_OK(live->TEST_WaitForPurge());
        std::vector<std::string> names;
        ASSERT_OK(env_->GetChildren(path, &names));
        for (const std::string& name : names) {
          if (name != "LOCK") {
            std::string content;
            ASSERT_OK(ReadFileToString(env_, path + "/" + name, &content));
            ASSERT_OK(WriteStringToFile(env_, content, next + "/" + name));
          }
        }
        if (round > 0) {
          txn.reset(db->GetTransactionByName("one"));
        }
        ASSERT_OK(txn->Rollback());
        txn.reset();
        db.reset();
        ASSERT_OK(DestroyDB(path, options));
        path = next;
        open();
        ASSERT_FALSE(HasFatalFailure());
        ASSERT_OK(WaitForMapJobs(db.get()));
        check(1);
        ASSERT_FALSE(HasFatalFailure());
      }
      txn.reset(db->GetTransactionByName("one"));
      ASSERT_NE(txn, nullptr);
      ASSERT_OK(commit ? txn->Commit() : txn->Rollback());
      check(commit ? 2 : 1);
      ASSERT_FALSE(HasFatalFailure());
      ASSERT_OK(db->Flush(FlushOptions()));
      ASSERT_OK(ForceCompaction(db.get()));
      check(commit ? 2 : 1);
      txn.reset();
      db.reset();
      ASSERT_OK(DestroyDB(path, options));
    }
  }
}

// A compaction keeps the versions below those of a transaction that is not
// over, or that was committed after a snapshot. Another compaction drops them
// when nothing needs them any more, as without a map; with one, no compaction
// runs before that.
TEST_F(DBAddressMapWritePolicyTest,
       VersionsBelowATransactionAreDroppedAfterIt) {
  constexpr int kKeys = 10;
  const auto sst_files = [](DB* db) {
    ColumnFamilyMetaData meta;
    db->GetColumnFamilyMetaData(db->DefaultColumnFamily(), &meta);
    std::vector<SstFileMetaData> files;
    for (const LevelMetaData& level : meta.levels) {
      files.insert(files.end(), level.files.begin(), level.files.end());
    }
    return files;
  };
  for (const TxnDBWritePolicy policy : {WRITE_PREPARED, WRITE_UNPREPARED}) {
    for (const bool has_map : {false, true}) {
      for (const bool has_snapshot : {false, true}) {
        SCOPED_TRACE("policy " + std::to_string(policy) + ", map " +
                     std::to_string(has_map) + ", snapshot " +
                     std::to_string(has_snapshot));
        Options options = MapOptions();
        options.enable_blob_address_map = has_map;
        // Level 0 does not get that many files.
        options.disable_auto_compactions = false;
        options.level0_file_num_compaction_trigger = 10;
        Destroy(options);
        Close();
        TransactionDBOptions txn_options;
        txn_options.write_policy = policy;
        TransactionDB* raw = nullptr;
        ASSERT_OK(TransactionDB::Open(options, txn_options, dbname_, &raw));
        const std::unique_ptr<TransactionDB> db(raw);
        for (int i = 0; i < kKeys; ++i) {
          ASSERT_OK(db->Put(WriteOptions(), Key(i), Value(1)));
        }
        ASSERT_OK(db->Flush(FlushOptions()));
        const std::unique_ptr<Transaction> txn(
            db->BeginTransaction(WriteOptions()));
        ASSERT_OK(txn->SetName("one"));
        for (int i = 0; i < kKeys; ++i) {
          ASSERT_OK(txn->Put(Key(i), Value(2)));
        }
        ASSERT_OK(txn->Prepare());
        const Snapshot* const snapshot =
            has_snapshot ? db->GetSnapshot() : nullptr;
        if (has_snapshot) {
          ASSERT_OK(txn->Commit());
        }
        ASSERT_OK(db->Flush(FlushOptions()));
        ASSERT_OK(ForceCompaction(db.get()));
        WaitForJobs(db.get());
        std::vector<SstFileMetaData> files = sst_files(db.get());
        ASSERT_EQ(files.size(), 1);
        EXPECT_EQ(files[0].num_entries, 2 * kKeys);

        if (has_snapshot) {
          db->ReleaseSnapshot(snapshot);
        } else {
          if (has_map) {
            // A compaction would have no effect.
            const std::string name = files[0].name;
            for (int i = 0; i < 3; ++i) {
              ASSERT_OK(db->Put(WriteOptions(), "other", Value(i)));
              db->ReleaseSnapshot(db->GetSnapshot());
              WaitForJobs(db.get());
            }
            files = sst_files(db.get());
            ASSERT_EQ(files.size(), 1);
            EXPECT_EQ(files[0].name, name);
            // After a reopen this says that there is something to do.
            const FileMetaData* const file =
                FamilyOf(db->DefaultColumnFamily())
                    ->current()
                    ->storage_info()
                    ->GetFileMetaDataByNumber(files[0].file_number);
            ASSERT_NE(file, nullptr);
            EXPECT_GT(file->LargestReclaimable(), 0);
          }
          ASSERT_OK(txn->Commit());
          ASSERT_OK(db->Put(WriteOptions(), "other", Value(3)));
          db->ReleaseSnapshot(db->GetSnapshot());
        }
        WaitForJobs(db.get());
        files = sst_files(db.get());
        ASSERT_EQ(files.size(), 1);
        EXPECT_EQ(files[0].num_entries, kKeys);
        if (has_map) {
          CheckMap(db->DefaultColumnFamily(), kKeys);
          EXPECT_TRUE(
              BlobsOf(db->DefaultColumnFamily())->undecided_files()->empty());
        }
        for (int i = 0; i < kKeys; ++i) {
          std::string value;
          ASSERT_OK(db->Get(ReadOptions(), Key(i), &value));
          EXPECT_EQ(value, Value(2));
        }
      }
    }
  }
}

// If sequence numbers do not determine what a reader sees, direct values are
// refused, and a compaction makes them versioned.
TEST_F(DBAddressMapWritePolicyTest, DirectValuesNeedOrderedSequenceNumbers) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  ASSERT_TRUE(IsDirect(Key(3)));
  Close();

  Options unordered = options;
  unordered.unordered_write = true;
  Status s = TryReopen(unordered);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_NE(s.ToString().find("enable_lsm_bypass"), std::string::npos);
  TransactionDBOptions txn_options;
  txn_options.write_policy = WRITE_PREPARED;
  TransactionDB* raw = nullptr;
  s = TransactionDB::Open(options, txn_options, dbname_, &raw);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();

  options.enable_lsm_bypass = false;
  Reopen(options);
  Compact();
  EXPECT_EQ(MappedStats().num_direct, 0);
  EXPECT_EQ(MappedStats().num_mapped, 10);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Get(Key(i)), Value(i));
  }
  Close();
  unordered.enable_lsm_bypass = true;  // has no effect with unordered writes
  Reopen(unordered);
  EXPECT_FALSE(IsDirect(Key(3)));
  ASSERT_OK(Put(Key(3), Value(33)));
  ASSERT_OK(Flush());
  EXPECT_FALSE(IsDirect(Key(3)));
  Compact();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(IsDirect(Key(i)));
    EXPECT_EQ(Get(Key(i)), Value(i == 3 ? 33 : i));
  }
  EXPECT_EQ(Blobs()->map()->NumEntries(), 10);
}

// A key that the files of a reader's SuperVersion do not have is absent. The
// read does not start again because of SuperVersions that were installed
// meanwhile. It would not end otherwise while flushes and compactions are
// faster than one pass over its keys, as jobs ignore the implicit snapshot of
// the read.
TEST_F(DBAddressMapWritePolicyTest, NewSuperVersionsRepeatNoRead) {
  constexpr int kChanges = 20;
  Options options = MapOptions();
  const auto during_the_read = [&](int* changes,
                                   const std::function<void()>& change) {
    EnableCallBack("MapPointRead::ConfirmAbsence", [changes, change](void*) {
      if (*changes < kChanges) {
        ++*changes;
        std::thread(change).join();  // not the thread that reads
      }
    });
  };
  const auto restarts = [&options] {
    return options.statistics->getTickerCount(BLOB_MAP_READ_RESTART);
  };
  const std::vector<Slice> keys{"a", "absent"};
  const auto check = [&](const std::vector<PinnableSlice>& values,
                         const std::vector<Status>& statuses) {
    EXPECT_OK(statuses[0]);
    EXPECT_EQ(values[0], Value(1));
    EXPECT_TRUE(statuses[1].IsNotFound()) << statuses[1].ToString();
  };

  for (const TxnDBWritePolicy policy : {WRITE_PREPARED, WRITE_UNPREPARED}) {
    for (const bool has_snapshot : {false, true}) {
      SCOPED_TRACE("policy " + std::to_string(policy) + ", snapshot " +
                   std::to_string(has_snapshot));
      options.statistics = CreateDBStatistics();
      Destroy(options);
      Close();
      TransactionDBOptions txn_options;
      txn_options.write_policy = policy;
      TransactionDB* raw = nullptr;
      ASSERT_OK(TransactionDB::Open(options, txn_options, dbname_, &raw));
      const std::unique_ptr<TransactionDB> db(raw);
      ASSERT_OK(db->Put(WriteOptions(), "a", Value(1)));
      ASSERT_OK(db->Flush(FlushOptions()));
      const std::unique_ptr<Transaction> txn(
          db->BeginTransaction(WriteOptions()));
      ReadOptions read_options;
      if (has_snapshot) {
        txn->SetSnapshot();
        read_options.snapshot = txn->GetSnapshot();
      }
      const auto put_and_flush = [&db] {
        EXPECT_OK(db->Put(WriteOptions(), "x", Value(2)));
        EXPECT_OK(db->Flush(FlushOptions()));
      };
      std::vector<PinnableSlice> values(keys.size());
      std::vector<Status> statuses(keys.size());
      int changes = 0;
      during_the_read(&changes, put_and_flush);
      txn->MultiGet(read_options, db->DefaultColumnFamily(), keys.size(),
                    keys.data(), values.data(), statuses.data());
      DisableCallBacks();
      check(values, statuses);
      EXPECT_EQ(changes, 1);
      changes = 0;
      during_the_read(&changes, put_and_flush);
      std::string value;
      const Status s = txn->Get(read_options, "absent", &value);
      DisableCallBacks();
      EXPECT_TRUE(s.IsNotFound()) << s.ToString();
      EXPECT_EQ(changes, 1);
      EXPECT_EQ(restarts(), 0);
    }
  }

  // Each compaction leaves the removal of a hidden value for later.
  options.unordered_write = true;
  options.statistics = CreateDBStatistics();
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", Value(1)));
  ASSERT_OK(Put("x", Value(1)));
  ASSERT_OK(Flush());
  const auto overwrite = [this] {
    EXPECT_OK(Put("x", Value(2)));
    EXPECT_OK(Flush());
    EXPECT_OK(ForceCompaction());
  };
  std::vector<PinnableSlice> values(keys.size());
  std::vector<Status> statuses(keys.size());
  int changes = 0;
  during_the_read(&changes, overwrite);
  db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), keys.size(),
                keys.data(), values.data(), statuses.data());
  DisableCallBacks();
  check(values, statuses);
  EXPECT_EQ(changes, 1);
  changes = 0;
  during_the_read(&changes, overwrite);
  EXPECT_EQ(Get("absent"), "NOT_FOUND");
  DisableCallBacks();
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(restarts(), 0);
}

// With unordered_write a sequence number is published before its entry can be
// read. An iterator that is made in between yields the entry below, whose value
// must still exist.
TEST_F(DBAddressMapWritePolicyTest, IteratorSkipsNoKeyBesideAnUnorderedWrite) {
  Options options = MapOptions();
  options.unordered_write = true;
  DestroyAndReopen(options);
  for (const char* key : {"a", "k", "z"}) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  std::unique_ptr<Iterator> iter;
  const auto done = EnableCallBackOnce(
      "DBImpl::WriteImpl:BeforeUnorderedWriteMemtable", [&](void*) {
        iter.reset(db_->NewIterator(ReadOptions()));
        iter->SeekToFirst();
      });
  ASSERT_OK(Put("k", Value(2)));
  DisableCallBacks();
  ASSERT_TRUE(*done);
  ASSERT_OK(Flush());
  Compact();
  ASSERT_TRUE(iter->Valid());
  EXPECT_EQ(iter->key(), "a");
  iter->Next();
  ASSERT_TRUE(iter->Valid()) << iter->status().ToString();
  EXPECT_EQ(iter->key(), "k");
  iter->Next();
  ASSERT_TRUE(iter->Valid()) << iter->status().ToString();
  EXPECT_EQ(iter->key(), "z");
  iter->Next();
  EXPECT_FALSE(iter->Valid());
  EXPECT_OK(iter->status());
  iter.reset();
  EXPECT_EQ(Get("k"), Value(2));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
