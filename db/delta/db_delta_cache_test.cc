//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of the delta cache in real databases: events between two reads of a key
// never make the second read wrong, and few of them make it read all files of
// the key again.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/cache_reservation_manager.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/db_delta_model_test_util.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/merge_context.h"
#include "db/pinned_iterators_manager.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::ModelDBTest;

class DBDeltaCacheTest : public ModelDBTest {
 protected:
  DBDeltaCacheTest() : ModelDBTest("db_delta_cache_test") {}
  // The default is a share of the block cache, which is tiny in a build with
  // AddressSanitizer.
  Options DeltaOptions() const {
    Options options = ModelDBTest::DeltaOptions();
    options.delta_cache_size = size_t{1} << 20;
    return options;
  }
  void Start(const Options& options) {
    ReleaseSnapshots();
    DestroyAndReopen(options);
    state_.clear();
    EnableCallBack(
        "DBStrata::BackgroundDeltaCollection::Begin:Picked", [this](void* arg) {
          auto* const pick = static_cast<DeltaPicker::Collection*>(arg);
          pick->plan.fold = pick->plan.fold || folds_all_;
          if (folds_below_.exchange(false)) {
            pick->plan.fold = true;
            pick->plan.floor = 0;
          }
        });
    EnableCallBack("DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
                   [this](void* arg) {
                     if (refuses_collections_) {
                       *static_cast<Status*>(arg) =
                           Status::Incomplete("by the test");
                     }
                   });
  }
  void Start() { Start(DeltaOptions()); }

  uint64_t Hits() { return Ticker(DELTA_CACHE_HIT); }
  uint64_t Misses() { return Ticker(DELTA_CACHE_MISS); }
  uint64_t Adds() { return Ticker(DELTA_CACHE_ADD); }

  void CheckKey(const std::string& key) {
    const auto expected = state_.find(key);
    ASSERT_EQ(expected == state_.end() ? "NOT_FOUND" : expected->second,
              Get(key));
  }
  // Checks a read that uses an entry of the cache and adds `adds` entries.
  void CheckHit(const std::string& key, uint64_t adds = 0) {
    const uint64_t hits = Hits() + 1;
    const uint64_t misses = Misses();
    adds += Adds();
    CheckKey(key);
    ASSERT_EQ(hits, Hits());
    ASSERT_EQ(misses, Misses());
    ASSERT_EQ(adds, Adds());
  }
  // Checks a read that finds no entry it may use and adds `adds` entries.
  void CheckMiss(const std::string& key, uint64_t adds = 1) {
    const uint64_t hits = Hits();
    const uint64_t misses = Misses() + 1;
    adds += Adds();
    CheckKey(key);
    ASSERT_EQ(hits, Hits());
    ASSERT_EQ(misses, Misses());
    ASSERT_EQ(adds, Adds());
  }

  void FlushOne(const std::string& key, const std::string& operand) {
    DoMerge(key, operand);
    ASSERT_OK(Flush());
  }
  // Merges the flushed delta files; no bucket takes them in.
  void MergeFlushed() {
    refuses_collections_ = true;
    const Status s = CompactAll();
    refuses_collections_ = false;
    ASSERT_TRUE(s.ok() || s.IsIncomplete()) << s.ToString();
    ASSERT_EQ(0, Stat("flushed-files"));
  }
  // Compacts all; each collection folds its operands.
  void Fold() {
    folds_all_ = true;
    ASSERT_OK(CompactAll());
    folds_all_ = false;
  }

  // Limits the bytes of values that a fold produces.
  static void FoldSome(uint64_t max_bytes) {
    EnableCallBack(
        "DBStrata::BackgroundDeltaCollection::MakeFolder:MaxBytes",
        [max_bytes](void* arg) { *static_cast<uint64_t*>(arg) = max_bytes; });
  }

  static constexpr char kKey[] = "key1000";
  static constexpr char kOther[] = "key1001";

  std::atomic<bool> folds_all_{false};
  // The next collection folds only operands that are in its buckets already.
  std::atomic<bool> folds_below_{false};
  std::atomic<bool> refuses_collections_{false};
};

TEST_F(DBDeltaCacheTest, EntriesStayUsableAfterFlushes) {
  Start();
  DoPut(kKey, "base");
  FlushOne(kKey, "1");
  FlushOne(kKey, "2");
  CheckMiss(kKey);
  CheckHit(kKey);
  for (int i = 0; i < 5; ++i) {
    FlushOne(kOther, "x");
    CheckHit(kKey);
  }
  // Operands in the memtable are merged on top of cached ones.
  DoMerge(kKey, "3");
  CheckHit(kKey);
  ASSERT_OK(Flush());
  CheckHit(kKey, /*adds=*/1);
  CheckHit(kKey);
  // A new base is first in the memtable, then in a file with an anchor.
  DoPut(kKey, "new base");
  CheckKey(kKey);
  ASSERT_OK(Flush());
  CheckKey(kKey);
  FlushOne(kKey, "4");
  CheckHit(kKey, /*adds=*/1);
  CheckHit(kKey);
  DoDelete(kKey);
  ASSERT_OK(Flush());
  CheckKey(kKey);
  FlushOne(kKey, "5");
  CheckHit(kKey, 1);
  CheckHit(kKey);
  Check();
}

TEST_F(DBDeltaCacheTest, EntriesStayUsableAfterMerges) {
  Start();
  FlushOne(kKey, "1");
  FlushOne(kOther, "x");
  CheckMiss(kKey);
  MergeFlushed();
  CheckHit(kKey);
  FlushOne(kKey, "2");
  CheckHit(kKey, 1);
  FlushOne(kKey, "3");
  // The entry covers "2". The merge combines "2" and "3" to one operand.
  MergeFlushed();
  CheckHit(kKey, 1);
  CheckHit(kKey);
  FlushOne(kOther, "y");
  FlushOne(kOther, "z");
  MergeFlushed();
  CheckHit(kKey);
  Check();
}

TEST_F(DBDeltaCacheTest, EntriesBelowTheFloorAreNotUsed) {
  Start();
  FlushOperands(0, 150, /*size=*/100);
  FlushOne(kKey, "1");
  CheckMiss(kKey);
  ASSERT_OK(CompactAll());
  ASSERT_GT(Stat("buckets"), 1);
  ASSERT_EQ(0, Stat("merged-files"));
  // The entry covers everything that the bucket has taken in.
  CheckHit(kKey);
  // The bucket takes in newer files before a read has raised the entry's epoch.
  FlushOperands(0, 150, /*size=*/100);
  ASSERT_OK(CompactAll());
  CheckMiss(kKey);
  CheckHit(kKey);
  // The same holds if the newer files have only other keys of the bucket.
  FlushOperands(1, 10, /*size=*/10);
  ASSERT_OK(CompactAll());
  CheckMiss(kKey);
  CheckHit(kKey);
  // A read has raised the epoch before the next collection.
  const uint64_t buckets = Stat("buckets");
  FlushOperands(1, 150, /*size=*/200);
  CheckHit(kKey);
  ASSERT_OK(CompactAll());
  ASSERT_GT(Stat("buckets"), buckets);
  CheckHit(kKey);
  // The collection combines the key's operands. The entry covers all of them.
  FlushOne(kKey, "2");
  CheckHit(kKey, 1);
  ASSERT_OK(CompactAll());
  CheckHit(kKey);
  FlushOne(kKey, "3");
  ASSERT_OK(CompactAll());
  CheckMiss(kKey);
  Check();
}

// A collection drops hidden operands together with their anchor. Then only the
// cache has these operands, and reads must not use them.
TEST_F(DBDeltaCacheTest, HiddenOperandsStayHiddenWithoutTheirAnchor) {
  for (const bool to_bottom : {false, true}) {
    for (const int way : {0, 1, 2}) {
      SCOPED_TRACE(std::to_string(way));
      Start();
      FlushOperands(0, 100, /*size=*/100);
      FlushOne(kKey, "1");
      ASSERT_OK(CompactAll());
      CheckMiss(kKey);
      CheckHit(kKey);
      if (way == 0) {
        DoPut(kKey, "base");
      } else if (way == 1) {
        DoDelete(kKey);
      } else {
        DoDeleteRange(kKey, kOther);
      }
      FlushOperands(50, 100, /*size=*/10);
      if (to_bottom) {
        // The base's sequence number becomes zero, or the tombstone is dropped.
        ASSERT_OK(ForceCompaction());
      } else {
        ASSERT_OK(CompactAll());
      }
      ASSERT_EQ(0, Stat("anchors"));
      CheckKey(kKey);
      FlushOne(kKey, "2");
      // The floor of the bucket is above the epoch of the entry.
      CheckMiss(kKey);
      CheckHit(kKey);
      ASSERT_OK(CompactAll());
      CheckHit(kKey);
      Check();
    }
  }
}

TEST_F(DBDeltaCacheTest, EntriesAreNotUsedAfterAFold) {
  Start();
  DoPut(kKey, "base");
  FlushOperands(0, 100, /*size=*/100);
  FlushOne(kKey, "1");
  ASSERT_OK(CompactAll());
  FlushOne(kKey, "2");
  CheckMiss(kKey);
  CheckHit(kKey);
  Fold();
  ASSERT_GT(Ticker(DELTA_OPERANDS_FOLDED), 0);
  CheckKey(kKey);
  // The value's sequence number becomes zero.
  ASSERT_OK(ForceCompaction());
  CheckKey(kKey);
  const uint64_t hits = Hits();
  FlushOne(kKey, "3");
  CheckMiss(kKey);
  CheckHit(kKey);
  ASSERT_EQ(hits + 1, Hits());
  ASSERT_OK(CompactAll());
  CheckHit(kKey);
  Check();
}

// Filters of delta files may report keys that a fold has removed. The cached
// operands of such a key must not be used in place of the reported file.
TEST_F(DBDeltaCacheTest, FoldOfSomeKeysKeepsReadsCorrect) {
  Options options = DeltaOptions();
  BlockBasedTableOptions table_options;
  table_options.filter_policy.reset(NewBloomFilterPolicy(1));
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  for (const uint32_t rounds : {1, 2, 3}) {
    Start(options);
    FoldSome(4000);
    for (uint32_t i = 0; i < kNumKeys; ++i) {
      DoPut(KeyOf(i), "base");
    }
    FlushOperands(0, kNumKeys, /*size=*/30);
    for (uint32_t round = 0; round < rounds; ++round) {
      FlushOperands(0, kNumKeys, /*size=*/30);
      // This read makes the entries cover everything that is taken in.
      Check();
      Fold();
      Check();
      // The values' sequence numbers become zero.
      ASSERT_OK(ForceCompaction());
      Check();
      // A collection without a fold writes these operands into new extents.
      FlushOperands(100, 120, /*size=*/10);
      Check();
      ASSERT_OK(CompactAll());
      Check();
    }
    ASSERT_GT(Ticker(DELTA_OPERANDS_FOLDED), 0);
    ASSERT_GT(Stat("operands"), 0);
  }
}

// A fold takes the operands that a bucket has, while newer operands stay in
// recent files.
TEST_F(DBDeltaCacheTest, FoldBelowRecentFilesKeepsReadsCorrect) {
  Start();
  FlushOperands(0, 100, /*size=*/100);
  ASSERT_OK(CompactAll());
  FlushOne(kKey, "1");
  MergeFlushed();
  FlushOne(kKey, "2");
  CheckMiss(kKey);
  CheckHit(kKey);
  // The first collection folds the extents; a later one takes in merged files.
  folds_below_ = true;
  ASSERT_OK(CompactAll());
  ASSERT_GT(Ticker(DELTA_OPERANDS_FOLDED), 0);
  // The entry is older than the fold and of another extent.
  CheckMiss(kKey);
  // The new entry is of the same extent as this reader.
  FlushOne(kKey, "3");
  CheckHit(kKey, /*adds=*/1);
  CheckHit(kKey);
  Check();
}

// An entry from before the store was empty is not used, although the epochs of
// later flushes are above its own.
TEST_F(DBDeltaCacheTest, EntriesAreNotUsedAfterTheStoreWasEmpty) {
  for (const bool folds : {false, true}) {
    Start();
    FlushOne(kKey, "1");
    CheckMiss(kKey);
    if (folds) {
      Fold();
    } else {
      DoPut(kKey, "base");
      ASSERT_OK(Flush());
      ASSERT_OK(CompactAll());
    }
    ASSERT_EQ(0, Stat("files"));
    CheckKey(kKey);
    FlushOne(kOther, "x");
    FlushOne(kKey, "2");
    if (folds) {
      CheckMiss(kKey);
    } else {
      // The lookup finds the entry, but there is no file that its list could
      // replace.
      CheckHit(kKey, /*adds=*/1);
    }
    CheckHit(kKey);
    ASSERT_OK(ForceCompaction());
    CheckKey(kKey);
    Check();
  }
}

TEST_F(DBDeltaCacheTest, CacheIsOffDuringADrain) {
  Options options = DeltaOptions();
  Start(options);
  FlushOne(kKey, "1");
  CheckMiss(kKey);
  CheckHit(kKey);
  options.enable_delta_separation = false;
  Reopen(options);
  ASSERT_GT(Stat("files"), 0);
  ASSERT_EQ(0, Stat("cache-capacity"));
  CheckKey(kKey);
  CheckKey(kKey);
  ASSERT_EQ(0, Stat("cache-entries"));
  const uint64_t misses = Misses();
  ASSERT_OK(CompactAll());
  ASSERT_EQ(0, Stat("files"));
  CheckKey(kKey);
  ASSERT_EQ(misses, Misses());
  options.enable_delta_separation = true;
  Reopen(options);
  FlushOne(kKey, "2");
  CheckMiss(kKey);
  CheckHit(kKey);
  Check();
}

TEST_F(DBDeltaCacheTest, SnapshotsDoNotSeeNewerCachedOperands) {
  Start();
  FlushOne(kKey, "1");
  DoSnapshot();
  FlushOne(kKey, "2");
  DoSnapshot();
  // Reads at a snapshot below the newest operand neither use the entry nor add
  // one.
  const auto check_at = [&](size_t i, const std::string& value) {
    ReadOptions read_options;
    read_options.snapshot = snapshots_[i].first;
    std::string found;
    ASSERT_OK(db_->Get(read_options, kKey, &found));
    ASSERT_EQ(value, found);
  };
  check_at(0, "1");
  ASSERT_EQ(0, Adds());
  CheckMiss(kKey);
  check_at(1, "1,2");
  ASSERT_EQ(1, Hits());
  check_at(0, "1");
  ASSERT_EQ(1, Hits());
  FlushOne(kKey, "3");
  CheckHit(kKey, 1);
  check_at(1, "1,2");
  check_at(0, "1");
  ASSERT_OK(CompactAll());
  check_at(1, "1,2");
  check_at(0, "1");
  CheckHit(kKey);
  DoDelete(kKey);
  ASSERT_OK(Flush());
  ASSERT_OK(CompactAll());
  check_at(1, "1,2");
  check_at(0, "1");
  FlushOne(kKey, "4");
  Check();
  ReleaseSnapshots();
  ASSERT_OK(CompactAll());
  Check();
}

TEST_F(DBDeltaCacheTest, RangeDeletionsHideCachedOperands) {
  Start();
  FlushOperands(0, 100, /*size=*/20);
  Check();
  Check();
  ASSERT_GT(Hits(), 0);
  DoDeleteRange(KeyOf(10), KeyOf(20));
  Check();
  ASSERT_OK(Flush());
  Check();
  FlushOperands(15, 30, /*size=*/20);
  // The entry is used, and the anchor hides its list.
  CheckHit(KeyOf(15), /*adds=*/1);
  CheckHit(KeyOf(25), /*adds=*/1);
  Check();
  CheckHit(KeyOf(15));
  DoDeleteRange(KeyOf(12), KeyOf(18));
  FlushOperands(14, 16, /*size=*/20);
  Check();
  MergeFlushed();
  Check();
  ASSERT_OK(CompactAll());
  Check();
  Check();
}

TEST_F(DBDeltaCacheTest, IngestionHidesCachedOperands) {
  Start();
  FlushOperands(0, 100, /*size=*/20);
  ASSERT_OK(CompactAll());
  FlushOne(kKey, "1");
  CheckMiss(kKey);
  CheckHit(kKey);
  const std::string name = dbname_ + "/outside.sst";
  SstFileWriter writer(EnvOptions(), last_options_);
  ASSERT_OK(writer.Open(name));
  ASSERT_OK(writer.Put(kKey, "ingested"));
  ASSERT_OK(writer.Delete(KeyOf(7)));
  ASSERT_OK(writer.Finish());
  Check();
  ASSERT_OK(db_->IngestExternalFile({name}, IngestExternalFileOptions()));
  state_[kKey] = "ingested";
  state_.erase(KeyOf(7));
  Check();
  FlushOne(kKey, "2");
  // The entry is of an older generation.
  CheckMiss(kKey);
  CheckHit(kKey);
  Check();
  ASSERT_OK(CompactAll());
  Check();
}

TEST_F(DBDeltaCacheTest, FileDeletionHidesCachedOperands) {
  Start();
  for (const uint32_t i : {0, 1, 2}) {
    DoPut(KeyOf(i), "base");
    ASSERT_OK(Flush());
    MoveFilesToLevel(3);
  }
  for (const uint32_t i : {0, 1, 2}) {
    DoMerge(KeyOf(i), "1");
  }
  ASSERT_OK(Flush());
  for (const uint32_t i : {0, 1, 2}) {
    CheckMiss(KeyOf(i));
    CheckHit(KeyOf(i));
  }
  const auto delete_file = [&](uint32_t i) {
    const std::string key = KeyOf(i);
    const Slice slice(key);
    ASSERT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &slice,
                                 &slice));
    state_.erase(key);
  };
  delete_file(0);
  CheckKey(KeyOf(0));
  Check();
  // A flush is committed while the anchor is being written. The anchor has a
  // lower epoch and hides nothing of the flush.
  SyncPoint::GetInstance()->SetCallBack("DeltaFileDeletion::Publish:Synced",
                                        [&](void*) {
                                          ASSERT_OK(Merge(KeyOf(1), "2"));
                                          ASSERT_OK(Flush());
                                          // These reads cache operands that the
                                          // anchor is about to hide.
                                          ASSERT_EQ("base,1,2", Get(KeyOf(1)));
                                          ASSERT_EQ("base,1,2", Get(KeyOf(1)));
                                        });
  delete_file(1);
  SyncPoint::GetInstance()->ClearCallBack("DeltaFileDeletion::Publish:Synced");
  state_[KeyOf(1)] = "2";
  // The entry is of an older generation.
  CheckMiss(KeyOf(1));
  CheckHit(KeyOf(1));
  Check();
  ASSERT_OK(CompactAll());
  Check();
  FlushOne(KeyOf(1), "3");
  Check();
}

// A reader of an old Version adds its entry after the Version was replaced. No
// later read returns a wrong value because of it.
TEST_F(DBDeltaCacheTest, LateEntryOfAnOldVersionKeepsReadsCorrect) {
  // These events happen while the reader waits.
  const std::vector<std::function<void()>> ways = {
      [this] { FlushOne(kKey, "late"); },
      [this] {
        DoPut(kKey, "late base");
        ASSERT_OK(Flush());
      },
      [this] {
        FlushOne(kKey, "late");
        MergeFlushed();
      },
      [this] {
        FlushOne(kKey, "late");
        ASSERT_OK(CompactAll());
      },
      [this] {
        DoDelete(kKey);
        FlushOne(kKey, "late");
        ASSERT_OK(CompactAll());
      },
      [this] { Fold(); },
      [this] {
        FlushOne(kKey, "late");
        Fold();
        FlushOne(kKey, "later");
        CheckKey(kKey);
      },
      [this] {
        DoPut(kKey, "late base");
        ASSERT_OK(Flush());
        ASSERT_OK(CompactAll());
        FlushOne(kKey, "later");
      }};
  for (const bool has_buckets : {false, true}) {
    for (size_t way = 0; way < ways.size(); ++way) {
      SCOPED_TRACE(std::to_string(way));
      Start();
      FlushOperands(0, 100, /*size=*/100);
      if (has_buckets) {
        ASSERT_OK(CompactAll());
      }
      FlushOne(kKey, "1");
      const std::string before = state_[kKey];
      std::mutex mutex;
      std::condition_variable changed;
      bool waits = false;
      bool goes_on = false;
      EnableCallBack("DeltaRead::KeepInCache", [&](void*) {
        std::unique_lock<std::mutex> lock(mutex);
        if (!waits) {
          waits = true;
          changed.notify_all();
          changed.wait(lock, [&] { return goes_on; });
        }
      });
      std::string found;
      std::thread reader([&] { found = Get(kKey); });
      {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return waits; });
      }
      ways[way]();
      {
        std::lock_guard<std::mutex> lock(mutex);
        goes_on = true;
        changed.notify_all();
      }
      reader.join();
      SyncPoint::GetInstance()->ClearCallBack("DeltaRead::KeepInCache");
      ASSERT_EQ(before, found);
      CheckKey(kKey);
      CheckKey(kKey);
      Check();
      FlushOne(kKey, "end");
      CheckKey(kKey);
      ASSERT_OK(CompactAll());
      Check();
    }
  }
}

TEST_F(DBDeltaCacheTest, MultiGetFillsAndUsesTheCache) {
  Start();
  FlushOperands(0, 20, /*size=*/20);
  FlushOperands(10, 30, /*size=*/20);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 40; ++i) {
    names.push_back(KeyOf(i));
  }
  const std::vector<Slice> keys(names.begin(), names.end());
  const auto read = [&] {
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), keys.size(),
                  keys.data(), values.data(), statuses.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i < 30) {
        ASSERT_OK(statuses[i]);
        ASSERT_EQ(state_[names[i]], values[i]);
      } else {
        ASSERT_TRUE(statuses[i].IsNotFound());
      }
    }
  };
  read();
  ASSERT_EQ(30, Adds());
  ASSERT_EQ(30, Misses());
  read();
  ASSERT_EQ(30, Hits());
  for (uint32_t i = 0; i < 30; ++i) {
    CheckHit(KeyOf(i));
  }
  FlushOperands(5, 15, /*size=*/20);
  read();
  ASSERT_EQ(40, Adds());
  ASSERT_EQ(30, Misses());
}

TEST_F(DBDeltaCacheTest, EachKindOfReadUsesTheCache) {
  Start();
  DoPut(kKey, "base");
  ASSERT_OK(Flush());
  FlushOne(kKey, "1");
  FlushOne(kKey, "2");
  ReadOptions read_options;
  read_options.fill_cache = false;
  std::string value;
  ASSERT_OK(db_->Get(read_options, kKey, &value));
  ASSERT_EQ("base,1,2", value);
  ASSERT_EQ(0, Adds());
  CheckMiss(kKey);
  ASSERT_OK(db_->Get(read_options, kKey, &value));
  ASSERT_EQ("base,1,2", value);
  ASSERT_EQ(1, Hits());

  std::vector<PinnableSlice> operands(10);
  GetMergeOperandsOptions operand_options;
  operand_options.expected_max_number_of_operands = 10;
  int num_operands = 0;
  ASSERT_OK(db_->GetMergeOperands(ReadOptions(), db_->DefaultColumnFamily(),
                                  kKey, operands.data(), &operand_options,
                                  &num_operands));
  ASSERT_EQ(3, num_operands);
  ASSERT_EQ("base", operands[0]);
  ASSERT_EQ("1", operands[1]);
  ASSERT_EQ("2", operands[2]);
  PinnableWideColumns columns;
  ASSERT_OK(db_->GetEntity(ReadOptions(), db_->DefaultColumnFamily(), kKey,
                           &columns));
  ASSERT_EQ("base,1,2", columns.columns().front().value());
  ASSERT_EQ(3, Hits());
  ASSERT_EQ(2, Misses());
  // A pinned operand outlives its entry.
  FlushOne(kOther, "only");
  CheckMiss(kOther);
  PinnableSlice pinned;
  ASSERT_OK(
      db_->Get(ReadOptions(), db_->DefaultColumnFamily(), kOther, &pinned));
  ASSERT_OK(db_->SetOptions({{"delta_cache_size", "0"}}));
  ASSERT_EQ("only", pinned);
}

TEST_F(DBDeltaCacheTest, ReadOnlyDBUsesTheCache) {
  Options options = DeltaOptions();
  Start(options);
  FlushOne(kKey, "1");
  Close();
  ASSERT_OK(ReadOnlyReopen(options));
  ASSERT_EQ("1", Get(kKey));
  ASSERT_EQ(1, Adds());
  ASSERT_EQ("1", Get(kKey));
  ASSERT_EQ(1, Hits());
  Close();
}

TEST_F(DBDeltaCacheTest, ColumnFamiliesHaveSeparateCaches) {
  Options options = DeltaOptions();
  Start(options);
  CreateAndReopenWithCF({"other"}, options);
  for (const int family : {0, 1}) {
    ASSERT_OK(Merge(family, kKey, "of family " + std::to_string(family)));
    ASSERT_OK(Flush(family));
  }
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ("of family 0", Get(0, kKey));
    ASSERT_EQ("of family 1", Get(1, kKey));
  }
  ASSERT_EQ(2, Misses());
  ASSERT_EQ(2, Hits());
  ASSERT_OK(Merge(1, kKey, "again"));
  ASSERT_OK(Flush(1));
  ASSERT_OK(db_->SetOptions(handles_[0], {{"delta_cache_size", "0"}}));
  ASSERT_EQ("of family 0", Get(0, kKey));
  ASSERT_EQ("of family 1,again", Get(1, kKey));
  ASSERT_EQ(3, Hits());
  const std::vector<std::string> values =
      MultiGet({0, 1, 1}, {kKey, kKey, kOther}, nullptr, /*batched=*/true);
  ASSERT_EQ((std::vector<std::string>{"of family 0", "of family 1,again",
                                      "NOT_FOUND"}),
            values);
  ASSERT_EQ(4, Hits());
}

TEST_F(DBDeltaCacheTest, CapacityFollowsTheOption) {
  Options options = ModelDBTest::DeltaOptions();
  BlockBasedTableOptions table_options;
  table_options.block_cache = NewLRUCache(size_t{64} << 20);
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  Start(options);
  ASSERT_EQ(size_t{2} << 20, Stat("cache-capacity"));
  FlushOperands(0, 100, /*size=*/1000);
  Check();
  ASSERT_EQ(100, Stat("cache-entries"));
  ASSERT_GT(Stat("cache-bytes"), 100 * 1000);
  ASSERT_GE(Stat("cache-charged-bytes"), Stat("cache-bytes"));
  std::map<std::string, std::string> roles;
  ASSERT_TRUE(
      db_->GetMapProperty(DB::Properties::kBlockCacheEntryStats, &roles));
  ASSERT_EQ(std::to_string(Stat("cache-charged-bytes")),
            roles[BlockCacheEntryStatsMapKeys::UsedBytes(
                CacheEntryRole::kDeltaCache)]);
  ASSERT_OK(db_->SetOptions({{"delta_cache_size", "100000"}}));
  ASSERT_EQ(100000, Stat("cache-capacity"));
  ASSERT_LE(Stat("cache-bytes"), 100000);
  Check();
  // The capacity is a share of the block cache again.
  ASSERT_OK(
      db_->SetOptions({{"delta_cache_size", std::to_string(UINT64_MAX)}}));
  ASSERT_EQ(size_t{2} << 20, Stat("cache-capacity"));
  Check();
  const uint64_t evicted = Stat("cache-evicted");
  ASSERT_GT(evicted, 0);
  ASSERT_OK(db_->SetOptions({{"delta_cache_size", "0"}}));
  ASSERT_EQ(0, Stat("cache-capacity"));
  ASSERT_EQ(0, Stat("cache-entries"));
  // A counter, which is exported as such.
  ASSERT_GT(Stat("cache-evicted"), evicted);
  ASSERT_EQ(0, Stat("cache-charged-bytes"));
  const uint64_t misses = Misses();
  Check();
  ASSERT_EQ(misses, Misses());
  ASSERT_NOK(db_->SetOptions({{"delta_cache_size", "large"}}));
  // Changes of other options do not affect the capacity.
  ASSERT_OK(db_->SetOptions({{"delta_max_buckets", "32"}}));
  ASSERT_EQ(0, Stat("cache-capacity"));
  options.delta_cache_size = 1 << 20;
  Reopen(options);
  ASSERT_EQ(1 << 20, Stat("cache-capacity"));
  Check();
}

TEST_F(DBDeltaCacheTest, CacheFitsIntoAStrictBlockCache) {
  for (const bool is_charged : {true, false}) {
    Options options = DeltaOptions();
    BlockBasedTableOptions table_options;
    LRUCacheOptions cache_options;
    cache_options.capacity = size_t{2} << 20;
    cache_options.num_shard_bits = 0;
    cache_options.strict_capacity_limit = true;
    table_options.block_cache = cache_options.MakeSharedCache();
    if (!is_charged) {
      table_options.cache_usage_options
          .options_overrides[CacheEntryRole::kDeltaCache] = {
          /*.charged = */ CacheEntryRoleOptions::Decision::kDisabled};
    }
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
    options.delta_cache_size = size_t{16} << 20;
    Start(options);
    // Another user reserves nearly the whole block cache.
    CacheReservationManagerImpl<CacheEntryRole::kMisc> others(
        table_options.block_cache);
    if (is_charged) {
      ASSERT_OK(others.UpdateCacheReservation(cache_options.capacity -
                                              (size_t{768} << 10)));
    }
    Random rnd(301);
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 2000; ++i) {
        ASSERT_OK(Merge("k" + std::to_string(i), rnd.RandomString(500)));
      }
      ASSERT_OK(Flush());
    }
    for (int i = 0; i < 2000; ++i) {
      ASSERT_EQ(4 * 500 + 3, Get("k" + std::to_string(i)).size());
      ASSERT_EQ(4 * 500 + 3, Get("k" + std::to_string(i)).size());
    }
    ASSERT_GT(Hits(), 0);
    ASSERT_LE(table_options.block_cache->GetUsage(), cache_options.capacity);
    if (is_charged) {
      ASSERT_GT(Stat("cache-charged-bytes"), 0);
      ASSERT_LE(Stat("cache-charged-bytes"), size_t{512} << 10);
      ASSERT_LE(Stat("cache-bytes"), Stat("cache-charged-bytes"));
      ASSERT_LT(Stat("cache-entries"), 1000);
    } else {
      ASSERT_EQ(0, Stat("cache-charged-bytes"));
      ASSERT_EQ(2000, Stat("cache-entries"));
    }
  }
}

// A compaction filter that removes operands makes cached operands unusable.
TEST_F(DBDeltaCacheTest, EntriesAreNotUsedAfterAFilterRemovedOperands) {
  XFilter filter;
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  Start(options);
  FlushOne(kKey, "1");
  ASSERT_OK(Merge(kKey, "x"));
  ASSERT_OK(Flush());
  FlushOne(kKey, "2");
  ASSERT_EQ("1,x,2", Get(kKey));
  ASSERT_EQ("1,x,2", Get(kKey));
  ASSERT_EQ(1, Hits());
  // The operands have become a value without the filtered one, so the cached
  // operands are not used any more.
  ASSERT_OK(CompactAll());
  const uint64_t hits = Hits();
  CheckKey(kKey);
  CheckKey(kKey);
  ASSERT_EQ(hits, Hits());
}

// Reads of old Versions and of the current one share a cache and return the
// values of their Version.
class DBDeltaCacheOldVersionsTest
    : public DBDeltaCacheTest,
      public testing::WithParamInterface<uint32_t> {
 protected:
  // The state of the files when all writes were flushed.
  struct Past {
    SuperVersion* super_version;
    SequenceNumber seq;
    State state;
  };

  ~DBDeltaCacheOldVersionsTest() override { DropAll(); }

  void DropAll() {
    while (!past_.empty()) {
      Drop(0);
    }
  }
  void Drop(size_t i) {
    dbfull()->CleanupSuperVersion(past_[i].super_version);
    past_.erase(past_.begin() + static_cast<int64_t>(i));
  }
  void Keep() {
    ASSERT_OK(Flush());
    past_.push_back({Family()->GetReferencedSuperVersion(dbfull()),
                     db_->GetLatestSequenceNumber(), state_});
  }

  void CheckPast(const Past& past, const std::string& key) {
    // The reader may have taken its sequence number long after its
    // SuperVersion.
    for (const SequenceNumber seq :
         {past.seq, db_->GetLatestSequenceNumber()}) {
      const LookupKey lookup_key(key, seq);
      MergeContext merge_context;
      SequenceNumber covering = 0;
      PinnedIteratorsManager pinned;
      PinnableSlice value;
      Status s;
      past.super_version->current->Get(
          ReadOptions(), lookup_key, &value, /*columns=*/nullptr,
          /*timestamp=*/nullptr, &s, &merge_context, &covering, &pinned);
      const auto expected = past.state.find(key);
      if (expected == past.state.end()) {
        ASSERT_TRUE(s.IsNotFound()) << key << " " << s.ToString();
      } else {
        ASSERT_OK(s);
        ASSERT_EQ(expected->second, value) << key << " at " << seq;
      }
    }
  }
  // Checks random keys, each in the current Version or in an old one.
  void CheckSome(Random* rnd) {
    for (int i = 0; i < 60; ++i) {
      const std::string key = KeyOf(rnd->Uniform(kNumKeys));
      if (past_.empty() || rnd->OneIn(2)) {
        CheckKey(key);
      } else {
        CheckPast(past_[rnd->Uniform(static_cast<int>(past_.size()))], key);
      }
      if (HasFailure()) {
        return;
      }
    }
  }

  std::vector<Past> past_;
};

INSTANTIATE_TEST_CASE_P(Seeds, DBDeltaCacheOldVersionsTest,
                        testing::Range(uint32_t{1}, uint32_t{13}));

TEST_P(DBDeltaCacheOldVersionsTest, OldAndCurrentVersionsReadTheirValues) {
  Random rnd(GetParam());
  Options options = DeltaOptions();
  options.delta_max_buckets = GetParam() % 2 == 0 ? 4 : 64;
  options.delta_bucket_split_ratio = 0.2;
  // With automatic compactions, jobs also end at moments that the test does not
  // choose.
  options.disable_auto_compactions = GetParam() % 4 < 2;
  options.enable_blob_files = GetParam() % 3 == 0;
  options.delta_cache_size = GetParam() % 5 == 0 ? 400000 : 4 << 20;
  if (GetParam() % 3 != 1) {
    // Filters report many keys that are not in their files.
    BlockBasedTableOptions table_options;
    table_options.filter_policy.reset(NewBloomFilterPolicy(1));
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  }
  Start(options);
  if (GetParam() % 2 == 0) {
    FoldSome(2000);
  }
  for (int round = 0; round < 150 && !HasFailure(); ++round) {
    RandomWrites(1 + static_cast<int>(rnd.Uniform(150)), &rnd);
    CheckSome(&rnd);
    switch (rnd.Uniform(8)) {
      case 0:
      case 1:
      case 2:
        ASSERT_OK(Flush());
        break;
      case 3:
      case 4:
        if (past_.size() >= 4) {
          Drop(rnd.Uniform(static_cast<int>(past_.size())));
        }
        Keep();
        break;
      case 5:
        if (options.disable_auto_compactions) {
          MergeFlushed();
        }
        break;
      case 6:
        ASSERT_OK(CompactAll());
        break;
      default:
        if (rnd.OneIn(2)) {
          if (rnd.OneIn(2)) {
            // This makes the entries cover everything that is taken in.
            ASSERT_OK(Flush());
            CheckSome(&rnd);
          }
          Fold();
        }
        // The values' sequence numbers become zero.
        if (rnd.OneIn(2)) {
          ASSERT_OK(ForceCompaction());
        }
        if (rnd.OneIn(3)) {
          DoSnapshot();
        }
        if (rnd.OneIn(4)) {
          ReleaseSnapshots();
        }
        break;
    }
    CheckSome(&rnd);
    if (round % 20 == 19) {
      Check();
    }
  }
  EXPECT_GT(Hits(), 200);
  EXPECT_GT(Ticker(DELTA_OPERANDS_FOLDED), 0);
  DropAll();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
