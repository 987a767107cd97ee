//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "monitoring/borrowed_counts.h"

#include "monitoring/iostats_context_imp.h"
#include "monitoring/perf_context_imp.h"
#include "port/port.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

#if !defined(NPERF_CONTEXT) && !defined(NIOSTATS_CONTEXT)

class BorrowedCountsTest : public testing::Test {
 protected:
  BorrowedCountsTest() { Reset(); }
  ~BorrowedCountsTest() override {
    SetPerfLevel(PerfLevel::kEnableCount);
    get_iostats_context()->disable_iostats = false;
    get_perf_context()->ClearPerLevelPerfContext();
    Reset();
  }

  static void Reset() {
    get_perf_context()->Reset();
    get_iostats_context()->Reset();
  }

  static void Work() {
    PERF_COUNTER_ADD(block_read_count, 2);
    PERF_COUNTER_ADD(block_read_byte, 100);
    PERF_COUNTER_BY_LEVEL_ADD(block_cache_miss_count, 3, 1);
    IOSTATS_ADD(bytes_read, 100);
  }

  // By a thread that has worked before, for somebody else.
  static void WorkElsewhere(BorrowedCounts* counts) {
    port::Thread thread([counts] {
      SetPerfLevel(PerfLevel::kEnableCount);
      get_perf_context()->EnablePerLevelPerfContext();
      Work();
      counts->Begin();
      Work();
      counts->End();
    });
    thread.join();
  }
};

TEST_F(BorrowedCountsTest, AddsUp) {
  Work();
  BorrowedCounts counts;
  WorkElsewhere(&counts);
  ASSERT_EQ(2, get_perf_context()->block_read_count);
  counts.AddToThread();
  ASSERT_EQ(4, get_perf_context()->block_read_count);
  ASSERT_EQ(200, get_perf_context()->block_read_byte);
  ASSERT_EQ(200, get_iostats_context()->bytes_read);
  ASSERT_EQ(nullptr, get_perf_context()->level_to_perf_context);
  ASSERT_FALSE(get_perf_context()->per_level_perf_context_enabled);
}

TEST_F(BorrowedCountsTest, Levels) {
  get_perf_context()->EnablePerLevelPerfContext();
  Work();
  BorrowedCounts counts;
  WorkElsewhere(&counts);
  counts.AddToThread();
  ASSERT_EQ(6, get_perf_context()
                   ->level_to_perf_context->at(1)
                   .block_cache_miss_count);
  ASSERT_TRUE(get_perf_context()->per_level_perf_context_enabled);
}

TEST_F(BorrowedCountsTest, Disabled) {
  SetPerfLevel(PerfLevel::kDisable);
  get_iostats_context()->disable_iostats = true;
  BorrowedCounts counts;
  WorkElsewhere(&counts);
  counts.AddToThread();
  ASSERT_EQ(0, get_perf_context()->block_read_count);
  ASSERT_EQ(0, get_iostats_context()->bytes_read);
  ASSERT_TRUE(get_iostats_context()->disable_iostats);
}

// The work never began.
TEST_F(BorrowedCountsTest, Nothing) {
  Work();
  BorrowedCounts counts;
  counts.AddToThread();
  ASSERT_EQ(2, get_perf_context()->block_read_count);
  ASSERT_EQ(100, get_iostats_context()->bytes_read);
}

TEST_F(BorrowedCountsTest, Restore) {
  for (const bool has_levels : {false, true}) {
    if (has_levels) {
      get_perf_context()->EnablePerLevelPerfContext();
    }
    Reset();
    Work();
    SavedPerfCounts saved;
    Work();
    saved.Restore();
    ASSERT_EQ(2, get_perf_context()->block_read_count);
    ASSERT_EQ(100, get_perf_context()->block_read_byte);
    if (has_levels) {
      ASSERT_EQ(3, get_perf_context()
                       ->level_to_perf_context->at(1)
                       .block_cache_miss_count);
    }
    // Not of the PerfContext.
    ASSERT_EQ(200, get_iostats_context()->bytes_read);
  }
}

#endif  // !defined(NPERF_CONTEXT) && !defined(NIOSTATS_CONTEXT)

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
