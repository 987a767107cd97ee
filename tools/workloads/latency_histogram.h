// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// A histogram of latencies in nanoseconds, of fixed size, that one thread
// fills while others read it.
//
// The buckets are log-linear, the idea of Gil Tene's HdrHistogram
// (http://hdrhistogram.org): each power of two is cut into kSubBuckets equal
// parts, so that the error is relative to the value. A bucket is reported as
// its middle. Thus a reported value is off by at most 1/128 of the true one,
// and values below 128 ns are exact. Values of kLimit (18 minutes) and more
// share the last bucket, which is reported as the true maximum.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// Invariant: each added value is counted in exactly one bucket.
//
// Thread safety: one thread calls Add. Any thread may call AddTo and
// TakeSnapshot at any time. Such a snapshot may lack the newest values, but
// a thread's later snapshot has all that its earlier one had. A snapshot after
// the writing thread was joined is exact.
class LatencyHistogram {
 private:
  static constexpr int kSubBucketBits = 6;
  static constexpr size_t kSubBuckets = size_t{1} << kSubBucketBits;
  static constexpr int kLimitBits = 40;
  // Values up to here have a bucket each.
  static constexpr size_t kExact = 2 * kSubBuckets;
  static constexpr size_t kOverflow =
      kExact + (kLimitBits - kSubBucketBits - 1) * kSubBuckets;
  static constexpr size_t kNumBuckets = kOverflow + 1;

 public:
  static constexpr uint64_t kLimit = uint64_t{1} << kLimitBits;

  // The contents of one or several histograms at one moment. A value type of
  // about 18 KB. Not thread-safe.
  class Snapshot {
   public:
    uint64_t count() const { return count_; }

    // The exact sum of the values.
    uint64_t sum() const { return sum_; }

    // These return 0 if there are no values.
    double Mean() const;
    uint64_t min() const { return count_ == 0 ? 0 : min_; }
    uint64_t max() const { return count_ == 0 ? 0 : max_; }

    // Returns the smallest value that at least `percent` of the values do not
    // exceed, with the error described above. Percentile(0) is min(),
    // Percentile(100) is max(). Returns 0 if there are no values.
    uint64_t Percentile(double percent) const;

    // Adds the values of `other`.
    void Merge(const Snapshot& other);

    // Removes the values of `earlier`, so that those added later are left. The
    // extremes are exact if they changed in that time; otherwise they are
    // estimated from the buckets, with the error of these.
    // REQUIRES: `earlier` is an earlier snapshot of the same histograms.
    void Subtract(const Snapshot& earlier);

   private:
    friend class LatencyHistogram;

    // REQUIRES: count_ > 0
    size_t LowestBucket() const;
    // REQUIRES: count_ > 0
    size_t HighestBucket() const;
    // Returns the middle of the bucket, limited to [min_, max_].
    uint64_t Estimate(size_t bucket) const;

    std::array<uint64_t, kNumBuckets> buckets_{};
    uint64_t count_ = 0;  // of all buckets
    uint64_t sum_ = 0;
    uint64_t min_ = UINT64_MAX;
    uint64_t max_ = 0;
  };

  LatencyHistogram() = default;
  LatencyHistogram(const LatencyHistogram&) = delete;
  LatencyHistogram& operator=(const LatencyHistogram&) = delete;

  void Add(uint64_t nanos) {
    Increase(&buckets_[BucketOf(nanos)], 1);
    Increase(&sum_, nanos);
    if (nanos < min_.load(std::memory_order_relaxed)) {
      min_.store(nanos, std::memory_order_relaxed);
    }
    if (nanos > max_.load(std::memory_order_relaxed)) {
      max_.store(nanos, std::memory_order_relaxed);
    }
  }

  // Adds the contents of this histogram to *snapshot.
  void AddTo(Snapshot* snapshot) const;

  std::unique_ptr<Snapshot> TakeSnapshot() const;

 private:
  static size_t BucketOf(uint64_t nanos);
  // The smallest and the largest value of a bucket.
  static uint64_t Lower(size_t bucket);
  static uint64_t Upper(size_t bucket);

  // Only one thread writes, so it needs no atomic addition.
  static void Increase(std::atomic<uint64_t>* counter, uint64_t by) {
    counter->store(counter->load(std::memory_order_relaxed) + by,
                   std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, kNumBuckets> buckets_{};
  std::atomic<uint64_t> sum_{0};
  std::atomic<uint64_t> min_{UINT64_MAX};
  std::atomic<uint64_t> max_{0};
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
