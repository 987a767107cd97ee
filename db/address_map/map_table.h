// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "db/address_map/map_bucket.h"
#include "db/address_map/map_name.h"
#include "db/address_map/map_shard.h"
#include "port/mmap.h"

namespace ROCKSDB_NAMESPACE {

// One table of an address map: one lazily zeroed mapping of buckets, and the
// shards that they belong to.
//
// Invariant: Each shard owns an equal range of the mapping and uses the first
// num_buckets buckets of it; buckets that it does not use have no memory behind
// them. The mapping itself stays until the table is destroyed: a late reader of
// a shard that has moved or shrunk finds zeros and then the changed version
// counter.
//
// The shard of a small table does not determine the 10 highest bits of hi. An
// array beside the buckets holds them for the operations that need whole
// hashes: moving entries and walking the map. A lookup compares the other 86
// bits. A small table has at most 300,000 entries, and the probability that two
// of their keys agree in these 86 bits is below 1 in 10^15.
//
// Thread-safety: that of the shards.
struct MapTable {
  // Returns nullptr if there is no address space for the table.
  // stride: buckets of a shard's range.
  static std::unique_ptr<MapTable> Create(uint32_t shard_bits, uint32_t stride);
  // Returns the memory that a table without buckets takes, in bytes.
  static size_t FixedBytes(uint32_t shard_bits) {
    return sizeof(MapShard) << shard_bits;
  }

  MapTable(uint32_t bits, uint32_t buckets, MemMapping&& m, MemMapping&& s);

  bool IsSmall() const { return shard_bits < MapBucket::kPartBits; }
  // Returns the memory of one bucket, in bytes.
  size_t BucketBytes() const {
    return sizeof(MapBucket) +
           (IsSmall() ? MapBucket::kEntries * sizeof(uint16_t) : 0);
  }

  size_t NumShards() const { return size_t{1} << shard_bits; }
  MapShard* Of(const MapKeyHash& key) const {
    return &shards[key.hi >> (64 - shard_bits)];
  }
  // The view is consistent if the shard's mutex is held.
  MapShardView ViewOf(const MapShard* shard) const {
    return MapShardView{shard->base.load(std::memory_order_relaxed),
                        shard->NumBuckets(), shard_bits};
  }

  // Returns the hash of an entry that is in the shard's own buckets.
  // REQUIRES: the shard's mutex is held.
  MapKeyHash KeyAt(const MapShard* shard, uint32_t bucket,
                   uint32_t index) const;
  // Returns the hash of an entry of a bucket that may be a copy.
  // high_bits: MapShard::HighOf(), or a copy of it, for this bucket.
  // REQUIRES: the shard's mutex is held.
  MapKeyHash KeyAt(const MapShard* shard, const MapBucket& bucket,
                   uint32_t index, const uint16_t* high_bits) const;

  // Gives the memory of the shard's buckets from `first` on back.
  // REQUIRES: the shard's mutex is held; no entry is in these buckets.
  void GiveBack(const MapShard* shard, uint32_t first, uint32_t num);
  // Gives the memory of `scratch` back.
  // REQUIRES: scratch_mutex is held.
  void GiveBackScratch();

  const uint32_t shard_bits;
  const uint32_t stride;  // buckets of a shard's range
  MemMapping mapping;
  // Holds a copy of the shard that is being resized, which readers use
  // meanwhile. Only one shard of a table is resized at a time.
  std::mutex scratch_mutex;  // taken after a shard's mutex
  MemMapping scratch;
  size_t scratch_used = 0;  // buckets, for the memory charge
  std::unique_ptr<MapShard[]> shards;
  std::unique_ptr<uint16_t[]> high;  // see MapShard; not initialized
  std::atomic<MapTable*> next{nullptr};
  std::atomic<size_t> num_moved{0};
  std::atomic<size_t> cursor{0};  // next shard for HelpMove() to move
};

}  // namespace ROCKSDB_NAMESPACE
