// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_table.h"

#ifdef OS_LINUX
#include <sys/mman.h>
#endif

#include <utility>

namespace ROCKSDB_NAMESPACE {

namespace {

void AvoidHugePages(void* addr, size_t length) {
#if defined(OS_LINUX) && defined(MADV_NOHUGEPAGE)
  // With huge pages, the unused end of each shard's range would become
  // resident.
  (void)madvise(addr, length, MADV_NOHUGEPAGE);
#else
  (void)addr;
  (void)length;
#endif
}

void ReturnMemory(void* addr, size_t length) {
#if defined(OS_LINUX) && defined(MADV_DONTNEED)
  (void)madvise(addr, length, MADV_DONTNEED);
#else
  (void)addr;
  (void)length;
#endif
}

}  // namespace

std::unique_ptr<MapTable> MapTable::Create(uint32_t shard_bits,
                                           uint32_t stride) {
  const size_t range = size_t{stride} * sizeof(MapBucket);
  MemMapping mapping = MemMapping::AllocateLazyZeroed(range << shard_bits);
  MemMapping scratch = MemMapping::AllocateLazyZeroed(range);
  if (mapping.Get() == nullptr || scratch.Get() == nullptr) {
    return nullptr;
  }
  AvoidHugePages(mapping.Get(), mapping.Length());
  AvoidHugePages(scratch.Get(), scratch.Length());
  return std::make_unique<MapTable>(shard_bits, stride, std::move(mapping),
                                    std::move(scratch));
}

MapTable::MapTable(uint32_t bits, uint32_t buckets, MemMapping&& m,
                   MemMapping&& s)
    : shard_bits(bits),
      stride(buckets),
      mapping(std::move(m)),
      scratch(std::move(s)),
      shards(new MapShard[size_t{1} << bits]) {
  for (size_t i = 0; i < NumShards(); ++i) {
    shards[i].range = static_cast<MapBucket*>(mapping.Get()) + i * stride;
    shards[i].base.store(shards[i].range, std::memory_order_relaxed);
  }
  if (IsSmall()) {
    const size_t in_shard = size_t{stride} * MapBucket::kEntries;
    high.reset(new uint16_t[NumShards() * in_shard]);
    for (size_t i = 0; i < NumShards(); ++i) {
      shards[i].high = high.get() + i * in_shard;
    }
  }
}

MapKeyHash MapTable::KeyAt(const MapShard* shard, const MapBucket& bucket,
                           uint32_t index, const uint16_t* high_bits) const {
  const uint64_t part = high_bits != nullptr
                            ? high_bits[index]
                            : static_cast<uint64_t>(shard - shards.get()) >>
                                  (shard_bits - MapBucket::kPartBits);
  return bucket.KeyAt(index, part);
}

MapKeyHash MapTable::KeyAt(const MapShard* shard, uint32_t bucket,
                           uint32_t index) const {
  return KeyAt(shard, shard->range[bucket], index, shard->HighOf(bucket));
}

void MapTable::GiveBack(const MapShard* shard, uint32_t first, uint32_t num) {
  ReturnMemory(shard->range + first, size_t{num} * sizeof(MapBucket));
}

void MapTable::GiveBackScratch() {
  ReturnMemory(scratch.Get(), scratch.Length());
}

}  // namespace ROCKSDB_NAMESPACE
