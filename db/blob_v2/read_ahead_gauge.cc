//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/read_ahead_gauge.h"

#include <bit>

#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

void ReadAheadGauge::OnRead(uint64_t bytes, uint64_t micros) {
  TEST_SYNC_POINT_CALLBACK("ReadAheadGauge::OnRead:Micros", &micros);
  const bool is_slow = micros > kCachedMicros + bytes / kCachedBytesPerMicro;
  constexpr uint32_t kAll = (1u << kWindow) - 1;
  constexpr uint32_t kProbes = (1u << kFastProbes) - 1;
  const uint32_t before = slow_reads_.load(std::memory_order_relaxed);
  const uint32_t reads = (before << 1 | (is_slow ? 1u : 0u)) & kAll;
  // All scans share the cache line.
  if (reads != before) {
    slow_reads_.store(reads, std::memory_order_relaxed);
  }
  if (hands_over_.load(std::memory_order_relaxed)) {
    if ((reads & kProbes) == 0) {
      hands_over_.store(false, std::memory_order_relaxed);
      slow_reads_.store(0, std::memory_order_relaxed);
    }
  } else if (static_cast<uint32_t>(std::popcount(reads)) * 2 >= kWindow) {
    hands_over_.store(true, std::memory_order_relaxed);
    slow_reads_.store(kAll, std::memory_order_relaxed);
  }
}

}  // namespace ROCKSDB_NAMESPACE
