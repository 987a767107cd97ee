//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with enable_blob_address_map, used through the public interface.

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/address_map_verifier.h"
#include "db/blob_v2/blob_read_group.h"
#include "db/db_impl/db_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/perf_level.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "util/defer.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapTest : public AddressMapDBTestBase {
 public:
  DBAddressMapTest() : AddressMapDBTestBase("db_address_map_test") {}

  const VersionMappedStats& Summary() {
    return Family()->current()->storage_info()->strata()->mapped_stats();
  }

  // Returns the lines that AddressMapVerifier reports.
  std::vector<std::string> Verify(bool read_values, uint64_t num_values) {
    ColumnFamilyData* const cfd = Family();
    AddressMapVerifier::Options verifier_options;
    verifier_options.num_threads = 3;
    verifier_options.read_values = read_values;
    AddressMapVerifier::Result result;
    std::vector<std::string> lines;
    WaitForJobs();
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(dbfull());
    EXPECT_OK(AddressMapVerifier::Verify(
        cfd, sv->current, verifier_options,
        [&lines](const std::string& line) { lines.push_back(line); }, &result));
    dbfull()->CleanupSuperVersion(sv);
    EXPECT_EQ(result.values, num_values);
    EXPECT_EQ(result.errors, lines.size());
    return lines;
  }
};

// A flushed value with one version is found through the map alone, without
// opening an SST file.
TEST_F(DBAddressMapTest, DirectReadOpensNoTable) {
  DestroyAndReopen(MapOptions());
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  EXPECT_EQ(Blobs()->map()->NumEntries(), 100);
  EXPECT_EQ(Summary().lsm_ceiling, 0);
  EXPECT_EQ(Summary().num_mapped, 100);
  SetPerfLevel(kEnableCount);
  get_perf_context()->Reset();
  EnableCallBack("TableCache::FindTable:0",
                 [](void*) { FAIL() << "a table was opened"; });
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(IsDirect(Key(i)));
    EXPECT_EQ(Get(Key(i)), Value(i));
  }
  EXPECT_EQ(Get("absent"), "NOT_FOUND");
  EXPECT_EQ(Ticker(BLOB_MAP_DIRECT_READ), 100);
  EXPECT_EQ(Ticker(BLOB_MAP_NAMED_READ), 0);
  const PerfContext& perf = *get_perf_context();
  EXPECT_EQ(perf.blob_map_direct_count, 100);
  EXPECT_EQ(perf.blob_map_named_count, 0);
  EXPECT_EQ(perf.blob_map_restart_count, 0);
  EXPECT_EQ(perf.blob_map_bypass_count, 100);
  EXPECT_EQ(Ticker(BLOB_MAP_BYPASS), 100);
  SetPerfLevel(kDisable);
  DisableCallBacks();
}

// A value that is versioned because of a snapshot becomes direct in a
// compaction after the release of the snapshot.
TEST_F(DBAddressMapTest, VersionedValueBecomesDirectInACompaction) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  EXPECT_EQ(Blobs()->map()->NumEntries(), 2);
  EXPECT_EQ(Get("k"), Value(2));
  EXPECT_EQ(Get("k", snapshot), Value(1));
  db_->ReleaseSnapshot(snapshot);
  Compact();
  EXPECT_EQ(Blobs()->map()->NumEntries(), 1);
  EXPECT_EQ(Ticker(BLOB_MAP_RENAMED), 1);
  EXPECT_EQ(Summary().lsm_ceiling, 0);
  EXPECT_EQ(Get("k"), Value(2));
}

TEST_F(DBAddressMapTest, ReopenFindsAllValues) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  std::map<std::string, std::string> expected;
  Random rnd(17);
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 200; ++i) {
      const std::string key = Key(rnd.Uniform(300));
      if (rnd.OneIn(5)) {
        ASSERT_OK(Delete(key));
        expected.erase(key);
      } else {
        expected[key] = Value(round * 1000 + i);
        ASSERT_OK(Put(key, expected[key]));
      }
    }
    if (round % 2 == 1) {
      ASSERT_OK(Flush());
    }
    if (round == 5) {
      ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    }
    Reopen(options);
    for (int i = 0; i < 300; ++i) {
      const auto found = expected.find(Key(i));
      EXPECT_EQ(Get(Key(i)),
                found == expected.end() ? "NOT_FOUND" : found->second);
    }
  }
}

// A flush that fails before it has published its values does not change the
// map. The next open replays the WAL. (A flush that has published some is the
// subject of DBAddressMapRaceTest.UndoneFlushRestoresTheMap.)
TEST_F(DBAddressMapTest, FailedFlushPublishesNothing) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("k", Value(2)));
  SyncPoint::GetInstance()->SetCallBack(
      "FlushJob::WriteLevel0Table:s", [](void* status) {
        *static_cast<Status*>(status) = Status::IOError("injected");
      });
  std::atomic<bool> published{false};
  EnableCallBack("MapTransaction::Publish:Inserted",
                 [&](void*) { published = true; });
  EXPECT_NOK(Flush());
  DisableCallBacks();
  EXPECT_FALSE(published);
  EXPECT_EQ(Get("k"), Value(2));
  EXPECT_EQ(Blobs()->map()->NumEntries(), 1);
  Reopen(options);
  EXPECT_EQ(Get("k"), Value(2));
}

// ---- Lookups of several keys.

TEST_F(DBAddressMapTest, MultiGetFindsEntriesOfAllKinds) {
  DestroyAndReopen(MapOptions());
  std::vector<std::string> keys;
  std::vector<std::string> expected;
  for (int i = 0; i < 60; ++i) {
    keys.push_back(Key(i));
    ASSERT_OK(Put(Key(i), Value(i)));
    expected.push_back(Value(i));
    if (i % 20 == 19) {
      ASSERT_OK(Flush());
    }
  }
  const Snapshot* const snapshot = db_->GetSnapshot();
  const std::vector<std::string> before = expected;
  for (int i = 0; i < 60; i += 3) {
    switch (i % 4) {
      case 0:
        ASSERT_OK(Put(Key(i), Value(1000 + i)));
        expected[i] = Value(1000 + i);
        break;
      case 1:
        ASSERT_OK(Delete(Key(i)));
        expected[i] = "NOT_FOUND";
        break;
      default:
        ASSERT_OK(db_->Merge(WriteOptions(), Key(i), "m"));
        expected[i] += ",m";
    }
    if (i == 30) {
      ASSERT_OK(Flush());
    }
  }
  ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                             Key(40), Key(43)));
  for (int i = 40; i < 43; ++i) {
    expected[i] = "NOT_FOUND";
  }
  keys.push_back("absent");
  expected.push_back("NOT_FOUND");
  std::vector<std::string> then = before;
  then.push_back("NOT_FOUND");
  // The reads seem slow, so several files are read in parallel.
  SyncPoint::GetInstance()->SetCallBack(
      "BlobReadPool::RunAll:Micros", [](void* micros) {
        *static_cast<uint64_t*>(micros) = BlobReadPool::kCachedMicros + 1;
      });
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(MultiGet(keys), expected) << step;
    EXPECT_EQ(MultiGet(keys, snapshot), then) << step;
    SyncPoint::GetInstance()->EnableProcessing();
    EXPECT_EQ(MultiGet(keys), expected) << step;
    EXPECT_EQ(MultiGet(keys, snapshot), then) << step;
    SyncPoint::GetInstance()->DisableProcessing();
    if (step == 0) {
      ASSERT_OK(Flush());
    } else if (step == 1) {
      Compact();
    }
  }
  db_->ReleaseSnapshot(snapshot);
  Compact();
  EXPECT_EQ(MultiGet(keys), expected);
  SyncPoint::GetInstance()->EnableProcessing();
  EXPECT_EQ(MultiGet(keys), expected);
  DisableCallBacks();
}

// If one key of a batch over two column families has to start again, all
// results are still of one moment.
TEST_F(DBAddressMapTest, MultiGetOfTwoFamiliesReadsAtOneMoment) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  for (int cf : {0, 1}) {
    ASSERT_OK(Put(cf, "k", Value(1)));
    ASSERT_OK(Put(cf, "l", Value(1)));
    ASSERT_OK(Flush(cf));
  }
  std::atomic<int> attempts{0};
  EnableCallBack("DBImpl::MultiCFSnapshot:AfterGetSeqNum1", [&](void*) {
    if (attempts++ < 5) {
      // The SuperVersions of the attempt are outdated now, and their values
      // are overwritten.
      OnAnotherThread([&] {
        for (int cf : {0, 1}) {
          for (const char* key : {"k", "l"}) {
            ASSERT_OK(Put(cf, key, Value(10 + attempts)));
          }
          ASSERT_OK(Flush(cf));
        }
      });
    }
  });
  std::vector<PinnableSlice> values(5);
  std::vector<Status> statuses(5);
  std::vector<Slice> keys = {"k", "l", "m", "k", "l"};
  std::vector<ColumnFamilyHandle*> families = {
      handles_[0], handles_[0], handles_[0], handles_[1], handles_[1]};
  db_->MultiGet(ReadOptions(), 5, families.data(), keys.data(), values.data(),
                statuses.data());
  DisableCallBacks();
  EXPECT_TRUE(statuses[2].IsNotFound());
  for (int i : {0, 1, 3, 4}) {
    ASSERT_OK(statuses[i]);
    EXPECT_EQ(values[i], values[0]) << i;
  }
  EXPECT_GT(Ticker(BLOB_MAP_READ_RESTART), 0);
}

// ---- Point lookups beside jobs.

// Get() is right if a flush, and the removal of the values that it has
// overwritten, happen between any two of its steps.
TEST_F(DBAddressMapTest, GetIsRightBesideAFlush) {
  for (const char* point :
       {"MapPointRead::Start", "DBImpl::GetImpl:AfterAcquireSv",
        "DBImpl::GetImpl:3", "DBImpl::GetImpl:PostMemTableGet:0",
        "MapPointRead::TakeDirect", "MapPointRead::TakeNamed",
        "MapPointRead::ConfirmAbsence"}) {
    for (const bool deleted : {false, true}) {
      SCOPED_TRACE(std::string(point) + (deleted ? " deleted" : ""));
      Options options = MapOptions();
      options.enable_lsm_bypass =
          std::string(point) != "MapPointRead::TakeNamed";
      DestroyAndReopen(options);
      ASSERT_OK(Put("k", Value(1)));
      ASSERT_OK(Flush());
      const auto done = EnableCallBackOnce(point, [&](void*) {
        OnAnotherThread([&] {
          ASSERT_OK(deleted ? Delete("k") : Put("k", Value(2)));
          ASSERT_OK(Flush());
          WaitForJobs();
        });
      });
      const std::string got = Get("k");
      const std::string absent = Get("absent");
      DisableCallBacks();
      EXPECT_TRUE(got == Value(1) || got == (deleted ? "NOT_FOUND" : Value(2)))
          << got;
      EXPECT_TRUE(*done);
      EXPECT_EQ(absent, "NOT_FOUND");
      EXPECT_EQ(Get("k"), deleted ? "NOT_FOUND" : Value(2));
    }
  }
}

// If the direct base of an operand in the memtable is replaced during a read,
// the operand is never merged with the new base.
TEST_F(DBAddressMapTest, OldOperandsNeverMeetANewBase) {
  for (const char* point :
       {"DBImpl::GetImpl:AfterAcquireSv", "DBImpl::GetImpl:PostMemTableGet:0",
        "MapPointRead::TakeDirect"}) {
    SCOPED_TRACE(point);
    DestroyAndReopen(MapOptions());
    ASSERT_OK(Put("k", "a"));
    ASSERT_OK(Flush());
    ASSERT_OK(db_->Merge(WriteOptions(), "k", "b"));
    const auto done = EnableCallBackOnce(point, [&](void*) {
      OnAnotherThread([&] {
        ASSERT_OK(Put("k", "new"));
        ASSERT_OK(Flush());
        WaitForJobs();
      });
    });
    const std::string got = Get("k");
    DisableCallBacks();
    EXPECT_TRUE(*done);
    EXPECT_TRUE(got == "a,b" || got == "new") << got;
    EXPECT_EQ(Get("k"), "new");
  }
}

TEST_F(DBAddressMapTest, PersistedTierReadsOnlyFlushedValues) {
  DestroyAndReopen(MapOptions());
  ReadOptions persisted;
  persisted.read_tier = kPersistedTier;
  std::string value;
  WriteOptions no_wal;
  no_wal.disableWAL = true;
  ASSERT_OK(db_->Put(no_wal, "k", Value(1)));
  EXPECT_TRUE(db_->Get(persisted, "k", &value).IsNotFound());
  ASSERT_OK(Flush());
  ASSERT_OK(db_->Get(persisted, "k", &value));
  EXPECT_EQ(value, Value(1));
  ASSERT_OK(db_->Put(no_wal, "k", Value(2)));
  ASSERT_OK(db_->Get(persisted, "k", &value));
  EXPECT_EQ(value, Value(1));
  // A flush commits during the lookup.
  const auto done =
      EnableCallBackOnce("DBImpl::GetImpl:AfterAcquireSv", [&](void*) {
        OnAnotherThread([&] {
          ASSERT_OK(Flush());
          WaitForJobs();
        });
      });
  ASSERT_OK(db_->Get(persisted, "k", &value));
  DisableCallBacks();
  EXPECT_TRUE(*done);
  EXPECT_TRUE(value == Value(1) || value == Value(2)) << value;
  ASSERT_OK(db_->Get(persisted, "k", &value));
  EXPECT_EQ(value, Value(2));
}

// ---- Iterators.

TEST_F(DBAddressMapTest, IteratorsKeepTheirViewBesideJobs) {
  for (const size_t prefetch :
       {size_t{0}, size_t{3}, ReadOptions::kAutoBlobPrefetchCount}) {
    SCOPED_TRACE(prefetch);
    DestroyAndReopen(MapOptions());
    ReadOptions read_options;
    read_options.blob_prefetch_count = prefetch;
    std::string forward;
    std::string backward;
    for (int i = 0; i < 200; ++i) {
      ASSERT_OK(Put(Key(i), Value(i)));
      forward += Key(i) + "=" + Value(i) + ";";
      backward = Key(i) + "=" + Value(i) + ";" + backward;
    }
    ASSERT_OK(Flush());
    std::unique_ptr<Iterator> old(db_->NewIterator(read_options));
    // All entries that the iterator sees are overwritten or deleted.
    for (int i = 0; i < 200; ++i) {
      ASSERT_OK(i % 3 == 0 ? Delete(Key(i)) : Put(Key(i), Value(1000 + i)));
    }
    EXPECT_EQ(Scan(old.get()), forward);
    ASSERT_OK(Flush());
    EXPECT_EQ(Scan(old.get()), forward);
    Compact();
    EXPECT_EQ(Scan(old.get()), forward);
    EXPECT_EQ(Scan(old.get(), /*reverse=*/true), backward);
    ASSERT_OK(old->Refresh());
    std::unique_ptr<Iterator> fresh(db_->NewIterator(read_options));
    EXPECT_EQ(Scan(old.get()), Scan(fresh.get()));
    EXPECT_EQ(Scan(old.get(), true), Scan(fresh.get(), true));
    // Moves forward and backward.
    fresh->Seek(Key(50));
    for (int i = 0; i < 30; ++i) {
      const std::string key = fresh->key().ToString();
      const std::string value = fresh->value().ToString();
      fresh->Next();
      fresh->Next();
      fresh->Prev();
      fresh->Prev();
      ASSERT_TRUE(fresh->Valid());
      EXPECT_EQ(fresh->key(), key);
      EXPECT_EQ(fresh->value(), value);
      fresh->Next();
    }
    fresh.reset();
    old.reset();
    if (prefetch > 0) {
      EXPECT_GT(Ticker(BLOB_MAP_PREFETCH_READ), 0);
    }
    // There is no implicit snapshot any more, so no old version is kept.
    ASSERT_OK(Put(Key(0), Value(1)));
    ASSERT_OK(Flush());
    Compact();
    EXPECT_EQ(Blobs()->map()->NumEntries(), 134);
    EXPECT_EQ(Summary().lsm_ceiling, 0);
  }
}

TEST_F(DBAddressMapTest, RefreshShowsWritesOfTheSameSuperVersion) {
  DestroyAndReopen(MapOptions());
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  EXPECT_EQ(Scan(iter.get()).size(),
            50 * (Key(0).size() + Value(0).size() + 2) + 40);
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK(Put(Key(i), Value(100 + i)));
  }
  ASSERT_OK(iter->Refresh());  // the SuperVersion has not changed
  iter->SeekToFirst();
  for (int i = 0; i < 50; ++i, iter->Next()) {
    ASSERT_TRUE(iter->Valid());
    EXPECT_EQ(iter->value(), Value(100 + i));
  }
}

TEST_F(DBAddressMapTest, IteratorsMergeOperandsWithMappedBases) {
  DestroyAndReopen(MapOptions());
  std::string forward;
  std::string backward;
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK(Put(Key(i), "base" + std::to_string(i)));
  }
  ASSERT_OK(Flush());
  for (int i = 0; i < 30; ++i) {
    std::string value = "base" + std::to_string(i);
    if (i % 2 == 0) {
      ASSERT_OK(db_->Merge(WriteOptions(), Key(i), "m"));
      value += ",m";
    }
    forward += Key(i) + "=" + value + ";";
    backward = Key(i) + "=" + value + ";" + backward;
  }
  for (int step = 0; step < 3; ++step) {
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    EXPECT_EQ(Scan(iter.get()), forward) << step;
    EXPECT_EQ(Scan(iter.get(), true), backward) << step;
    ReadOptions pinned;
    pinned.pin_data = true;
    std::unique_ptr<Iterator> pinning(db_->NewIterator(pinned));
    EXPECT_EQ(Scan(pinning.get()), forward) << step;
    EXPECT_EQ(Scan(pinning.get(), true), backward) << step;
    ReadOptions unprepared;
    unprepared.allow_unprepared_value = true;
    std::unique_ptr<Iterator> lazy(db_->NewIterator(unprepared));
    size_t n = 0;
    for (lazy->SeekToFirst(); lazy->Valid(); lazy->Next(), ++n) {
      ASSERT_TRUE(lazy->PrepareValue());
      EXPECT_EQ(lazy->value().starts_with("base"), true);
    }
    EXPECT_EQ(n, 30);
    iter.reset();
    pinning.reset();
    lazy.reset();
    if (step == 0) {
      ASSERT_OK(Flush());
    } else {
      Compact();
    }
  }
}

TEST_F(DBAddressMapTest, TailingIteratorContinuesBesideJobs) {
  DestroyAndReopen(MapOptions());
  ReadOptions tailing;
  tailing.tailing = true;
  std::unique_ptr<Iterator> iter(db_->NewIterator(tailing));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_OK(Put(Key(i), Value(round * 100 + i)));
    }
    iter->Seek(Key(0));
    ASSERT_OK(Flush());
    WaitForJobs();
    // The iterator keeps its value.
    ASSERT_TRUE(iter->Valid());
    EXPECT_EQ(iter->value(), Value(round * 100));
    for (int i = 1; i < 20; ++i) {
      iter->Next();
      ASSERT_TRUE(iter->Valid());
      EXPECT_EQ(iter->value(), Value(round * 100 + i));
      if (i == 10) {
        Compact();
      }
    }
    iter->Next();
    EXPECT_FALSE(iter->Valid());
    ASSERT_OK(iter->status());
  }
}

// Reads ahead of an iterator end with it, including those that no thread has
// begun.
TEST_F(DBAddressMapTest, IteratorMayEndBeforeItsReads) {
  DestroyAndReopen(MapOptions());
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  for (int steps = 0; steps < 60; ++steps) {
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    iter->SeekToFirst();
    for (int i = 0; i < steps; ++i) {
      iter->Next();
      ASSERT_EQ(iter->value(), Value(i + 1));
    }
  }
  Close();
}

// The contents of a damaged file are not used as an address in memory.
TEST_F(DBAddressMapTest, InvalidBlobIndexIsCorruption) {
  for (const bool with_map : {false, true}) {
    Options options = MapOptions();
    options.enable_blob_address_map = with_map;
    DestroyAndReopen(options);
    for (const char type : {0x12, 0x13, 0x14}) {
      WriteBatch batch;
      ASSERT_OK(WriteBatchInternal::PutBlobIndex(
          &batch, 0, std::string(1, 'a' + type),
          std::string(1, type) + std::string(30, '\x01')));
      ASSERT_OK(db_->Write(WriteOptions(), &batch));
    }
    for (const size_t prefetch :
         {size_t{0}, ReadOptions::kAutoBlobPrefetchCount}) {
      ReadOptions read_options;
      read_options.blob_prefetch_count = prefetch;
      for (const char type : {0x12, 0x13, 0x14}) {
        std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
        iter->Seek(std::string(1, 'a' + type));
        EXPECT_FALSE(iter->Valid());
        EXPECT_TRUE(iter->status().IsCorruption()) << iter->status().ToString();
      }
    }
  }
}

// ---- Row cache.

TEST_F(DBAddressMapTest, RowCacheHasTheNewestDirectValue) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 0);
  EXPECT_EQ(Get("k"), Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 1);
  const Snapshot* const snapshot = db_->GetSnapshot();
  // A flush updates the cached value in place.
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), Value(2));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 2);
  EXPECT_EQ(Get("k", snapshot), Value(1));
  EXPECT_EQ(Get("k"), Value(2));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 3);
  EXPECT_EQ(MultiGet({"k"}), std::vector<std::string>{Value(2)});
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 4);
  db_->ReleaseSnapshot(snapshot);
  // An operand is merged with a cached value.
  ASSERT_OK(db_->Merge(WriteOptions(), "k", "m"));
  EXPECT_EQ(Get("k"), Value(2) + ",m");
  EXPECT_EQ(MultiGet({"k"}), std::vector<std::string>{Value(2) + ",m"});
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), Value(2) + ",m");
  Compact();
  EXPECT_EQ(Get("k"), Value(2) + ",m");
  ASSERT_OK(Delete("k"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "NOT_FOUND");
}

// ---- Transactions.

TEST_F(DBAddressMapTest, TransactionsConflictWithDirectValues) {
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

TEST_F(DBAddressMapTest, WritePreparedReadsOnlyCommittedValues) {
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
TEST_F(DBAddressMapTest, ValueBelowAPreparedOneSurvivesACrash) {
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

// If sequence numbers do not determine what a reader sees, direct values are
// refused, and a compaction makes them versioned.
TEST_F(DBAddressMapTest, DirectValuesNeedOrderedSequenceNumbers) {
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
  EXPECT_EQ(Summary().num_direct, 0);
  EXPECT_EQ(Summary().num_mapped, 10);
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

// With unordered_write a sequence number is published before its entry can be
// read. An iterator that is made in between yields the entry below, whose value
// must still exist.
TEST_F(DBAddressMapTest, IteratorSkipsNoKeyBesideAnUnorderedWrite) {
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

// With a table filter a reader sees entries that are hidden by entries of the
// tables that it skips. Their values may have been freed, so the iterator skips
// them.
TEST_F(DBAddressMapTest, TableFilterDoesNotShowFreedValues) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Put("l", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  WaitForJobs();
  ReadOptions read_options;
  // The second table has only one entry and is skipped.
  read_options.table_filter = [](const TableProperties& properties) {
    return properties.num_entries > 1;
  };
  const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  EXPECT_EQ(Scan(iter.get()), "l=" + Value(1) + ";");
  EXPECT_EQ(Scan(iter.get(), /*reverse=*/true), "l=" + Value(1) + ";");
}

// The ends of scans start no background jobs.
TEST_F(DBAddressMapTest, ScansStartNoJobs) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  Compact();
  std::atomic<int> jobs{0};
  EnableCallBack("BackgroundJobScheduler::Work:MapRemovals",
                 [&](void*) { ++jobs; });
  for (int i = 0; i < 50; ++i) {
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    iter->SeekToFirst();
    ASSERT_OK(Put("m", Value(i)));
    if (i == 0) {
      db_->ReleaseSnapshot(db_->GetSnapshot());
    }
    iter.reset();
    WaitForJobs();
  }
  DisableCallBacks();
  EXPECT_LE(jobs, 2);
}

// Values that a compaction keeps for an iterator are removed when the iterator
// ends.
TEST_F(DBAddressMapTest, ValuesKeptForAnIteratorGoWithIt) {
  Options options = MapOptions();
  options.disable_auto_compactions = false;
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  Compact();
  EXPECT_GT(Summary().lsm_ceiling, 0);
  // As with a snapshot, files are marked for compaction only if a newer entry
  // exists.
  ASSERT_OK(Put("m", Value(3)));
  iter->SeekToFirst();
  ASSERT_TRUE(iter->Valid());
  EXPECT_EQ(iter->value(), Value(1));
  iter.reset();
  WaitForJobs();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  WaitForJobs();
  EXPECT_EQ(Blobs()->map()->NumEntries(), 1);
  EXPECT_EQ(Summary().lsm_ceiling, 0);
  EXPECT_EQ(Get("k"), Value(2));
}

// A Version that SetOptions() has appended without a SuperVersion does not make
// reads start again.
TEST_F(DBAddressMapTest, NoRestartsAfterFailedSetOptions) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  ASSERT_OK(Put(0, "k", Value(1)));
  ASSERT_OK(Flush(0));
  EXPECT_NOK(db_->SetOptions({{handles_[0], {{"write_buffer_size", "100000"}}},
                              {handles_[1], {{"no_such_option", "1"}}}}));
  const uint64_t before = Ticker(BLOB_MAP_READ_RESTART);
  EXPECT_EQ(Get(0, "absent"), "NOT_FOUND");
  EXPECT_EQ(Get(0, "k"), Value(1));
  EXPECT_EQ(Ticker(BLOB_MAP_READ_RESTART), before);
}

// ---- Compactions.

TEST_F(DBAddressMapTest, CompactionFilterActsOnMappedValues) {
  Options options = MapOptions();
  options.min_blob_size = 20;
  ActingFilter filter;
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  const std::vector<std::string> keys = {"change1", "keep1",  "operand1",
                                         "remove1", "short1", "skip1",
                                         "skip3",   "skip5"};
  for (const std::string& key : keys) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  ASSERT_OK(db_->Merge(WriteOptions(), "operand1", "m"));
  ASSERT_OK(Flush());
  std::unique_ptr<Iterator> old(db_->NewIterator(ReadOptions()));
  std::string before;
  for (const std::string& key : keys) {
    before += key + "=" + Value(1) + (key == "operand1" ? ",m" : "") + ";";
  }
  EXPECT_EQ(Scan(old.get()), before);
  ASSERT_OK(ForceCompaction());
  // The iterator's Version still has the values that the filter has removed.
  EXPECT_EQ(Scan(old.get()), before);
  const std::string after = "change1=changed " + Value(1) +
                            ";keep1=" + Value(1) + ";operand1=" + Value(1) +
                            ";short1=s;skip5=" + Value(1) + ";";
  for (int step = 0; step < 2; ++step) {
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    if (step == 0) {
      // The old iterator does not keep the value for others: jobs respect its
      // implicit snapshot like a snapshot, and filters ignore snapshots.
      EXPECT_EQ(Scan(iter.get()).find("remove"), std::string::npos);
    }
    EXPECT_EQ(Get("remove1"), "NOT_FOUND");
    EXPECT_EQ(Get("skip3"), "NOT_FOUND");
    EXPECT_EQ(Get("short1"), "s");
    EXPECT_EQ(Get("change1"), "changed " + Value(1));
    iter.reset();
    old.reset();
    Compact();
  }
  EXPECT_GT(filter.operands, 0);
  Reopen(options);
  EXPECT_EQ(Get("remove1"), "NOT_FOUND");
  EXPECT_EQ(Get("short1"), "s");
}

// A merge result stays inline, and its base is still found by the key. Reads
// between the installation of the compaction and its settlement must not return
// the base.
TEST_F(DBAddressMapTest, InlineMergeResultIsNotReplacedByItsBase) {
  for (const bool range_deleted : {false, true}) {
    Options options = MapOptions();
    options.min_blob_size = 50;
    // The result of a merge is the last operand.
    options.merge_operator = MergeOperators::CreatePutOperator();
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", Value(1)));
    ASSERT_OK(Flush());
    ASSERT_TRUE(IsDirect("k"));
    if (range_deleted) {
      ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                 "a", "z"));
    }
    ASSERT_OK(db_->Merge(WriteOptions(), "k", "short"));
    ASSERT_OK(Flush());
    std::string got;
    EnableCallBack("CompactionMapping::Settle", [&](void*) { got = Get("k"); });
    Compact();
    DisableCallBacks();
    EXPECT_EQ(got, "short");
    EXPECT_EQ(Get("k"), "short");
    EXPECT_EQ(Blobs()->map()->NumEntries(), 0);
  }
}

// After the release of the last snapshot the files are compacted to benefit
// from it, but not endlessly.
TEST_F(DBAddressMapTest, NoEndlessCompactions) {
  Options options = MapOptions();
  options.disable_auto_compactions = false;
  options.num_levels = 3;
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", "a"));
  const Snapshot* const first = db_->GetSnapshot();
  ASSERT_OK(db_->Merge(WriteOptions(), "k", "b"));
  ASSERT_OK(Put("l", "x"));
  ASSERT_OK(Flush());
  Compact();
  const Snapshot* const second = db_->GetSnapshot();
  ASSERT_OK(Put("k", "c"));
  ASSERT_OK(Flush());
  db_->ReleaseSnapshot(first);
  db_->ReleaseSnapshot(second);
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  WaitForJobs();
  iter.reset();
  ASSERT_OK(dbfull()->WaitForCompact(WaitForCompactOptions()));
  WaitForJobs();
  // Marking the files again finds no file that another compaction would change.
  const uint64_t before = Ticker(COMPACT_READ_BYTES);
  for (int i = 0; i < 5; ++i) {
    db_->ReleaseSnapshot(db_->GetSnapshot());
    iter.reset(db_->NewIterator(ReadOptions()));
    iter.reset();
    ASSERT_OK(dbfull()->WaitForCompact(WaitForCompactOptions()));
    WaitForJobs();
  }
  EXPECT_EQ(Ticker(COMPACT_READ_BYTES), before);
  EXPECT_EQ(Get("k"), "c");
}

// ---- Files.

TEST_F(DBAddressMapTest, CheckpointAndBackupOpenWithTheSameValues) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
    if (i % 10 == 9) {
      ASSERT_OK(Flush());
    }
  }
  ASSERT_OK(Put(Key(0), Value(100)));
  const std::string checkpoint_dir = dbname_ + "_checkpoint";
  const std::string backup_dir = dbname_ + "_backup";
  const std::string restored_dir = dbname_ + "_restored";
  for (const std::string& dir : {checkpoint_dir, backup_dir, restored_dir}) {
    ASSERT_OK(DestroyDir(env_, dir));
  }
  Checkpoint* raw = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &raw));
  const std::unique_ptr<Checkpoint> checkpoint(raw);
  ASSERT_OK(checkpoint->CreateCheckpoint(checkpoint_dir));
  {
    BackupEngine* engine = nullptr;
    ASSERT_OK(
        BackupEngine::Open(env_, BackupEngineOptions(backup_dir), &engine));
    const std::unique_ptr<BackupEngine> owner(engine);
    ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
    ASSERT_OK(engine->VerifyBackup(1, /*verify_with_checksum=*/true));
    ASSERT_OK(engine->RestoreDBFromLatestBackup(restored_dir, restored_dir));
  }
  ExportImportFilesMetaData* exported = nullptr;
  EXPECT_TRUE(checkpoint
                  ->ExportColumnFamily(db_->DefaultColumnFamily(),
                                       dbname_ + "_export", &exported)
                  .IsNotSupported());
  for (const std::string& dir : {checkpoint_dir, restored_dir}) {
    for (const bool read_only : {true, false}) {
      std::unique_ptr<DB> db;
      ASSERT_OK(read_only ? DB::OpenForReadOnly(options, dir, &db)
                          : DB::Open(options, dir, &db));
      std::string value;
      for (int i = 0; i < 30; ++i) {
        ASSERT_OK(db->Get(ReadOptions(), Key(i), &value));
        EXPECT_EQ(value, Value(i == 0 ? 100 : i));
      }
      std::unique_ptr<Iterator> iter(db->NewIterator(ReadOptions()));
      size_t n = 0;
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        ++n;
      }
      ASSERT_OK(iter->status());
      EXPECT_EQ(n, 30);
    }
  }
  for (const std::string& dir : {checkpoint_dir, backup_dir, restored_dir}) {
    ASSERT_OK(DestroyDir(env_, dir));
  }
}

// A clean close saves the map in an image, which the next open loads and
// deletes. After an error no image is saved.
TEST_F(DBAddressMapTest, CleanCloseSavesTheMap) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  std::atomic<int> loaded{0};
  EnableCallBack("AddressMapCheckpoints::Load:Loaded",
                 [&](void*) { ++loaded; });
  Reopen(options);
  EXPECT_EQ(loaded, 1);
  EXPECT_EQ(Blobs()->map()->NumEntries(), 30);
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(dbname_, &names));
  for (const std::string& name : names) {
    EXPECT_EQ(name.find(".dbtmp"), std::string::npos) << name;
  }
  EXPECT_EQ(Get(Key(7)), Value(7));
  // A read-only open loads the image, too, and does not delete it.
  Close();
  ASSERT_OK(ReadOnlyReopen(options));
  EXPECT_EQ(loaded, 2);
  EXPECT_EQ(Get(Key(7)), Value(7));
  Close();
  Reopen(options);
  EXPECT_EQ(loaded, 3);
  // After an error the contents of the MANIFEST are unknown, so no image is
  // saved.
  ASSERT_OK(Put("k", Value(1)));
  SyncPoint::GetInstance()->SetCallBack(
      "FlushJob::WriteLevel0Table:s", [](void* status) {
        *static_cast<Status*>(status) = Status::IOError("injected");
      });
  EXPECT_NOK(Flush());
  SyncPoint::GetInstance()->ClearCallBack("FlushJob::WriteLevel0Table:s");
  Reopen(options);
  EXPECT_EQ(loaded, 3);
  EXPECT_EQ(Get("k"), Value(1));
  DisableCallBacks();
}

// The image of an earlier state of the database is not loaded.
TEST_F(DBAddressMapTest, ImageOfAnEarlierStateIsNotUsed) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  Close();
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(dbname_, &names));
  std::string image_path;
  for (const std::string& name : names) {
    if (name.find(".dbtmp") != std::string::npos) {
      EXPECT_TRUE(image_path.empty()) << name;
      image_path = dbname_ + "/" + name;
    }
  }
  ASSERT_FALSE(image_path.empty());
  std::string image;
  ASSERT_OK(ReadFileToString(env_, image_path, &image));
  std::atomic<int> loaded{0};
  EnableCallBack("AddressMapCheckpoints::Load:Loaded",
                 [&](void*) { ++loaded; });
  // The image matches. The next close saves no other one.
  options.save_blob_address_map = false;
  Reopen(options);
  EXPECT_EQ(loaded, 1);
  EXPECT_TRUE(env_->FileExists(image_path).IsNotFound());
  ASSERT_OK(Put(Key(7), Value(100)));
  ASSERT_OK(Flush());
  Close();
  ASSERT_OK(WriteStringToFile(env_, image, image_path));
  options.save_blob_address_map = true;
  for (int expected_loads : {1, 2}) {
    Reopen(options);
    EXPECT_EQ(loaded, expected_loads);
    for (int i = 0; i < 30; ++i) {
      EXPECT_EQ(Get(Key(i)), Value(i == 7 ? 100 : i));
    }
  }
  DisableCallBacks();
}

// A compaction into a level whose values lie on another path moves the values.
// Readers of the old files find them, even if the compaction fails.
TEST_F(DBAddressMapTest, CompactionMovesValuesToAnotherTier) {
  for (const bool versioned : {false, true}) {
    Options options = MapOptions();
    options.num_levels = 3;
    options.cf_paths = {{dbname_ + "/fast", 0}, {dbname_ + "/slow", 0}};
    options.level_blob_path_ids = {0, 1};
    options.enable_lsm_bypass = !versioned;
    DestroyAndReopen(options);
    const auto paths = [&] {
      std::set<std::string> result;
      ColumnFamilyMetaData metadata;
      db_->GetColumnFamilyMetaData(&metadata);
      for (const BlobMetaData& file : metadata.blob_files) {
        result.insert(
            file.blob_file_path.substr(file.blob_file_path.rfind('/') + 1));
      }
      return result;
    };
    const auto check = [&](ReadOptions read_options, int add) {
      std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      int i = 0;
      for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++i) {
        EXPECT_EQ(iter->key(), Key(i));
        EXPECT_EQ(iter->value(), Value(i + add));
        std::string value;
        ASSERT_OK(db_->Get(read_options, Key(i), &value));
        EXPECT_EQ(value, Value(i + add));
      }
      ASSERT_OK(iter->status());
      EXPECT_EQ(i, 20);
    };
    for (int i = 0; i < 20; ++i) {
      ASSERT_OK(Put(Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
    EXPECT_EQ(paths(), std::set<std::string>{"fast"});
    EXPECT_EQ(IsDirect(Key(3)), !versioned);

    // The compaction fails, and nothing has changed.
    env_->manifest_write_error_.store(true, std::memory_order_release);
    EXPECT_NOK(ForceCompaction());
    env_->manifest_write_error_.store(false, std::memory_order_release);
    check(ReadOptions(), 0);
    EXPECT_EQ(Blobs()->map()->NumEntries(), 20);
    Reopen(options);
    check(ReadOptions(), 0);

    // An old iterator reads the values under their old names.
    std::unique_ptr<Iterator> old_iter(db_->NewIterator(ReadOptions()));
    old_iter->SeekToFirst();
    ASSERT_TRUE(old_iter->Valid());
    ASSERT_OK(ForceCompaction());
    check(ReadOptions(), 0);
    int n = 0;
    for (; old_iter->Valid(); old_iter->Next(), ++n) {
      EXPECT_EQ(old_iter->value(), Value(n));
    }
    ASSERT_OK(old_iter->status());
    EXPECT_EQ(n, 20);
    for (old_iter->SeekToLast(); old_iter->Valid(); old_iter->Prev()) {
      --n;
      EXPECT_EQ(old_iter->value(), Value(n));
    }
    EXPECT_EQ(n, 0);
    old_iter.reset();
    WaitForJobs();
    EXPECT_EQ(paths(), std::set<std::string>{"slow"});
    EXPECT_EQ(Blobs()->map()->NumEntries(), 20);
    EXPECT_OK(Blobs()->map()->TEST_Check());
    EXPECT_EQ(IsDirect(Key(3)), !versioned);

    // New values are written to the fast path, and values that are not
    // rewritten stay.
    const Snapshot* const snapshot = db_->GetSnapshot();
    for (int i = 0; i < 20; i += 2) {
      ASSERT_OK(Put(Key(i), Value(i + 100)));
    }
    ASSERT_OK(Flush());
    EXPECT_EQ(paths(), (std::set<std::string>{"fast", "slow"}));
    ASSERT_OK(ForceCompaction());
    WaitForJobs();
    EXPECT_EQ(paths(), std::set<std::string>{"slow"});
    ReadOptions at_snapshot;
    at_snapshot.snapshot = snapshot;
    check(at_snapshot, 0);
    db_->ReleaseSnapshot(snapshot);
    Compact();
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(Get(Key(i)), Value(i % 2 == 0 ? i + 100 : i));
      }
      EXPECT_EQ(Blobs()->map()->NumEntries(), 20);
      EXPECT_TRUE(Verify(/*read_values=*/true, 20).empty());
      Reopen(options);
    }
  }
}

// The file numbers of images were allocated, so that the next open does not
// skip numbers, and they belong to no live file, so that obsolete images are
// deleted.
TEST_F(DBAddressMapTest, ImagesHaveUnusedFileNumbers) {
  constexpr int kFamilies = 30;
  Options options = MapOptions();
  options.blob_file_size = 1000;
  DestroyAndReopen(options);
  std::vector<std::string> names;
  for (int i = 1; i < kFamilies; ++i) {
    names.push_back("family" + std::to_string(i));
  }
  CreateAndReopenWithCF(names, options);
  names.insert(names.begin(), kDefaultColumnFamilyName);
  const auto check = [&] {
    for (int cf = 0; cf < kFamilies; ++cf) {
      for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(Get(cf, Key(i)), Value(100 * cf + i)) << cf;
      }
    }
  };
  const auto images = [&] {
    std::vector<std::string> files;
    EXPECT_OK(env_->GetChildren(dbname_, &files));
    size_t n = 0;
    for (const std::string& file : files) {
      uint64_t number = 0;
      FileType type;
      if (ParseFileName(file, &number, &type) && type == kTempFile) {
        EXPECT_LT(number, 10000) << file;
        ++n;
      }
    }
    return n;
  };
  for (int cf = 0; cf < kFamilies; ++cf) {
    for (int i = 0; i < 5; ++i) {
      ASSERT_OK(Put(cf, Key(i), Value(100 * cf + i)));
    }
    ASSERT_OK(Flush(cf));
  }
  for (int round = 0; round < 3; ++round) {
    Close();
    EXPECT_EQ(images(), kFamilies);
    ReopenWithColumnFamilies(names, options);
    EXPECT_EQ(images(), 0);
    check();
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_OK(Put(round, "more", Value(round)));
    ASSERT_OK(Flush(round));
  }
}

TEST_F(DBAddressMapTest, LostValueFailsTheOpenOrItsReads) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("b", Value(2)));
  ASSERT_OK(Flush());
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  ASSERT_EQ(metadata.blob_files.size(), 2);
  // Another file's contents replace the file with the record of b.
  const std::string first =
      dbname_ + "/" + metadata.blob_files[0].blob_file_name;
  const std::string second =
      dbname_ + "/" + metadata.blob_files[1].blob_file_name;
  Close();
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, first, &contents));
  ASSERT_OK(WriteStringToFile(env_, contents, second, /*should_sync=*/true));
  // Deletes the images, so that the open reads the files.
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(dbname_, &names));
  for (const std::string& name : names) {
    if (name.find(".dbtmp") != std::string::npos) {
      ASSERT_OK(env_->DeleteFile(dbname_ + "/" + name));
    }
  }
  Status s = TryReopen(options);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find(Slice("b").ToString(/*hex=*/true)),
            std::string::npos)
      << s.ToString();
  options.paranoid_checks = false;
  Reopen(options);
  EXPECT_EQ(Get("a"), Value(1));
  std::string value;
  EXPECT_TRUE(db_->Get(ReadOptions(), "b", &value).IsCorruption());
  const std::vector<std::string> lines = Verify(/*read_values=*/false, 2);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_NE(lines[0].find(Slice("b").ToString(/*hex=*/true)), std::string::npos)
      << lines[0];
}

TEST_F(DBAddressMapTest, VerifierFindsADamagedValue) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  EXPECT_EQ(Verify(/*read_values=*/true, 10), std::vector<std::string>());
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  const std::string name = metadata.blob_files[0].blob_file_name;
  Close();
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, dbname_ + "/" + name, &contents));
  const size_t at = contents.find(Value(6));
  ASSERT_NE(at, std::string::npos);
  contents[at + 5] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, contents, dbname_ + "/" + name,
                              /*should_sync=*/true));
  Reopen(options);
  EXPECT_EQ(Verify(/*read_values=*/false, 10), std::vector<std::string>());
  const std::vector<std::string> lines = Verify(/*read_values=*/true, 10);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_NE(lines[0].find(Slice(Key(6)).ToString(/*hex=*/true)),
            std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find(name.substr(name.find_first_of("123456789"))),
            std::string::npos)
      << lines[0];
  EXPECT_EQ(Get(Key(5)), Value(5));
}

TEST_F(DBAddressMapTest, IncompatibleOptionsAreRefused) {
  const auto refused = [this](const std::function<void(Options*)>& change) {
    Options options = MapOptions();
    change(&options);
    Destroy(options);
    const Status s = TryReopen(options);
    EXPECT_TRUE(s.IsNotSupported() || s.IsInvalidArgument()) << s.ToString();
    EXPECT_NE(s.ToString().find("enable_blob_address_map"), std::string::npos)
        << s.ToString();
  };
  refused([](Options* o) { o->enable_blob_files = false; });
  refused([](Options* o) { o->enable_blob_garbage_collection = true; });
  refused([](Options* o) {
    o->inplace_update_support = true;
    o->allow_concurrent_memtable_write = false;
  });
  refused([](Options* o) { o->experimental_mempurge_threshold = 1; });
  refused([](Options* o) {
    o->compaction_style = kCompactionStyleFIFO;
    o->max_open_files = -1;
  });
  refused([](Options* o) { o->allow_ingest_behind = true; });
  refused([](Options* o) {
    o->comparator = test::BytewiseComparatorWithU64TsWrapper();
  });
  // If the map has values, some options are refused even without the option.
  Options options = MapOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  options.enable_blob_address_map = false;
  options.compaction_style = kCompactionStyleFIFO;
  options.max_open_files = -1;
  const Status s = TryReopen(options);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  // Secondary instances have no map.
  options = MapOptions();
  Reopen(options);
  std::unique_ptr<DB> secondary;
  options.max_open_files = -1;
  EXPECT_TRUE(
      DB::OpenAsSecondary(options, dbname_, dbname_ + "_secondary", &secondary)
          .IsNotSupported());
  options.enable_blob_address_map = false;
  EXPECT_TRUE(
      DB::OpenAsSecondary(options, dbname_, dbname_ + "_secondary", &secondary)
          .IsNotSupported());
}

TEST_F(DBAddressMapTest, PropertiesCountEntriesAndGarbage) {
  Options options = MapOptions();
  options.enable_blob_address_map = false;
  DestroyAndReopen(options);
  std::string text;
  uint64_t number = 1;
  EXPECT_FALSE(db_->GetProperty(DB::Properties::kBlobAddressMap, &text));
  EXPECT_TRUE(
      db_->GetIntProperty(DB::Properties::kBlobAddressMapEntries, &number));
  EXPECT_EQ(number, 0);
  Reopen(MapOptions());
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  WaitForJobs();  // a flush settles after Flush() has returned
  EXPECT_TRUE(
      db_->GetIntProperty(DB::Properties::kBlobAddressMapEntries, &number));
  EXPECT_EQ(number, 10);
  EXPECT_TRUE(
      db_->GetIntProperty(DB::Properties::kBlobAddressMapMemory, &number));
  EXPECT_GT(number, 0);
  std::map<std::string, std::string> values;
  EXPECT_TRUE(db_->GetMapProperty(DB::Properties::kBlobAddressMap, &values));
  EXPECT_EQ(values["entries"], "10");
  EXPECT_EQ(values["files"], "1");
  EXPECT_EQ(Ticker(BLOB_MAP_DIRECT_WRITTEN), 10);
  // Records that the map does not name are garbage.
  EXPECT_TRUE(
      db_->GetIntProperty(DB::Properties::kLiveBlobFileGarbageSize, &number));
  EXPECT_EQ(number, 0);
  ASSERT_OK(Delete(Key(3)));
  ASSERT_OK(Flush());
  WaitForJobs();  // a flush settles after Flush() has returned
  EXPECT_TRUE(
      db_->GetIntProperty(DB::Properties::kLiveBlobFileGarbageSize, &number));
  EXPECT_GT(number, Value(3).size());
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  ASSERT_EQ(metadata.blob_files.size(), 1);
  EXPECT_EQ(metadata.blob_files[0].total_blob_count, 10);
  EXPECT_EQ(metadata.blob_files[0].garbage_blob_count, 1);
  EXPECT_EQ(metadata.blob_files[0].garbage_blob_bytes, number);
  uint64_t live = 0;
  EXPECT_TRUE(
      db_->GetIntProperty(DB::Properties::kEstimateLiveDataSize, &live));
  EXPECT_EQ(live + number,
            static_cast<ColumnFamilyHandleImpl*>(db_->DefaultColumnFamily())
                ->cfd()
                ->current()
                ->storage_info()
                ->EstimateLiveDataSize());
  EXPECT_EQ(Ticker(BLOB_MAP_FILES_DROPPED), 0);
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  WaitForJobs();  // a flush settles after Flush() has returned
  EXPECT_EQ(Ticker(BLOB_MAP_FILES_DROPPED), 1);
}

// Files of level 0 that wait for more files of their size do not count as
// compaction debt. Otherwise writes would stop forever, because no compaction
// is due.
TEST_F(DBAddressMapTest, WaitingLevel0FilesAreNoCompactionDebt) {
  Options options = MapOptions();
  options.disable_auto_compactions = false;
  options.level0_file_num_compaction_trigger = 4;
  options.soft_pending_compaction_bytes_limit = 1;
  options.hard_pending_compaction_bytes_limit = 1;
  DestroyAndReopen(options);
  const auto fill = [&](int num_keys) {
    for (int i = 0; i < num_keys; ++i) {
      ASSERT_OK(Put(Key(i), "value"));
    }
    ASSERT_OK(Flush());
  };
  fill(10000);
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  for (const int num_keys : {2000, 400, 80, 8}) {
    fill(num_keys);
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  ASSERT_EQ(NumTableFilesAtLevel(0), 4);
  uint64_t value = 0;
  ASSERT_TRUE(db_->GetIntProperty(
      DB::Properties::kEstimatePendingCompactionBytes, &value));
  EXPECT_EQ(value, 0);
  ASSERT_TRUE(db_->GetIntProperty(DB::Properties::kIsWriteStopped, &value));
  EXPECT_EQ(value, 0);
  // A merge that is due is done.
  for (int i = 0; i < 3; ++i) {
    fill(8);
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(NumTableFilesAtLevel(0), 4);
}

// While flushes and compactions run under several options, readers never see a
// version of a key that is older than the one before they began.
TEST_F(DBAddressMapTest, ReadsUnderLoadAreNeverOutdated) {
  constexpr int kKeys = 200;
  for (int variant = 0; variant < 4; ++variant) {
    SCOPED_TRACE(variant);
    Options options = MapOptions();
    options.disable_auto_compactions = false;
    options.write_buffer_size = 64 << 10;
    options.level0_file_num_compaction_trigger = 2;
    options.target_file_size_base = 4 << 10;
    options.max_bytes_for_level_base = 16 << 10;
    options.blob_file_size = 16 << 10;
    options.max_background_jobs = 4;
    options.min_blob_size = variant == 1 ? 60 : 0;
    options.enable_lsm_bypass = variant != 2;
    if (variant == 3) {
      options.compaction_style = kCompactionStyleUniversal;
      options.row_cache = NewLRUCache(64 << 10);
    }
    DestroyAndReopen(options);
    // Each value contains the version of its key, and the versions of a key
    // increase. A reader never sees a version older than the one that existed
    // before the read began.
    std::vector<std::atomic<int>> written(kKeys);
    for (auto& w : written) {
      w = -1;
    }
    // The readers end when the last writer has ended, also if it has failed.
    std::atomic<int> num_writers{2};
    const auto version_of = [](const Slice& value) {
      return std::stoi(value.ToString());
    };
    const auto value_of = [](int key, int version) {
      return std::to_string(version) + " of " + std::to_string(key) +
             std::string((key * 7 + version) % 120, 'v');
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        const Defer end([&] { --num_writers; });
        Random rnd(100 + t);
        for (int n = 0; n < 6000; ++n) {
          const int key = static_cast<int>(rnd.Uniform(kKeys / 2)) * 2 + t;
          const int version = written[key] + 1;
          ASSERT_OK(db_->Put(WriteOptions(), Key(key), value_of(key, version)));
          written[key] = version;
          if (rnd.OneIn(1500)) {
            ASSERT_OK(db_->Flush(FlushOptions()));
          }
        }
      });
    }
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        Random rnd(200 + t);
        while (num_writers > 0) {
          if (t == 0) {
            const int key = static_cast<int>(rnd.Uniform(kKeys));
            const int before = written[key];
            PinnableSlice value;
            const Status s = db_->Get(ReadOptions(), db_->DefaultColumnFamily(),
                                      Key(key), &value);
            ASSERT_TRUE(s.ok() || (s.IsNotFound() && before < 0))
                << s.ToString();
            if (s.ok()) {
              ASSERT_GE(version_of(value), before);
              ASSERT_EQ(value, value_of(key, version_of(value)));
            }
          } else if (t == 1) {
            std::vector<std::string> names;
            std::vector<int> before;
            const int first = static_cast<int>(rnd.Uniform(kKeys - 20));
            std::vector<Slice> keys;
            for (int i = 0; i < 20; ++i) {
              names.push_back(Key(first + i));
              before.push_back(written[first + i]);
            }
            keys.assign(names.begin(), names.end());
            std::vector<PinnableSlice> values(20);
            std::vector<Status> statuses(20);
            db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), 20,
                          keys.data(), values.data(), statuses.data());
            for (int i = 0; i < 20; ++i) {
              ASSERT_TRUE(statuses[i].ok() ||
                          (statuses[i].IsNotFound() && before[i] < 0))
                  << statuses[i].ToString();
              if (statuses[i].ok()) {
                ASSERT_GE(version_of(values[i]), before[i]);
                ASSERT_EQ(values[i],
                          value_of(first + i, version_of(values[i])));
              }
            }
          } else {
            std::vector<int> before(kKeys);
            for (int i = 0; i < kKeys; ++i) {
              before[i] = written[i];
            }
            const Snapshot* const snapshot =
                rnd.OneIn(2) ? db_->GetSnapshot() : nullptr;
            ReadOptions read_options;
            read_options.snapshot = snapshot;
            std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
            if (rnd.OneIn(2) && snapshot != nullptr) {
              db_->ReleaseSnapshot(snapshot);
              read_options.snapshot = nullptr;
            }
            std::string once;
            for (int round = 0; round < 2; ++round) {
              std::string all;
              size_t n = 0;
              for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++n) {
                all += iter->key().ToString() + iter->value().ToString();
                const int key = std::stoi(iter->key().ToString().substr(3));
                ASSERT_GE(version_of(iter->value()), before[key]);
                ASSERT_EQ(iter->value(),
                          value_of(key, version_of(iter->value())));
              }
              ASSERT_OK(iter->status());
              ASSERT_TRUE(round == 0 || all == once);
              once = all;
            }
            iter.reset();
            if (read_options.snapshot != nullptr) {
              db_->ReleaseSnapshot(snapshot);
            }
          }
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < kKeys; ++i) {
        EXPECT_EQ(Get(Key(i)),
                  written[i] < 0 ? "NOT_FOUND" : value_of(i, written[i]));
      }
      Reopen(options);
    }
    ASSERT_OK(Flush());
    Compact();
    EXPECT_OK(Blobs()->map()->TEST_Check());
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
