//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_job_backoff.h"

#include <algorithm>
#include <cstdint>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(DeltaJobBackoffTest, WaitsAfterFailures) {
  DeltaJobBackoff backoff;
  EXPECT_TRUE(backoff.MayRun(0));
  uint64_t wait = DeltaJobBackoff::kFirstRetryMicros;
  for (int i = 0; i < 10; ++i) {
    backoff.OnFailure(100);
    EXPECT_FALSE(backoff.MayRun(100 + wait - 1));
    EXPECT_TRUE(backoff.MayRun(100 + wait));
    wait = std::min(2 * wait, DeltaJobBackoff::kLastRetryMicros);
  }
  backoff.OnSuccess(backoff.failures());
  EXPECT_TRUE(backoff.MayRun(0));
  // The next failure counts as the first one.
  backoff.OnFailure(100);
  EXPECT_TRUE(backoff.MayRun(100 + DeltaJobBackoff::kFirstRetryMicros));
}

TEST(DeltaJobBackoffTest, DamageIsNoReasonToWaitUntilThereIsMuch) {
  DeltaJobBackoff backoff;
  constexpr uint64_t kNow = 5;
  for (uint32_t i = 1; i < DeltaJobBackoff::kMaxDamages; ++i) {
    backoff.OnDamage(kNow);
    EXPECT_TRUE(backoff.MayRun(kNow));
  }
  backoff.OnSuccess(backoff.failures());
  for (uint32_t i = 1; i < DeltaJobBackoff::kMaxDamages; ++i) {
    backoff.OnDamage(kNow);
    EXPECT_TRUE(backoff.MayRun(kNow));
  }
  backoff.OnDamage(kNow);
  EXPECT_FALSE(backoff.MayRun(kNow));
  EXPECT_TRUE(backoff.MayRun(kNow + DeltaJobBackoff::kFirstRetryMicros));
  backoff.OnDamage(kNow);
  EXPECT_FALSE(backoff.MayRun(kNow + DeltaJobBackoff::kFirstRetryMicros));
  backoff.OnSuccess(backoff.failures());
  EXPECT_TRUE(backoff.MayRun(kNow));
}

TEST(DeltaJobBackoffTest, SuccessOfAnOlderJobDoesNotEndTheWait) {
  constexpr uint64_t kNow = 5;
  DeltaJobBackoff backoff;
  const uint64_t before = backoff.failures();
  backoff.OnFailure(kNow);
  const uint64_t between = backoff.failures();
  backoff.OnSuccess(before);
  EXPECT_FALSE(backoff.MayRun(kNow));
  backoff.OnFailure(kNow);
  backoff.OnSuccess(before);
  backoff.OnSuccess(between);
  // The failures still count as two in succession.
  EXPECT_FALSE(
      backoff.MayRun(kNow + 2 * DeltaJobBackoff::kFirstRetryMicros - 1));
  EXPECT_TRUE(backoff.MayRun(kNow + 2 * DeltaJobBackoff::kFirstRetryMicros));
  backoff.OnSuccess(backoff.failures());
  EXPECT_TRUE(backoff.MayRun(kNow));

  // Damage is no failure until there is much.
  const uint64_t begin = backoff.failures();
  for (uint32_t i = 1; i < DeltaJobBackoff::kMaxDamages; ++i) {
    backoff.OnDamage(kNow);
  }
  EXPECT_EQ(begin, backoff.failures());
  backoff.OnSuccess(begin);
  for (uint32_t i = 1; i < DeltaJobBackoff::kMaxDamages; ++i) {
    backoff.OnDamage(kNow);
  }
  EXPECT_TRUE(backoff.MayRun(kNow));
  backoff.OnDamage(kNow);
  EXPECT_FALSE(backoff.MayRun(kNow));
  backoff.OnSuccess(begin);
  EXPECT_FALSE(backoff.MayRun(kNow));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
