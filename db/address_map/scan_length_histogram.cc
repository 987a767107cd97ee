//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/scan_length_histogram.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "util/math.h"

namespace ROCKSDB_NAMESPACE {

// Each n < 8 has its own bucket. Lengths from 2^k * (1 + i/8) on, with k >= 3
// and i < 8, are in bucket (k - 2) * 8 + i, so the buckets are contiguous.
size_t ScanLengthHistogram::BucketOf(size_t n) {
  assert(n > 0);
  if (n < kPerDoubling) {
    return n;
  }
  const size_t k = static_cast<size_t>(FloorLog2(n));
  const size_t i = (n >> (k - 3)) - kPerDoubling;
  return std::min((k - 2) * kPerDoubling + i, kBuckets - 1);
}

size_t ScanLengthHistogram::Largest(size_t bucket) {
  if (bucket < kPerDoubling) {
    return bucket;
  }
  if (bucket == kBuckets - 1) {
    return std::numeric_limits<size_t>::max();
  }
  const size_t k = bucket / kPerDoubling + 2;
  const size_t i = bucket % kPerDoubling;
  return ((kPerDoubling + i + 1) << (k - 3)) - 1;
}

void ScanLengthHistogram::Add(size_t n) {
  counts_[BucketOf(n)].fetch_add(1, std::memory_order_relaxed);
  if (total_.fetch_add(1, std::memory_order_relaxed) + 1 < kHalveAt) {
    return;
  }
  uint32_t total = 0;
  for (auto& count : counts_) {
    const uint32_t half = count.load(std::memory_order_relaxed) / 2;
    count.store(half, std::memory_order_relaxed);
    total += half;
  }
  total_.store(total, std::memory_order_relaxed);
}

size_t ScanLengthHistogram::More(size_t used) const {
  if (total_.load(std::memory_order_relaxed) < kMinScans) {
    return 0;
  }
  const size_t first = BucketOf(used + 1);
  uint32_t longer = 0;
  for (size_t b = first; b < kBuckets; ++b) {
    longer += counts_[b].load(std::memory_order_relaxed);
  }
  // Finds the last bucket that at least half of these longer scans reached.
  uint32_t left = longer;
  size_t more = 0;
  for (size_t b = first; b < kBuckets; ++b) {
    if (left == 0 || left < longer - left) {
      break;
    }
    const uint32_t count = counts_[b].load(std::memory_order_relaxed);
    if (count > 0) {
      more = Largest(b) - used;
    }
    left -= std::min(count, left);
  }
  return more;
}

}  // namespace ROCKSDB_NAMESPACE
