//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_overlap_policy.h"

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

uint64_t cpu_micros = 0;
uint64_t CpuClock() { return cpu_micros; }

using Policy = DeltaOverlapPolicy;

// All reads, or about one of kSampling.
bool TriesAll(const Policy& policy) {
  constexpr int kAsked = 100 * Policy::kSampling;
  int tries = 0;
  for (int i = 0; i < kAsked; ++i) {
    tries += policy.Tries();
  }
  if (tries != kAsked) {
    EXPECT_GT(tries, 30);
    EXPECT_LT(tries, 300);
  }
  return tries == kAsked;
}

}  // namespace

class DeltaOverlapPolicyTest : public testing::Test {
 protected:
  DeltaOverlapPolicyTest() : policy_(&CpuClock, 2) { cpu_micros = 1000; }

  Policy policy_;
};

TEST_F(DeltaOverlapPolicyTest, Gain) {
  ASSERT_TRUE(TriesAll(policy_));
  ASSERT_EQ(Policy::kFirstGuessMicros, policy_.AverageGain());
  for (int i = 0; i < 40; ++i) {
    policy_.OnGain(100);
  }
  ASSERT_GE(policy_.AverageGain(), 95);
  ASSERT_LE(policy_.AverageGain(), 100);
  ASSERT_TRUE(TriesAll(policy_));
  // In vain.
  for (int i = 0; i < 40; ++i) {
    policy_.OnGain(i % 2 == 0 ? 0 : -500);
  }
  ASSERT_LT(policy_.AverageGain(), Policy::kWorthMicros);
  ASSERT_FALSE(TriesAll(policy_));
  // One long wait of many reads decides nothing.
  policy_.OnGain(1000 * 1000);
  for (int i = 0; i < 20; ++i) {
    policy_.OnGain(0);
  }
  ASSERT_FALSE(TriesAll(policy_));
  for (int i = 0; i < 8; ++i) {
    policy_.OnGain(60);
  }
  ASSERT_TRUE(TriesAll(policy_));
}

TEST_F(DeltaOverlapPolicyTest, InMemory) {
  for (uint32_t i = 0; i < Policy::kMaxInMemory - 1; ++i) {
    policy_.OnInMemory();
  }
  ASSERT_TRUE(TriesAll(policy_));
  ASSERT_TRUE(policy_.OnIO(1));
  for (uint32_t i = 0; i < Policy::kMaxInMemory - 1; ++i) {
    policy_.OnInMemory();
  }
  ASSERT_TRUE(TriesAll(policy_));
  policy_.OnInMemory();
  ASSERT_FALSE(TriesAll(policy_));
  policy_.OnInMemory();
  ASSERT_FALSE(TriesAll(policy_));
  ASSERT_TRUE(policy_.OnIO(2));
  ASSERT_TRUE(TriesAll(policy_));
}

TEST_F(DeltaOverlapPolicyTest, BusyProcessors) {
  constexpr uint64_t kPeriod = Policy::kCpuPeriodMicros;
  uint64_t now = 1000 * kPeriod;
  // Nothing is known yet.
  ASSERT_TRUE(policy_.OnIO(now));
  // Three quarters of two processors, and one more microsecond.
  now += kPeriod;
  cpu_micros += kPeriod * 3 / 2;
  ASSERT_TRUE(policy_.OnIO(now));
  ASSERT_TRUE(TriesAll(policy_));
  now += kPeriod;
  cpu_micros += kPeriod * 3 / 2 + 1;
  ASSERT_FALSE(policy_.OnIO(now));
  ASSERT_FALSE(TriesAll(policy_));
  // Not measured before the period is over.
  now += kPeriod - 1;
  ASSERT_FALSE(policy_.OnIO(now));
  ++now;
  ASSERT_TRUE(policy_.OnIO(now));
  ASSERT_TRUE(TriesAll(policy_));
  // What was long ago does not count.
  now += 20 * kPeriod;
  cpu_micros += 100 * kPeriod;
  ASSERT_TRUE(policy_.OnIO(now));
  now += kPeriod;
  cpu_micros += 2 * kPeriod;
  ASSERT_FALSE(policy_.OnIO(now));
  now += 20 * kPeriod;
  ASSERT_TRUE(policy_.OnIO(now));
  // A clock that does not go on.
  now += kPeriod;
  cpu_micros = 0;
  ASSERT_TRUE(policy_.OnIO(now));
}

TEST_F(DeltaOverlapPolicyTest, RealClock) {
  const uint64_t begun = Policy::ProcessCpuMicros();
  // Work until it has moved by a millisecond.
  volatile uint64_t sum = 0;
  while (Policy::ProcessCpuMicros() < begun + 1000) {
    for (int i = 0; i < 1000; ++i) {
      sum = sum + 1;
    }
  }
  ASSERT_GT(sum, 0);
  Policy policy;
  ASSERT_TRUE(policy.Tries());
  ASSERT_TRUE(policy.OnIO(12345));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
