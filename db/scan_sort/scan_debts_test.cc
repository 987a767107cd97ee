//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/scan_sort/scan_debts.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "db/scan_sort/scan_meter.h"
#include "db/scan_sort/scan_places.h"
#include "monitoring/statistics_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "rocksdb/statistics.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(ScanPlacesTest, NeighborsInAFileAreAtOnePlace) {
  constexpr uint64_t kGap = ScanPlaces::kMaxGap;
  ScanPlaces places;
  EXPECT_TRUE(places.Add(1, 0, 100));
  EXPECT_FALSE(places.Add(1, 100, 100));
  EXPECT_FALSE(places.Add(1, 200 + kGap, 100));
  EXPECT_TRUE(places.Add(1, 301 + 2 * kGap, 100));
  // Other files have the same offsets.
  EXPECT_TRUE(places.Add(2, 301 + 2 * kGap, 100));
  places.Clear();
  EXPECT_TRUE(places.Add(2, 301 + 2 * kGap, 100));
}

TEST(ScanPlacesTest, BackwardScansAreLikeForwardOnes) {
  constexpr uint64_t kGap = ScanPlaces::kMaxGap;
  ScanPlaces places;
  const uint64_t start = 10 * kGap;
  EXPECT_TRUE(places.Add(1, start, 100));
  EXPECT_FALSE(places.Add(1, start - 100, 100));
  EXPECT_FALSE(places.Add(1, start - 200 - kGap, 100));
  EXPECT_TRUE(places.Add(1, start - 301 - 2 * kGap, 100));
}

TEST(ScanPlacesTest, SomeFilesMayAlternate) {
  ScanPlaces places;
  for (int i = 0; i < 100; ++i) {
    for (uint64_t file = 1; file <= ScanPlaces::kStreams; ++file) {
      EXPECT_EQ(places.Add(file, 100 * i, 100), i == 0);
    }
  }
  // With one more, each value displaces the one that is needed next.
  places.Clear();
  for (int i = 0; i < 100; ++i) {
    for (uint64_t file = 1; file <= ScanPlaces::kStreams + 1; ++file) {
      EXPECT_TRUE(places.Add(file, 100 * i, 100));
    }
  }
}

class ScanDebtsTest : public testing::Test {
 protected:
  static constexpr uint64_t kRange = ScanDebts::kMinRange;
  // Number of places that pay for a range of kRange bytes.
  static constexpr uint64_t kPaid = 2 * kRange / ScanDebts::kPlaceCost;

  ScanDebtsTest() : debts_(BytewiseComparator()) {
    debts_.SetBudget(1);
    debts_.SetOnDue([this] { ++num_due_; });
  }

  void SetRanges(const std::vector<std::string>& bounds) {
    debts_.SetRanges(bounds, (bounds.size() + 1) * kRange);
  }
  void Charge(const std::string& key, uint64_t places) {
    debts_.Charge(&reader_, key, places);
  }
  // Returns the ranges to sort, as "begin..end".
  std::string Pick(uint64_t max_bytes = kRange) {
    if (!debts_.Pick(max_bytes, &range_)) {
      return "none";
    }
    return range_.begin + ".." + (range_.has_end ? range_.end : "");
  }
  uint64_t Debt() const {
    uint64_t debt = 0;
    size_t num_ranges = 0;
    debts_.GetTotals(&debt, &num_ranges);
    return debt;
  }

  ScanDebts debts_;
  ScanDebts::Reader reader_;
  ScanDebts::Range range_;
  int num_due_ = 0;
};

TEST_F(ScanDebtsTest, RangesAreMissingAtFirst) {
  EXPECT_TRUE(debts_.NeedsRanges(0));
  Charge("a", kPaid - 1);
  EXPECT_FALSE(debts_.IsDue());
  Charge("z", 1);
  EXPECT_TRUE(debts_.IsDue());
  EXPECT_EQ(num_due_, 1);
  EXPECT_EQ(Pick(), "none");
  SetRanges({"k"});
  EXPECT_EQ(Debt(), 0U);
  EXPECT_FALSE(debts_.NeedsRanges(2 * kRange));
}

// In reverse order the empty key is the last one, so it may be a bound.
TEST_F(ScanDebtsTest, RangesMayBeginWithTheEmptyKey) {
  ScanDebts debts(ReverseBytewiseComparator());
  debts.SetBudget(1);
  debts.SetRanges({"m", ""}, 3 * kRange);
  const auto pick = [&](const std::string& key) {
    ScanDebts::Reader reader;
    debts.Charge(&reader, key, kPaid);
    ASSERT_TRUE(debts.Pick(kRange, &range_)) << key;
    debts.Settle(range_, ScanDebts::Outcome::kSorted, /*bytes=*/0);
  };
  ASSERT_NO_FATAL_FAILURE(pick("x"));
  EXPECT_FALSE(range_.has_begin);
  EXPECT_TRUE(range_.has_end);
  EXPECT_EQ(range_.end, "m");
  ASSERT_NO_FATAL_FAILURE(pick("c"));
  EXPECT_TRUE(range_.has_begin);
  EXPECT_EQ(range_.begin, "m");
  EXPECT_TRUE(range_.has_end);
  EXPECT_EQ(range_.end, "");
  ASSERT_NO_FATAL_FAILURE(pick(""));
  EXPECT_TRUE(range_.has_begin);
  EXPECT_EQ(range_.begin, "");
  EXPECT_FALSE(range_.has_end);
}

TEST_F(ScanDebtsTest, ChargesAskAgainIfThereWasNoJob) {
  SetRanges({"d"});
  Charge("c", kPaid);
  Charge("c", 1);
  EXPECT_EQ(num_due_, 1);
  for (int round = 2; round < 5; ++round) {
    debts_.AskAgain();
    for (int64_t i = 1; i < ScanDebts::kAskAgain; ++i) {
      Charge("c", 1);
      // This range is not due.
      Charge("e", 0);
    }
    EXPECT_EQ(num_due_, round - 1);
    Charge("c", 1);
    EXPECT_EQ(num_due_, round);
    EXPECT_TRUE(debts_.IsDue());
    Charge("c", 1);
    EXPECT_EQ(num_due_, round);
  }
  // Each charge is counted for the last call only.
  debts_.AskAgain();
  EXPECT_EQ(Pick(), "..d");
  for (int64_t i = 0; i < 2 * ScanDebts::kAskAgain; ++i) {
    Charge("c", 1);
  }
  EXPECT_EQ(num_due_, 5);
}

TEST_F(ScanDebtsTest, RangeIsDueWhenScansHavePaidItsPrice) {
  SetRanges({"d", "h", "p"});
  Charge("c", kPaid - 1);
  Charge("d", kPaid - 1);
  Charge("z", kPaid - 1);
  EXPECT_EQ(num_due_, 0);
  EXPECT_EQ(Pick(), "none");
  Charge("g", 1);
  EXPECT_EQ(num_due_, 1);
  EXPECT_EQ(Pick(), "d..h");
  EXPECT_EQ(range_.bytes, kRange);
  EXPECT_EQ(range_.debt, kPaid * ScanDebts::kPlaceCost);
  debts_.Settle(range_, ScanDebts::Outcome::kSorted, kRange);
  EXPECT_EQ(Debt(), 2 * (kPaid - 1) * ScanDebts::kPlaceCost);
  EXPECT_FALSE(debts_.IsDue());
  // The others are due independently.
  Charge("a", 1);
  EXPECT_EQ(Pick(), "..d");
  debts_.Settle(range_, ScanDebts::Outcome::kSorted, kRange);
  Charge("p", 1);
  EXPECT_EQ(Pick(), "p..");
}

TEST_F(ScanDebtsTest, BudgetScalesTheDebt) {
  SetRanges({"k"});
  debts_.SetBudget(0.5);
  Charge("a", 2 * kPaid - 1);
  EXPECT_EQ(num_due_, 0);
  Charge("a", 1);
  EXPECT_EQ(num_due_, 1);
  debts_.SetBudget(0);
  EXPECT_EQ(Pick(), "none");
  Charge("a", 1000 * kPaid);
  EXPECT_EQ(num_due_, 1);
}

TEST_F(ScanDebtsTest, LargestDebtComesFirstWithItsNeighbors) {
  SetRanges({"b", "d", "f", "h", "k"});
  Charge("a", kPaid);
  Charge("b", kPaid);
  Charge("d", 3 * kPaid);
  Charge("f", kPaid - 1);
  Charge("h", 2 * kPaid);
  EXPECT_EQ(Pick(), "d..f");
  EXPECT_EQ(Pick(2 * kRange), "b..f");
  EXPECT_EQ(Pick(100 * kRange), "..f");
  EXPECT_EQ(range_.bytes, 3 * kRange);
  debts_.Settle(range_, ScanDebts::Outcome::kSorted, kRange);
  EXPECT_TRUE(debts_.IsDue());
  EXPECT_EQ(Pick(100 * kRange), "h..k");
}

TEST_F(ScanDebtsTest, OrderThatIsGoodEnoughCostsMoreEachTime) {
  SetRanges({"k"});
  for (uint64_t factor = 1; factor <= 8; factor *= 2) {
    Charge("a", factor * kPaid - 1);
    EXPECT_EQ(Pick(), "none");
    Charge("a", 1);
    EXPECT_EQ(Pick(), "..k");
    debts_.Settle(range_, ScanDebts::Outcome::kUnchanged, kRange);
  }
  Charge("a", 16 * kPaid);
  EXPECT_EQ(Pick(), "..k");
  debts_.Settle(range_, ScanDebts::Outcome::kSorted, kRange);
  Charge("a", kPaid);
  EXPECT_EQ(Pick(), "..k");
}

// The size of a range is an estimate.
TEST_F(ScanDebtsTest, CopiesBeyondTheDebtAreAddedToTheNextPrice) {
  SetRanges({"h", "p"});
  Charge("a", kPaid);
  Charge("h", kPaid);
  EXPECT_EQ(Pick(2 * kRange), "..p");
  EXPECT_EQ(debts_.MaxCopied(range_), 4 * kRange);
  debts_.Settle(range_, ScanDebts::Outcome::kSorted, 4 * kRange);
  for (const char* key : {"a", "h"}) {
    Charge(key, 2 * kPaid - 1);
    EXPECT_EQ(Pick(), "none");
    Charge(key, 1);
    EXPECT_NE(Pick(), "none");
    debts_.Settle(range_, ScanDebts::Outcome::kSorted, kRange);
    // It is paid.
    Charge(key, kPaid);
    EXPECT_NE(Pick(), "none");
    debts_.Settle(range_, ScanDebts::Outcome::kSorted, kRange);
  }
  // A larger debt allows more.
  debts_.SetBudget(0.5);
  Charge("p", 6 * kPaid);
  EXPECT_EQ(Pick(), "p..");
  EXPECT_EQ(debts_.MaxCopied(range_), 6 * kRange);
}

TEST_F(ScanDebtsTest, PartOfARangeStaysDue) {
  SetRanges({"k"});
  Charge("a", 2 * kPaid);
  EXPECT_EQ(Pick(), "..k");
  debts_.Settle(range_, ScanDebts::Outcome::kPartlySorted, kRange / 2);
  EXPECT_EQ(Debt(), kPaid / 2 * 3 * ScanDebts::kPlaceCost);
  EXPECT_TRUE(debts_.IsDue());
  EXPECT_EQ(Pick(), "..k");
  // What was copied is paid.
  debts_.Settle(range_, ScanDebts::Outcome::kPartlySorted, kRange);
  EXPECT_FALSE(debts_.IsDue());
  EXPECT_EQ(Pick(), "none");
}

TEST_F(ScanDebtsTest, PartOfARangeMayCostMoreThanWasPaid) {
  SetRanges({"k"});
  Charge("a", kPaid);
  EXPECT_EQ(Pick(), "..k");
  debts_.Settle(range_, ScanDebts::Outcome::kPartlySorted, 2 * kRange);
  EXPECT_EQ(Debt(), 0U);
  EXPECT_FALSE(debts_.IsDue());
  // The rest has to be paid before the next part.
  Charge("a", 2 * kPaid - 1);
  EXPECT_EQ(Pick(), "none");
  Charge("a", 1);
  EXPECT_EQ(Pick(), "..k");
  // It is paid.
  debts_.Settle(range_, ScanDebts::Outcome::kSorted, kRange);
  Charge("a", kPaid);
  EXPECT_EQ(Pick(), "..k");
  // The other range has its old price.
  Charge("x", kPaid);
  debts_.Settle(range_, ScanDebts::Outcome::kSorted, kRange);
  EXPECT_EQ(Pick(), "k..");
}

TEST_F(ScanDebtsTest, WritesHalveTheDebts) {
  SetRanges({"k"});
  Charge("a", 100);
  Charge("x", 60);
  debts_.OnWritten(kRange - 1, 2 * kRange);
  EXPECT_EQ(Debt(), 160 * ScanDebts::kPlaceCost);
  debts_.OnWritten(1, 2 * kRange);
  EXPECT_EQ(Debt(), 80 * ScanDebts::kPlaceCost);
  debts_.OnWritten(kRange - 1, 2 * kRange);
  EXPECT_EQ(Debt(), 80 * ScanDebts::kPlaceCost);
  debts_.OnWritten(2 * kRange + 1, 2 * kRange);
  EXPECT_EQ(Debt(), 10 * ScanDebts::kPlaceCost);
}

TEST_F(ScanDebtsTest, NewRangesTakeOverDebts) {
  SetRanges({"g", "p"});
  EXPECT_FALSE(debts_.NeedsRanges(6 * kRange));
  EXPECT_TRUE(debts_.NeedsRanges(8 * kRange));
  EXPECT_FALSE(debts_.NeedsRanges(2 * kRange));
  EXPECT_TRUE(debts_.NeedsRanges(kRange));
  Charge("a", 90);
  Charge("h", kPaid - 1);
  Charge("q", 6);
  SetRanges({"c", "e", "g", "k", "p", "q"});
  // The sums are rounded down.
  EXPECT_LE(Debt(), (90 + kPaid - 1 + 6) * ScanDebts::kPlaceCost);
  EXPECT_GE(Debt() + 6, (90 + kPaid - 1 + 6) * ScanDebts::kPlaceCost);
  // The reader notices.
  Charge("l", kPaid / 2 + 1);
  EXPECT_EQ(Pick(), "k..p");
  // Fewer ranges.
  SetRanges({});
  EXPECT_GT(Debt(), kPaid * ScanDebts::kPlaceCost);
}

TEST_F(ScanDebtsTest, PaymentsReduceAllDebts) {
  SetRanges({"d", "h", "p"});
  EXPECT_EQ(debts_.DueBytes(), 0U);
  Charge("a", kPaid);
  Charge("e", 2 * kPaid);
  Charge("z", kPaid / 2);
  EXPECT_EQ(debts_.DueBytes(), 2 * kRange);

  // Copying a half of the four ranges costs the price of two.
  const uint64_t before = Debt();
  debts_.Pay(2 * kRange);
  EXPECT_LE(Debt() + 2 * kPaid * ScanDebts::kPlaceCost, before);
  EXPECT_GE(Debt() + 2 * kPaid * ScanDebts::kPlaceCost + 4, before);
  EXPECT_EQ(debts_.DueBytes(), 0U);
  // With a larger budget a debt pays for more.
  debts_.SetBudget(10);
  const uint64_t half = Debt();
  debts_.Pay(kRange);
  EXPECT_LE(Debt() + kPaid * ScanDebts::kPlaceCost / 10, half);
  EXPECT_GE(Debt() + kPaid * ScanDebts::kPlaceCost / 10 + 4, half);
  EXPECT_GT(Debt(), 0U);
  debts_.SetBudget(0);
  debts_.Pay(100 * kRange);
  EXPECT_GT(Debt(), 0U);
  debts_.SetBudget(1);
  debts_.Pay(100 * kRange);
  EXPECT_EQ(Debt(), 0U);
  EXPECT_EQ(debts_.DueBytes(), 0U);
}

TEST_F(ScanDebtsTest, BoundsAreThoseOfRanges) {
  const auto bounds = [this](size_t n) { return debts_.Bounds(n); };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(bounds(8), Keys());
  SetRanges({"b", "c", "d", "e", "f", "g", "h"});
  EXPECT_EQ(bounds(1), Keys());
  EXPECT_EQ(bounds(2), Keys({"e"}));
  EXPECT_EQ(bounds(4), Keys({"c", "e", "g"}));
  EXPECT_EQ(bounds(8), Keys({"b", "c", "d", "e", "f", "g", "h"}));
  EXPECT_EQ(bounds(64), bounds(8));
  EXPECT_EQ(bounds(3), Keys({"c", "f"}));
}

TEST_F(ScanDebtsTest, ThreadsMayCharge) {
  SetRanges({"k"});
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      ScanDebts::Reader reader;
      ++ready;
      while (ready < 4) {
      }
      for (int n = 0; n < 1000; ++n) {
        debts_.Charge(&reader, i % 2 == 0 ? "a" : "x", 1);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(Debt(), 4000 * ScanDebts::kPlaceCost);
}

class ScanMeterTest : public ScanDebtsTest {
 protected:
  static constexpr uint64_t kFarApart = 10000000;

  ScanMeterTest() : statistics_(CreateDBStatistics()) { SetRanges({"k"}); }

  // A scan of values of the size, of which each one is at a place of its own,
  // or all are at one place.
  void Scan(ScanMeter* meter, int n, uint64_t size, bool is_sorted,
            const std::string& key = "a") {
    for (int i = 0; i < n; ++i) {
      meter->OnValue(key, 1, i * (is_sorted ? size : kFarApart), size);
    }
    meter->EndScan();
  }
  uint64_t Places() const { return Debt() / ScanDebts::kPlaceCost; }

  const std::shared_ptr<Statistics> statistics_;
};

TEST_F(ScanMeterTest, ExtraPlacesAreCharged) {
  ScanMeter meter(&debts_, ScanMeter::Runs(), statistics_.get());
  Scan(&meter, 100, 1000, /*is_sorted=*/true);
  EXPECT_EQ(Places(), 0U);
  Scan(&meter, 1, 1000, /*is_sorted=*/false);
  EXPECT_EQ(Places(), 0U);
  Scan(&meter, 100, 1000, /*is_sorted=*/false);
  EXPECT_EQ(Places(), 99U);
  // Sorted values would need another place each kSortedBytes.
  Scan(&meter, 1000, 1000, /*is_sorted=*/false);
  EXPECT_EQ(Places(), 99U + 999U - 1000 * 1000 / ScanMeter::kSortedBytes);
  HistogramData data;
  statistics_->histogramData(BLOB_MAP_SCAN_PLACES, &data);
  EXPECT_EQ(data.count, 3U);
  EXPECT_EQ(data.min, 1);
  EXPECT_EQ(data.max, 1000);
}

// The reads of a seek beyond one of each level are those of level 0.
TEST_F(ScanMeterTest, ReadsOfLevel0AreCharged) {
  ScanMeter::Runs runs;
  runs.level0_files = 3;
  runs.levels = 2;
  const auto charged = [&](uint64_t reads) {
    const uint64_t before = debts_.level0()->debt();
    ScanMeter(&debts_, runs, nullptr).OnSeek(reads);
    return (debts_.level0()->debt() - before) / ScanDebts::kPlaceCost;
  };
  EXPECT_EQ(charged(0), 0u);
  EXPECT_EQ(charged(2), 0u);
  EXPECT_EQ(charged(3), 1u);
  EXPECT_EQ(charged(5), 3u);
  EXPECT_EQ(charged(50), 3u);
  debts_.SetBudget(0);
  EXPECT_EQ(charged(50), 0u);
  debts_.SetBudget(1);
  runs.level0_files = 0;
  EXPECT_EQ(charged(50), 0u);
}

TEST_F(ScanMeterTest, LargeValuesNeedTheirPlaces) {
  ScanMeter meter(&debts_, ScanMeter::Runs(), nullptr);
  Scan(&meter, 100, ScanMeter::kSortedBytes, /*is_sorted=*/false);
  EXPECT_EQ(Places(), 0U);
  Scan(&meter, 100, ScanMeter::kSortedBytes / 2, /*is_sorted=*/false);
  EXPECT_EQ(Places(), 49U);
}

TEST_F(ScanMeterTest, LongScansAreChargedOnTheWay) {
  ScanMeter meter(&debts_, ScanMeter::Runs(), nullptr);
  for (int i = 0; i < 1000; ++i) {
    meter.OnValue(i < 500 ? "a" : "x", 1, i * kFarApart, 100);
  }
  EXPECT_GT(Places(), 900U);
  debts_.SetBudget(1000);
  EXPECT_EQ(Pick(), "..k");
  EXPECT_GT(range_.debt / ScanDebts::kPlaceCost, 400U);
  EXPECT_LT(range_.debt / ScanDebts::kPlaceCost, 600U);
}

TEST_F(ScanMeterTest, EndOfTheIteratorEndsTheScan) {
  {
    ScanMeter meter(&debts_, ScanMeter::Runs(), nullptr);
    meter.OnValue("a", 1, 0, 100);
    meter.OnValue("a", 2, 0, 100);
    EXPECT_EQ(Places(), 0U);
  }
  EXPECT_EQ(Places(), 1U);
  debts_.SetBudget(0);
  ScanMeter off(&debts_, ScanMeter::Runs(), nullptr);
  EXPECT_FALSE(off.is_on());
  off.OnValue("a", 1, 0, 100);
  off.OnValue("a", 2, 0, 100);
  debts_.SetBudget(1);
  // The next scan notices the change.
  EXPECT_FALSE(off.is_on());
  off.EndScan();
  EXPECT_TRUE(off.is_on());
  EXPECT_EQ(Places(), 1U);
  Scan(&off, 3, 1000, /*is_sorted=*/false);
  EXPECT_EQ(Places(), 3U);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
