// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/generators.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

constexpr uint64_t kMaxItems = uint64_t{1} << 53;
constexpr double kTwoPi = 6.283185307179586476925;

// The inverse of an odd number modulo 2^64. Newton's iteration doubles the
// number of right bits; every odd x is its own inverse modulo 8.
constexpr uint64_t InverseOf(uint64_t x) {
  uint64_t inverse = x;
  for (int right_bits = 3; right_bits < 64; right_bits *= 2) {
    inverse *= 2 - x * inverse;
  }
  return inverse;
}
// Inverts x ^ (x >> shift). That is linear and x >> 64 is 0, so doing it with
// doubled shifts until they reach 64 leads to the identity.
constexpr uint64_t InvertXorShift(uint64_t x, int shift) {
  for (; shift < 64; shift *= 2) {
    x ^= x >> shift;
  }
  return x;
}

// The 53 bits that a double can hold, in [0, 1).
double ToUnit(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// expm1 and log1p are accurate next to 0, so these are as well.
double Expm1Ratio(double t) { return t == 0 ? 1 : std::expm1(t) / t; }
double Log1pRatio(double t) { return t == 0 ? 1 : std::log1p(t) / t; }

}  // namespace

uint64_t Unmix64(uint64_t mixed) {
  // The steps of Mix64 backwards.
  uint64_t x = InvertXorShift(mixed, 31);
  x = InvertXorShift(x * InverseOf(0x94d049bb133111eb), 27);
  x = InvertXorShift(x * InverseOf(0xbf58476d1ce4e5b9), 30);
  return x - 0x9e3779b97f4a7c15;
}

uint64_t FnvHash64(uint64_t x) {
  uint64_t hash = 0xcbf29ce484222325;
  for (int shift = 0; shift < 64; shift += 8) {
    hash = (hash ^ ((x >> shift) & 0xff)) * 0x100000001b3;
  }
  return hash;
}

// The ranks counted from 1 are k = 1, 2, ..., items; w(x) = x^-q is their
// weight, q being the exponent, and W(x) the integral of w from 1 to x:
//
//   W(x) = (x^(1-q) - 1) / (1-q) = log(x) * Expm1Ratio((1-q) log(x))
//
// which is log(x) at q = 1. Its inverse:
//
//   x = (1 + (1-q) W)^(1 / (1-q)) = exp(W * Log1pRatio((1-q) W))
//
// The area above [k - 1/2, k + 1/2] is cut out for k. As w is convex, it is at
// least w(k). So a point drawn uniformly from the whole area falls into the
// last w(k) of k's part with a probability in proportion to w(k). It is drawn
// again if it does not. The area of k = 1 starts where it is exactly w(1) = 1.
//
// k - W^-1(W(k + 1/2) - w(k)), how far the kept part reaches to the left of k,
// increases from k = 2 on. So what is to the left of k by no more than the
// value at k = 2 is kept without computing W and w.

Status ZipfianGenerator::Validate(double exponent) {
  // The condition is also false for NaN.
  if (exponent > 0 && std::isfinite(exponent)) {
    return Status::OK();
  }
  return Status::InvalidArgument(
      "the exponent of a zipfian distribution must be above 0");
}

ZipfianGenerator::ZipfianGenerator(uint64_t items, double exponent)
    : exponent_(exponent),
      area_low_(Integral(1.5) - 1),
      area_high_(area_low_),
      sure_distance_(2 - InverseIntegral(Integral(2.5) - Weight(2))) {
  assert(exponent > 0 && std::isfinite(exponent));
  SetItems(items);
}

void ZipfianGenerator::SetItems(uint64_t items) {
  assert(items > 0 && items <= kMaxItems);
  if (items != items_) {
    items_ = items;
    area_high_ = Integral(static_cast<double>(items) + 0.5);
  }
}

uint64_t ZipfianGenerator::Next(Random64* rnd) const {
  const double last = static_cast<double>(items_);
  for (;;) {
    const double area =
        area_high_ + ToUnit(rnd->Next()) * (area_low_ - area_high_);
    const double x = InverseIntegral(area);
    // Rounding can move x beyond the limits.
    const double k = std::clamp(std::floor(x + 0.5), 1.0, last);
    if (k - x <= sure_distance_ || area >= Integral(k + 0.5) - Weight(k)) {
      return static_cast<uint64_t>(k) - 1;
    }
  }
}

double ZipfianGenerator::Integral(double x) const {
  const double log_x = std::log(x);
  return log_x * Expm1Ratio((1 - exponent_) * log_x);
}

double ZipfianGenerator::InverseIntegral(double area) const {
  // The product is below -1 only due to rounding, near the limit of the
  // integral for q > 1.
  const double t = std::max((1 - exponent_) * area, -1.0);
  return std::exp(area * Log1pRatio(t));
}

double ZipfianGenerator::Weight(double x) const {
  return std::exp(-exponent_ * std::log(x));
}

uint64_t UniformGenerator::Next(Random64* rnd, uint64_t records) {
  assert(records > 0);
  return rnd->Uniform(records);
}

ScrambledZipfian::ScrambledZipfian(uint64_t records, double exponent,
                                   uint64_t zipf_items)
    : ranks_follow_records_(zipf_items == 0),
      base_(records),
      zipfian_(zipf_items == 0 ? records : zipf_items, exponent) {}

uint64_t ScrambledZipfian::Next(Random64* rnd, uint64_t records) {
  if (ranks_follow_records_) {
    zipfian_.SetItems(records);
  }
  return RecordOf(zipfian_.Next(rnd), records);
}

uint64_t ScrambledZipfian::RecordOf(uint64_t rank, uint64_t records) {
  assert(records > 0 && records <= kMaxItems);
  while (records >= 2 * base_) {
    base_ *= 2;
  }
  if (records < base_) {
    base_ = records;
  }
  // Once record r + base_ exists, it takes from record r the ranks that have
  // r + base_ as remainder of the larger modulus.
  const uint64_t record = FnvHash64(rank) % (2 * base_);
  return record < records ? record : record - base_;
}

LatestGenerator::LatestGenerator(uint64_t records, double exponent)
    : zipfian_(records, exponent) {}

uint64_t LatestGenerator::Next(Random64* rnd, uint64_t records) {
  zipfian_.SetItems(records);
  return records - 1 - zipfian_.Next(rnd);
}

std::unique_ptr<KeyChooser> NewKeyChooser(const WorkloadOptions& options,
                                          Distribution distribution) {
  switch (distribution) {
    case Distribution::kZipfian:
      return std::make_unique<ScrambledZipfian>(
          options.records, options.zipfian_const, options.zipfian_items);
    case Distribution::kLatest:
      return std::make_unique<LatestGenerator>(options.records,
                                               options.zipfian_const);
    case Distribution::kUniform:
      break;
  }
  return std::make_unique<UniformGenerator>();
}

void InsertCounter::Done(uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t visible = visible_.load(std::memory_order_relaxed);
  assert(number >= visible);
  if (number != visible) {
    done_early_.push_back(number);
    std::push_heap(done_early_.begin(), done_early_.end(), std::greater<>());
    return;
  }
  ++visible;
  while (!done_early_.empty() && done_early_.front() == visible) {
    std::pop_heap(done_early_.begin(), done_early_.end(), std::greater<>());
    done_early_.pop_back();
    ++visible;
  }
  // This also publishes the writes of the threads in done_early_, which held
  // the mutex.
  visible_.store(visible, std::memory_order_release);
}

NormalSize::NormalSize(double mean, double stddev, uint32_t min)
    : mean_(mean), stddev_(stddev), min_(min) {
  assert(mean >= 0 && stddev >= 0 && mean + 9 * stddev < 0x1p32);
}

uint32_t NormalSize::Next(Random64* rnd) const {
  const uint64_t bits0 = rnd->Next();
  return FromBits(bits0, rnd->Next());
}

uint32_t NormalSize::At(uint64_t seed) const {
  const uint64_t bits0 = Mix64(seed);
  // Mix64(seed + 1) cannot be used, since it is the first number of the next
  // seed.
  return FromBits(bits0, Mix64(~bits0));
}

uint32_t NormalSize::FromBits(uint64_t bits0, uint64_t bits1) const {
  // The Box-Muller transform. 1 - [0, 1) is never 0, so the logarithm is finite
  // and no size is further than 8.6 * stddev from the mean.
  const double radius = std::sqrt(-2 * std::log(1 - ToUnit(bits0)));
  const double normal = radius * std::cos(kTwoPi * ToUnit(bits1));
  const double size = std::floor(mean_ + stddev_ * normal + 0.5);
  return size <= min_ ? min_ : static_cast<uint32_t>(size);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
