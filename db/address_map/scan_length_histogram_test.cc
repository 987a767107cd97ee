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

TEST_F(ScanLengthHistogramTest, SaysNothingAtFirst) {
  EXPECT_EQ(lengths_.More(0), 0);
  Add(100, ScanLengthHistogram::kMinScans - 1);
  EXPECT_EQ(lengths_.More(0), 0);
  Add(100, 1);
  EXPECT_GE(lengths_.More(0), 100);
}

// Within an eighth, whatever the length, and never too short.
TEST_F(ScanLengthHistogramTest, ScansOfOneLength) {
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

TEST_F(ScanLengthHistogramTest, HalfOfThoseThatComeSoFar) {
  Add(1, 70);
  Add(4, 10);
  Add(6, 20);
  EXPECT_EQ(lengths_.More(0), 1);
  EXPECT_EQ(lengths_.More(1), 5);  // 30 left, 20 of them to the sixth
  EXPECT_EQ(lengths_.More(4), 2);
  EXPECT_EQ(lengths_.More(6), 0);
  Add(4, 11);
  EXPECT_EQ(lengths_.More(1), 3);  // 41 left, 20 of them to the sixth
}

TEST_F(ScanLengthHistogramTest, ForgetsWhatWasLongAgo) {
  Add(1000, ScanLengthHistogram::kHalveAt - 1);
  EXPECT_GE(lengths_.More(0), 1000);
  Add(2, ScanLengthHistogram::kHalveAt);
  EXPECT_EQ(lengths_.More(0), 2);
  Add(2, 20 * ScanLengthHistogram::kHalveAt);
  EXPECT_EQ(lengths_.More(2), 0);
}

TEST_F(ScanLengthHistogramTest, LongestOnes) {
  Add(size_t{1} << 40, 100);
  EXPECT_GE(lengths_.More(0), size_t{1} << 40);
  // One that goes on and on does not come near an end.
  for (const size_t used : {size_t{15000}, size_t{16383}, size_t{1000000}}) {
    EXPECT_GE(lengths_.More(used), size_t{1} << 40) << used;
  }
}

TEST_F(ScanLengthHistogramTest, ManyThreads) {
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
