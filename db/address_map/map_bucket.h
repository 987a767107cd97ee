// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

#include "db/address_map/map_name.h"
#include "util/math.h"

namespace ROCKSDB_NAMESPACE {

// A bucket of 512 bytes of an address map's table, with room for 19 entries,
// and the format of its entries.
//
// Invariant: over_ is the exact number of entries of the table that went past
// the bucket because it was full, and past_ is a filter of their hashes. A
// search for a hash ends at the first bucket that no entry with the searched
// hash bits went past.
//
// Entry, 26 bytes (hash: hi 64 bits, lo 32 bits; the 10 highest bits of hi
// follow from the shard, except in small tables):
//   id    hi << 10 | lo bits 0-9
//   seq   low 48 bits of the sequence number << 16 | lo bits 10-25
//   loc   offset 32 | size 18 | slot bits 0-13
//   meta  slot bits 14-19 | lo bits 26-31 | mode 2 | extension 2
// The mode is the value of MapMode for near entries and 3 for far entries.
// Extension: 0: birth is 0. 1: birth is the number of the entry's file.
// 2: the first word of loc is the index of a side cell that contains
//   word 0: offset 32 | size 32
//   word 1: slot 24 | high 8 bits of the sequence number | link cell 32
//   word 2: birth
// and the link cell, if any, contains the sequence number and birth of the next
// older entry of the chain.
//
// Thread-safety: that of the shard (MapShard). All words are atomic and are
// read and written with relaxed order. The memory of a bucket is zeroed before
// its first use; no constructor runs.
class MapBucket {
 public:
  static constexpr uint32_t kEntries = 19;
  // Number of high bits of a hash that are not stored in entries.
  static constexpr uint32_t kPartBits = 10;

  static constexpr uint64_t kSeqMask = (uint64_t{1} << 48) - 1;
  static constexpr uint32_t kSizeLimit = 1 << 18;
  static constexpr uint32_t kSlotLimit = 1 << 20;

  // A mode that exists only in the table: a versioned entry whose home bucket
  // depends on the sequence number.
  static constexpr uint32_t kFarMode = 3;

  enum Extension : uint32_t { kExtNone = 0, kExtOwnFile = 1, kExtSide = 2 };

  // ---- The parts of an entry's words.

  static uint64_t IdWord(const MapKeyHash& key) {
    return key.hi << 10 | (key.lo & 0x3ff);
  }
  static uint64_t Id16(const MapKeyHash& key) { return key.lo >> 10 & 0xffff; }
  static uint32_t Id6(const MapKeyHash& key) { return key.lo >> 26; }

  static uint32_t ExtensionOf(uint32_t meta) { return meta & 3; }
  static uint32_t RawModeOf(uint32_t meta) { return meta >> 2 & 3; }
  static MapMode ModeOf(uint32_t meta) {
    const uint32_t raw = RawModeOf(meta);
    return raw == kFarMode ? MapMode::kVersioned : static_cast<MapMode>(raw);
  }
  static uint32_t RawMode(MapMode mode, bool is_far) {
    return mode == MapMode::kVersioned && is_far ? kFarMode
                                                 : static_cast<uint32_t>(mode);
  }

  // ---- Entries.

  // Returns a word with one bit for each entry.
  uint32_t Occupied() const { return Load(occupied_); }
  uint64_t Id(uint32_t i) const { return Load(id_[i]); }
  uint64_t Seq(uint32_t i) const { return Load(seq_[i]); }
  uint64_t Loc(uint32_t i) const { return Load(loc_[i]); }
  uint32_t Meta(uint32_t i) const { return Load(meta_[i]); }

  // Returns the low 48 bits of the sequence number.
  uint64_t SeqBits(uint32_t i) const { return Seq(i) >> 16; }
  // Returns the hash of an entry.
  // part: the kPartBits highest bits of the hash.
  MapKeyHash KeyAt(uint32_t i, uint64_t part) const {
    const uint64_t id = Id(i);
    MapKeyHash key;
    key.hi = part << (64 - kPartBits) | id >> 10;
    key.lo = static_cast<uint32_t>((id & 0x3ff) | (Seq(i) & 0xffff) << 10) |
             static_cast<uint32_t>(Meta(i) >> 4 & 0x3f) << 26;
    return key;
  }

  // Calls fn(index) for each entry.
  template <typename Fn>
  void ForEach(const Fn& fn) const {
    for (uint32_t occupied = Occupied(); occupied != 0;
         occupied &= occupied - 1) {
      fn(static_cast<uint32_t>(CountTrailingZeroBits(occupied)));
    }
  }

  void StoreEntry(uint32_t i, uint64_t id_word, uint64_t seq_word,
                  uint64_t loc_word, uint32_t meta_word) {
    Store(id_[i], id_word);
    Store(seq_[i], seq_word);
    Store(loc_[i], loc_word);
    Store(meta_[i], meta_word);
    Store(occupied_, Occupied() | uint32_t{1} << i);
  }
  // Stores entry `from_index` of another bucket.
  void CopyEntry(uint32_t i, const MapBucket& from, uint32_t from_index) {
    StoreEntry(i, from.Id(from_index), from.Seq(from_index),
               from.Loc(from_index), from.Meta(from_index));
  }
  void EraseEntry(uint32_t i) {
    Store(occupied_, Occupied() & ~(uint32_t{1} << i));
  }
  // Makes the bucket a copy of another one.
  void CopyFrom(const MapBucket& from) {
    Store(over_, from.Over());
    Store(past_, Load(from.past_));
    Store(occupied_, uint32_t{0});
    from.ForEach([&](uint32_t i) { CopyEntry(i, from, i); });
  }
  void Clear() {
    Store(occupied_, uint32_t{0});
    Store(over_, uint32_t{0});
    Store(past_, uint64_t{0});
  }

  // ---- Entries that went past the bucket.

  uint32_t Over() const { return Load(over_); }
  // Returns false if no entry of the key went past.
  bool MayBePassedBy(const MapKeyHash& key) const {
    return (Load(past_) >> Id6(key) & 1) != 0;
  }
  void AddPassing(const MapKeyHash& key) {
    Store(over_, Over() + 1);
    Store(past_, Load(past_) | uint64_t{1} << Id6(key));
  }
  // REQUIRES: AddPassing() was called for this entry.
  void SubPassing() {
    const uint32_t over = Over() - 1;
    assert(over != ~uint32_t{0});
    Store(over_, over);
    if (over == 0) {
      Store(past_, uint64_t{0});
    }
  }

 private:
  template <typename T>
  static T Load(const std::atomic<T>& word) {
    return word.load(std::memory_order_relaxed);
  }
  template <typename T, typename V>
  static void Store(std::atomic<T>& word, V value) {
    word.store(static_cast<T>(value), std::memory_order_relaxed);
  }

  std::atomic<uint32_t> occupied_;  // one bit for each entry
  std::atomic<uint32_t> over_;
  // One bit for each value of the six identity bits in meta; a clear bit means
  // that no entry with this value went past. Bits stay set until `over` is 0 or
  // the shard is resized, so the filter is not exact, but it saves most steps
  // of an unsuccessful search.
  std::atomic<uint64_t> past_;
  std::atomic<uint64_t> id_[kEntries];
  std::atomic<uint64_t> seq_[kEntries];
  std::atomic<uint64_t> loc_[kEntries];
  std::atomic<uint16_t> meta_[kEntries];
};

static_assert(sizeof(MapBucket) == 512);

}  // namespace ROCKSDB_NAMESPACE
