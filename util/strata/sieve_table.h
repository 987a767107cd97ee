//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
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
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

// A hash table with at most one entry per user key, and eviction. It is a base
// for caches that decide themselves whether an entry is outdated. The interface
// Cache does not suit those: an insertion there may leave the old entry in
// place without telling the caller.
//
// Entries are found by the whole key. The table is divided into shards, each
// with a mutex. The top bits of an entry's hash select the shard.
//
// Eviction is that of SIEVE. The entries of a shard are in the order in which
// their keys were added. A hand moves from the oldest entry to the newest one,
// and then starts over. It evicts an entry unless that was used since the hand
// last passed it; used entries stay in place. So entries that are used once
// leave before they displace entries that are used often.
//
// An entry is large if it exceeds an eighth of the limit of a shard. A table
// either refuses large entries, or lets them share memory: then they are not
// subject to the limit of their shard, which one of them could exceed. All
// large entries together may use half of the table's limit, or a single larger
// one all of it; the shards divide the rest.
//
// The memory of the table is charged to the block cache in steps. The limit is
// the capacity, or less if the block cache has no room: then new entries
// replace others within the bytes that are charged, and the block cache is
// asked again from time to time.
//
// Source: "SIEVE is Simpler than LRU" (NSDI 2024).
//
// Thread-safe.
class SieveTable {
 private:
  struct Shard;

 public:
  // The base class of entries. An entry is one block of memory: a struct that
  // derives from this, a payload of variable size, and the key.
  struct Entry {
    // The bit of `uses` that says that the entry was used since the hand last
    // passed it. The other bits belong to the user of the table.
    static constexpr uint8_t kUsed = 1;

    std::atomic<uint32_t> refs{1};  // the table's and those of users
    // In the cache line of `refs`, which a user writes in any case.
    std::atomic<uint8_t> uses{0};
    bool is_large = false;  // set before other threads can find the entry
    size_t key_offset = 0;
    uint64_t hash = 0;
    // The next entry of the hash chain, and the neighbours in the order of
    // eviction; guarded by the shard's mutex.
    Entry* next = nullptr;
    Entry* newer = nullptr;
    Entry* older = nullptr;
    // The last member, so that small members of derived structs can follow
    // without padding.
    uint32_t key_size = 0;

    Slice key() const {
      return Slice(reinterpret_cast<const char*>(this) + key_offset, key_size);
    }
    // Returns the bytes that the entry needs, with the overhead of the table
    // and of malloc.
    size_t size() const { return SizeOf(key_offset + key_size); }
    void Unref() {
      const uint32_t before = refs.fetch_sub(1, std::memory_order_acq_rel);
      assert(before > 0);
      if (before == 1) {
        delete[] reinterpret_cast<char*>(this);
      }
    }
  };

  // The rules of a table's user. All functions are called with the mutex of the
  // entry's shard held.
  class Policy {
   public:
    virtual ~Policy() = default;
    // Returns true if the table is to add `entry`, which no other thread can
    // find yet. `old` is the entry of the same key that it would replace, or
    // nullptr if there is none. The function may change both.
    virtual bool Admits(Entry* old, Entry* entry) = 0;
    // Called when the entry has become part of the table, and before the entry
    // that it replaces leaves.
    virtual void OnAdd(const Entry& /*entry*/) {}
    // Called before the entry leaves the table, unless the table is destroyed.
    virtual void OnRemove(const Entry& /*entry*/) {}
  };

  struct Stats {
    uint64_t entries = 0;
    uint64_t bytes = 0;    // of the entries, with the table's overhead
    uint64_t charged = 0;  // bytes charged to the block cache
    uint64_t evicted = 0;
    uint64_t large = 0;  // large entries
  };

  enum class LargeEntries : uint8_t { kRefused, kShareMemory };

  // The entries of a shard, whose mutex is held as long as this exists.
  class LockedShard {
   public:
    // REQUIRES: index < table->num_shards()
    LockedShard(SieveTable* table, size_t index)
        : table_(table),
          shard_(&table->shards_[index]),
          lock_(&shard_->mutex) {}

    // Returns the entry of the key, without a new reference; nullptr if there
    // is none.
    // REQUIRES: `hash` is that of the key, and belongs to this shard.
    Entry* Find(const Slice& user_key, uint64_t hash) const {
      return SieveTable::Find(*shard_, user_key, hash);
    }
    // Removes the entry and drops the table's reference.
    // REQUIRES: Find() returned the entry.
    void Remove(Entry* entry) { table_->Remove(shard_, entry); }
    // Calls visit(Entry*) for each entry of which the bits of the hash in
    // `mask` are those of `hash`. The function must not remove entries.
    // REQUIRES: mask + 1 is a power of two.
    template <typename Visit>
    void ForEach(uint64_t hash, uint64_t mask, const Visit& visit) const {
      // A chain has the entries whose hashes agree in the lowest bits.
      for (uint64_t i = hash & mask & (shard_->num_heads - 1);
           i < shard_->num_heads; i += mask + 1) {
        for (Entry* entry = shard_->heads[i]; entry != nullptr;
             entry = entry->next) {
          if (((entry->hash ^ hash) & mask) == 0) {
            visit(entry);
          }
        }
      }
    }

   private:
    SieveTable* const table_;
    Shard* const shard_;
    const MutexLock lock_;
  };

  static constexpr size_t kMaxShards = 64;

  // policy: outlives the table.
  // capacity: bytes.
  // num_shards: a power of two, at most kMaxShards.
  // reservation: charges the block cache; nullptr if no cache is to be charged.
  SieveTable(Policy* policy, size_t capacity, size_t num_shards,
             LargeEntries large_entries,
             std::shared_ptr<CacheReservationManager> reservation);
  ~SieveTable();
  SieveTable(const SieveTable&) = delete;
  SieveTable& operator=(const SieveTable&) = delete;

  uint64_t HashOf(const Slice& user_key) const;
  size_t num_shards() const { return num_shards_; }
  // Returns the index of the shard of entries with this hash.
  size_t ShardOf(uint64_t hash) const {
    // A shift by 64 bits at once, for a single shard, would be undefined.
    return static_cast<size_t>((hash >> 32) >> shard_shift_);
  }

  // Returns true if an entry with `payload` bytes of payload is small enough to
  // be cached.
  template <typename E>
  bool Fits(const Slice& user_key, size_t payload) const {
    return user_key.size() <= std::numeric_limits<uint32_t>::max() &&
           SizeOf(sizeof(E) + payload + user_key.size()) <=
               (has_large_ ? Limit() : SmallSize());
  }
  // Returns a new entry, to which the caller has the only reference, or nullptr
  // if it would not fit. The caller fills the payload, which begins at
  // entry + 1.
  // hash: that of the key.
  // payload: size of the payload in bytes.
  template <typename E>
  E* New(const Slice& user_key, uint64_t hash, size_t payload) {
    static_assert(std::is_base_of_v<Entry, E> &&
                  std::is_trivially_destructible_v<E>);
    CountInsert();
    if (!Fits<E>(user_key, payload)) {
      return nullptr;
    }
    char* const memory = new char[sizeof(E) + payload + user_key.size()];
    E* const entry = new (memory) E();
    entry->key_size = static_cast<uint32_t>(user_key.size());
    entry->key_offset = sizeof(E) + payload;
    memcpy(memory + entry->key_offset, user_key.data(), user_key.size());
    entry->hash = hash;
    return entry;
  }

  // Returns the entry of the key, with a reference for the caller; nullptr if
  // there is none. Does not mark it as used; that is left to MarkUsed().
  Entry* Find(const Slice& user_key);
  // Marks the entry as used since the hand last passed it.
  // more: bits of `uses` to set as well.
  static void MarkUsed(Entry* entry, uint8_t more = 0) {
    const auto bits = static_cast<uint8_t>(Entry::kUsed | more);
    // The bits are usually set already. The test avoids a write to a cache line
    // that all readers share.
    if ((entry->uses.load(std::memory_order_relaxed) & bits) != bits) {
      entry->uses.fetch_or(bits, std::memory_order_relaxed);
    }
  }

  // Inserts the entry and takes the caller's reference. Returns false if it was
  // not cached, because the policy does not admit it, or there is no room. An
  // entry that replaces another one takes its place in the order of eviction,
  // and counts as used if the old one does.
  bool Insert(Entry* entry);

  // Charges the block cache for `bytes` of other memory of the table's user.
  // Returns false if the block cache has no room, or had none a short time ago;
  // then nothing is charged.
  // REQUIRES: it has not returned true before.
  bool ChargeOther(size_t bytes);

  // Sets the capacity (bytes). Takes no lock, and evicts nothing: Trim() must
  // be called.
  void LimitCapacity(size_t capacity) {
    capacity_.store(capacity, std::memory_order_relaxed);
  }
  // Evicts entries until the table fits its capacity. Frees the memory of each
  // one, and holds the mutex of a shard for few of them at a time.
  void Trim();
  void SetCapacity(size_t capacity) {
    LimitCapacity(capacity);
    Trim();
  }
  size_t capacity() const { return capacity_.load(std::memory_order_relaxed); }

  Stats GetStats() const;

 private:
  static constexpr size_t kMinHeads = 16;
  // So that a reader of the shard waits for less than a millisecond.
  static constexpr size_t kMaxEvictionsPerHold = 1024;
  // An entry is large if it exceeds the limit of a shard divided by this.
  static constexpr size_t kLargeShare = 8;
  // The block cache is charged in multiples of this many bytes.
  static constexpr size_t kChargeStep = size_t{256} << 10;
  // Number of inserts after which a block cache that had no room is asked
  // again.
  static constexpr uint32_t kInsertsPerQuestion = 1024;
  static constexpr size_t kAnyRoom = std::numeric_limits<size_t>::max();

  // Entries in the order in which their keys were added.
  struct List {
    Entry* newest = nullptr;
    Entry* oldest = nullptr;
    Entry* hand = nullptr;  // nullptr: at `oldest`
    size_t num_entries = 0;
    size_t bytes = 0;
  };

  struct alignas(CACHE_LINE_SIZE) Shard {
    mutable port::Mutex mutex;
    // The heads of the hash chains. Their number is a power of two, or zero.
    std::unique_ptr<Entry*[]> heads;
    size_t num_heads = 0;
    // Each entry is in one of these two lists.
    List small;
    List large;
    uint64_t evicted = 0;

    size_t num_entries() const { return small.num_entries + large.num_entries; }
    List* ListOf(const Entry& entry) {
      return entry.is_large ? &large : &small;
    }
  };

  // memory: bytes of the entry's block of memory.
  static size_t SizeOf(size_t memory) {
    // malloc keeps a size with each block, and rounds up. The last term is the
    // entry's share of the chain heads: at most two.
    constexpr size_t kStep = 2 * sizeof(size_t);
    return (memory + sizeof(size_t) + kStep - 1) / kStep * kStep +
           2 * sizeof(Entry*);
  }
  // Maximum bytes of all entries.
  size_t Limit() const {
    return std::min(capacity(), room_.load(std::memory_order_relaxed));
  }
  // Maximum bytes of small entries in each shard.
  size_t ShardLimit() const {
    const size_t limit = Limit();
    const size_t large = large_bytes_.load(std::memory_order_relaxed);
    return (limit - std::min(limit, large)) / num_shards_;
  }
  // Maximum bytes of an entry that is not large.
  size_t SmallSize() const { return Limit() / num_shards_ / kLargeShare; }

  // Counts an attempt to insert an entry, and lets the block cache be asked
  // again if it is time.
  void CountInsert() {
    if (room_.load(std::memory_order_relaxed) != kAnyRoom &&
        inserts_to_question_.fetch_sub(1, std::memory_order_relaxed) <= 1) {
      room_.store(kAnyRoom, std::memory_order_relaxed);
    }
  }

  // REQUIRES: the shard's mutex is held, and it has heads.
  static Entry** ChainOf(const Shard& shard, uint64_t hash) {
    assert(shard.num_heads > 0);
    return &shard.heads[hash & (shard.num_heads - 1)];
  }
  // REQUIRES: the shard's mutex is held.
  static Entry* Find(const Shard& shard, const Slice& user_key, uint64_t hash);
  // Adds the entry in the place of `old`, which is removed, or as the newest
  // one if `old` is nullptr.
  // REQUIRES: the shard's mutex is held.
  void Add(Shard* shard, Entry* entry, Entry* old);
  // REQUIRES: the shard's mutex is held.
  void Remove(Shard* shard, Entry* entry);
  // Evicts small entries until at most `bytes` bytes of them are left.
  // REQUIRES: the shard's mutex is held.
  // Returns false if max_evictions are not sufficient for that.
  bool EvictDownTo(Shard* shard, size_t bytes, size_t max_evictions = SIZE_MAX);
  // Evicts the next entry of the list, other than `keep`, that was not used
  // since the hand last passed it. Returns false if there is none among the
  // next max_steps entries.
  // REQUIRES: the shard's mutex is held.
  bool EvictOne(Shard* shard, List* list, const Entry* keep, size_t max_steps);
  // Makes room for one more entry in the hash chains.
  // REQUIRES: the shard's mutex is held.
  static void Grow(Shard* shard);

  // Evicts large entries other than `keep` until all large entries together are
  // within their limit; size: bytes of `keep`, which may exceed that limit.
  // Then evicts small entries, whose limit depends on the bytes of the large
  // ones.
  // REQUIRES: no shard's mutex is held.
  void MakeRoomForLarge(const Entry* keep, size_t size);

  // Charges the block cache for the bytes of all shards and the other memory,
  // in steps of kChargeStep. Returns false if it has no room.
  // REQUIRES: no shard's mutex is held.
  bool Charge();

  Policy* const policy_;
  const uint64_t seed_;
  const size_t num_shards_;
  const int shard_shift_;
  const bool has_large_;
  std::atomic<size_t> capacity_;
  const std::unique_ptr<Shard[]> shards_;
  std::atomic<size_t> bytes_{0};
  std::atomic<size_t> large_bytes_{0};  // part of bytes_
  std::atomic<size_t> next_large_shard_{0};

  const std::shared_ptr<CacheReservationManager> reservation_;
  port::Mutex charge_mutex_;
  std::atomic<size_t> other_bytes_{0};  // see ChargeOther()
  std::atomic<size_t> charged_{0};
  // Bytes of entries for which the block cache had room when it last refused
  // more.
  std::atomic<size_t> room_{kAnyRoom};
  std::atomic<uint32_t> inserts_to_question_{0};
};

}  // namespace ROCKSDB_NAMESPACE
