//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Folds of merge operands into values beside compaction filters.

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/delta/db_delta_model_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/snapshot.h"
#include "test_util/strata/delta_fold_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Removes or changes values while *on is true.
class SwitchedFilter : public CompactionFilter {
 public:
  SwitchedFilter(const std::atomic<bool>* on, bool skips)
      : on_(on), skips_(skips) {}

  // Returns how often the filter decided to remove or to change a value.
  int num_decisions() const { return num_decisions_; }
  const char* Name() const override { return "SwitchedFilter"; }
  Decision FilterV2(int /*level*/, const Slice& key, ValueType value_type,
                    const Slice& /*existing_value*/, std::string* new_value,
                    std::string* skip_until) const override {
    if (!*on_ || value_type == ValueType::kMergeOperand) {
      return Decision::kKeep;
    }
    if (skips_) {
      ++num_decisions_;
      *skip_until = "z";
      return Decision::kRemoveAndSkipUntil;
    }
    if (key == "c") {
      ++num_decisions_;
      return Decision::kRemove;
    }
    if (key == "d") {
      ++num_decisions_;
      *new_value = "changed";
      return Decision::kChangeValue;
    }
    return Decision::kKeep;
  }

 private:
  const std::atomic<bool>* const on_;
  const bool skips_;
  mutable std::atomic<int> num_decisions_{0};
};

class SkippingFilters : public CompactionFilterFactory {
 public:
  explicit SkippingFilters(const std::atomic<bool>* on) : on_(on) {}

  const char* Name() const override { return "SkippingFilters"; }
  bool ShouldFilterTableFileCreation(
      TableFileCreationReason /*reason*/) const override {
    return true;
  }
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& /*context*/) override {
    return std::make_unique<SwitchedFilter>(on_, /*skips=*/true);
  }

 private:
  const std::atomic<bool>* const on_;
};

// Makes filters that hold a snapshot of the DB as long as they live.
class SnapshotFilters : public CompactionFilterFactory {
 public:
  const char* Name() const override { return "SnapshotFilters"; }
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& /*context*/) override {
    ++num_made;
    return std::make_unique<Filter>(db);
  }

  DB* db = nullptr;
  std::atomic<int> num_made{0};

 private:
  class Filter : public CompactionFilter {
   public:
    explicit Filter(DB* of_db) : snapshot_(of_db) {}
    const char* Name() const override { return "SnapshotFilter"; }

   private:
    const ManagedSnapshot snapshot_;
  };
};

}  // namespace

class DBDeltaFoldFilterTest : public DeltaFoldDBTestBase {
 public:
  DBDeltaFoldFilterTest() : DeltaFoldDBTestBase("db_delta_fold_filter_test") {}

 protected:
  // Compacts all SST files, with the filter of the options.
  void CompactAllFiles() {
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    std::vector<std::string> names;
    for (const LiveFileMetaData& file : files) {
      names.push_back(file.name);
    }
    ASSERT_OK(
        db_->CompactFiles(CompactionOptions(), names, /*output_level=*/3));
  }

  // A compaction of all files, with the filter of the options. It begins in the
  // constructor and continues when GoOn() is called. If there are no operands
  // in delta files when it begins, it does not hold values for them
  // (DeltaHoldingFilter).
  class PausedCompaction {
   public:
    explicit PausedCompaction(DBDeltaFoldFilterTest* test) {
      std::promise<void> began;
      EnableCallBackOnce("CompactFilesImpl:0", [this, &began](void*) {
        began.set_value();
        go_on_.get_future().wait();
      });
      thread_ = std::thread([test] { test->CompactAllFiles(); });
      began.get_future().wait();
    }
    ~PausedCompaction() { Finish(); }
    void GoOn() {
      if (!goes_on_.exchange(true)) {
        go_on_.set_value();
      }
    }
    void Finish() {
      GoOn();
      if (thread_.joinable()) {
        thread_.join();
      }
    }

   private:
    std::promise<void> go_on_;
    std::atomic<bool> goes_on_{false};
    std::thread thread_;
  };
};

INSTANTIATE_TEST_CASE_P(DBDeltaFoldFilterTest, DBDeltaFoldFilterTest,
                        testing::Values(delta_test::ValuePlace::kInline,
                                        delta_test::ValuePlace::kBlobs,
                                        delta_test::ValuePlace::kMap,
                                        delta_test::ValuePlace::kMapVersioned));

// If the filter of a compaction changes bases after the fold has read them, the
// fold is given up and the changes stay, with and without a cache of merged
// values. The compaction has begun before there were operands, so it does not
// hold the values.
TEST_P(DBDeltaFoldFilterTest, FoldIsGivenUpAfterAFilterChangedItsBases) {
  for (const bool with_cache : {false, true}) {
    std::atomic<bool> filters{false};
    const SwitchedFilter filter(&filters, /*skips=*/false);
    expected_.clear();
    all_keys_.clear();
    num_picked_ = 0;
    Options options = DeltaOptions();
    options.enable_merged_value_cache = with_cache;
    options.compaction_filter = &filter;
    DestroyAndReopen(options);
    WriteBases();
    PausedCompaction compaction(this);
    WriteOperands();
    Check();
    ForceFolds();
    ASSERT_OK(CollectBeside([&] {
      filters = true;
      compaction.Finish();
      filters = false;
      expected_["c"] = ",1," + Long("2");
      expected_["d"] = "changed,1," + Long("2");
      EXPECT_EQ(0, NumFolded());
      Check();
    }));
    EXPECT_EQ("changed,1," + Long("2"), expected_["d"]);
    EXPECT_GT(num_picked_, 1);
    Check();
    GoOn();
    Close();
  }
}

// The same holds if the edit of the compaction is still in the queue for the
// MANIFEST.
TEST_P(DBDeltaFoldFilterTest, FoldIsGivenUpWhileAFilterIsCommitted) {
  std::atomic<bool> filters{false};
  const SwitchedFilter filter(&filters, /*skips=*/false);
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  WriteBases();
  PausedCompaction compaction(this);
  WriteOperands();
  Check();
  ForceFolds();
  std::promise<void> writes;
  std::promise<void> go_on;
  std::atomic<bool> goes_on{false};
  const auto let_go = [&](void*) {
    if (!goes_on.exchange(true)) {
      go_on.set_value();
    }
  };
  EnableCallBackOnce("DBStrata::BeginDeltaFold:BeforeEdit", let_go);
  EnableCallBackOnce("DBStrata::EndDeltaFold:BeforeSettle", let_go);
  ASSERT_OK(CollectBeside([&] {
    filters = true;
    EnableCallBackOnce("VersionSet::LogAndApply:WriteManifest", [&](void*) {
      filters = false;
      expected_["c"] = ",1," + Long("2");
      expected_["d"] = "changed,1," + Long("2");
      writes.set_value();
      go_on.get_future().wait();
    });
    compaction.GoOn();
    writes.get_future().wait();
  }));
  compaction.Finish();
  EXPECT_EQ("changed,1," + Long("2"), expected_["d"]);
  EXPECT_GT(num_picked_, 1);
  GoOn();
}

// A filter that runs while a value has operands is held until the value is
// complete.
TEST_P(DBDeltaFoldFilterTest, FilterIsHeldWhileThereAreOperands) {
  std::atomic<bool> filters{false};
  const SwitchedFilter filter(&filters, /*skips=*/false);
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  WriteFoldable();
  ForceFolds();
  ASSERT_OK(CollectBeside([&] {
    filters = true;
    CompactAllFiles();
    filters = false;
    Check();
  }));
  // The filter has decided about "c" and "d", but neither has changed.
  EXPECT_GE(filter.num_decisions(), 2);
  Check();
  GoOn();
}

// A fold is not given up because a filter has changed other files than the fold
// has read.
TEST_P(DBDeltaFoldFilterTest, FiltersOfOtherFilesDoNotStopAFold) {
  std::atomic<bool> filters{false};
  const SwitchedFilter filter(&filters, /*skips=*/true);
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  WriteFoldable();
  // The file of "x" is one that the compaction before the collection does not
  // rewrite.
  CompactAllFiles();
  DoPut("x", Long("x"));
  ASSERT_OK(Flush());
  ForceFolds();
  int num_filtered = 0;
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        no_more_folds_ = true;
        filters = true;
        std::vector<LiveFileMetaData> files;
        db_->GetLiveFilesMetaData(&files);
        for (const LiveFileMetaData& file : files) {
          if (file.smallestkey == "x") {
            ++num_filtered;
            ASSERT_OK(db_->CompactFiles(CompactionOptions(), {file.name},
                                        /*output_level=*/3));
          }
        }
        filters = false;
      });
  CompactRangeOptions without_rewriting;
  without_rewriting.bottommost_level_compaction =
      BottommostLevelCompaction::kSkip;
  ASSERT_OK(db_->CompactRange(without_rewriting, nullptr, nullptr));
  EXPECT_EQ(1, num_filtered);
  EXPECT_EQ(10, NumFolded());
  expected_.erase("x");
  CheckNoOperands();
  GoOn();
}

// A fold also begins a new generation of merged values if a filter removes all
// of its values.
TEST_P(DBDeltaFoldFilterTest, FoldThatAFilterEmptiesBeginsAGeneration) {
  std::atomic<bool> filters{false};
  Options options = DeltaOptions();
  options.enable_merged_value_cache = true;
  options.compaction_filter_factory =
      std::make_shared<SkippingFilters>(&filters);
  DestroyAndReopen(options);
  WriteFoldable();
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::Write:Begin", [&](void*) {
        // These reads fill the merged-value cache.
        Check();
        EXPECT_GT(options.statistics->getTickerCount(MERGED_VALUE_CACHE_HIT),
                  0);
        filters = true;
      });
  // No compaction has followed yet. Scans do not use the cache.
  const auto committed = EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit", [&](void*) {
        std::map<std::string, std::string> seen;
        const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
        for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
          seen[iter->key().ToString()] = iter->value().ToString();
        }
        EXPECT_OK(iter->status());
        EXPECT_NE(seen, expected_);
        CheckAll(seen);
      });
  ASSERT_OK(Collect());
  EXPECT_TRUE(*committed);
  EXPECT_GT(num_picked_, 0);
  CheckNoOperands();
  // The compaction after the fold has applied the filter to the entries below.
  CheckAll({});
  Restart();
  CheckAll({});
}

namespace {

// Removes operands with the given text while *on is true.
class OperandFilter : public CompactionFilter {
 public:
  OperandFilter(const std::atomic<bool>* on, std::string text)
      : on_(on), text_(std::move(text)) {}
  const char* Name() const override { return "OperandFilter"; }
  Decision FilterV2(int /*level*/, const Slice& /*key*/, ValueType value_type,
                    const Slice& value, std::string* /*new_value*/,
                    std::string* /*skip_until*/) const override {
    return *on_ && value_type == ValueType::kMergeOperand && value == text_
               ? Decision::kRemove
               : Decision::kKeep;
  }

 private:
  const std::atomic<bool>* const on_;
  const std::string text_;
};

}  // namespace

// A job whose filter removes only operands in delta files begins a new
// generation of merged values, too.
TEST_P(DBDeltaFoldFilterTest, FilteredOperandsBeginAGeneration) {
  std::atomic<bool> filters{false};
  const OperandFilter filter(&filters, "1");
  Options options = DeltaOptions();
  options.enable_merged_value_cache = true;
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  WriteFoldable();
  Check();
  EXPECT_GT(Ticker(MERGED_VALUE_CACHE_HIT), 0);
  filters = true;
  ASSERT_OK(Collect());
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    std::string& value = expected_[key];
    value.erase(value.find(",1,"), 2);
  }
  Check();
  Close();
}

// User-defined compaction filters may call the DB.
TEST_P(DBDeltaFoldFilterTest, CompactionFiltersMayUseTheDB) {
  const auto filters = std::make_shared<SnapshotFilters>();
  Options options = DeltaOptions();
  DestroyAndReopen(options);
  WriteFoldable();
  options.compaction_filter_factory = filters;
  options.avoid_flush_during_recovery = true;
  Reopen(options);
  filters->db = db_.get();
  ForceFolds();
  const int before = filters->num_made;
  // Collect() merges and collects.
  ASSERT_OK(Collect());
  EXPECT_GT(filters->num_made, before);
  EXPECT_EQ(10, NumFolded());
  Check();
  DisableCallBacks();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
