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

// A hash table with at most one entry per user key, and CLOCK eviction. It is a
// base for caches that decide themselves whether an entry is outdated. The
// interface Cache does not suit those: an insertion there may leave the old
// entry in place without telling the caller.
//
// Entries are found by the whole key. The hand of the clock spares an entry
// that was used since the hand last passed it. The memory of the table is
// charged to the block cache in steps. The limit is the capacity, or less if
// the block cache has no room: then new entries replace others within the bytes
// that are charged, and the block cache is asked again from time to time.
//
// Thread-safe.
class ClockTable {
 public:
  // The base class of entries. An entry is one block of memory: a struct that
  // derives from this, a payload of variable size, and the key.
  struct Entry {
    std::atomic<uint32_t> refs{1};  // the table's and those of users
    std::atomic<bool> was_used{false};
    uint32_t key_size = 0;
    uint64_t hash = 0;
    size_t size = 0;  // bytes, with the table's overhead
    size_t key_offset = 0;
    Entry* next = nullptr;  // in the hash chain; guarded by the shard's mutex

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
    uint64_t bytes = 0;    // of the entries, with the table's overhead
    uint64_t charged = 0;  // bytes charged to the block cache
    uint64_t evicted = 0;
  };

  // Returns true if the table keeps `old_entry` and drops `new_entry`, which
  // has the same key.
  using Keeps = bool (*)(const Entry& old_entry, const Entry& new_entry);

  // capacity: bytes.
  // max_share: entries larger than the limit divided by this are not cached.
  // reservation: charges the block cache; nullptr if no cache is to be charged.
  ClockTable(size_t capacity, size_t max_share, Keeps keeps,
             std::shared_ptr<CacheReservationManager> reservation);
  ~ClockTable();
  ClockTable(const ClockTable&) = delete;
  ClockTable& operator=(const ClockTable&) = delete;

  // Returns true if an entry with `payload` bytes of payload is small enough to
  // be cached. To be called before the entry is made.
  template <typename E>
  bool Fits(const Slice& user_key, size_t payload) const {
    return user_key.size() <= std::numeric_limits<uint32_t>::max() &&
           SizeOf(sizeof(E), user_key, payload) <= Limit() / max_share_;
  }
  // Returns a new entry, to which the caller has the only reference. The caller
  // fills the payload, which begins at entry + 1.
  // payload: size of the payload in bytes.
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

  // Returns the entry of the key, with a reference for the caller; nullptr if
  // there is none. Does not mark it as used; that is left to MarkUsed().
  Entry* Find(const Slice& user_key);
  // Marks the entry as used since the hand last passed it.
  static void MarkUsed(Entry* entry) {
    // The flag is usually set already. The test avoids a write to a cache line
    // that all readers share.
    if (!entry->was_used.load(std::memory_order_relaxed)) {
      entry->was_used.store(true, std::memory_order_relaxed);
    }
  }

  // Inserts the entry and takes the caller's reference. Returns false if it was
  // not cached, because there is a better entry of the key, or no room.
  bool Insert(Entry* entry);

  // Evicts entries until the table fits the new capacity (bytes).
  void SetCapacity(size_t capacity);
  size_t capacity() const { return capacity_.load(std::memory_order_relaxed); }

  Stats GetStats() const;

 private:
  static constexpr size_t kNumShards = 64;
  static constexpr int kShardShift = 58;
  static constexpr size_t kMinHeads = 16;
  // The block cache is charged in multiples of this many bytes.
  static constexpr size_t kChargeStep = size_t{256} << 10;
  // Number of inserts after which a block cache that had no room is asked
  // again.
  static constexpr uint32_t kInsertsPerQuestion = 1024;
  static constexpr size_t kAnyRoom = std::numeric_limits<size_t>::max();

  struct alignas(CACHE_LINE_SIZE) Shard {
    mutable port::Mutex mutex;
    // The heads of the hash chains. Their number is a power of two, or zero.
    std::unique_ptr<Entry*[]> heads;
    size_t num_heads = 0;
    size_t hand = 0;  // index of a chain
    size_t entries = 0;
    size_t bytes = 0;
    uint64_t evicted = 0;
  };

  static size_t SizeOf(size_t fixed, const Slice& user_key, size_t payload) {
    // The second term is the entry's share of the chain heads: at most two.
    return FreeListArena::RoundUp(fixed + payload + user_key.size()) +
           2 * sizeof(Entry*);
  }
  uint64_t HashOf(const Slice& user_key) const;
  Shard* ShardOf(uint64_t hash) { return &shards_[hash >> kShardShift]; }
  size_t Limit() const {
    return std::min(capacity(), room_.load(std::memory_order_relaxed));
  }

  // REQUIRES: the shard's mutex is held.
  static Entry** ChainOf(const Shard& shard, uint64_t hash) {
    assert(shard.num_heads > 0);
    return &shard.heads[hash & (shard.num_heads - 1)];
  }
  // Returns the address of the pointer to the key's entry, or that of the
  // nullptr at the end of the chain.
  // REQUIRES: the shard's mutex is held.
  static Entry** Link(const Shard& shard, const Slice& user_key, uint64_t hash);
  // REQUIRES: the shard's mutex is held.
  void Remove(Shard* shard, Entry** link);
  // Evicts entries until at most `bytes` bytes of them are left.
  // REQUIRES: the shard's mutex is held.
  void EvictDownTo(Shard* shard, size_t bytes);
  // Makes room for one more entry in the hash chains.
  // REQUIRES: the shard's mutex is held.
  static void Grow(Shard* shard);

  // Charges the block cache for the bytes of all shards, in steps of
  // kChargeStep. Returns false if it has no room.
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
  // Bytes for which the block cache had room when it last refused more.
  std::atomic<size_t> room_{kAnyRoom};
  std::atomic<uint32_t> inserts_to_question_{0};
};

}  // namespace ROCKSDB_NAMESPACE
