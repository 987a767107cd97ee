// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "db/address_map/blob_file_slot_table.h"
#include "db/address_map/far_names.h"
#include "db/address_map/map_bucket.h"
#include "db/address_map/map_name.h"
#include "db/address_map/map_shard.h"
#include "db/address_map/overflow_cells.h"
#include "rocksdb/types.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

// An entry of an address map, with its place in the table and its link in the
// chain.
struct PlacedEntry {
  SequenceNumber seq = 0;
  uint64_t birth = 0;
  MapAddress address;
  MapMode mode = MapMode::kDirect;
  bool is_far = false;    // true for a far versioned entry, see MapEntries
  bool has_link = false;  // true if the chain has a next older entry
  SequenceNumber link_seq = 0;
  uint64_t link_birth = 0;
  uint32_t bucket = 0;
  uint32_t index = 0;
  uint32_t side = OverflowCells::kNone;
  uint32_t link_side = OverflowCells::kNone;

  bool Is(const MapName& name) const {
    return seq == name.seq && birth == name.birth;
  }
  bool OlderThan(const MapName& name) const {
    return seq != name.seq ? seq < name.seq : birth < name.birth;
  }
};

// Finds, places and erases the entries of an address map in the buckets of one
// shard, and owns what of an entry does not fit there: the overflow cells and
// the names of far entries.
//
// A search by the key alone finds direct entries and the first kMaxNear
// versioned entries of a key (*near* ones), as their home bucket follows from
// the hash (see MapShardView). Superseded entries and all other versioned ones
// (*far* ones) are found by their whole names. The names of far entries are in
// a set beside the table (FarNames), so that far entries can be found by the
// key as well.
//
// Invariants, outside of the write section that changes an entry:
// 1. An entry is reachable from its home bucket: each bucket between its home
//    and its place counts it as one that went past.
// 2. Each overflow cell in use belongs to one entry.
// 3. FarNames has the name of each far entry and no other name.
//
// Thread-safety: The searches take no lock. With torn reads their results are
// arbitrary, but they terminate and access only memory of the map. Changes
// require the shard's mutex and a write section (MapShard::BeginWrite()).
class MapEntries {
 public:
  using Chain = autovector<PlacedEntry, 4>;

  // Maximum number of versioned entries of one key that share a home bucket,
  // which has room for 19 entries.
  static constexpr size_t kMaxNear = 4;

  // REQUIRES: files outlives this object.
  explicit MapEntries(const BlobFileSlotTable* files) : files_(files) {}
  MapEntries(const MapEntries&) = delete;
  MapEntries& operator=(const MapEntries&) = delete;

  // ---- Searches.

  // Returns false if the entry is torn.
  bool Decode(const MapShardView& view, const MapKeyHash& key, uint32_t bucket,
              uint32_t index, PlacedEntry* out) const;
  // Finds the newest direct entry of the key.
  bool FindTop(const MapShardView& view, const MapKeyHash& key,
               PlacedEntry* out) const;
  // Calls fn(bucket, index, meta) for the entries of the key whose home is, or
  // may be, at loc, until fn returns true. Returns whether fn did.
  template <typename Fn>
  bool ScanKey(const MapShardView& view, const MapKeyHash& key, uint32_t loc,
               const Fn& fn) const;
  // Finds a near entry.
  bool FindNear(const MapShardView& view, const MapKeyHash& key,
                SequenceNumber seq, uint64_t birth, PlacedEntry* out) const;
  // Finds a superseded entry, or a versioned one that is not near.
  bool FindMixed(const MapShardView& view, const MapKeyHash& key,
                 SequenceNumber seq, uint64_t birth, PlacedEntry* out) const;
  // Finds a versioned entry, near or far.
  // REQUIRES: the shard's mutex is held.
  bool FindVersioned(const MapShardView& view, const MapKeyHash& key,
                     SequenceNumber seq, uint64_t birth,
                     PlacedEntry* out) const;
  // Calls fn(entry) for each versioned entry of the key that is older than seq.
  // REQUIRES: the shard's mutex is held.
  template <typename Fn>
  void ForEachVersionedBelow(const MapShardView& view, const MapKeyHash& key,
                             SequenceNumber seq, const Fn& fn) const;
  // Appends the direct entry of the key and the superseded ones, newest first.
  // REQUIRES: the shard's mutex is held.
  void LoadChain(const MapShardView& view, const MapKeyHash& key,
                 Chain* chain) const;

  // Returns the names of the far entries of some keys, which include this one.
  const FarNames& FarOf(const MapKeyHash& key) const {
    return far_[StoreOf(key)];
  }

  // ---- Changes. They do not change the live counts of files.

  // Adds the entry. Adds the memory of new cells and names to the shard's
  // `uncharged`.
  // REQUIRES: the shard's mutex is held, and a write section has begun.
  void Place(MapShard* shard, const MapShardView& view, const MapKeyHash& key,
             const PlacedEntry& entry);
  // Places the entry as a versioned one, near or far.
  // REQUIRES: the shard's mutex is held, and a write section has begun.
  void PlaceVersioned(MapShard* shard, const MapShardView& view,
                      const MapKeyHash& key, PlacedEntry* entry);
  // REQUIRES: the shard's mutex is held, and a write section has begun; a
  // search has found the entry, and no change has followed.
  void Erase(MapShard* shard, const MapShardView& view, const MapKeyHash& key,
             const PlacedEntry& entry);
  // Replaces the chain of the key. The caller updates the live counts: moving
  // an entry within the table must not let the count of its file drop to zero
  // even for a moment.
  // old: the result of LoadChain().
  // now: the new chain, newest first; its modes and links are set here.
  // REQUIRES: the shard's mutex is held, and a write section has begun.
  void StoreChain(MapShard* shard, const MapShardView& view,
                  const MapKeyHash& key, const Chain& old, Chain* now);

  // ---- Statistics.

  size_t NumSideCells() const;
  size_t NumFarNames() const;

 private:
  static constexpr uint32_t kNumStores = 64;

  // The store follows from the hash, not from the shard: entries keep their
  // cells when shards move.
  static uint32_t StoreOf(const MapKeyHash& key) {
    return static_cast<uint32_t>(key.hi >> 58);
  }

  // Stores an entry in a side cell, and its link, if any, in another one.
  // Returns the index of the side cell.
  uint32_t PlaceInCell(MapShard* shard, const MapKeyHash& key,
                       const PlacedEntry& entry);
  // Returns the number of near entries of the key, at most kMaxNear.
  // REQUIRES: the shard's mutex is held.
  size_t CountNear(const MapShardView& view, const MapKeyHash& key) const;

  const BlobFileSlotTable* const files_;
  OverflowCells side_[kNumStores];
  FarNames far_[kNumStores];
};

// The searches are defined here, so that they can be inlined into the lookups.

inline bool MapEntries::Decode(const MapShardView& view, const MapKeyHash& key,
                               uint32_t bucket, uint32_t index,
                               PlacedEntry* out) const {
  const MapBucket& b = view.base[bucket];
  const uint32_t meta = b.Meta(index);
  const uint64_t loc = b.Loc(index);
  out->seq = b.SeqBits(index);
  out->mode = MapBucket::ModeOf(meta);
  out->is_far = MapBucket::RawModeOf(meta) == MapBucket::kFarMode;
  out->bucket = bucket;
  out->index = index;
  out->has_link = false;
  out->side = OverflowCells::kNone;
  out->link_side = OverflowCells::kNone;
  if (MapBucket::ExtensionOf(meta) != MapBucket::kExtSide) {
    out->address.offset = static_cast<uint32_t>(loc >> 32);
    out->address.size =
        static_cast<uint32_t>(loc >> 14 & (MapBucket::kSizeLimit - 1));
    out->address.slot = static_cast<uint32_t>(loc & 0x3fff) | (meta >> 10)
                                                                  << 14;
    out->birth = MapBucket::ExtensionOf(meta) == MapBucket::kExtOwnFile
                     ? files_->Number(out->address.slot)
                     : 0;
    return true;
  }
  const OverflowCells& store = side_[StoreOf(key)];
  out->side = static_cast<uint32_t>(loc >> 32);
  const OverflowCells::Cell* const cell = store.Get(out->side);
  if (cell == nullptr) {
    return false;  // torn
  }
  const uint64_t word0 = cell->word[0].load(std::memory_order_relaxed);
  const uint64_t word1 = cell->word[1].load(std::memory_order_relaxed);
  out->address.offset = static_cast<uint32_t>(word0 >> 32);
  out->address.size = static_cast<uint32_t>(word0);
  out->address.slot = static_cast<uint32_t>(word1 >> 40);
  out->seq |= (word1 >> 32 & 0xff) << 48;
  out->birth = cell->word[2].load(std::memory_order_relaxed);
  out->link_side = static_cast<uint32_t>(word1);
  if (out->link_side != OverflowCells::kNone) {
    const OverflowCells::Cell* const link = store.Get(out->link_side);
    if (link == nullptr) {
      return false;  // torn
    }
    out->has_link = true;
    out->link_seq = link->word[0].load(std::memory_order_relaxed);
    out->link_birth = link->word[1].load(std::memory_order_relaxed);
  }
  return true;
}

inline bool MapEntries::FindTop(const MapShardView& view, const MapKeyHash& key,
                                PlacedEntry* out) const {
  if (view.num_buckets == 0) {
    return false;
  }
  const uint64_t id = MapBucket::IdWord(key);
  // Prefetches all cache lines of the bucket at once: a hit needs the last ones
  // as well.
  view.Prefetch(view.LocOf(key));
  uint32_t n = view.BucketOf(view.LocOf(key));
  for (uint32_t step = 0; step < view.num_buckets; ++step) {
    const MapBucket& b = view.base[n];
    const uint32_t occupied = b.Occupied();
    for (uint32_t i = 0; i < MapBucket::kEntries; ++i) {
      if (b.Id(i) != id || (occupied >> i & 1) == 0 ||
          (b.Seq(i) & 0xffff) != MapBucket::Id16(key)) {
        continue;
      }
      const uint32_t meta = b.Meta(i);
      if ((meta >> 4 & 0x3f) == MapBucket::Id6(key) &&
          MapBucket::ModeOf(meta) == MapMode::kDirect) {
        return Decode(view, key, n, i, out);
      }
    }
    if (!b.MayBePassedBy(key)) {
      return false;
    }
    n = view.After(n);
  }
  return false;
}

template <typename Fn>
bool MapEntries::ScanKey(const MapShardView& view, const MapKeyHash& key,
                         uint32_t loc, const Fn& fn) const {
  if (view.num_buckets == 0) {
    return false;
  }
  const uint64_t id = MapBucket::IdWord(key);
  uint32_t n = view.BucketOf(loc);
  for (uint32_t step = 0; step < view.num_buckets; ++step) {
    const MapBucket& b = view.base[n];
    const uint32_t occupied = b.Occupied();
    for (uint32_t i = 0; i < MapBucket::kEntries; ++i) {
      if (b.Id(i) != id || (occupied >> i & 1) == 0 ||
          (b.Seq(i) & 0xffff) != MapBucket::Id16(key)) {
        continue;
      }
      const uint32_t meta = b.Meta(i);
      if ((meta >> 4 & 0x3f) == MapBucket::Id6(key) && fn(n, i, meta)) {
        return true;
      }
    }
    if (!b.MayBePassedBy(key)) {
      return false;
    }
    n = view.After(n);
  }
  return false;
}

inline bool MapEntries::FindNear(const MapShardView& view,
                                 const MapKeyHash& key, SequenceNumber seq,
                                 uint64_t birth, PlacedEntry* out) const {
  return ScanKey(
      view, key, view.LocOf(key), [&](uint32_t n, uint32_t i, uint32_t meta) {
        return MapBucket::RawModeOf(meta) ==
                   static_cast<uint32_t>(MapMode::kVersioned) &&
               view.base[n].SeqBits(i) == (seq & MapBucket::kSeqMask) &&
               Decode(view, key, n, i, out) && out->seq == seq &&
               out->birth == birth;
      });
}

inline bool MapEntries::FindMixed(const MapShardView& view,
                                  const MapKeyHash& key, SequenceNumber seq,
                                  uint64_t birth, PlacedEntry* out) const {
  return ScanKey(
      view, key, view.MixedLocOf(key, seq),
      [&](uint32_t n, uint32_t i, uint32_t meta) {
        const uint32_t raw = MapBucket::RawModeOf(meta);
        return (raw == MapBucket::kFarMode ||
                raw == static_cast<uint32_t>(MapMode::kSuperseded)) &&
               view.base[n].SeqBits(i) == (seq & MapBucket::kSeqMask) &&
               Decode(view, key, n, i, out) && out->seq == seq &&
               out->birth == birth;
      });
}

inline bool MapEntries::FindVersioned(const MapShardView& view,
                                      const MapKeyHash& key, SequenceNumber seq,
                                      uint64_t birth, PlacedEntry* out) const {
  return FindNear(view, key, seq, birth, out) ||
         (FarOf(key).Count() > 0 && FindMixed(view, key, seq, birth, out) &&
          out->mode == MapMode::kVersioned);
}

template <typename Fn>
void MapEntries::ForEachVersionedBelow(const MapShardView& view,
                                       const MapKeyHash& key,
                                       SequenceNumber seq, const Fn& fn) const {
  ScanKey(view, key, view.LocOf(key),
          [&](uint32_t n, uint32_t i, uint32_t meta) {
            PlacedEntry e;
            if (MapBucket::RawModeOf(meta) ==
                    static_cast<uint32_t>(MapMode::kVersioned) &&
                Decode(view, key, n, i, &e) && e.seq < seq) {
              fn(e);
            }
            return false;
          });
  for (const MapName& name : FarOf(key).Below(key, seq)) {
    PlacedEntry e;
    const bool found = FindMixed(view, key, name.seq, name.birth, &e);
    assert(found);
    if (found) {
      fn(e);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
