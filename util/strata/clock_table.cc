//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/clock_table.h"

#include <utility>

#include "util/hash.h"
#include "util/mutexlock.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

ClockTable::ClockTable(size_t capacity, size_t max_share, Keeps keeps,
                       std::shared_ptr<CacheReservationManager> reservation)
    : seed_(Random64(reinterpret_cast<uintptr_t>(this)).Next()),
      max_share_(max_share),
      keeps_(keeps),
      capacity_(capacity),
      reservation_(std::move(reservation)) {}

ClockTable::~ClockTable() {
  for (Shard& shard : shards_) {
    for (size_t i = 0; i < shard.num_heads; ++i) {
      for (Entry* entry = shard.heads[i]; entry != nullptr;) {
        Entry* const next = entry->next;
        entry->Unref();
        entry = next;
      }
    }
  }
  if (reservation_ != nullptr) {
    reservation_->UpdateCacheReservation(0).PermitUncheckedError();
  }
}

uint64_t ClockTable::HashOf(const Slice& user_key) const {
  return Hash64(user_key.data(), user_key.size(), seed_);
}

ClockTable::Entry** ClockTable::Link(const Shard& shard, const Slice& user_key,
                                     uint64_t hash) {
  Entry** link = ChainOf(shard, hash);
  while (*link != nullptr &&
         ((*link)->hash != hash || (*link)->key() != user_key)) {
    link = &(*link)->next;
  }
  return link;
}

ClockTable::Entry* ClockTable::Find(const Slice& user_key) {
  const uint64_t hash = HashOf(user_key);
  Shard* const shard = ShardOf(hash);
  MutexLock lock(&shard->mutex);
  if (shard->entries == 0) {
    return nullptr;
  }
  Entry* const entry = *Link(*shard, user_key, hash);
  if (entry != nullptr) {
    entry->refs.fetch_add(1, std::memory_order_relaxed);
  }
  return entry;
}

bool ClockTable::Insert(Entry* entry) {
  if (room_.load(std::memory_order_relaxed) != kAnyRoom &&
      inserts_to_question_.fetch_sub(1, std::memory_order_relaxed) <= 1) {
    room_.store(kAnyRoom, std::memory_order_relaxed);
  }
  Shard* const shard = ShardOf(entry->hash);
  {
    MutexLock lock(&shard->mutex);
    if (shard->entries > 0) {
      Entry** const link = Link(*shard, entry->key(), entry->hash);
      if (*link != nullptr) {
        if (keeps_(**link, *entry)) {
          entry->Unref();
          return false;
        }
        Remove(shard, link);
      }
    }
    const size_t limit = Limit() / kNumShards;
    if (entry->size > limit) {
      entry->Unref();
      return false;
    }
    EvictDownTo(shard, limit - entry->size);
    Grow(shard);
    // Added at the end of the chain, so that the hand visits older entries
    // first.
    *Link(*shard, entry->key(), entry->hash) = entry;
    ++shard->entries;
    shard->bytes += entry->size;
    bytes_.fetch_add(entry->size, std::memory_order_relaxed);
    entry->refs.fetch_add(1, std::memory_order_relaxed);
  }
  const bool is_charged = Charge();
  if (!is_charged) {
    MutexLock lock(&shard->mutex);
    // Another thread may have removed the entry.
    if (shard->entries > 0) {
      Entry** const link = Link(*shard, entry->key(), entry->hash);
      if (*link == entry) {
        Remove(shard, link);
      }
    }
  }
  entry->Unref();
  return is_charged;
}

void ClockTable::Remove(Shard* shard, Entry** link) {
  shard->mutex.AssertHeld();
  Entry* const entry = *link;
  *link = entry->next;
  --shard->entries;
  shard->bytes -= entry->size;
  bytes_.fetch_sub(entry->size, std::memory_order_relaxed);
  entry->Unref();
}

void ClockTable::EvictDownTo(Shard* shard, size_t bytes) {
  shard->mutex.AssertHeld();
  while (shard->bytes > bytes) {
    Entry** link = &shard->heads[shard->hand];
    while (*link != nullptr && shard->bytes > bytes) {
      if ((*link)->was_used.exchange(false, std::memory_order_relaxed)) {
        link = &(*link)->next;
      } else {
        Remove(shard, link);
        ++shard->evicted;
      }
    }
    // The hand moves on even if the chain has more entries: the entries that
    // were spared have a whole turn of the hand to be used again.
    shard->hand = (shard->hand + 1) & (shard->num_heads - 1);
  }
  if (shard->entries == 0) {
    shard->heads.reset();
    shard->num_heads = 0;
    shard->hand = 0;
  }
}

void ClockTable::Grow(Shard* shard) {
  shard->mutex.AssertHeld();
  if (shard->entries < shard->num_heads) {
    return;
  }
  const size_t old_num = shard->num_heads;
  const std::unique_ptr<Entry*[]> old_heads = std::move(shard->heads);
  shard->num_heads = std::max(kMinHeads, 2 * old_num);
  shard->heads = std::make_unique<Entry*[]>(shard->num_heads);
  for (size_t i = 0; i < old_num; ++i) {
    for (Entry* entry = old_heads[i]; entry != nullptr;) {
      Entry* const next = entry->next;
      entry->next = nullptr;
      *Link(*shard, entry->key(), entry->hash) = entry;
      entry = next;
    }
  }
}

void ClockTable::SetCapacity(size_t capacity) {
  capacity_.store(capacity, std::memory_order_relaxed);
  for (Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    EvictDownTo(&shard, Limit() / kNumShards);
  }
  Charge();
}

bool ClockTable::Charge() {
  if (reservation_ == nullptr) {
    return true;
  }
  const auto wanted = [this] {
    const size_t bytes = bytes_.load(std::memory_order_relaxed);
    return (bytes + kChargeStep - 1) / kChargeStep * kChargeStep;
  };
  // Up to one step more than needed may stay charged: a full table grows and
  // shrinks by an entry all the time.
  const auto is_charged = [](size_t total, size_t charged) {
    return total <= charged &&
           (charged - total <= kChargeStep && (total > 0 || charged == 0));
  };
  if (is_charged(wanted(), charged_.load(std::memory_order_relaxed))) {
    return true;
  }
  MutexLock lock(&charge_mutex_);
  const size_t total = wanted();
  const size_t charged = charged_.load(std::memory_order_relaxed);
  if (is_charged(total, charged)) {
    return true;
  }
  if (total > charged && room_.load(std::memory_order_relaxed) != kAnyRoom) {
    return false;  // the block cache was asked a short time ago
  }
  if (!reservation_->UpdateCacheReservation(total).ok()) {
    reservation_->UpdateCacheReservation(charged).PermitUncheckedError();
    inserts_to_question_.store(kInsertsPerQuestion, std::memory_order_relaxed);
    room_.store(charged, std::memory_order_relaxed);
    return false;
  }
  if (total < charged) {
    // The block cache has room for the bytes that were given back, until
    // another user takes it.
    room_.store(kAnyRoom, std::memory_order_relaxed);
  }
  charged_.store(total, std::memory_order_relaxed);
  return true;
}

ClockTable::Stats ClockTable::GetStats() const {
  Stats stats;
  for (const Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    stats.entries += shard.entries;
    stats.bytes += shard.bytes;
    stats.evicted += shard.evicted;
  }
  stats.charged = charged_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace ROCKSDB_NAMESPACE
