//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with enable_blob_address_map, used through the public interface:
// lookups, also beside jobs, properties and options.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_v2/blob_read_group.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/perf_level.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/secondary_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "util/defer.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapTest : public AddressMapDBTestBase {
 public:
  DBAddressMapTest() : AddressMapDBTestBase("db_address_map_test") {}
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
  EXPECT_EQ(MappedStats().lsm_ceiling, 0);
  EXPECT_EQ(MappedStats().num_mapped, 100);
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
  EXPECT_EQ(MappedStats().lsm_ceiling, 0);
  EXPECT_EQ(Get("k"), Value(2));
}

// Both versions were in the same memtable, so neither was in the map when the
// flush looked for what the newer one hides.
TEST_F(DBAddressMapTest, VersionOfTheSameFlushLeavesTheMapAfterItsSnapshot) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  WaitForJobs();
  CheckMap(2);
  db_->ReleaseSnapshot(snapshot);
  WaitForJobs();
  CheckMap(1);
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
        *static_cast<uint64_t*>(micros) = ReadAheadGauge::kCachedMicros + 1;
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

// ---- The row cache.

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

// ---- Options and properties.

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
  EXPECT_TRUE(TryReopen(options).IsNotSupported());
  // In RocksDB, timestamps that are not persisted can begin in an old database.
  options = MapOptions();
  options.enable_blob_address_map = false;
  options.comparator = test::BytewiseComparatorWithU64TsWrapper();
  options.persist_user_defined_timestamps = false;
  options.allow_concurrent_memtable_write = false;
  const Status s = TryReopen(options);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  EXPECT_NE(s.ToString().find("user-defined timestamps"), std::string::npos)
      << s.ToString();
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

// A secondary instance is refused by each MANIFEST with mapped values, also if
// they are in an atomic group, and goes on with the first MANIFEST without.
TEST_F(DBAddressMapTest, SecondaryGoesOnAfterTheLastMappedValue) {
  const std::vector<std::string> names = {kDefaultColumnFamilyName, "other"};
  for (const bool is_dropped : {false, true}) {
    SCOPED_TRACE(is_dropped);
    Options mapped = MapOptions();
    mapped.atomic_flush = true;
    Options plain = mapped;
    plain.enable_blob_address_map = false;
    const auto flush_both = [this](int i) {
      ASSERT_OK(Put(0, Key(i), Value(i)));
      ASSERT_OK(Put(1, Key(i), Value(i)));
      ASSERT_OK(Flush(std::vector<int>{0, 1}));
    };
    DestroyAndReopen(plain);
    CreateAndReopenWithCF({names[1]}, plain);
    ASSERT_NO_FATAL_FAILURE(flush_both(0));
    SecondaryDB secondary(dbname_);
    ASSERT_OK(secondary.Open(plain, names));

    // In the second case only one edit of each group is refused.
    ReopenWithColumnFamilies(
        names, std::vector<Options>{is_dropped ? plain : mapped, mapped});
    for (int i = 1; i < 3; ++i) {
      ASSERT_NO_FATAL_FAILURE(flush_both(i));
      WaitForJobs();
      const Status s = secondary.CatchUp();
      ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
      for (size_t family = 0; family < names.size(); ++family) {
        EXPECT_EQ(secondary.Get(family, Key(0)), Value(0));
        EXPECT_EQ(secondary.Get(family, Key(1)), "NOT_FOUND");
      }
    }

    if (is_dropped) {
      // The drop begins a new MANIFEST.
      ASSERT_OK(db_->DropColumnFamily(handles_[1]));
    } else {
      ReopenWithColumnFamilies(names, plain);
      Compact(0);
      Compact(1);
      ReopenWithColumnFamilies(names, plain);
    }
    ASSERT_OK(secondary.CatchUp());
    EXPECT_EQ(FamilyOf(secondary.Handle(1))->IsDropped(), is_dropped);
    ASSERT_OK(Put(0, Key(3), Value(3)));
    ASSERT_OK(Flush(0));
    ASSERT_OK(secondary.CatchUp());
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(secondary.Get(0, Key(i)), Value(i));
    }
    for (int i = 0; i < 3 && !is_dropped; ++i) {
      EXPECT_EQ(secondary.Get(1, Key(i)), Value(i));
    }
  }
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

TEST_F(DBAddressMapTest, FilesThatJobsHoldArePinned) {
  DestroyAndReopen(MapOptions());
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
    ASSERT_OK(Flush());
  }
  WaitForJobs();  // a flush settles after Flush() has returned
  const auto num_pinned = [this] {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(db_->GetMapProperty(DB::Properties::kBlobAddressMap, &values));
    return values["pinned-files"];
  };
  EXPECT_EQ(num_pinned(), "0");
  {
    const AddressMapStore::FilePin pin(Blobs(),
                                       BlobFiles().front().blob_file_number);
    ASSERT_TRUE(pin.pinned());
    EXPECT_EQ(num_pinned(), "1");
  }
  EXPECT_EQ(num_pinned(), "0");
}

// ---- Reads under load.

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
