//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of the merged-value cache in whole databases: reads return the same
// with the cache as without it.

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/merge_context.h"
#include "db/merged_value/merged_value_cache.h"
#include "db/merged_value/merged_value_read.h"
#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/utilities/write_batch_with_index.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/compaction_worker_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "util/random.h"
#include "utilities/fault_injection_fs.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class DBMergedValueTest : public StrataDBTestBase {
 public:
  using Model = Contents;

  DBMergedValueTest() : StrataDBTestBase("db_merged_value_test") {}

  Options CacheOptions() {
    Options options = CurrentOptions();
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.enable_merged_value_cache = true;
    options.merged_value_cache_size = size_t{4} << 20;
    options.disable_auto_compactions = true;
    options.num_levels = 4;
    options.statistics = CreateDBStatistics();
    return options;
  }

  MergedValueCache* Cache() { return Family()->merged_values(); }
  uint64_t Hits() { return Ticker(MERGED_VALUE_CACHE_HIT); }
  uint64_t Added() { return Ticker(MERGED_VALUE_CACHE_ADD); }

  void MergeMany(const std::string& key, const std::vector<std::string>& all) {
    for (const std::string& operand : all) {
      ASSERT_OK(Merge(key, operand));
    }
  }
  std::string FileOf(const Model& contents) {
    const std::string name = dbname_ + "/ingested" + std::to_string(++files_);
    SstFileWriter writer(EnvOptions(), last_options_);
    EXPECT_OK(writer.Open(name));
    for (const auto& [key, value] : contents) {
      EXPECT_OK(writer.Put(key, value));
    }
    EXPECT_OK(writer.Finish());
    return name;
  }
  void Ingest(const Model& contents) {
    ASSERT_OK(db_->IngestExternalFile({FileOf(contents)},
                                      IngestExternalFileOptions()));
  }

 private:
  int files_ = 0;
};

TEST_F(DBMergedValueTest, ReadsFillAndUseTheCache) {
  DestroyAndReopen(CacheOptions());
  ASSERT_OK(Put("k", "a"));
  EXPECT_EQ(Get("k"), "a");
  EXPECT_EQ(Added(), 0);  // nothing was merged
  MergeMany("k", {"b", "c"});
  EXPECT_EQ(Get("k"), "a,b,c");
  EXPECT_EQ(Added(), 1);
  EXPECT_EQ(Hits(), 0);
  EXPECT_EQ(Get("k"), "a,b,c");
  EXPECT_EQ(Hits(), 1);
  ASSERT_OK(Merge("k", "d"));
  EXPECT_EQ(Get("k"), "a,b,c,d");
  EXPECT_EQ(Hits(), 2);
  EXPECT_EQ(Added(), 1);  // a single operand is not worth a new entry
  MergeMany("k", {"e", "f", "g"});
  EXPECT_EQ(Get("k"), "a,b,c,d,e,f,g");
  EXPECT_EQ(Added(), 2);
  get_perf_context()->Reset();
  SetPerfLevel(PerfLevel::kEnableCount);
  EXPECT_EQ(Get("k"), "a,b,c,d,e,f,g");
  EXPECT_EQ(get_perf_context()->internal_merge_point_lookup_count, 0);
  SetPerfLevel(PerfLevel::kDisable);
  EXPECT_EQ(Hits(), 4);
  // No read has extended the frontier since the memtable was switched, but the
  // sequence number of the entry is the newest one of the key.
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "a,b,c,d,e,f,g");
  EXPECT_EQ(Hits(), 5);
  ASSERT_OK(Put("k", "x"));
  EXPECT_EQ(Get("k"), "x");
  ASSERT_OK(Merge("k", "y"));
  EXPECT_EQ(Get("k"), "x,y");
  ASSERT_OK(Delete("k"));
  EXPECT_EQ(Get("k"), "NOT_FOUND");
  ASSERT_OK(Merge("k", "z"));
  EXPECT_EQ(Get("k"), "z");
  EXPECT_EQ(Hits(), 5);
  EXPECT_GT(Cache()->GetStats().entries, 0);
  std::map<std::string, std::string> values;
  ASSERT_TRUE(db_->GetMapProperty(DB::Properties::kMergedValueCache, &values));
  EXPECT_EQ(values["entries"], std::to_string(Cache()->GetStats().entries));
  EXPECT_EQ(values["generation"], "0");
  std::string text;
  ASSERT_TRUE(db_->GetProperty(DB::Properties::kMergedValueCache, &text));
  EXPECT_NE(text.find("capacity: 4194304\n"), std::string::npos) << text;
}

// A read that finds a value counts as a hit or as stale, also if a memtable has
// an entry that hides the value.
TEST_F(DBMergedValueTest, EachReadThatAsksTheCacheIsCountedOnce) {
  DestroyAndReopen(CacheOptions());
  struct Counts {
    uint64_t hits;
    uint64_t misses;
    uint64_t stale;
    bool operator==(const Counts&) const = default;
  };
  const auto read = [&](const std::string& key, const std::string& expected) {
    const Counts before{Hits(), Ticker(MERGED_VALUE_CACHE_MISS),
                        Ticker(MERGED_VALUE_CACHE_STALE)};
    EXPECT_EQ(Get(key), expected);
    return Counts{Hits() - before.hits,
                  Ticker(MERGED_VALUE_CACHE_MISS) - before.misses,
                  Ticker(MERGED_VALUE_CACHE_STALE) - before.stale};
  };
  const Counts hit{1, 0, 0};
  const Counts miss{0, 1, 0};
  const Counts stale{0, 0, 1};
  const Counts none{0, 0, 0};
  for (const std::string key : {"a", "b", "c", "d"}) {
    MergeMany(key, {"1", "2"});
    EXPECT_TRUE(read(key, "1,2") == miss) << key;
    EXPECT_TRUE(read(key, "1,2") == hit) << key;
  }
  // A value below the newest operand.
  ASSERT_OK(Put("a", "3"));
  EXPECT_TRUE(read("a", "3") == none);  // no operand: the cache is not asked
  ASSERT_OK(Merge("a", "4"));
  EXPECT_TRUE(read("a", "3,4") == stale);
  // A deletion below the newest operand.
  ASSERT_OK(Delete("b"));
  ASSERT_OK(Merge("b", "3"));
  EXPECT_TRUE(read("b", "3") == stale);
  // A range deletion below the newest operand. Above all operands, it ends the
  // search before the cache is asked.
  ASSERT_OK(
      db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "c", "e"));
  ASSERT_OK(Merge("c", "3"));
  EXPECT_TRUE(read("c", "3") == stale);
  EXPECT_TRUE(read("d", "NOT_FOUND") == none);
  // A range deletion in a memtable, the operands in a file.
  MergeMany("e", {"1", "2"});
  ASSERT_OK(Flush());
  EXPECT_TRUE(read("e", "1,2") == miss);
  EXPECT_TRUE(read("e", "1,2") == hit);
  ASSERT_OK(
      db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "e", "f"));
  EXPECT_TRUE(read("e", "NOT_FOUND") == stale);
}

// The second read merges nothing, however many operands the key has.
TEST_F(DBMergedValueTest, LargeValueIsMergedOnce) {
  Options options = CacheOptions();
  DestroyAndReopen(options);
  constexpr int kOperands = 1000;
  const std::string operand(2000, 'v');
  const auto count_operands = [&] {
    get_perf_context()->Reset();
    SetPerfLevel(PerfLevel::kEnableCount);
    EXPECT_EQ(kOperands * 2001u - 1, Get("k").size());
    SetPerfLevel(PerfLevel::kDisable);
    return get_perf_context()->internal_merge_point_lookup_count;
  };
  for (int i = 0; i < kOperands; ++i) {
    ASSERT_OK(Merge("k", operand));
  }
  EXPECT_EQ(kOperands, count_operands());
  EXPECT_EQ(0, count_operands());
  ASSERT_OK(Flush());
  EXPECT_EQ(0, count_operands());

  // A value that is too large for the cache is counted, and the LOG has a
  // warning.
  options.merged_value_cache_size = 1 << 20;
  Reopen(options);
  EXPECT_LT(0, count_operands());
  EXPECT_LT(0, count_operands());
  std::map<std::string, std::string> values;
  ASSERT_TRUE(db_->GetMapProperty(DB::Properties::kMergedValueCache, &values));
  EXPECT_EQ("2", values["too-large"]);
  std::string log;
  ASSERT_OK(ReadFileToString(env_, dbname_ + "/LOG", &log));
  EXPECT_NE(std::string::npos, log.find("Increase merged_value_cache_size"));
}

TEST_F(DBMergedValueTest, ValueOfOperandsInFilesIsCached) {
  DestroyAndReopen(CacheOptions());
  MergeMany("k", {"a", "b"});
  ASSERT_OK(Flush());
  MergeMany("k", {"c", "d"});
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "a,b,c,d");
  EXPECT_EQ(Added(), 1);
  EXPECT_EQ(Get("k"), "a,b,c,d");
  EXPECT_EQ(Hits(), 1);
  ASSERT_OK(ForceCompaction());
  EXPECT_EQ(Get("k"), "a,b,c,d");
  EXPECT_EQ(Hits(), 2);
  ASSERT_OK(Merge("k", "e"));
  EXPECT_EQ(Get("k"), "a,b,c,d,e");
  EXPECT_EQ(Hits(), 3);
  // The flush carries the value over.
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "a,b,c,d,e");
  EXPECT_EQ(Hits(), 4);
  EXPECT_EQ(Ticker(MERGED_VALUE_CACHE_STALE), 0);
  // Keys without operands are read as usual.
  ASSERT_OK(Put("p", "v"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("p"), "v");
  EXPECT_EQ(Get("none"), "NOT_FOUND");
}

// A reader whose value became outdated by a flush before it was inserted does
// not make later reads wrong.
TEST_F(DBMergedValueTest, OutdatedInsertionIsNotUsed) {
  for (const bool compact : {false, true}) {
    DestroyAndReopen(CacheOptions());
    MergeMany("k", {"a", "b"});
    ASSERT_OK(Flush());
    std::atomic<bool> in_time{true};
    EnableCallBack("MergedValueRead::Fill", [&](void* /*arg*/) {
      if (in_time.exchange(false)) {
        std::thread([&] {
          ASSERT_OK(Merge("k", "c"));
          ASSERT_OK(Flush());
          if (compact) {
            ASSERT_OK(ForceCompaction());
          }
        }).join();
      }
    });
    EXPECT_EQ(Get("k"), "a,b");
    EXPECT_FALSE(in_time);
    EXPECT_EQ(Get("k"), "a,b,c");
    EXPECT_EQ(Get("k"), "a,b,c");
    DisableCallBacks();
  }
}

// A reader with an old SuperVersion, which still has the newest operands in its
// memtable, reads its own state while the cache holds values that other readers
// made with a newer SuperVersion.
TEST_F(DBMergedValueTest, OldSuperVersionDoesNotUseNewerValues) {
  DestroyAndReopen(CacheOptions());
  MergeMany("k", {"a", "b"});
  std::atomic<bool> is_first{true};
  EnableCallBack("DBImpl::GetImpl:AfterAcquireSv", [&](void* /*arg*/) {
    if (is_first.exchange(false)) {
      // The reader holds its
      // SuperVersion.
      std::thread([&] {
        ASSERT_OK(Flush());
        ASSERT_OK(ForceCompaction());
        ASSERT_OK(Merge("k", "c"));
        EXPECT_EQ(Get("k"), "a,b,c");
        ASSERT_OK(Merge("k", "d"));
        EXPECT_EQ(Get("k"), "a,b,c,d");
      }).join();
    }
  });
  EXPECT_EQ(Get("k"), "a,b");
  DisableCallBacks();
  EXPECT_EQ(Get("k"), "a,b,c,d");
}

// A cached value that includes entries newer than the reader's SuperVersion is
// not used. It would be correct for the key, but not consistent with other keys
// of a MultiGet.
TEST_F(DBMergedValueTest, UsesNothingNewerThanTheSuperVersion) {
  DestroyAndReopen(CacheOptions());
  MergeMany("k", {"a", "b"});
  ColumnFamilyData* const cfd =
      static_cast<ColumnFamilyHandleImpl*>(db_->DefaultColumnFamily())->cfd();
  SuperVersion* const old = cfd->GetReferencedSuperVersion(dbfull());
  ASSERT_OK(dbfull()->TEST_SwitchMemtable());
  MergeMany("k", {"c", "d"});
  EXPECT_EQ(Get("k"), "a,b,c,d");
  SuperVersion* const current = cfd->GetReferencedSuperVersion(dbfull());
  const SequenceNumber sequence = db_->GetLatestSequenceNumber();
  for (const bool is_old : {true, false}) {
    MergeContext merge_context;
    MergedValueRead read(cfd, is_old ? old : current, "k", sequence,
                         /*has_snapshot=*/false, /*fills=*/true,
                         &merge_context);
    Status s;
    std::string value;
    EXPECT_EQ(read.Finish(/*covering=*/0, &s, &value, /*columns=*/nullptr),
              !is_old);
    EXPECT_OK(s);
    EXPECT_EQ(value, is_old ? "" : "a,b,c,d");
  }
  dbfull()->CleanupSuperVersion(old);
  dbfull()->CleanupSuperVersion(current);
}

// The Version with an ingested file may be installed by another thread before
// the sequence number of its keys is visible to readers. A reader that does not
// see the file's keys does not cache a value that lacks them.
TEST_F(DBMergedValueTest, ValueBelowAnUnpublishedIngestionIsNotCached) {
  Options options = CacheOptions();
  options.max_background_jobs = 8;
  env_->SetBackgroundThreads(2, Env::HIGH);
  CreateAndReopenWithCF({"other"}, options);
  MergeMany("k", {"a", "b"});
  ASSERT_OK(Flush(0));
  ASSERT_OK(Put(0, "zz", "v"));
  ASSERT_OK(Put(1, "x", "v"));
  const std::string file = FileOf({{"k", "ingested"}});

  // While a flush of the other column family writes to the MANIFEST, another
  // flush and then the ingestion queue up, so that the second flush writes the
  // edits of both.
  std::atomic<bool> is_prepared{false};
  std::atomic<bool> is_writing{false};
  std::atomic<int> queued{0};
  std::atomic<bool> is_flushed{false};
  std::atomic<bool> was_read{false};
  const uint64_t deadline = env_->NowMicros() + 60 * 1000 * 1000;
  const auto wait_for = [&](const std::function<bool()>& condition) {
    while (!condition() && env_->NowMicros() < deadline) {
      env_->SleepForMicroseconds(100);
    }
    EXPECT_TRUE(condition()) << "The jobs did not overlap as planned";
  };
  SyncPoint::GetInstance()->SetCallBack("DBImpl::AddFile:Start",
                                        [&](void* /*arg*/) {
                                          is_prepared = true;
                                          wait_for([&] { return queued == 2; });
                                        });
  SyncPoint::GetInstance()->SetCallBack(
      "VersionSet::LogAndApply:BeforeWriterWaiting",
      [&](void* /*arg*/) { queued += is_prepared ? 1 : 0; });
  SyncPoint::GetInstance()->SetCallBack(
      "VersionSet::LogAndApply:WriteManifest", [&](void* /*arg*/) {
        if (is_prepared && !is_writing.exchange(true)) {
          wait_for([&] { return queued == 3; });
        }
      });
  SyncPoint::GetInstance()->SetCallBack(
      "VersionSet::LogAndApply:WakeUpAndDone", [&](void* arg) {
        // The ingestion wakes up after the flush has installed its Version.
        InstrumentedMutex* const mutex = static_cast<InstrumentedMutex*>(arg);
        mutex->Unlock();
        wait_for([&] { return is_flushed.load(); });
        std::thread([&] {
          EXPECT_EQ(FilesPerLevel(), "3");
          EXPECT_EQ(Get("k"), "a,b");
        }).join();
        was_read = true;
        mutex->Lock();
      });
  SyncPoint::GetInstance()->EnableProcessing();
  std::thread ingestion([&] {
    EXPECT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
  });
  wait_for([&] { return is_prepared.load(); });
  std::thread first([&] { EXPECT_OK(Flush(1)); });
  wait_for([&] { return is_writing.load(); });
  std::thread second([&] {
    EXPECT_OK(Flush(0));
    is_flushed = true;
  });
  ingestion.join();
  first.join();
  second.join();
  DisableCallBacks();
  EXPECT_TRUE(was_read);
  EXPECT_EQ(Added(), 0);
  EXPECT_EQ(Get("k"), "ingested");
  ASSERT_OK(Merge("k", "c"));
  EXPECT_EQ(Get("k"), "ingested,c");
}

namespace {

// Adds a column for each operand.
class ColumnsOperator : public MergeOperator {
 public:
  const char* Name() const override { return "ColumnsOperator"; }
  bool FullMergeV3(const MergeOperationInputV3& in,
                   MergeOperationOutputV3* out) const override {
    MergeOperationOutputV3::NewColumns columns;
    columns.emplace_back(kDefaultWideColumnName.ToString(),
                         std::to_string(in.operand_list.size()));
    for (const Slice& operand : in.operand_list) {
      columns.emplace_back(operand.ToString(), "v");
    }
    out->new_value = std::move(columns);
    return true;
  }
};

}  // namespace

TEST_F(DBMergedValueTest, ValuesWithColumnsAreNotCached) {
  Options options = CacheOptions();
  options.merge_operator = std::make_shared<ColumnsOperator>();
  DestroyAndReopen(options);
  MergeMany("k", {"a", "b"});
  for (const bool in_file : {false, true}) {
    if (in_file) {
      ASSERT_OK(Flush());
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Get("k"), "2");
      PinnableWideColumns columns;
      ASSERT_OK(db_->GetEntity(ReadOptions(), db_->DefaultColumnFamily(), "k",
                               &columns));
      const WideColumns expected{
          {kDefaultWideColumnName, "2"}, {"a", "v"}, {"b", "v"}};
      EXPECT_EQ(columns.columns(), expected);
    }
  }
  EXPECT_EQ(Added(), 0);
}

namespace {

// Replaces "bad" by "good" and removes "gone", in values and operands.
class ReplacingFilter : public CompactionFilter {
 public:
  const char* Name() const override { return "ReplacingFilter"; }
  Decision FilterV2(int /*level*/, const Slice& /*key*/, ValueType /*type*/,
                    const Slice& value, std::string* new_value,
                    std::string* /*skip_until*/) const override {
    if (!is_active) {
      return Decision::kKeep;
    }
    if (value == "bad") {
      *new_value = "good";
      return Decision::kChangeValue;
    }
    return value == "gone" ? Decision::kRemove : Decision::kKeep;
  }

  std::atomic<bool> is_active{false};
};

}  // namespace

TEST_F(DBMergedValueTest, CompactionFilterInvalidatesCachedValues) {
  Options options = CacheOptions();
  ReplacingFilter filter;
  options.compaction_filter = &filter;
  for (const bool in_base : {true, false}) {
    SCOPED_TRACE(in_base);
    filter.is_active = false;
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", in_base ? "bad" : "a"));
    ASSERT_OK(Flush());
    MoveFilesToLevel(1);
    ASSERT_OK(Merge("k", in_base ? "b" : "gone"));
    ASSERT_OK(Flush());
    const std::string before = in_base ? "bad,b" : "a,gone";
    EXPECT_EQ(Get("k"), before);
    EXPECT_EQ(Get("k"), before);
    EXPECT_GT(Hits(), 0);
    filter.is_active = true;
    if (in_base) {
      ASSERT_OK(dbfull()->TEST_CompactRange(1, nullptr, nullptr));
    } else {
      ASSERT_OK(ForceCompaction());
    }
    const std::string after = in_base ? "good,b" : "a";
    EXPECT_EQ(Get("k"), after);
    if (in_base) {
      // A compaction whose filter changes nothing does not invalidate the
      // value.
      EXPECT_EQ(Get("k"), after);
      const uint64_t hits = Hits();
      ASSERT_OK(dbfull()->TEST_CompactRange(1, nullptr, nullptr, nullptr,
                                            /*disallow_trivial_move=*/true));
      EXPECT_EQ(Get("k"), after);
      EXPECT_EQ(Hits(), hits + 1);
    }
    options.enable_merged_value_cache = false;
    Reopen(options);
    EXPECT_EQ(Get("k"), after);
    options.enable_merged_value_cache = true;
  }
}

// To free what is in a large cache takes seconds.
TEST_F(DBMergedValueTest, SmallerCapacityIsMadeWithoutTheDbMutex) {
  Options options = CacheOptions();
  options.enable_delta_separation = true;
  DestroyAndReopen(options);
  std::atomic<int> num_trims{0};
  std::atomic<bool> is_free{true};
  std::vector<std::thread> others;
  SyncPoint::GetInstance()->SetCallBack("SieveTable::Trim", [&](void*) {
    ++num_trims;
    const auto locked = std::make_shared<std::promise<void>>();
    others.emplace_back([this, locked] {
      dbfull()->TEST_LockMutex();
      dbfull()->TEST_UnlockMutex();
      locked->set_value();
    });
    if (locked->get_future().wait_for(std::chrono::seconds(10)) !=
        std::future_status::ready) {
      is_free = false;
    }
  });
  SyncPoint::GetInstance()->EnableProcessing();
  ASSERT_OK(db_->SetOptions(
      {{"merged_value_cache_size", "1000"}, {"delta_cache_size", "1000"}}));
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  for (std::thread& other : others) {
    other.join();
  }
  EXPECT_EQ(num_trims, 2);
  EXPECT_TRUE(is_free);
  EXPECT_EQ(Cache()->capacity(), 1000);
}

TEST_F(DBMergedValueTest, CapacityFollowsTheOptionAndIsCharged) {
  Options options = CacheOptions();
  DestroyAndReopen(options);
  EXPECT_EQ(Cache()->capacity(), options.merged_value_cache_size);
  ASSERT_OK(db_->SetOptions({{"merged_value_cache_size", "2000000"}}));
  EXPECT_EQ(Cache()->capacity(), 2000000);
  BlockBasedTableOptions table;
  table.block_cache = NewLRUCache(size_t{320} << 20);
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  options.merged_value_cache_size = 0;
  Reopen(options);
  EXPECT_EQ(Cache()->capacity(), size_t{20} << 20);
  EXPECT_GT(table.block_cache->GetPinnedUsage(), 0);
  Close();
  EXPECT_LT(table.block_cache->GetPinnedUsage(), size_t{256} << 10);
}

TEST_F(DBMergedValueTest, RefusesUnsupportedOptions) {
  const Options options = CacheOptions();
  const auto expect = [&](const Options& refused, bool is_argument,
                          const std::string& what) {
    const Status s = TryReopen(refused);
    EXPECT_EQ(s.IsInvalidArgument(), is_argument) << s.ToString();
    EXPECT_EQ(s.IsNotSupported(), !is_argument) << s.ToString();
    EXPECT_NE(s.ToString().find(what), std::string::npos) << s.ToString();
  };
  Options refused = options;
  refused.merge_operator = nullptr;
  expect(refused, true, "merge_operator");
  refused = options;
  refused.unordered_write = true;
  refused.allow_concurrent_memtable_write = true;
  expect(refused, false, "unordered_write");
  refused = options;
  refused.inplace_update_support = true;
  refused.allow_concurrent_memtable_write = false;
  expect(refused, false, "inplace_update_support");
  refused = options;
  refused.experimental_mempurge_threshold = 1.0;
  expect(refused, false, "mempurge");
  refused = options;
  refused.comparator = test::BytewiseComparatorWithU64TsWrapper();
  refused.merge_operator = options.merge_operator;
  expect(refused, false, "timestamps");
  Close();
  {
    TransactionDBOptions transaction_options;
    transaction_options.write_policy = WRITE_PREPARED;
    TransactionDB* db = nullptr;
    const Status s =
        TransactionDB::Open(options, transaction_options, dbname_, &db);
    ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
    EXPECT_NE(s.ToString().find("write-prepared"), std::string::npos);
    transaction_options.write_policy = WRITE_COMMITTED;
    ASSERT_OK(TransactionDB::Open(options, transaction_options, dbname_, &db));
    delete db;
  }
  {
    std::unique_ptr<DB> db;
    Options secondary = options;
    secondary.max_open_files = -1;
    const Status s =
        DB::OpenAsSecondary(secondary, dbname_, dbname_ + "/secondary", &db);
    ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
    EXPECT_NE(s.ToString().find("secondary"), std::string::npos);
  }
  Reopen(options);
}

// Imported files keep their sequence numbers, so a reader of an old snapshot
// sees some of them. The value that it reads does not become that of newer
// readers.
TEST_F(DBMergedValueTest, ReadsOfImportedFilesAreCorrect) {
  Options options = CacheOptions();
  CreateAndReopenWithCF({"from"}, options);
  ASSERT_OK(Merge(1, "k", "a"));
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(Put(1, "p", "v"));
  }
  ASSERT_OK(Flush(1));
  ASSERT_OK(Merge(1, "k", "b"));
  ASSERT_OK(Flush(1));
  std::unique_ptr<Checkpoint> checkpoint;
  {
    Checkpoint* made = nullptr;
    ASSERT_OK(Checkpoint::Create(db_.get(), &made));
    checkpoint.reset(made);
  }
  const std::string exported = dbname_ + "_exported";
  ASSERT_OK(DestroyDir(env_, exported));
  ExportImportFilesMetaData* files = nullptr;
  ASSERT_OK(checkpoint->ExportColumnFamily(handles_[1], exported, &files));
  const std::unique_ptr<ExportImportFilesMetaData> owned_files(files);

  const std::string other = dbname_ + "_other";
  ASSERT_OK(DestroyDB(other, options));
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, other, &db));
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(db->Put(WriteOptions(), "p", "v"));
  }
  ReadOptions at_snapshot;
  at_snapshot.snapshot = db->GetSnapshot();
  ColumnFamilyHandle* imported = nullptr;
  ASSERT_OK(db->CreateColumnFamilyWithImport(
      options, "imported", ImportColumnFamilyOptions(), *files, &imported));
  std::string value;
  ASSERT_OK(db->Get(at_snapshot, imported, "k", &value));
  EXPECT_EQ(value, "a");
  ASSERT_OK(db->Get(ReadOptions(), imported, "k", &value));
  EXPECT_EQ(value, "a,b");
  ASSERT_OK(db->Get(ReadOptions(), imported, "k", &value));
  EXPECT_EQ(value, "a,b");
  db->ReleaseSnapshot(at_snapshot.snapshot);
  ASSERT_OK(db->DestroyColumnFamilyHandle(imported));
  db.reset();
  ASSERT_OK(DestroyDB(other, options));
  ASSERT_OK(DestroyDir(env_, exported));
}

namespace {

class ReplacingFilterFactory : public CompactionFilterFactory {
 public:
  const char* Name() const override { return "ReplacingFilterFactory"; }
  // Returns true once, for a flush, after is_wanted was set.
  bool ShouldFilterTableFileCreation(
      TableFileCreationReason reason) const override {
    return reason == TableFileCreationReason::kFlush &&
           is_wanted.exchange(false);
  }
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& /*context*/) override {
    auto filter = std::make_unique<ReplacingFilter>();
    filter->is_active = true;
    return filter;
  }

  mutable std::atomic<bool> is_wanted{false};
};

}  // namespace

TEST_F(DBMergedValueTest, FilterOfAFlushInvalidatesOnlyIfItChanges) {
  Options options = CacheOptions();
  const auto factory = std::make_shared<ReplacingFilterFactory>();
  options.compaction_filter_factory = factory;
  DestroyAndReopen(options);
  for (const bool has_gone : {false, true}) {
    ASSERT_OK(Put("k", "a"));
    ASSERT_OK(Merge("k", has_gone ? "gone" : "x"));
    EXPECT_EQ(Get("k"), has_gone ? "a,gone" : "a,x");
    const uint64_t hits = Hits();
    factory->is_wanted = true;
    ASSERT_OK(Flush());
    EXPECT_FALSE(factory->is_wanted);
    EXPECT_EQ(Get("k"), has_gone ? "a" : "a,x");
    // The cached value is still used if the filter changed nothing.
    EXPECT_EQ(Hits(), hits + (has_gone ? 0 : 1));
    Reopen(options);
    EXPECT_EQ(Get("k"), has_gone ? "a" : "a,x");
  }
}

TEST_F(DBMergedValueTest, FifoDeletionInvalidatesCachedValues) {
  Options options = CacheOptions();
  options.compaction_style = kCompactionStyleFIFO;
  options.num_levels = 1;
  options.max_open_files = -1;
  options.compaction_options_fifo.max_table_files_size = uint64_t{1} << 30;
  DestroyAndReopen(options);
  ASSERT_OK(Merge("k", "a"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "b"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "a,b");
  EXPECT_EQ(Get("k"), "a,b");
  EXPECT_EQ(Hits(), 1);
  ASSERT_OK(db_->SetOptions(
      {{"compaction_options_fifo", "{max_table_files_size=1500;}"},
       {"disable_auto_compactions", "false"}}));
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_EQ(FilesPerLevel(), "1");
  EXPECT_EQ(Get("k"), "b");
}

// A base that DeleteFilesInRanges() has deleted is not in the value any more.
TEST_F(DBMergedValueTest, DeletionOfFilesInvalidatesCachedValues) {
  for (const bool with_map : {false, true}) {
    SCOPED_TRACE(with_map);
    Options options = CacheOptions();
    options.enable_blob_files = with_map;
    options.enable_blob_address_map = with_map;
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", "base"));
    ASSERT_OK(Flush());
    MoveFilesToLevel(1);
    ASSERT_OK(Merge("k", "m"));
    EXPECT_EQ(Get("k"), "base,m");
    EXPECT_EQ(Get("k"), "base,m");
    EXPECT_GT(Hits(), 0);
    const RangePtr all(nullptr, nullptr);
    ASSERT_OK(DeleteFilesInRanges(db_.get(), db_->DefaultColumnFamily(), &all,
                                  /*n=*/1));
    ASSERT_EQ(FilesPerLevel(), "");
    EXPECT_EQ(Get("k"), "m");
  }
}

// An anchor hides an operand from readers after the deletion of files, and an
// older snapshot still sees it. What the snapshot reads is not for others.
TEST_F(DBMergedValueTest, SnapshotBelowADeletionOfFilesFillsNothing) {
  Options options = CacheOptions();
  options.enable_delta_separation = true;
  DestroyAndReopen(options);
  // The cache has been in use.
  ASSERT_OK(Merge("a", "1"));
  EXPECT_EQ(Get("a"), "1");
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Flush());
  MoveFilesToLevel(2);
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Flush());
  const Snapshot* const snapshot = db_->GetSnapshot();
  // The anchor gets the sequence number of the newest operand of any key.
  ASSERT_OK(Merge("z", "2"));
  ASSERT_OK(Flush());
  const Slice from = "k";
  const Slice to = "l";
  ASSERT_OK(
      DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &from, &to));
  EXPECT_EQ(Get("k"), "NOT_FOUND");
  EXPECT_EQ(Get("k", snapshot), "1");
  EXPECT_EQ(Get("k"), "NOT_FOUND");
  EXPECT_EQ(MultiGet({"k"}).front(), "NOT_FOUND");
  ASSERT_OK(Merge("k", "3"));
  EXPECT_EQ(Get("k"), "3");
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "3");
  db_->ReleaseSnapshot(snapshot);
  EXPECT_EQ(Get("k"), "3");
}

TEST_F(DBMergedValueTest, RemoteCompactionKeepsCachedValues) {
  Options options = CacheOptions();
  const auto worker = std::make_shared<CompactionWorkerHere>(dbname_, options);
  options.compaction_service = worker;
  DestroyAndReopen(options);
  MergeMany("k", {"a", "b"});
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "c"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "a,b,c");
  ASSERT_OK(ForceCompaction());
  EXPECT_OK(worker->status);
  EXPECT_GT(worker->compactions, 0);
  EXPECT_EQ(Get("k"), "a,b,c");
  EXPECT_EQ(Hits(), 1);
  ASSERT_OK(Merge("k", "d"));
  EXPECT_EQ(Get("k"), "a,b,c,d");
}

// Reads are correct after the ingestion of a batch that becomes a memtable of
// its own.
TEST_F(DBMergedValueTest, ReadsOfIngestedBatchesAreCorrect) {
  DestroyAndReopen(CacheOptions());
  MergeMany("k", {"a", "b"});
  EXPECT_EQ(Get("k"), "a,b");
  std::string expected = "a,b";
  for (int round = 0; round < 6; ++round) {
    const auto batch = std::make_shared<WriteBatchWithIndex>(
        BytewiseComparator(), 0, /*overwrite_key=*/true);
    const std::string operand = "i" + std::to_string(round);
    if (round == 3) {
      ASSERT_OK(batch->Put("k", operand));
      expected = operand;
    } else {
      ASSERT_OK(batch->Merge("k", operand));
      expected += "," + operand;
    }
    WriteOptions write_options;
    write_options.disableWAL = true;
    ASSERT_OK(db_->IngestWriteBatchWithIndex(write_options, batch));
    EXPECT_EQ(Get("k"), expected);
    EXPECT_EQ(Get("k"), expected);
    if (round % 2 == 1) {
      ASSERT_OK(Merge("k", "m"));
      expected += ",m";
      EXPECT_EQ(Get("k"), expected);
    }
    if (round == 4) {
      ASSERT_OK(Flush());
      EXPECT_EQ(Get("k"), expected);
    }
  }
  EXPECT_GT(Hits(), 5);
}

TEST_F(DBMergedValueTest, ReadsWithoutFillCacheUseButDoNotFill) {
  DestroyAndReopen(CacheOptions());
  MergeMany("k", {"a", "b"});
  ReadOptions read_options;
  read_options.fill_cache = false;
  std::string value;
  ASSERT_OK(db_->Get(read_options, "k", &value));
  EXPECT_EQ(value, "a,b");
  std::vector<PinnableSlice> values(1);
  std::vector<Status> statuses(1);
  const Slice key("k");
  db_->MultiGet(read_options, db_->DefaultColumnFamily(), 1, &key,
                values.data(), statuses.data());
  ASSERT_OK(statuses[0]);
  EXPECT_EQ(Added(), 0);
  EXPECT_EQ(Get("k"), "a,b");
  EXPECT_EQ(Added(), 1);
  ASSERT_OK(db_->Get(read_options, "k", &value));
  EXPECT_EQ(value, "a,b");
  EXPECT_EQ(Hits(), 1);
}

// Reads that ignore range deletions see other values than the rest, so they
// neither fill nor use the cache.
TEST_F(DBMergedValueTest, ReadsThatIgnoreRangeDeletionsDoNotUseTheCache) {
  DestroyAndReopen(CacheOptions());
  MergeMany("k", {"a", "b"});
  ASSERT_OK(Flush());
  ASSERT_OK(db_->DeleteRange(WriteOptions(), "a", "z"));
  ASSERT_OK(Flush());
  ReadOptions ignoring;
  ignoring.ignore_range_deletions = true;
  const Slice key("k");
  const auto read_ignoring = [&] {
    std::string value;
    EXPECT_OK(db_->Get(ignoring, key, &value));
    PinnableSlice pinned;
    Status status;
    db_->MultiGet(ignoring, db_->DefaultColumnFamily(), 1, &key, &pinned,
                  &status);
    EXPECT_OK(status);
    EXPECT_EQ(pinned, value);
    return value;
  };
  EXPECT_EQ(read_ignoring(), "a,b");
  EXPECT_EQ(Added(), 0);
  EXPECT_EQ(Get("k"), "NOT_FOUND");
  MergeMany("k", {"c", "d"});
  EXPECT_EQ(Get("k"), "c,d");
  EXPECT_EQ(Added(), 1);
  EXPECT_EQ(read_ignoring(), "a,b,c,d");
  EXPECT_EQ(Get("k"), "c,d");
  EXPECT_EQ(Hits(), 1);
}

TEST_F(DBMergedValueTest, KeyMayExistUsesTheCache) {
  DestroyAndReopen(CacheOptions());
  MergeMany("k", {"a", "b"});
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "a,b");
  ASSERT_OK(Merge("k", "c"));
  std::string value;
  bool value_found = false;
  EXPECT_TRUE(db_->KeyMayExist(ReadOptions(), "k", &value, &value_found));
  EXPECT_TRUE(value_found);
  EXPECT_EQ(value, "a,b,c");
  EXPECT_EQ(Hits(), 1);
}

TEST_F(DBMergedValueTest, TransactionsUseTheCache) {
  const Options options = CacheOptions();
  Close();
  TransactionDB* made = nullptr;
  ASSERT_OK(
      TransactionDB::Open(options, TransactionDBOptions(), dbname_, &made));
  {
    const std::unique_ptr<TransactionDB> db(made);
    for (const char* const operand : {"a", "b"}) {
      ASSERT_OK(db->Merge(WriteOptions(), "k", operand));
    }
    std::string value;
    ASSERT_OK(db->Get(ReadOptions(), "k", &value));
    TransactionOptions transaction_options;
    transaction_options.set_snapshot = true;
    const std::unique_ptr<Transaction> transaction(
        db->BeginTransaction(WriteOptions(), transaction_options));
    ASSERT_OK(db->Merge(WriteOptions(), "other", "o"));
    ASSERT_OK(transaction->Merge("k", "own"));
    ASSERT_OK(transaction->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, "a,b,own");
    const Slice key("k");
    PinnableSlice pinned;
    Status status;
    transaction->MultiGet(ReadOptions(), db->DefaultColumnFamily(), 1, &key,
                          &pinned, &status);
    ASSERT_OK(status);
    EXPECT_EQ(pinned, "a,b,own");
    EXPECT_EQ(options.statistics->getTickerCount(MERGED_VALUE_CACHE_HIT), 2);
    ASSERT_OK(transaction->Commit());
    ASSERT_OK(db->Get(ReadOptions(), "k", &value));
    EXPECT_EQ(value, "a,b,own");
  }
}

// Cached values count toward value_size_soft_limit like others, and end the
// batch like others, also if all of them are found after the memtables.
TEST_F(DBMergedValueTest, CachedValuesCountTowardTheSoftLimit) {
  DestroyAndReopen(CacheOptions());
  const std::string operand(1000, 'o');
  std::vector<std::string> keys;
  for (int i = 0; i < 10; ++i) {
    keys.push_back(Key(i));
    ASSERT_OK(Merge(keys.back(), operand));
  }
  ASSERT_OK(Flush());
  const std::vector<Slice> slices(keys.begin(), keys.end());
  ReadOptions read_options;
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    // In the second step, all values come from the cache.
    read_options.value_size_soft_limit =
        step < 2 ? std::numeric_limits<uint64_t>::max() : 3500;
    db_->MultiGet(read_options, db_->DefaultColumnFamily(), slices.size(),
                  slices.data(), values.data(), statuses.data());
    int read = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].ok()) {
        EXPECT_EQ(values[i], operand);
        ++read;
      } else {
        EXPECT_TRUE(statuses[i].IsAborted()) << statuses[i].ToString();
      }
    }
    if (step < 2) {
      EXPECT_EQ(read, 10);
      EXPECT_EQ(Hits(), step * 10);
    } else {
      // The batch ends with the value that exceeds the limit.
      EXPECT_EQ(read, 4);
      EXPECT_EQ(Hits(), 14);
    }
  }
}

// A key that is still being written is read from its files only once.
TEST_F(DBMergedValueTest, FlushesCarryValuesOver) {
  DestroyAndReopen(CacheOptions());
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Put("other", "w"));
  ASSERT_OK(ForceCompaction());
  ASSERT_OK(Merge("k", "a"));
  ASSERT_OK(Merge("other", "a"));
  EXPECT_EQ(Get("k"), "v,a");
  EXPECT_EQ(Get("other"), "w,a");
  EXPECT_EQ(Added(), 2);
  std::string expected = "v,a";
  get_perf_context()->Reset();
  SetPerfLevel(PerfLevel::kEnableCount);
  for (int i = 0; i < 6; ++i) {
    for (int operand = 0; operand < i; ++operand) {
      ASSERT_OK(Merge("k", std::to_string(i)));
      expected += "," + std::to_string(i);
    }
    ASSERT_OK(Put("unread", "v"));
    ASSERT_OK(Flush());
    if (i % 2 == 0) {
      EXPECT_EQ(Get("k"), expected);
      EXPECT_EQ(Get("other"), "w,a");
    }
  }
  EXPECT_EQ(get_perf_context()->block_cache_hit_count, 0);
  EXPECT_EQ(get_perf_context()->block_read_count, 0);
  EXPECT_EQ(Hits(), 6);
  EXPECT_EQ(Added(), 2);
  std::map<std::string, std::string> values;
  EXPECT_TRUE(db_->GetMapProperty(DB::Properties::kMergedValueCache, &values));
  EXPECT_EQ(values["carried"], "5");
  // The counters show a read of a file.
  EXPECT_EQ(Get("unread"), "v");
  EXPECT_GT(get_perf_context()->block_cache_hit_count +
                get_perf_context()->block_read_count,
            0);
  SetPerfLevel(PerfLevel::kDisable);
}

// A flush that writes a value, a deletion or a range deletion of a key does not
// carry its value over.
TEST_F(DBMergedValueTest, OnlyOperandsAreCarriedOver) {
  DestroyAndReopen(CacheOptions());
  const auto prepare = [&] {
    const uint64_t added = Added();
    ASSERT_OK(Put("k", "v"));
    ASSERT_OK(Flush());
    ASSERT_OK(Merge("k", "a"));
    EXPECT_EQ(Get("k"), "v,a");
    EXPECT_EQ(Added(), added + 1);
    ASSERT_OK(Merge("k", "b"));
  };
  prepare();
  ASSERT_OK(Put("k", "w"));
  ASSERT_OK(Merge("k", "c"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "w,c");
  prepare();
  ASSERT_OK(Delete("k"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "NOT_FOUND");
  prepare();
  ASSERT_OK(Delete("k"));
  ASSERT_OK(Merge("k", "c"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "c");
  for (const bool after : {true, false}) {
    prepare();
    ASSERT_OK(db_->DeleteRange(WriteOptions(), "a", "z"));
    if (after) {
      ASSERT_OK(Merge("k", "c"));
    }
    ASSERT_OK(Flush());
    EXPECT_EQ(Get("k"), after ? "c" : "NOT_FOUND");
  }
  EXPECT_EQ(Cache()->GetStats().carried, 0);
}

// If a younger memtable is flushed before an older one, the flush does not have
// all unflushed entries of its keys, and reads are still correct.
TEST_F(DBMergedValueTest, ReadsAreCorrectIfAYoungerMemtableIsFlushedFirst) {
  for (const bool in_younger : {false, true}) {
    Options options = CacheOptions();
    options.max_background_jobs = 8;
    options.max_write_buffer_number = 8;
    env_->SetBackgroundThreads(4, Env::HIGH);
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", "v"));
    ASSERT_OK(Flush());
    ASSERT_OK(Merge("k", "a"));
    EXPECT_EQ(Get("k"), "v,a");
    EXPECT_EQ(Cache()->GetStats().entries, 1);
    ASSERT_OK(Merge("k", "b"));
    SyncPoint::GetInstance()->LoadDependency(
        {{"MergedValueFlush::Finish", "YoungerMemtableFlushedFirst:Release"}});
    std::atomic<int> started{0};
    EnableCallBack("FlushJob::WriteLevel0Table:num_memtables",
                   [&](void* /*arg*/) {
                     if (++started == 1) {
                       TEST_SYNC_POINT("YoungerMemtableFlushedFirst:Release");
                     }
                   });
    FlushOptions flush_options;
    flush_options.wait = false;
    ASSERT_OK(db_->Flush(flush_options));
    while (started < 1) {
      env_->SleepForMicroseconds(1000);
    }
    if (in_younger) {
      ASSERT_OK(Merge("k", "c"));
    }
    ASSERT_OK(Merge("other", "x"));
    ASSERT_OK(db_->Flush(flush_options));
    ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable());
    DisableCallBacks();
    EXPECT_EQ(started, 2);
    EXPECT_EQ(Get("k"), in_younger ? "v,a,b,c" : "v,a,b");
    EXPECT_EQ(Get("k"), in_younger ? "v,a,b,c" : "v,a,b");
    EXPECT_EQ(Get("other"), "x");
  }
}

// A flush of several memtables carries the value over.
TEST_F(DBMergedValueTest, CarriesOverFromSeveralMemtables) {
  Options options = CacheOptions();
  options.max_write_buffer_number = 6;
  options.min_write_buffer_number_to_merge = 3;
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", "v"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "a"));
  EXPECT_EQ(Get("k"), "v,a");
  ASSERT_OK(Merge("k", "b"));
  ASSERT_OK(dbfull()->TEST_SwitchMemtable());
  ASSERT_OK(Merge("k", "c"));
  EXPECT_EQ(Get("k"), "v,a,b,c");
  ASSERT_OK(dbfull()->TEST_SwitchMemtable());
  MergeMany("k", {"d", "e"});
  ASSERT_OK(Flush());
  EXPECT_EQ(Cache()->GetStats().carried, 1);
  EXPECT_EQ(Get("k"), "v,a,b,c,d,e");
  EXPECT_EQ(Added(), 1);
}

// ---- Random histories against a model.

struct MergedValueVariant {
  std::string name;
  bool blobs = false;
  bool map = false;
  bool row_cache = false;
  bool small_cache = false;
  bool successive_merges = false;
};

class DBMergedValueModelTest
    : public DBMergedValueTest,
      public testing::WithParamInterface<MergedValueVariant> {
 public:
  static constexpr int kKeys = 12;

  std::string RandomKey() {
    return "key" + std::to_string(rnd_.Uniform(kKeys));
  }
  std::string RandomText() {
    std::string text = std::to_string(++texts_);
    if (rnd_.OneIn(3)) {
      text += std::string(rnd_.Uniform(150), 'x');
    }
    return text;
  }

  static std::string Of(const Model& model, const std::string& key) {
    const auto found = model.find(key);
    return found == model.end() ? "NOT_FOUND" : found->second;
  }

  void Check(const std::string& key, const Snapshot* snapshot,
             const Model& model) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    const std::string expected = Of(model, key);
    switch (rnd_.Uniform(5)) {
      case 0: {
        PinnableWideColumns columns;
        const Status s = db_->GetEntity(
            read_options, db_->DefaultColumnFamily(), key, &columns);
        if (s.IsNotFound()) {
          ASSERT_EQ(expected, "NOT_FOUND") << key;
        } else {
          ASSERT_OK(s);
          ASSERT_EQ(columns.columns().front().value(), expected) << key;
        }
        break;
      }
      case 1: {
        std::vector<std::string> keys;
        for (int i = 0; i < kKeys; ++i) {
          keys.push_back("key" + std::to_string(i));
        }
        const std::vector<Slice> slices(keys.begin(), keys.end());
        std::vector<PinnableSlice> values(keys.size());
        std::vector<Status> statuses(keys.size());
        db_->MultiGet(read_options, db_->DefaultColumnFamily(), slices.size(),
                      slices.data(), values.data(), statuses.data());
        for (size_t i = 0; i < keys.size(); ++i) {
          if (!statuses[i].IsNotFound()) {
            ASSERT_OK(statuses[i]);
          }
          ASSERT_EQ(
              statuses[i].IsNotFound() ? "NOT_FOUND" : values[i].ToString(),
              Of(model, keys[i]))
              << keys[i];
        }
        break;
      }
      default:
        ASSERT_EQ(Get(key, snapshot), expected) << key;
    }
  }

 protected:
  Random rnd_{301};
  int texts_ = 0;
};

INSTANTIATE_TEST_CASE_P(
    Variants, DBMergedValueModelTest,
    testing::Values(MergedValueVariant{"Plain"},
                    MergedValueVariant{"SmallCache", false, false, false, true},
                    MergedValueVariant{"SuccessiveMerges", false, false, false,
                                       false, true},
                    MergedValueVariant{"Blobs", true},
                    MergedValueVariant{"Map", true, true},
                    MergedValueVariant{"RowCache", false, false, true},
                    MergedValueVariant{"MapRowCache", true, true, true}),
    [](const testing::TestParamInfo<MergedValueVariant>& tested) {
      return tested.param.name;
    });

TEST_P(DBMergedValueModelTest, RandomHistoryMatchesTheModel) {
  const MergedValueVariant& variant = GetParam();
  Options options = CacheOptions();
  options.max_write_buffer_number = 6;
  if (variant.blobs) {
    options.enable_blob_files = true;
    options.min_blob_size = 60;
    options.enable_blob_address_map = variant.map;
  }
  if (variant.row_cache) {
    options.row_cache = NewLRUCache(1 << 20);
  }
  if (variant.successive_merges) {
    options.max_successive_merges = 4;
  }
  if (variant.small_cache) {
    options.merged_value_cache_size = 200 << 10;
  }
  for (int history = 0; history < 25; ++history) {
    SCOPED_TRACE(history);
    DestroyAndReopen(options);
    Model model;
    std::vector<std::pair<const Snapshot*, Model>> snapshots;
    for (int step = 0; step < 400; ++step) {
      const std::string key = RandomKey();
      switch (rnd_.Uniform(32)) {
        default: {
          const std::string text = RandomText();
          ASSERT_OK(Merge(key, text));
          const auto found = model.find(key);
          if (found == model.end()) {
            model[key] = text;
          } else {
            found->second += "," + text;
          }
          break;
        }
        case 0:
        case 1: {
          model[key] = RandomText();
          ASSERT_OK(Put(key, model[key]));
          break;
        }
        case 2:
          model.erase(key);
          ASSERT_OK(Delete(key));
          break;
        case 3: {
          std::string end = RandomKey();
          std::string begin = key;
          if (end < begin) {
            std::swap(begin, end);
          }
          if (begin < end && !variant.row_cache) {  // row caches refuse this
            ASSERT_OK(db_->DeleteRange(WriteOptions(), begin, end));
            model.erase(model.lower_bound(begin), model.lower_bound(end));
          }
          break;
        }
        case 4:
        case 5:
          ASSERT_OK(Flush());
          break;
        case 6: {
          // These memtables are not flushed by themselves; too many of them
          // would stop writes.
          uint64_t immutable = 0;
          ASSERT_TRUE(db_->GetIntProperty(DB::Properties::kNumImmutableMemTable,
                                          &immutable));
          if (immutable < 3) {
            ASSERT_OK(dbfull()->TEST_SwitchMemtable());
          }
          break;
        }
        case 7:
          if (rnd_.OneIn(2)) {
            ASSERT_OK(ForceCompaction());
          } else {
            ASSERT_OK(Flush());
            MoveFilesToLevel(1 + static_cast<int>(rnd_.Uniform(2)));
          }
          break;
        case 8:
          if (rnd_.OneIn(4)) {
            for (const auto& [snapshot, contents] : snapshots) {
              db_->ReleaseSnapshot(snapshot);
            }
            snapshots.clear();
            Reopen(options);
          }
          break;
        case 9:
          if (rnd_.OneIn(3)) {
            Model file;
            for (int i = 0; i < 3; ++i) {
              file[RandomKey()] = RandomText();
            }
            Ingest(file);
            for (const auto& [ingested, value] : file) {
              model[ingested] = value;
            }
          }
          break;
        case 10:
          snapshots.emplace_back(db_->GetSnapshot(), model);
          break;
        case 11:
          if (!snapshots.empty()) {
            const size_t i = rnd_.Uniform(static_cast<int>(snapshots.size()));
            db_->ReleaseSnapshot(snapshots[i].first);
            snapshots.erase(snapshots.begin() + static_cast<ptrdiff_t>(i));
          }
          break;
      }
      for (int reads = 0; reads < 3; ++reads) {
        if (!snapshots.empty() && rnd_.OneIn(3)) {
          const auto& [snapshot, contents] =
              snapshots[rnd_.Uniform(static_cast<int>(snapshots.size()))];
          Check(RandomKey(), snapshot, contents);
        } else {
          Check(RandomKey(), nullptr, model);
        }
        ASSERT_FALSE(HasFatalFailure()) << "step " << step;
      }
    }
    for (const auto& [snapshot, contents] : snapshots) {
      db_->ReleaseSnapshot(snapshot);
    }
  }
  EXPECT_GT(Hits(), 1000);
  EXPECT_GT(Added(), 300);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
