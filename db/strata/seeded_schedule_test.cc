//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <cstdint>
#include <set>
#include <vector>

#include "test_util/strata/seeded_locks_test_util.h"
#include "test_util/strata/seeded_schedule_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Policy = SeededSchedule::Policy;

// Each thread runs until a change point or its end.
TEST(SeededScheduleTest, PrioritiesChangeAtChangePointsOnly) {
  const std::vector<size_t> runnable = {0, 1, 2, 3};
  for (const size_t change_points : {0, 1, 3}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SeededSchedule::Options options;
      options.seed = seed;
      options.policy = Policy::kPriorities;
      options.change_points = change_points;
      options.expected_steps = 100;
      options.max_wait = 1000;
      SeededSchedule schedule(options);
      for (size_t i = 0; i < runnable.size(); ++i) {
        schedule.AddThread();
      }
      size_t changes = 0;
      size_t running = schedule.Next(runnable, 0);
      for (int step = 0; step < 200; ++step) {
        const size_t next = schedule.Next(runnable, running);
        changes += next == running ? 0 : 1;
        running = next;
      }
      ASSERT_LE(changes, change_points);
      if (change_points == 1) {
        ASSERT_EQ(changes, 1);
      }
    }
  }
}

TEST(SeededScheduleTest, YieldAndLongWaitsLetOthersRun) {
  for (const Policy policy : {Policy::kUniform, Policy::kPriorities}) {
    SeededSchedule::Options options;
    options.policy = policy;
    options.max_wait = 10;
    SeededSchedule schedule(options);
    schedule.AddThread();
    schedule.AddThread();
    std::set<size_t> ran;
    for (int step = 0; step < 1000; ++step) {
      ran.insert(schedule.Next({0, 1}, 0));
    }
    ASSERT_EQ(ran, (std::set<size_t>{0, 1}));
    for (size_t running : {0, 1, 0, 1}) {
      schedule.Yield(running);
      ASSERT_EQ(schedule.Next({0, 1}, running), 1 - running);
      schedule.Yield(running);
      ASSERT_EQ(schedule.Next({running}, running), running);
    }
  }
}

TEST(SeededLocksTest, ModesExcludeEachOther) {
  using Released = SeededLocks::Released;
  SeededLocks locks;
  const int lock = 0;
  SeededLocks::Mode exclusive;
  SeededLocks::Mode shared;
  shared.is_shared = true;
  SeededLocks::Mode recursive;
  recursive.is_recursive = true;

  ASSERT_TRUE(locks.TryTake(&lock, exclusive, 1));
  ASSERT_FALSE(locks.TryTake(&lock, exclusive, 1));
  ASSERT_FALSE(locks.TryTake(&lock, shared, 2));
  ASSERT_EQ(locks.Release(&lock, 2), Released::kNotHeld);
  ASSERT_EQ(locks.Release(&lock, 1), Released::kFree);
  ASSERT_EQ(locks.Release(&lock, 1), Released::kNotHeld);

  ASSERT_TRUE(locks.TryTake(&lock, shared, 1));
  ASSERT_TRUE(locks.TryTake(&lock, shared, 2));
  ASSERT_FALSE(locks.TryTake(&lock, exclusive, 3));
  ASSERT_EQ(locks.Release(&lock, 1), Released::kStillHeld);
  ASSERT_EQ(locks.Release(&lock, 2), Released::kFree);

  ASSERT_TRUE(locks.TryTake(&lock, recursive, 1));
  ASSERT_TRUE(locks.TryTake(&lock, recursive, 1));
  ASSERT_FALSE(locks.TryTake(&lock, recursive, 2));
  ASSERT_EQ(locks.Release(&lock, 1), Released::kStillHeld);
  SeededTrace trace(/*path=*/nullptr);
  ASSERT_EQ(locks.Describe(&trace), "T1 holds the lock #1\n");
  ASSERT_EQ(locks.Release(&lock, 1), Released::kFree);
  ASSERT_EQ(locks.Describe(&trace), "");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
