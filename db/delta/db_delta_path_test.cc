//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests on which paths the delta files of real databases lie: where jobs write
// them, and that files on other paths than the options say are moved, whatever
// runs beside.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/delta/db_delta_model_test_util.h"
#include "db/delta/delta_version.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/options_util.h"
#include "rocksdb/utilities/path_migration.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::ModelDBTest;

namespace {

// Keeps everything.
class KeepingFilter : public CompactionFilter {
 public:
  const char* Name() const override { return "KeepingFilter"; }
};

}  // namespace

class DBDeltaPathTest : public ModelDBTest {
 protected:
  using Ids = std::vector<uint32_t>;
  using PathIds = std::set<uint32_t>;
  using Tier = DeltaFileDescription::Tier;
  using Kind = DeltaFileDescription::Kind;

  static constexpr uint32_t kMaxPaths = 3;

  DBDeltaPathTest() : ModelDBTest("db_delta_path_test") { RemovePaths(); }
  ~DBDeltaPathTest() override {
    ReleaseSnapshots();
    Close();
    RemovePaths();
  }

  void RemovePaths() {
    for (uint32_t i = 1; i < kMaxPaths; ++i) {
      DestroyDir(env_, PathOf(i)).PermitUncheckedError();
    }
  }
  std::string PathOf(uint32_t path_id) const {
    return path_id == 0 ? dbname_ : dbname_ + "_p" + std::to_string(path_id);
  }
  Options PathOptions(uint32_t num_paths, const Ids& sst_ids,
                      int32_t sorted_id = -1) const {
    Options options = DeltaOptions();
    for (uint32_t i = 0; i < num_paths; ++i) {
      options.cf_paths.emplace_back(PathOf(i), uint64_t{1} << 40);
    }
    options.level_sst_path_ids = sst_ids;
    options.delta_sorted_path_id = sorted_id;
    return options;
  }

  Status SetOption(const std::string& name, const std::string& value) {
    return db_->SetOptions({{name, value}});
  }
  Status SetSortedPath(int path_id) {
    return SetOption("delta_sorted_path_id", std::to_string(path_id));
  }
  Status SetAutoJobs(bool on) {
    return SetOption("disable_auto_compactions", on ? "false" : "true");
  }
  void WaitForJobs() { ASSERT_OK(dbfull()->TEST_WaitForCompact()); }

  // Calls fn(description) for each delta file of the current Version.
  template <typename Fn>
  void ForEachFile(Fn fn) {
    InstrumentedMutexLock lock(dbfull()->mutex());
    const auto& deltas = Family()->current()->storage_info()->delta();
    if (deltas != nullptr) {
      deltas->ForEachFile([&fn](const DeltaVersion::FilePtr& file) {
        fn(file->description());
      });
    }
  }
  PathIds PathsOf(Tier tier) {
    PathIds ids;
    ForEachFile([&](const DeltaFileDescription& file) {
      if (file.tier == tier) {
        ids.insert(file.path_id);
      }
    });
    return ids;
  }
  PathIds PathsOfSortedAnchors() {
    PathIds ids;
    ForEachFile([&](const DeltaFileDescription& file) {
      if (file.tier == Tier::kSorted && file.kind == Kind::kAnchors) {
        ids.insert(file.path_id);
      }
    });
    return ids;
  }
  // Checks that each path has exactly the delta files that the Version has on
  // it.
  void CheckFiles() {
    DeleteObsoleteFiles();
    std::set<std::string> expected;
    ForEachFile([&](const DeltaFileDescription& file) {
      expected.insert(
          DeltaFileName(last_options_.cf_paths, file.number, file.path_id));
    });
    std::set<std::string> found;
    for (const DbPath& path : last_options_.cf_paths) {
      for (const std::string& name : FilesIn(path.path, kDeltaFile)) {
        found.insert(path.path + "/" + name);
      }
    }
    EXPECT_EQ(expected, found);
  }
  // Checks that all files lie where they belong.
  void CheckPlaced() {
    EXPECT_EQ(0, Stat("misplaced-files"));
    EXPECT_EQ(0, Stat("misplaced-bytes"));
    CheckFiles();
    Check();
  }
  uint64_t PathStat(uint32_t path_id, const std::string& name) {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(db_->GetMapProperty(DB::Properties::kPathStats, &values));
    const auto found =
        values.find("path" + std::to_string(path_id) + "." + name);
    return found == values.end() ? 0 : std::stoull(found->second);
  }

  // Makes sorted files with all keys.
  void MakeSorted() {
    FlushOperands(0, kNumKeys, 80);
    ASSERT_OK(CompactAll());
    ASSERT_FALSE(PathsOf(Tier::kSorted).empty());
  }
  // Makes files of all three tiers. No job runs afterwards.
  void MakeAllTiers() {
    MakeSorted();
    ASSERT_OK(SetAutoJobs(true));
    for (int i = 0; i < 4; ++i) {
      FlushOperands(0, 10, 5);
    }
    WaitForJobs();
    ASSERT_OK(SetAutoJobs(false));
    FlushOperands(0, 10, 5);
    ASSERT_FALSE(PathsOf(Tier::kFlushed).empty());
    ASSERT_FALSE(PathsOf(Tier::kMerged).empty());
  }
};

TEST_F(DBDeltaPathTest, EachTierHasItsPath) {
  struct Case {
    uint32_t num_paths;
    Ids sst_ids;
    int32_t sorted_id;
    uint32_t recent;
    uint32_t sorted;
  };
  for (const Case& c : std::vector<Case>{{2, {}, -1, 0, 0},
                                         {2, {}, 1, 0, 1},
                                         {2, {1}, -1, 1, 1},
                                         {2, {0, 1}, -1, 0, 1},
                                         {2, {0, 1}, 0, 0, 0},
                                         {3, {1, 0}, 2, 1, 2}}) {
    SCOPED_TRACE(std::to_string(c.recent) + "," + std::to_string(c.sorted));
    state_.clear();
    DestroyAndReopen(PathOptions(c.num_paths, c.sst_ids, c.sorted_id));
    MakeAllTiers();
    EXPECT_EQ(PathIds{c.recent}, PathsOf(Tier::kFlushed));
    EXPECT_EQ(PathIds{c.recent}, PathsOf(Tier::kMerged));
    EXPECT_EQ(PathIds{c.sorted}, PathsOf(Tier::kSorted));
    CheckPlaced();
    Reopen(Options(last_options_));
    CheckPlaced();
  }
}

TEST_F(DBDeltaPathTest, OnePathHasNothingMisplaced) {
  Options options = DeltaOptions();
  DestroyAndReopen(options);
  MakeAllTiers();
  EXPECT_EQ(PathIds{0}, PathsOf(Tier::kSorted));
  EXPECT_EQ(0, Stat("misplaced-files"));
  const uint64_t collected = Ticker(DELTA_BUCKETS_COLLECTED);
  ASSERT_OK(SetSortedPath(0));
  ASSERT_OK(SetAutoJobs(true));
  WaitForJobs();
  EXPECT_EQ(collected, Ticker(DELTA_BUCKETS_COLLECTED));
  EXPECT_TRUE(SetSortedPath(1).IsInvalidArgument());
  Check();
}

TEST_F(DBDeltaPathTest, WritesOfFlushesAndJobsAreBookedApart) {
  DestroyAndReopen(PathOptions(2, {0, 1}));
  FlushOperands(0, 10, 5);
  const uint64_t flushed = PathStat(0, "flush-written-bytes");
  EXPECT_EQ(PathStat(0, "delta-bytes") + PathStat(0, "sst-bytes"), flushed);
  EXPECT_EQ(0, PathStat(1, "flush-written-bytes"));
  EXPECT_EQ(0, PathStat(1, "delta-written-bytes"));
  MakeSorted();
  EXPECT_GT(PathStat(0, "flush-written-bytes"), flushed);
  EXPECT_EQ(0, PathStat(1, "flush-written-bytes"));
  EXPECT_GE(PathStat(1, "delta-written-bytes"), PathStat(1, "delta-bytes"));
  EXPECT_GT(PathStat(1, "delta-written-bytes"), 0);
  EXPECT_GT(PathStat(0, "delta-job-read-bytes"), 0);
  Check();
}

TEST_F(DBDeltaPathTest, ReadsAreBookedApart) {
  DestroyAndReopen(PathOptions(2, {0, 1}));
  MakeSorted();
  FlushOperands(0, 10, 5);
  Reopen(Options(last_options_));
  Check();
  EXPECT_EQ(1, PathStat(0, "delta-files"));
  EXPECT_GT(PathStat(1, "delta-files"), 0);
  for (const uint32_t path_id : {0, 1}) {
    EXPECT_GT(PathStat(path_id, "delta-reads"), 0);
    EXPECT_GT(PathStat(path_id, "delta-read-bytes"), 0);
    // There are operands alone, and no SST file.
    EXPECT_EQ(0, PathStat(path_id, "sst-files"));
    EXPECT_EQ(0, PathStat(path_id, "sst-reads"));
    EXPECT_EQ(0, PathStat(path_id, "sst-read-bytes"));
  }
}

TEST_F(DBDeltaPathTest, ChangedOptionsMoveFilesInTheBackground) {
  DestroyAndReopen(PathOptions(3, {0}));
  MakeAllTiers();
  const uint64_t num_sorted = Stat("sorted-files");
  ASSERT_OK(SetSortedPath(1));
  // Jobs in the background are off.
  WaitForJobs();
  EXPECT_EQ(PathIds{0}, PathsOf(Tier::kSorted));
  EXPECT_EQ(num_sorted, Stat("misplaced-files"));
  ASSERT_OK(SetAutoJobs(true));
  WaitForJobs();
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  CheckPlaced();

  ASSERT_OK(SetAutoJobs(false));
  ASSERT_OK(SetSortedPath(-1));
  MakeAllTiers();
  ASSERT_OK(SetAutoJobs(true));
  ASSERT_OK(db_->SetOptions(
      {{"level_sst_path_ids", "2:1"}, {"delta_sorted_path_id", "0"}}));
  WaitForJobs();
  EXPECT_EQ(PathIds{0}, PathsOf(Tier::kSorted));
  EXPECT_EQ(0, PathsOf(Tier::kFlushed).count(0));
  EXPECT_EQ(0, PathsOf(Tier::kMerged).count(0));
  CheckPlaced();

  // Nothing is moved twice.
  const uint64_t collected = Ticker(DELTA_BUCKETS_COLLECTED);
  const uint64_t merges = Ticker(DELTA_MERGES);
  ASSERT_OK(SetOption("delta_cache_size", "1000000"));
  WaitForJobs();
  EXPECT_EQ(collected, Ticker(DELTA_BUCKETS_COLLECTED));
  EXPECT_EQ(merges, Ticker(DELTA_MERGES));
}

TEST_F(DBDeltaPathTest, ReopenInBothDirections) {
  Options options = PathOptions(1, {});
  DestroyAndReopen(options);
  MakeAllTiers();
  const auto reopen = [&](Options with, bool auto_jobs) {
    with.disable_auto_compactions = !auto_jobs;
    Reopen(with);
    WaitForJobs();
  };
  reopen(PathOptions(2, {1}), /*auto_jobs=*/true);
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  CheckPlaced();
  // Back, with recent files in between.
  FlushOperands(0, 20, 5);
  reopen(PathOptions(2, {0}), /*auto_jobs=*/true);
  CheckPlaced();
  EXPECT_TRUE(FilesIn(PathOf(1), kDeltaFile).empty());
  // The path is given up.
  ASSERT_OK(ForceCompaction());
  reopen(PathOptions(1, {}), /*auto_jobs=*/false);
  CheckPlaced();
  // And the same without jobs in the background.
  reopen(PathOptions(3, {0}, /*sorted_id=*/2), /*auto_jobs=*/false);
  EXPECT_GT(Stat("misplaced-files"), 0);
  Check();
  FlushOperands(0, 20, 5);
  ASSERT_OK(ForceCompaction());
  EXPECT_EQ(PathIds{2}, PathsOf(Tier::kSorted));
  CheckPlaced();
  reopen(PathOptions(3, {0}), /*auto_jobs=*/false);
  ASSERT_OK(ForceCompaction());
  CheckPlaced();
  reopen(PathOptions(1, {}), /*auto_jobs=*/false);
  CheckPlaced();
}

TEST_F(DBDeltaPathTest, OptionsChangeWhileACollectionRuns) {
  DestroyAndReopen(PathOptions(3, {0}));
  MakeSorted();
  std::atomic<int> num_jobs{0};
  EnableCallBack("DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
                 [&](void*) {
                   if (num_jobs.fetch_add(1) == 0) {
                     // The job commits files on path 1.
                     EXPECT_OK(SetSortedPath(2));
                   }
                 });
  ASSERT_OK(SetSortedPath(1));
  ASSERT_OK(SetAutoJobs(true));
  WaitForJobs();
  DisableCallBacks();
  EXPECT_GT(num_jobs.load(), 1);
  EXPECT_EQ(PathIds{2}, PathsOf(Tier::kSorted));
  CheckPlaced();
}

TEST_F(DBDeltaPathTest, OptionsChangeWhileAMergeRuns) {
  DestroyAndReopen(PathOptions(3, {0}));
  MakeSorted();
  FlushOperands(0, 10, 5);
  const auto reached = EnableCallBackOnce(
      "DBStrata::BackgroundDeltaMerge::RunMarked:BeforeEdit", [&](void*) {
        // The job commits a merged file on path 1.
        EXPECT_OK(SetOption("level_sst_path_ids", "2"));
      });
  ASSERT_OK(SetAutoJobs(true));
  ASSERT_OK(SetOption("level_sst_path_ids", "1"));
  WaitForJobs();
  DisableCallBacks();
  EXPECT_TRUE(reached->load());
  EXPECT_EQ(PathIds{2}, PathsOf(Tier::kSorted));
  CheckPlaced();
}

TEST_F(DBDeltaPathTest, AFlushThatBeganBeforeTheChangeIsMoved) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeSorted();
  ASSERT_OK(SetAutoJobs(true));
  const auto reached = EnableCallBackOnce(
      "FlushJob::WriteLevel0Table",
      [&](void*) { EXPECT_OK(SetOption("level_sst_path_ids", "1")); });
  FlushOperands(0, 10, 5);
  WaitForJobs();
  DisableCallBacks();
  EXPECT_TRUE(reached->load());
  CheckPlaced();
  EXPECT_TRUE(FilesIn(PathOf(0), kDeltaFile).empty());
}

// A job that runs when CompactRange() is called leaves files on the old path.
TEST_F(DBDeltaPathTest, CompactRangeMovesWhatARunningJobLeaves) {
  DestroyAndReopen(PathOptions(3, {0}));
  MakeSorted();
  std::thread compaction;
  Status s;
  const auto reached = EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        EXPECT_OK(SetAutoJobs(false));
        EXPECT_OK(SetSortedPath(2));
        compaction = std::thread([&] { s = ForceCompaction(); });
        // The call has time to come to its jobs, or not: it must make no
        // difference.
        env_->SleepForMicroseconds(200 * 1000);
      });
  ASSERT_OK(SetSortedPath(1));
  ASSERT_OK(SetAutoJobs(true));
  while (!reached->load()) {
    env_->SleepForMicroseconds(1000);
  }
  WaitForJobs();
  DisableCallBacks();
  compaction.join();
  ASSERT_OK(s);
  EXPECT_EQ(PathIds{2}, PathsOf(Tier::kSorted));
  CheckPlaced();
}

// The call ends although each of its jobs finds other options than the one
// before.
TEST_F(DBDeltaPathTest, CompactRangeEndsWhileOptionsChange) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeSorted();
  ASSERT_OK(SetSortedPath(1));
  std::atomic<int> num_jobs{0};
  EnableCallBack("DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
                 [&](void*) {
                   const int job = num_jobs.fetch_add(1);
                   if (job < 100) {
                     EXPECT_OK(SetSortedPath(job % 2));
                   }
                 });
  ASSERT_OK(CompactAll());
  DisableCallBacks();
  EXPECT_GT(num_jobs.load(), 0);
  EXPECT_LT(num_jobs.load(), 100);
  CheckFiles();
  Check();
  ASSERT_OK(SetSortedPath(1));
  ASSERT_OK(CompactAll());
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  CheckPlaced();
}

// Jobs move the operands that a snapshot needs, too, and a reader of the
// snapshot finds them.
TEST_F(DBDeltaPathTest, SnapshotsAndIteratorsSurviveMoves) {
  DestroyAndReopen(PathOptions(2, {0}));
  FlushOperands(0, kNumKeys, 80);
  DoSnapshot();
  for (uint32_t i = 0; i < kNumKeys; i += 2) {
    DoPut(KeyOf(i), "base");
  }
  ASSERT_OK(Flush());
  DoSnapshot();
  FlushOperands(0, kNumKeys, 30);
  ASSERT_OK(CompactAll());
  EXPECT_EQ(PathIds{0}, PathsOfSortedAnchors());
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  const State seen = state_;

  ASSERT_OK(SetOption("level_sst_path_ids", "1"));
  FlushOperands(0, 10, 5);
  ASSERT_OK(ForceCompaction());
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  EXPECT_EQ(PathIds{1}, PathsOfSortedAnchors());
  EXPECT_EQ(0, Stat("misplaced-files"));
  Check();
  // The iterator still reads the old files.
  CheckIterator(iter.get(), seen);
  EXPECT_FALSE(FilesIn(PathOf(0), kDeltaFile).empty());
  iter.reset();
  CheckPlaced();
  EXPECT_TRUE(FilesIn(PathOf(0), kDeltaFile).empty());
  ReleaseSnapshots();
  ASSERT_OK(CompactAll());
  CheckPlaced();
}

TEST_F(DBDeltaPathTest, MigrationMovesAllTiers) {
  DestroyAndReopen(PathOptions(3, {0}));
  MakeAllTiers();
  DoSnapshot();
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  const State seen = state_;
  MigratePathsOptions options;
  options.level_sst_path_ids = Ids{1};
  options.delta_sorted_path_id = 2;
  uint64_t moved = 0;
  options.on_progress = [&](const MigratePathsProgress& progress) {
    EXPECT_GE(progress.bytes_moved, moved);
    moved = progress.bytes_moved;
    // There may be SST files.
    EXPECT_LE(Stat("misplaced-bytes"), progress.bytes_left);
    EXPECT_LE(Stat("misplaced-files"), progress.files_left);
    EXPECT_EQ(PathStat(0, "misplaced-bytes"), progress.bytes_left);
  };
  MigratePathsProgress progress;
  ASSERT_OK(
      MigratePaths(db_.get(), db_->DefaultColumnFamily(), options, &progress));
  EXPECT_GT(progress.files_at_start, 2);
  EXPECT_EQ(0, progress.files_left);
  EXPECT_GT(progress.bytes_written, 0);
  EXPECT_EQ(0, PathsOf(Tier::kFlushed).count(0));
  EXPECT_EQ(0, PathsOf(Tier::kMerged).count(0));
  EXPECT_EQ(PathIds{2}, PathsOf(Tier::kSorted));
  Check();
  CheckIterator(iter.get(), seen);
  iter.reset();
  CheckPlaced();
  EXPECT_TRUE(FilesIn(PathOf(0), kDeltaFile).empty());
  ReleaseSnapshots();
  Reopen(Options(last_options_));
  Check();
}

// Files that lie where they belong are left alone.
TEST_F(DBDeltaPathTest, MigrationOfSortedFilesLeavesRecentOnes) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeAllTiers();
  const uint64_t num_flushed = Stat("flushed-files");
  const uint64_t merges = Ticker(DELTA_MERGES);
  MigratePathsOptions options;
  options.delta_sorted_path_id = 1;
  ASSERT_OK(MigratePaths(db_.get(), db_->DefaultColumnFamily(), options));
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  EXPECT_EQ(num_flushed, Stat("flushed-files"));
  EXPECT_EQ(merges, Ticker(DELTA_MERGES));
  CheckPlaced();
}

// CompactRange() would fold all keys for a filter, and is canceled before. The
// migration moves the sorted files, and leaves the rest to others.
TEST_F(DBDeltaPathTest, MigrationLeavesWishesOfFilters) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeAllTiers();
  const KeepingFilter filter;
  Options options = last_options_;
  options.compaction_filter = &filter;
  Reopen(options);
  std::atomic<bool> canceled{false};
  const auto reached =
      EnableCallBackOnce("DBStrata::BackgroundDeltaMerge::Write:Begin",
                         [&canceled](void*) { canceled = true; });
  CompactRangeOptions compact;
  compact.canceled = &canceled;
  const Status s = CompactAll(compact);
  DisableCallBacks();
  EXPECT_TRUE(s.IsIncomplete()) << s.ToString();
  EXPECT_TRUE(reached->load());
  const uint64_t num_flushed = Stat("flushed-files");
  ASSERT_GT(num_flushed, 0);
  const uint64_t merges = Ticker(DELTA_MERGES);
  const uint64_t folded = Ticker(DELTA_OPERANDS_FOLDED);
  MigratePathsOptions move;
  move.delta_sorted_path_id = 1;
  ASSERT_OK(MigratePaths(db_.get(), db_->DefaultColumnFamily(), move));
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  EXPECT_EQ(num_flushed, Stat("flushed-files"));
  EXPECT_EQ(merges, Ticker(DELTA_MERGES));
  EXPECT_EQ(folded, Ticker(DELTA_OPERANDS_FOLDED));
  CheckPlaced();
  // The wishes are still there.
  ASSERT_OK(SetAutoJobs(true));
  WaitForJobs();
  EXPECT_GT(Ticker(DELTA_OPERANDS_FOLDED), folded);
  Check();
  Close();
}

// A job that finds another layout than that for which it was prepared moves
// nothing. It is not stuck.
TEST_F(DBDeltaPathTest, MigrationSurvivesAChangeBeforeAJob) {
  DestroyAndReopen(PathOptions(3, {0}));
  MakeSorted();
  const auto reached =
      EnableCallBackOnce("DBStrata::PathMigrationHost::RunDeltaJob:Prepared",
                         [&](void*) { EXPECT_OK(SetSortedPath(2)); });
  MigratePathsOptions options;
  options.delta_sorted_path_id = 1;
  const Status s = MigratePaths(db_.get(), db_->DefaultColumnFamily(), options);
  DisableCallBacks();
  ASSERT_OK(s);
  EXPECT_TRUE(reached->load());
  EXPECT_EQ(PathIds{2}, PathsOf(Tier::kSorted));
  CheckPlaced();
}

// A pause that comes when a job was prepared is waited for, as any other.
TEST_F(DBDeltaPathTest, MigrationWaitsForAPauseBeforeAJob) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeSorted();
  std::atomic<bool> is_paused{false};
  const auto reached = EnableCallBackOnce(
      "DBStrata::PathMigrationHost::RunDeltaJob:Prepared", [&](void*) {
        EXPECT_OK(db_->PauseBackgroundWork());
        is_paused = true;
      });
  MigratePathsOptions options;
  options.delta_sorted_path_id = 1;
  options.on_progress = [&](const MigratePathsProgress& /*progress*/) {
    if (is_paused.exchange(false)) {
      EXPECT_EQ(PathIds{0}, PathsOf(Tier::kSorted));
      EXPECT_OK(db_->ContinueBackgroundWork());
    }
  };
  const Status s = MigratePaths(db_.get(), db_->DefaultColumnFamily(), options);
  DisableCallBacks();
  ASSERT_OK(s);
  EXPECT_TRUE(reached->load());
  EXPECT_FALSE(is_paused);
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  CheckPlaced();
}

// A damaged block costs the move of its own bucket only. The call ends with its
// error, and not before all other buckets were moved.
TEST_F(DBDeltaPathTest, MigrationTellsOfADamagedBucket) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeSorted();
  ASSERT_GT(Stat("buckets"), 1);
  std::string damaged;
  ForEachFile([&](const DeltaFileDescription& file) {
    if (file.kind == Kind::kOperands && damaged.empty()) {
      damaged = DeltaFileName(dbname_, file.number);
    }
  });
  ASSERT_FALSE(damaged.empty());
  Options options = last_options_;
  Close();
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, damaged, &contents));
  std::string changed = contents;
  ASSERT_GT(changed.size(), 20);
  changed[20] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, changed, damaged));
  Reopen(options);
  MigratePathsOptions move;
  move.delta_sorted_path_id = 1;
  MigratePathsProgress progress;
  // The next call tries again.
  for (int i = 0; i < 2; ++i) {
    const Status s =
        MigratePaths(db_.get(), db_->DefaultColumnFamily(), move, &progress);
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_NE(std::string::npos, s.ToString().find(damaged)) << s.ToString();
    EXPECT_NE(std::string::npos, s.ToString().find("bytes are left to move"))
        << s.ToString();
    EXPECT_GT(progress.bytes_left, 0);
    EXPECT_EQ((PathIds{0, 1}), PathsOf(Tier::kSorted));
  }
  Close();
  ASSERT_OK(WriteStringToFile(env_, contents, damaged));
  options.delta_sorted_path_id = 1;
  Reopen(options);
  ASSERT_OK(MigratePaths(db_.get(), db_->DefaultColumnFamily(), move));
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  CheckPlaced();
}

// A drain moves no operands without a fold. If every fold is given up, the call
// ends, and says so.
TEST_F(DBDeltaPathTest, MigrationTellsOfADrainThatCannotFold) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeSorted();
  Options options = last_options_;
  options.enable_delta_separation = false;
  Reopen(options);
  std::atomic<int> num_given_up{0};
  EnableCallBack("DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
                 [&num_given_up](void* arg) {
                   *static_cast<Status*>(arg) =
                       Status::TryAgain("given up by the test");
                   ++num_given_up;
                 });
  MigratePathsOptions move;
  move.level_sst_path_ids = Ids{1};
  const Status s = MigratePaths(db_.get(), db_->DefaultColumnFamily(), move);
  DisableCallBacks();
  EXPECT_TRUE(s.IsIncomplete()) << s.ToString();
  EXPECT_NE(std::string::npos,
            s.ToString().find("delta files cannot be moved yet"))
      << s.ToString();
  EXPECT_NE(std::string::npos, s.ToString().find("bytes are left to move"))
      << s.ToString();
  EXPECT_GT(num_given_up, 1);
  EXPECT_EQ(PathIds{0}, PathsOf(Tier::kSorted));
  Check();
  // The next call tries again, and drains the store.
  ASSERT_OK(MigratePaths(db_.get(), db_->DefaultColumnFamily(), move));
  EXPECT_EQ(PathIds{}, PathsOf(Tier::kSorted));
  Check();
}

TEST_F(DBDeltaPathTest, BackgroundJobsLeaveFilesToAMigration) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeSorted();
  ASSERT_OK(SetAutoJobs(true));
  WaitForJobs();
  std::atomic<bool> canceled{true};
  MigratePathsOptions options;
  options.level_sst_path_ids = Ids{1};
  options.canceled = &canceled;
  bool is_first = true;
  options.on_progress = [&](const MigratePathsProgress& progress) {
    if (is_first) {
      is_first = false;
      WaitForJobs();
      EXPECT_GT(progress.files_at_start, 0);
      EXPECT_EQ(PathIds{0}, PathsOf(Tier::kSorted));
    }
  };
  const Status s = MigratePaths(db_.get(), db_->DefaultColumnFamily(), options);
  EXPECT_TRUE(s.IsIncomplete()) << s.ToString();
  EXPECT_FALSE(is_first);
  // They move what it has left.
  WaitForJobs();
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  CheckPlaced();
}

// Files that record that a range has no operands left are moved, too.
TEST_F(DBDeltaPathTest, BucketsWithoutOperandsAreMoved) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeSorted();
  // All operands of the first half are hidden.
  for (uint32_t i = 0; i < kNumKeys / 2; ++i) {
    DoPut(KeyOf(i), "base");
  }
  ASSERT_OK(Flush());
  ASSERT_OK(CompactAll());
  Check();
  ASSERT_OK(SetSortedPath(1));
  ASSERT_OK(CompactAll());
  EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
  CheckPlaced();
}

TEST_F(DBDeltaPathTest, FoldsLeaveTheirFilesOnBothPaths) {
  Options options = PathOptions(3, {1, 0}, /*sorted_id=*/2);
  options.delta_max_buckets = 4;
  options.disable_auto_compactions = false;
  DestroyAndReopen(options);
  for (int i = 0; i < 40; ++i) {
    FlushOperands(0, kNumKeys, 60);
  }
  WaitForJobs();
  EXPECT_GT(Ticker(DELTA_OPERANDS_FOLDED), 0);
  EXPECT_EQ(0, PathsOf(Tier::kSorted).count(0));
  EXPECT_EQ(0, PathsOf(Tier::kSorted).count(1));
  CheckPlaced();
}

TEST_F(DBDeltaPathTest, AnchorsOfIngestionsAreMoved) {
  const std::string external = dbname_ + "_external.sst";
  for (const bool change_during : {false, true}) {
    SCOPED_TRACE(change_during);
    state_.clear();
    DestroyAndReopen(PathOptions(2, {0}));
    MakeSorted();
    {
      SstFileWriter writer(EnvOptions(), last_options_);
      ASSERT_OK(writer.Open(external));
      for (uint32_t i = 20; i < 40; ++i) {
        ASSERT_OK(writer.Put(KeyOf(i), "ingested"));
        state_[KeyOf(i)] = "ingested";
      }
      ASSERT_OK(writer.Finish());
    }
    ASSERT_OK(SetAutoJobs(true));
    if (change_during) {
      EnableCallBackOnce(
          "ExternalSstFileIngestionJob::WriteDeltaAnchors:Done",
          [&](void*) { EXPECT_OK(SetOption("level_sst_path_ids", "1")); });
    }
    ASSERT_OK(db_->IngestExternalFile({external}, IngestExternalFileOptions()));
    DisableCallBacks();
    if (!change_during) {
      EXPECT_EQ(PathIds{0}, PathsOf(Tier::kFlushed));
      ASSERT_OK(SetOption("level_sst_path_ids", "1"));
    }
    WaitForJobs();
    CheckPlaced();
    EXPECT_TRUE(FilesIn(PathOf(0), kDeltaFile).empty());
    ASSERT_OK(env_->DeleteFile(external));
  }
}

TEST_F(DBDeltaPathTest, ADrainLeavesNoPathBehind) {
  DestroyAndReopen(PathOptions(2, {0, 1}));
  MakeAllTiers();
  Options options = PathOptions(2, {0});
  options.enable_delta_separation = false;
  options.disable_auto_compactions = false;
  Reopen(options);
  WaitForJobs();
  EXPECT_EQ(0, Stat("files"));
  CheckFiles();
  Check();
}

// A move that fails leaves everything as it was, and no file on the new path.
TEST_F(DBDeltaPathTest, FailedMovesAreRepeated) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeAllTiers();
  ASSERT_OK(SetOption("level_sst_path_ids", "1"));
  for (const char* point :
       {"DeltaGcJob::Run:End",
        "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
        "DeltaMergeJob::Run:Merged",
        "DBStrata::BackgroundDeltaMerge::RunMarked:BeforeEdit"}) {
    SCOPED_TRACE(point);
    FlushOperands(0, 10, 5);
    const auto reached = EnableCallBackOnce(point, [](void* arg) {
      *static_cast<Status*>(arg) = Status::NoSpace("test");
    });
    ASSERT_OK(SetSortedPath(0));
    const Status s = CompactAll();
    DisableCallBacks();
    EXPECT_TRUE(reached->load());
    EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
    CheckFiles();
    Check();
    ASSERT_OK(SetSortedPath(1));
    ASSERT_OK(CompactAll());
    EXPECT_EQ(PathIds{1}, PathsOf(Tier::kSorted));
    CheckPlaced();
  }
}

// The OPTIONS file has the paths with delta_sorted_path_id alone, and that of a
// copy has none.
TEST_F(DBDeltaPathTest, CopiesHaveOnePath) {
  DestroyAndReopen(PathOptions(2, {}, /*sorted_id=*/1));
  MakeAllTiers();
  const auto load = [&](const std::string& directory) {
    DBOptions db_options;
    std::vector<ColumnFamilyDescriptor> families;
    ConfigOptions config;
    config.env = env_;
    EXPECT_OK(LoadLatestOptions(config, directory, &db_options, &families));
    return families.empty() ? ColumnFamilyOptions() : families[0].options;
  };
  EXPECT_EQ(2, load(dbname_).cf_paths.size());
  EXPECT_EQ(1, load(dbname_).delta_sorted_path_id);

  const std::string directory = dbname_ + "_copy";
  DestroyDir(env_, directory).PermitUncheckedError();
  Checkpoint* created = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &created));
  const std::unique_ptr<Checkpoint> checkpoint(created);
  ASSERT_OK(checkpoint->CreateCheckpoint(directory));
  EXPECT_TRUE(load(directory).cf_paths.empty());
  EXPECT_EQ(-1, load(directory).delta_sorted_path_id);
  Options options = last_options_;
  options.cf_paths.clear();
  options.delta_sorted_path_id = -1;
  {
    std::unique_ptr<DB> copy;
    ASSERT_OK(DB::Open(options, directory, &copy));
    for (const auto& [key, value] : state_) {
      std::string found;
      ASSERT_OK(copy->Get(ReadOptions(), key, &found));
      EXPECT_EQ(value, found);
    }
    ASSERT_OK(copy->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    ASSERT_OK(copy->Close());
  }
  CheckFiles();
  Check();
  ASSERT_OK(DestroyDir(env_, directory));
}

// A read-only instance finds files on all paths, and moves none.
TEST_F(DBDeltaPathTest, ReadOnlyInstancesMoveNothing) {
  DestroyAndReopen(PathOptions(2, {0}));
  MakeAllTiers();
  Options options = PathOptions(2, {1});
  options.disable_auto_compactions = false;
  ASSERT_OK(ReadOnlyReopen(options));
  CheckAt(nullptr, state_);
  EXPECT_EQ(PathIds{0}, PathsOf(Tier::kSorted));
  Reopen(PathOptions(2, {0}));
  CheckPlaced();
}

TEST_F(DBDeltaPathTest, RandomWritesAndOptions) {
  for (const uint32_t seed : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(seed);
    Random rnd(seed);
    const std::vector<std::string> layouts{"", "0", "1", "2", "0:1", "2:0:1"};
    const uint32_t num_paths = 2 + seed % 2;
    state_.clear();
    Options options = PathOptions(num_paths, {});
    options.disable_auto_compactions = false;
    options.delta_max_buckets = seed < 3 ? 64 : 4;
    DestroyAndReopen(options);
    for (int round = 0; round < 40; ++round) {
      RandomWrites(60, &rnd);
      ASSERT_OK(Flush());
      if (rnd.OneIn(3)) {
        const std::string& layout =
            layouts[rnd.Uniform(static_cast<int>(layouts.size()))];
        const bool is_valid =
            num_paths > 2 || layout.find('2') == std::string::npos;
        EXPECT_EQ(is_valid, SetOption("level_sst_path_ids", layout).ok());
      }
      if (rnd.OneIn(3)) {
        ASSERT_OK(
            SetSortedPath(static_cast<int>(rnd.Uniform(num_paths + 1)) - 1));
      }
      if (rnd.OneIn(6)) {
        DoSnapshot();
      }
      if (rnd.OneIn(8)) {
        ReleaseSnapshots();
        const Options now = db_->GetOptions();
        options.level_sst_path_ids = now.level_sst_path_ids;
        options.delta_sorted_path_id =
            static_cast<int32_t>(rnd.Uniform(num_paths));
        Reopen(options);
      }
      if (rnd.OneIn(8)) {
        ASSERT_OK(CompactAll());
      }
      if (round % 5 == 0) {
        Check();
      }
    }
    WaitForJobs();
    CheckPlaced();
    ReleaseSnapshots();
    ASSERT_OK(db_->SetOptions(
        {{"level_sst_path_ids", "0"}, {"delta_sorted_path_id", "-1"}}));
    ASSERT_OK(ForceCompaction());
    CheckPlaced();
    options = PathOptions(1, {});
    Reopen(options);
    CheckPlaced();
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
