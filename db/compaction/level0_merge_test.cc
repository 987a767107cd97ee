//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/compaction/level0_merge.h"

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
  double Ratio(const std::vector<uint64_t>& sizes) {
    std::vector<std::unique_ptr<FileMetaData>> files;
    std::vector<FileMetaData*> pointers;
    for (const uint64_t size : sizes) {
      files.push_back(std::make_unique<FileMetaData>());
      files.back()->compensated_file_size = size;
      pointers.push_back(files.back().get());
    }
    return Level0Merge::BaseRatio(pointers, MutableCFOptions(options_));
  }

  Options options_;
};

TEST_F(Level0MergeTest, BaseRatio) {
  // Four flushes: three of them are new, were they merged into the fourth.
  EXPECT_DOUBLE_EQ(Ratio({10, 10, 10, 10}), 1);
  EXPECT_DOUBLE_EQ(Ratio({10, 10, 10, 40}), 70.0 / 60);
  // Wherever the merged one is.
  EXPECT_DOUBLE_EQ(Ratio({10, 10, 10, 70}), 100.0 / 60);
  EXPECT_DOUBLE_EQ(Ratio({70, 10, 10, 10}), 100.0 / 60);
  // The larger it is, the larger must the base level be.
  EXPECT_DOUBLE_EQ(Ratio({10, 10, 10, 570}), 600.0 / 60);
  // No division by zero where there is nothing to merge.
  EXPECT_DOUBLE_EQ(Ratio({10}), 5);
  EXPECT_DOUBLE_EQ(Ratio({}), 1);
}

TEST_F(Level0MergeTest, WhatWouldGoDownAtOnce) {
  options_.max_bytes_for_level_base = 200;
  options_.max_compaction_bytes = 90;
  EXPECT_LT(Ratio({20, 20, 20, 30}), 2);
  EXPECT_EQ(Ratio({20, 20, 20, 31}), Level0Merge::kNever);
  options_.max_compaction_bytes = 1000;
  EXPECT_LT(Ratio({20, 20, 20, 40}), 2);
  EXPECT_EQ(Ratio({20, 20, 20, 41}), Level0Merge::kNever);
  options_.level0_file_num_compaction_trigger = 1;
  EXPECT_EQ(Ratio({20, 20, 20, 20}), Level0Merge::kNever);
}

// What the rule does in a database: how often level 0 goes to the base level,
// and whether anything is lost on the way.
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
      } else {
        ++down;
        bytes_down += info.stats.total_output_bytes;
      }
    }
    int within = 0;
    int down = 0;
    uint64_t bytes_down = 0;

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
    options.enable_blob_files = has_map;
    options.enable_blob_address_map = has_map;
    options.min_blob_size = 10;
    options.listeners.push_back(counter);
    DestroyAndReopen(options);
    constexpr int kKeys = 20000;
    for (int i = 0; i < kKeys; ++i) {
      EXPECT_OK(Put(Key(i), "value of " + Key(i)));
    }
    EXPECT_OK(Flush());
    EXPECT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    counter->down = 0;
    counter->bytes_down = 0;
    EXPECT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
    // Base level : a flush = 100 : 1. RocksDB would merge one time in four.
    for (int round = 0; round < 60; ++round) {
      for (int i = round; i < kKeys; i += 100) {
        EXPECT_OK(Put(Key(i), "round " + std::to_string(round) + Key(i)));
      }
      EXPECT_OK(Flush());
      EXPECT_OK(dbfull()->TEST_WaitForCompact());
    }
    for (int i = 0; i < kKeys; ++i) {
      const int round = i % 100;
      EXPECT_EQ(Get(Key(i)), round < 60
                                 ? "round " + std::to_string(round) + Key(i)
                                 : "value of " + Key(i));
    }
    return counter;
  }
};

TEST_F(DBLevel0MergeTest, GoesDownWhenItIsWorthTheWay) {
  const auto with_map = Run(/*has_map=*/true);
  const auto without = Run(/*has_map=*/false);
  EXPECT_GT(with_map->within, 0);
  EXPECT_GT(with_map->down, 0);
  EXPECT_LT(with_map->down, without->down);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
