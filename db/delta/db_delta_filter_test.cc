//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Compaction filters of column families whose operands are in delta files: a
// value is removed with all of its operands, or stays with them.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/dbformat.h"
#include "db/delta/delta_bucket_table.h"
#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_job_backoff.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/concurrent_task_limiter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/metadata.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/utilities/db_ttl.h"
#include "test_util/mock_time_env.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "util/defer.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::HandMadeDeltas;

namespace {

// Applies a function to values.
class ValueFilter : public CompactionFilter {
 public:
  using Fn =
      std::function<Decision(const Slice& key, const Slice& value,
                             std::string* new_value, std::string* skip_until)>;

  explicit ValueFilter(Fn fn) : fn_(std::move(fn)) {}

  Decision FilterV2(int, const Slice& key, ValueType type, const Slice& value,
                    std::string* new_value,
                    std::string* skip_until) const override {
    return type == ValueType::kValue ? fn_(key, value, new_value, skip_until)
                                     : Decision::kKeep;
  }
  const char* Name() const override { return "ValueFilter"; }

 private:
  const Fn fn_;
};

// Removes values that begin with "x".
CompactionFilter::Decision RemoveX(const Slice&, const Slice& value,
                                   std::string*, std::string*) {
  return value.starts_with("x") ? CompactionFilter::Decision::kRemove
                                : CompactionFilter::Decision::kKeep;
}

// Removes everything from values that begin with "x" to "z".
CompactionFilter::Decision SkipFromX(const Slice&, const Slice& value,
                                     std::string*, std::string* skip_until) {
  if (!value.starts_with("x")) {
    return CompactionFilter::Decision::kKeep;
  }
  *skip_until = "z";
  return CompactionFilter::Decision::kRemoveAndSkipUntil;
}

// A clock of which the wall time, and only this, can be set back.
class WallClock : public MockSystemClock {
 public:
  using MockSystemClock::MockSystemClock;

  uint64_t NowMicros() override {
    return MockSystemClock::NowMicros() - behind_micros_;
  }
  void SetBack(uint64_t seconds) { behind_micros_ = seconds * 1000 * 1000; }

 private:
  std::atomic<uint64_t> behind_micros_{0};
};

}  // namespace

class DBDeltaFilterTest : public DeltaDBTestBase {
 protected:
  DBDeltaFilterTest() : DeltaDBTestBase("db_delta_filter_test") {}

  Options FilterOptions(const CompactionFilter* filter) {
    Options options = DeltaOptions();
    options.compaction_filter = filter;
    return options;
  }

  // Leaves a DB with an operand of "a", whose base value is "x", in a bucket. A
  // compaction has shown the value to the filter of the options, so the fold of
  // the operand is wished.
  void OpenWithWish(const Options& options) {
    Options without_filter = options;
    without_filter.compaction_filter = nullptr;
    DestroyAndReopen(without_filter);
    ASSERT_OK(Put("a", "x"));
    ASSERT_OK(Flush());
    ASSERT_OK(Merge("a", "1"));
    ASSERT_OK(ForceCompaction());
    ASSERT_EQ(1, Stat("buckets"));
    Reopen(options);
    CompactFiles();
  }

  // Compacts all SST files, or those with keys up to `end`. As the range has a
  // bound, delta files are not folded first.
  void CompactFiles(const Slice* end = nullptr) {
    const std::string begin(1, '\0');
    const Slice slice(begin);
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(options, &slice, end));
  }

  // Compacts the files of level 0 into a level.
  void CompactLevel0Into(int level) {
    ColumnFamilyMetaData meta;
    db_->GetColumnFamilyMetaData(&meta);
    std::vector<std::string> files;
    for (const SstFileMetaData& file : meta.levels[0].files) {
      files.push_back(file.db_path + file.name);
    }
    ASSERT_OK(db_->CompactFiles(CompactionOptions(), files, level));
  }

  // Returns all keys and values, read by an iterator and by Get().
  std::map<std::string, std::string> All() {
    std::map<std::string, std::string> all;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      all[iter->key().ToString()] = iter->value().ToString();
      EXPECT_EQ(iter->value().ToString(), Get(iter->key().ToString()));
    }
    EXPECT_OK(iter->status());
    return all;
  }
  using Map = std::map<std::string, std::string>;

  // Runs the jobs that are due.
  void RunJobs() {
    ASSERT_OK(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "true"}}));
  }
};

// A value that a filter would remove stays until its operands are folded into
// it. Then the filter sees the whole value.
TEST_F(DBDeltaFilterTest, ValueIsHeldForItsOperands) {
  const ValueFilter filter(RemoveX);
  Options options = FilterOptions(&filter);
  for (const bool has_blobs : {false, true}) {
    for (const bool has_map : {false, true}) {
      if (has_map && !has_blobs) {
        continue;
      }
      SCOPED_TRACE(std::to_string(has_blobs) + std::to_string(has_map));
      options.enable_blob_files = has_blobs;
      options.enable_blob_address_map = has_map;
      DestroyAndReopen(options);
      for (const char* key : {"a", "b", "c", "d"}) {
        ASSERT_OK(Put(key, *key == 'd' ? "y" : "x"));
      }
      ASSERT_OK(Flush());
      ASSERT_OK(Merge("b", "1"));
      ASSERT_OK(Merge("d", "1"));
      ASSERT_OK(Flush());
      ASSERT_OK(Merge("b", "2"));
      ASSERT_OK(Flush());
      ASSERT_EQ((Map{{"a", "x"}, {"b", "x,1,2"}, {"c", "x"}, {"d", "y,1"}}),
                All());

      CompactFiles();
      ASSERT_EQ((Map{{"b", "x,1,2"}, {"d", "y,1"}}), All());
      CompactFiles();
      ASSERT_EQ((Map{{"b", "x,1,2"}, {"d", "y,1"}}), All());

      // The key that the filter waits for is folded; the others are not.
      RunJobs();
      ASSERT_EQ((Map{{"b", "x,1,2"}, {"d", "y,1"}}), All());
      const HandMadeDeltas deltas = Deltas();
      ASSERT_TRUE(deltas.Read("b").empty());
      ASSERT_EQ(1u, deltas.Read("d").size());
      CompactFiles();
      ASSERT_EQ((Map{{"d", "y,1"}}), All());
      Reopen(options);
      ASSERT_EQ((Map{{"d", "y,1"}}), All());
    }
  }
}

// One CompactRange() folds the operands of held values and removes the results.
TEST_F(DBDeltaFilterTest, CompactRangeRemovesValuesWithTheirOperands) {
  const ValueFilter filter(RemoveX);
  Options options = FilterOptions(&filter);
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Put("c", "y"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Merge("b", "x"));  // has no base
  ASSERT_OK(Merge("c", "1"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "2"));
  ASSERT_OK(ForceCompaction());
  ASSERT_EQ((Map{{"c", "y,1"}}), All());
  ASSERT_EQ("none", Deltas().Text());
  ASSERT_EQ(0, NumTableFilesAtLevel(0));

  // Without a filter CompactRange() folds nothing.
  options.compaction_filter = nullptr;
  Reopen(options);
  ASSERT_OK(Merge("c", "2"));
  ASSERT_OK(ForceCompaction());
  ASSERT_EQ(1u, Deltas().Read("c").size());
}

// A fold does not fulfil the wishes that come while it runs: CompactRange()
// folds the keys that a fold beside it has left.
TEST_F(DBDeltaFilterTest, WishesThatComeDuringAFoldAreNotForgotten) {
  std::atomic<bool> removes_all{false};
  const ValueFilter filter(
      [&](const Slice& key, const Slice& value, std::string*, std::string*) {
        return value.starts_with("x") && (key == "a" || removes_all)
                   ? CompactionFilter::Decision::kRemove
                   : CompactionFilter::Decision::kKeep;
      });
  DestroyAndReopen(FilterOptions(&filter));
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Put("b", "x"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Merge("b", "1"));
  ASSERT_OK(Flush());
  // Only "a" is noted, so the job in the background folds nothing else.
  CompactFiles();
  const auto is_wished = [this](const Slice& key) {
    const InstrumentedMutexLock lock(dbfull()->mutex());
    const auto& wishes = Family()->delta_store()->jobs().wishes();
    return wishes != nullptr && wishes->Contains(key, BytewiseComparator());
  };
  std::thread compaction;
  const auto has_folded = EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        EXPECT_FALSE(is_wished("b"));
        removes_all = true;
        compaction = std::thread([this] { EXPECT_OK(ForceCompaction()); });
        EXPECT_TRUE(WaitUntil([&] { return is_wished("b"); }));
      });
  RunJobs();
  EXPECT_TRUE(*has_folded);
  if (compaction.joinable()) {
    compaction.join();
  }
  DisableCallBacks();
  EXPECT_EQ((Map{}), All());
  EXPECT_EQ("none", Deltas().Text());
}

// CompactRange() does not fulfil wishes that come after its beginning, as new
// ones may come after each of its jobs. They are left to jobs in the
// background.
TEST_F(DBDeltaFilterTest, CompactRangeLeavesLaterWishesToOthers) {
  const ValueFilter filter(RemoveX);
  DestroyAndReopen(FilterOptions(&filter));
  ASSERT_OK(Put("a", "y"));
  ASSERT_OK(Put("b", "y"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "0"));
  ASSERT_OK(Flush());
  const auto hold_merges = [this] {
    // The merges are those of the call.
    const InstrumentedMutexLock lock(dbfull()->mutex());
    Family()->delta_store()->jobs().merge_backoff().OnFailure(UINT64_MAX / 2);
  };
  hold_merges();
  ASSERT_OK(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
  constexpr int kMaxMerges = 10;
  int num_merges = 0;
  EnableCallBack("DBStrata::BackgroundDeltaMerge::RunMarked:AfterEdit",
                 [&, caller = std::this_thread::get_id()](void*) {
                   ASSERT_EQ(caller, std::this_thread::get_id());
                   if (++num_merges == kMaxMerges) {
                     return;
                   }
                   hold_merges();
                   // A compaction wishes "a", which has a new operand.
                   ASSERT_OK(Merge("a", std::to_string(num_merges)));
                   ASSERT_OK(Flush());
                   DeltaFoldWishes wishes;
                   wishes.Add("a", BytewiseComparator());
                   Family()->delta_store()->holds()->Add(wishes,
                                                         BytewiseComparator());
                 });
  ASSERT_OK(ForceCompaction());
  DisableCallBacks();
  // One before the compaction of the tree, and one after it.
  EXPECT_EQ(2, num_merges);
  EXPECT_EQ(1, NumOperands("a"));
  {
    const InstrumentedMutexLock lock(dbfull()->mutex());
    DeltaJobState& jobs = Family()->delta_store()->jobs();
    EXPECT_FALSE(jobs.HasCalls());
    // The end of the call has passed it on.
    ASSERT_NE(nullptr, jobs.wishes());
    EXPECT_TRUE(jobs.wishes()->Contains("a", BytewiseComparator()));
    jobs.merge_backoff().OnSuccess(jobs.merge_backoff().failures());
  }
  dbfull()->TriggerPeriodicCompaction();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, NumOperands("a"));
  EXPECT_EQ((Map{{"a", "y,0,1,2"}, {"b", "y"}}), All());
}

// Wishes wait while level 0 has too many files. They are fulfilled when a
// compaction of level 0 has ended, even if it has held no value.
TEST_F(DBDeltaFilterTest, WishesAreFulfilledAfterACompactionOfLevel0) {
  const ValueFilter filter(RemoveX);
  Options options = FilterOptions(&filter);
  options.level0_file_num_compaction_trigger = 2;
  options.level0_slowdown_writes_trigger = 2;
  DestroyAndReopen(options);
  const auto put_others = [&] {
    ASSERT_OK(Put("c", "y"));
    ASSERT_OK(Put("d", "y"));
    ASSERT_OK(Flush());
  };
  put_others();
  CompactFiles();
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  const Slice end("b");
  CompactFiles(&end);
  // The compaction of these files does not read "a".
  put_others();
  put_others();
  ASSERT_EQ(2, NumTableFilesAtLevel(0));
  std::atomic<int> num_picks{0};
  EnableCallBack("DBStrata::BackgroundDeltaCollection::Pick:Begin",
                 [&](void*) { ++num_picks; });
  std::atomic<bool> may_compact{false};
  const auto has_compacted =
      EnableCallBackOnce("CompactionJob::Run():Start", [&](void*) {
        EXPECT_TRUE(WaitUntil([&] { return may_compact.load(); }));
      });
  EXPECT_OK(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
  EXPECT_TRUE(WaitUntil([&] {
    const InstrumentedMutexLock lock(dbfull()->mutex());
    return num_picks > 0 && Family()->delta_store()->jobs().IsIdle();
  }));
  EXPECT_EQ(1, NumOperands("a"));
  may_compact = true;
  EXPECT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_TRUE(*has_compacted);
  DisableCallBacks();
  EXPECT_EQ(0, NumOperands("a"));
  CompactFiles();
  EXPECT_EQ((Map{{"c", "y"}, {"d", "y"}}), All());
}

// CompactRange() fulfils wishes although a compaction of level 0 is queued and
// is never admitted.
TEST_F(DBDeltaFilterTest, WishesAreFulfilledBesideARefusedCompaction) {
  const ValueFilter filter(RemoveX);
  const std::shared_ptr<ConcurrentTaskLimiter> limiter(
      NewConcurrentTaskLimiter("none", /*max_outstanding_task=*/0));
  Options options = FilterOptions(&filter);
  options.level0_file_num_compaction_trigger = 2;
  options.level0_slowdown_writes_trigger = 2;
  options.level0_stop_writes_trigger = 100;
  options.compaction_thread_limiter = limiter;
  OpenWithWish(options);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(Put("c", "y"));
    ASSERT_OK(Put("d", "y"));
    ASSERT_OK(Flush());
  }
  ASSERT_OK(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
  ASSERT_EQ(1, NumOperands("a"));
  std::atomic<int> num_waits{0};
  EnableCallBack("DBStrata::ManualDeltaJob::MustWaitForCompactions:MaxWait",
                 [&](void* arg) {
                   *static_cast<uint64_t*>(arg) = 100 * 1000;
                   ++num_waits;
                 });
  std::atomic<bool> is_canceled{false};
  std::atomic<bool> is_over{false};
  std::thread watch([&] {
    EXPECT_TRUE(WaitUntil([&] { return is_over.load(); }));
    is_canceled = true;
  });
  CompactRangeOptions compact;
  compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  compact.canceled = &is_canceled;
  compact.allow_write_stall = true;
  EXPECT_OK(db_->CompactRange(compact, nullptr, nullptr));
  is_over = true;
  watch.join();
  DisableCallBacks();
  EXPECT_GT(num_waits, 1);
  EXPECT_EQ((Map{{"c", "y"}, {"d", "y"}}), All());
  limiter->SetMaxOutstandingTask(-1);
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
}

// An operand is folded for the filter although its block counts for another
// bucket, so that its own one seems to have nothing to take in.
TEST_F(DBDeltaFilterTest, WishInABucketWithoutEstimatedIntakeIsFulfilled) {
  constexpr int kNumKeys = 200;
  const auto key_of = [](int i) { return "k" + std::to_string(1000 + i); };
  const ValueFilter filter(RemoveX);
  Options options = FilterOptions(nullptr);
  options.delta_bucket_size = 4096;
  DestroyAndReopen(options);
  for (int i = 0; i < kNumKeys; ++i) {
    ASSERT_OK(Merge(key_of(i), std::string(100, 'm')));
  }
  ASSERT_OK(ForceCompaction());
  ASSERT_LE(3, Stat("buckets"));
  // Values hide all operands of the first bucket.
  std::string second_bucket;
  {
    const InstrumentedMutexLock lock(dbfull()->mutex());
    const DeltaBucketTable& buckets =
        Family()->current()->storage_info()->delta()->Buckets();
    second_bucket =
        buckets.LowerBound(buckets.Next(buckets.Begin())).ToString();
  }
  for (int i = 0; key_of(i) < second_bucket; ++i) {
    ASSERT_OK(Put(key_of(i), "y"));
  }
  ASSERT_OK(ForceCompaction());
  {
    const InstrumentedMutexLock lock(dbfull()->mutex());
    const DeltaBucketTable& buckets =
        Family()->current()->storage_info()->delta()->Buckets();
    ASSERT_LE(3, buckets.size());
    ASSERT_EQ(0, buckets.State(buckets.Begin()).extent_bytes);
  }
  const std::string first = key_of(0);
  const std::string last = key_of(kNumKeys - 1);
  ASSERT_OK(Put(first, "x"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge(first, "1"));
  ASSERT_OK(Merge(last, "1"));
  ASSERT_OK(Flush());
  options.compaction_filter = &filter;
  Reopen(options);
  CompactFiles();
  RunJobs();
  EXPECT_EQ(0, NumOperands(first));
  EXPECT_EQ(2, NumOperands(last));
  CompactFiles();
  EXPECT_EQ("NOT_FOUND", Get(first));
}

// A key that the filter waits for is folded later if it cannot be folded now.
TEST_F(DBDeltaFilterTest, FoldIsRepeatedIfTheValueCannotBeRead) {
  const ValueFilter filter(RemoveX);
  DestroyAndReopen(FilterOptions(&filter));
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  CompactFiles();
  const auto has_failed =
      EnableCallBackOnce("DeltaValueFolder::MergeKey:Sought", [](void* arg) {
        *static_cast<Status*>(arg) = Status::IOError("injected");
      });
  RunJobs();
  EXPECT_TRUE(*has_failed);
  DisableCallBacks();
  ASSERT_EQ(1u, Deltas().Read("a").size());
  {
    // The next job need not wait.
    const InstrumentedMutexLock lock(dbfull()->mutex());
    DeltaJobBackoff& backoff =
        Family()->delta_store()->jobs().collection_backoff();
    backoff.OnSuccess(backoff.failures());
  }
  RunJobs();
  ASSERT_TRUE(Deltas().Read("a").empty());
  CompactFiles();
  ASSERT_EQ((Map{}), All());
}

// A fold of wished keys that was given up is tried again when some time has
// passed, also in an idle DB. Until then jobs do without a fold.
TEST_F(DBDeltaFilterTest, FoldThatWasGivenUpIsNotRepeatedAtOnce) {
  const auto clock = std::make_shared<MockSystemClock>(env_->GetSystemClock());
  clock->SetCurrentTime(1600000000);
  const std::unique_ptr<Env> env(new CompositeEnvWrapper(env_, clock));
  const Defer close([this] {
    Close();
    last_options_.env = env_;
  });
  const ValueFilter filter(RemoveX);
  Options options = FilterOptions(&filter);
  options.env = env.get();
  ASSERT_NO_FATAL_FAILURE(OpenWithWish(options));
  std::atomic<int> num_folds{0};
  EnableCallBack("DeltaFoldCommit::Write:Validated", [&](void* arg) {
    if (++num_folds == 1) {
      *static_cast<Status*>(arg) = Status::TryAgain("injected");
    }
  });
  ASSERT_OK(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(1, num_folds);
  EXPECT_EQ(1, NumOperands("a"));
  // The bucket takes in other operands meanwhile.
  const uint64_t num_collected = Ticker(DELTA_BUCKETS_COLLECTED);
  for (size_t i = 0; i < DeltaPicker::kMaxFlushed; ++i) {
    ASSERT_OK(Merge("b", std::string(300 << 10, 'b')));
    ASSERT_OK(Flush());
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
  }
  EXPECT_LT(num_collected, Ticker(DELTA_BUCKETS_COLLECTED));
  EXPECT_EQ(1, num_folds);
  clock->SleepForMicroseconds(
      static_cast<int>(DeltaJobBackoff::kFirstRetryMicros));
  dbfull()->TriggerPeriodicCompaction();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  DisableCallBacks();
  EXPECT_EQ(2, num_folds);
  EXPECT_EQ(0, NumOperands("a"));
  CompactFiles();
  EXPECT_EQ("NOT_FOUND", Get("a"));
}

// The wall clock is set back while a fold and a merge wait after failures. That
// does not make the waits longer.
TEST_F(DBDeltaFilterTest, WaitsDoNotFollowTheWallClock) {
  const auto clock = std::make_shared<WallClock>(env_->GetSystemClock());
  clock->SetCurrentTime(1600000000);
  const std::unique_ptr<Env> env(new CompositeEnvWrapper(env_, clock));
  const Defer close([this] {
    Close();
    last_options_.env = env_;
  });
  const ValueFilter filter(RemoveX);
  Options options = FilterOptions(&filter);
  options.env = env.get();
  ASSERT_NO_FATAL_FAILURE(OpenWithWish(options));
  const auto has_given_up =
      EnableCallBackOnce("DeltaFoldCommit::Write:Validated", [](void* arg) {
        *static_cast<Status*>(arg) = Status::TryAgain("injected");
      });
  const auto has_failed = EnableCallBackOnce(
      "DBStrata::BackgroundDeltaMerge::RunMarked:BeforeEdit", [](void* arg) {
        *static_cast<Status*>(arg) = Status::NoSpace("injected");
      });
  ASSERT_OK(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  for (size_t i = 0; i < DeltaPicker::kMaxFlushed; ++i) {
    ASSERT_OK(Merge("b", "1"));
    ASSERT_OK(Flush());
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_TRUE(*has_given_up);
  EXPECT_TRUE(*has_failed);
  EXPECT_EQ(1, NumOperands("a"));
  EXPECT_EQ(DeltaPicker::kMaxFlushed, Stat("flushed-files"));
  clock->SetBack(60 * 60);
  clock->SleepForMicroseconds(
      static_cast<int>(DeltaJobBackoff::kFirstRetryMicros));
  dbfull()->TriggerPeriodicCompaction();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  DisableCallBacks();
  EXPECT_EQ(0, NumOperands("a"));
  EXPECT_EQ(0, Stat("flushed-files"));
}

// While there is a background error, no fold begins, and a recovery need not
// wait for one. Wished keys are folded when the DB has recovered.
TEST_F(DBDeltaFilterTest, WishesAreTakenUpAfterARecovery) {
  const ValueFilter filter(RemoveX);
  Options options = FilterOptions(&filter);
  options.max_bgerror_resume_count = 0;
  ASSERT_NO_FATAL_FAILURE(OpenWithWish(options));
  EnableCallBackOnce("FlushJob::WriteLevel0Table:s", [](void* status) {
    *static_cast<Status*>(status) = RetryableError();
  });
  // The thread of the failed flush schedules jobs during the recovery.
  const auto has_ended =
      EnableCallBackOnce("DBImpl::BackgroundCallFlush:FilesFound", [&](void*) {
        EXPECT_TRUE(
            WaitUntil([&] { return dbfull()->TEST_IsRecoveryInProgress(); }));
      });
  ASSERT_OK(Put("b", "1"));
  ASSERT_NOK(Flush());
  ASSERT_OK(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}));
  ASSERT_OK(db_->Resume());
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  DisableCallBacks();
  EXPECT_TRUE(*has_ended);
  EXPECT_EQ(0, NumOperands("a"));
}

// CompactRange() has to fold everything before it compacts, so it tries again
// at once.
TEST_F(DBDeltaFilterTest, CompactRangeRepeatsAFoldThatWasGivenUp) {
  const ValueFilter filter(RemoveX);
  DestroyAndReopen(FilterOptions(&filter));
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  std::atomic<int> num_folds{0};
  EnableCallBack("DeltaFoldCommit::Write:Validated", [&](void* arg) {
    if (++num_folds <= 3) {
      *static_cast<Status*>(arg) = Status::TryAgain("injected");
    }
  });
  EXPECT_OK(ForceCompaction());
  DisableCallBacks();
  EXPECT_EQ(4, num_folds);
  EXPECT_EQ((Map{}), All());
  EXPECT_EQ("none", Deltas().Text());
}

// Without delta files, CompactRange() has nothing to fold, and leaves no wish
// because of which operands would be folded that come later.
TEST_F(DBDeltaFilterTest, CompactRangeWishesNothingWithoutDeltaFiles) {
  const ValueFilter filter(RemoveX);
  DestroyAndReopen(FilterOptions(&filter));
  const auto compact_all = [this] {
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    const InstrumentedMutexLock lock(dbfull()->mutex());
    EXPECT_EQ(nullptr, Family()->delta_store()->jobs().wishes());
  };
  compact_all();
  ASSERT_OK(Put("a", "y"));
  compact_all();
  for (size_t i = 0; i < DeltaPicker::kMaxFlushed; ++i) {
    ASSERT_OK(Merge("a", "1"));
    ASSERT_OK(Flush());
  }
  RunJobs();
  EXPECT_EQ(0, Stat("flushed-files"));
  EXPECT_LT(0, NumOperands("a"));
  // Operands in a memtable are folded like operands in delta files.
  ASSERT_OK(Merge("a", "2"));
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  EXPECT_EQ(0, NumOperands("a"));
  ASSERT_EQ((Map{{"a", "y,1,1,1,1,2"}}), All());
}

// A changed value is computed from the value with all its operands.
TEST_F(DBDeltaFilterTest, FilterChangesTheValueWithItsOperands) {
  const ValueFilter filter([](const Slice&, const Slice& value,
                              std::string* new_value, std::string*) {
    if (!value.starts_with("x")) {
      return CompactionFilter::Decision::kKeep;
    }
    *new_value = "y" + value.ToString();
    return CompactionFilter::Decision::kChangeValue;
  });
  DestroyAndReopen(FilterOptions(&filter));
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Put("b", "x"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  CompactFiles();
  ASSERT_EQ((Map{{"a", "x,1"}, {"b", "yx"}}), All());
  RunJobs();
  CompactFiles();
  ASSERT_EQ((Map{{"a", "yx,1"}, {"b", "yx"}}), All());
}

TEST_F(DBDeltaFilterTest, RemovedRangeKeepsValuesWithOperands) {
  const ValueFilter filter([](const Slice& key, const Slice& value,
                              std::string*, std::string* skip_until) {
    if (!value.starts_with("x")) {
      return CompactionFilter::Decision::kKeep;
    }
    *skip_until = key[0] < 'm' ? "h" : "zz";
    return CompactionFilter::Decision::kRemoveAndSkipUntil;
  });
  DestroyAndReopen(FilterOptions(&filter));
  for (const char* key : {"a", "b", "c", "d", "h", "m", "n"}) {
    ASSERT_OK(Put(key, *key == 'a' || *key == 'h' ? "y" : "x"));
  }
  ASSERT_OK(Put("o", "y"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("c", "1"));
  ASSERT_OK(Merge("f", "1"));
  ASSERT_OK(Flush());
  CompactFiles();
  ASSERT_EQ((Map{{"a", "y"}, {"c", "x,1"}, {"f", "1"}, {"h", "y"}}), All());
  RunJobs();
  CompactFiles();
  // The removed range begins at "c" now. It does not affect "f", whose only
  // operand is in a delta file.
  ASSERT_EQ((Map{{"a", "y"}, {"f", "1"}, {"h", "y"}}), All());
}

// A key of a removed range that has no operands is removed without a tombstone,
// as RocksDB removes it. So SingleDelete(), which must not meet a tombstone,
// may follow.
TEST_F(DBDeltaFilterTest, SingleDeleteMayFollowARemovedRange) {
  const ValueFilter filter(SkipFromX);
  for (const bool drains : {false, true}) {
    for (const bool has_blobs : {false, true}) {
      for (const bool has_map : {false, true}) {
        if (has_map && !has_blobs) {
          continue;
        }
        SCOPED_TRACE(std::to_string(drains) + std::to_string(has_blobs) +
                     std::to_string(has_map));
        Options options = FilterOptions(nullptr);
        options.enable_blob_files = has_blobs;
        options.enable_blob_address_map = has_map;
        options.max_bgerror_resume_count = 0;
        DestroyAndReopen(options);
        // A tombstone of "k" would be kept above this file.
        ASSERT_OK(Put("j", "y"));
        ASSERT_OK(Put("l", "y"));
        ASSERT_OK(Flush());
        ASSERT_NO_FATAL_FAILURE(CompactLevel0Into(6));

        options.compaction_filter = &filter;
        Reopen(options);
        ASSERT_OK(Put("a", "x"));
        ASSERT_OK(Put("k", "1"));
        // So that delta files overlap the range.
        ASSERT_OK(Merge("m", "1"));
        ASSERT_OK(Flush());
        options.enable_delta_separation = !drains;
        Reopen(options);
        ASSERT_EQ(1, NumOperands("m"));
        ASSERT_NO_FATAL_FAILURE(CompactLevel0Into(5));
        ASSERT_EQ((Map{{"j", "y"}, {"l", "y"}, {"m", "1"}}), All());
        if (!has_map) {
          ASSERT_EQ(0, NumTableFilesAtLevel(5));
        }

        ASSERT_OK(SingleDelete("k"));
        ASSERT_OK(Flush());
        ASSERT_NO_FATAL_FAILURE(CompactLevel0Into(5));
        ASSERT_EQ((Map{{"j", "y"}, {"l", "y"}, {"m", "1"}}), All());
      }
    }
  }
}

// A removed range takes older entries of a key without operands, too, also
// those that a snapshot sees. RocksDB does the same.
TEST_F(DBDeltaFilterTest, RemovedRangeTakesOlderEntriesAsInRocksDB) {
  const ValueFilter filter(SkipFromX);
  for (const bool separates : {false, true}) {
    SCOPED_TRACE(separates);
    Options options = FilterOptions(&filter);
    options.enable_delta_separation = separates;
    DestroyAndReopen(options);
    ASSERT_OK(Put("b", "1"));
    ASSERT_OK(Put("c", "1"));
    ManagedSnapshot snapshot(db_.get());
    ASSERT_OK(Put("a", "x"));
    ASSERT_OK(Put("b", "2"));
    ASSERT_OK(Merge("m", "1"));
    ASSERT_OK(Put("z", "y"));
    ASSERT_OK(Flush());
    ASSERT_EQ("1", Get("b", snapshot.snapshot()));
    CompactFiles();
    for (const char* key : {"a", "b", "c"}) {
      ASSERT_EQ("NOT_FOUND", Get(key)) << key;
      ASSERT_EQ("NOT_FOUND", Get(key, snapshot.snapshot())) << key;
    }
    ASSERT_EQ(separates ? "1" : "NOT_FOUND", Get("m"));
    ASSERT_EQ("y", Get("z"));
  }
}

// A removed range takes values of TimedPut(), about which filters are not
// asked, if they have no operands.
TEST_F(DBDeltaFilterTest, RemovedRangeTakesTimedPuts) {
  const ValueFilter filter(SkipFromX);
  Options options = FilterOptions(&filter);
  // Flushes keep the times as sequence numbers.
  options.preserve_internal_time_seconds = 10000;
  options.enable_blob_files = true;
  for (const bool has_map : {false, true}) {
    SCOPED_TRACE(has_map);
    options.enable_blob_address_map = has_map;
    DestroyAndReopen(options);
    ASSERT_OK(Put("a", "x"));
    for (const char* key : {"b", "m", "n", "z"}) {
      ASSERT_OK(TimedPut(key, "v", /*write_unix_time=*/1));
    }
    ASSERT_OK(Flush());
    ASSERT_OK(Merge("m", "1"));
    ASSERT_OK(Flush());
    std::atomic<int> num_timed{0};
    EnableCallBack("CompactionIterator:ProcessKV", [&](void* entry) {
      if (static_cast<ParsedInternalKey*>(entry)->type ==
          kTypeValuePreferredSeqno) {
        ++num_timed;
      }
    });
    CompactFiles();
    DisableCallBacks();
    EXPECT_LE(4, num_timed);
    ASSERT_EQ(1, NumOperands("m"));
    ASSERT_EQ((Map{{"m", "v,1"}, {"z", "v"}}), All());
  }
}

// A snapshot may see operands that a newer value hides. It still sees them with
// their base when a filter has removed the newer value with a range.
TEST_F(DBDeltaFilterTest, RemovedRangeLeavesTheBaseOfHiddenOperands) {
  const ValueFilter filter(SkipFromX);
  DestroyAndReopen(FilterOptions(&filter));
  ASSERT_OK(Put("k", "y"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Flush());
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Put("k", "2"));
  ASSERT_OK(Flush());
  ASSERT_EQ(0, NumOperands("k"));
  CompactFiles();
  ASSERT_EQ((Map{}), All());
  ASSERT_EQ("y,1", Get("k", snapshot));
  db_->ReleaseSnapshot(snapshot);
  CompactFiles();
  ASSERT_EQ((Map{}), All());
}

// A value stays as long as a snapshot needs some of its operands.
TEST_F(DBDeltaFilterTest, SnapshotHoldsTheValueWithItsOperands) {
  const ValueFilter filter(RemoveX);
  DestroyAndReopen(FilterOptions(&filter));
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "1"));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Merge("a", "2"));
  ASSERT_OK(Flush());
  CompactFiles();
  RunJobs();
  CompactFiles();
  ASSERT_EQ("x,1,2", Get("a"));
  ASSERT_EQ("x,1", Get("a", snapshot));
  ASSERT_OK(ForceCompaction());
  ASSERT_EQ("x,1,2", Get("a"));
  ASSERT_EQ("x,1", Get("a", snapshot));
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(ForceCompaction());
  ASSERT_EQ((Map{}), All());
  ASSERT_EQ("none", Deltas().Text());
}

// Operands that an anchor hides do not hold a newer value.
TEST_F(DBDeltaFilterTest, HiddenOperandsDoNotHoldAValue) {
  const ValueFilter filter(RemoveX);
  DestroyAndReopen(FilterOptions(&filter));
  ASSERT_OK(Put("a", "y"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Flush());
  CompactFiles();
  ASSERT_EQ((Map{}), All());
}

// Operands that cannot be read may be read again later, so their value stays.
TEST_F(DBDeltaFilterTest, UnreadableOperandsHoldTheValue) {
  const ValueFilter filter(RemoveX);
  DestroyAndReopen(FilterOptions(&filter));
  ASSERT_OK(Put("a", "x"));
  ASSERT_OK(Put("b", "x"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("a", "1"));
  ASSERT_OK(Flush());
  Close();
  const std::vector<std::string> names = FilesIn(dbname_, kDeltaFile);
  ASSERT_EQ(1, names.size());
  const std::string path = dbname_ + "/" + names[0];
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, path, &contents));
  ASSERT_OK(test::CorruptFile(env_, path, /*offset=*/0, /*bytes_to_corrupt=*/8,
                              /*verify_checksum=*/false));

  // Each open has a block cache of its own.
  Reopen(FilterOptions(&filter));
  std::string value;
  ASSERT_TRUE(db_->Get(ReadOptions(), "a", &value).IsCorruption());
  CompactFiles();
  Close();
  ASSERT_OK(WriteStringToFile(env_, contents, path));
  Reopen(FilterOptions(&filter));
  ASSERT_EQ((Map{{"a", "x,1"}}), All());
}

TEST_F(DBDeltaFilterTest, TtlRemovesValuesWithTheirOperands) {
  constexpr int kTtl = 100;
  const auto clock = std::make_shared<MockSystemClock>(env_->GetSystemClock());
  clock->SetCurrentTime(1600000000);
  const std::unique_ptr<Env> env(new CompositeEnvWrapper(env_, clock));
  for (const bool separates : {true, false}) {
    SCOPED_TRACE(separates);
    Options options = FilterOptions(nullptr);
    options.env = env.get();
    options.create_if_missing = true;
    options.enable_delta_separation = separates;
    Close();
    ASSERT_OK(DestroyDB(dbname_, options));
    DBWithTTL* opened = nullptr;
    ASSERT_OK(DBWithTTL::Open(options, dbname_, &opened, kTtl));
    std::unique_ptr<DBWithTTL> db(opened);
    const auto get = [&] {
      std::string value;
      const Status s = db->Get(ReadOptions(), "a", &value);
      return s.ok() ? value : s.ToString();
    };
    ASSERT_OK(db->Put(WriteOptions(), "a", "x"));
    ASSERT_OK(db->Flush(FlushOptions()));
    ASSERT_OK(db->Merge(WriteOptions(), "a", "1"));
    ASSERT_OK(db->Flush(FlushOptions()));
    CompactRangeOptions compact;
    compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    clock->SetCurrentTime(clock->NowSeconds() + 2 * kTtl);
    // The merged value has the time of the merge, so it has not expired yet.
    ASSERT_OK(db->CompactRange(compact, nullptr, nullptr));
    ASSERT_EQ("x,1", get());
    clock->SetCurrentTime(clock->NowSeconds() + 2 * kTtl);
    ASSERT_OK(db->CompactRange(compact, nullptr, nullptr));
    ASSERT_EQ("NotFound: ", get());
    ColumnFamilyMetaData meta;
    db->GetColumnFamilyMetaData(db->DefaultColumnFamily(), &meta);
    ASSERT_EQ(0u, meta.size);
    ASSERT_TRUE(meta.delta_files.empty());
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
