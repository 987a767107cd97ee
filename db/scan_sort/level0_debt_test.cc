//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/scan_sort/level0_debt.h"

#include <atomic>
#include <thread>
#include <vector>

#include "db/scan_sort/scan_debts.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class Level0DebtTest : public testing::Test {
 protected:
  static constexpr uint64_t kReadsOfMinPrice =
      Level0Debt::kMinPrice / ScanDebts::kPlaceCost;

  Level0DebtTest() {
    debt_.SetOnDue([this] { ++num_told_; });
  }

  std::atomic<double> budget_{1};
  Level0Debt debt_{&budget_};
  std::atomic<int> num_told_{0};
};

TEST_F(Level0DebtTest, IsDueWhenTheReadsHaveCostThePrice) {
  debt_.Charge(kReadsOfMinPrice - 1);
  EXPECT_EQ(num_told_, 0);
  debt_.Charge(1);
  EXPECT_EQ(num_told_, 1);
  // Nothing more is told before the answer.
  debt_.Charge(1);
  EXPECT_EQ(num_told_, 1);
  const uint64_t price = 3 * Level0Debt::kMinPrice;
  EXPECT_FALSE(debt_.Pay(price));
  EXPECT_EQ(debt_.debt(), Level0Debt::kMinPrice + ScanDebts::kPlaceCost);
  debt_.Charge(2 * kReadsOfMinPrice - 2);
  EXPECT_EQ(num_told_, 1);
  debt_.Charge(1);
  EXPECT_EQ(num_told_, 2);
  EXPECT_TRUE(debt_.Pay(price));
  EXPECT_EQ(debt_.debt(), 0u);
  // The next price is not known.
  EXPECT_FALSE(debt_.Pay(100));
  debt_.Charge(1);
  EXPECT_EQ(num_told_, 3);
  EXPECT_TRUE(debt_.Pay(100));
  debt_.Charge(kReadsOfMinPrice - 1);
  EXPECT_EQ(num_told_, 3);
}

TEST_F(Level0DebtTest, BudgetIsAFactor) {
  budget_ = 0.5;
  debt_.Charge(2 * kReadsOfMinPrice - 1);
  EXPECT_EQ(num_told_, 0);
  debt_.Charge(1);
  EXPECT_EQ(num_told_, 1);
  EXPECT_FALSE(debt_.Pay(Level0Debt::kMinPrice + 1));
  EXPECT_TRUE(debt_.Pay(Level0Debt::kMinPrice));
  budget_ = 0;
  debt_.Charge(1000 * kReadsOfMinPrice);
  EXPECT_EQ(num_told_, 1);
  EXPECT_FALSE(debt_.Pay(0));
}

TEST_F(Level0DebtTest, PostponedDebtGrows) {
  debt_.Charge(kReadsOfMinPrice);
  EXPECT_EQ(num_told_, 1);
  debt_.Postpone();
  debt_.Charge(2 * kReadsOfMinPrice - 1);
  EXPECT_EQ(num_told_, 1);
  debt_.Charge(1);
  EXPECT_EQ(num_told_, 2);
  EXPECT_EQ(debt_.debt(), 3 * Level0Debt::kMinPrice);
  debt_.Clear();
  EXPECT_EQ(debt_.debt(), 0u);
  debt_.Charge(kReadsOfMinPrice);
  EXPECT_EQ(num_told_, 3);
}

TEST_F(Level0DebtTest, DebtsDecay) {
  debt_.Charge(8);
  debt_.Decay(4);
  EXPECT_EQ(debt_.debt(), 2 * ScanDebts::kPlaceCost);
}

TEST_F(Level0DebtTest, OneOfSeveralThreadsIsTold) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (uint64_t i = 0; i < 2 * kReadsOfMinPrice; ++i) {
        debt_.Charge(1);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(num_told_, 1);
  EXPECT_EQ(debt_.debt(), 8 * Level0Debt::kMinPrice);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
