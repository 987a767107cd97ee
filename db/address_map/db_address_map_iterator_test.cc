//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Iterators of databases with enable_blob_address_map, beside jobs.

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "db/address_map/address_map_store.h"
#include "db/db_impl/db_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/write_batch.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapIteratorTest : public AddressMapDBTestBase {
 public:
  DBAddressMapIteratorTest()
      : AddressMapDBTestBase("db_address_map_iterator_test") {}
};

TEST_F(DBAddressMapIteratorTest, IteratorsKeepTheirViewBesideJobs) {
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
    EXPECT_EQ(MappedStats().lsm_ceiling, 0);
  }
}

TEST_F(DBAddressMapIteratorTest, RefreshShowsWritesOfTheSameSuperVersion) {
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

TEST_F(DBAddressMapIteratorTest, IteratorsMergeOperandsWithMappedBases) {
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

TEST_F(DBAddressMapIteratorTest, TailingIteratorContinuesBesideJobs) {
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
TEST_F(DBAddressMapIteratorTest, IteratorMayEndBeforeItsReads) {
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
TEST_F(DBAddressMapIteratorTest, InvalidBlobIndexIsCorruption) {
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

// With a table filter a reader sees entries that are hidden by entries of the
// tables that it skips. Their values may have been freed, so the iterator skips
// them.
TEST_F(DBAddressMapIteratorTest, TableFilterDoesNotShowFreedValues) {
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
TEST_F(DBAddressMapIteratorTest, ScansStartNoJobs) {
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
TEST_F(DBAddressMapIteratorTest, ValuesKeptForAnIteratorGoWithIt) {
  Options options = MapOptions();
  options.disable_auto_compactions = false;
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  Compact();
  EXPECT_GT(MappedStats().lsm_ceiling, 0);
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
  EXPECT_EQ(MappedStats().lsm_ceiling, 0);
  EXPECT_EQ(Get("k"), Value(2));
}

// When a snapshot is released, the values that only it has kept are removed
// from the map, and those that an iterator sees are not.
TEST_F(DBAddressMapIteratorTest, RemovalsSpareWhatAnIteratorSees) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Put("l", Value(1)));
  ASSERT_OK(Flush());
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  ASSERT_OK(Put("l", Value(2)));
  ASSERT_OK(Flush());
  WaitForJobs();
  CheckMap(4);
  db_->ReleaseSnapshot(snapshot);
  WaitForJobs();
  CheckMap(3);
  EXPECT_EQ(Scan(iter.get()), "k=" + Value(2) + ";l=" + Value(1) + ";");
}

// An iterator begins while a job that removes values from the map asks for the
// oldest reader. A write and its flush follow before the job removes anything.
// The iterator keeps the value that was overwritten.
TEST_F(DBAddressMapIteratorTest, IteratorThatBeginsDuringRemovalsIsRespected) {
  Options options = MapOptions();
  // The flush and the removals are jobs of the same pool.
  options.max_background_flushes = 2;
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Put("l", Value(1)));
  ASSERT_OK(Flush());
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  WaitForJobs();
  CheckMap(3);
  // The thread has the current SuperVersion then, and needs no mutex.
  EXPECT_EQ(Get("k"), Value(2));
  EventCount asked;
  EventCount written;
  EventCount removes;
  EventCount flushed;
  EnableCallBackOnce("DBStrata::EarliestReader:BetweenReads", [&](void*) {
    asked.Add();
    EXPECT_TRUE(written.WaitFor(1));
  });
  EnableCallBackOnce("DBStrata::BackgroundMapRemovals::RunFor:BeforeRemoval",
                     [&](void*) {
                       removes.Add();
                       EXPECT_TRUE(flushed.WaitFor(1));
                     });
  db_->ReleaseSnapshot(snapshot);
  EXPECT_TRUE(asked.WaitFor(1));
  const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  EXPECT_OK(Put("l", Value(2)));
  written.Add();
  EXPECT_TRUE(removes.WaitFor(1));
  EXPECT_OK(Flush());
  flushed.Add();
  WaitForJobs();
  DisableCallBacks();
  EXPECT_EQ(Scan(iter.get()), "k=" + Value(2) + ";l=" + Value(1) + ";");
  CheckMap(3);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
