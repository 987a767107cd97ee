//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "db/address_map/map_name.h"

namespace ROCKSDB_NAMESPACE {

// Estimates how often keys were read lately, in a fixed amount of memory: a
// count-min sketch of 4-bit counters that are halved again and again, as in
// TinyLFU (Einziger, Friedman and Manes, 2017).
//
// The counters are in blocks of the size of a cache line. The hash of a key
// determines the block and four of its counters, so an addition costs one cache
// miss. The estimate is the smallest of the four counters, and an addition
// increments only those that have this value.
//
// Ageing: after every kAddsPerBlock additions, the next block has its counters
// halved. So each block is halved once while Window() additions take place, and
// no thread ever has to halve many blocks at once.
//
// Invariants:
// 1. Without ageing, a key that one thread has added n times has an estimate of
//    at least min(n, kMaxEstimate). Keys that share all counters with others
//    have larger estimates.
// 2. Additions of one key by several threads at the same moment may count as
//    one.
// 3. A counter never overflows into its neighbor.
//
// Thread-safe and lock-free. Nothing is ordered by the counters: all accesses
// are relaxed.
class FrequencySketch {
 public:
  static constexpr uint32_t kMaxEstimate = 15;
  static constexpr size_t kBlockSize = 64;  // bytes
  static constexpr uint64_t kAddsPerBlock = 64;
  // Bytes.
  static constexpr size_t kMinSize = size_t{64} << 10;
  static constexpr size_t kMaxSize = size_t{64} << 20;
  // Number of sizes that SizeFor() returns.
  static constexpr size_t kNumSizes = 11;

  // Returns the size in bytes of a sketch for `budget` bytes of values. It is a
  // power of two near budget / 128, between kMinSize and kMaxSize: 8 bytes, or
  // 16 counters, for each value of a kilobyte.
  static size_t SizeFor(uint64_t budget);

  // size: bytes, a power of two, at least kBlockSize.
  explicit FrequencySketch(size_t size);
  FrequencySketch(const FrequencySketch&) = delete;
  FrequencySketch& operator=(const FrequencySketch&) = delete;

  // Counts a read of the key. Returns the new estimate.
  uint32_t Add(const MapKeyHash& key);
  // Returns how often the key was read lately, at most kMaxEstimate.
  uint32_t Estimate(const MapKeyHash& key) const;

  // Bytes.
  size_t size() const { return (mask_ + 1) * kBlockSize; }
  // Returns the number of additions after which all counters were halved once.
  uint64_t Window() const { return (mask_ + 1) * kAddsPerBlock; }

 private:
  static constexpr size_t kWords = kBlockSize / sizeof(uint64_t);
  static constexpr size_t kCounters = 4;  // for each key
  static constexpr size_t kStripes = 16;

  struct alignas(kBlockSize) Block {
    std::array<std::atomic<uint64_t>, kWords> words{};
  };
  // Additions are counted in several places, so that threads do not all write
  // to the same cache line.
  struct alignas(kBlockSize) Stripe {
    std::atomic<uint64_t> adds{0};
  };
  // A counter: bits from `shift` on of a word.
  struct Counter {
    size_t word = 0;
    int shift = 0;
  };

  // Returns the i-th counter of the key. The counters of a key are in different
  // words.
  static Counter CounterOf(const MapKeyHash& key, size_t i);
  static uint32_t Value(uint64_t word, int shift) {
    return static_cast<uint32_t>(word >> shift) & kMaxEstimate;
  }
  static uint32_t Smallest(const Block& block, const MapKeyHash& key);
  // Halves the counters of the next block.
  void AgeNext();

  const uint64_t mask_;  // number of blocks, minus one
  const std::unique_ptr<Block[]> blocks_;
  std::array<Stripe, kStripes> stripes_;
  std::atomic<uint64_t> next_to_age_{0};
};

}  // namespace ROCKSDB_NAMESPACE
