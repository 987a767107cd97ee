//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "cache/cache_reservation_manager.h"
#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "util/strata/free_list_arena.h"

namespace ROCKSDB_NAMESPACE {

// A hash table of what is kept in memory about user keys, at most one entry for
// each. It is what caches have in common that know when an entry is out of date
// and are not served by a Cache: there an insertion may leave the old entry
// where it is, and says nothing about it.
//
// Entries are found by the whole key. They leave by a clock: one that was used
// since the hand has last come by stays. What the table takes up is charged to
// the block cache in steps. The limit is the capacity, or less if the block
// cache has no room: then entries take the places of others in what is charged,
// and now and then it is asked again.
//
// Thread-safe.
class ClockTable {
 public:
  // What entries begin with. An entry is one piece of memory: a struct that
  // derives from this, what is of variable size (the payload), and the key.
  struct Entry {
    std::atomic<uint32_t> refs{1};  // the table's, and those of who uses it
    std::atomic<bool> was_used{false};
    uint32_t key_size = 0;
    uint64_t hash = 0;
    size_t size = 0;  // with what the table needs for it
    size_t key_offset = 0;
    Entry* next = nullptr;  // of its chain; guarded by the shard's mutex

    Slice key() const {
      return Slice(reinterpret_cast<const char*>(this) + key_offset, key_size);
    }
    void Unref() {
      const uint32_t before = refs.fetch_sub(1, std::memory_order_acq_rel);
      assert(before > 0);
      if (before == 1) {
        FreeListArena::Process()->Free(reinterpret_cast<char*>(this),
                                       key_offset + key_size);
      }
    }
  };

  struct Stats {
    uint64_t entries = 0;
    uint64_t bytes = 0;    // of them, with what the table needs for each
    uint64_t charged = 0;  // to the block cache
    uint64_t evicted = 0;
  };

  // Does the table keep `old_entry`, and not take the new one of the same key?
  using Keeps = bool (*)(const Entry& old_entry, const Entry& new_entry);

  // max_share: an entry of more than this part of the capacity is not worth its
  // place. reservation: of the block cache; nullptr: nobody is charged.
  ClockTable(size_t capacity, size_t max_share, Keeps keeps,
             std::shared_ptr<CacheReservationManager> reservation);
  ~ClockTable();
  ClockTable(const ClockTable&) = delete;
  ClockTable& operator=(const ClockTable&) = delete;

  // Would an entry with that much payload be kept? To be asked before one is
  // made.
  template <typename E>
  bool Fits(const Slice& user_key, size_t payload) const {
    return user_key.size() <= std::numeric_limits<uint32_t>::max() &&
           SizeOf(sizeof(E), user_key, payload) <= Limit() / max_share_;
  }
  // A new one, of which the caller has the only reference. The payload begins
  // at entry + 1, and is for the caller to fill.
  template <typename E>
  E* New(const Slice& user_key, size_t payload) const {
    static_assert(std::is_base_of_v<Entry, E> &&
                  std::is_trivially_destructible_v<E>);
    char* const memory = FreeListArena::Process()->Allocate(
        sizeof(E) + payload + user_key.size());
    E* const entry = new (memory) E();
    entry->key_size = static_cast<uint32_t>(user_key.size());
    entry->key_offset = sizeof(E) + payload;
    memcpy(memory + entry->key_offset, user_key.data(), user_key.size());
    entry->hash = HashOf(user_key);
    entry->size = SizeOf(sizeof(E), user_key, payload);
    return entry;
  }

  // With a reference for the caller, nullptr if there is none. It counts as
  // used when the caller says so: MarkUsed().
  Entry* Find(const Slice& user_key);
  static void MarkUsed(Entry* entry) {
    // Mostly it is set already: no write to a line that all readers share.
    if (!entry->was_used.load(std::memory_order_relaxed)) {
      entry->was_used.store(true, std::memory_order_relaxed);
    }
  }

  // Takes the caller's reference. False if it was not kept: there is a better
  // one, or no room.
  bool Insert(Entry* entry);

  // Evicts what is too much.
  void SetCapacity(size_t capacity);
  size_t capacity() const { return capacity_.load(std::memory_order_relaxed); }

  Stats GetStats() const;

 private:
  static constexpr size_t kNumShards = 64;
  static constexpr int kShardShift = 58;
  static constexpr size_t kMinHeads = 16;
  // What the block cache is charged in.
  static constexpr size_t kChargeStep = size_t{256} << 10;
  // After so many inserts a block cache that had no room is asked again.
  static constexpr uint32_t kInsertsPerQuestion = 1024;
  static constexpr size_t kAnyRoom = std::numeric_limits<size_t>::max();

  struct alignas(CACHE_LINE_SIZE) Shard {
    mutable port::Mutex mutex;
    // Of the chains; a power of two, or none.
    std::unique_ptr<Entry*[]> heads;
    size_t num_heads = 0;
    size_t hand = 0;  // a chain
    size_t entries = 0;
    size_t bytes = 0;
    uint64_t evicted = 0;
  };

  static size_t SizeOf(size_t fixed, const Slice& user_key, size_t payload) {
    // The second is its share of heads, of which there are two at most.
    return FreeListArena::RoundUp(fixed + payload + user_key.size()) +
           2 * sizeof(Entry*);
  }
  uint64_t HashOf(const Slice& user_key) const;
  Shard* ShardOf(uint64_t hash) { return &shards_[hash >> kShardShift]; }
  size_t Limit() const {
    return std::min(capacity(), room_.load(std::memory_order_relaxed));
  }

  // REQUIRES of all: the shard's mutex is held.
  static Entry** ChainOf(const Shard& shard, uint64_t hash) {
    assert(shard.num_heads > 0);
    return &shard.heads[hash & (shard.num_heads - 1)];
  }
  // Where the pointer to the key's entry is, or the nullptr at the chain's end.
  static Entry** Link(const Shard& shard, const Slice& user_key, uint64_t hash);
  void Remove(Shard* shard, Entry** link);
  void EvictDownTo(Shard* shard, size_t bytes);
  static void Grow(Shard* shard);

  // Charges for the bytes of all shards, in steps. False if there is no room.
  bool Charge();

  const uint64_t seed_;
  const size_t max_share_;
  const Keeps keeps_;
  std::atomic<size_t> capacity_;
  std::array<Shard, kNumShards> shards_;
  std::atomic<size_t> bytes_{0};

  const std::shared_ptr<CacheReservationManager> reservation_;
  port::Mutex charge_mutex_;
  std::atomic<size_t> charged_{0};
  // What the block cache had room for when it refused more.
  std::atomic<size_t> room_{kAnyRoom};
  std::atomic<uint32_t> inserts_to_question_{0};
};

}  // namespace ROCKSDB_NAMESPACE
