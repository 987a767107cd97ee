// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The random choices of the workloads: which record, which operation, which
// size. The distributions are those of YCSB's core workloads (Cooper et al.,
// "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010).
//
// Everything is a function of the Random64 given, so a seed repeats a run.
//
// Thread safety: InsertCounter is thread-safe. DiscreteChooser and NormalSize
// are immutable and can be shared. Of the others each thread needs its own.

#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "port/port.h"
#include "rocksdb/status.h"
#include "tools/workloads/workload_options.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// A bijection of the 64-bit numbers that makes neighbours look unrelated: a
// step of SplitMix64 (Steele et al., OOPSLA 2014) from state `x`.
inline uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Unmix64(Mix64(x)) == x.
uint64_t Unmix64(uint64_t mixed);

// FNV-1a of the 8 bytes of `x`, lowest byte first, as YCSB hashes numbers.
uint64_t FnvHash64(uint64_t x);

// Ranks with P(rank = i) = (i + 1)^-exponent / zeta, for i in [0, items), where
// zeta is the sum of (i + 1)^-exponent over all i. Rank 0 is the hottest.
//
// YCSB uses the method of Gray et al. ("Quickly Generating Billion-Record
// Synthetic Databases", SIGMOD 1994). That sums up zeta beforehand, is exact
// for ranks 0 and 1 only and does not work for exponents from 1 on. This class
// uses rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to
// generate variates from monotone discrete distributions", ACM TOMACS 6(3),
// 1996). It has the distribution of the formula up to rounding (about 1e-15 per
// rank) for all exponents, needs no tables, and draws 1.1 random numbers or
// fewer on average.
class ZipfianGenerator {
 public:
  // Returns InvalidArgument if the exponent is not a positive number.
  static Status Validate(double exponent);

  // REQUIRES: 0 < items <= 2^53; exponent is valid.
  ZipfianGenerator(uint64_t items, double exponent);

  uint64_t items() const { return items_; }

  // Takes constant time, less than that of Next().
  // REQUIRES: 0 < items <= 2^53
  void SetItems(uint64_t items);

  uint64_t Next(Random64* rnd) const;

 private:
  double Integral(double x) const;
  double InverseIntegral(double area) const;
  double Weight(double x) const;

  const double exponent_;
  // A draw is uniform in (area_low_, area_high_] of the area below the curve.
  double area_low_;
  double area_high_;
  // Draws that end no further than this below their rank need no second look.
  double sure_distance_;
  uint64_t items_ = 0;
};

// Picks a record. Different implementations have different favourites.
class KeyChooser {
 public:
  virtual ~KeyChooser() = default;

  // Returns a number in [0, records). `records` may grow from call to call.
  // REQUIRES: records > 0
  virtual uint64_t Next(Random64* rnd, uint64_t records) = 0;
};

// Picks all records with the same probability.
class UniformGenerator : public KeyChooser {
 public:
  uint64_t Next(Random64* rnd, uint64_t records) override;
};

// Zipfian with the hot records scattered: record FnvHash64(rank) % records.
// Some records share several ranks and others have none, as in YCSB.
//
// YCSB-C has as many ranks as records; YCSB in Java always has 10^10, which
// makes the hottest record less hot.
//
// Records that are added take over ranks as buckets do in linear hashing
// (Litwin, VLDB 1980): a rank stays where it is or moves to a new record, and a
// new record takes half of the ranks of one old record. With a plain modulus
// each insertion would move all hot records.
class ScrambledZipfian : public KeyChooser {
 public:
  // `zipf_items` is the number of ranks; 0: as many as there are records.
  // REQUIRES: 0 < records <= 2^53; exponent is valid; zipf_items <= 2^53
  ScrambledZipfian(uint64_t records, double exponent, uint64_t zipf_items);

  uint64_t Next(Random64* rnd, uint64_t records) override;

  // The record of a rank.
  uint64_t RecordOf(uint64_t rank, uint64_t records);

 private:
  const bool ranks_follow_records_;
  // The number of records at the last full doubling: base_ <= records <
  // 2 * base_.
  uint64_t base_;
  ZipfianGenerator zipfian_;
};

// The newest record is the hottest, the one before it the next: record
// records - 1 - rank.
class LatestGenerator : public KeyChooser {
 public:
  // REQUIRES: 0 < records <= 2^53; exponent is valid
  LatestGenerator(uint64_t records, double exponent);

  uint64_t Next(Random64* rnd, uint64_t records) override;

 private:
  ZipfianGenerator zipfian_;
};

// Uses options.records, zipfian_const and zipfian_items.
// REQUIRES: they meet the requirements above.
std::unique_ptr<KeyChooser> NewKeyChooser(const WorkloadOptions& options,
                                          Distribution distribution);

// Draws positions in the key space (RecordShape::KeyAt()). The first draws lie
// in the first part of the key space, the next ones in the second part, and so
// on; the first part follows the last one. Within a part the draws are uniform.
//
// Thread-safe: the draws of all threads count.
class MovingPart {
 public:
  // parts: number of equal parts.
  // stay: number of draws before the next part.
  // REQUIRES: parts > 0; stay > 0
  MovingPart(uint64_t parts, uint64_t stay)
      : parts_(parts),
        stay_(stay),
        width_(std::numeric_limits<uint64_t>::max() / parts) {}

  uint64_t Next(Random64* rnd) {
    const uint64_t draw = draws_.fetch_add(1, std::memory_order_relaxed);
    return draw / stay_ % parts_ * width_ + rnd->Uniform(width_);
  }

 private:
  const uint64_t parts_;
  const uint64_t stay_;
  const uint64_t width_;
  std::atomic<uint64_t> draws_{0};
};

// Numbers the records that threads insert, and tracks which of them can be
// read.
class InsertCounter {
 public:
  // Records below `first` exist already.
  explicit InsertCounter(uint64_t first) : next_(first), visible_(first) {}

  InsertCounter(const InsertCounter&) = delete;
  InsertCounter& operator=(const InsertCounter&) = delete;

  // Returns the number of the next record to insert.
  uint64_t Start() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // Marks the record as written. Everything this thread did before the call
  // happens before everything that another thread does after it has seen the
  // record as visible. A number for which this is never called keeps all higher
  // ones invisible.
  // REQUIRES: `number` came from Start() and was not done yet.
  void Done(uint64_t number);

  // Returns a number such that all records below it are written. Never
  // decreases.
  uint64_t Visible() const { return visible_.load(std::memory_order_acquire); }

 private:
  // These are on separate cache lines: every insertion writes next_, every read
  // reads visible_.
  alignas(CACHE_LINE_SIZE) std::atomic<uint64_t> next_;
  alignas(CACHE_LINE_SIZE) std::atomic<uint64_t> visible_;
  alignas(CACHE_LINE_SIZE) std::mutex mutex_;
  // Min-heap of the numbers above visible_ that are done.
  std::vector<uint64_t> done_early_;
};

// Sizes from a normal distribution, rounded to whole numbers, and at least
// `min`.
class NormalSize {
 public:
  // REQUIRES: mean >= 0, stddev >= 0, mean + 9 * stddev < 2^32
  NormalSize(double mean, double stddev, uint32_t min);

  uint32_t min() const { return min_; }

  uint32_t Next(Random64* rnd) const;

  // Returns a size that depends on the seed alone. Consecutive seeds give
  // independent sizes.
  uint32_t At(uint64_t seed) const;

 private:
  uint32_t FromBits(uint64_t bits0, uint64_t bits1) const;

  const double mean_;
  const double stddev_;
  const uint32_t min_;
};

constexpr uint32_t kPartsPerMillion = 1000000;

// Picks one of a few choices, such as operations, with given probabilities.
template <typename T>
class DiscreteChooser {
 public:
  // Pairs of a choice and its share in parts per million; a share can be 0.
  // REQUIRES: the shares add up to kPartsPerMillion.
  explicit DiscreteChooser(std::vector<std::pair<T, uint32_t>> shares)
      : limits_(std::move(shares)) {
    uint32_t sum = 0;
    for (auto& limit : limits_) {
      sum += limit.second;
      limit.second = sum;
    }
    assert(sum == kPartsPerMillion);
  }

  const T& Next(Random64* rnd) const {
    const uint64_t draw = rnd->Uniform(kPartsPerMillion);
    size_t i = 0;
    while (draw >= limits_[i].second) {
      ++i;
      assert(i < limits_.size());
    }
    return limits_[i].first;
  }

 private:
  // Each choice with the sum of the shares up to its own.
  std::vector<std::pair<T, uint32_t>> limits_;
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
