// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace ROCKSDB_NAMESPACE {
namespace bench {

size_t LatencyHistogram::BucketOf(uint64_t nanos) {
  if (nanos < kExact) {
    return static_cast<size_t>(nanos);
  }
  if (nanos >= kLimit) {
    return kOverflow;
  }
  // The leading kSubBucketBits + 1 bits of the value determine its bucket.
  const int shift =
      static_cast<int>(std::bit_width(nanos)) - (kSubBucketBits + 1);
  return static_cast<size_t>(shift) * kSubBuckets +
         static_cast<size_t>(nanos >> shift);
}

uint64_t LatencyHistogram::Lower(size_t bucket) {
  if (bucket < kExact) {
    return bucket;
  }
  const size_t shift = bucket / kSubBuckets - 1;
  return static_cast<uint64_t>(bucket - shift * kSubBuckets) << shift;
}

uint64_t LatencyHistogram::Upper(size_t bucket) {
  return bucket == kOverflow ? UINT64_MAX : Lower(bucket + 1) - 1;
}

void LatencyHistogram::AddTo(Snapshot* snapshot) const {
  uint64_t count = 0;
  size_t lowest = kNumBuckets;
  size_t highest = 0;
  for (size_t i = 0; i < kNumBuckets; ++i) {
    const uint64_t n = buckets_[i].load(std::memory_order_relaxed);
    if (n > 0) {
      lowest = std::min(lowest, i);
      highest = i;
      snapshot->buckets_[i] += n;
      count += n;
    }
  }
  if (count == 0) {
    return;
  }
  snapshot->count_ += count;
  snapshot->sum_ += sum_.load(std::memory_order_relaxed);
  // The writer may have updated a bucket but not yet the extremes, which must
  // enclose all values nonetheless.
  snapshot->min_ = std::min(
      {snapshot->min_, Upper(lowest), min_.load(std::memory_order_relaxed)});
  snapshot->max_ = std::max(
      {snapshot->max_, Lower(highest), max_.load(std::memory_order_relaxed)});
}

std::unique_ptr<LatencyHistogram::Snapshot> LatencyHistogram::TakeSnapshot()
    const {
  auto snapshot = std::make_unique<Snapshot>();
  AddTo(snapshot.get());
  return snapshot;
}

double LatencyHistogram::Snapshot::Mean() const {
  return count_ == 0 ? 0.0
                     : static_cast<double>(sum_) / static_cast<double>(count_);
}

size_t LatencyHistogram::Snapshot::LowestBucket() const {
  assert(count_ > 0);
  size_t bucket = 0;
  while (buckets_[bucket] == 0) {
    ++bucket;
  }
  return bucket;
}

size_t LatencyHistogram::Snapshot::HighestBucket() const {
  assert(count_ > 0);
  size_t bucket = kOverflow;
  while (buckets_[bucket] == 0) {
    --bucket;
  }
  return bucket;
}

uint64_t LatencyHistogram::Snapshot::Estimate(size_t bucket) const {
  if (bucket == kOverflow) {
    return max_;
  }
  const uint64_t lower = Lower(bucket);
  const uint64_t middle = lower + (Upper(bucket) - lower) / 2;
  // std::clamp cannot be used: in a snapshot of a running histogram min_ may be
  // above max_, by less than a bucket.
  return std::max(min_, std::min(max_, middle));
}

uint64_t LatencyHistogram::Snapshot::Percentile(double percent) const {
  if (count_ == 0) {
    return 0;
  }
  if (percent <= 0) {
    return min_;
  }
  if (percent >= 100) {
    return max_;
  }
  // 99.9 percent of 1000 are 999 values, although 99.9 as a double is slightly
  // larger than 99.9.
  const double exact = percent / 100 * static_cast<double>(count_);
  double rank = std::floor(exact);
  if (exact - rank > exact * 1e-12) {
    rank += 1;
  }
  const uint64_t wanted =
      std::min(count_, std::max(uint64_t{1}, static_cast<uint64_t>(rank)));
  uint64_t seen = 0;
  for (size_t i = 0; i < kNumBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) {
      return Estimate(i);
    }
  }
  assert(false);  // count_ is the sum of the buckets
  return max_;
}

void LatencyHistogram::Snapshot::Merge(const Snapshot& other) {
  for (size_t i = 0; i < kNumBuckets; ++i) {
    buckets_[i] += other.buckets_[i];
  }
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void LatencyHistogram::Snapshot::Subtract(const Snapshot& earlier) {
  count_ = 0;
  for (size_t i = 0; i < kNumBuckets; ++i) {
    assert(buckets_[i] >= earlier.buckets_[i]);
    buckets_[i] -= earlier.buckets_[i];
    count_ += buckets_[i];
  }
  assert(sum_ >= earlier.sum_);
  sum_ -= earlier.sum_;
  if (count_ == 0) {
    sum_ = 0;
    min_ = UINT64_MAX;
    max_ = 0;
    return;
  }
  const uint64_t lowest = Estimate(LowestBucket());
  const uint64_t highest = Estimate(HighestBucket());
  if (min_ >= earlier.min_) {
    min_ = lowest;
  }
  if (max_ <= earlier.max_) {
    max_ = highest;
  }
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
