//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/level0_merge.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "db/db_test_util.h"
#include "db/version_edit.h"
#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/listener.h"
#include "test_util/testharness.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

class Level0MergeTest : public testing::Test {
 public:
  Level0MergeTest() {
    options_.max_compaction_bytes = 1 << 30;  // 0 until a DB is opened
  }

 protected:
  using Action = Level0Merge::Action;

  // The sizes are of the newest file first. A negative size means that the file
  // is being compacted.
  Level0Merge::Decision Decide(const std::vector<int64_t>& sizes,
                               uint64_t base_size, bool is_paid = false) {
    std::vector<std::unique_ptr<FileMetaData>> files;
    std::vector<FileMetaData*> pointers;
    for (const int64_t size : sizes) {
      files.push_back(std::make_unique<FileMetaData>());
      files.back()->compensated_file_size =
          static_cast<uint64_t>(std::abs(size));
      files.back()->being_compacted = size < 0;
      pointers.push_back(files.back().get());
    }
    const MutableCFOptions options(options_);
    const auto decision =
        Level0Merge::Decide(pointers, base_size, options, is_paid);
    EXPECT_EQ(
        decision.action == Action::kWait ? 0 : 9,
        Level0Merge::SortedRuns(pointers, 9, base_size, options, is_paid));
    is_due_ = Level0Merge::IsDue(pointers, base_size, options);
    EXPECT_TRUE(is_due_ || is_paid || decision.action == Action::kWait);
    return decision;
  }
  size_t Merged(const std::vector<int64_t>& sizes) {
    const auto decision = Decide(sizes, /*base_size=*/100000);
    EXPECT_NE(Action::kDown, decision.action);
    return decision.num_files;
  }
  Action ActionOf(const std::vector<int64_t>& sizes, uint64_t base_size) {
    return Decide(sizes, base_size).action;
  }

  // Set by Decide().
  bool is_due_ = false;
  Options options_;
};

TEST_F(Level0MergeTest, FilesOfSimilarSizeAreMerged) {
  EXPECT_EQ(0u, Merged({}));
  EXPECT_EQ(0u, Merged({10, 10, 10}));
  EXPECT_EQ(4u, Merged({10, 10, 10, 10}));
  EXPECT_EQ(5u, Merged({10, 10, 10, 10, 10}));
  // Files wait until enough of them have a similar size.
  EXPECT_EQ(0u, Merged({10, 10, 10, 40}));
  EXPECT_EQ(4u, Merged({10, 10, 10, 10, 40}));
  EXPECT_EQ(0u, Merged({40, 40, 40, 160}));
  EXPECT_EQ(4u, Merged({40, 40, 40, 40, 160}));
  EXPECT_EQ(5u, Merged({10, 40, 40, 40, 40}));
  EXPECT_EQ(0u, Merged({10, 160, 640, 2560}));
  // A large newest file does not prevent the merge.
  EXPECT_EQ(5u, Merged({100, 10, 10, 10, 10}));
  options_.level0_file_num_compaction_trigger = 2;
  EXPECT_EQ(2u, Merged({10, 10}));
  EXPECT_EQ(2u, Merged({10, 10, 40}));
}

TEST_F(Level0MergeTest, ManyFilesAreMergedWhateverTheirSizes) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; sizes.size() < 14; size += size / 2 + 1) {
    sizes.push_back(size);
  }
  EXPECT_EQ(0u, Merged(sizes));
  sizes.push_back(5000);
  EXPECT_EQ(4u, Merged(sizes));
  options_.level0_slowdown_writes_trigger = 40;
  EXPECT_EQ(0u, Merged(sizes));
  options_.level0_slowdown_writes_trigger = -1;
  EXPECT_EQ(0u, Merged(sizes));
  // The compaction trigger takes precedence over the slowdown trigger.
  options_.level0_slowdown_writes_trigger = 4;
  options_.level0_file_num_compaction_trigger = 10;
  EXPECT_EQ(0u, Merged({1, 2, 4, 8, 16, 32, 64, 128, 256}));
  EXPECT_EQ(10u, Merged({1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
}

// SetOptions() accepts a stop trigger below the slowdown trigger. Files must be
// due before writes stop, and before Flush() waits.
TEST_F(Level0MergeTest, FilesAreMergedBeforeWritesStop) {
  EXPECT_EQ(0u, Merged({10, 10, 10, 40}));
  for (const int stop : {4, 5}) {
    options_.level0_stop_writes_trigger = stop;
    EXPECT_EQ(4u, Merged({10, 10, 10, 40}));
    EXPECT_TRUE(is_due_);
  }
  options_.level0_stop_writes_trigger = 6;
  EXPECT_EQ(0u, Merged({10, 10, 10, 40}));
  EXPECT_EQ(4u, Merged({10, 10, 10, 40, 160}));
  // Without a slowdown trigger only the stop trigger counts.
  options_.level0_slowdown_writes_trigger = -1;
  EXPECT_EQ(0u, Merged({10, 10, 10, 40}));
  EXPECT_EQ(4u, Merged({10, 10, 10, 40, 160}));
  // The compaction trigger takes precedence.
  options_.level0_stop_writes_trigger = 2;
  EXPECT_EQ(0u, Merged({10, 20, 40}));
  EXPECT_EQ(4u, Merged({10, 20, 40, 80}));
}

TEST_F(Level0MergeTest, MergesThatRunAreStillDue) {
  EXPECT_EQ(0u, Merged({10, 10, 10, 40}));
  EXPECT_FALSE(is_due_);
  EXPECT_EQ(0u, Merged({10, 160, 640, 2560}));
  EXPECT_FALSE(is_due_);
  EXPECT_EQ(4u, Merged({10, 10, 10, 10}));
  EXPECT_TRUE(is_due_);
  // Files that are being compacted count as work that is due.
  EXPECT_EQ(0u, Merged({10, 10, -10, -10}));
  EXPECT_TRUE(is_due_);
  EXPECT_EQ(Action::kWait, ActionOf({10, 10, 10, -10}, 0));
  EXPECT_TRUE(is_due_);
  EXPECT_EQ(Action::kWait, ActionOf({10, 10, -10}, 0));
  EXPECT_FALSE(is_due_);
}

TEST_F(Level0MergeTest, FilesAsLargeAsTheBaseLevelGoDown) {
  EXPECT_EQ(Action::kWait, ActionOf({10, 10, 10}, 0));
  EXPECT_EQ(Action::kDown, ActionOf({10, 10, 10, 10}, 0));
  EXPECT_EQ(Action::kDown, ActionOf({10, 10, 10, 10}, 40));
  EXPECT_EQ(Action::kMerge, ActionOf({10, 10, 10, 10}, 41));
  EXPECT_EQ(Action::kWait, ActionOf({10, 10, 10, 30}, 61));
  EXPECT_EQ(Action::kDown, ActionOf({10, 10, 10, 30}, 60));
  // A merge of one file would be picked again at once.
  options_.level0_file_num_compaction_trigger = 1;
  EXPECT_EQ(Action::kDown, ActionOf({10}, 1000));
}

TEST_F(Level0MergeTest, MergesThatAreTooLargeGoDown) {
  options_.max_bytes_for_level_base = 200;
  options_.max_compaction_bytes = 90;
  EXPECT_EQ(Action::kMerge, ActionOf({20, 20, 25, 25}, 1000));
  EXPECT_EQ(Action::kDown, ActionOf({20, 20, 25, 26}, 1000));
  options_.max_compaction_bytes = 1000;
  EXPECT_EQ(Action::kMerge, ActionOf({25, 25, 25, 25}, 1000));
  EXPECT_EQ(Action::kDown, ActionOf({25, 25, 25, 26}, 1000));
}

TEST_F(Level0MergeTest, FilesNewerThanARunningCompactionAreMerged) {
  EXPECT_EQ(0u, Merged({10, 10, 10, -10, -10}));
  EXPECT_EQ(4u, Merged({10, 10, 10, 10, -10, -10}));
  EXPECT_EQ(4u, Merged({10, 10, 10, 10, -10, 10, 10}));
  EXPECT_EQ(0u, Merged({-10, 10, 10, 10, 10}));
  EXPECT_EQ(Action::kWait, ActionOf({10, 10, 10, 10, -10}, 30));
}

// Runs the rule in a database and counts how often level 0 is compacted into
// the base level, and how many bytes are written. All values must be readable
// in the end.
class DBLevel0MergeTest : public DBTestBase {
 public:
  DBLevel0MergeTest()
      : DBTestBase("db_level0_merge_test", /*env_do_fsync=*/false) {}

 protected:
  class Counter : public EventListener {
   public:
    void OnCompactionCompleted(DB* /*db*/,
                               const CompactionJobInfo& info) override {
      if (info.compaction_reason != CompactionReason::kLevelL0FilesNum) {
        return;
      }
      MutexLock lock(&mutex_);
      if (info.output_level == 0) {
        ++within;
        bytes_within += info.stats.total_output_bytes;
      } else {
        ++down;
        bytes_down += info.stats.total_output_bytes;
      }
    }
    int within = 0;
    int down = 0;
    uint64_t bytes_within = 0;
    uint64_t bytes_down = 0;
    int most_files = 0;

   private:
    port::Mutex mutex_;
  };

  std::shared_ptr<Counter> Run(bool has_map) {
    const auto counter = std::make_shared<Counter>();
    Options options = CurrentOptions();
    options.compression = kNoCompression;
    options.level0_file_num_compaction_trigger = 4;
    options.max_bytes_for_level_base = 64 << 20;
    options.level_compaction_dynamic_level_bytes = true;
    options.disable_auto_compactions = true;
    options.enable_blob_files = true;
    options.enable_blob_address_map = has_map;
    options.min_blob_size = 10;
    options.listeners.push_back(counter);
    DestroyAndReopen(options);
    constexpr int kKeys = 10000;
    constexpr int kRounds = 250;
    for (int i = 0; i < kKeys; ++i) {
      EXPECT_OK(Put(Key(i), "value of " + Key(i)));
    }
    EXPECT_OK(Flush());
    EXPECT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    EXPECT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
    // The base level is about a hundred times as large as a flush.
    for (int round = 0; round < kRounds; ++round) {
      for (int i = round % 100; i < kKeys; i += 100) {
        EXPECT_OK(Put(Key(i), "round " + std::to_string(round) + Key(i)));
      }
      EXPECT_OK(Flush());
      EXPECT_OK(dbfull()->TEST_WaitForCompact());
      counter->most_files =
          std::max(counter->most_files, NumTableFilesAtLevel(0));
    }
    for (int i = 0; i < kKeys; ++i) {
      const int round = (kRounds - 1 - i % 100) / 100 * 100 + i % 100;
      EXPECT_EQ(Get(Key(i)), "round " + std::to_string(round) + Key(i));
    }
    return counter;
  }
};

TEST_F(DBLevel0MergeTest, MapHalvesTheBytesWrittenFromLevel0) {
  const auto with_map = Run(/*has_map=*/true);
  const auto without = Run(/*has_map=*/false);
  EXPECT_GT(with_map->within, 0);
  EXPECT_GT(with_map->down, 0);
  EXPECT_LT(with_map->down, without->down);
  // Each value is merged a few times in level 0 and then goes down once.
  EXPECT_LT(with_map->bytes_within + with_map->bytes_down,
            (without->bytes_within + without->bytes_down) / 2);
  // There are at most three tiers of three files, and one new flush.
  EXPECT_LE(with_map->most_files, 10);
}

// However small level 0 is, but not while a part of it is being compacted.
TEST_F(DBLevel0MergeTest, WritesGoOnWithALoweredStopTrigger) {
  Run(/*has_map=*/true);
  ASSERT_OK(db_->SetOptions({{"level0_stop_writes_trigger", "4"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  WriteOptions write_options;
  write_options.no_slowdown = true;
  FlushOptions flush_options;
  flush_options.allow_write_stall = true;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_OK(db_->Put(write_options, Key(i * 100), Key(round)));
    }
    ASSERT_OK(db_->Flush(flush_options));
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    ASSERT_LT(NumTableFilesAtLevel(0), 4);
  }
  ASSERT_EQ(Key(11), Get(Key(100)));
}

TEST_F(Level0MergeTest, GoesDownWhenScansHavePaid) {
  const auto decision = Decide({10, 10}, 100000, /*is_paid=*/true);
  EXPECT_EQ(decision.action, Action::kDown);
  EXPECT_EQ(decision.num_files, 2u);
  EXPECT_EQ(Decide({10}, 100000, /*is_paid=*/true).action, Action::kDown);
  EXPECT_EQ(Decide({10, 10}, 100000).action, Action::kWait);
  EXPECT_EQ(Decide({10, -10}, 100000, /*is_paid=*/true).action, Action::kWait);
  EXPECT_EQ(Decide({}, 100000, /*is_paid=*/true).action, Action::kWait);
  // There are enough runs for a compaction.
  std::vector<FileMetaData*> files;
  FileMetaData file;
  files.push_back(&file);
  const MutableCFOptions options(options_);
  EXPECT_EQ(Level0Merge::SortedRuns(files, 1, 100000, options,
                                    /*is_paid=*/true),
            options_.level0_file_num_compaction_trigger);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
