//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/sieve_table.h"

#include <utility>

#include "test_util/sync_point.h"
#include "util/hash.h"
#include "util/math.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the seed of the hashes. It is random, so that the keys that share a
// shard or a chain cannot be predicted; debug builds use a constant for tests.
uint64_t NewSeed(const void* table) {
#ifdef NDEBUG
  return Random64(reinterpret_cast<uintptr_t>(table)).Next();
#else
  (void)table;
  return 301;
#endif
}

}  // namespace

SieveTable::SieveTable(Policy* policy, size_t capacity, size_t num_shards,
                       LargeEntries large_entries,
                       std::shared_ptr<CacheReservationManager> reservation)
    : policy_(policy),
      seed_(NewSeed(this)),
      num_shards_(num_shards),
      shard_shift_(32 - FloorLog2(num_shards)),
      has_large_(large_entries == LargeEntries::kShareMemory),
      capacity_(capacity),
      shards_(new Shard[num_shards]),
      reservation_(std::move(reservation)) {
  assert(num_shards <= kMaxShards && (num_shards & (num_shards - 1)) == 0);
}

SieveTable::~SieveTable() {
  for (size_t i = 0; i < num_shards_; ++i) {
    for (const List* list : {&shards_[i].small, &shards_[i].large}) {
      for (Entry* entry = list->oldest; entry != nullptr;) {
        Entry* const newer = entry->newer;
        entry->Unref();
        entry = newer;
      }
    }
  }
  if (reservation_ != nullptr) {
    reservation_->UpdateCacheReservation(0).PermitUncheckedError();
  }
}

uint64_t SieveTable::HashOf(const Slice& user_key) const {
  return Hash64(user_key.data(), user_key.size(), seed_);
}

SieveTable::Entry* SieveTable::Find(const Shard& shard, const Slice& user_key,
                                    uint64_t hash) {
  shard.mutex.AssertHeld();
  if (shard.num_heads == 0) {
    return nullptr;
  }
  Entry* entry = *ChainOf(shard, hash);
  while (entry != nullptr &&
         (entry->hash != hash || entry->key() != user_key)) {
    entry = entry->next;
  }
  return entry;
}

SieveTable::Entry* SieveTable::Find(const Slice& user_key) {
  const uint64_t hash = HashOf(user_key);
  const LockedShard shard(this, ShardOf(hash));
  Entry* const entry = shard.Find(user_key, hash);
  if (entry != nullptr) {
    entry->refs.fetch_add(1, std::memory_order_relaxed);
  }
  return entry;
}

bool SieveTable::Insert(Entry* entry) {
  Shard* const shard = &shards_[ShardOf(entry->hash)];
  const size_t size = entry->size();
  {
    MutexLock lock(&shard->mutex);
    Entry* const old = Find(*shard, entry->key(), entry->hash);
    // The limit may have been lowered since New().
    if (!policy_->Admits(old, entry) ||
        size > (has_large_ ? Limit() : ShardLimit())) {
      entry->Unref();
      return false;
    }
    entry->is_large = has_large_ && size > SmallSize();
    // The caller's reference is held until the entry is charged.
    entry->refs.fetch_add(1, std::memory_order_relaxed);
    if (old == nullptr && !entry->is_large) {
      // Evicts before the new entry is added, so that it is not evicted itself.
      const size_t limit = ShardLimit();
      EvictDownTo(shard, limit - std::min(limit, size));
    }
    Add(shard, entry, old);
    if (!entry->is_large) {
      EvictDownTo(shard, ShardLimit());  // changes if the old entry was large
    }
  }
  if (entry->is_large) {
    MakeRoomForLarge(entry, size);
  }
  const bool is_charged = Charge();
  if (!is_charged) {
    MutexLock lock(&shard->mutex);
    // Another thread may have removed the entry.
    if (Find(*shard, entry->key(), entry->hash) == entry) {
      Remove(shard, entry);
    }
  }
  entry->Unref();
  return is_charged;
}

void SieveTable::Add(Shard* shard, Entry* entry, Entry* old) {
  shard->mutex.AssertHeld();
  Grow(shard);
  Entry** const chain = ChainOf(*shard, entry->hash);
  entry->next = *chain;
  *chain = entry;
  List* const list = shard->ListOf(*entry);
  // The new entry is inserted between these two.
  const bool is_beside = old != nullptr && old->is_large == entry->is_large;
  entry->older = is_beside ? old : list->newest;
  entry->newer = is_beside ? old->newer : nullptr;
  (entry->older != nullptr ? entry->older->newer : list->oldest) = entry;
  (entry->newer != nullptr ? entry->newer->older : list->newest) = entry;
  const size_t size = entry->size();
  ++list->num_entries;
  list->bytes += size;
  bytes_.fetch_add(size, std::memory_order_relaxed);
  if (entry->is_large) {
    large_bytes_.fetch_add(size, std::memory_order_relaxed);
  }
  policy_->OnAdd(*entry);
  if (old != nullptr) {
    if ((old->uses.load(std::memory_order_relaxed) & Entry::kUsed) != 0) {
      MarkUsed(entry);
    }
    Remove(shard, old);
  }
}

void SieveTable::Remove(Shard* shard, Entry* entry) {
  shard->mutex.AssertHeld();
  policy_->OnRemove(*entry);
  Entry** link = ChainOf(*shard, entry->hash);
  while (*link != entry) {
    link = &(*link)->next;
  }
  *link = entry->next;
  List* const list = shard->ListOf(*entry);
  (entry->older != nullptr ? entry->older->newer : list->oldest) = entry->newer;
  (entry->newer != nullptr ? entry->newer->older : list->newest) = entry->older;
  if (list->hand == entry) {
    list->hand = entry->newer;
  }
  const size_t size = entry->size();
  --list->num_entries;
  list->bytes -= size;
  bytes_.fetch_sub(size, std::memory_order_relaxed);
  if (entry->is_large) {
    large_bytes_.fetch_sub(size, std::memory_order_relaxed);
  }
  entry->Unref();
}

bool SieveTable::EvictOne(Shard* shard, List* list, const Entry* keep,
                          size_t max_steps) {
  shard->mutex.AssertHeld();
  for (; max_steps > 0 && list->num_entries > 0; --max_steps) {
    Entry* const entry = list->hand != nullptr ? list->hand : list->oldest;
    list->hand = entry->newer;
    if (entry != keep &&
        (entry->uses.fetch_and(static_cast<uint8_t>(~Entry::kUsed),
                               std::memory_order_relaxed) &
         Entry::kUsed) == 0) {
      Remove(shard, entry);
      ++shard->evicted;
      return true;
    }
  }
  return false;
}

bool SieveTable::EvictDownTo(Shard* shard, size_t bytes, size_t max_evictions) {
  shard->mutex.AssertHeld();
  for (; shard->small.bytes > bytes; --max_evictions) {
    if (max_evictions == 0) {
      return false;
    }
    EvictOne(shard, &shard->small, /*keep=*/nullptr, /*max_steps=*/SIZE_MAX);
  }
  if (shard->num_entries() == 0) {
    shard->heads.reset();
    shard->num_heads = 0;
  }
  return true;
}

void SieveTable::Grow(Shard* shard) {
  shard->mutex.AssertHeld();
  if (shard->num_entries() < shard->num_heads) {
    return;
  }
  shard->num_heads = std::max(kMinHeads, 2 * shard->num_heads);
  shard->heads = std::make_unique<Entry*[]>(shard->num_heads);
  for (const List* list : {&shard->small, &shard->large}) {
    for (Entry* entry = list->oldest; entry != nullptr; entry = entry->newer) {
      Entry** const chain = ChainOf(*shard, entry->hash);
      entry->next = *chain;
      *chain = entry;
    }
  }
}

void SieveTable::MakeRoomForLarge(const Entry* keep, size_t size) {
  const size_t most = std::max(Limit() / 2, size);
  // Goes from shard to shard as the hand of a single list would. After two
  // rounds every large entry has been evicted, or used meanwhile.
  for (size_t i = 0; i < 2 * num_shards_ &&
                     large_bytes_.load(std::memory_order_relaxed) > most;
       ++i) {
    Shard* const shard =
        &shards_[next_large_shard_.fetch_add(1, std::memory_order_relaxed) %
                 num_shards_];
    MutexLock lock(&shard->mutex);
    for (size_t steps = shard->large.num_entries;
         steps > 0 && large_bytes_.load(std::memory_order_relaxed) > most;
         --steps) {
      EvictOne(shard, &shard->large, keep, /*max_steps=*/1);
    }
  }
  for (size_t i = 0; i < num_shards_; ++i) {
    bool is_done = false;
    while (!is_done) {
      MutexLock lock(&shards_[i].mutex);
      TEST_SYNC_POINT("SieveTable::MakeRoomForLarge:Shard");
      is_done = EvictDownTo(&shards_[i], ShardLimit(), kMaxEvictionsPerHold);
    }
  }
}

void SieveTable::Trim() {
  TEST_SYNC_POINT("SieveTable::Trim");
  MakeRoomForLarge(/*keep=*/nullptr, /*size=*/0);
  Charge();
}

bool SieveTable::ChargeOther(size_t bytes) {
  other_bytes_.store(bytes, std::memory_order_relaxed);
  if (Charge()) {
    return true;
  }
  other_bytes_.store(0, std::memory_order_relaxed);
  return false;
}

bool SieveTable::Charge() {
  if (reservation_ == nullptr) {
    return true;
  }
  const auto wanted = [this] {
    const size_t bytes = bytes_.load(std::memory_order_relaxed) +
                         other_bytes_.load(std::memory_order_relaxed);
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
    const size_t other = other_bytes_.load(std::memory_order_relaxed);
    room_.store(charged - std::min(charged, other), std::memory_order_relaxed);
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

SieveTable::Stats SieveTable::GetStats() const {
  Stats stats;
  for (size_t i = 0; i < num_shards_; ++i) {
    const Shard& shard = shards_[i];
    MutexLock lock(&shard.mutex);
    stats.entries += shard.num_entries();
    stats.bytes += shard.small.bytes + shard.large.bytes;
    stats.evicted += shard.evicted;
    stats.large += shard.large.num_entries;
  }
  stats.charged = charged_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace ROCKSDB_NAMESPACE
