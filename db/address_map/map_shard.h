// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "db/address_map/map_bucket.h"
#include "db/address_map/map_fence.h"
#include "db/address_map/map_name.h"
#include "port/port.h"

namespace ROCKSDB_NAMESPACE {

// The buckets of a shard, as one critical section sees them, and the places of
// entries in them.
//
// The home bucket of a direct or near entry is a monotone function of the hash,
// so growing and moving go through memory in order, and the entries of a key
// are found together. Superseded and far entries mix in their sequence number:
// thousands of versions of one key must not form one long cluster. An entry
// whose home bucket is full goes to the next bucket with room.
struct MapShardView {
  MapBucket* base = nullptr;
  uint32_t num_buckets = 0;
  // The table that the shard belongs to has 1 << shard_bits shards.
  uint32_t shard_bits = 0;

  // Returns the position of a direct or near entry within the shard, not yet
  // scaled to its bucket count.
  uint32_t LocOf(const MapKeyHash& key) const {
    return static_cast<uint32_t>(key.hi << shard_bits >> 32);
  }
  // Returns the position of a superseded or far entry, likewise not scaled.
  uint32_t MixedLocOf(const MapKeyHash& key, uint64_t seq) const {
    // Only the low 48 bits, because the entry itself holds no more.
    return LocOf(key) ^
           static_cast<uint32_t>(
               (seq & MapBucket::kSeqMask) * 0x9E3779B97F4A7C15u >> 32);
  }
  // Returns the bucket at this position.
  uint32_t BucketOf(uint32_t loc) const {
    return static_cast<uint32_t>(uint64_t{loc} * num_buckets >> 32);
  }
  // Returns the home bucket of an entry.
  uint32_t HomeOf(const MapKeyHash& key, uint64_t seq,
                  uint32_t raw_mode) const {
    return BucketOf(raw_mode == static_cast<uint32_t>(MapMode::kDirect) ||
                            raw_mode ==
                                static_cast<uint32_t>(MapMode::kVersioned)
                        ? LocOf(key)
                        : MixedLocOf(key, seq));
  }
  // Returns the bucket at which a search goes on after bucket n.
  uint32_t After(uint32_t n) const { return n + 1 == num_buckets ? 0 : n + 1; }

  // Prefetches the bucket at this position.
  void Prefetch(uint32_t loc) const {
    if (num_buckets == 0) {
      return;
    }
    const char* const b = reinterpret_cast<const char*>(base + BucketOf(loc));
    for (size_t line = 0; line < sizeof(MapBucket); line += 64) {
      PREFETCH(b + line, 0, 1);
    }
  }

  // Returns the bucket for a new entry and counts the entry in each bucket that
  // it goes past.
  // index: receives the free position in the returned bucket.
  // REQUIRES: some bucket has room.
  MapBucket* TakePlace(const MapKeyHash& key, uint32_t home,
                       uint32_t* index) const {
    constexpr uint32_t kFull = (uint32_t{1} << MapBucket::kEntries) - 1;
    uint32_t n = home;
    for (;;) {
      MapBucket& b = base[n];
      const uint32_t occupied = b.Occupied();
      if (occupied != kFull) {
        *index = static_cast<uint32_t>(CountTrailingZeroBits(~occupied));
        return &b;
      }
      b.AddPassing(key);
      n = After(n);
      assert(n != home);
    }
  }
};

// One shard of a table of an address map.
//
// Invariant: `version` is even whenever the buckets at `base` are consistent. A
// reader that has loaded the same even version before and after its loads of
// the buckets has seen one consistent state of them.
//
// Thread-safety: Writers hold the mutex, and change what readers use between
// BeginWrite() and MapTables::EndWrite(). Readers take no lock; see
// MapTables::Read().
struct alignas(128) MapShard {
  // Read without the mutex.
  std::atomic<uint64_t> version{0};  // odd while a writer changes the shard
  std::atomic<MapBucket*> base{nullptr};
  std::atomic<uint32_t> num_buckets{0};
  std::atomic<bool> moved{false};  // to the next table; never false again
  // Used by writers. Guarded by mutex, except that count may be read without.
  std::mutex mutex;
  std::atomic<uint64_t> count{0};
  MapBucket* range = nullptr;
  // The kPartBits highest bits of each entry's hash, in bucket order; nullptr
  // if these bits follow from the shard.
  uint16_t* high = nullptr;
  // Bytes that EndWrite() has yet to charge and to release.
  size_t uncharged = 0;
  size_t unreleased = 0;

  uint32_t NumBuckets() const {
    return num_buckets.load(std::memory_order_relaxed);
  }
  uint64_t Count() const { return count.load(std::memory_order_relaxed); }
  void SetCount(uint64_t n) { count.store(n, std::memory_order_relaxed); }

  // Returns the part of `high` for one bucket, or nullptr if there is none.
  const uint16_t* HighOf(uint32_t bucket) const {
    return high == nullptr ? nullptr
                           : high + size_t{bucket} * MapBucket::kEntries;
  }
  void SetHigh(uint32_t bucket, uint32_t index, const MapKeyHash& key) {
    if (high != nullptr) {
      high[size_t{bucket} * MapBucket::kEntries + index] =
          static_cast<uint16_t>(key.hi >> (64 - MapBucket::kPartBits));
    }
  }

  // REQUIRES: the mutex is held.
  void BeginWrite() {
    const uint64_t v = version.load(std::memory_order_relaxed);
    assert((v & 1) == 0);
    version.store(v + 1, std::memory_order_relaxed);
    // A reader that observes one of the following stores also observes the odd
    // version.
    MapFence::Release();
  }
};

}  // namespace ROCKSDB_NAMESPACE
