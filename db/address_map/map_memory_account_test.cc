// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_memory_account.h"

#include "port/stack_trace.h"
#include "test_util/strata/map_memory_charge_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kStep = MapMemoryAccount::kStep;

}  // namespace

class MapMemoryAccountTest : public testing::Test {};

TEST_F(MapMemoryAccountTest, ChargesWholeStepsUntilItIsDestroyed) {
  TestMapCharge charge;
  {
    MapMemoryAccount account(&charge);
    ASSERT_OK(account.Add(1));
    ASSERT_EQ(kStep, charge.charged);
    ASSERT_OK(account.Add(kStep - 1));
    ASSERT_EQ(kStep, charge.charged);
    ASSERT_EQ(1, charge.calls);
    account.AddAlways(1);
    ASSERT_EQ(2 * kStep, charge.charged);
    ASSERT_EQ(kStep + 1, account.Used());
    account.Sub(1);
    ASSERT_EQ(kStep, charge.charged);
  }
  ASSERT_EQ(0u, charge.charged);
}

TEST_F(MapMemoryAccountTest, RefusedMemoryIsNotUsedUnlessForced) {
  TestMapCharge charge;
  charge.limit = kStep;
  MapMemoryAccount account(&charge);
  ASSERT_OK(account.Add(100));
  ASSERT_TRUE(account.Add(kStep).IsMemoryLimit());
  ASSERT_EQ(100u, account.Used());
  ASSERT_EQ(kStep, charge.charged);
  account.AddAlways(kStep);
  ASSERT_EQ(kStep + 100, account.Used());
  account.Sub(kStep);
  ASSERT_EQ(kStep, charge.charged);
}

TEST_F(MapMemoryAccountTest, CountsWithoutACharge) {
  MapMemoryAccount account(/*charge=*/nullptr);
  ASSERT_OK(account.Add(3 * kStep));
  account.AddAlways(5);
  account.Sub(kStep);
  ASSERT_EQ(2 * kStep + 5, account.Used());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
