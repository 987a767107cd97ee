//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Transactions, and batches with an index, of databases with
// enable_blob_address_map.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/metadata.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/utilities/write_batch_with_index.h"
#include "test_util/strata/address_map_data_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "util/cast_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapTransactionTest : public AddressMapDataTestBase {
 public:
  DBAddressMapTransactionTest()
      : AddressMapDataTestBase("db_address_map_transaction_test") {}

 protected:
  // Also accepts a database with transactions.
  static DBImpl* ImplOf(DB* db) {
    return static_cast_with_check<DBImpl>(db->GetRootDB());
  }

  static TransactionDB* OpenTransactions(
      const Options& options, const TransactionDBOptions& txn_db_options,
      const std::string& dir, std::unique_ptr<DB>* db) {
    TransactionDB* raw = nullptr;
    EXPECT_OK(TransactionDB::Open(options, txn_db_options, dir, &raw));
    db->reset(raw);
    return raw;
  }

  // Makes writes until conflicts must be searched for in the files. With
  // max_write_buffer_size_to_maintain = 1, the second write trims the history.
  void ForgetHistory() {
    MemTableList* const imm = Family()->imm();
    for (int i = 0; i < 10 && imm->HasHistory(); ++i) {
      ASSERT_OK(db_->Put(WriteOptions(), "history" + std::to_string(i), "x"));
    }
    ASSERT_FALSE(imm->HasHistory());
  }
};

TEST_F(DBAddressMapTransactionTest, OptimisticTransactionsDetectConflicts) {
  for (const bool history : {true, false}) {
    SCOPED_TRACE(history ? "with history" : "without");
    Options options = MapOptions();
    options.max_write_buffer_size_to_maintain = history ? 0 : 1;
    Destroy(options);
    OptimisticTransactionDB* txn_db = nullptr;
    ASSERT_OK(OptimisticTransactionDB::Open(options, dbname_, &txn_db));
    db_.reset(txn_db);
    ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
    ASSERT_OK(db_->Put(WriteOptions(), "l", Value(1)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    EXPECT_TRUE(IsDirect("k"));
    std::string value;
    std::unique_ptr<Transaction> txn(txn_db->BeginTransaction(WriteOptions()));

    // No other writer changes the keys that the transaction has read.
    ASSERT_OK(txn->GetForUpdate(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(1));
    ASSERT_OK(txn->Put("k", Value(2)));
    ASSERT_OK(txn->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(2));
    ASSERT_OK(db_->Put(WriteOptions(), "m", Value(1)));
    EXPECT_EQ(Get("k"), Value(1));
    ASSERT_OK(txn->Commit());
    EXPECT_EQ(Get("k"), Value(2));
    ASSERT_OK(db_->Flush(FlushOptions()));

    // Another writer changes the key, and the value is flushed, so that it is
    // in the map before the commit.
    txn.reset(txn_db->BeginTransaction(WriteOptions()));
    ASSERT_OK(txn->GetForUpdate(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(2));
    ASSERT_OK(txn->Put("m", Value(5)));
    ASSERT_OK(db_->Put(WriteOptions(), "k", Value(3)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    if (!history) {
      ForgetHistory();
    }
    Status s = txn->Commit();
    EXPECT_TRUE(history ? s.IsBusy() : s.IsTryAgain()) << s.ToString();
    EXPECT_EQ(Get("k"), Value(3));
    EXPECT_EQ(Get("m"), Value(1));

    // Another writer deletes the key.
    txn.reset(txn_db->BeginTransaction(WriteOptions()));
    ASSERT_OK(txn->GetForUpdate(ReadOptions(), "l", &value));
    EXPECT_EQ(value, Value(1));
    ASSERT_OK(txn->Put("l", Value(5)));
    ASSERT_OK(db_->Delete(WriteOptions(), "l"));
    ASSERT_OK(db_->Flush(FlushOptions()));
    if (!history) {
      ForgetHistory();
    }
    s = txn->Commit();
    EXPECT_TRUE(history ? s.IsBusy() : s.IsTryAgain()) << s.ToString();
    EXPECT_EQ(Get("l"), "NOT_FOUND");

    // At its snapshot the transaction reads values that were overwritten since.
    OptimisticTransactionOptions at_snapshot;
    at_snapshot.set_snapshot = true;
    txn.reset(txn_db->BeginTransaction(WriteOptions(), at_snapshot));
    ASSERT_OK(db_->Put(WriteOptions(), "k", Value(4)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    ReadOptions read_options;
    read_options.snapshot = txn->GetSnapshot();
    ASSERT_OK(txn->Get(read_options, "k", &value));
    EXPECT_EQ(value, Value(3));
    ASSERT_OK(txn->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(4));
    ASSERT_OK(txn->Put("k", Value(5)));
    EXPECT_NOK(txn->Commit());
    txn.reset();

    Contents model = {{"k", Value(4)}, {"m", Value(1)}};
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    for (iter->Seek("history"); iter->Valid(); iter->Next()) {
      if (iter->key().starts_with("history")) {
        model[iter->key().ToString()] = iter->value().ToString();
      }
    }
    iter.reset();
    ASSERT_OK(db_->Flush(FlushOptions()));
    Compact();
    CheckData(model);
    CheckMap(model.size());
    Close();
  }
}

// Bypass filters hide direct entries of files from a conflict check, so the map
// must be asked for them.
TEST_F(DBAddressMapTransactionTest, LatestSequenceIsThatOfADirectEntry) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", "a"));
  const SequenceNumber written = db_->GetLatestSequenceNumber();
  ASSERT_OK(Flush());
  ASSERT_TRUE(IsDirect("k"));
  for (const std::string key : {"k", "absent"}) {
    SuperVersion* const sv = dbfull()->GetAndRefSuperVersion(
        static_cast_with_check<ColumnFamilyHandleImpl>(
            db_->DefaultColumnFamily())
            ->cfd());
    SequenceNumber seq = kMaxSequenceNumber;
    bool found = false;
    bool is_blob = false;
    const Status s = dbfull()->GetLatestSequenceForKey(
        sv, key, /*cache_only=*/false, /*lower_bound_seq=*/0, &seq,
        /*timestamp=*/nullptr, &found, &is_blob);
    dbfull()->ReturnAndCleanupSuperVersion(sv->cfd, sv);
    ASSERT_OK(s);
    EXPECT_EQ(found, key == "k");
    if (found) {
      EXPECT_EQ(seq, written);
    }
  }
}

// Conflicts are detected when only the files have the conflicting entry.
TEST_F(DBAddressMapTransactionTest, ConflictsAreDetectedInFiles) {
  Options options = MapOptions();
  options.max_write_buffer_size_to_maintain = 1;
  Destroy(options);
  TransactionDB* const txn_db =
      OpenTransactions(options, TransactionDBOptions(), dbname_, &db_);
  ASSERT_NE(txn_db, nullptr);
  enum class Conflict { kNone, kPut, kDelete, kSingleDelete, kMerge };
  int round = 0;
  for (const Conflict conflict :
       {Conflict::kNone, Conflict::kPut, Conflict::kDelete,
        Conflict::kSingleDelete, Conflict::kMerge}) {
    for (const bool compacted : {false, true}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(conflict)) +
                   (compacted ? ", compacted" : ""));
      const std::string key = "k" + std::to_string(++round);
      ASSERT_OK(db_->Put(WriteOptions(), key, "a"));
      ASSERT_OK(db_->Flush(FlushOptions()));
      if (round == 1) {  // for later keys a Bloom filter may match wrongly
        EXPECT_TRUE(IsDirect(key));
      }
      const std::unique_ptr<Transaction> txn(
          txn_db->BeginTransaction(WriteOptions()));
      txn->SetSnapshot();
      std::string expected = "a";
      switch (conflict) {
        case Conflict::kNone:
          break;
        case Conflict::kPut:
          ASSERT_OK(db_->Put(WriteOptions(), key, "b"));
          expected = "b";
          break;
        case Conflict::kDelete:
          ASSERT_OK(db_->Delete(WriteOptions(), key));
          expected = "NOT_FOUND";
          break;
        case Conflict::kSingleDelete:
          ASSERT_OK(db_->SingleDelete(WriteOptions(), key));
          expected = "NOT_FOUND";
          break;
        case Conflict::kMerge:
          ASSERT_OK(db_->Merge(WriteOptions(), key, "b"));
          expected = "a,b";
          break;
      }
      ASSERT_OK(db_->Put(WriteOptions(), "other", "x"));
      ASSERT_OK(db_->Flush(FlushOptions()));
      if (compacted) {
        Compact();
      }
      ForgetHistory();
      std::string value;
      Status s = txn->GetForUpdate(ReadOptions(), key, &value);
      EXPECT_EQ(s.IsBusy(), conflict != Conflict::kNone) << s.ToString();
      if (conflict == Conflict::kNone) {
        ASSERT_OK(s);
        EXPECT_EQ(value, "a");
      }
      s = txn->Put(key, "c");
      EXPECT_EQ(s.IsBusy(), conflict != Conflict::kNone) << s.ToString();
      // This key never existed.
      s = txn->GetForUpdate(ReadOptions(), "absent", &value);
      EXPECT_TRUE(s.IsNotFound()) << s.ToString();
      ASSERT_OK(txn->Rollback());
      EXPECT_EQ(Get(key), expected);
    }
  }
  ASSERT_OK(db_->Flush(FlushOptions()));
  Compact();
  // The map has two keys of each kind except for deleted ones, and the other
  // keys.
  size_t others = 0;
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
    others += iter->key().starts_with("k") ? 0 : 1;
  }
  ASSERT_OK(iter->status());
  iter.reset();
  EXPECT_GT(others, 1);
  CheckMap(6 + others);
}

// Two-phase commit works with each write policy, with flushes of uncommitted
// data, and with crashes while a transaction is prepared.
TEST_F(DBAddressMapTransactionTest, PreparedTransactionsSurviveCrashes) {
  struct Mode {
    const char* name;
    TxnDBWritePolicy policy;
    bool two_write_queues;
    bool unordered_write;
  };
  for (const Mode& mode : std::vector<Mode>{
           {"committed", WRITE_COMMITTED, false, false},
           {"committed, two queues", WRITE_COMMITTED, true, false},
           {"prepared", WRITE_PREPARED, false, false},
           {"prepared, two queues", WRITE_PREPARED, true, false},
           {"prepared, unordered", WRITE_PREPARED, true, true},
           {"unprepared", WRITE_UNPREPARED, false, false},
           {"unprepared, two queues", WRITE_UNPREPARED, true, false}}) {
    SCOPED_TRACE(mode.name);
    Options options = MapOptions();
    options.two_write_queues = mode.two_write_queues;
    options.unordered_write = mode.unordered_write;
    TransactionDBOptions txn_db_options;
    txn_db_options.write_policy = mode.policy;
    TransactionOptions txn_options;
    // With write-unprepared, each write goes to the database before the next
    // one.
    txn_options.write_batch_flush_threshold = 1;
    const bool committed = mode.policy == WRITE_COMMITTED;
    Destroy(options);
    TransactionDB* const txn_db =
        OpenTransactions(options, txn_db_options, dbname_, &db_);
    ASSERT_NE(txn_db, nullptr);

    ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
    ASSERT_OK(db_->Put(WriteOptions(), "l", Value(1)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    // If sequence numbers do not determine what is visible, no value is direct.
    EXPECT_EQ(IsDirect("k"), committed);

    std::unique_ptr<Transaction> txn(
        txn_db->BeginTransaction(WriteOptions(), txn_options));
    ASSERT_OK(txn->SetName("one"));
    std::string value;
    ASSERT_OK(txn->GetForUpdate(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(1));
    {
      TransactionOptions impatient = txn_options;
      impatient.lock_timeout = 0;
      const std::unique_ptr<Transaction> late(
          txn_db->BeginTransaction(WriteOptions(), impatient));
      ASSERT_OK(late->SetName("late"));
      const Status s = late->GetForUpdate(ReadOptions(), "k", &value);
      EXPECT_TRUE(s.IsTimedOut()) << s.ToString();
    }
    ASSERT_OK(txn->Put("k", Value(2)));
    ASSERT_OK(txn->Put("m", Value(2)));
    ASSERT_OK(db_->Flush(FlushOptions()));
    const Contents before = {{"k", Value(1)}, {"l", Value(1)}};
    CheckData(before);
    ASSERT_OK(txn->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, Value(2));
    ASSERT_OK(txn->Prepare());
    ASSERT_OK(db_->Put(WriteOptions(), "n", Value(5)));
    const std::string unflushed = OtherDir("unflushed");
    CopyDB(unflushed);
    ASSERT_OK(db_->Flush(FlushOptions()));
    const std::string flushed = OtherDir("flushed");
    CopyDB(flushed);
    Contents model = before;
    model["n"] = Value(5);
    CheckData(model);

    const Snapshot* const snapshot = db_->GetSnapshot();
    ASSERT_OK(txn->Commit());
    model["k"] = Value(2);
    model["m"] = Value(2);
    for (int step = 0; step < 3; ++step) {
      CheckData(model);
      EXPECT_EQ(Get("k", snapshot), Value(1));
      EXPECT_EQ(Get("m", snapshot), "NOT_FOUND");
      if (step == 0) {
        ASSERT_OK(db_->Flush(FlushOptions()));
      } else if (step == 1) {
        Compact();
      }
    }
    db_->ReleaseSnapshot(snapshot);

    // Data that is rolled back was flushed before.
    txn.reset(txn_db->BeginTransaction(WriteOptions(), txn_options));
    ASSERT_OK(txn->SetName("two"));
    ASSERT_OK(txn->Put("k", Value(3)));
    ASSERT_OK(txn->Delete("l"));
    ASSERT_OK(txn->Put("o", Value(3)));
    ASSERT_OK(txn->Prepare());
    ASSERT_OK(db_->Flush(FlushOptions()));
    CheckData(model);
    ASSERT_OK(txn->Rollback());
    CheckData(model);
    txn.reset();
    ASSERT_OK(db_->Flush(FlushOptions()));
    Compact();
    CheckData(model);
    CheckMap(4);
    EXPECT_EQ(IsDirect("k"), committed);
    EXPECT_EQ(IsDirect("l"), committed);
    Close();

    // Opens the copies of the crashes. In one of them the transaction is
    // committed, in the other one it is rolled back.
    for (const bool commit : {true, false}) {
      SCOPED_TRACE(commit ? "unflushed" : "flushed");
      std::unique_ptr<DB> db;
      TransactionDB* const recovered = OpenTransactions(
          options, txn_db_options, commit ? unflushed : flushed, &db);
      ASSERT_NE(recovered, nullptr);
      ColumnFamilyHandle* const family = db->DefaultColumnFamily();
      Contents expected = before;
      expected["n"] = Value(5);
      CheckData(db.get(), family, expected);
      std::unique_ptr<Transaction> again(
          recovered->GetTransactionByName("one"));
      ASSERT_NE(again.get(), nullptr);
      if (commit) {
        ASSERT_OK(again->Commit());
        expected["k"] = Value(2);
        expected["m"] = Value(2);
      } else {
        ASSERT_OK(again->Rollback());
      }
      again.reset();
      CheckData(db.get(), family, expected);
      ASSERT_OK(db->Flush(FlushOptions()));
      Compact(db.get(), family);
      CheckData(db.get(), family, expected);
      CheckMap(family, expected.size());
    }
  }
}

// With write-prepared and write-unprepared transactions a tailing iterator
// reads at the moment when it was made, because their NewIterator() ignores
// ReadOptions::tailing. RocksDB without a map behaves in the same way.
TEST_F(DBAddressMapTransactionTest, WritePreparedTailingIteratorsDoNotFollow) {
  for (const bool with_map : {false, true}) {
    for (const TxnDBWritePolicy policy :
         {WRITE_COMMITTED, WRITE_PREPARED, WRITE_UNPREPARED}) {
      SCOPED_TRACE(testing::Message() << with_map << ' ' << policy);
      Options options = MapOptions();
      options.enable_blob_address_map = with_map;
      TransactionDBOptions txn_db_options;
      txn_db_options.write_policy = policy;
      Destroy(options);
      ASSERT_NE(OpenTransactions(options, txn_db_options, dbname_, &db_),
                nullptr);
      ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
      ReadOptions tailing;
      tailing.tailing = true;
      std::unique_ptr<Iterator> iter(db_->NewIterator(tailing));
      ASSERT_OK(db_->Put(WriteOptions(), "k", Value(2)));
      ASSERT_OK(db_->Put(WriteOptions(), "l", Value(2)));
      for (const bool flushed : {false, true}) {
        if (flushed) {
          ASSERT_OK(db_->Flush(FlushOptions()));
        }
        const bool follows = policy == WRITE_COMMITTED;
        iter->Seek("k");
        ASSERT_TRUE(iter->Valid());
        EXPECT_EQ(iter->value(), Value(follows ? 2 : 1));
        iter->Next();
        EXPECT_EQ(iter->Valid(), follows);
        EXPECT_OK(iter->status());
      }
      iter.reset();
      Close();
    }
  }
}

// A write-unprepared transaction that is prepared and not yet committed reads
// its own operands twice: they are already in the database and still in the
// transaction's batch. RocksDB without a map behaves in the same way.
TEST_F(DBAddressMapTransactionTest, WriteUnpreparedReadsItsOwnOperandsTwice) {
  for (const bool with_map : {false, true}) {
    for (const TxnDBWritePolicy policy :
         {WRITE_COMMITTED, WRITE_PREPARED, WRITE_UNPREPARED}) {
      SCOPED_TRACE(testing::Message() << with_map << ' ' << policy);
      Options options = MapOptions();
      options.enable_blob_address_map = with_map;
      options.merge_operator = MergeOperators::CreateStringAppendOperator();
      TransactionDBOptions txn_db_options;
      txn_db_options.write_policy = policy;
      Destroy(options);
      TransactionDB* const txn_db =
          OpenTransactions(options, txn_db_options, dbname_, &db_);
      ASSERT_NE(txn_db, nullptr);
      ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
      ASSERT_OK(db_->Flush(FlushOptions()));
      std::unique_ptr<Transaction> txn(
          txn_db->BeginTransaction(WriteOptions()));
      ASSERT_OK(txn->SetName("t"));
      ASSERT_OK(txn->Merge("k", "a"));
      const auto read = [&] {
        const Slice key("k");
        PinnableSlice value;
        Status s;
        txn->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), 1, &key,
                      &value, &s);
        EXPECT_OK(s);
        std::string by_get;
        EXPECT_OK(txn->Get(ReadOptions(), "k", &by_get));
        EXPECT_EQ(value, by_get);
        return by_get;
      };
      const std::string right = Value(1) + ",a";
      EXPECT_EQ(read(), right);
      ASSERT_OK(txn->Prepare());
      EXPECT_EQ(read(), policy == WRITE_UNPREPARED ? right + ",a" : right);
      EXPECT_EQ(Get("k"), Value(1));
      ASSERT_OK(txn->Commit());
      EXPECT_EQ(Get("k"), right);
      txn.reset();
      Close();
    }
  }
}

// At the commit of a transaction its batch becomes a memtable of its own, which
// is flushed before its entries are published. Until then readers must see the
// old values.
TEST_F(DBAddressMapTransactionTest, CommitPastTheMemtableIsNotVisibleEarly) {
  for (const bool two_write_queues : {false, true}) {
    for (const bool with_snapshot : {false, true}) {
      SCOPED_TRACE(std::string(two_write_queues ? "two queues" : "one queue") +
                   (with_snapshot ? ", snapshot" : ""));
      Options options = MapOptions();
      options.two_write_queues = two_write_queues;
      options.max_write_buffer_number = 8;
      Destroy(options);
      TransactionDB* const txn_db =
          OpenTransactions(options, TransactionDBOptions(), dbname_, &db_);
      ASSERT_NE(txn_db, nullptr);
      ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
      ASSERT_OK(db_->Put(WriteOptions(), "l", Value(1)));
      ASSERT_OK(db_->Flush(FlushOptions()));
      EXPECT_TRUE(IsDirect("k"));
      const Snapshot* const snapshot =
          with_snapshot ? db_->GetSnapshot() : nullptr;
      TransactionOptions txn_options;
      txn_options.commit_bypass_memtable = true;
      std::unique_ptr<Transaction> txn(
          txn_db->BeginTransaction(WriteOptions(), txn_options));
      ASSERT_OK(txn->SetName("bypass"));
      ASSERT_OK(txn->Put("k", Value(2)));
      ASSERT_OK(txn->Delete("l"));
      ASSERT_OK(txn->Put("m", Value(2)));
      ASSERT_OK(txn->Prepare());
      const auto done = EnableCallBackOnce(
          "DBImpl::WriteImpl:AfterWBWIIngestBeforeSetLastSequence:pause",
          [&](void*) {
            EXPECT_OK(ImplOf(db_.get())->TEST_WaitForFlushMemTable());
            EXPECT_EQ(Get("k"), Value(1));
            EXPECT_EQ(Get("l"), Value(1));
            EXPECT_EQ(Get("m"), "NOT_FOUND");
          });
      ASSERT_OK(txn->Commit());
      DisableCallBacks();
      EXPECT_TRUE(*done);
      txn.reset();
      const Contents model = {{"k", Value(2)}, {"m", Value(2)}};
      CheckData(model);
      if (with_snapshot) {
        EXPECT_EQ(Get("k", snapshot), Value(1));
        EXPECT_EQ(Get("l", snapshot), Value(1));
        EXPECT_EQ(Get("m", snapshot), "NOT_FOUND");
        db_->ReleaseSnapshot(snapshot);
      }
      ASSERT_OK(db_->Flush(FlushOptions()));
      Compact();
      CheckData(model);
      CheckMap(2);
      EXPECT_TRUE(IsDirect("k"));
      Close();
    }
  }
}

// IngestWriteBatchWithIndex() makes a batch a memtable of its own. Its entries
// overwrite mapped values.
TEST_F(DBAddressMapTransactionTest, IngestedBatchOverwritesMappedValues) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Contents model = {{"k", Value(1)}, {"l", Value(1)}, {"n", "a"}};
  for (const auto& [key, value] : model) {
    ASSERT_OK(Put(key, value));
  }
  ASSERT_OK(Flush());
  const Snapshot* const snapshot = db_->GetSnapshot();
  const auto batch = std::make_shared<WriteBatchWithIndex>(
      options.comparator, 0, /*overwrite_key=*/true);
  ASSERT_OK(batch->Put("k", Value(2)));
  ASSERT_OK(batch->Delete("l"));
  ASSERT_OK(batch->Put("m", Value(2)));
  ASSERT_OK(batch->Merge("n", "b"));
  WriteOptions no_wal;
  no_wal.disableWAL = true;
  ASSERT_OK(db_->IngestWriteBatchWithIndex(no_wal, batch));
  model = {{"k", Value(2)}, {"m", Value(2)}, {"n", "a,b"}};
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    CheckData(model);
    EXPECT_EQ(Get("k", snapshot), Value(1));
    EXPECT_EQ(Get("l", snapshot), Value(1));
    EXPECT_EQ(Get("m", snapshot), "NOT_FOUND");
    EXPECT_EQ(Get("n", snapshot), "a");
    if (step == 0) {
      ASSERT_OK(Flush());
      WaitForJobs();
    } else if (step == 1) {
      Compact();
    }
  }
  db_->ReleaseSnapshot(snapshot);
  Compact();
  CheckData(model);
  CheckMap(3);
  CheckBlobFiles(BlobFiles().size());
  Reopen(options);
  CheckData(model);
  CheckMap(3);
}

// A batch with an index is read over direct values, over old values at a
// snapshot, and over versioned values.
TEST_F(DBAddressMapTransactionTest, BatchWithIndexIsReadOverMappedValues) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  Contents now;
  for (int i = 0; i < 6; ++i) {
    now[Key(i)] = Value(i);
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  Contents then = now;
  WriteBatchWithIndex batch(BytewiseComparator(), 0, /*overwrite_key=*/true);
  ASSERT_OK(batch.Put(Key(1), Value(11)));
  ASSERT_OK(batch.Delete(Key(2)));
  ASSERT_OK(batch.Merge(Key(3), "m"));
  ASSERT_OK(batch.Put("new", "n"));
  // Returns the model as a reader sees it through the batch.
  const auto through = [](Contents model) {
    model[Key(1)] = Value(11);
    model.erase(Key(2));
    model[Key(3)] += ",m";
    model["new"] = "n";
    return model;
  };
  const auto check = [&](const Contents& base, const Snapshot* snapshot) {
    const Contents model = through(base);
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::vector<std::string> names;
    for (int i = 0; i < 6; ++i) {
      names.push_back(Key(i));
    }
    names.push_back("absent");
    names.push_back("new");
    std::sort(names.begin(), names.end());
    const std::vector<Slice> keys(names.begin(), names.end());
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    batch.MultiGetFromBatchAndDB(db_.get(), read_options, Handle(), keys.size(),
                                 keys.data(), values.data(), statuses.data(),
                                 /*sorted_input=*/true);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto found = model.find(names[i]);
      std::string value;
      const Status s =
          batch.GetFromBatchAndDB(db_.get(), read_options, keys[i], &value);
      if (found == model.end()) {
        EXPECT_TRUE(s.IsNotFound()) << names[i] << ": " << s.ToString();
        EXPECT_TRUE(statuses[i].IsNotFound())
            << names[i] << ": " << statuses[i].ToString();
      } else {
        ASSERT_OK(s);
        EXPECT_EQ(value, found->second) << names[i];
        ASSERT_OK(statuses[i]);
        EXPECT_EQ(values[i].ToString(), found->second) << names[i];
      }
    }
    const std::unique_ptr<Iterator> iter(
        batch.NewIteratorWithBase(Handle(), db_->NewIterator(read_options)));
    EXPECT_EQ(Scan(iter.get()), Text(model));
    EXPECT_EQ(Scan(iter.get(), /*reverse=*/true), Text(model, true));
    iter->Seek(Key(2));
    ASSERT_TRUE(iter->Valid());
    EXPECT_EQ(iter->key(), Key(3));
    EXPECT_EQ(iter->value(), model.at(Key(3)));
  };
  check(now, nullptr);
  const Snapshot* const snapshot = db_->GetSnapshot();
  for (int i : {0, 3}) {
    now[Key(i)] = Value(100 + i);
    ASSERT_OK(Put(Key(i), Value(100 + i)));
  }
  now.erase(Key(5));
  ASSERT_OK(Delete(Key(5)));
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    check(now, nullptr);
    check(then, snapshot);
    if (step == 0) {
      ASSERT_OK(Flush());
    } else if (step == 1) {
      Compact();
    }
  }
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(db_->Write(WriteOptions(), batch.GetWriteBatch()));
  CheckData(through(now));
  ASSERT_OK(Flush());
  Compact();
  CheckData(through(now));
  CheckMap(through(now).size());
}

// Compactions without the bypass leave entries of the map direct. Transactions
// whose order of commits is not that of sequence numbers need versioned ones.
TEST_F(DBAddressMapTransactionTest, DirectEntriesOfAnImageAreDemoted) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  options.enable_lsm_bypass = false;
  Reopen(options);
  Compact();
  EXPECT_TRUE(IsDirect("k"));
  Close();
  TransactionDBOptions txn_db_options;
  txn_db_options.write_policy = WRITE_PREPARED;
  const auto is_loaded =
      EnableCallBackOnce("AddressMapCheckpoints::Load:Loaded", [](void*) {});
  OpenTransactions(options, txn_db_options, dbname_, &db_);
  DisableCallBacks();
  EXPECT_TRUE(*is_loaded);
  EXPECT_FALSE(IsDirect("k"));
  EXPECT_EQ(Get("k"), Value(1));
}

// The newer version of the key belongs to a transaction that was prepared and
// not committed, so the older version, which is lost, is the one to read.
TEST_F(DBAddressMapTransactionTest, LostValueUnderAPreparedOneIsNotForgotten) {
  Options options = MapOptions();
  TransactionDBOptions txn_db_options;
  txn_db_options.write_policy = WRITE_PREPARED;
  Destroy(options);
  TransactionDB* txn_db =
      OpenTransactions(options, txn_db_options, dbname_, &db_);
  ASSERT_OK(db_->Put(WriteOptions(), "k", Value(1)));
  ASSERT_OK(db_->Flush(FlushOptions()));
  const std::vector<BlobMetaData> files = BlobFiles();
  ASSERT_EQ(files.size(), 1u);
  std::unique_ptr<DB> copied;
  std::unique_ptr<Transaction> txn(txn_db->BeginTransaction(WriteOptions()));
  ASSERT_OK(txn->SetName("t"));
  ASSERT_OK(txn->Put("k", Value(2)));
  ASSERT_OK(txn->Prepare());
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_EQ(BlobFiles().size(), 2u);
  ASSERT_EQ(Get("k"), Value(1));

  const std::string copy = OtherDir("copy");
  CopyDB(copy);
  ASSERT_OK(txn->Rollback());
  txn.reset();
  ASSERT_OK(env_->DeleteFile(BlobFileName(copy, files[0].blob_file_number)));
  Status s = TransactionDB::Open(options, txn_db_options, copy, &txn_db);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  options.paranoid_checks = false;
  txn_db = OpenTransactions(options, txn_db_options, copy, &copied);
  std::string value;
  s = copied->Get(ReadOptions(), "k", &value);
  EXPECT_TRUE(s.IsCorruption() && Mentions(s.ToString(), "is lost"))
      << s.ToString();
  txn.reset(txn_db->GetTransactionByName("t"));
  ASSERT_NE(txn, nullptr);
  ASSERT_OK(txn->Commit());
  EXPECT_EQ(GetFrom(copied.get(), copied->DefaultColumnFamily(), "k"),
            Value(2));
}

// Flushes of a database without transactions have removed the values that they
// hide, and their blob files, while the SST files still have the names. A later
// open with a write policy that may need hidden values finds these names
// without an address. No value is lost then, as a newer one hides each of them.
TEST_F(DBAddressMapTransactionTest, HiddenNamesWithoutAValueAreForgotten) {
  for (const TxnDBWritePolicy policy : {WRITE_PREPARED, WRITE_UNPREPARED}) {
    SCOPED_TRACE(policy);
    Options options = MapOptions();
    options.enable_lsm_bypass = false;
    DestroyAndReopen(options);
    // "k" has two hidden values, "l" has one. The value of "m" is current and
    // keeps its file, which has another hidden value that still exists.
    ASSERT_OK(Put("k", Value(1)));
    ASSERT_OK(Put("l", Value(1)));
    ASSERT_OK(Flush());
    ASSERT_OK(Put("k", Value(2)));
    ASSERT_OK(Flush());
    ASSERT_OK(Put("l", Value(2)));
    ASSERT_OK(Put("m", Value(1)));
    ASSERT_OK(Flush());
    ASSERT_OK(Put("k", Value(3)));
    ASSERT_OK(Put("l", Value(3)));
    ASSERT_OK(Flush());
    WaitForJobs();
    // The SST files have names for which there are no records.
    ASSERT_EQ(BlobFiles().size(), 2u);
    EXPECT_EQ(MappedStats().num_mapped, 7u);
    CheckMap(3);

    const std::string copy = OtherDir("copy");
    CopyDB(copy);
    TransactionDBOptions txn_db_options;
    txn_db_options.write_policy = policy;
    std::unique_ptr<DB> copied;
    TransactionDB* const txn_db =
        OpenTransactions(options, txn_db_options, copy, &copied);
    ASSERT_NE(txn_db, nullptr);
    ColumnFamilyHandle* const family = copied->DefaultColumnFamily();
    const auto check = [&](int k) {
      EXPECT_EQ(GetFrom(copied.get(), family, "k"), Value(k));
      EXPECT_EQ(GetFrom(copied.get(), family, "l"), Value(3));
      EXPECT_EQ(GetFrom(copied.get(), family, "m"), Value(1));
      const std::unique_ptr<Iterator> iter(copied->NewIterator(ReadOptions()));
      EXPECT_EQ(Scan(iter.get()),
                "k=" + Value(k) + ";l=" + Value(3) + ";m=" + Value(1) + ";");
    };
    // The names of all current values, and that of the hidden value of "l" that
    // still exists.
    CheckMap(family, 4);
    check(3);

    // The hidden names do no harm below a value that is not committed.
    std::unique_ptr<Transaction> txn(txn_db->BeginTransaction(WriteOptions()));
    ASSERT_OK(txn->SetName("t"));
    ASSERT_OK(txn->Put("k", Value(4)));
    ASSERT_OK(txn->Prepare());
    ASSERT_OK(copied->Flush(FlushOptions()));
    check(3);
    ASSERT_OK(txn->Commit());
    txn.reset();
    check(4);
    Compact(copied.get(), family);
    CheckMap(family, 3);
    check(4);
    copied.reset();
  }
}

// A recovery forgets only names that a newer name of the same key hides. If the
// newest value is lost, although no blob file is damaged, the open fails.
TEST_F(DBAddressMapTransactionTest, NewestNameWithoutAValueIsNotForgotten) {
  Options options = MapOptions();
  options.enable_lsm_bypass = false;
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("l", Value(3)));
  ASSERT_OK(Flush());
  WaitForJobs();
  const std::vector<BlobMetaData> files = BlobFiles();
  ASSERT_EQ(files.size(), 2u);
  ASSERT_EQ(files[0].blob_file_size, files[1].blob_file_size);
  const std::string copy = OtherDir("copy");
  CopyDB(copy);
  // Another intact file takes the place of that with the newest value of "k".
  CopyTo(BlobFileName(copy, files[1].blob_file_number),
         BlobFileName(copy, files[0].blob_file_number));

  TransactionDBOptions txn_db_options;
  txn_db_options.write_policy = WRITE_PREPARED;
  options.allow_data_in_errors = true;
  TransactionDB* txn_db = nullptr;
  Status s = TransactionDB::Open(options, txn_db_options, copy, &txn_db);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_TRUE(Mentions(s.ToString(), "the values of 1 keys")) << s.ToString();
  EXPECT_FALSE(Mentions(s.ToString(), "Damaged blob files")) << s.ToString();
  // The newest name of "k", in hexadecimal and with its sequence number.
  EXPECT_TRUE(Mentions(s.ToString(), "The first keys: 6B@2")) << s.ToString();

  options.paranoid_checks = false;
  std::unique_ptr<DB> copied;
  txn_db = OpenTransactions(options, txn_db_options, copy, &copied);
  ASSERT_NE(txn_db, nullptr);
  CheckMap(copied->DefaultColumnFamily(), 2);
  std::string value;
  s = copied->Get(ReadOptions(), "k", &value);
  EXPECT_TRUE(s.IsCorruption() && Mentions(s.ToString(), "is lost"))
      << s.ToString();
  EXPECT_EQ(GetFrom(copied.get(), copied->DefaultColumnFamily(), "l"),
            Value(3));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
