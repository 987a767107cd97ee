// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_entries.h"

#include <cassert>

#include "db/address_map/map_fence.h"

namespace ROCKSDB_NAMESPACE {

size_t MapEntries::CountNear(const MapShardView& view,
                             const MapKeyHash& key) const {
  size_t count = 0;
  ScanKey(view, key, view.LocOf(key), [&](uint32_t, uint32_t, uint32_t meta) {
    count +=
        MapBucket::RawModeOf(meta) == static_cast<uint32_t>(MapMode::kVersioned)
            ? 1
            : 0;
    return count >= kMaxNear;
  });
  return count;
}

uint32_t MapEntries::PlaceInCell(MapShard* shard, const MapKeyHash& key,
                                 const PlacedEntry& e) {
  OverflowCells* const store = &side_[StoreOf(key)];
  uint32_t link_index = OverflowCells::kNone;
  if (e.has_link) {
    link_index = store->Allocate(&shard->uncharged);
  }
  const uint32_t index = store->Allocate(&shard->uncharged);
  // The cells may have belonged to other shards; see OverflowCells::Free().
  MapFence::Release();
  if (e.has_link) {
    OverflowCells::Cell* const link = store->Get(link_index);
    link->word[0].store(e.link_seq, std::memory_order_relaxed);
    link->word[1].store(e.link_birth, std::memory_order_relaxed);
  }
  const MapAddress& a = e.address;
  OverflowCells::Cell* const cell = store->Get(index);
  cell->word[0].store(uint64_t{a.offset} << 32 | a.size,
                      std::memory_order_relaxed);
  cell->word[1].store(
      uint64_t{a.slot} << 40 | (e.seq >> 48 & 0xff) << 32 | link_index,
      std::memory_order_relaxed);
  cell->word[2].store(e.birth, std::memory_order_relaxed);
  return index;
}

void MapEntries::Place(MapShard* shard, const MapShardView& view,
                       const MapKeyHash& key, const PlacedEntry& e) {
  const MapAddress& a = e.address;
  uint32_t ext = MapBucket::kExtNone;
  if (e.has_link || e.seq > MapBucket::kSeqMask ||
      a.size >= MapBucket::kSizeLimit || a.slot >= MapBucket::kSlotLimit) {
    ext = MapBucket::kExtSide;
  } else if (e.birth != 0) {
    ext = e.birth == files_->Number(a.slot) ? MapBucket::kExtOwnFile
                                            : MapBucket::kExtSide;
  }
  uint64_t loc;
  uint32_t slot_high = 0;
  if (ext == MapBucket::kExtSide) {
    loc = uint64_t{PlaceInCell(shard, key, e)} << 32;
  } else {
    loc = uint64_t{a.offset} << 32 | uint64_t{a.size} << 14 | (a.slot & 0x3fff);
    slot_high = a.slot >> 14;
  }
  const uint32_t raw_mode = MapBucket::RawMode(e.mode, e.is_far);
  if (raw_mode == MapBucket::kFarMode) {
    far_[StoreOf(key)].Add(MapName{key, e.seq, e.birth});
    shard->uncharged += FarNames::kNameBytes;
  }
  uint32_t i = 0;
  MapBucket* const b =
      view.TakePlace(key, view.HomeOf(key, e.seq, raw_mode), &i);
  shard->SetHigh(static_cast<uint32_t>(b - view.base), i, key);
  b->StoreEntry(
      i, MapBucket::IdWord(key), e.seq << 16 | MapBucket::Id16(key), loc,
      slot_high << 10 | MapBucket::Id6(key) << 4 | raw_mode << 2 | ext);
  shard->SetCount(shard->Count() + 1);
}

void MapEntries::PlaceVersioned(MapShard* shard, const MapShardView& view,
                                const MapKeyHash& key, PlacedEntry* entry) {
  entry->mode = MapMode::kVersioned;
  entry->has_link = false;
  entry->is_far = CountNear(view, key) >= kMaxNear;
  Place(shard, view, key, *entry);
}

void MapEntries::Erase(MapShard* shard, const MapShardView& view,
                       const MapKeyHash& key, const PlacedEntry& e) {
  view.base[e.bucket].EraseEntry(e.index);
  const uint32_t raw_mode = MapBucket::RawMode(e.mode, e.is_far);
  if (raw_mode == MapBucket::kFarMode) {
    far_[StoreOf(key)].Remove(MapName{key, e.seq, e.birth});
    shard->unreleased += FarNames::kNameBytes;
  }
  for (uint32_t n = view.HomeOf(key, e.seq, raw_mode); n != e.bucket;
       n = view.After(n)) {
    view.base[n].SubPassing();
  }
  OverflowCells* const store = &side_[StoreOf(key)];
  if (e.side != OverflowCells::kNone) {
    store->Free(e.side);
  }
  if (e.link_side != OverflowCells::kNone) {
    store->Free(e.link_side);
  }
  shard->SetCount(shard->Count() - 1);
}

void MapEntries::LoadChain(const MapShardView& view, const MapKeyHash& key,
                           Chain* chain) const {
  PlacedEntry e;
  if (!FindTop(view, key, &e)) {
    return;
  }
  chain->push_back(e);
  while (e.has_link) {
    const PlacedEntry upper = e;
    if (!FindMixed(view, key, upper.link_seq, upper.link_birth, &e)) {
      assert(false);
      return;
    }
    chain->push_back(e);
  }
}

void MapEntries::StoreChain(MapShard* shard, const MapShardView& view,
                            const MapKeyHash& key, const Chain& old,
                            Chain* now) {
  for (const PlacedEntry& e : old) {
    Erase(shard, view, key, e);
  }
  for (size_t i = 0; i < now->size(); ++i) {
    PlacedEntry& e = (*now)[i];
    e.mode = i == 0 ? MapMode::kDirect : MapMode::kSuperseded;
    e.has_link = i + 1 < now->size();
    if (e.has_link) {
      e.link_seq = (*now)[i + 1].seq;
      e.link_birth = (*now)[i + 1].birth;
    }
    Place(shard, view, key, e);
  }
}

size_t MapEntries::NumSideCells() const {
  size_t n = 0;
  for (const OverflowCells& store : side_) {
    n += store.NumUsed();
  }
  return n;
}

size_t MapEntries::NumFarNames() const {
  size_t n = 0;
  for (const FarNames& names : far_) {
    n += names.Count();
  }
  return n;
}

}  // namespace ROCKSDB_NAMESPACE
