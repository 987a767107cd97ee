//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// How many values the scans of a column family have used lately: what a scan
// that has come so far will most likely use still.
//
// A histogram with eight buckets for each doubling, whose counts are halved
// again and again, so that what was long ago fades. All of it is a guess:
// threads may lose each other's counts.
//
// Thread-safe, without locks.
class ScanLengthHistogram {
 public:
  // So many scans must have been seen before anything is said.
  static constexpr uint32_t kMinScans = 16;
  static constexpr uint32_t kHalveAt = 1024;

  ScanLengthHistogram() = default;
  ScanLengthHistogram(const ScanLengthHistogram&) = delete;
  ScanLengthHistogram& operator=(const ScanLengthHistogram&) = delete;

  // A scan has ended that used n > 0 values.
  void Add(size_t n);

  // At least half of the scans that used more than `used` values used this many
  // more. 0: unknown, as none did.
  size_t More(size_t used) const;

 private:
  static constexpr size_t kPerDoubling = 8;
  // The last one is for all that are longer.
  static constexpr size_t kBuckets = 12 * kPerDoubling;

  static size_t BucketOf(size_t n);
  // The largest n of a bucket.
  static size_t Largest(size_t bucket);

  std::array<std::atomic<uint32_t>, kBuckets> counts_{};
  std::atomic<uint32_t> total_{0};
};

}  // namespace ROCKSDB_NAMESPACE
