//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of MigratePaths() on real databases whose paths are devices of their
// own. Delta files are in db/delta/db_delta_path_test.cc.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/path_layout/path_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/options_util.h"
#include "rocksdb/utilities/path_migration.h"
#include "test_util/strata/held_point_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A call of MigratePaths() on a thread of its own, which the destructor ends.
class RunningMigration {
 public:
  RunningMigration(DB* db, ColumnFamilyHandle* family,
                   MigratePathsOptions options) {
    options.canceled = &canceled_;
    options.on_progress = [this](const MigratePathsProgress& progress) {
      jobs_ = progress.jobs;
      has_begun_ = true;
    };
    thread_ = std::thread([this, db, family, options = std::move(options)] {
      status_ = MigratePaths(db, family, options, &progress_);
    });
  }
  ~RunningMigration() {
    canceled_ = true;
    Join().PermitUncheckedError();
    status_.PermitUncheckedError();
  }
  RunningMigration(const RunningMigration&) = delete;
  RunningMigration& operator=(const RunningMigration&) = delete;

  bool WaitUntilBegun() {
    return WaitUntil([this] { return has_begun_.load(); });
  }
  bool WaitForJobs(uint64_t jobs) {
    return WaitUntil([this, jobs] { return jobs_.load() >= jobs; });
  }
  void Cancel() { canceled_ = true; }
  Status Join() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return status_;
  }
  // REQUIRES: Join() was called.
  const MigratePathsProgress& progress() const { return progress_; }

 private:
  std::atomic<bool> canceled_{false};
  std::atomic<bool> has_begun_{false};
  std::atomic<uint64_t> jobs_{0};
  MigratePathsProgress progress_;
  Status status_;
  std::thread thread_;
};

}  // namespace

class DBPathMigrationTest : public PathTestBase {
 protected:
  enum class Values { kInline, kBlobDB, kMap };

  DBPathMigrationTest() : PathTestBase("db_path_migration_test") {}

  Options MigrationOptions(const std::string& prefix, const Ids& sst_ids,
                           const Ids& blob_ids,
                           Values values = Values::kBlobDB) {
    Options options = PathOptions(prefix, 3, sst_ids, blob_ids);
    options.enable_blob_files = values != Values::kInline;
    options.enable_blob_address_map = values == Values::kMap;
    // No collection in the background makes copies on the old path.
    options.blob_gc_space_amp_limit = 0;
    options.blob_scan_sort_budget = 0;
    return options;
  }

  // Fills a bottommost level and two files of level 0 that have newer versions.
  void Fill(int family) {
    ASSERT_NO_FATAL_FAILURE(PutRange(family, 0, 300, 1));
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(options, Handle(family), nullptr, nullptr));
    ASSERT_NO_FATAL_FAILURE(PutRange(family, 200, 400, 2));
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
    ASSERT_NO_FATAL_FAILURE(PutRange(family, 350, 450, 3));
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
  }

  uint64_t MisplacedBytes(int family = 0) {
    uint64_t bytes = UINT64_MAX;
    EXPECT_TRUE(db_->GetIntProperty(Handle(family),
                                    DB::Properties::kMisplacedBytes, &bytes));
    return bytes;
  }
  uint64_t MapValue(const std::string& property, const std::string& name) {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(db_->GetMapProperty(Handle(0), property, &values));
    const auto it = values.find(name);
    EXPECT_NE(values.end(), it) << name;
    return it == values.end() ? UINT64_MAX : std::stoull(it->second);
  }
  uint64_t Migration(const std::string& name) {
    return MapValue(DB::Properties::kPathMigration, name);
  }
  size_t NumSstFiles(int family = 0) {
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(Handle(family), &metadata);
    return metadata.file_count;
  }

  static MigratePathsOptions To(const Ids& sst_ids, const Ids& blob_ids) {
    MigratePathsOptions options;
    options.level_sst_path_ids = sst_ids;
    options.level_blob_path_ids = blob_ids;
    return options;
  }
  // Moves so slowly that it waits after the first job until it is stopped.
  static MigratePathsOptions SlowlyTo(const Ids& sst_ids, const Ids& blob_ids) {
    MigratePathsOptions options = To(sst_ids, blob_ids);
    options.max_bytes_per_second = 1;
    return options;
  }
  Status Migrate(int family, const MigratePathsOptions& options,
                 MigratePathsProgress* progress = nullptr) {
    return MigratePaths(db_.get(), Handle(family), options, progress);
  }

  // Returns true if the directory has no SST and no blob file once obsolete
  // files are deleted.
  bool IsEmptied(const std::string& directory) {
    return WaitUntil([&] {
      EXPECT_OK(dbfull()->TEST_WaitForCompact());
      dbfull()->TEST_DeleteObsoleteFiles();
      EXPECT_OK(dbfull()->TEST_WaitForPurge());
      std::vector<std::string> children;
      EXPECT_OK(device_env_->GetChildren(directory, &children));
      for (const std::string& child : children) {
        uint64_t number = 0;
        FileType type = kWalFile;
        if (ParseFileName(child, &number, &type) &&
            (type == kTableFile || type == kBlobFile)) {
          return false;
        }
      }
      return true;
    });
  }

  // Returns what the iterator shows.
  static std::map<std::string, std::string> Walk(Iterator* iter) {
    std::map<std::string, std::string> result;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      result[iter->key().ToString()] = iter->value().ToString();
    }
    EXPECT_OK(iter->status());
    return result;
  }

  void CheckMoves(Values values, CompactionStyle style);
  // Checks that a call waits for a flush that began before it.
  // point: where the flush is held; it does not hold the DB mutex there.
  // has_ingestion: an ingestion stays prepared meanwhile.
  void CheckWaitsForFlush(const std::string& point, bool has_ingestion);
  static void CheckSays(const Status& s, const std::string& text) {
    EXPECT_NE(s.ToString().find(text), std::string::npos) << s.ToString();
  }
};

void DBPathMigrationTest::CheckMoves(Values values, CompactionStyle style) {
  Options options = MigrationOptions("a", {0}, {0}, values);
  options.compaction_style = style;
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  ASSERT_EQ(0, MisplacedBytes());
  EXPECT_EQ(0, Migration("running"));

  const Snapshot* const snapshot = db_->GetSnapshot();
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot;
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions(), Handle(0)));
  const std::map<std::string, std::string> before = Walk(iter.get());
  ASSERT_EQ(450u, before.size());

  const size_t num_files = NumSstFiles();
  ASSERT_GE(num_files, 3u);
  MigratePathsOptions move = To({1}, {2});
  uint64_t moved = 0;
  move.on_progress = [&](const MigratePathsProgress& progress) {
    EXPECT_GE(progress.bytes_moved, moved);
    moved = progress.bytes_moved;
    EXPECT_EQ(1, Migration("running"));
    EXPECT_EQ(progress.bytes_left, Migration("bytes-left"));
    // The rest is less if an address map has removed names meanwhile.
    EXPECT_GE(progress.bytes_left, MisplacedBytes());
    EXPECT_GE(progress.bytes_left,
              MapValue(DB::Properties::kPathStats, "path0.misplaced-bytes"));
    EXPECT_GE(progress.files_left,
              MapValue(DB::Properties::kPathStats, "path0.misplaced-files"));
    EXPECT_EQ(0, MapValue(DB::Properties::kPathStats, "path1.misplaced-files"));
    // All files can be read at any time.
    EXPECT_OK(VerifyData());
  };
  MigratePathsProgress progress;
  ASSERT_OK(Migrate(0, move, &progress));
  EXPECT_EQ(0, MisplacedBytes());
  EXPECT_EQ(0, progress.bytes_left);
  EXPECT_EQ(0, progress.files_left);
  EXPECT_GT(progress.bytes_at_start, 0);
  EXPECT_GE(progress.files_at_start, num_files);
  EXPECT_GE(progress.bytes_moved, progress.bytes_at_start);
  EXPECT_GT(progress.bytes_written, 0);
  EXPECT_GT(progress.jobs, 1);
  EXPECT_LE(progress.jobs, num_files);
  EXPECT_EQ(0, Migration("running"));
  EXPECT_EQ(progress.bytes_moved, Migration("bytes-moved"));

  ASSERT_OK(VerifyData());
  EXPECT_EQ(before, Walk(iter.get()));
  {
    const std::unique_ptr<Iterator> again(
        db_->NewIterator(at_snapshot, Handle(0)));
    EXPECT_EQ(before, Walk(again.get()));
  }
  iter.reset();
  db_->ReleaseSnapshot(snapshot);
  EXPECT_TRUE(IsEmptied(PathOf("a", 0)));
  options.level_sst_path_ids = {1};
  options.level_blob_path_ids = {2};
  ASSERT_NO_FATAL_FAILURE(CheckPlacement(0, options));
  if (values != Values::kInline) {
    EXPECT_EQ(std::set<uint32_t>{2}, BlobPathIds(0, options));
  }
  // There is nothing left to do.
  ASSERT_OK(Migrate(0, MigratePathsOptions(), &progress));
  EXPECT_EQ(0, progress.jobs);
  EXPECT_EQ(0, progress.bytes_at_start);

  ASSERT_OK(Open({options}, /*create_families=*/false));
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

TEST_F(DBPathMigrationTest, MovesSstFiles) {
  ASSERT_NO_FATAL_FAILURE(CheckMoves(Values::kInline, kCompactionStyleLevel));
}

TEST_F(DBPathMigrationTest, MovesBlobFiles) {
  ASSERT_NO_FATAL_FAILURE(CheckMoves(Values::kBlobDB, kCompactionStyleLevel));
}

TEST_F(DBPathMigrationTest, MovesBlobFilesOfAnAddressMap) {
  ASSERT_NO_FATAL_FAILURE(CheckMoves(Values::kMap, kCompactionStyleLevel));
}

// A garbage collection leaves values on the path where they are.
TEST_F(DBPathMigrationTest, GarbageIsCollectedMeanwhile) {
  Options options = MigrationOptions("a", {0}, {0}, Values::kMap);
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  MigratePathsOptions move = To({1}, {2});
  move.on_progress = [&](const MigratePathsProgress&) {
    CollectBlobGarbageOptions collect;
    collect.max_sorted_runs = 1;
    EXPECT_OK(db_->CollectBlobGarbage(collect, Handle(0)));
    EXPECT_OK(VerifyData());
  };
  ASSERT_OK(Migrate(0, move));
  EXPECT_EQ(0, MisplacedBytes());
  EXPECT_TRUE(IsEmptied(PathOf("a", 0)));
  options.level_sst_path_ids = {1};
  options.level_blob_path_ids = {2};
  ASSERT_NO_FATAL_FAILURE(CheckPlacement(0, options));
  EXPECT_EQ(std::set<uint32_t>{2}, BlobPathIds(0, options));
  ASSERT_OK(VerifyData());
}

TEST_F(DBPathMigrationTest, MovesSstFilesOfUniversalCompaction) {
  ASSERT_NO_FATAL_FAILURE(
      CheckMoves(Values::kInline, kCompactionStyleUniversal));
}

TEST_F(DBPathMigrationTest, MovesBlobFilesOfUniversalCompaction) {
  ASSERT_NO_FATAL_FAILURE(
      CheckMoves(Values::kBlobDB, kCompactionStyleUniversal));
}

TEST_F(DBPathMigrationTest, LeavesFilesThatLieWhereTheyBelong) {
  Options options = MigrationOptions("a", {0}, {0}, Values::kInline);
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  const auto files_below_level0 = [&] {
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(Handle(0), &metadata);
    std::set<std::string> names;
    for (const LevelMetaData& level : metadata.levels) {
      for (const SstFileMetaData& file : level.files) {
        if (level.level > 0) {
          names.insert(file.relative_filename);
        }
      }
    }
    return names;
  };
  const std::set<std::string> before = files_below_level0();
  ASSERT_FALSE(before.empty());
  MigratePathsProgress progress;
  ASSERT_OK(Migrate(0, To({1, 0}, {}), &progress));
  EXPECT_EQ(2, progress.files_at_start);
  EXPECT_EQ(2, progress.jobs);
  EXPECT_EQ(before, files_below_level0());
  EXPECT_EQ((std::multiset<uint32_t>{1, 1}), SstPathIds(0, options, 0));
  ASSERT_OK(VerifyData());
}

// All blob files to which misplaced SST files refer count, with the bytes that
// are moved.
TEST_F(DBPathMigrationTest, BlobFilesCountWithTheirLiveBytes) {
  OpenNew({MigrationOptions("a", {0}, {0})});
  ASSERT_NO_FATAL_FAILURE(PutRange(0, 0, 300, 1));
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  ASSERT_NO_FATAL_FAILURE(PutRange(0, 200, 300, 2));
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  // A third of the older blob file becomes garbage.
  ASSERT_OK(
      db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr, nullptr));
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Handle(0), &metadata);
  ASSERT_EQ(2u, metadata.blob_files.size());
  uint64_t live_bytes = 0;
  uint64_t garbage_count = 0;
  for (const BlobMetaData& file : metadata.blob_files) {
    EXPECT_LT(file.garbage_blob_count, file.total_blob_count);
    live_bytes += file.blob_file_size - file.garbage_blob_bytes;
    garbage_count += file.garbage_blob_count;
  }
  ASSERT_EQ(100u, garbage_count);
  ASSERT_EQ(0, MisplacedBytes());
  // The SST files lie where they belong.
  ASSERT_OK(db_->SetOptions(Handle(0), {{"level_blob_path_ids", "1"}}));
  EXPECT_EQ(live_bytes, MisplacedBytes());
  EXPECT_EQ(live_bytes,
            MapValue(DB::Properties::kPathStats, "path0.misplaced-bytes"));
  EXPECT_EQ(2, MapValue(DB::Properties::kPathStats, "path0.misplaced-files"));
  MigratePathsProgress progress;
  ASSERT_OK(Migrate(0, MigratePathsOptions(), &progress));
  EXPECT_EQ(live_bytes, progress.bytes_at_start);
  EXPECT_EQ(2, progress.files_at_start);
  EXPECT_EQ(live_bytes, progress.bytes_moved);
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

TEST_F(DBPathMigrationTest, CanceledBetweenJobs) {
  Options options = MigrationOptions("a", {0}, {0}, Values::kInline);
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  std::atomic<bool> canceled{false};
  MigratePathsOptions move = To({1}, {2});
  move.canceled = &canceled;
  // The point is reached before each job.
  std::atomic<int> num_jobs{0};
  EnableCallBack("DBStrata::PathMigrationHost::RunJob",
                 [&](void*) { ++num_jobs; });
  move.on_progress = [&](const MigratePathsProgress& progress) {
    canceled = progress.jobs > 0;
  };
  MigratePathsProgress progress;
  Status s = Migrate(0, move, &progress);
  EXPECT_TRUE(s.IsIncomplete()) << s.ToString();
  EXPECT_TRUE(s.IsManualCompactionPaused()) << s.ToString();
  const uint64_t left = MisplacedBytes();
  CheckSays(s, "canceled");
  CheckSays(s, std::to_string(left) + " bytes are left to move");
  CheckSays(s, "path 0 (" + PathOf("a", 0) + ")");
  EXPECT_EQ(1, num_jobs.load());
  DisableCallBacks();
  EXPECT_EQ(1, progress.jobs);
  EXPECT_GT(left, 0);
  EXPECT_EQ(left, progress.bytes_left);
  EXPECT_GT(progress.bytes_moved, 0);
  ASSERT_OK(VerifyData());

  // The layout is in the OPTIONS file.
  ConfigOptions config_options;
  config_options.env = device_env_.get();
  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> families;
  ASSERT_OK(LoadLatestOptions(config_options, dbname_, &db_options, &families));
  ASSERT_EQ(1u, families.size());
  EXPECT_EQ(Ids{1}, families[0].options.level_sst_path_ids);
  EXPECT_EQ(Ids{2}, families[0].options.level_blob_path_ids);

  // Canceled before it begins.
  canceled = true;
  move.on_progress = nullptr;
  s = Migrate(0, move, &progress);
  EXPECT_TRUE(s.IsIncomplete()) << s.ToString();
  EXPECT_EQ(0, progress.jobs);
  // Another call goes on.
  ASSERT_OK(Migrate(0, MigratePathsOptions(), &progress));
  EXPECT_EQ(left, progress.bytes_at_start);
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

TEST_F(DBPathMigrationTest, BytesAreGrantedAtTheRate) {
  OpenNew({MigrationOptions("a", {0}, {0})});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  MigratePathsOptions move = To({1}, {1});
  move.max_bytes_per_second = 1 << 20;
  MigratePathsProgress before;
  move.on_progress = [&](const MigratePathsProgress& progress) {
    if (progress.jobs > before.jobs) {
      // When the job began, all bytes before it had been granted.
      EXPECT_LE(before.bytes_written,
                progress.micros * move.max_bytes_per_second / 1000000 + 1);
    }
    before = progress;
  };
  MigratePathsProgress progress;
  ASSERT_OK(Migrate(0, move, &progress));
  EXPECT_GT(progress.jobs, 1);
  EXPECT_EQ(0, MisplacedBytes());
}

// Automatic compactions leave misplaced files to the call, and move what it has
// left when it ends.
TEST_F(DBPathMigrationTest, AutomaticCompactionsLeaveFilesToTheCall) {
  Options options = MigrationOptions("a", {0}, {0});
  options.level0_file_num_compaction_trigger = 100;
  options.level0_slowdown_writes_trigger = 200;
  options.level0_stop_writes_trigger = 300;
  options.disable_auto_compactions = false;
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  std::atomic<bool> canceled{false};
  MigratePathsOptions move = To({1}, {2});
  move.canceled = &canceled;
  move.on_progress = [&](const MigratePathsProgress& progress) {
    // A flush installs a Version, and schedules compactions.
    ASSERT_NO_FATAL_FAILURE(PutRange(0, 500, 510, 1));
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
    EXPECT_OK(dbfull()->TEST_WaitForCompact());
    EXPECT_EQ(progress.bytes_left, MisplacedBytes());
    canceled = progress.jobs > 0;
  };
  const Status s = Migrate(0, move);
  EXPECT_TRUE(s.IsIncomplete()) << s.ToString();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

TEST_F(DBPathMigrationTest, WritesGoOn) {
  Options options = MigrationOptions("a", {0}, {0});
  options.write_buffer_size = 64 << 10;
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  std::atomic<bool> is_done{false};
  int num_written = 0;
  DB* const db = db_.get();
  ColumnFamilyHandle* const family = Handle(0);
  std::thread writer([&] {
    for (; num_written < 10 || (!is_done && num_written < 5000);
         ++num_written) {
      const int i = 1000 + num_written;
      EXPECT_OK(db->Put(WriteOptions(), family, KeyOf(i), ValueOf(i, 7)));
    }
  });
  EXPECT_OK(Migrate(0, To({1}, {2})));
  is_done = true;
  writer.join();
  for (int i = 1000; i < 1000 + num_written; ++i) {
    Expect(0, KeyOf(i), ValueOf(i, 7));
  }
  ASSERT_OK(VerifyData());
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  EXPECT_EQ(0, MisplacedBytes());
  options.level_sst_path_ids = {1};
  options.level_blob_path_ids = {2};
  EXPECT_TRUE(IsEmptied(PathOf("a", 0)));
  ASSERT_NO_FATAL_FAILURE(CheckPlacement(0, options));
}

void DBPathMigrationTest::CheckWaitsForFlush(const std::string& point,
                                             bool has_ingestion) {
  Options options = MigrationOptions("a", {0}, {0});
  // A flush syncs WALs only if there is another column family.
  OpenNew({options, MigrationOptions("b", {0}, {0})});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  std::unique_ptr<FileIngestionHandle> ingestion;
  if (has_ingestion) {
    const std::string directory = PathOf("external", 0);
    ASSERT_OK(device_env_->CreateDirIfMissing(directory));
    const std::string file = directory + "/0.sst";
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(file));
    ASSERT_OK(writer.Put(KeyOf(1000), ValueOf(1000, 1)));
    ASSERT_OK(writer.Finish());
    ASSERT_OK(db_->PrepareFileIngestion(
        Handle(0), {file}, IngestExternalFileOptions(), &ingestion));
  }
  ASSERT_NO_FATAL_FAILURE(PutRange(0, 600, 620));
  {
    HeldPoint flush(point);
    FlushOptions flush_options;
    flush_options.wait = false;
    ASSERT_OK(db_->Flush(flush_options, Handle(0)));
    ASSERT_TRUE(flush.WaitUntilReached());
    const auto waits = EnableCallBackOnce(
        "DBStrata::PathMigrationHost::HasOlderJobs:Waits", [](void*) {});
    RunningMigration migration(db_.get(), Handle(0), To({1}, {2}));
    EXPECT_TRUE(WaitUntil([&] { return waits->load(); }));
    EXPECT_EQ(0, MisplacedBytes());
    flush.Release();
    EXPECT_OK(migration.Join());
    // The flush has written to path 0.
    EXPECT_GT(migration.progress().bytes_moved,
              migration.progress().bytes_at_start);
  }
  EXPECT_EQ(0, MisplacedBytes());
  if (ingestion != nullptr) {
    ASSERT_OK(ingestion->Abort());
    // Its file number has kept obsolete files with larger ones.
    ASSERT_OK(db_->DisableFileDeletions());
    ASSERT_OK(db_->EnableFileDeletions());
  }
  options.level_sst_path_ids = {1};
  options.level_blob_path_ids = {2};
  ASSERT_NO_FATAL_FAILURE(CheckPlacement(0, options));
  ASSERT_OK(VerifyData());
}

// A flush that began before the layout was set adds its file afterwards.
TEST_F(DBPathMigrationTest, WaitsForJobsOfTheFormerLayout) {
  ASSERT_NO_FATAL_FAILURE(
      CheckWaitsForFlush("FlushJob::WriteLevel0Table:num_memtables",
                         /*has_ingestion=*/false));
}

// The call waits for the flush, but not for an ingestion that was prepared.
TEST_F(DBPathMigrationTest, WaitsForJobsBesideAPreparedIngestion) {
  ASSERT_NO_FATAL_FAILURE(
      CheckWaitsForFlush("FlushJob::WriteLevel0Table:num_memtables",
                         /*has_ingestion=*/true));
}

// The flush has its options, but no file number yet: the next number when it
// began is the first of two that the OPTIONS file with the new layout takes.
TEST_F(DBPathMigrationTest, WaitsForAFlushWithoutAFileNumber) {
  ASSERT_NO_FATAL_FAILURE(CheckWaitsForFlush("DBImpl::SyncClosedWals:Start",
                                             /*has_ingestion=*/false));
}

// A compaction of level 0 has its options, but no thread yet, when the call
// begins. No file is misplaced before it has written to the former path of
// level 1.
TEST_F(DBPathMigrationTest, WaitsForACompactionWithoutAThread) {
  Options options = MigrationOptions("a", {0, 1}, {0}, Values::kInline);
  OpenNew({options});
  for (const int version : {1, 2}) {
    ASSERT_NO_FATAL_FAILURE(PutRange(0, 0, 300, version));
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  device_env_->SetBackgroundThreads(1, Env::Priority::LOW);
  test::SleepingBackgroundTask sleeping;
  device_env_->Schedule(&test::SleepingBackgroundTask::DoSleepTask, &sleeping,
                        Env::Priority::LOW);
  sleeping.WaitUntilSleeping();
  // The DB mutex is held there.
  const auto scheduled =
      EnableCallBackOnce("DBImpl::RunManualCompaction:Scheduled", [](void*) {});
  DB* const db = db_.get();
  ColumnFamilyHandle* const family = Handle(0);
  Status compacted;
  std::thread compaction([db, family, &compacted] {
    CompactRangeOptions range_options;
    range_options.exclusive_manual_compaction = false;
    // The call leaves misplaced files to the migration.
    range_options.bottommost_level_compaction =
        BottommostLevelCompaction::kSkip;
    compacted = db->CompactRange(range_options, family, nullptr, nullptr);
  });
  EXPECT_TRUE(WaitUntil([&scheduled] { return scheduled->load(); }));
  // The call looks again and again, and has nothing to move.
  std::atomic<int> num_looks{0};
  std::atomic<int> num_jobs{0};
  EnableCallBack("DBStrata::PathMigrationHost::CheckToGoOn",
                 [&num_looks](void*) { ++num_looks; });
  EnableCallBack("DBStrata::PathMigrationHost::RunJob",
                 [&num_jobs](void*) { ++num_jobs; });
  {
    RunningMigration migration(db, family, To({0}, {0}));
    EXPECT_TRUE(WaitUntil([&num_looks] { return num_looks.load() > 2; }));
    EXPECT_EQ(0, num_jobs.load());
    EXPECT_EQ(0, MisplacedBytes());
    sleeping.WakeUp();
    compaction.join();
    EXPECT_OK(migration.Join());
    EXPECT_EQ(0, migration.progress().bytes_at_start);
    EXPECT_GT(migration.progress().bytes_written, 0);
  }
  DisableCallBacks();
  sleeping.WaitUntilDone();
  ASSERT_OK(compacted);
  EXPECT_EQ(0, MisplacedBytes());
  options.level_sst_path_ids = {0};
  EXPECT_TRUE(IsEmptied(PathOf("a", 1)));
  ASSERT_NO_FATAL_FAILURE(CheckPlacement(0, options));
  ASSERT_OK(VerifyData());
}

// While a compaction has all misplaced files, the call can be canceled.
TEST_F(DBPathMigrationTest, CanceledWhileACompactionHasAllFiles) {
  OpenNew({MigrationOptions("a", {0}, {0}, Values::kInline)});
  // A compaction of level 0 takes both files.
  for (const int version : {1, 2}) {
    ASSERT_NO_FATAL_FAILURE(PutRange(0, 0, 300, version));
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  }
  std::atomic<int> num_jobs{0};
  DB* const db = db_.get();
  ColumnFamilyHandle* const family = Handle(0);
  Status compacted;
  HeldPoint job("DBImpl::BackgroundCompaction:NonTrivial:BeforeRun");
  std::thread compaction([db, family, &compacted] {
    CompactRangeOptions options;
    options.exclusive_manual_compaction = false;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    compacted = db->CompactRange(options, family, nullptr, nullptr);
  });
  EXPECT_TRUE(job.WaitUntilReached());
  EnableCallBack("DBStrata::PathMigrationHost::RunJob",
                 [&num_jobs](void*) { ++num_jobs; });
  {
    RunningMigration migration(db, family, To({1}, {1}));
    // It tries again and again.
    EXPECT_TRUE(WaitUntil([&num_jobs] { return num_jobs.load() > 1; }));
    migration.Cancel();
    const Status s = migration.Join();
    EXPECT_TRUE(s.IsIncomplete()) << s.ToString();
    CheckSays(s, "canceled");
    EXPECT_EQ(0, migration.progress().jobs);
  }
  job.Release();
  compaction.join();
  ASSERT_OK(compacted);
  ASSERT_OK(Migrate(0, MigratePathsOptions()));
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

// A compaction of the background that began before the call moves the only
// file. The call does not count it.
TEST_F(DBPathMigrationTest, WorkOfOtherJobsIsNotCounted) {
  Options options = MigrationOptions("a", {0}, {0}, Values::kInline);
  options.level0_file_num_compaction_trigger = 100;
  options.level0_slowdown_writes_trigger = 200;
  options.level0_stop_writes_trigger = 300;
  options.disable_auto_compactions = false;
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(PutRange(0, 0, 300, 1));
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  ASSERT_EQ(1u, NumSstFiles());
  std::atomic<int> num_jobs{0};
  HeldPoint job("DBImpl::BackgroundCompaction:NonTrivial:BeforeRun");
  ASSERT_OK(db_->SetOptions(Handle(0), {{"level_sst_path_ids", "1"}}));
  EXPECT_TRUE(job.WaitUntilReached());
  EnableCallBack("DBStrata::PathMigrationHost::RunJob",
                 [&num_jobs](void*) { ++num_jobs; });
  RunningMigration migration(db_.get(), Handle(0), MigratePathsOptions());
  EXPECT_TRUE(WaitUntil([&num_jobs] { return num_jobs.load() > 1; }));
  job.Release();
  EXPECT_OK(migration.Join());
  const MigratePathsProgress& progress = migration.progress();
  EXPECT_GT(progress.bytes_at_start, 0);
  EXPECT_EQ(progress.bytes_at_start, progress.bytes_moved);
  EXPECT_EQ(0, progress.jobs);
  EXPECT_EQ(0, progress.bytes_written);
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

TEST_F(DBPathMigrationTest, ConcurrentCompactRange) {
  Options options = MigrationOptions("a", {0}, {0}, Values::kInline);
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  for (const bool exclusive : {false, true}) {
    CompactRangeOptions range_options;
    range_options.exclusive_manual_compaction = exclusive;
    std::atomic<int> num_calls{0};
    MigratePathsOptions move = To({exclusive ? 2u : 1u}, {});
    std::thread compaction([&] {
      do {
        EXPECT_OK(
            db_->CompactRange(range_options, Handle(0), nullptr, nullptr));
      } while (++num_calls < 3);
    });
    EXPECT_OK(Migrate(0, move));
    compaction.join();
    EXPECT_EQ(0, MisplacedBytes());
    ASSERT_OK(VerifyData());
  }
}

TEST_F(DBPathMigrationTest, Refusals) {
  // No column family.
  Options options = MigrationOptions("a", {0}, {0});
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  Status s = MigratePaths(nullptr, Handle(0), MigratePathsOptions());
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  s = MigratePaths(db_.get(), nullptr, MigratePathsOptions());
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();

  // A path id without a path.
  s = Migrate(0, To({1}, {3}));
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  CheckSays(s, "level_blob_path_ids: path id 3 of level 0 names no path");
  EXPECT_EQ(0, Migration("running"));
  EXPECT_EQ(0, MisplacedBytes());
  // The layout would be taken away.
  s = Migrate(0, To({}, {}));
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  CheckSays(s, "nothing says where files of column family default belong");
  ASSERT_OK(Migrate(0, MigratePathsOptions()));
  ASSERT_OK(db_->SetOptions(
      Handle(0), {{"level_sst_path_ids", ""}, {"level_blob_path_ids", ""}}));
  s = Migrate(0, MigratePathsOptions());
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_FALSE(MapValue(DB::Properties::kPathStats, "path0.sst-files") == 0);
  std::map<std::string, std::string> stats;
  ASSERT_TRUE(
      db_->GetMapProperty(Handle(0), DB::Properties::kPathStats, &stats));
  EXPECT_EQ(0, stats.count("path0.misplaced-bytes"));

  // A read-only instance.
  Close();
  std::unique_ptr<DB> read_only;
  ASSERT_OK(DB::OpenForReadOnly(options, dbname_, &read_only));
  s = MigratePaths(read_only.get(), read_only->DefaultColumnFamily(),
                   To({1}, {1}));
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  CheckSays(s, "read only");
  read_only.reset();
  DestroyAll();

  // FIFO.
  options = PathOptions("b", 1, {}, {});
  options.enable_blob_files = false;
  options.compaction_style = kCompactionStyleFIFO;
  options.num_levels = 1;
  options.max_open_files = -1;
  OpenNew({options});
  s = Migrate(0, To({0}, {}));
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  CheckSays(s, "needs level or universal compaction");
}

TEST_F(DBPathMigrationTest, SecondCallIsRefused) {
  Options options = MigrationOptions("a", {0}, {0}, Values::kInline);
  Options other = MigrationOptions("b", {0}, {0}, Values::kInline);
  OpenNew({options, other});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  ASSERT_NO_FATAL_FAILURE(Fill(1));
  RunningMigration migration(db_.get(), Handle(0), SlowlyTo({1}, {1}));
  ASSERT_TRUE(migration.WaitForJobs(1));
  MigratePathsProgress progress;
  Status s = Migrate(0, MigratePathsOptions(), &progress);
  EXPECT_TRUE(s.IsBusy()) << s.ToString();
  CheckSays(s, "another call for column family default is running");
  // Not so for another column family.
  EXPECT_OK(Migrate(1, To({1}, {1})));
  EXPECT_EQ(0, MisplacedBytes(1));
  migration.Cancel();
  s = migration.Join();
  EXPECT_TRUE(s.IsIncomplete()) << s.ToString();
  EXPECT_EQ(1, migration.progress().jobs);
  EXPECT_OK(Migrate(0, MigratePathsOptions()));
  ASSERT_OK(VerifyData());
}

TEST_F(DBPathMigrationTest, DisableManualCompactionEndsIt) {
  OpenNew({MigrationOptions("a", {0}, {0}, Values::kInline)});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  {
    RunningMigration migration(db_.get(), Handle(0), SlowlyTo({1}, {1}));
    ASSERT_TRUE(migration.WaitForJobs(1));
    db_->DisableManualCompaction();
    const Status s = migration.Join();
    EXPECT_TRUE(s.IsManualCompactionPaused()) << s.ToString();
    CheckSays(s, "bytes are left to move");
  }
  const Status s = Migrate(0, MigratePathsOptions());
  EXPECT_TRUE(s.IsManualCompactionPaused()) << s.ToString();
  CheckSays(s, "manual compactions are disabled");
  db_->EnableManualCompaction();
  ASSERT_OK(Migrate(0, MigratePathsOptions()));
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

// The error names the reason, although the call's flag is set, too.
TEST_F(DBPathMigrationTest, AbortAllCompactionsEndsIt) {
  OpenNew({MigrationOptions("a", {0}, {0}, Values::kInline)});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  {
    HeldPoint job("DBImpl::BackgroundCompaction:NonTrivial:BeforeRun");
    RunningMigration migration(db_.get(), Handle(0), To({1}, {1}));
    EXPECT_TRUE(job.WaitUntilReached());
    const auto is_set =
        EnableCallBackOnce("DBImpl::AbortAllCompactions:FlagSet", [](void*) {});
    DB* const db = db_.get();
    std::thread aborting([db] { db->AbortAllCompactions(); });
    EXPECT_TRUE(WaitUntil([&is_set] { return is_set->load(); }));
    job.Release();
    aborting.join();
    const Status s = migration.Join();
    EXPECT_TRUE(s.IsCompactionAborted()) << s.ToString();
    CheckSays(s, "compactions are aborted");
  }
  db_->ResumeAllCompactions();
  ASSERT_OK(Migrate(0, MigratePathsOptions()));
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

TEST_F(DBPathMigrationTest, WaitsWhileWorkIsPaused) {
  OpenNew({MigrationOptions("a", {0}, {0}, Values::kInline)});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  ASSERT_OK(db_->PauseBackgroundWork());
  RunningMigration migration(db_.get(), Handle(0), To({1}, {1}));
  ASSERT_TRUE(migration.WaitUntilBegun());
  const uint64_t left = MisplacedBytes();
  EXPECT_GT(left, 0);
  // Nothing has happened in the meantime.
  EXPECT_EQ(left, Migration("bytes-at-start"));
  ASSERT_OK(db_->ContinueBackgroundWork());
  EXPECT_OK(migration.Join());
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

// The property as a text has a line for each value.
TEST_F(DBPathMigrationTest, PropertyHasALineForEachValue) {
  OpenNew({MigrationOptions("a", {0}, {0}, Values::kInline)});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  const auto text = [this] {
    std::string value;
    EXPECT_TRUE(
        db_->GetProperty(Handle(0), DB::Properties::kPathMigration, &value));
    return value;
  };
  ASSERT_OK(db_->PauseBackgroundWork());
  RunningMigration migration(db_.get(), Handle(0), To({1}, {1}));
  ASSERT_TRUE(migration.WaitUntilBegun());
  const std::string left = std::to_string(MisplacedBytes());
  std::string value = text();
  EXPECT_NE(std::string::npos, value.find("running: 1\n")) << value;
  EXPECT_NE(std::string::npos, value.find("bytes-at-start: " + left + "\n"))
      << value;
  EXPECT_NE(std::string::npos, value.find("bytes-left: " + left + "\n"))
      << value;
  // Without a job that has ended, the rate is not known.
  EXPECT_EQ(std::string::npos, value.find("seconds-left")) << value;
  ASSERT_OK(db_->ContinueBackgroundWork());
  EXPECT_OK(migration.Join());
  std::map<std::string, std::string> values;
  ASSERT_TRUE(
      db_->GetMapProperty(Handle(0), DB::Properties::kPathMigration, &values));
  std::string expected;
  for (const auto& [name, number] : values) {
    expected.append(name).append(": ").append(number).append("\n");
  }
  value = text();
  EXPECT_EQ(expected, value);
  EXPECT_NE(std::string::npos, value.find("running: 0\n")) << value;
  EXPECT_NE(std::string::npos, value.find("\nseconds-left: 0\n")) << value;
}

TEST_F(DBPathMigrationTest, CloseEndsIt) {
  Options options = MigrationOptions("a", {0}, {0}, Values::kInline);
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  {
    RunningMigration migration(db_.get(), Handle(0), SlowlyTo({1}, {1}));
    ASSERT_TRUE(migration.WaitForJobs(1));
    for (ColumnFamilyHandle* handle : handles_) {
      EXPECT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    EXPECT_OK(db_->Close());
    const Status s = migration.Join();
    EXPECT_TRUE(s.IsShutdownInProgress()) << s.ToString();
    CheckSays(s, "bytes are left to move");
  }
  db_.reset();
  // The next open, with the options that are in the OPTIONS file now, goes on.
  options.level_sst_path_ids = {1};
  options.level_blob_path_ids = {1};
  ASSERT_OK(Open({options}, /*create_families=*/false));
  EXPECT_GT(MisplacedBytes(), 0);
  ASSERT_OK(
      db_->SetOptions(Handle(0), {{"disable_auto_compactions", "false"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, MisplacedBytes());
  ASSERT_OK(VerifyData());
}

TEST_F(DBPathMigrationTest, DropEndsIt) {
  Options options = MigrationOptions("a", {0}, {0}, Values::kInline);
  Options other = MigrationOptions("b", {0}, {0}, Values::kInline);
  OpenNew({options, other});
  ASSERT_NO_FATAL_FAILURE(Fill(1));
  RunningMigration migration(db_.get(), Handle(1), SlowlyTo({1}, {1}));
  ASSERT_TRUE(migration.WaitForJobs(1));
  ASSERT_OK(db_->DropColumnFamily(Handle(1)));
  Status s = migration.Join();
  EXPECT_TRUE(s.IsColumnFamilyDropped()) << s.ToString();
  s = Migrate(1, MigratePathsOptions());
  EXPECT_TRUE(s.IsColumnFamilyDropped()) << s.ToString();
}

// The error says what is left, and on which path.
TEST_F(DBPathMigrationTest, FailedJobEndsIt) {
  Options options = MigrationOptions("a", {0}, {0});
  OpenNew({options});
  ASSERT_NO_FATAL_FAILURE(Fill(0));
  // No job is left that deletes its inputs.
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  ASSERT_OK(dbfull()->TEST_WaitForPurge());
  EnableCallBackOnce("DBStrata::MigratePaths:LayoutIsSet",
                     [&](void*) { fs_->FailAfter(0); });
  const Status s = Migrate(0, To({1}, {2}));
  DisableCallBacks();
  EXPECT_FALSE(s.ok());
  EXPECT_TRUE(fs_->HasFailed());
  // The file system names the file, on one of the new paths.
  CheckSays(s, "injected error");
  CheckSays(s, dbname_ + "_a");
  CheckSays(s, "bytes are left to move");
  CheckSays(s, "path 0 (" + PathOf("a", 0) + ")");
  fs_->FailAfter(-1);
  options.level_sst_path_ids = {1};
  options.level_blob_path_ids = {2};
  ASSERT_OK(Open({options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  ASSERT_OK(Migrate(0, MigratePathsOptions()));
  ASSERT_NO_FATAL_FAILURE(CheckPlacement(0, options));
  ASSERT_OK(VerifyData());
}

// The power fails at each few steps of a migration.
TEST_F(DBPathMigrationTest, CrashLosesNothing) {
  constexpr int kStride = 5;
  bool has_failed = true;
  for (int steps = 0; has_failed; steps += kStride) {
    SCOPED_TRACE(steps);
    Options options = MigrationOptions("a", {0}, {0});
    OpenNew({options});
    ASSERT_NO_FATAL_FAILURE(Fill(0));
    fs_->PowerOffAfter(steps);
    const Status s = Migrate(0, To({1}, {2}));
    has_failed = fs_->HasFailed();
    if (!has_failed) {
      ASSERT_OK(s);
      ASSERT_EQ(0, MisplacedBytes());
    }
    ASSERT_NO_FATAL_FAILURE(Crash());
    fs_->PowerOffAfter(-1);
    // Either layout may be in the OPTIONS file. The application gives one.
    for (const bool is_new : {false, true}) {
      options.level_sst_path_ids = {is_new ? 1u : 0u};
      options.level_blob_path_ids = {is_new ? 2u : 0u};
      ASSERT_OK(Open({options}, /*create_families=*/false));
      ASSERT_OK(VerifyData());
    }
    ASSERT_OK(Migrate(0, MigratePathsOptions()));
    ASSERT_EQ(0, MisplacedBytes());
    ASSERT_NO_FATAL_FAILURE(CheckPlacement(0, options));
    ASSERT_OK(VerifyData());
    DestroyAll();
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
