//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/read_ahead_gauge.h"

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kFast = ReadAheadGauge::kCachedMicros;
constexpr uint64_t kSlow = ReadAheadGauge::kCachedMicros + 1;

}  // namespace

class ReadAheadGaugeTest : public testing::Test {
 protected:
  void Add(int n, uint64_t micros, uint64_t bytes = 0) {
    for (int i = 0; i < n; ++i) {
      gauge_.OnRead(bytes, micros);
    }
  }
  // Returns how many of n reads are handed over.
  uint32_t NumHandedOver(uint32_t n) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < n; ++i) {
      result += gauge_.HandsOver() ? 1 : 0;
    }
    return result;
  }

  ReadAheadGauge gauge_;
};

TEST_F(ReadAheadGaugeTest, OneReadInManyIsMeasured) {
  ASSERT_EQ(NumHandedOver(ReadAheadGauge::kProbeEvery - 1),
            ReadAheadGauge::kProbeEvery - 1);
  ASSERT_FALSE(gauge_.HandsOver());
  ASSERT_EQ(NumHandedOver(3 * ReadAheadGauge::kProbeEvery),
            3 * (ReadAheadGauge::kProbeEvery - 1));
}

TEST_F(ReadAheadGaugeTest, FastProbesInARowEndIt) {
  for (int i = 0; i < 10; ++i) {
    Add(ReadAheadGauge::kFastProbes - 1, kFast);
    Add(1, kSlow);
    ASSERT_TRUE(gauge_.HandsOver());
  }
  Add(ReadAheadGauge::kFastProbes, kFast);
  ASSERT_EQ(NumHandedOver(10000), 0);
}

TEST_F(ReadAheadGaugeTest, SlowReadsBeginIt) {
  Add(ReadAheadGauge::kFastProbes, kFast);
  for (int i = 0; i < 10; ++i) {
    // Less than half of the last ones.
    Add(ReadAheadGauge::kWindow / 2 - 1, kSlow);
    ASSERT_FALSE(gauge_.HandsOver());
    Add(ReadAheadGauge::kWindow, kFast);
  }
  Add(ReadAheadGauge::kWindow / 2, kSlow);
  ASSERT_TRUE(gauge_.HandsOver());
  // The slow reads count as the last probes.
  Add(ReadAheadGauge::kFastProbes - 1, kFast);
  ASSERT_TRUE(gauge_.HandsOver());
}

TEST_F(ReadAheadGaugeTest, LargeReadsMayTakeLonger) {
  const uint64_t bytes = 100 * ReadAheadGauge::kCachedBytesPerMicro;
  Add(10, kFast + 101, bytes);
  ASSERT_TRUE(gauge_.HandsOver());
  Add(ReadAheadGauge::kFastProbes, kFast + 100, bytes);
  ASSERT_FALSE(gauge_.HandsOver());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
