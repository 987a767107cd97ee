//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_cost.h"

#include <cstdint>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

}  // namespace

TEST(PathCostTest, NothingCostsNothing) {
  const PathCost cost;
  EXPECT_EQ(cost.bytes(), 0u);
  EXPECT_EQ(cost.cost(), 0);
  EXPECT_EQ(cost.CostOnDearest(), 0);
  EXPECT_FALSE(cost.HasRatio());
  EXPECT_EQ(cost.RatioText(), "-");
}

TEST(PathCostTest, SumOfBytesTimesPrices) {
  PathCost cost;
  cost.Add(4 * kGiB, 0.25);
  cost.Add(8 * kGiB, 0.5);
  cost.Add(kGiB / 2, 0.125);
  EXPECT_EQ(cost.bytes(), 12 * kGiB + kGiB / 2);
  EXPECT_EQ(cost.cost(), 1 + 4 + 0.0625);
  EXPECT_EQ(cost.dearest(), 1u);
  EXPECT_EQ(cost.dearest_price(), 0.5);
  EXPECT_EQ(cost.CostOnDearest(), 6.25);
  EXPECT_EQ(cost.RatioText(), "0.81");
}

// A dear device without files is what the others are compared with.
TEST(PathCostTest, EmptyDeviceMayBeTheDearest) {
  PathCost cost;
  cost.Add(0, 1);
  cost.Add(kGiB, 0.25);
  EXPECT_EQ(cost.dearest(), 0u);
  EXPECT_EQ(cost.CostOnDearest(), 1);
  EXPECT_EQ(cost.Ratio(), 0.25);
}

TEST(PathCostTest, PricesOfZeroHaveNoRatio) {
  PathCost cost;
  cost.Add(kGiB, 0);
  cost.Add(kGiB, 0);
  EXPECT_EQ(cost.cost(), 0);
  EXPECT_FALSE(cost.HasRatio());
  EXPECT_EQ(cost.RatioText(), "-");
}

TEST(PathCostTest, EqualPricesHaveARatioOfOne) {
  PathCost cost;
  cost.Add(3 * kGiB, 0.5);
  cost.Add(kGiB, 0.5);
  EXPECT_EQ(cost.dearest(), 0u);
  EXPECT_EQ(cost.Ratio(), 1);
}

// The shares of Fig. 12a at the prices of Table 5.
TEST(PathCostTest, RatiosOfThePaper) {
  const auto ratio = [](double share_of_slow) {
    const double bytes = 53.0 * 1000 * 1000 * 1000;
    PathCost cost;
    cost.Add(static_cast<uint64_t>(bytes * (1 - share_of_slow)), 0.39);
    cost.Add(static_cast<uint64_t>(bytes * share_of_slow), 0.19);
    return cost.Ratio();
  };
  EXPECT_NEAR(ratio(0.9638), 0.505, 0.001);  // vertical: 49.5% less
  EXPECT_NEAR(ratio(0.9496), 0.513, 0.001);  // horizontal: 48.7% less
}

TEST(PathCostTest, TextHasNoSuperfluousDigits) {
  EXPECT_EQ(PathCost::Text(0), "0");
  EXPECT_EQ(PathCost::Text(10), "10");
  EXPECT_EQ(PathCost::Text(1200), "1200");
  EXPECT_EQ(PathCost::Text(10.45), "10.45");
  EXPECT_EQ(PathCost::Text(0.0000000004), "0");
  EXPECT_EQ(PathCost::Text(0.000000001), "0.000000001");
  EXPECT_EQ(PathCost::Text(12345678.125), "12345678.125");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
