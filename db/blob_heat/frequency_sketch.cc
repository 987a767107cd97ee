//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/frequency_sketch.h"

#include <algorithm>
#include <cassert>

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kBudgetPerByte = 128;
constexpr int kCounterBits = 4;
// All bits of a word except the highest one of each counter.
constexpr uint64_t kAllButHighest = 0x7777777777777777;

}  // namespace

size_t FrequencySketch::SizeFor(uint64_t budget) {
  static_assert(kMinSize << (kNumSizes - 1) == kMaxSize);
  size_t size = kMinSize;
  while (size < kMaxSize && size < budget / kBudgetPerByte) {
    size *= 2;
  }
  return size;
}

FrequencySketch::FrequencySketch(size_t size)
    : mask_(size / kBlockSize - 1), blocks_(new Block[size / kBlockSize]) {
  assert(size >= kBlockSize && (size & (size - 1)) == 0);
}

FrequencySketch::Counter FrequencySketch::CounterOf(const MapKeyHash& key,
                                                    size_t i) {
  // Each counter of a key is in a pair of words of its own, which has 32
  // counters. The block is determined by other bits of the hash.
  const uint32_t index = key.lo >> (5 * i) & 31;
  return Counter{2 * i + index / 16,
                 static_cast<int>(index % 16) * kCounterBits};
}

uint32_t FrequencySketch::Smallest(const Block& block, const MapKeyHash& key) {
  uint32_t smallest = kMaxEstimate;
  for (size_t i = 0; i < kCounters; ++i) {
    const Counter counter = CounterOf(key, i);
    smallest = std::min(
        smallest,
        Value(block.words[counter.word].load(std::memory_order_relaxed),
              counter.shift));
  }
  return smallest;
}

uint32_t FrequencySketch::Add(const MapKeyHash& key) {
  Block& block = blocks_[key.hi & mask_];
  const uint32_t before = Smallest(block, key);
  for (size_t i = 0; before < kMaxEstimate && i < kCounters; ++i) {
    const Counter counter = CounterOf(key, i);
    std::atomic<uint64_t>& word = block.words[counter.word];
    uint64_t value = word.load(std::memory_order_relaxed);
    while (Value(value, counter.shift) == before &&
           !word.compare_exchange_weak(value,
                                       value + (uint64_t{1} << counter.shift),
                                       std::memory_order_relaxed)) {
    }
  }
  Stripe& stripe = stripes_[key.lo >> 28];
  static_assert(kStripes == 16);
  if ((stripe.adds.fetch_add(1, std::memory_order_relaxed) + 1) %
          kAddsPerBlock ==
      0) {
    AgeNext();
  }
  return std::min(before + 1, kMaxEstimate);
}

uint32_t FrequencySketch::Estimate(const MapKeyHash& key) const {
  return Smallest(blocks_[key.hi & mask_], key);
}

void FrequencySketch::AgeNext() {
  Block& block =
      blocks_[next_to_age_.fetch_add(1, std::memory_order_relaxed) & mask_];
  for (std::atomic<uint64_t>& word : block.words) {
    uint64_t value = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(value, value >> 1 & kAllButHighest,
                                       std::memory_order_relaxed)) {
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
