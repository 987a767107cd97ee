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
  backoff.OnSuccess();
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
  backoff.OnSuccess();
  for (uint32_t i = 1; i < DeltaJobBackoff::kMaxDamages; ++i) {
    backoff.OnDamage(kNow);
    EXPECT_TRUE(backoff.MayRun(kNow));
  }
  backoff.OnDamage(kNow);
  EXPECT_FALSE(backoff.MayRun(kNow));
  EXPECT_TRUE(backoff.MayRun(kNow + DeltaJobBackoff::kFirstRetryMicros));
  backoff.OnDamage(kNow);
  EXPECT_FALSE(backoff.MayRun(kNow + DeltaJobBackoff::kFirstRetryMicros));
  backoff.OnSuccess();
  EXPECT_TRUE(backoff.MayRun(kNow));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
