//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of sorting the values that scans read, in whole databases.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/address_map/level0_merge.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/column_family.h"
#include "db/scan_sort/scan_debts.h"
#include "db/scan_sort/scan_places.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/listener.h"
#include "rocksdb/perf_level.h"
#include "rocksdb/table.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "util/defer.h"
#include "util/random.h"
#include "utilities/fault_injection_env.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

class DBScanSortTest : public AddressMapDBTestBase {
 protected:
  static constexpr int kKeys = 4000;
  static constexpr size_t kValueSize = 1000;
  static constexpr int kFlushes = 20;

  DBScanSortTest() : AddressMapDBTestBase("db_scan_sort_test") {}
  ~DBScanSortTest() override {
    Close();  // while fault_env_ exists
  }

  // budget: 1000 lets one scan pay for everything.
  Options SortOptions(double budget = 1000) const {
    Options options = MapOptions(/*min_blob_size=*/100);
    options.blob_file_size = 1 << 20;
    options.blob_scan_sort_budget = budget;
    options.max_background_jobs = 4;
    return options;
  }
  Options FaultOptions() {
    if (fault_env_ == nullptr) {
      fault_fs_ = std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
      fault_env_ = NewCompositeEnv(fault_fs_);
    }
    Options options = SortOptions();
    options.env = fault_env_.get();
    options.max_bgerror_resume_count = 0;
    return options;
  }

  std::string ValueOf(int key, int round) const {
    Random rnd(key * 1000 + round + 1);
    return "r" + std::to_string(round) + " " + rnd.RandomString(kValueSize);
  }
  void PutKey(int key, int round) {
    const std::string value = ValueOf(key, round);
    ASSERT_OK(Put(Key(key), value));
    model_[Key(key)] = value;
  }
  // Loads the keys in random order, with flushes in between.
  void Load(int num_keys = kKeys) {
    std::vector<int> keys(num_keys);
    for (int i = 0; i < num_keys; ++i) {
      keys[i] = i;
    }
    RandomShuffle(keys.begin(), keys.end(), /*seed=*/301);
    for (int i = 0; i < num_keys; ++i) {
      PutKey(keys[i], 0);
      if ((i + 1) % (num_keys / kFlushes) == 0) {
        ASSERT_OK(Flush());
      }
    }
    ASSERT_OK(Flush());
    ASSERT_OK(dbfull()->TEST_CompactRange(0, nullptr, nullptr));
    WaitForJobs();
  }

  // Reads all values of [begin, end) and compares them with the model.
  void Scan(int begin = 0, int end = kKeys, bool forward = true,
            const Snapshot* snapshot = nullptr,
            const std::map<std::string, std::string>* model = nullptr) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    CheckRange(iter.get(), begin, end, forward,
               model == nullptr ? model_ : *model);
  }
  void CheckRange(Iterator* iter, int begin, int end, bool forward,
                  const std::map<std::string, std::string>& model) {
    const auto first = model.lower_bound(Key(begin));
    const auto last = model.lower_bound(Key(end));
    std::vector<std::pair<std::string, std::string>> expected(first, last);
    if (forward) {
      iter->Seek(Key(begin));
    } else {
      std::reverse(expected.begin(), expected.end());
      iter->SeekForPrev(Key(end - 1));
    }
    for (const auto& [key, value] : expected) {
      ASSERT_TRUE(iter->Valid()) << key << " " << iter->status().ToString();
      ASSERT_EQ(iter->key(), key);
      ASSERT_EQ(iter->value(), value);
      forward ? iter->Next() : iter->Prev();
    }
    ASSERT_OK(iter->status());
  }
  void CheckGets() {
    for (const auto& [key, value] : model_) {
      ASSERT_EQ(Get(key), value) << key;
    }
  }

  // Scans all values until a job has come to a point of interest. The first
  // scans make the ranges.
  void ScanUntil(const std::function<bool()>& condition, bool waits = true) {
    for (int i = 0; i < 100 && !condition(); ++i) {
      // Reads may fail when the file system has.
      std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      }
      iter->status().PermitUncheckedError();
      iter.reset();
      if (waits) {
        dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
      }
      env_->SleepForMicroseconds(1000);
    }
    ASSERT_TRUE(condition());
  }

  // Scans until the keys are at so few places. The first scans make the ranges,
  // and what they have paid before is lost.
  void SortByScans(int places, int begin = 0, int end = kKeys,
                   bool forward = true) {
    for (int i = 0; i < 50 && Places(begin, end) > places; ++i) {
      Scan(begin, end, forward);
      WaitForSorts();
    }
    ASSERT_LE(Places(begin, end), places);
  }

  // Waits until no sort is due or runs.
  void WaitForSorts() {
    ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
    WaitForJobs();
  }

  // Returns the number of places that a scan of the keys visits.
  int Places(int begin = 0, int end = kKeys) {
    ScanPlaces places;
    int n = 0;
    for (auto it = model_.lower_bound(Key(begin));
         it != model_.lower_bound(Key(end)); ++it) {
      const AddressMapStore* const blobs = Blobs();
      const AddressMap::Lookup found =
          blobs->map()->FindDirect(blobs->HashOf(it->first),
                                   /*pin=*/false);
      EXPECT_TRUE(found.found) << it->first;
      const MapAddress& address = found.entry.address;
      n += places.Add(address.slot, address.offset, address.size) ? 1 : 0;
    }
    return n;
  }
  uint64_t SortedBytes() { return Ticker(BLOB_MAP_SCAN_SORT_BYTES_WRITTEN); }
  uint64_t NumSorts() { return Ticker(BLOB_MAP_SCAN_SORTS); }
  uint64_t Debt() {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(db_->GetMapProperty("rocksdb.blob-address-map", &values));
    return std::stoull(values["scan-debt"]);
  }
  void CheckDb() {
    CheckGets();
    Scan();
    WaitForSorts();
    CheckMap(model_.size());
    Reopen(options_);
    CheckGets();
    CheckMap(model_.size());
  }
  void ReopenFor(const Options& options) {
    options_ = options;
    DestroyAndReopen(options);
  }

  std::map<std::string, std::string> model_;
  Options options_;
  std::shared_ptr<FaultInjectionTestFS> fault_fs_;
  std::unique_ptr<Env> fault_env_;
};

TEST_F(DBScanSortTest, ScanHasItsValuesSorted) {
  for (const bool forward : {true, false}) {
    SCOPED_TRACE(forward);
    model_.clear();
    ReopenFor(SortOptions());
    Load();
    const int before = Places();
    EXPECT_GT(before, kKeys / 3);
    SortByScans(40, 0, kKeys, forward);
    EXPECT_GE(SortedBytes(), uint64_t{kKeys} * kValueSize);
    EXPECT_LE(SortedBytes(), uint64_t{kKeys} * (kValueSize + 100));
    // Sorted values are not sorted again.
    const uint64_t sorted = SortedBytes();
    for (int i = 0; i < 10; ++i) {
      Scan(0, kKeys, forward);
    }
    WaitForSorts();
    EXPECT_EQ(SortedBytes(), sorted);
    CheckDb();
  }
}

// While files are not deleted, no job is scheduled, but scans are charged.
TEST_F(DBScanSortTest, BudgetChangesWhileNoJobIsScheduled) {
  DestroyAndReopen(SortOptions());
  ASSERT_OK(db_->DisableFileDeletions());
  for (const double budget : {0.0, 7.0}) {
    ASSERT_OK(
        db_->SetOptions({{"blob_scan_sort_budget", std::to_string(budget)}}));
    EXPECT_EQ(Blobs()->scan_debts()->budget(), budget);
  }
  ASSERT_OK(db_->EnableFileDeletions());
}

TEST_F(DBScanSortTest, NothingIsSortedWithoutABudget) {
  ReopenFor(SortOptions(/*budget=*/0));
  Load();
  const int before = Places();
  for (int i = 0; i < 10; ++i) {
    Scan();
  }
  WaitForSorts();
  EXPECT_EQ(Places(), before);
  EXPECT_EQ(NumSorts(), 0U);
  EXPECT_EQ(Debt(), 0U);
  ASSERT_OK(db_->SetOptions({{"blob_scan_sort_budget", "1000"}}));
  SortByScans(40);
}

TEST_F(DBScanSortTest, SortsCostAtMostWhatScansHaveLost) {
  ReopenFor(SortOptions(/*budget=*/1));
  Load();
  uint64_t scans = 0;
  while (SortedBytes() == 0) {
    ASSERT_LE(++scans, 20U);
    Scan();
    WaitForSorts();
  }
  // A scan loses 16 KB for each value, and a sort reads and writes it.
  EXPECT_GE(scans, 1U);
  uint64_t debt = 0;
  for (int i = 0; i < 20; ++i) {
    Scan();
    WaitForSorts();
    debt = Debt();
  }
  EXPECT_LE(SortedBytes(), uint64_t{kKeys} * (kValueSize + 100));
  EXPECT_LE(debt, uint64_t{kKeys} * ScanDebts::kPlaceCost);
}

TEST_F(DBScanSortTest, OnlyScannedRangesAreSorted) {
  ReopenFor(SortOptions());
  constexpr int kMany = 16000;
  Load(kMany);
  SortByScans(2, 0, 100);
  EXPECT_GT(SortedBytes(), 0U);
  EXPECT_LE(SortedBytes(), 2 * ScanDebts::kMinRange);
  EXPECT_GT(Places(8000, 12000), 1000);
  SortByScans(40, 8000, 12000);
  EXPECT_GT(Places(13500, 16000), 500);
}

TEST_F(DBScanSortTest, PointReadsAndShortScansDoNotCount) {
  ReopenFor(SortOptions());
  Load();
  CheckGets();
  std::vector<std::string> keys;
  for (const auto& entry : model_) {
    keys.push_back(entry.first);
  }
  const std::vector<Slice> slices(keys.begin(), keys.end());
  std::vector<std::string> values;
  for (const Status& s : db_->MultiGet(ReadOptions(), slices, &values)) {
    ASSERT_OK(s);
  }
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  for (const auto& [key, value] : model_) {
    iter->Seek(key);
    ASSERT_EQ(iter->value(), value);
  }
  iter.reset();
  WaitForSorts();
  EXPECT_EQ(NumSorts(), 0U);
  EXPECT_EQ(Debt(), 0U);
}

// A seek reads each file of level 0. A compaction takes them away when seeks
// have paid for it, but not without a budget, nor if the block cache has the
// blocks, nor against the options. The perf level does not matter.
TEST_F(DBScanSortTest, SeeksHaveLevel0Compacted) {
  const PerfLevel level = GetPerfLevel();
  SetPerfLevel(PerfLevel::kDisable);
  const Defer restore([level] { SetPerfLevel(level); });
  Options options = SortOptions();
  DestroyAndReopen(options);
  Load();
  for (int file = 0; file < 2; ++file) {
    for (int key = file; key < kKeys; key += 100) {
      PutKey(key, 1);
    }
    ASSERT_OK(Flush());
  }
  WaitForJobs();
  ASSERT_EQ(NumTableFilesAtLevel(0), 2);
  const auto seek = [&] {
    for (int i = 0; i < 300; ++i) {
      Scan(i, i + 1);
    }
    WaitForJobs();
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
  };
  const auto level0_debt = [&] {
    std::map<std::string, std::string> properties;
    EXPECT_TRUE(
        db_->GetMapProperty(DB::Properties::kBlobAddressMap, &properties));
    return std::stoull(properties.at("level0-scan-debt"));
  };
  // The block cache of CurrentOptions() keeps nothing with AddressSanitizer.
  BlockBasedTableOptions table_options;
  const std::shared_ptr<TableFactory> cached(
      NewBlockBasedTableFactory(table_options));
  table_options.no_block_cache = true;
  const std::shared_ptr<TableFactory> uncached(
      NewBlockBasedTableFactory(table_options));

  options.blob_scan_sort_budget = 0;
  options.table_factory = uncached;
  Reopen(options);
  seek();
  EXPECT_EQ(NumTableFilesAtLevel(0), 2);

  options.blob_scan_sort_budget = 1000;
  options.disable_auto_compactions = true;
  Reopen(options);
  seek();
  EXPECT_EQ(NumTableFilesAtLevel(0), 2);

  // The debt of the first seeks is too small for a compaction.
  options.disable_auto_compactions = false;
  options.blob_scan_sort_budget = 0.001;
  options.table_factory = cached;
  Reopen(options);
  seek();
  const uint64_t debt = level0_debt();
  seek();
  EXPECT_EQ(level0_debt(), debt);
  EXPECT_EQ(NumTableFilesAtLevel(0), 2);

  options.table_factory = uncached;
  Reopen(options);
  seek();
  EXPECT_EQ(level0_debt(), 300 * 2 * ScanDebts::kPlaceCost);
  EXPECT_EQ(NumTableFilesAtLevel(0), 2);

  options.blob_scan_sort_budget = 1000;
  Reopen(options);
  seek();
  EXPECT_EQ(NumTableFilesAtLevel(0), 0);
  Scan();
}

// A compaction of level 0 also writes the values that it moves to another path.
TEST_F(DBScanSortTest, PriceOfLevel0CountsValuesThatMove) {
  constexpr uint64_t kSize = 1000;
  constexpr int kMoved = 10;
  for (const uint32_t path_of_level_1 : {0, 1}) {
    SCOPED_TRACE(path_of_level_1);
    Options options = SortOptions();
    options.disable_auto_compactions = true;
    options.cf_paths = {{dbname_, 0}, {dbname_ + "/slow", 0}};
    options.level_blob_path_ids = {0, path_of_level_1};
    DestroyAndReopen(options);
    for (int key = 0; key < kMoved; ++key) {
      PutKey(key, 0);
    }
    ASSERT_OK(Flush());
    const auto price = [this](uint64_t value_size) {
      InstrumentedMutexLock lock(dbfull()->mutex());
      return Level0Merge::PriceOf(*Family()->current()->storage_info(),
                                  Family()->GetLatestMutableCFOptions(),
                                  value_size);
    };
    EXPECT_LT(0, price(0));
    EXPECT_EQ(price(kSize) - price(0), path_of_level_1 * 2 * kMoved * kSize);
    // Values of the base level lie where they belong.
    ASSERT_OK(dbfull()->TEST_CompactRange(0, nullptr, nullptr));
    EXPECT_LT(0, price(0));
    EXPECT_EQ(price(kSize), price(0));
  }
}

// What was paid for level 0 stays paid until its files are gone.
TEST_F(DBScanSortTest, PaymentForLevel0OutlivesVersions) {
  Options options = SortOptions();
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  const auto is_paid = [this] {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return Family()->current()->storage_info()->strata()->level0_is_paid();
  };
  const auto flush = [this](int key) {
    PutKey(key, 0);
    ASSERT_OK(Flush());
  };
  flush(1);
  EXPECT_FALSE(is_paid());
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    VersionStorageInfo* const files = Family()->current()->storage_info();
    files->strata()->SetLevel0Paid(*files);
  }
  EXPECT_TRUE(is_paid());
  flush(2);
  EXPECT_TRUE(is_paid());
  ASSERT_OK(dbfull()->TEST_CompactRange(0, nullptr, nullptr));
  EXPECT_FALSE(is_paid());
  flush(3);
  EXPECT_FALSE(is_paid());
}

TEST_F(DBScanSortTest, CachedValuesDoNotCount) {
  Options options = SortOptions(/*budget=*/0);
  options.blob_cache = NewLRUCache(64 << 20);
  ReopenFor(options);
  Load();
  Scan();
  ASSERT_OK(db_->SetOptions({{"blob_scan_sort_budget", "1000"}}));
  for (const int count : {-1, 0}) {
    ReadOptions read_options;
    if (count >= 0) {
      read_options.blob_prefetch_count = static_cast<size_t>(count);
    }
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    CheckRange(iter.get(), 0, kKeys, /*forward=*/true, model_);
  }
  WaitForSorts();
  EXPECT_EQ(NumSorts(), 0U);
  EXPECT_EQ(Debt(), 0U);
}

TEST_F(DBScanSortTest, NewValuesAreSortedAmongThemselves) {
  ReopenFor(SortOptions());
  Load();
  SortByScans(40);
  const uint64_t sorted = SortedBytes();
  // Each tenth value is overwritten, in ten flushes.
  for (int flush = 0; flush < 10; ++flush) {
    for (int key = flush * 10; key < kKeys; key += 100) {
      PutKey(key, 1);
    }
    ASSERT_OK(Flush());
  }
  WaitForJobs();
  EXPECT_GT(Places(), kKeys / 20);
  SortByScans(100);
  EXPECT_LE(SortedBytes() - sorted, uint64_t{kKeys} / 5 * kValueSize);
  // The order is lost when most values were overwritten.
  for (int flush = 0; flush < 10; ++flush) {
    for (int key = flush; key < kKeys; key += 10) {
      if (key % 4 != 0) {
        PutKey(key, 2);
      }
    }
    ASSERT_OK(Flush());
  }
  WaitForJobs();
  SortByScans(100);
  CheckDb();
}

TEST_F(DBScanSortTest, SnapshotsAndIteratorsSeeTheirValues) {
  ReopenFor(SortOptions(/*budget=*/0));
  Load();
  const auto old_model = model_;
  const Snapshot* const snapshot = db_->GetSnapshot();
  for (int key = 0; key < kKeys; key += 3) {
    PutKey(key, 1);
  }
  for (int key = 1; key < kKeys; key += 3) {
    ASSERT_OK(Delete(Key(key)));
    model_.erase(Key(key));
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  iter->SeekToFirst();
  ASSERT_OK(db_->SetOptions({{"blob_scan_sort_budget", "1000"}}));
  for (int i = 0; i < 3; ++i) {
    Scan(0, kKeys, /*forward=*/true, snapshot, &old_model);
    Scan();
    WaitForSorts();
  }
  EXPECT_GT(SortedBytes(), 0U);
  Scan(0, kKeys, /*forward=*/false, snapshot, &old_model);
  CheckRange(iter.get(), 0, kKeys, /*forward=*/true, model_);
  CheckRange(iter.get(), 0, kKeys, /*forward=*/false, model_);
  iter.reset();
  db_->ReleaseSnapshot(snapshot);
  Compact();
  CheckDb();
}

TEST_F(DBScanSortTest, ValuesOfAnIteratorStayReadable) {
  // The iterator's files are dropped while it stands on a value that was not
  // read yet.
  ReopenFor(SortOptions());
  Load();
  ReadOptions read_options;
  read_options.blob_prefetch_count = 0;
  std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  iter->SeekToFirst();
  ASSERT_TRUE(iter->Valid());
  SortByScans(40);
  CollectBlobGarbageOptions collect;
  ASSERT_OK(db_->CollectBlobGarbage(collect));
  for (const auto& [key, value] : model_) {
    ASSERT_TRUE(iter->Valid());
    ASSERT_EQ(iter->value(), value);
    iter->Next();
  }
  EXPECT_FALSE(iter->Valid());
}

TEST_F(DBScanSortTest, OverwrittenMeanwhile) {
  ReopenFor(SortOptions());
  Load();
  // Between the copies and the change of the addresses, each second value is
  // overwritten, and its old one removed.
  std::atomic<int> num_calls{0};
  EnableCallBack("DBStrata::BackgroundBlobGc::Copy:Copied", [&](void*) {
    if (++num_calls > 1) {
      return;
    }
    for (int key = 0; key < kKeys; key += 2) {
      PutKey(key, 1);
    }
    ASSERT_OK(Flush());
  });
  Scan();
  WaitForSorts();
  Scan();
  WaitForSorts();
  EXPECT_GE(num_calls, 1);
  DisableCallBacks();
  CheckDb();
}

TEST_F(DBScanSortTest, CollectedMeanwhile) {
  // Garbage collections of all files between any two steps of a sort.
  for (const char* const step :
       {"DBStrata::BackgroundBlobGc::MakeSortJob:Picked",
        "BlobRangeSortJob::CopyChunk:Read",
        "DBStrata::BackgroundBlobGc::Copy:Copied",
        "BlobGcStorage::Publish:BeforeSwap", "BlobGcStorage::Publish:Swapped",
        "DBStrata::BackgroundBlobGc::Run:AfterEdit"}) {
    SCOPED_TRACE(step);
    model_.clear();
    ReopenFor(SortOptions());
    Load();
    for (int key = 0; key < kKeys; key += 5) {
      PutKey(key, 1);
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    std::atomic<int> num_calls{0};
    std::atomic<bool> is_collecting{false};
    EnableCallBack(step, [&](void*) {
      if (is_collecting || Ticker(BLOB_MAP_SCAN_SORTS) > 0 || ++num_calls > 1) {
        return;
      }
      is_collecting = true;
      std::thread([&] {
        ASSERT_OK(db_->CollectBlobGarbage(CollectBlobGarbageOptions()));
      }).join();
      is_collecting = false;
    });
    Scan();
    WaitForSorts();
    Scan();
    WaitForSorts();
    EXPECT_GE(num_calls, 1);
    DisableCallBacks();
    CheckDb();
  }
}

TEST_F(DBScanSortTest, EditThatFails) {
  ReopenFor(FaultOptions());
  Load();
  std::atomic<bool> has_failed{false};
  EnableCallBack("DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit",
                 [&](void*) {
                   if (!has_failed.exchange(true)) {
                     fault_fs_->SetFilesystemActive(false, RetryableError());
                   }
                 });
  ScanUntil([&] { return has_failed.load(); });
  fault_fs_->SetFilesystemActive(true);
  DisableCallBacks();
  CheckGets();
  ASSERT_OK(db_->Resume());
  CheckGets();
  SortByScans(40);
  CheckDb();
}

// A job fails, and nothing is written. Scans alone start the next one, although
// other ranges became due while the job ran.
TEST_F(DBScanSortTest, ScansStartSortsAfterOneThatFailed) {
  ReopenFor(SortOptions());
  Load();
  std::atomic<bool> has_failed{false};
  EnableCallBack("BlobRangeSortJob::Run:BeforeFinish", [&](void* arg) {
    if (!has_failed.exchange(true)) {
      Scan();
      *static_cast<Status*>(arg) = Status::NoSpace("injected");
    }
  });
  ScanUntil([&] { return has_failed.load(); });
  DisableCallBacks();
  WaitForSorts();
  const uint64_t before = NumSorts();
  ScanUntil([&] { return NumSorts() > before; });
  SortByScans(40);
  CheckDb();
}

// There is no room for a sort while files of failed jobs have to wait. Their
// pause ends without an event, so scans ask for the sort again and again.
TEST_F(DBScanSortTest, ScansAskAgainForASortThatHasToWait) {
  Options options = SortOptions();
  options.blob_gc_space_amp_limit = 0;
  ReopenFor(options);
  Load();
  for (int key = 0; key < kKeys; key += 3) {
    PutKey(key, 1);
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  std::set<uint64_t> files;
  for (const BlobMetaData& file : BlobFiles()) {
    files.insert(file.blob_file_number);
  }
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    Blobs()->gc()->OnFailed(files);
  }
  ASSERT_OK(db_->SetOptions({{"blob_gc_space_amp_limit", "1.2"}}));
  options_.blob_gc_space_amp_limit = 1.2;
  std::atomic<int> num_asked{0};
  EnableCallBack("DBStrata::OnScanDebtDue", [&](void*) { ++num_asked; });
  for (int i = 0; i < 8 * ScanDebts::kAskAgain; ++i) {
    const int begin = i * 7 % (kKeys - 20);
    ASSERT_NO_FATAL_FAILURE(Scan(begin, begin + 20));
  }
  DisableCallBacks();
  EXPECT_EQ(NumSorts(), 0);
  EXPECT_GE(num_asked, 3);
  EXPECT_LE(num_asked, 20);
  CheckDb();
}

// Writes let debts decay, also without a space limit.
TEST_F(DBScanSortTest, DebtsDecayWithoutASpaceLimit) {
  Options options = SortOptions();
  options.blob_gc_space_amp_limit = 0;
  options.blob_scan_sort_budget = 1e-6;
  ReopenFor(options);
  Load();
  Scan();
  const uint64_t before = Debt();
  ASSERT_GT(before, 0U);
  for (int round = 1; round <= 3; ++round) {
    for (int key = 0; key < kKeys; ++key) {
      PutKey(key, round);
    }
    ASSERT_OK(Flush());
  }
  EXPECT_LE(Debt(), before / 2);
}

TEST_F(DBScanSortTest, UnreadableKeysAreNoBackgroundError) {
  Options options = FaultOptions();
  BlockBasedTableOptions table_options;
  table_options.no_block_cache = true;
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  ReopenFor(options);
  Load();
  std::atomic<bool> has_failed{false};
  EnableCallBack("DBStrata::BackgroundBlobGc::MakeSortJob:Picked", [&](void*) {
    if (!has_failed.exchange(true)) {
      fault_fs_->SetFilesystemActive(false, IOStatus::IOError("injected"));
    }
  });
  Status result;
  EnableCallBack("BlobRangeSortJob::Run:BeforeFinish", [&](void* arg) {
    if (!fault_fs_->IsFilesystemActive()) {
      result = *static_cast<Status*>(arg);
      fault_fs_->SetFilesystemActive(true);
    }
  });
  ScanUntil([&] { return has_failed.load(); });
  EXPECT_TRUE(result.IsIOError()) << result.ToString();
  DisableCallBacks();
  PutKey(0, 1);
  ASSERT_OK(Flush());
  CheckDb();
}

TEST_F(DBScanSortTest, CrashBetweenTheSteps) {
  for (const char* const step :
       {"BlobRangeSortJob::CopyChunk:Read",
        "DBStrata::BackgroundBlobGc::Copy:Copied",
        "DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit",
        "DBStrata::BackgroundBlobGc::Run:AfterEdit"}) {
    SCOPED_TRACE(step);
    model_.clear();
    const Options options = FaultOptions();
    ReopenFor(options);
    Load();
    std::atomic<bool> has_crashed{false};
    EnableCallBack(step, [&](void*) {
      if (!has_crashed.exchange(true)) {
        fault_fs_->SetFilesystemActive(false);
      }
    });
    ScanUntil([&] { return has_crashed.load(); });
    DisableCallBacks();
    Close();
    fault_fs_->SetFilesystemActive(true);
    ASSERT_OK(fault_fs_->DropUnsyncedFileData());
    ASSERT_OK(
        fault_fs_->DeleteFilesCreatedAfterLastDirSync(IOOptions(), nullptr));
    fault_fs_->ResetState();
    Reopen(options);
    CheckDb();
  }
}

TEST_F(DBScanSortTest, SpaceStaysBelowTheLimit) {
  Options options = SortOptions();
  options.blob_gc_space_amp_limit = 1.2;
  options.blob_file_size = 128 << 10;
  options.write_buffer_size = 128 << 10;
  ReopenFor(options);
  constexpr int kMany = 16000;
  Load(kMany);
  double largest = 0;
  std::mutex mutex;
  EnableCallBack("DBStrata::BackgroundBlobGc::Run:AfterEdit", [&](void*) {
    InstrumentedMutexLock lock(dbfull()->mutex());
    const double amplification =
        BlobGcPicker::SpaceOf(
            Blobs()->FilesForGc(*Family()->current()->storage_info()), 0)
            .Amplification();
    std::lock_guard<std::mutex> guard(mutex);
    largest = std::max(largest, amplification);
  });
  for (int i = 0; i < 30 && Places(0, kMany) > 600; ++i) {
    Scan(0, kMany);
    WaitForSorts();
  }
  EXPECT_LE(Places(0, kMany), 600);
  EXPECT_GT(largest, 1.0);
  // The files are a fifth of the room that the limit leaves.
  EXPECT_LE(largest, 1.25);
  CheckDb();
  DisableCallBacks();
}

TEST_F(DBScanSortTest, ValuesStayOnTheirPaths) {
  Options options = SortOptions();
  options.cf_paths = {{dbname_ + "_p0", 0}, {dbname_ + "_p1", 0}};
  options.level_sst_path_ids = {0};
  options.level_blob_path_ids = {1};
  ReopenFor(options);
  Load();
  SortByScans(40);
  EXPECT_GT(SortedBytes(), 0U);
  for (const BlobMetaData& file : BlobFiles()) {
    EXPECT_EQ(file.blob_file_path, dbname_ + "_p1");
  }
  CheckDb();
}

TEST_F(DBScanSortTest, ValuesAreRecompressed) {
  if (!Snappy_Supported()) {
    ROCKSDB_GTEST_SKIP("needs Snappy");
    return;
  }
  Options options = SortOptions(/*budget=*/0);
  options.blob_compression_type = kSnappyCompression;
  ReopenFor(options);
  Load();
  options.blob_compression_type = kNoCompression;
  options.blob_scan_sort_budget = 1000;
  options_ = options;
  Reopen(options);
  SortByScans(40);
  EXPECT_GE(SortedBytes(), uint64_t{kKeys} * kValueSize);
  CheckDb();
}

TEST_F(DBScanSortTest, DamagedFileIsLeftAlone) {
  ReopenFor(SortOptions(/*budget=*/0));
  Load();
  const BlobMetaData file = BlobFiles().front();
  const std::string path = file.blob_file_path + "/" + file.blob_file_name;
  Close();
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, path, &contents));
  contents[contents.size() / 3] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, contents, path));
  options_.blob_scan_sort_budget = 1000;
  Reopen(options_);
  const auto scan = [&] {
    int num_read = 0;
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    for (const auto& [key, value] : model_) {
      iter->Seek(key);
      for (int i = 0; i < 10 && iter->Valid(); ++i) {
        iter->Next();
      }
      num_read += Get(key) == value ? 1 : 0;
    }
    EXPECT_EQ(num_read, kKeys - 1);
  };
  for (int i = 0; i < 10 && Places() > kKeys / 5; ++i) {
    scan();
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  }
  // All other files are sorted.
  EXPECT_GT(SortedBytes(), uint64_t{kKeys} * kValueSize / 2);
  EXPECT_LE(Places(), kKeys / 5);
  scan();
}

TEST_F(DBScanSortTest, CloseEndsASort) {
  ReopenFor(SortOptions());
  Load();
  std::atomic<bool> is_closing{false};
  EnableCallBack("BlobRangeSortJob::CopyChunk:Read", [&](void*) {
    is_closing = true;
    for (int i = 0; i < 100; ++i) {
      env_->SleepForMicroseconds(1000);
    }
  });
  ScanUntil([&] { return is_closing.load(); }, /*waits=*/false);
  Reopen(options_);
  DisableCallBacks();
  CheckDb();
}

TEST_F(DBScanSortTest, ListenersAreTold) {
  class Listener : public EventListener {
   public:
    void OnBlobGarbageCollectionBegin(
        DB* /*db*/, const BlobGarbageCollectionInfo& info) override {
      num_begun += info.is_scan_sort ? 1 : 0;
    }
    void OnBlobGarbageCollectionCompleted(
        DB* /*db*/, const BlobGarbageCollectionInfo& info) override {
      num_completed += info.is_scan_sort && info.status.ok() ? 1 : 0;
      num_moved += info.is_scan_sort && !info.output_files.empty()
                       ? info.values_moved
                       : 0;
    }
    std::atomic<int> num_begun{0};
    std::atomic<int> num_completed{0};
    std::atomic<uint64_t> num_moved{0};
  };
  const auto listener = std::make_shared<Listener>();
  Options options = SortOptions();
  options.listeners.push_back(listener);
  ReopenFor(options);
  Load();
  SortByScans(40);
  EXPECT_GE(listener->num_moved, uint64_t{kKeys} / 2);
  EXPECT_EQ(listener->num_begun, listener->num_completed);
  EXPECT_EQ(static_cast<uint64_t>(listener->num_begun), NumSorts());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
