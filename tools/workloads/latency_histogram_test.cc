// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/latency_histogram.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

using Snapshot = LatencyHistogram::Snapshot;

// Percentages in thousandths, so that ranks are computed without rounding.
constexpr uint64_t kMilliPercents[] = {1,     1000,  10000, 25000, 50000, 75000,
                                       90000, 99000, 99900, 99990, 99999};

uint64_t ExactPercentile(const std::vector<uint64_t>& sorted,
                         uint64_t milli_percent) {
  const uint64_t rank =
      std::max<uint64_t>(1, (milli_percent * sorted.size() + 99999) / 100000);
  return sorted[static_cast<size_t>(rank - 1)];
}

void ExpectNear(uint64_t exact, uint64_t reported) {
  const uint64_t error = reported > exact ? reported - exact : exact - reported;
  EXPECT_LE(error * 128, exact) << "exact " << exact << " got " << reported;
}

// Compares the snapshot with the samples, all of which are below the limit.
void ExpectMatches(std::vector<uint64_t> values, const Snapshot& snapshot) {
  ASSERT_FALSE(values.empty());
  std::sort(values.begin(), values.end());
  uint64_t sum = 0;
  for (const uint64_t v : values) {
    sum += v;
  }
  EXPECT_EQ(values.size(), snapshot.count());
  EXPECT_EQ(sum, snapshot.sum());
  EXPECT_DOUBLE_EQ(
      static_cast<double>(sum) / static_cast<double>(values.size()),
      snapshot.Mean());
  EXPECT_EQ(values.front(), snapshot.min());
  EXPECT_EQ(values.back(), snapshot.max());
  EXPECT_EQ(values.front(), snapshot.Percentile(0));
  EXPECT_EQ(values.back(), snapshot.Percentile(100));
  uint64_t last = 0;
  for (const uint64_t milli : kMilliPercents) {
    const uint64_t got = snapshot.Percentile(static_cast<double>(milli) / 1000);
    ExpectNear(ExactPercentile(values, milli), got);
    EXPECT_GE(got, last);
    EXPECT_LE(got, snapshot.max());
    last = got;
  }
}

std::vector<uint64_t> Draw(size_t n, const std::function<double()>& next) {
  std::vector<uint64_t> values;
  values.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    const double v = std::max(0.0, next());
    values.push_back(
        std::min(static_cast<uint64_t>(v), LatencyHistogram::kLimit - 1));
  }
  return values;
}

void AddAll(const std::vector<uint64_t>& values, LatencyHistogram* histogram) {
  for (const uint64_t v : values) {
    histogram->Add(v);
  }
}

}  // namespace

TEST(LatencyHistogramTest, EmptyHistogramHasZeros) {
  LatencyHistogram histogram;
  const auto snapshot = histogram.TakeSnapshot();
  EXPECT_EQ(0u, snapshot->count());
  EXPECT_EQ(0u, snapshot->sum());
  EXPECT_EQ(0.0, snapshot->Mean());
  EXPECT_EQ(0u, snapshot->min());
  EXPECT_EQ(0u, snapshot->max());
  EXPECT_EQ(0u, snapshot->Percentile(0));
  EXPECT_EQ(0u, snapshot->Percentile(50));
  EXPECT_EQ(0u, snapshot->Percentile(100));
}

// Every value around each power of two and each bucket's edge is reported with
// a small error.
TEST(LatencyHistogramTest, SingleValuesHaveASmallError) {
  std::vector<uint64_t> values;
  for (uint64_t v = 0; v < 5000; ++v) {
    values.push_back(v);
  }
  for (int bits = 12; bits < 40; ++bits) {
    const uint64_t power = uint64_t{1} << bits;
    for (uint64_t part = 0; part < 64; ++part) {
      const uint64_t edge = power + part * (power / 64);
      values.insert(values.end(), {edge - 1, edge, edge + 1});
    }
  }
  // A value above and a value below are added, so that the extremes do not
  // help.
  for (const uint64_t v : values) {
    LatencyHistogram histogram;
    histogram.Add(0);
    histogram.Add(v);
    histogram.Add(LatencyHistogram::kLimit - 1);
    const uint64_t got = histogram.TakeSnapshot()->Percentile(50);
    ExpectNear(v, got);
    if (v < 128) {
      EXPECT_EQ(v, got);
    }
  }
}

TEST(LatencyHistogramTest, PercentilesMatchTheSamples) {
  std::mt19937_64 random(301);
  std::uniform_real_distribution<double> small(0, 300);
  std::uniform_real_distribution<double> uniform(1000, 5e6);
  std::exponential_distribution<double> exponential(1 / 20000.0);
  std::lognormal_distribution<double> lognormal(9, 2.5);
  std::uniform_real_distribution<double> exponent(0, 40);
  const std::vector<std::function<double()>> distributions = {
      [&] { return small(random); },
      [&] { return uniform(random); },
      [&] { return exponential(random); },
      [&] { return lognormal(random); },
      [&] { return std::exp2(exponent(random)); },
      // The two modes are hits in the cache, and misses.
      [&] { return random() % 10 == 0 ? 8e6 + uniform(random) : 700.0; },
      [&] { return 123456789.0; },
  };
  for (const auto& next : distributions) {
    for (const size_t n : {size_t{1}, size_t{2}, size_t{999}, size_t{100000}}) {
      const std::vector<uint64_t> values = Draw(n, next);
      LatencyHistogram histogram;
      AddAll(values, &histogram);
      ExpectMatches(values, *histogram.TakeSnapshot());
    }
  }
}

// 99.9 % of 1000 values are 999 of them, whatever double 99.9 is.
TEST(LatencyHistogramTest, RankIsNotRoundedUp) {
  LatencyHistogram histogram;
  for (int i = 0; i < 999; ++i) {
    histogram.Add(1);
  }
  histogram.Add(100);
  const auto snapshot = histogram.TakeSnapshot();
  EXPECT_EQ(1u, snapshot->Percentile(99.9));
  EXPECT_EQ(100u, snapshot->Percentile(99.91));
}

TEST(LatencyHistogramTest, ClampsButKeepsMax) {
  constexpr uint64_t kLimit = LatencyHistogram::kLimit;
  LatencyHistogram histogram;
  histogram.Add(5);
  histogram.Add(kLimit - 1);
  histogram.Add(kLimit);
  histogram.Add(kLimit * 3);
  const auto snapshot = histogram.TakeSnapshot();
  EXPECT_EQ(4u, snapshot->count());
  EXPECT_EQ(kLimit * 5 + 4, snapshot->sum());
  EXPECT_EQ(5u, snapshot->min());
  EXPECT_EQ(kLimit * 3, snapshot->max());
  EXPECT_EQ(5u, snapshot->Percentile(25));
  ExpectNear(kLimit - 1, snapshot->Percentile(50));
  EXPECT_LT(snapshot->Percentile(50), kLimit);
  EXPECT_EQ(kLimit * 3, snapshot->Percentile(75));
  EXPECT_EQ(kLimit * 3, snapshot->Percentile(99));

  LatencyHistogram only;
  only.Add(UINT64_MAX);
  const auto huge = only.TakeSnapshot();
  EXPECT_EQ(UINT64_MAX, huge->min());
  EXPECT_EQ(UINT64_MAX, huge->max());
  EXPECT_EQ(UINT64_MAX, huge->Percentile(50));
}

TEST(LatencyHistogramTest, MergedHistogramsHaveAllValues) {
  std::mt19937_64 random(17);
  std::lognormal_distribution<double> lognormal(8, 2);
  std::vector<uint64_t> all;
  auto merged = std::make_unique<Snapshot>();
  auto added = std::make_unique<Snapshot>();
  for (int i = 0; i < 5; ++i) {
    const auto values = Draw(1000 * i, [&] { return lognormal(random); });
    LatencyHistogram histogram;
    AddAll(values, &histogram);
    merged->Merge(*histogram.TakeSnapshot());
    histogram.AddTo(added.get());
    all.insert(all.end(), values.begin(), values.end());
  }
  ExpectMatches(all, *merged);
  ExpectMatches(all, *added);
}

TEST(LatencyHistogramTest, DifferenceHasTheNewValuesOnly) {
  std::mt19937_64 random(18);
  std::uniform_real_distribution<double> middle(2000, 50000);
  LatencyHistogram histogram;
  const auto first = Draw(5000, [&] { return 100 + 100 * middle(random); });
  AddAll(first, &histogram);
  const auto before = histogram.TakeSnapshot();

  // The second part widens the range at its lower end only.
  const auto second = Draw(7000, [&] { return middle(random); });
  AddAll(second, &histogram);
  auto part = histogram.TakeSnapshot();
  part->Subtract(*before);
  EXPECT_EQ(second.size(), part->count());
  auto sorted = second;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted.front(), part->min());
  ExpectNear(sorted.back(), part->max());
  uint64_t sum = 0;
  for (const uint64_t v : second) {
    sum += v;
  }
  EXPECT_EQ(sum, part->sum());
  for (const uint64_t milli : kMilliPercents) {
    ExpectNear(ExactPercentile(sorted, milli),
               part->Percentile(static_cast<double>(milli) / 1000));
  }

  // The third part exceeds the maximum, which is then known exactly.
  const auto both = histogram.TakeSnapshot();
  histogram.Add(3000);
  histogram.Add(777777777);
  auto last = histogram.TakeSnapshot();
  last->Subtract(*both);
  EXPECT_EQ(2u, last->count());
  ExpectNear(3000, last->min());
  EXPECT_EQ(777777777u, last->max());

  // No value is new.
  auto none = histogram.TakeSnapshot();
  none->Subtract(*histogram.TakeSnapshot());
  EXPECT_EQ(0u, none->count());
  EXPECT_EQ(0u, none->sum());
  EXPECT_EQ(0u, none->max());

  // All values are new.
  auto everything = histogram.TakeSnapshot();
  everything->Subtract(Snapshot());
  EXPECT_EQ(histogram.TakeSnapshot()->min(), everything->min());
  EXPECT_EQ(777777777u, everything->max());
}

// Snapshots that are taken while a thread writes lose no value, and never go
// back.
TEST(LatencyHistogramTest, ConcurrentSnapshotsLoseNothing) {
  constexpr uint64_t kValues = 2000000;
  LatencyHistogram histogram;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t i = 1; i <= kValues; ++i) {
      histogram.Add(i * 37 % 1000003);
    }
    done.store(true);
  });
  auto previous = std::make_unique<Snapshot>();
  uint64_t in_parts = 0;
  bool last = false;
  while (!last) {
    last = done.load();
    auto now = histogram.TakeSnapshot();
    EXPECT_GE(now->count(), previous->count());
    EXPECT_GE(now->sum(), previous->sum());
    EXPECT_GE(now->max(), previous->max());
    if (previous->count() > 0) {
      EXPECT_LE(now->min(), previous->min());
    }
    EXPECT_LE(now->Percentile(50), now->Percentile(99));
    // In debug builds this asserts that no bucket shrinks.
    auto part = std::make_unique<Snapshot>(*now);
    part->Subtract(*previous);
    EXPECT_EQ(now->count() - previous->count(), part->count());
    in_parts += part->count();
    previous = std::move(now);
  }
  writer.join();
  const auto total = histogram.TakeSnapshot();
  EXPECT_EQ(kValues, total->count());
  EXPECT_EQ(kValues, in_parts);
  std::vector<uint64_t> values;
  for (uint64_t i = 1; i <= kValues; ++i) {
    values.push_back(i * 37 % 1000003);
  }
  ExpectMatches(values, *total);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
