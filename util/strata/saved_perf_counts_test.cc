//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/saved_perf_counts.h"

#include "monitoring/iostats_context_imp.h"
#include "monitoring/perf_context_imp.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

#if !defined(NPERF_CONTEXT) && !defined(NIOSTATS_CONTEXT)

class SavedPerfCountsTest : public testing::Test {
 protected:
  SavedPerfCountsTest() { Reset(); }
  ~SavedPerfCountsTest() override {
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
};

TEST_F(SavedPerfCountsTest, RestoreUndoesLaterCounts) {
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
    // The IOStatsContext is left alone.
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
