//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A histogram of the numbers of values that recent scans of a column family
// used. It estimates how many more values a scan will use.
//
// The histogram has eight buckets per doubling. The counts are halved
// repeatedly, so that old scans lose weight. All results are estimates: threads
// may overwrite each other's counts.
//
// Thread-safe and lock-free.
class ScanLengthHistogram {
 public:
  // Minimum number of scans for an estimate.
  static constexpr uint32_t kMinScans = 16;
  static constexpr uint32_t kHalveAt = 1024;

  ScanLengthHistogram() = default;
  ScanLengthHistogram(const ScanLengthHistogram&) = delete;
  ScanLengthHistogram& operator=(const ScanLengthHistogram&) = delete;

  // Adds a scan that has ended and used n > 0 values.
  void Add(size_t n);

  // Returns a number such that at least half of the scans that used more than
  // `used` values used at least this many more. Returns 0 if that is unknown,
  // as there were no such scans.
  size_t More(size_t used) const;

 private:
  static constexpr size_t kPerDoubling = 8;
  // The last bucket counts all longer scans.
  static constexpr size_t kBuckets = 12 * kPerDoubling;

  static size_t BucketOf(size_t n);
  // Returns the largest n of a bucket.
  static size_t Largest(size_t bucket);

  std::array<std::atomic<uint32_t>, kBuckets> counts_{};
  std::atomic<uint32_t> total_{0};
};

}  // namespace ROCKSDB_NAMESPACE
