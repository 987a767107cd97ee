//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/scan_length_histogram.h"

#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class ScanLengthHistogramTest : public testing::Test {
 protected:
  void Add(size_t n, uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      lengths_.Add(n);
    }
  }

  ScanLengthHistogram lengths_;
};

TEST_F(ScanLengthHistogramTest, PredictsNothingBeforeMinScans) {
  EXPECT_EQ(lengths_.More(0), 0);
  Add(100, ScanLengthHistogram::kMinScans - 1);
  EXPECT_EQ(lengths_.More(0), 0);
  Add(100, 1);
  EXPECT_GE(lengths_.More(0), 100);
}

// If all scans have one length, the prediction is not below it and at most an
// eighth above it.
TEST_F(ScanLengthHistogramTest, OneLengthIsPredictedWithinAnEighth) {
  for (size_t n = 1; n < 5000; n += 1 + n / 5) {
    ScanLengthHistogram lengths;
    for (uint32_t i = 0; i < ScanLengthHistogram::kMinScans; ++i) {
      lengths.Add(n);
    }
    for (const size_t used : {size_t{0}, n / 3, n / 2, n - 1}) {
      ASSERT_GE(lengths.More(used), n - used) << n << " " << used;
      ASSERT_LE(lengths.More(used), n + n / 8 - used) << n << " " << used;
    }
    ASSERT_EQ(lengths.More(2 * n), 0) << n;
  }
}

TEST_F(ScanLengthHistogramTest, PredictsTheMedianOfScansThatComeSoFar) {
  Add(1, 70);
  Add(4, 10);
  Add(6, 20);
  EXPECT_EQ(lengths_.More(0), 1);
  EXPECT_EQ(lengths_.More(1), 5);  // of 30 longer scans, 20 end at 6
  EXPECT_EQ(lengths_.More(4), 2);
  EXPECT_EQ(lengths_.More(6), 0);
  Add(4, 11);
  EXPECT_EQ(lengths_.More(1), 3);  // of 41 longer scans, 20 end at 6
}

TEST_F(ScanLengthHistogramTest, OldScansAreForgotten) {
  Add(1000, ScanLengthHistogram::kHalveAt - 1);
  EXPECT_GE(lengths_.More(0), 1000);
  Add(2, ScanLengthHistogram::kHalveAt);
  EXPECT_EQ(lengths_.More(0), 2);
  Add(2, 20 * ScanLengthHistogram::kHalveAt);
  EXPECT_EQ(lengths_.More(2), 0);
}

TEST_F(ScanLengthHistogramTest, LongestScansNeverComeNearTheirEnd) {
  Add(size_t{1} << 40, 100);
  EXPECT_GE(lengths_.More(0), size_t{1} << 40);
  // A long scan is not predicted to end soon, however far it has come.
  for (const size_t used : {size_t{15000}, size_t{16383}, size_t{1000000}}) {
    EXPECT_GE(lengths_.More(used), size_t{1} << 40) << used;
  }
}

TEST_F(ScanLengthHistogramTest, ConcurrentScansArePredictedWithinBounds) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 20000; ++i) {
        lengths_.Add(100);
        const size_t more = lengths_.More(0);
        ASSERT_TRUE(more == 0 || (more >= 100 && more <= 112)) << more;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GE(lengths_.More(0), 100);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
