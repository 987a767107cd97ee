//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of hot values (blob_hot_bytes) in whole databases.

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
#include "db/blob_heat/blob_heat.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/listener.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/copy_layout.h"
#include "rocksdb/utilities/path_migration.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/held_point_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "util/compression.h"
#include "util/random.h"
#include "utilities/fault_injection_env.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

// The values belong to path 1, and the hot ones are on path 0.
class DBBlobHeatTest : public AddressMapDBTestBase {
 protected:
  static constexpr size_t kValueSize = 1000;
  static constexpr uint64_t kBudget = uint64_t{1} << 20;
  // Each value that is read twice is promoted by a job of its own.
  static constexpr uint64_t kSmallBudget = uint64_t{64} << 10;
  static constexpr uint32_t kHome = 1;
  static constexpr int kRounds = 100;

  // Collects the errors of jobs.
  class FailureListener : public EventListener {
   public:
    void OnBlobGarbageCollectionCompleted(
        DB* /*db*/, const BlobGarbageCollectionInfo& info) override {
      if (!info.status.ok()) {
        const std::lock_guard<std::mutex> lock(mutex_);
        failures_.push_back(info.status);
      }
    }
    std::vector<Status> Failures() const {
      const std::lock_guard<std::mutex> lock(mutex_);
      return failures_;
    }

   private:
    mutable std::mutex mutex_;
    std::vector<Status> failures_;
  };

  DBBlobHeatTest() : AddressMapDBTestBase("db_blob_heat_test") {}
  ~DBBlobHeatTest() override {
    Close();  // while fault_env_ exists
  }

  Options HeatOptions(uint64_t budget = kBudget) const {
    Options options = MapOptions(/*min_blob_size=*/100);
    options.cf_paths = {{dbname_, UINT64_MAX}, {dbname_ + "_2", UINT64_MAX}};
    options.level_sst_path_ids = {0};
    options.level_blob_path_ids = {kHome};
    options.blob_file_size = uint64_t{1} << 20;
    options.blob_hot_bytes = budget;
    options.max_background_jobs = 4;
    return options;
  }
  Options FaultOptions(uint64_t budget = kSmallBudget) {
    if (fault_env_ == nullptr) {
      fault_fs_ = std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
      fault_env_ = NewCompositeEnv(fault_fs_);
    }
    Options options = HeatOptions(budget);
    options.env = fault_env_.get();
    options.max_bgerror_resume_count = 0;
    return options;
  }

  std::string ValueOf(int key, int round) const {
    Random rnd(key * 1000 + round + 1);
    return "r" + std::to_string(round) + " " + rnd.RandomString(kValueSize);
  }
  void PutKey(int key, int round = 0) {
    const std::string value = ValueOf(key, round);
    ASSERT_OK(Put(Key(key), value));
    model_[Key(key)] = value;
  }
  // Puts a value that takes little more than kValueSize when it is compressed.
  void PutCompressible(int key, size_t size) {
    const std::string value =
        ValueOf(key, 0) + std::string(size - kValueSize, 'x');
    ASSERT_OK(Put(Key(key), value));
    model_[Key(key)] = value;
  }
  void PutKeys(int begin, int end, int round = 0) {
    for (int key = begin; key < end; ++key) {
      ASSERT_NO_FATAL_FAILURE(PutKey(key, round));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
  }
  void CheckGets() {
    for (const auto& [key, value] : model_) {
      ASSERT_EQ(Get(key), value) << key;
    }
  }
  // Checks all values, the map, the budget, and the same after a reopen.
  void CheckDb(const Options& options) {
    ASSERT_NO_FATAL_FAILURE(CheckGets());
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    ASSERT_NO_FATAL_FAILURE(CheckIterator(iter.get(), model_));
    iter.reset();
    WaitForJobs();
    CheckMap(model_.size());
    EXPECT_LE(HotBytes(), options.blob_hot_bytes);
    Reopen(options);
    ASSERT_NO_FATAL_FAILURE(CheckGets());
    WaitForJobs();
    CheckMap(model_.size());
    EXPECT_LE(HotBytes(), options.blob_hot_bytes);
  }

  // Changes a byte of the key's value in the blob file that has it.
  // dir: where exactly one blob file has the value.
  // *path: set to the path of the file.
  // REQUIRES: the database is closed.
  void DamageValue(const std::string& dir, int key, std::string* path) {
    int num_changed = 0;
    for (const std::string& name : FilesIn(dir, kBlobFile)) {
      std::string contents;
      ASSERT_OK(ReadFileToString(env_, dir + "/" + name, &contents));
      const size_t offset = contents.find(model_[Key(key)]);
      if (offset != std::string::npos) {
        contents[offset + kValueSize / 2] ^= 1;
        *path = dir + "/" + name;
        ASSERT_OK(
            WriteStringToFile(env_, contents, *path, /*should_sync=*/true));
        ++num_changed;
      }
    }
    ASSERT_EQ(num_changed, 1);
  }

  // Returns the place of the newest value of the key.
  BlobFileSlotTable::Place PlaceOf(int key, int cf = 0) {
    const AddressMapStore* const blobs = Blobs(cf);
    const AddressMap::Lookup found =
        blobs->map()->FindDirect(blobs->HashOf(Key(key)), /*pin=*/true);
    EXPECT_TRUE(found.found) << key;
    return found.found ? blobs->file_table().PlaceOf(found.entry.address.slot)
                       : BlobFileSlotTable::Place();
  }
  bool IsHot(int key, int cf = 0) { return PlaceOf(key, cf).hot.is_hot(); }
  int NumHot(int begin, int end, int cf = 0) {
    int n = 0;
    for (int key = begin; key < end; ++key) {
      n += IsHot(key, cf) ? 1 : 0;
    }
    return n;
  }
  // Reads the keys until all of them are hot. A read may find the queue in use,
  // and then does not wait.
  void ReadUntilHot(int begin, int end, int cf = 0) {
    for (int i = 0; i < kRounds && NumHot(begin, end, cf) < end - begin; ++i) {
      for (int key = begin; key < end; ++key) {
        ASSERT_EQ(cf == 0 ? Get(Key(key)) : Get(cf, Key(key)),
                  model_[Key(key)]);
      }
      WaitForJobs();
    }
    ASSERT_EQ(NumHot(begin, end, cf), end - begin);
  }
  // Reads the key until the condition holds.
  void ReadUntil(int key, const std::function<bool()>& condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) {
      Get(Key(key));
      env_->SleepForMicroseconds(1000);
    }
    ASSERT_TRUE(condition());
  }

  // True while a job that promotes or demotes is scheduled or runs.
  bool IsPromoting() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return Blobs()->heat()->is_busy();
  }

  uint64_t MapProperty(const std::string& name, int cf = 0) {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(
        db_->GetMapProperty(Handle(cf), "rocksdb.blob-address-map", &values));
    return values.count(name) == 0 ? UINT64_MAX : std::stoull(values[name]);
  }
  uint64_t HotBytes(int cf = 0) { return MapProperty("hot-bytes", cf); }
  uint64_t HotFiles(int cf = 0) { return MapProperty("hot-files", cf); }

  Contents model_;
  std::shared_ptr<FaultInjectionTestFS> fault_fs_;
  std::unique_ptr<Env> fault_env_;
};

TEST_F(DBBlobHeatTest, ValuesThatAreReadOftenMoveToTheHotPath) {
  const Options options = HeatOptions();
  DestroyAndReopen(options);
  PutKeys(0, 200);
  EXPECT_EQ(HotFiles(), 0);
  EXPECT_EQ(FilesIn(dbname_, kBlobFile).size(), 0);
  ReadUntilHot(0, 40);
  EXPECT_EQ(NumHot(100, 200), 0);
  EXPECT_EQ(PlaceOf(0).path_id, 0);
  EXPECT_EQ(PlaceOf(0).hot.home(), kHome);
  EXPECT_EQ(PlaceOf(100).path_id, kHome);
  EXPECT_EQ(FilesIn(dbname_, kBlobFile).size(), HotFiles());
  EXPECT_GT(HotBytes(), 40 * kValueSize);
  EXPECT_GE(Ticker(BLOB_MAP_HOT_PROMOTED), 40);
  EXPECT_GE(Ticker(BLOB_MAP_HOT_BYTES_PROMOTED), 40 * kValueSize);
  EXPECT_EQ(Ticker(BLOB_MAP_HOT_DEMOTED), 0);

  std::map<std::string, std::string> paths;
  ASSERT_TRUE(db_->GetMapProperty(DB::Properties::kPathStats, &paths));
  EXPECT_EQ(paths["path0.hot-files"], std::to_string(HotFiles()));
  EXPECT_EQ(paths["path0.hot-bytes"], std::to_string(HotBytes()));
  EXPECT_EQ(paths["path1.hot-files"], "0");

  const uint64_t hits = Ticker(BLOB_MAP_HOT_READ);
  for (int key = 0; key < 10; ++key) {
    ASSERT_EQ(Get(Key(key)), model_[Key(key)]);
  }
  EXPECT_EQ(Ticker(BLOB_MAP_HOT_READ), hits + 10);
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, MultiGetCounts) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  for (int i = 0; i < kRounds && NumHot(0, 4) < 4; ++i) {
    const std::vector<std::string> values =
        MultiGet({Key(0), Key(1), Key(2), Key(3)}, nullptr);
    for (int key = 0; key < 4; ++key) {
      ASSERT_EQ(values[key], model_[Key(key)]);
    }
    WaitForJobs();
  }
  EXPECT_EQ(NumHot(0, 4), 4);
  EXPECT_EQ(NumHot(4, 20), 0);
}

TEST_F(DBBlobHeatTest, OneReadIsNotEnough) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 50);
  CheckGets();
  WaitForJobs();
  EXPECT_EQ(HotFiles(), 0);
}

TEST_F(DBBlobHeatTest, IteratorsDoNotCount) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 50);
  for (int i = 0; i < 10; ++i) {
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    ASSERT_NO_FATAL_FAILURE(CheckIterator(iter.get(), model_));
  }
  WaitForJobs();
  EXPECT_EQ(HotFiles(), 0);
}

TEST_F(DBBlobHeatTest, ReadsThatTheBlobCacheAnswersDoNotCount) {
  Options options = HeatOptions(kSmallBudget);
  options.blob_cache = NewLRUCache(16 << 20);
  DestroyAndReopen(options);
  PutKeys(0, 50);
  for (int i = 0; i < 10; ++i) {
    CheckGets();
  }
  WaitForJobs();
  EXPECT_EQ(HotFiles(), 0);
  // Promoted values stay in the cache.
  ReadOptions read_options;
  read_options.fill_cache = false;
  PutKeys(50, 60);
  for (int i = 0; i < kRounds && NumHot(50, 60) < 10; ++i) {
    for (int key = 50; key < 60; ++key) {
      std::string value;
      ASSERT_OK(db_->Get(read_options, Key(key), &value));
      ASSERT_EQ(value, model_[Key(key)]);
    }
    WaitForJobs();
  }
  EXPECT_EQ(NumHot(50, 60), 10);
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, DemotedValuesStayInTheBlobCache) {
  Options options = HeatOptions(kSmallBudget);
  options.blob_cache = NewLRUCache(16 << 20);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  ReadOptions read_options;
  read_options.fill_cache = false;
  for (int i = 0; i < kRounds && NumHot(0, 5) < 5; ++i) {
    for (int key = 0; key < 5; ++key) {
      std::string value;
      ASSERT_OK(db_->Get(read_options, Key(key), &value));
    }
    WaitForJobs();
  }
  ASSERT_EQ(NumHot(0, 5), 5);
  CheckGets();  // fills the cache
  options.blob_hot_bytes = 0;
  ASSERT_OK(db_->SetOptions({{"blob_hot_bytes", "0"}}));
  WaitForJobs();
  ASSERT_EQ(HotFiles(), 0);
  const uint64_t misses = Ticker(BLOB_DB_CACHE_MISS);
  const uint64_t hits = Ticker(BLOB_DB_CACHE_HIT);
  for (int key = 0; key < 5; ++key) {
    EXPECT_EQ(Get(Key(key)), model_[Key(key)]);
  }
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_MISS), misses);
  EXPECT_GE(Ticker(BLOB_DB_CACHE_HIT), hits + 5);
  CheckDb(options);
}

// The budget holds whatever is read.
TEST_F(DBBlobHeatTest, TheBudgetIsKept) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  std::atomic<uint64_t> most{0};
  EnableCallBack("DBStrata::ScheduleBlobHeat", [&](void*) {
    // The DB mutex is held.
    uint64_t bytes = 0;
    for (const auto& meta :
         Family()->current()->storage_info()->GetBlobFiles()) {
      bytes += meta->hot().is_hot() ? meta->GetBlobFileSize() : 0;
    }
    most = std::max(most.load(), bytes);
  });
  PutKeys(0, 300);
  Random rnd(301);
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 300; ++j) {
      const std::string key = Key(rnd.Skewed(8) % 300);
      ASSERT_EQ(Get(key), model_[key]);
    }
    WaitForJobs();
    ASSERT_LE(HotBytes(), options.blob_hot_bytes);
  }
  EXPECT_LE(most.load(), options.blob_hot_bytes);
  EXPECT_GT(Ticker(BLOB_MAP_HOT_PROMOTED), 0);
  DisableCallBacks();
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, ValuesThatAreReadLessMakeRoom) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 200);
  ReadUntilHot(0, 30);
  // Not all of these fit beside the others.
  ReadUntilHot(100, 140);
  EXPECT_LT(NumHot(0, 30), 30);
  EXPECT_GT(Ticker(BLOB_MAP_HOT_DEMOTED), 0);
  EXPECT_GT(Ticker(BLOB_MAP_HOT_BYTES_DEMOTED), 0);
  for (int key = 0; key < 30; ++key) {
    EXPECT_EQ(PlaceOf(key).path_id, IsHot(key) ? 0 : kHome);
  }
  CheckDb(options);
}

// Values take more space on the hot path than at home.
TEST_F(DBBlobHeatTest, ValuesThatGrowMakeRoom) {
  if (!LZ4_Supported()) {
    ROCKSDB_GTEST_SKIP("needs LZ4");
    return;
  }
  Options options = HeatOptions();
  options.blob_compression_type = kLZ4Compression;
  options.blob_file_size = uint64_t{4} << 20;
  DestroyAndReopen(options);
  for (int key = 0; key < 20; ++key) {
    ASSERT_NO_FATAL_FAILURE(PutCompressible(key, 100000));
  }
  // This one would be too large.
  ASSERT_NO_FATAL_FAILURE(PutCompressible(20, kBudget));
  ASSERT_OK(Flush());
  options.blob_compression_type = kNoCompression;
  ASSERT_OK(db_->SetOptions({{"blob_compression_type", "kNoCompression"}}));
  ReadUntilHot(0, 10);
  EXPECT_GT(HotBytes(), 1000000);
  const uint64_t demoted = Ticker(BLOB_MAP_HOT_DEMOTED);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Get(Key(20)), model_[Key(20)]);
    WaitForJobs();
  }
  EXPECT_FALSE(IsHot(20));
  EXPECT_EQ(Ticker(BLOB_MAP_HOT_DEMOTED), demoted);
  ReadUntilHot(10, 15);
  EXPECT_GT(Ticker(BLOB_MAP_HOT_DEMOTED), demoted);
  EXPECT_EQ(Ticker(BLOB_MAP_GC_FAILED), 0);
  CheckDb(options);
}

// So do the values of a hot file, of which a job takes some from there.
TEST_F(DBBlobHeatTest, HotValuesThatGrowGoHome) {
  if (!LZ4_Supported()) {
    ROCKSDB_GTEST_SKIP("needs LZ4");
    return;
  }
  Options options = HeatOptions();
  options.blob_compression_type = kLZ4Compression;
  DestroyAndReopen(options);
  for (int key = 0; key < 10; ++key) {
    ASSERT_NO_FATAL_FAILURE(PutCompressible(key, 100000));
  }
  PutKeys(20, 30);
  ReadUntilHot(0, 10);
  EXPECT_LT(HotBytes(), 50000);
  // Some of them are read more than others.
  for (int i = 0; i < 5; ++i) {
    for (int key = 0; key < 5; ++key) {
      ASSERT_EQ(Get(Key(key)), model_[Key(key)]);
    }
  }
  options.blob_compression_type = kNoCompression;
  options.blob_hot_bytes = HotBytes() + 100;
  ASSERT_OK(db_->SetOptions(
      {{"blob_compression_type", "kNoCompression"},
       {"blob_hot_bytes", std::to_string(options.blob_hot_bytes)}}));
  ReadUntilHot(20, 24);
  EXPECT_GT(Ticker(BLOB_MAP_HOT_DEMOTED), 0);
  EXPECT_EQ(Ticker(BLOB_MAP_GC_FAILED), 0);
  CheckDb(options);
}

// The same for a collection of garbage. Its copies would not be within the
// budget, so the garbage would stay.
TEST_F(DBBlobHeatTest, HotValuesThatGrowGoHomeFromCollections) {
  if (!LZ4_Supported()) {
    ROCKSDB_GTEST_SKIP("needs LZ4");
    return;
  }
  Options options = HeatOptions();
  options.blob_compression_type = kLZ4Compression;
  DestroyAndReopen(options);
  for (int key = 0; key < 10; ++key) {
    ASSERT_NO_FATAL_FAILURE(PutCompressible(key, 100000));
  }
  PutKeys(20, 30);
  ReadUntilHot(0, 10);
  PutKeys(0, 1, 1);
  PutKeys(4, 5, 1);
  PutKeys(8, 9, 1);
  options.blob_compression_type = kNoCompression;
  options.blob_hot_bytes = HotBytes() + 100;
  ASSERT_OK(db_->SetOptions(
      {{"blob_compression_type", "kNoCompression"},
       {"blob_hot_bytes", std::to_string(options.blob_hot_bytes)}}));
  CollectBlobGarbageOptions collect;
  collect.space_amp_limit = 1.0;
  ASSERT_OK(db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily()));
  WaitForJobs();
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    for (const BlobGcPicker::File& file :
         Blobs()->FilesForGc(*Family()->current()->storage_info())) {
      EXPECT_EQ(file.live_size, file.size) << file.number;
    }
  }
  EXPECT_GT(Ticker(BLOB_MAP_HOT_DEMOTED), 0);
  EXPECT_EQ(Ticker(BLOB_MAP_GC_FAILED), 0);
  CheckDb(options);
}

// The limit for a value is more than what usually waits.
TEST_F(DBBlobHeatTest, ValuesBelowTheLimitMove) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  Random rnd(301);
  for (const size_t size : {kSmallBudget / 15, kSmallBudget / 9}) {
    const std::string value = rnd.RandomString(static_cast<int>(size));
    ASSERT_OK(Put(Key(1), value));
    model_[Key(1)] = value;
    ASSERT_OK(Flush());
    ReadUntilHot(1, 2);
  }
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, LargeValuesStayWhereTheyAre) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  Random rnd(301);
  const std::string large = rnd.RandomString(kSmallBudget / 4);
  ASSERT_OK(Put(Key(1), large));
  model_[Key(1)] = large;
  ASSERT_OK(Flush());
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(Get(Key(1)), large);
  }
  WaitForJobs();
  EXPECT_FALSE(IsHot(1));
}

// Otherwise jobs that copy nothing would follow each other.
TEST_F(DBBlobHeatTest, ReadsOfAFileThatIsAvoidedStartFewJobs) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  std::set<uint64_t> files;
  for (const BlobMetaData& file : BlobFiles()) {
    files.insert(file.blob_file_number);
  }
  PutKeys(20, 40);
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    Blobs()->gc()->OnFailed(files);
  }
  std::atomic<int> num_jobs{0};
  EnableCallBack("BlobPromotionJob::Run:BeforeFinish",
                 [&](void*) { ++num_jobs; });
  for (int i = 0; i < 10000; ++i) {
    ASSERT_EQ(Get(Key(7)), model_[Key(7)]);
    WaitForJobs();
  }
  EXPECT_GE(num_jobs.load(), 1);
  EXPECT_LE(num_jobs.load(), 8);
  DisableCallBacks();
  EXPECT_FALSE(IsHot(7));
  // The values of other files are copied.
  ReadUntilHot(20, 25);
  CheckDb(options);
}

// Each value is in a file of its own.
TEST_F(DBBlobHeatTest, FilesMayBeTiny) {
  Options options = HeatOptions(kSmallBudget);
  options.blob_file_size = 1;
  DestroyAndReopen(options);
  PutKeys(0, 20);
  ReadUntilHot(0, 10);
  CheckDb(options);
}

// Most bytes of a file with one small value are its header, index and footer.
// The file does not become smaller when the value is copied.
TEST_F(DBBlobHeatTest, SmallValuesThatStayAreNotCopied) {
  constexpr int kKeys = 800;
  constexpr int kMaxDemotions = 10 * kKeys;
  Options options = HeatOptions(kSmallBudget);
  options.min_blob_size = 0;
  options.blob_file_size = 1;
  DestroyAndReopen(options);
  std::atomic<int> demotions{0};
  EnableCallBack("BlobDemotionJob::Run:BeforeFinish", [&](void* arg) {
    if (++demotions > kMaxDemotions) {
      *static_cast<Status*>(arg) = Status::Incomplete("too many jobs");
    }
  });
  for (int key = 0; key < kKeys; ++key) {
    model_[Key(key)] = "v" + std::to_string(key);
    ASSERT_OK(Put(Key(key), model_[Key(key)]));
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  // Each value is read as often as the sketch can count.
  for (int i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(CheckGets());
    WaitForJobs();
  }
  EXPECT_GT(NumHot(0, kKeys), 0);
  EXPECT_GT(demotions.load(), 0);
  ASSERT_LE(demotions.load(), kMaxDemotions);
  DisableCallBacks();
  CheckDb(options);
}

// Jobs that make values hot leave the only thread to others in between.
TEST_F(DBBlobHeatTest, GarbageIsCollectedBetweenPromotions) {
  Options options = HeatOptions(kSmallBudget);
  options.max_background_jobs = 1;
  // Jobs of the map run beside the one that is held.
  env_->IncBackgroundThreadsIfNeeded(4, Env::Priority::LOW);
  options.blob_gc_space_amp_limit = 1.1;
  options.blob_file_size = 16 << 10;
  DestroyAndReopen(options);
  PutKeys(0, 100);
  std::vector<bool> is_heat;  // one for each job; protected by the DB mutex
  {
    HeldPoint point("BlobPromotionJob::Run:BeforeFinish");
    Get(Key(7));
    Get(Key(7));
    ASSERT_TRUE(point.WaitUntilReached());
    EnableCallBack("DBStrata::ScheduleBlobHeat",
                   [&](void*) { is_heat.push_back(true); });
    EnableCallBack("DBStrata::ScheduleBlobGc",
                   [&](void*) { is_heat.push_back(false); });
    // There is too much garbage, and other values wait.
    for (int key = 50; key < 100; key += 2) {
      ASSERT_NO_FATAL_FAILURE(PutKey(key, 1));
    }
    ASSERT_OK(Flush());
    ASSERT_TRUE(WaitUntil([this] {
      uint64_t garbage = 0;
      return db_->GetIntProperty(DB::Properties::kLiveBlobFileGarbageSize,
                                 &garbage) &&
             garbage >= 25 * kValueSize;
    }));
    for (int i = 0; i < 3; ++i) {
      for (int key = 20; key < 30; ++key) {
        ASSERT_EQ(Get(Key(key)), model_[Key(key)]);
      }
    }
    ASSERT_TRUE(Blobs()->heat()->queue()->IsDue());
    EXPECT_TRUE(is_heat.empty());
    point.Release();
    WaitForJobs();
  }
  ASSERT_GE(is_heat.size(), 2);
  EXPECT_FALSE(is_heat[0]);
  EXPECT_TRUE(is_heat[1]);
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, ValuesOnTheHotPathAreNotCopied) {
  Options options = HeatOptions(kSmallBudget);
  options.level_blob_path_ids = {0};
  DestroyAndReopen(options);
  PutKeys(0, 20);
  for (int i = 0; i < 10; ++i) {
    CheckGets();
  }
  WaitForJobs();
  EXPECT_EQ(HotFiles(), 0);
}

// Otherwise the values would count as garbage while the MANIFEST is written,
// and writes might be slowed down.
TEST_F(DBBlobHeatTest, CopiesAreLiveWhileTheirEditIsWritten) {
  DestroyAndReopen(HeatOptions(kSmallBudget));
  PutKeys(0, 20);
  const auto live_bytes = [this] {
    return BlobGcPicker::SpaceOf(
               Blobs()->FilesForGc(*Family()->current()->storage_info()),
               /*copies=*/0)
        .live;
  };
  uint64_t before = 0;
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    before = live_bytes();
  }
  std::atomic<uint64_t> during{0};
  EnableCallBack("DBStrata::BackgroundBlobGc::ReserveHotBytes:Reserved",
                 [&](void*) {
                   // The DB mutex is held.
                   during = live_bytes();
                 });
  ReadUntilHot(7, 8);
  DisableCallBacks();
  EXPECT_GT(during + kValueSize / 2, before);
}

// A value changes while a job copies it to the hot path.
TEST_F(DBBlobHeatTest, ValuesChangeWhileTheyArePromoted) {
  const std::vector<std::function<void()>> changes = {
      [this] { PutKey(7, 1); },
      [this] {
        ASSERT_OK(Delete(Key(7)));
        model_.erase(Key(7));
      },
      [this] {
        ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                   Key(5), Key(9)));
        for (int key = 5; key < 9; ++key) {
          model_.erase(Key(key));
        }
      },
  };
  for (const std::function<void()>& change : changes) {
    const Options options = HeatOptions(kSmallBudget);
    DestroyAndReopen(options);
    model_.clear();
    PutKeys(0, 20);
    {
      HeldPoint point("BlobPromotionJob::Run:BeforeFinish");
      Get(Key(7));
      Get(Key(7));
      ASSERT_TRUE(point.WaitUntilReached());
      ASSERT_NO_FATAL_FAILURE(change());
      ASSERT_OK(Flush());
      ASSERT_NO_FATAL_FAILURE(CheckGets());
    }
    WaitForJobs();
    ASSERT_NO_FATAL_FAILURE(CheckGets());
    Compact();
    CheckDb(options);
  }
}

// A compaction makes the value direct, or another job moves it, meanwhile.
TEST_F(DBBlobHeatTest, OtherJobsMoveValuesWhileTheyArePromoted) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  PutKeys(10, 20, 1);
  {
    HeldPoint point("BlobPromotionJob::Run:BeforeFinish");
    Get(Key(7));
    Get(Key(7));
    ASSERT_TRUE(point.WaitUntilReached());
    CollectBlobGarbageOptions collect;
    collect.space_amp_limit = 1.0;
    ASSERT_OK(db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily()));
    ASSERT_OK(ForceCompaction());
    ASSERT_NO_FATAL_FAILURE(CheckGets());
  }
  WaitForJobs();
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, ReadersKeepTheirValues) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  const Contents before = model_;
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  ManagedSnapshot snapshot(db_.get());
  ReadUntilHot(0, 10);
  PutKeys(0, 5, 1);
  ASSERT_OK(db_->SetOptions({{"blob_hot_bytes", "0"}}));
  WaitForJobs();
  EXPECT_EQ(HotFiles(), 0);
  ReadOptions read_options;
  read_options.snapshot = snapshot.snapshot();
  for (const auto& [key, value] : before) {
    std::string found;
    ASSERT_OK(db_->Get(read_options, key, &found));
    ASSERT_EQ(found, value);
  }
  ASSERT_NO_FATAL_FAILURE(CheckIterator(iter.get(), before));
  CheckGets();
}

// A snapshot reads an old version.
TEST_F(DBBlobHeatTest, OldVersionsArePromoted) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  ManagedSnapshot snapshot(db_.get());
  const std::string old = model_[Key(3)];
  PutKeys(3, 4, 1);
  ReadOptions read_options;
  read_options.snapshot = snapshot.snapshot();
  for (int i = 0; i < kRounds && HotFiles() == 0; ++i) {
    std::string value;
    ASSERT_OK(db_->Get(read_options, Key(3), &value));
    ASSERT_EQ(value, old);
    WaitForJobs();
  }
  EXPECT_GT(HotFiles(), 0);
  std::string value;
  ASSERT_OK(db_->Get(read_options, Key(3), &value));
  EXPECT_EQ(value, old);
  CheckGets();
}

TEST_F(DBBlobHeatTest, HotFilesStayAfterAReopen) {
  for (const bool saves_map : {true, false}) {
    Options options = HeatOptions(kSmallBudget);
    options.save_blob_address_map = saves_map;
    DestroyAndReopen(options);
    model_.clear();
    PutKeys(0, 50);
    ReadUntilHot(0, 10);
    const uint64_t bytes = HotBytes();
    const uint64_t files = HotFiles();
    Reopen(options);
    EXPECT_EQ(NumHot(0, 10), 10);
    EXPECT_EQ(PlaceOf(0).hot.home(), kHome);
    EXPECT_EQ(HotBytes(), bytes);
    EXPECT_EQ(HotFiles(), files);
    uint64_t misplaced = UINT64_MAX;
    ASSERT_TRUE(
        db_->GetIntProperty(DB::Properties::kMisplacedBytes, &misplaced));
    EXPECT_EQ(misplaced, 0);
    // They count for the budget.
    ReadUntilHot(20, 45);
    CheckDb(options);
  }
}

TEST_F(DBBlobHeatTest, CompactionsLeaveHotValues) {
  Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  ReadUntilHot(0, 10);
  const uint64_t bytes = HotBytes();
  Compact();
  EXPECT_EQ(NumHot(0, 10), 10);
  EXPECT_EQ(HotBytes(), bytes);
  // Values that belong to another path than before leave the hot path, too.
  ASSERT_OK(db_->SetOptions({{"level_blob_path_ids", "0"}}));
  Compact();
  WaitForJobs();
  EXPECT_EQ(NumHot(0, 20), 0);
  EXPECT_EQ(PlaceOf(0).path_id, 0);
  EXPECT_EQ(HotFiles(), 0);
  CheckGets();
}

TEST_F(DBBlobHeatTest, WithoutABudgetValuesMoveBack) {
  const Options options = HeatOptions();
  DestroyAndReopen(options);
  PutKeys(0, 100);
  ReadUntilHot(0, 60);
  ASSERT_OK(db_->SetOptions({{"blob_hot_bytes", "0"}}));
  WaitForJobs();
  EXPECT_EQ(HotFiles(), 0);
  EXPECT_EQ(NumHot(0, 100), 0);
  for (int key = 0; key < 100; ++key) {
    EXPECT_EQ(PlaceOf(key).path_id, kHome);
  }
  EXPECT_GE(Ticker(BLOB_MAP_HOT_DEMOTED), 60);
  // Nothing is counted any more.
  for (int i = 0; i < 5; ++i) {
    CheckGets();
  }
  WaitForJobs();
  EXPECT_EQ(HotFiles(), 0);
  ASSERT_OK(db_->SetOptions(
      {{"blob_hot_bytes", std::to_string(options.blob_hot_bytes)}}));
  ReadUntilHot(0, 10);
  CheckDb(options);
}

// A value that is overwritten while a job copies it does not move.
TEST_F(DBBlobHeatTest, ValuesThatDoNotMoveBackAreNotCounted) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  ReadUntilHot(7, 8);
  EXPECT_EQ(Ticker(BLOB_MAP_HOT_PROMOTED), 1);
  {
    HeldPoint point("BlobDemotionJob::Run:BeforeFinish");
    ASSERT_OK(db_->SetOptions({{"blob_hot_bytes", "0"}}));
    ASSERT_TRUE(point.WaitUntilReached());
    PutKey(7, 1);
    ASSERT_OK(Flush());
    // The flush removes the old entry after Flush() has returned.
    ASSERT_TRUE(
        WaitUntil([this] { return Blobs()->map()->NumEntries() == 20; }));
  }
  WaitForJobs();
  EXPECT_EQ(HotFiles(), 0);
  EXPECT_EQ(Ticker(BLOB_MAP_HOT_DEMOTED), 0);
  EXPECT_EQ(Ticker(BLOB_MAP_HOT_BYTES_DEMOTED), 0);
  CheckGets();
}

TEST_F(DBBlobHeatTest, ASmallerBudgetHolds) {
  const Options options = HeatOptions();
  DestroyAndReopen(options);
  PutKeys(0, 300);
  ReadUntilHot(0, 200);
  const uint64_t smaller = HotBytes() / 2;
  ASSERT_OK(db_->SetOptions({{"blob_hot_bytes", std::to_string(smaller)}}));
  WaitForJobs();
  EXPECT_LE(HotBytes(), smaller);
  CheckGets();
  WaitForJobs();
  EXPECT_LE(HotBytes(), smaller);
}

// No value is promoted while a hot file of a failed job is beyond the budget.
// The pause of the file ends without an event, so reads ask again.
TEST_F(DBBlobHeatTest, ReadsAskAgainForAPromotionThatHasToWait) {
  Options options = HeatOptions();
  DestroyAndReopen(options);
  PutKeys(0, 60);
  ReadUntilHot(0, 40);
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    std::set<uint64_t> files;
    for (const auto& meta :
         Family()->current()->storage_info()->GetBlobFiles()) {
      if (meta->hot().is_hot()) {
        files.insert(meta->GetBlobFileNumber());
      }
    }
    Blobs()->gc()->OnFailed(files);
  }
  options.blob_hot_bytes = HotBytes() - 1000;
  ASSERT_OK(db_->SetOptions(
      {{"blob_hot_bytes", std::to_string(options.blob_hot_bytes)}}));
  std::atomic<int> num_asked{0};
  EnableCallBack("DBStrata::OnBlobHeatDue", [&](void*) { ++num_asked; });
  for (uint64_t i = 0; i < PromotionQueue::kMinPause; ++i) {
    for (int key = 40; key < 60; ++key) {
      ASSERT_EQ(Get(Key(key)), model_[Key(key)]);
    }
  }
  DisableCallBacks();
  EXPECT_GE(num_asked, 3);
  EXPECT_LE(num_asked, 40);
  EXPECT_EQ(NumHot(40, 60), 0);
  Reopen(options);
  // A flush lets jobs be scheduled.
  PutKeys(60, 61);
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, MigratePathsDrainsAnotherHotPath) {
  Options options = HeatOptions(kSmallBudget);
  options.cf_paths.emplace_back(dbname_ + "_3", UINT64_MAX);
  options.blob_hot_path_id = 2;
  DestroyAndReopen(options);
  PutKeys(0, 20);
  ReadUntilHot(0, 10);
  EXPECT_EQ(PlaceOf(0).path_id, 2);
  // Files that are in the right place stay.
  MigratePathsProgress progress;
  ASSERT_OK(MigratePaths(db_.get(), db_->DefaultColumnFamily(),
                         MigratePathsOptions(), &progress));
  EXPECT_EQ(progress.bytes_at_start, 0);
  EXPECT_EQ(NumHot(0, 10), 10);
  {
    // No job of the background does it before.
    ASSERT_OK(db_->PauseBackgroundWork());
    ASSERT_OK(db_->SetOptions({{"blob_hot_path_id", "0"}}));
    uint64_t misplaced = 0;
    ASSERT_TRUE(
        db_->GetIntProperty(DB::Properties::kMisplacedBytes, &misplaced));
    EXPECT_GT(misplaced, 0);
    ASSERT_OK(db_->ContinueBackgroundWork());
  }
  ASSERT_OK(MigratePaths(db_.get(), db_->DefaultColumnFamily(),
                         MigratePathsOptions(), &progress));
  EXPECT_EQ(progress.bytes_left, 0);
  WaitForJobs();
  EXPECT_EQ(FilesIn(dbname_ + "_3", kBlobFile).size(), 0);
  options.blob_hot_path_id = 0;
  CheckDb(options);
}

// The home of a value is never a path on which it was hot.
TEST_F(DBBlobHeatTest, ValuesAreReadWhileTheirFileIsDrained) {
  Options options = HeatOptions(kSmallBudget);
  options.cf_paths.emplace_back(dbname_ + "_3", UINT64_MAX);
  options.blob_hot_path_id = 2;
  DestroyAndReopen(options);
  PutKeys(0, 20);
  ReadUntilHot(0, 10);
  int drained = -1;
  {
    HeldPoint point("BlobDemotionJob::Run:BeforeFinish");
    ASSERT_OK(db_->SetOptions({{"blob_hot_path_id", "0"}}));
    ASSERT_TRUE(point.WaitUntilReached());
    // All other files are drained.
    ASSERT_TRUE(WaitUntil([this] { return HotFiles() == 1; }));
    for (int key = 0; key < 10; ++key) {
      drained = PlaceOf(key).path_id == 2 ? key : drained;
    }
    ASSERT_GE(drained, 0);
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(Get(Key(drained)), model_[Key(drained)]);
    }
    ASSERT_TRUE(WaitUntil([this] { return !IsPromoting(); }));
    EXPECT_EQ(PlaceOf(drained).path_id, 2);
    EXPECT_EQ(PlaceOf(drained).hot.home(), kHome);
  }
  WaitForJobs();
  EXPECT_EQ(PlaceOf(drained).path_id, kHome);
  ReadUntilHot(drained, drained + 1);
  EXPECT_EQ(PlaceOf(drained).path_id, 0);
  EXPECT_EQ(PlaceOf(drained).hot.home(), kHome);
  ASSERT_OK(db_->SetOptions({{"blob_hot_bytes", "0"}}));
  WaitForJobs();
  EXPECT_EQ(PlaceOf(drained).path_id, kHome);
  EXPECT_EQ(FilesIn(dbname_ + "_3", kBlobFile).size(), 0);
  options.blob_hot_path_id = 0;
  options.blob_hot_bytes = 0;
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, GarbageInHotFilesIsCollected) {
  const Options options = HeatOptions();
  DestroyAndReopen(options);
  PutKeys(0, 40);
  ReadUntilHot(0, 20);
  PutKeys(0, 10, 1);
  const uint64_t bytes = HotBytes();
  CollectBlobGarbageOptions collect;
  collect.space_amp_limit = 1.0;
  ASSERT_OK(db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily()));
  WaitForJobs();
  EXPECT_LT(HotBytes(), bytes);
  EXPECT_EQ(NumHot(10, 20), 10);
  EXPECT_EQ(NumHot(0, 10), 0);
  collect.max_sorted_runs = 1;
  ASSERT_OK(db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily()));
  EXPECT_EQ(NumHot(10, 20), 10);
  CheckDb(options);
}

// Their copies have no room beside them. That is no error of the call.
TEST_F(DBBlobHeatTest, GarbageInPinnedHotFilesStays) {
  Options options = HeatOptions();
  DestroyAndReopen(options);
  PutKeys(0, 40);
  ReadUntilHot(0, 40);
  options.blob_hot_bytes = HotBytes();
  ASSERT_OK(db_->SetOptions(
      {{"blob_hot_bytes", std::to_string(options.blob_hot_bytes)}}));
  for (int key = 0; key < 40; key += 3) {
    ASSERT_NO_FATAL_FAILURE(PutKey(key, 1));
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  const uint64_t bytes = HotBytes();
  std::vector<std::unique_ptr<AddressMapStore::FilePin>> pins;
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    for (const auto& meta :
         Family()->current()->storage_info()->GetBlobFiles()) {
      if (meta->hot().is_hot()) {
        pins.push_back(std::make_unique<AddressMapStore::FilePin>(
            Blobs(), meta->GetBlobFileNumber()));
      }
    }
  }
  ASSERT_FALSE(pins.empty());
  CollectBlobGarbageOptions collect;
  collect.space_amp_limit = 1.0;
  ASSERT_OK(db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily()));
  EXPECT_EQ(HotBytes(), bytes);
  for (int key = 0; key < 40; ++key) {
    EXPECT_EQ(IsHot(key), key % 3 != 0) << key;
  }
  CompactRangeOptions compact;
  compact.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::kForce;
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  EXPECT_EQ(HotBytes(), bytes);
  pins.clear();
  ASSERT_OK(db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily()));
  WaitForJobs();
  EXPECT_LT(HotBytes(), bytes);
  CheckDb(options);
}

// A Version has the file of a promotion before the job learns of it.
TEST_F(DBBlobHeatTest, AFullBudgetIsNoReasonToDrain) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  ReadUntilHot(0, 10);
  const uint64_t demoted = Ticker(BLOB_MAP_HOT_DEMOTED);
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    BlobHeat* const heat = Blobs()->heat();
    // Such a job, which has added all hot files: its edit was written.
    heat->SetBusy(true);
    ASSERT_TRUE(heat->Reserve(/*added=*/kSmallBudget, /*before=*/0,
                              /*after=*/kSmallBudget));
  }
  // A flush lets jobs be scheduled.
  PutKeys(20, 40);
  EXPECT_EQ(Ticker(BLOB_MAP_HOT_DEMOTED), demoted);
  EXPECT_EQ(NumHot(0, 10), 10);
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    Blobs()->heat()->EndReserve(kSmallBudget);
    Blobs()->heat()->SetBusy(false);
  }
  CheckDb(options);
}

// There is no limit for garbage, and so no job that merges other files.
TEST_F(DBBlobHeatTest, SmallHotFilesAreMerged) {
  const Options options = HeatOptions();
  ASSERT_EQ(options.blob_gc_space_amp_limit, 0);
  DestroyAndReopen(options);
  constexpr int kKeys = 200;
  PutKeys(0, kKeys);
  const size_t num_files = FilesIn(dbname_ + "_2", kBlobFile).size();
  for (int key = 0; key < kKeys; ++key) {
    // A job for each value.
    for (int i = 0; i < 80; ++i) {
      ASSERT_EQ(Get(Key(key)), model_[Key(key)]);
    }
    WaitForJobs();
  }
  EXPECT_EQ(NumHot(0, kKeys), kKeys);
  // The files of each tier are fewer than those of a merge.
  EXPECT_LE(HotFiles(), 3 * BlobGcPicker::kTierFactor);
  EXPECT_LE(FilesIn(dbname_ + "_2", kBlobFile).size(), num_files);
  EXPECT_EQ(Ticker(BLOB_MAP_HOT_DEMOTED), 0);
  CheckDb(options);
}

// The old copies of promoted values are garbage, which is collected as always.
TEST_F(DBBlobHeatTest, TheSpaceLimitHolds) {
  Options options = HeatOptions();
  options.blob_gc_space_amp_limit = 1.1;
  options.blob_file_size = 128 << 10;
  DestroyAndReopen(options);
  PutKeys(0, 1000);
  ReadUntilHot(0, 400);
  WaitForJobs();
  uint64_t size = 0;
  uint64_t garbage = 0;
  ASSERT_TRUE(db_->GetIntProperty(DB::Properties::kTotalBlobFileSize, &size));
  ASSERT_TRUE(
      db_->GetIntProperty(DB::Properties::kLiveBlobFileGarbageSize, &garbage));
  EXPECT_LE(static_cast<double>(size),
            1.1 * static_cast<double>(size - garbage));
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, ColumnFamiliesHaveBudgetsOfTheirOwn) {
  Options options = HeatOptions(kSmallBudget);
  CreateAndReopenWithCF({"one"}, options);
  for (int key = 0; key < 40; ++key) {
    const std::string value = ValueOf(key, 0);
    model_[Key(key)] = value;
    ASSERT_OK(Put(0, Key(key), value));
    ASSERT_OK(Put(1, Key(key), value));
  }
  ASSERT_OK(Flush(0));
  ASSERT_OK(Flush(1));
  WaitForJobs();
  ReadUntilHot(0, 20, /*cf=*/1);
  EXPECT_EQ(HotFiles(0), 0);
  EXPECT_LE(HotBytes(1), kSmallBudget);
  ReadUntilHot(10, 30, /*cf=*/0);
  EXPECT_EQ(NumHot(0, 20, 1), 20);
  ASSERT_OK(db_->SetOptions(handles_[1], {{"blob_hot_bytes", "0"}}));
  WaitForJobs();
  EXPECT_EQ(HotFiles(1), 0);
  EXPECT_EQ(NumHot(10, 30, 0), 20);
}

TEST_F(DBBlobHeatTest, AFamilyIsDroppedWhileAJobRuns) {
  Options options = HeatOptions(kSmallBudget);
  CreateAndReopenWithCF({"one"}, options);
  for (int key = 0; key < 20; ++key) {
    ASSERT_OK(Put(1, Key(key), ValueOf(key, 0)));
  }
  ASSERT_OK(Flush(1));
  WaitForJobs();
  {
    HeldPoint point("BlobPromotionJob::Run:BeforeFinish");
    Get(1, Key(7));
    Get(1, Key(7));
    ASSERT_TRUE(point.WaitUntilReached());
    ASSERT_OK(db_->DropColumnFamily(handles_[1]));
    ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
    handles_.pop_back();
  }
  WaitForJobs();
  EXPECT_TRUE(WaitUntil([this] {
    return FilesIn(dbname_, kBlobFile).empty() &&
           FilesIn(dbname_ + "_2", kBlobFile).empty();
  }));
}

// A job that fails leaves all as it was.
TEST_F(DBBlobHeatTest, AJobRunsOutOfSpace) {
  const Options options = HeatOptions(kSmallBudget);
  for (const char* const point : {"BlobPromotionJob::Run:BeforeFinish",
                                  "DBStrata::BackgroundBlobGc::Copy:Copied"}) {
    DestroyAndReopen(options);
    model_.clear();
    PutKeys(0, 20);
    std::atomic<bool> has_failed{false};
    EnableCallBack(point, [&](void* status) {
      if (!has_failed.exchange(true)) {
        *static_cast<Status*>(status) = Status::NoSpace("injected");
      }
    });
    ReadUntil(7, [&] { return has_failed.load(); });
    DisableCallBacks();
    WaitForJobs();
    EXPECT_GT(Ticker(BLOB_MAP_GC_FAILED), 0);
    CheckGets();
    ReadUntilHot(0, 10);
    CheckDb(options);
  }
}

// A promotion finds the damage of a value, which reads without checksums do
// not. The value and its file stay where they are, and other files are not in
// doubt.
TEST_F(DBBlobHeatTest, DamagedValuesAreNotPromoted) {
  const auto listener = std::make_shared<FailureListener>();
  Options options = HeatOptions(kSmallBudget);
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  PutKeys(20, 40);
  Close();
  std::string path;
  ASSERT_NO_FATAL_FAILURE(DamageValue(dbname_ + "_2", 7, &path));
  Reopen(options);
  ReadOptions unverified;
  unverified.verify_checksums = false;
  const auto read_until = [&](const std::function<bool()>& is_over) {
    for (int i = 0; i < kRounds && !is_over(); ++i) {
      std::string value;
      ASSERT_OK(db_->Get(unverified, Key(7), &value));
      ASSERT_NE(value, model_[Key(7)]);
      WaitForJobs();
    }
  };
  read_until([&] { return !listener->Failures().empty(); });
  WaitForJobs();
  const std::vector<Status> failures = listener->Failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures[0].IsCorruption()) << failures[0].ToString();
  EXPECT_NE(failures[0].ToString().find(path), std::string::npos)
      << failures[0].ToString();
  EXPECT_EQ(MapProperty("damaged-files"), 1);
  std::string verified;
  EXPECT_TRUE(db_->Get(ReadOptions(), Key(7), &verified).IsCorruption());
  EXPECT_FALSE(IsHot(7));

  // The file is not read again at once. The values of other files are promoted.
  read_until([] { return false; });
  EXPECT_EQ(listener->Failures().size(), 1u);
  EXPECT_EQ(HotFiles(), 0);
  ReadUntilHot(20, 25);
  PutKeys(7, 8, /*round=*/1);
  CheckDb(options);
}

// A hot value that is damaged stays with its file when the hot path is drained.
TEST_F(DBBlobHeatTest, DamagedValuesAreNotDemoted) {
  const auto listener = std::make_shared<FailureListener>();
  Options options = HeatOptions(kSmallBudget);
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  // Each in a file of its own.
  ReadUntilHot(3, 4);
  ReadUntilHot(4, 5);
  ASSERT_EQ(HotFiles(), 2);
  Close();
  std::string path;
  ASSERT_NO_FATAL_FAILURE(DamageValue(dbname_, 3, &path));
  Reopen(options);
  options.blob_hot_bytes = 0;
  ASSERT_OK(db_->SetOptions({{"blob_hot_bytes", "0"}}));
  WaitForJobs();
  const std::vector<Status> failures = listener->Failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures[0].IsCorruption()) << failures[0].ToString();
  EXPECT_NE(failures[0].ToString().find(path), std::string::npos)
      << failures[0].ToString();
  EXPECT_EQ(MapProperty("damaged-files"), 1);
  EXPECT_EQ(HotFiles(), 1);
  EXPECT_TRUE(IsHot(3));
  EXPECT_FALSE(IsHot(4));
  for (int key = 0; key < 20; ++key) {
    std::string value;
    const Status s = db_->Get(ReadOptions(), Key(key), &value);
    EXPECT_TRUE(key == 3 ? s.IsCorruption() : s.ok()) << s.ToString();
  }

  // Without the value, the file is not needed.
  PutKeys(3, 4, /*round=*/1);
  EXPECT_EQ(HotFiles(), 0);
  EXPECT_EQ(MapProperty("damaged-files"), 0);
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, TheManifestCannotBeWritten) {
  DestroyAndReopen(FaultOptions());
  PutKeys(0, 20);
  std::atomic<bool> has_failed{false};
  EnableCallBack("DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit",
                 [&](void*) {
                   if (!has_failed.exchange(true)) {
                     fault_fs_->SetFilesystemActive(false, RetryableError());
                   }
                 });
  ReadUntil(7, [&] { return has_failed.load(); });
  dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
  fault_fs_->SetFilesystemActive(true);
  DisableCallBacks();
  CheckGets();
  ASSERT_OK(db_->Resume());
  CheckGets();
  ReadUntilHot(0, 10);
  CheckDb(FaultOptions());
}

TEST_F(DBBlobHeatTest, CrashBetweenTheSteps) {
  for (const char* const step :
       {"DBStrata::BackgroundBlobGc::Copy:Copied",
        "BlobGcStorage::Publish:BeforeSwap", "BlobGcStorage::Publish:Swapped",
        "DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit",
        "DBStrata::BackgroundBlobGc::Run:AfterEdit"}) {
    for (const bool is_demotion : {false, true}) {
      SCOPED_TRACE(std::string(step) + (is_demotion ? " of a demotion" : ""));
      Options options = FaultOptions();
      DestroyAndReopen(options);
      model_.clear();
      PutKeys(0, 40);
      if (is_demotion) {
        ReadUntilHot(0, 20);
      }
      std::atomic<bool> has_crashed{false};
      EnableCallBack(step, [&](void*) {
        if (!has_crashed.exchange(true)) {
          fault_fs_->SetFilesystemActive(false);
        }
      });
      if (is_demotion) {
        // The options are in memory even if their file cannot be written.
        db_->SetOptions({{"blob_hot_bytes", "0"}}).PermitUncheckedError();
      }
      ReadUntil(is_demotion ? 0 : 7, [&] { return has_crashed.load(); });
      dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
      DisableCallBacks();
      Close();
      fault_fs_->SetFilesystemActive(true);
      ASSERT_OK(fault_fs_->DropUnsyncedFileData());
      ASSERT_OK(
          fault_fs_->DeleteFilesCreatedAfterLastDirSync(IOOptions(), nullptr));
      fault_fs_->ResetState();
      Reopen(options);
      CheckDb(options);
    }
  }
}

// A file that another job has pinned is not dropped with the edit of a
// demotion. The values that stay hot would then be in two hot files.
TEST_F(DBBlobHeatTest, AnEditBeyondTheBudgetIsNotWritten) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 200);
  std::set<uint64_t> pinned;
  std::vector<std::unique_ptr<AddressMapStore::FilePin>> pins;
  EnableCallBack(
      "DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit", [&](void*) {
        // The DB mutex is held.
        for (const auto& meta :
             Family()->current()->storage_info()->GetBlobFiles()) {
          if (meta->hot().is_hot() &&
              pinned.insert(meta->GetBlobFileNumber()).second) {
            pins.push_back(std::make_unique<AddressMapStore::FilePin>(
                Blobs(), meta->GetBlobFileNumber()));
          }
        }
      });
  for (int round = 0; round < 10; ++round) {
    for (int key = 0; key < 200; ++key) {
      ASSERT_EQ(Get(Key(key)), model_[Key(key)]);
    }
    WaitForJobs();
    ASSERT_LE(HotBytes(), options.blob_hot_bytes);
  }
  DisableCallBacks();
  pins.clear();
  CheckDb(options);
}

TEST_F(DBBlobHeatTest, CopiesInOneDirectoryHaveNoHotFiles) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 30);
  ReadUntilHot(0, 10);
  Options copied = options;
  copied.cf_paths.clear();
  copied.level_sst_path_ids.clear();
  copied.level_blob_path_ids.clear();
  copied.blob_hot_bytes = 0;
  const auto check = [&](const std::string& dir) {
    std::unique_ptr<DB> copy;
    ASSERT_OK(DB::Open(copied, dir, &copy));
    for (const auto& [key, value] : model_) {
      std::string found;
      ASSERT_OK(copy->Get(ReadOptions(), key, &found));
      ASSERT_EQ(found, value);
    }
    std::map<std::string, std::string> values;
    ASSERT_TRUE(copy->GetMapProperty("rocksdb.blob-address-map", &values));
    EXPECT_EQ(values["hot-files"], "0");
    copy.reset();
    ASSERT_OK(DestroyDB(dir, copied));
  };
  const std::string checkpoint_dir = dbname_ + "_checkpoint";
  Checkpoint* created = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &created));
  const std::unique_ptr<Checkpoint> checkpoint(created);
  ASSERT_OK(checkpoint->CreateCheckpoint(checkpoint_dir));
  ASSERT_NO_FATAL_FAILURE(check(checkpoint_dir));

  const std::string backup_dir = dbname_ + "_backup";
  const std::string restored_dir = dbname_ + "_restored";
  BackupEngine* opened = nullptr;
  ASSERT_OK(BackupEngine::Open(env_, BackupEngineOptions(backup_dir), &opened));
  std::unique_ptr<BackupEngine> backups(opened);
  ASSERT_OK(backups->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  ASSERT_OK(backups->RestoreDBFromLatestBackup(restored_dir, restored_dir));
  backups.reset();
  ASSERT_NO_FATAL_FAILURE(check(restored_dir));
  ASSERT_OK(DestroyDir(env_, backup_dir));
  EXPECT_EQ(NumHot(0, 10), 10);
}

// A hot file is at home in a copy with a layout, where SST files know it.
TEST_F(DBBlobHeatTest, CopiesWithALayoutHaveHotValuesAtHome) {
  const Options options = HeatOptions(kSmallBudget);
  DestroyAndReopen(options);
  PutKeys(0, 30);
  Compact();
  ReadUntilHot(0, 10);
  const std::string dir = dbname_ + "_checkpoint";
  const std::string home = dbname_ + "_checkpoint_2";
  CopyLayout layout;
  layout.all.cf_paths = {{dir, UINT64_MAX}, {home, UINT64_MAX}};
  layout.all.level_sst_path_ids = {0};
  layout.all.level_blob_path_ids = {0, 1};
  CreateCheckpointOptions create;
  create.layout = std::make_shared<CopyLayout>(layout);
  std::unique_ptr<CheckpointEngine> engine;
  ASSERT_OK(CheckpointEngine::Open(CheckpointEngineOptions(), &engine));
  ASSERT_OK(engine->CreateCheckpoint(db_.get(), dir, nullptr, create));
  EXPECT_EQ(FilesIn(dir, kBlobFile).size(), 0);
  EXPECT_GT(FilesIn(home, kBlobFile).size(), 0);

  Options copied = options;
  copied.cf_paths = layout.all.cf_paths;
  copied.level_blob_path_ids = {0, 1};
  copied.blob_hot_bytes = 0;
  std::unique_ptr<DB> copy;
  ASSERT_OK(DB::Open(copied, dir, &copy));
  for (const auto& [key, value] : model_) {
    std::string found;
    ASSERT_OK(copy->Get(ReadOptions(), key, &found));
    ASSERT_EQ(found, value);
  }
  uint64_t misplaced = UINT64_MAX;
  ASSERT_TRUE(
      copy->GetIntProperty(DB::Properties::kMisplacedBytes, &misplaced));
  EXPECT_EQ(misplaced, 0);
  std::map<std::string, std::string> values;
  ASSERT_TRUE(copy->GetMapProperty("rocksdb.blob-address-map", &values));
  EXPECT_EQ(values["hot-files"], "0");
  copy.reset();
  ASSERT_OK(DestroyDB(dir, copied));
}

TEST_F(DBBlobHeatTest, ListenersLearnOfTheJobs) {
  class Listener : public EventListener {
   public:
    void OnBlobGarbageCollectionCompleted(
        DB* /*db*/, const BlobGarbageCollectionInfo& info) override {
      if (info.status.ok() && info.values_moved > 0) {
        promotions += info.is_promotion ? 1 : 0;
        demotions += info.is_demotion ? 1 : 0;
        others += info.is_promotion || info.is_demotion ? 0 : 1;
      }
    }
    std::atomic<int> promotions{0};
    std::atomic<int> demotions{0};
    std::atomic<int> others{0};
  };
  const auto listener = std::make_shared<Listener>();
  Options options = HeatOptions(kSmallBudget);
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  PutKeys(0, 20);
  ReadUntilHot(0, 5);
  EXPECT_GT(listener->promotions.load(), 0);
  EXPECT_EQ(listener->demotions.load(), 0);
  ASSERT_OK(db_->SetOptions({{"blob_hot_bytes", "0"}}));
  WaitForJobs();
  EXPECT_GT(listener->demotions.load(), 0);
  EXPECT_EQ(listener->others.load(), 0);
}

TEST_F(DBBlobHeatTest, OpenAndSetOptionsRefuseAPathThatIsMissing) {
  Options options = HeatOptions();
  DestroyAndReopen(options);
  EXPECT_TRUE(db_->SetOptions({{"blob_hot_path_id", "2"}}).IsInvalidArgument());
  EXPECT_TRUE(db_->SetOptions({{"blob_hot_path_id", "4"}}).IsInvalidArgument());
  ASSERT_OK(db_->SetOptions({{"blob_hot_bytes", "0"}}));
  ASSERT_OK(db_->SetOptions({{"blob_hot_path_id", "2"}}));
  options.blob_hot_path_id = 2;
  EXPECT_TRUE(TryReopen(options).IsInvalidArgument());
}

// Readers, writers and jobs at the same time.
TEST_F(DBBlobHeatTest, AllAtOnce) {
  Options options = HeatOptions(kSmallBudget);
  options.blob_gc_space_amp_limit = 1.2;
  options.blob_file_size = 32 << 10;
  options.disable_auto_compactions = false;
  DestroyAndReopen(options);
  constexpr int kKeys = 200;
  PutKeys(0, kKeys);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&, t] {
      Random rnd(t + 1);
      while (!is_over.load()) {
        const int key = static_cast<int>(rnd.Skewed(7)) % kKeys;
        std::string value;
        ASSERT_OK(db_->Get(ReadOptions(), Key(key), &value));
        // Any round of this key.
        const int round = std::stoi(value.substr(1));
        ASSERT_EQ(value, ValueOf(key, round));
      }
    });
  }
  for (int round = 1; round <= 20; ++round) {
    for (int key = round % 3; key < kKeys; key += 3) {
      ASSERT_NO_FATAL_FAILURE(PutKey(key, round));
    }
    ASSERT_OK(Flush());
    ASSERT_OK(
        db_->SetOptions({{"blob_hot_bytes",
                          std::to_string(round % 5 == 0 ? 0 : kSmallBudget)}}));
  }
  is_over = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
  ASSERT_OK(
      db_->SetOptions({{"blob_hot_bytes", std::to_string(kSmallBudget)}}));
  WaitForJobs();
  CheckDb(options);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
