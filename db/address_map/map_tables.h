// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "db/address_map/map_bucket.h"
#include "db/address_map/map_fence.h"
#include "db/address_map/map_memory_account.h"
#include "db/address_map/map_name.h"
#include "db/address_map/map_shard.h"
#include "db/address_map/map_table.h"
#include "port/likely.h"
#include "port/port.h"
#include "rocksdb/status.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

// The tables of an address map: they find the shard that holds a key, give it
// room, and give memory back. Entries are moved as they are; their meaning does
// not matter here (see MapEntries).
//
// When a shard's range is full, the shard moves to the next table, which has
// ranges four times as long or four times as many shards; the other shards
// follow one by one.
//
// A small map begins with four shards of up to 64 buckets, and each next table
// has four times as many shards until there are 1,024. A map of a thousand
// entries therefore takes some tens of KB.
//
// Invariants:
// 1. A key is in exactly one table: the first from the current one on whose
//    shard for the key has not moved.
// 2. A shard that has not moved has room for all its entries:
//    count <= Capacity(num_buckets).
// 3. Tables are destroyed only with the map, so a reader may use an old table.
//
// Thread-safe: A change of a shard requires its mutex. Readers take no lock and
// do not wait while a shard grows or shrinks: they are redirected to a copy.
class MapTables {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // expected_entries: see AddressMap::Options.
  // REQUIRES: memory outlives this object.
  MapTables(MapMemoryAccount* memory, uint64_t expected_entries)
      : memory_(memory), expected_(expected_entries) {}
  MapTables(const MapTables&) = delete;
  MapTables& operator=(const MapTables&) = delete;

  // REQUIRES: there is no table yet; no other thread uses the tables.
  void Expect(uint64_t entries) { expected_ = entries; }

  // Returns the number of entries that fit into the buckets of a shard.
  static size_t Capacity(uint32_t num_buckets) {
    return size_t{num_buckets} * MapBucket::kEntries * 92 / 100;
  }

  // Returns nullptr if there is no table yet. Lock-free.
  MapTable* Current() const { return current_.load(std::memory_order_acquire); }

  // ---- Readers.

  // Calls read(view) until no writer interfered. Calls again() before each
  // repetition. Calls neither if there is no table yet. Lock-free.
  // read: takes torn entries, but must access only memory of the map and must
  // terminate.
  template <typename ReadFn, typename Again>
  void Read(const MapKeyHash& key, const ReadFn& read,
            const Again& again) const;

  // ---- Writers.

  // Locks the key's shard in the table that currently holds it. Returns nullptr
  // if there is no table yet.
  MapShard* LockShard(const MapKeyHash& key, MapTable** table,
                      Lock* lock) const;
  // Makes room for one more entry of the key and returns the key's shard,
  // locked.
  Status LockWithRoom(const MapKeyHash& key, MapTable** table, MapShard** shard,
                      Lock* lock);
  // Ends what MapShard::BeginWrite() began. Charges the memory that the writer
  // has added up in the shard.
  // REQUIRES: the shard's mutex is held.
  void EndWrite(MapShard* shard);
  // Makes the shard smaller if it is less than half full. Called after
  // removals. Reads only two words if there is nothing to do.
  // REQUIRES: the shard's mutex is held.
  void ShrinkIfSparse(MapTable* table, MapShard* shard) {
    const uint32_t buckets = shard->NumBuckets();
    if (LIKELY(buckets == 0 || shard->Count() >= Capacity(buckets) / 2)) {
      return;
    }
    Shrink(table, shard);
  }
  // Moves one shard to the next table, if there is one. Insertions pay for the
  // move: InsertBatch() calls this once for every 64 records.
  void HelpMove();

  // ---- Statistics.

  // The number is exact if there are no concurrent writers.
  uint64_t NumEntries() const;
  // Returns the number of tables, including replaced ones.
  size_t NumTables() const;

 private:
  static constexpr int kMaxSpins = 64;

  Status MakeFirstTable();
  Status MakeNextTable(MapTable* table);
  std::unique_ptr<MapTable> NewTable(uint32_t shard_bits, uint32_t stride,
                                     Status* status);

  // REQUIRES: the shard's mutex is held.
  Status GrowShard(MapTable* table, MapShard* shard);
  // Makes a shard smaller that is less than half full.
  // REQUIRES: the shard's mutex is held.
  void Shrink(MapTable* table, MapShard* shard);
  // Changes the number of buckets of the shard. Readers use a copy meanwhile.
  // REQUIRES: the shard's mutex is held; its entries fit into new_buckets.
  void ResizeShard(MapTable* table, MapShard* shard, uint32_t new_buckets);
  // REQUIRES: the shard's mutex is held; there is a next table, and the shard
  // has not moved.
  void MoveShard(MapTable* table, MapShard* shard);
  // Gives the shards of the next table that take this shard's entries room for
  // them.
  // children: the first of these shards.
  // REQUIRES: the mutex of `shard` is held, and it has not moved.
  void MakeRoomInChildren(const MapTable* table, const MapShard* shard,
                          const MapTable* next, MapShard* children);

  // Called when the last shard of the table has moved.
  void RetireTable(MapTable* table);

  MapMemoryAccount* const memory_;
  uint64_t expected_;

  mutable std::mutex tables_mutex_;  // taken after a shard's mutex
  std::vector<std::unique_ptr<MapTable>> tables_;  // includes replaced tables
  std::atomic<MapTable*> current_{nullptr};
};

template <typename ReadFn, typename Again>
void MapTables::Read(const MapKeyHash& key, const ReadFn& read,
                     const Again& again) const {
  const MapTable* table = Current();
  if (table == nullptr) {
    return;
  }
  for (uint32_t spins = 0;;) {
    MapShard* const shard = table->Of(key);
    const uint64_t version = shard->version.load(std::memory_order_acquire);
    if (shard->moved.load(std::memory_order_acquire)) {
      table = table->next.load(std::memory_order_acquire);
      continue;
    }
    if ((version & 1) == 0) {
      read(table->ViewOf(shard));
      // The loads above come before the check below.
      MapFence::Acquire();
      if (shard->version.load(std::memory_order_relaxed) == version) {
        return;
      }
      again();
    }
    if (++spins % kMaxSpins == 0) {
      TEST_SYNC_POINT("MapTables::Read:Spun");
      // The shard's writers follow each other closely. A writer that holds the
      // mutex for long is copying the shard, which does not disturb readers, so
      // there is no need to wait for the mutex.
      const Lock lock(shard->mutex, std::try_to_lock);
      if (lock.owns_lock() && !shard->moved.load(std::memory_order_acquire)) {
        read(table->ViewOf(shard));
        return;
      }
      std::this_thread::yield();
    }
    port::AsmVolatilePause();
  }
}

inline MapShard* MapTables::LockShard(const MapKeyHash& key, MapTable** table,
                                      Lock* lock) const {
  MapTable* t = Current();
  if (t == nullptr) {
    return nullptr;
  }
  for (;;) {
    MapShard* const shard = t->Of(key);
    *lock = Lock(shard->mutex);
    if (!shard->moved.load(std::memory_order_relaxed)) {
      *table = t;
      return shard;
    }
    lock->unlock();
    t = t->next.load(std::memory_order_acquire);
  }
}

inline void MapTables::EndWrite(MapShard* shard) {
  const uint64_t version = shard->version.load(std::memory_order_relaxed);
  assert((version & 1) == 1);
  shard->version.store(version + 1, std::memory_order_release);
  if (shard->uncharged != 0) {
    memory_->AddAlways(shard->uncharged);
    shard->uncharged = 0;
  }
  if (shard->unreleased != 0) {
    memory_->Sub(shard->unreleased);
    shard->unreleased = 0;
  }
}

}  // namespace ROCKSDB_NAMESPACE
