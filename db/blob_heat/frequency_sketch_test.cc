//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/frequency_sketch.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kSeed = 301;

MapKeyHash HashOf(uint64_t i) {
  return MapKeyHash::Of("key" + std::to_string(i), kSeed);
}

// Returns ranks, from 0 on, in a Zipf distribution.
class Zipf {
 public:
  Zipf(size_t n, double skew, uint64_t seed) : random_(seed) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += 1 / std::pow(static_cast<double>(i + 1), skew);
      sums_.push_back(sum);
    }
  }
  size_t Next() {
    const double at = static_cast<double>(random_.Next() >> 11) /
                      static_cast<double>(uint64_t{1} << 53) * sums_.back();
    return static_cast<size_t>(
        std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin());
  }

 private:
  Random64 random_;
  std::vector<double> sums_;
};

}  // namespace

TEST(FrequencySketchTest, SizesFollowTheBudget) {
  EXPECT_EQ(FrequencySketch::SizeFor(0), FrequencySketch::kMinSize);
  EXPECT_EQ(FrequencySketch::SizeFor(uint64_t{1} << 20),
            FrequencySketch::kMinSize);
  EXPECT_EQ(FrequencySketch::SizeFor(uint64_t{512} << 20), size_t{4} << 20);
  EXPECT_EQ(FrequencySketch::SizeFor(uint64_t{513} << 20), size_t{8} << 20);
  EXPECT_EQ(FrequencySketch::SizeFor(UINT64_MAX), FrequencySketch::kMaxSize);
}

TEST(FrequencySketchTest, CountsUpToTheMaximum) {
  FrequencySketch sketch(FrequencySketch::kMinSize);
  EXPECT_EQ(sketch.size(), FrequencySketch::kMinSize);
  EXPECT_EQ(sketch.Estimate(HashOf(1)), 0);
  for (uint32_t i = 1; i <= FrequencySketch::kMaxEstimate; ++i) {
    EXPECT_EQ(sketch.Add(HashOf(1)), i);
    EXPECT_EQ(sketch.Estimate(HashOf(1)), i);
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(sketch.Add(HashOf(1)), FrequencySketch::kMaxEstimate);
  }
  EXPECT_EQ(sketch.Estimate(HashOf(2)), 0);
}

// A counter that is full leaves its neighbors as they are: in one block, most
// keys have counters next to those of others.
TEST(FrequencySketchTest, FullCountersDoNotOverflow) {
  FrequencySketch sketch(FrequencySketch::kBlockSize);
  MapKeyHash full;
  for (uint32_t i = 0; i < FrequencySketch::kMaxEstimate; ++i) {
    sketch.Add(full);
  }
  for (uint32_t i = 0; i < FrequencySketch::kMaxEstimate; ++i) {
    EXPECT_EQ(sketch.Add(full), FrequencySketch::kMaxEstimate);
  }
  MapKeyHash next;
  next.lo = 1 | 1 << 5 | 1 << 10 | 1 << 15;
  EXPECT_EQ(sketch.Estimate(next), 0);
  EXPECT_EQ(sketch.Add(next), 1);
}

TEST(FrequencySketchTest, EstimatesAreHalvedOnceInAWindow) {
  FrequencySketch sketch(FrequencySketch::kMinSize);
  for (int i = 0; i < 12; ++i) {
    sketch.Add(HashOf(0));
  }
  // Additions of one key go to one stripe, so that the ageing is exact.
  for (uint64_t i = 0; i < sketch.Window(); ++i) {
    sketch.Add(HashOf(1));
  }
  EXPECT_EQ(sketch.Estimate(HashOf(0)), 6);
  for (uint64_t i = 0; i < sketch.Window(); ++i) {
    sketch.Add(HashOf(1));
  }
  EXPECT_EQ(sketch.Estimate(HashOf(0)), 3);
  for (uint64_t i = 0; i < 2 * sketch.Window(); ++i) {
    sketch.Add(HashOf(1));
  }
  EXPECT_EQ(sketch.Estimate(HashOf(0)), 0);
}

// Nearly all of the keys that are read most have estimates above nearly all
// other keys.
TEST(FrequencySketchTest, FindsThePopularKeysOfAZipfDistribution) {
  constexpr size_t kKeys = 20000;
  FrequencySketch sketch(FrequencySketch::kMinSize);
  Zipf zipf(kKeys, 0.99, kSeed);
  for (uint64_t i = 0; i < 4 * sketch.Window(); ++i) {
    sketch.Add(HashOf(zipf.Next()));
  }
  // The key of rank r has about Window() / (r * ln(kKeys)) reads in a window.
  const size_t popular = static_cast<size_t>(sketch.Window()) / 10 / 8;
  size_t found = 0;
  for (size_t i = 0; i < popular; ++i) {
    found += sketch.Estimate(HashOf(i)) >= 3 ? 1 : 0;
  }
  size_t mistaken = 0;
  for (size_t i = kKeys / 2; i < kKeys; ++i) {
    mistaken += sketch.Estimate(HashOf(i)) >= 6 ? 1 : 0;
  }
  EXPECT_GT(found, popular * 9 / 10);
  EXPECT_LT(mistaken, kKeys / 2 / 20);
}

// A thread finds its own additions, whatever others add at the same time.
TEST(FrequencySketchTest, ConcurrentAdditionsAreNotLost) {
  FrequencySketch sketch(FrequencySketch::kMinSize);
  constexpr uint64_t kThreads = 4;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&sketch, t] {
      for (uint32_t i = 0; i < 10; ++i) {
        sketch.Add(HashOf(1000));  // the key of all threads
        sketch.Add(HashOf(t));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  // 80 additions halve at most one block, and an addition at that moment may be
  // lost.
  EXPECT_GE(sketch.Estimate(HashOf(1000)), 4);
  for (uint64_t t = 0; t < kThreads; ++t) {
    EXPECT_GE(sketch.Estimate(HashOf(t)), 4);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
