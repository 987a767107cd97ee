//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with several paths whose devices are full: what goes on meanwhile,
// and when they recover by themselves.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/db_test_util.h"
#include "env/composite_env_wrapper.h"
#include "file/sst_file_manager_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/listener.h"
#include "rocksdb/sst_file_manager.h"
#include "test_util/strata/impatient_clock_test_util.h"
#include "test_util/strata/line_logger_test_util.h"
#include "test_util/strata/small_devices_fs_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 30;

// Forbids automatic recoveries.
class RecoveryVeto : public EventListener {
 public:
  void OnErrorRecoveryBegin(BackgroundErrorReason /*reason*/,
                            Status /*bg_error*/, bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

// Calls fn when a background error is told, the first time only.
class ErrorListener : public EventListener {
 public:
  explicit ErrorListener(std::function<void()> fn) : fn_(std::move(fn)) {}

  void OnBackgroundError(BackgroundErrorReason /*reason*/,
                         Status* /*bg_error*/) override {
    if (!was_called_.exchange(true)) {
      fn_();
    }
  }

 private:
  const std::function<void()> fn_;
  std::atomic<bool> was_called_{false};
};

}  // namespace

class DBSpaceRecoveryTest : public DBTestBase {
 protected:
  DBSpaceRecoveryTest()
      : DBTestBase("db_space_recovery_test", /*env_do_fsync=*/false) {
    Close();
    last_options_ = Options();
    last_options_.env = env_;
    EXPECT_OK(DestroyDB(dbname_, last_options_));
    fast_ = dbname_ + "_fast";
    slow_ = dbname_ + "_slow";
    wal_ = dbname_ + "_wal";
    fs_ = std::make_shared<SmallDevicesFS>(env_->GetFileSystem());
    for (const std::string& directory : {dbname_, fast_, slow_, wal_}) {
      fs_->AddDevice({directory}, kPlenty);
    }
    device_env_ = std::make_unique<CompositeEnvWrapper>(
        env_, fs_, std::make_shared<ImpatientClock>(SystemClock::Default()));
    EnableCallBack("SpaceRecovery::TryOne:Tried", [this](void* retry_micros) {
      *static_cast<uint64_t*>(retry_micros) = 1000;
      ++num_tries_;
    });
    EnableCallBack("DBStrata::SpaceRecoveryClient::Try:Recover",
                   [this](void*) { ++num_recoveries_; });
    options_ = CurrentOptions();
    options_.env = device_env_.get();
    options_.create_if_missing = true;
    options_.info_log = logger_;
    options_.compression = kNoCompression;
    options_.write_buffer_size = 64 << 10;
    options_.num_levels = 4;
    options_.level_compaction_dynamic_level_bytes = false;
    options_.disable_auto_compactions = true;
    options_.level0_slowdown_writes_trigger = 100;
    options_.level0_stop_writes_trigger = 100;
    options_.enable_blob_files = true;
    options_.min_blob_size = 100;
    options_.statistics = CreateDBStatistics();
    options_.sst_file_manager.reset(NewSstFileManager(device_env_.get()));
    UseLayout({0}, {1});
  }

  ~DBSpaceRecoveryTest() override {
    Close();
    DisableCallBacks();
    options_ = Options();
    last_options_ = Options();
    last_options_.env = env_;
    for (const std::string& directory : {fast_, slow_, wal_}) {
      EXPECT_OK(DestroyDir(env_, directory));
    }
  }

  void UseLayout(const std::vector<uint32_t>& sst_ids,
                 const std::vector<uint32_t>& blob_ids) {
    options_.cf_paths = {{fast_, 0}, {slow_, 0}};
    options_.level_sst_path_ids = sst_ids;
    options_.level_blob_path_ids = blob_ids;
  }

  void Open() { DestroyAndReopen(options_); }

  SstFileManagerImpl* Manager() {
    return static_cast<SstFileManagerImpl*>(options_.sst_file_manager.get());
  }

  static std::string ValueOf(int number) {
    return Key(number) + std::string(1000, 'v');
  }
  void PutValues(int begin, int end, ColumnFamilyHandle* family = nullptr) {
    for (int i = begin; i < end; ++i) {
      ASSERT_OK(
          db_->Put(WriteOptions(),
                   family == nullptr ? db_->DefaultColumnFamily() : family,
                   Key(i), ValueOf(i)));
    }
  }
  void ExpectValues(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      EXPECT_EQ(Get(Key(i)), ValueOf(i));
    }
  }

  Status BgError() { return dbfull()->TEST_GetBGError(); }

  // Waits until the recovery was tried, from beginning to end, without effect.
  void ExpectNoRecovery() {
    const int before = num_tries_;
    EXPECT_TRUE(WaitUntil([&] { return num_tries_ >= before + 3; }));
    EXPECT_FALSE(BgError().ok());
  }
  void ExpectRecovery() {
    ASSERT_TRUE(WaitUntil([&] { return BgError().ok(); }));
  }

  // Makes room in a DB that does not recover by itself, and resumes it. The
  // flush of keys 0 to 9 has stopped it.
  void ResumeByHand() {
    EXPECT_FALSE(dbfull()->TEST_IsRecoveryInProgress());
    fs_->SetFree(slow_, kPlenty);
    EXPECT_FALSE(BgError().ok());
    ASSERT_OK(db_->Resume());
    ASSERT_OK(Flush());
    ExpectValues(0, 10);
    EXPECT_EQ(num_tries_, 0);
  }

  // Leaves a DB that a flush of the keys 0 to 9 has stopped, because the blob
  // files' device is full.
  void StopByFullBlobPath() {
    Open();
    PutValues(0, 10);
    fs_->SetFree(slow_, 500);
    const Status s = Flush();
    ASSERT_TRUE(s.IsNoSpace()) << s.ToString();
    ASSERT_EQ(s.severity(), Status::Severity::kHardError);
  }

  // Leaves a DB with a soft error: the device has no room for the outputs of a
  // compaction of the keys 0 to 79.
  // family: the one of the keys; nullptr stands for the default one.
  void FailCompaction(ColumnFamilyHandle* family = nullptr) {
    if (family == nullptr) {
      family = db_->DefaultColumnFamily();
    }
    PutValues(0, 40, family);
    ASSERT_OK(db_->Flush(FlushOptions(), family));
    fs_->SetFree(slow_, 10000);
    PutValues(40, 80, family);
    ASSERT_OK(db_->Flush(FlushOptions(), family));
    ASSERT_TRUE(WaitUntil([&] { return !BgError().ok(); }));
    ASSERT_TRUE(BgError().IsNoSpace()) << BgError().ToString();
    ASSERT_EQ(BgError().severity(), Status::Severity::kSoftError);
    ASSERT_NE(BgError().ToString().find(slow_ + "/"), std::string::npos);
  }
  // Closes the DB. If this takes 20 seconds, it never ends, and neither would
  // the test.
  void CloseInTime() {
    std::future<Status> closed =
        std::async(std::launch::async, [this] { return db_->Close(); });
    if (closed.wait_for(std::chrono::seconds(20)) !=
        std::future_status::ready) {
      fprintf(stderr, "Close() does not return\n");
      abort();
    }
    EXPECT_OK(closed.get());
  }
  void CompactTwoFiles() {
    options_.disable_auto_compactions = false;
    options_.level0_file_num_compaction_trigger = 2;
  }

  std::string fast_;
  std::string slow_;
  std::string wal_;
  std::shared_ptr<SmallDevicesFS> fs_;
  std::unique_ptr<Env> device_env_;
  const std::shared_ptr<LineLogger> logger_ = std::make_shared<LineLogger>();
  Options options_;
  // Attempts of recoveries, and those for which there was room.
  std::atomic<int> num_tries_{0};
  std::atomic<int> num_recoveries_{0};
};

TEST_F(DBSpaceRecoveryTest, FullBlobPathStopsWritesUntilItHasRoom) {
  ASSERT_NO_FATAL_FAILURE(StopByFullBlobPath());
  const std::string error = BgError().ToString();
  EXPECT_NE(error.find(slow_ + "/"), std::string::npos) << error;
  EXPECT_NE(error.find(".blob"), std::string::npos) << error;
  EXPECT_TRUE(Put("refused", "value").IsNoSpace());
  // Resume() does not interfere.
  EXPECT_TRUE(db_->Resume().IsBusy());
  ExpectValues(0, 10);

  // Nothing is flushed while there is no room for a memtable.
  const int num_created = fs_->NumCreated(slow_) + fs_->NumCreated(fast_);
  ExpectNoRecovery();
  EXPECT_TRUE(logger_->Has(
      "The recovery from \"IO error: No space left",
      "waits for space: " + slow_ + " has 500 free bytes, needed are 65536"));
  fs_->SetFree(slow_, 65000);
  ExpectNoRecovery();
  EXPECT_EQ(fs_->NumCreated(slow_) + fs_->NumCreated(fast_), num_created);
  EXPECT_EQ(num_recoveries_, 0);

  fs_->SetFree(slow_, 1 << 20);
  ExpectRecovery();
  EXPECT_EQ(num_recoveries_, 1);
  ASSERT_OK(Put("accepted", "value"));
  ASSERT_OK(Flush());
  ExpectValues(0, 10);
  EXPECT_EQ(Get("refused"), "NOT_FOUND");
  Reopen(options_);
  ExpectValues(0, 10);
  EXPECT_EQ(Get("accepted"), "value");
}

TEST_F(DBSpaceRecoveryTest, EachPathOfARecoveryMustHaveRoom) {
  ASSERT_NO_FATAL_FAILURE(StopByFullBlobPath());
  fs_->SetFree(fast_, 600);
  fs_->SetFree(dbname_, 700);
  ExpectNoRecovery();
  EXPECT_TRUE(logger_->Has("waits for space: ", slow_ + " has 500"));
  EXPECT_TRUE(logger_->Has("waits for space: ", fast_ + " has 600"));
  EXPECT_TRUE(logger_->Has("waits for space: ", dbname_ + " has 700"));
  fs_->SetFree(slow_, kPlenty);
  ExpectNoRecovery();
  fs_->SetFree(dbname_, kPlenty);
  ExpectNoRecovery();
  EXPECT_EQ(num_recoveries_, 0);
  fs_->SetFree(fast_, kPlenty);
  ExpectRecovery();
  ExpectValues(0, 10);
}

// SST and blob files are on one device. What they need together is at most a
// memtable.
TEST_F(DBSpaceRecoveryTest, PathsMayBeOneDevice) {
  options_.sst_file_manager.reset();
  fs_ = std::make_shared<SmallDevicesFS>(env_->GetFileSystem());
  fs_->AddDevice({fast_, slow_}, kPlenty);
  device_env_ = std::make_unique<CompositeEnvWrapper>(
      env_, fs_, std::make_shared<ImpatientClock>(SystemClock::Default()));
  options_.env = device_env_.get();
  options_.sst_file_manager.reset(NewSstFileManager(device_env_.get()));
  ASSERT_NO_FATAL_FAILURE(StopByFullBlobPath());
  ExpectNoRecovery();
  EXPECT_TRUE(logger_->Has("waits for space: ", fast_ + ", " + slow_ + " has"));
  fs_->SetFree(slow_, 70000);
  ExpectRecovery();
  ExpectValues(0, 10);
}

TEST_F(DBSpaceRecoveryTest, CompactionsWaitForThePathOfTheirOutputs) {
  UseLayout({0, 1}, {0, 1});
  CompactTwoFiles();
  Open();
  Options on_fast = options_;
  on_fast.cf_paths = {{fast_, 0}};
  on_fast.level_sst_path_ids = {0};
  on_fast.level_blob_path_ids = {0};
  ColumnFamilyHandle* family = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(on_fast, "on_fast", &family));
  ASSERT_NO_FATAL_FAILURE(FailCompaction());

  // Writes, flushes, reads, and compactions of the other family go on.
  const int num_created = fs_->NumCreated(slow_);
  for (int i = 1; i <= 2; ++i) {
    PutValues(100 * i, 100 * i + 20);
    ASSERT_OK(Flush());
    PutValues(0, 20, family);
    ASSERT_OK(db_->Flush(FlushOptions(), family));
  }
  ASSERT_TRUE(WaitUntil(
      [&] { return NumTableFilesAtLevel(0, family, db_.get()) == 0; }));
  ExpectValues(0, 80);
  ExpectValues(100, 120);

  // The compaction does not begin again. It would write values, most of all.
  const uint64_t num_canceled =
      options_.statistics->getTickerCount(COMPACTION_CANCELLED);
  EXPECT_TRUE(WaitUntil([&] {
    return options_.statistics->getTickerCount(COMPACTION_CANCELLED) >=
           num_canceled + 3;
  }));
  EXPECT_TRUE(logger_->Has("A compaction to level 1 does not begin: ",
                           slow_ + " has 10000 free bytes, needed are "));
  std::vector<std::string> files;
  std::vector<LiveFileMetaData> live_files;
  db_->GetLiveFilesMetaData(&live_files);
  for (const LiveFileMetaData& file : live_files) {
    if (file.column_family_name == kDefaultColumnFamilyName) {
      files.push_back(file.name);
    }
  }
  const Status s = db_->CompactFiles(CompactionOptions(), files, 1);
  EXPECT_TRUE(s.IsCompactionTooLarge()) << s.ToString();
  ExpectNoRecovery();
  EXPECT_EQ(num_recoveries_, 0);
  // Less than the values of one file in level 0.
  fs_->SetFree(slow_, 15000);
  ExpectNoRecovery();
  EXPECT_EQ(fs_->NumCreated(slow_), num_created);

  fs_->SetFree(slow_, kPlenty);
  ExpectRecovery();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_LT(NumTableFilesAtLevel(0), 2);
  EXPECT_GT(NumTableFilesAtLevel(1), 0);
  EXPECT_GT(fs_->NumCreated(slow_), num_created);
  ExpectValues(0, 80);
  ExpectValues(200, 220);
  // All reservations have ended with their compactions.
  EXPECT_EQ(Manager()->space_reservations()->All(), SpaceReservations::Bytes());
  ASSERT_OK(db_->DestroyColumnFamilyHandle(family));
}

// The error of a compaction does not become one of the next atomic flush.
TEST_F(DBSpaceRecoveryTest, AtomicFlushesGoOnAfterAnErrorOfACompaction) {
  UseLayout({0, 1}, {0, 1});
  CompactTwoFiles();
  options_.atomic_flush = true;
  Open();
  ASSERT_NO_FATAL_FAILURE(FailCompaction());
  const int num_created = fs_->NumCreated(slow_);
  for (int i = 1; i <= 2; ++i) {
    PutValues(100 * i, 100 * i + 20);
    ASSERT_OK(Flush());
    EXPECT_EQ(NumTableFilesAtLevel(0), 2 + i);
    ASSERT_EQ(BgError().severity(), Status::Severity::kSoftError);
  }
  ExpectNoRecovery();
  EXPECT_EQ(num_recoveries_, 0);
  EXPECT_EQ(fs_->NumCreated(slow_), num_created);

  fs_->SetFree(slow_, kPlenty);
  ExpectRecovery();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_GT(fs_->NumCreated(slow_), num_created);
  ExpectValues(0, 80);
  ExpectValues(200, 220);
}

// A full path keeps compactions off only that write to it.
TEST_F(DBSpaceRecoveryTest, OutputsOfCompactionsAreReservedWhereTheyGo) {
  std::map<std::string, uint64_t> outputs;
  EnableCallBack("DBStrata::ReserveSpace:Outputs", [&](void* arg) {
    outputs = *static_cast<SpaceReservations::Bytes*>(arg);
  });
  for (const bool moves_values : {false, true}) {
    SCOPED_TRACE(moves_values);
    if (moves_values) {
      UseLayout({0, 1}, {0, 1});
    }
    Open();
    PutValues(0, 40);
    ASSERT_OK(Flush());
    uint64_t keys = 0;
    std::vector<LiveFileMetaData> live_files;
    db_->GetLiveFilesMetaData(&live_files);
    for (const LiveFileMetaData& file : live_files) {
      keys += file.size;
    }
    ASSERT_GT(keys, 0);
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kSkip;
    options.change_level = false;
    ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
    if (moves_values) {
      ASSERT_EQ(outputs.size(), 1);
      ASSERT_EQ(outputs.begin()->first, slow_);
      EXPECT_GT(outputs.begin()->second, keys + 40 * 1000);
      EXPECT_LT(outputs.begin()->second, keys + 40 * 1200);
    } else {
      EXPECT_EQ(outputs, (std::map<std::string, uint64_t>{{fast_, keys}}));
    }
    EXPECT_EQ(Manager()->space_reservations()->All(),
              SpaceReservations::Bytes());
  }
}

// The recovery needs the paths that the layout has now.
TEST_F(DBSpaceRecoveryTest, ChangedLayoutChangesThePaths) {
  ASSERT_NO_FATAL_FAILURE(StopByFullBlobPath());
  ExpectNoRecovery();
  const int num_created = fs_->NumCreated(slow_);
  ASSERT_OK(db_->SetOptions({{"level_blob_path_ids", "0"}}));
  ExpectRecovery();
  EXPECT_EQ(fs_->NumCreated(slow_), num_created);
  EXPECT_LT(fs_->Free(slow_), 1000);
  ExpectValues(0, 10);
}

TEST_F(DBSpaceRecoveryTest, DroppedFamilyNeedsNoPath) {
  UseLayout({0}, {0});
  Open();
  Options on_slow = options_;
  on_slow.level_sst_path_ids = {1};
  on_slow.level_blob_path_ids = {1};
  ColumnFamilyHandle* family = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(on_slow, "on_slow", &family));
  PutValues(0, 10);
  PutValues(0, 10, family);
  fs_->SetFree(slow_, 500);
  ASSERT_TRUE(db_->Flush(FlushOptions(), family).IsNoSpace());
  ExpectNoRecovery();
  ASSERT_OK(db_->DropColumnFamily(family));
  ExpectRecovery();
  ASSERT_OK(db_->DestroyColumnFamilyHandle(family));
  ASSERT_OK(Flush());
  ExpectValues(0, 10);
}

// The same for the error of a compaction.
TEST_F(DBSpaceRecoveryTest, ChangedLayoutChangesThePathsOfCompactions) {
  UseLayout({0, 1}, {0, 1});
  CompactTwoFiles();
  Open();
  ASSERT_NO_FATAL_FAILURE(FailCompaction());
  const int num_created = fs_->NumCreated(slow_);
  // The full path is still the one of other levels' files.
  ASSERT_OK(db_->SetOptions({{"level_sst_path_ids", "0:0:1"}}));
  ExpectNoRecovery();
  ASSERT_OK(db_->SetOptions(
      {{"level_sst_path_ids", "0"}, {"level_blob_path_ids", "0"}}));
  ExpectRecovery();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  ASSERT_OK(BgError());
  EXPECT_LT(NumTableFilesAtLevel(0), 2);
  EXPECT_GT(NumTableFilesAtLevel(1), 0);
  EXPECT_EQ(fs_->NumCreated(slow_), num_created);
  EXPECT_EQ(num_recoveries_, 1);
  ExpectValues(0, 80);
}

TEST_F(DBSpaceRecoveryTest, DroppedFamilyNeedsNoPathOfCompactions) {
  UseLayout({0, 1}, {0, 1});
  CompactTwoFiles();
  Open();
  ColumnFamilyHandle* family = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(options_, "dropped", &family));
  ASSERT_NO_FATAL_FAILURE(FailCompaction(family));
  ExpectNoRecovery();
  // Another family still has the full path.
  ASSERT_OK(db_->DropColumnFamily(family));
  ExpectRecovery();
  ASSERT_OK(db_->DestroyColumnFamilyHandle(family));
  PutValues(0, 10);
  ASSERT_OK(Flush());
  ExpectValues(0, 10);
  EXPECT_EQ(num_recoveries_, 1);
}

// Resume() gives the compaction up if it is not to begin again.
TEST_F(DBSpaceRecoveryTest, ResumeEndsTheErrorOfACompaction) {
  UseLayout({0, 1}, {0, 1});
  CompactTwoFiles();
  Open();
  ASSERT_NO_FATAL_FAILURE(FailCompaction());
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "true"}}));
  ExpectNoRecovery();
  EXPECT_EQ(num_recoveries_, 0);
  ASSERT_OK(db_->Resume());
  ExpectRecovery();
  EXPECT_EQ(num_recoveries_, 1);
  // If it is, it fails again while the path is full.
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  ASSERT_TRUE(WaitUntil([&] { return !BgError().ok(); }));
  EXPECT_EQ(BgError().severity(), Status::Severity::kSoftError);
  ExpectNoRecovery();
  fs_->SetFree(slow_, kPlenty);
  ExpectRecovery();
  ExpectValues(0, 80);
}

// A DB that was opened with one path gets a column family on another one.
TEST_F(DBSpaceRecoveryTest, LaterFamilyBringsItsPaths) {
  options_.cf_paths.clear();
  options_.level_sst_path_ids.clear();
  options_.level_blob_path_ids.clear();
  Open();
  Options on_slow = options_;
  on_slow.cf_paths = {{slow_, 0}};
  ColumnFamilyHandle* family = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(on_slow, "on_slow", &family));
  PutValues(0, 10, family);
  fs_->SetFree(slow_, 500);
  ASSERT_TRUE(db_->Flush(FlushOptions(), family).IsNoSpace());
  ExpectNoRecovery();
  EXPECT_TRUE(logger_->Has("waits for space: ", slow_ + " has 500"));
  fs_->SetFree(slow_, kPlenty);
  ExpectRecovery();
  ASSERT_OK(db_->Flush(FlushOptions(), family));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(family));
}

TEST_F(DBSpaceRecoveryTest, WalNeedsRoomInItsDirectory) {
  options_.wal_dir = wal_;
  Open();
  PutValues(0, 10);
  fs_->SetFree(wal_, 10);
  const Status s = Put("failed", std::string(2000, 'f'));
  ASSERT_TRUE(s.IsNoSpace()) << s.ToString();
  EXPECT_NE(s.ToString().find(wal_ + "/"), std::string::npos) << s.ToString();
  ASSERT_EQ(BgError().severity(), Status::Severity::kHardError);
  ExpectNoRecovery();
  // The bytes that were not written, at most 1 MiB, must find room.
  fs_->SetFree(wal_, 1000000);
  ExpectNoRecovery();
  EXPECT_TRUE(
      logger_->Has("waits for space: ", wal_ + " has 1000000 free bytes"));
  EXPECT_EQ(num_recoveries_, 0);
  fs_->SetFree(wal_, 2000000);
  ExpectRecovery();
  ASSERT_OK(Put("later", "value"));
  for (const bool reopened : {false, true}) {
    SCOPED_TRACE(reopened);
    ExpectValues(0, 10);
    EXPECT_EQ(Get("failed"), "NOT_FOUND");
    EXPECT_EQ(Get("later"), "value");
    Reopen(options_);
  }
}

TEST_F(DBSpaceRecoveryTest, ManifestNeedsRoomInTheDirectoryOfTheDB) {
  Open();
  PutValues(0, 10);
  fs_->SetFree(dbname_, 10);
  const Status s = Flush();
  ASSERT_TRUE(s.IsNoSpace()) << s.ToString();
  EXPECT_NE(s.ToString().find("MANIFEST"), std::string::npos) << s.ToString();
  ASSERT_EQ(BgError().severity(), Status::Severity::kHardError);
  ExpectNoRecovery();
  EXPECT_TRUE(logger_->Has("waits for space: ", dbname_ + " has "));
  EXPECT_EQ(num_recoveries_, 0);
  fs_->SetFree(dbname_, kPlenty);
  ExpectRecovery();
  ASSERT_OK(Put("later", "value"));
  for (const bool reopened : {false, true}) {
    SCOPED_TRACE(reopened);
    ExpectValues(0, 10);
    EXPECT_EQ(Get("later"), "value");
    Reopen(options_);
  }
}

// The limit of the SstFileManager is for all paths together.
TEST_F(DBSpaceRecoveryTest, LimitIsForAllPaths) {
  Open();
  Manager()->SetMaxAllowedSpaceUsage(30000);
  PutValues(0, 10);
  ASSERT_OK(Flush());
  const uint64_t before = Manager()->GetTotalSize();
  ASSERT_GT(before, 10000);
  PutValues(10, 40);
  const Status s = Flush();
  ASSERT_EQ(s.subcode(), Status::SubCode::kSpaceLimit) << s.ToString();
  ASSERT_EQ(s.severity(), Status::Severity::kHardError);
  const int num_created = fs_->NumCreated(slow_);
  ExpectNoRecovery();
  EXPECT_TRUE(logger_->Has("waits for space: The files of all paths have ",
                           "the SstFileManager allows 30000"));
  EXPECT_EQ(fs_->NumCreated(slow_), num_created);
  EXPECT_EQ(num_recoveries_, 0);
  Manager()->SetMaxAllowedSpaceUsage(1 << 20);
  ExpectRecovery();
  ASSERT_OK(Flush());
  ExpectValues(0, 40);
}

TEST_F(DBSpaceRecoveryTest, DatabasesDoNotWaitForEachOther) {
  const std::string other_name = dbname_ + "_other";
  const std::string other_fast = dbname_ + "_other_fast";
  const std::string other_slow = dbname_ + "_other_slow";
  fs_->AddDevice({other_slow}, kPlenty);
  Options options = options_;
  options.cf_paths = {{other_fast, 0}, {other_slow, 0}};
  options.info_log = std::make_shared<LineLogger>();
  std::unique_ptr<DB> other;
  ASSERT_OK(DB::Open(options, other_name, &other));
  ASSERT_NO_FATAL_FAILURE(StopByFullBlobPath());
  ASSERT_OK(other->Put(WriteOptions(), "k", std::string(1000, 'v')));
  fs_->SetFree(other_slow, 100);
  ASSERT_TRUE(other->Flush(FlushOptions()).IsNoSpace());
  auto* const impl = static_cast_with_check<DBImpl>(other.get());
  ExpectNoRecovery();
  EXPECT_FALSE(impl->TEST_GetBGError().ok());
  fs_->SetFree(other_slow, kPlenty);
  EXPECT_TRUE(WaitUntil([&] { return impl->TEST_GetBGError().ok(); }));
  EXPECT_OK(other->Put(WriteOptions(), "k", "w"));
  // A DB that is closed does not wait any more.
  fs_->SetFree(other_slow, 100);
  ASSERT_OK(other->Put(WriteOptions(), "k", std::string(1000, 'v')));
  ASSERT_TRUE(other->Flush(FlushOptions()).IsNoSpace());
  ASSERT_OK(other->Close());
  other.reset();
  ExpectNoRecovery();
  fs_->SetFree(slow_, kPlenty);
  ExpectRecovery();
  ExpectValues(0, 10);
  ASSERT_OK(DestroyDB(other_name, options));
  EXPECT_OK(DestroyDir(env_, other_fast));
  EXPECT_OK(DestroyDir(env_, other_slow));
}

TEST_F(DBSpaceRecoveryTest, CloseEndsTheWait) {
  ASSERT_NO_FATAL_FAILURE(StopByFullBlobPath());
  ExpectNoRecovery();
  ASSERT_OK(db_->Close());
  fs_->SetFree(slow_, kPlenty);
  Reopen(options_);
  ExpectValues(0, 10);
  ASSERT_OK(Flush());
  EXPECT_EQ(num_recoveries_, 0);
}

// Close() ends the recovery after the error was met, and before the recovery
// begins.
TEST_F(DBSpaceRecoveryTest, NoRecoveryBeginsInClose) {
  for (const bool of_later_family : {false, true}) {
    SCOPED_TRACE(of_later_family);
    const auto told = std::make_shared<EventCount>();
    const auto canceled = std::make_shared<EventCount>();
    options_.listeners = {std::make_shared<ErrorListener>([=] {
      told->Add();
      EXPECT_TRUE(canceled->WaitFor(1));
    })};
    Options options = options_;
    if (of_later_family) {
      options_.cf_paths.clear();
      options_.level_sst_path_ids.clear();
      options_.level_blob_path_ids.clear();
      options.cf_paths = {{slow_, 0}};
      options.level_sst_path_ids.clear();
      options.level_blob_path_ids.clear();
    }
    fs_->SetFree(slow_, kPlenty);
    Open();
    ColumnFamilyHandle* family = nullptr;
    ASSERT_OK(db_->CreateColumnFamily(options, "later", &family));
    PutValues(0, 10, family);
    EnableCallBack("PostEndAutoRecovery",
                   [canceled](void*) { canceled->Add(); });
    fs_->SetFree(slow_, 500);
    FlushOptions without_wait;
    without_wait.wait = false;
    ASSERT_OK(db_->Flush(without_wait, family));
    ASSERT_TRUE(told->WaitFor(1));
    ASSERT_OK(db_->DestroyColumnFamilyHandle(family));
    CloseInTime();
    EXPECT_EQ(num_recoveries_, 0);
    EXPECT_GT(fs_->NumRefused(slow_), 0);

    fs_->SetFree(slow_, kPlenty);
    ReopenWithColumnFamilies({kDefaultColumnFamilyName, "later"},
                             std::vector<Options>{options_, options});
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(Get(1, Key(i)), ValueOf(i));
    }
    Close();
    ASSERT_OK(
        DestroyDB(dbname_, options_,
                  {{kDefaultColumnFamilyName, options_}, {"later", options}}));
    // The fixture destroys the DB in it once more.
    ASSERT_OK(env_->CreateDirIfMissing(dbname_));
  }
}

TEST_F(DBSpaceRecoveryTest, WithoutAnSstFileManagerTheUserResumes) {
  options_.sst_file_manager.reset();
  ASSERT_NO_FATAL_FAILURE(StopByFullBlobPath());
  ResumeByHand();
}

TEST_F(DBSpaceRecoveryTest, WithoutFreeSpaceTheUserResumes) {
  for (const bool tells_at_open : {false, true}) {
    SCOPED_TRACE(tells_at_open);
    fs_->tells_free_space = tells_at_open;
    Open();
    fs_->tells_free_space = false;
    PutValues(0, 10);
    fs_->SetFree(slow_, 500);
    ASSERT_TRUE(Flush().IsNoSpace());
    ASSERT_NO_FATAL_FAILURE(ResumeByHand());
  }
}

// A soft error from which the DB does not recover stops background work, so
// that Resume() can end it.
TEST_F(DBSpaceRecoveryTest, ListenerCanForbidTheRecovery) {
  UseLayout({0, 1}, {0, 1});
  options_.listeners.push_back(std::make_shared<RecoveryVeto>());
  Open();
  PutValues(0, 40);
  ASSERT_OK(Flush());
  fs_->SetFree(slow_, 2000);
  ASSERT_TRUE(
      db_->CompactRange(CompactRangeOptions(), nullptr, nullptr).IsNoSpace());
  ASSERT_EQ(BgError().severity(), Status::Severity::kSoftError);
  EXPECT_FALSE(dbfull()->TEST_IsRecoveryInProgress());
  fs_->SetFree(slow_, kPlenty);
  EXPECT_FALSE(BgError().ok());
  ASSERT_OK(db_->Resume());
  ASSERT_OK(BgError());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ExpectValues(0, 40);
  EXPECT_EQ(num_tries_, 0);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
