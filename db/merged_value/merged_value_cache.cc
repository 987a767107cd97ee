//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/merged_value_cache.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "db/range_tombstone_fragmenter.h"
#include "options/cf_options.h"
#include "options/merged_value_options.h"
#include "rocksdb/table.h"
#include "util/hash.h"
#include "util/math.h"
#include "util/mutexlock.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Of std::unordered_map, for a node and its share of the buckets.
constexpr size_t kNodeSize = 5 * sizeof(void*);

size_t StripesFor(size_t capacity, size_t per_stripe, size_t min, size_t max) {
  const size_t wanted = std::min(std::max(capacity / per_stripe, min), max);
  return size_t{1} << FloorLog2(wanted);
}

void RaiseTo(std::atomic<SequenceNumber>* number, SequenceNumber to) {
  SequenceNumber old = number->load(std::memory_order_relaxed);
  while (old < to && !number->compare_exchange_weak(old, to)) {
  }
}

}  // namespace

// One piece of memory: this, then the key, then the value.
struct MergedValueCache::Entry {
  std::atomic<uint32_t> refs{1};  // the table's, and those of Refs
  std::atomic<bool> was_used{false};
  uint32_t key_size;
  uint32_t value_size;
  uint64_t hash;
  uint64_t generation;
  SequenceNumber seq;
  std::atomic<SequenceNumber> frontier;
  size_t place;  // in the ring

  static Entry* New(const Slice& key, const Slice& value) {
    char* const memory = new char[sizeof(Entry) + key.size() + value.size()];
    Entry* const entry = new (memory) Entry();
    entry->key_size = static_cast<uint32_t>(key.size());
    entry->value_size = static_cast<uint32_t>(value.size());
    memcpy(memory + sizeof(Entry), key.data(), key.size());
    memcpy(memory + sizeof(Entry) + key.size(), value.data(), value.size());
    return entry;
  }
  void Unref() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      this->~Entry();
      delete[] reinterpret_cast<char*>(this);
    }
  }
  static size_t SizeOf(const Slice& key, const Slice& value) {
    return sizeof(Entry) + key.size() + value.size() + sizeof(Entry*) +
           kNodeSize;
  }
  size_t size() const { return SizeOf(key(), value()); }
  const char* data() const {
    return reinterpret_cast<const char*>(this) + sizeof(Entry);
  }
  Slice key() const { return Slice(data(), key_size); }
  Slice value() const { return Slice(data() + key_size, value_size); }
};

void MergedValueCache::Flushed::OnRangeDeletions(
    FragmentedRangeTombstoneIterator* iter) {
  for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
    OnRangeDeletion(iter->seq());
  }
}

void MergedValueCache::Ref::Reset() {
  if (entry_ != nullptr) {
    entry_->Unref();
    entry_ = nullptr;
  }
}

SequenceNumber MergedValueCache::Ref::seq() const { return entry_->seq; }

SequenceNumber MergedValueCache::Ref::frontier() const {
  return entry_->frontier.load(std::memory_order_relaxed);
}

Slice MergedValueCache::Ref::value() const { return entry_->value(); }

void MergedValueCache::Ref::ExtendFrontier(SequenceNumber frontier) const {
  // Mostly it is there already: no write to a line that all readers share.
  RaiseTo(&entry_->frontier, frontier);
}

std::unique_ptr<MergedValueCache> MergedValueCache::Create(
    const MutableCFOptions& options) {
  const auto* const table =
      options.table_factory->GetOptions<BlockBasedTableOptions>();
  std::shared_ptr<CacheReservationManager> reservation;
  if (table != nullptr && table->block_cache != nullptr &&
      table->cache_usage_options.options_overrides
              .at(CacheEntryRole::kMergedValueCache)
              .charged != CacheEntryRoleOptions::Decision::kDisabled) {
    reservation = std::make_shared<
        CacheReservationManagerImpl<CacheEntryRole::kMergedValueCache>>(
        table->block_cache);
  }
  return std::make_unique<MergedValueCache>(MergedValueCacheSize(options),
                                            std::move(reservation));
}

MergedValueCache::MergedValueCache(
    size_t capacity, std::shared_ptr<CacheReservationManager> reservation)
    : seed_(Random64(reinterpret_cast<uintptr_t>(this)).Next()),
      num_stripes_(
          StripesFor(capacity, kBytesPerStripe, kMinStripes, kMaxStripes)),
      capacity_(capacity),
      stripes_(new Stripe[num_stripes_]),
      reservation_(std::move(reservation)) {
  Charge();
}

MergedValueCache::~MergedValueCache() {
  for (Shard& shard : shards_) {
    for (Entry* const entry : shard.ring) {
      entry->Unref();
    }
  }
  if (reservation_ != nullptr) {
    reservation_->UpdateCacheReservation(0).PermitUncheckedError();
  }
}

uint64_t MergedValueCache::HashOf(const Slice& user_key) const {
  return Hash64(user_key.data(), user_key.size(), seed_);
}

SequenceNumber MergedValueCache::FlushedOf(uint64_t hash) const {
  return std::max(
      stripes_[StripeOf(hash)].flushed.load(std::memory_order_acquire),
      flushed_ranges_.load(std::memory_order_acquire));
}

MergedValueCache::Result MergedValueCache::Lookup(const Slice& user_key,
                                                  SequenceNumber read_seq,
                                                  uint64_t generation,
                                                  Ref* ref) {
  ref->Reset();
  const uint64_t hash = HashOf(user_key);
  if (stripes_[StripeOf(hash)].entries.load(std::memory_order_relaxed) == 0) {
    return Result::kMiss;
  }
  const SequenceNumber flushed = FlushedOf(hash);
  Shard* const shard = ShardOf(hash);
  MutexLock lock(&shard->mutex);
  const auto found = shard->entries.find(hash);
  if (found == shard->entries.end() || found->second->key() != user_key) {
    return Result::kMiss;
  }
  Entry* const entry = found->second;
  const bool is_outdated =
      std::max(entry->seq, entry->frontier.load(std::memory_order_relaxed)) <
      flushed;
  if (is_outdated || entry->generation < generation) {
    // Nobody who begins now can use it.
    Remove(shard, entry);
    return Result::kStale;
  }
  if (entry->generation != generation || entry->seq > read_seq) {
    return Result::kStale;
  }
  entry->was_used.store(true, std::memory_order_relaxed);
  entry->refs.fetch_add(1, std::memory_order_relaxed);
  *ref = Ref(entry);
  return Result::kHit;
}

bool MergedValueCache::Insert(const Slice& user_key, SequenceNumber seq,
                              SequenceNumber frontier, uint64_t generation,
                              const Slice& value) {
  constexpr size_t kMaxSize = std::numeric_limits<uint32_t>::max();
  if (room_.load(std::memory_order_relaxed) != kAnyRoom &&
      inserts_to_question_.fetch_sub(1, std::memory_order_relaxed) <= 1) {
    room_.store(kAnyRoom, std::memory_order_relaxed);
  }
  const size_t size = Entry::SizeOf(user_key, value);
  if (user_key.size() > kMaxSize || value.size() > kMaxSize ||
      size > Limit() / kMaxShare) {
    return false;
  }
  Entry* const entry = Entry::New(user_key, value);
  entry->hash = HashOf(user_key);
  entry->generation = generation;
  entry->seq = seq;
  entry->frontier.store(frontier, std::memory_order_relaxed);
  Shard* const shard = ShardOf(entry->hash);
  {
    MutexLock lock(&shard->mutex);
    const auto found = shard->entries.find(entry->hash);
    if (found != shard->entries.end()) {
      Entry* const old = found->second;
      if (old->key() == user_key) {
        if (old->generation == generation && old->seq == seq) {
          RaiseTo(&old->frontier, frontier);
        }
        if (old->generation > generation ||
            (old->generation == generation && old->seq >= seq)) {
          entry->Unref();
          return false;
        }
      }
      Remove(shard, old);
    }
    const size_t limit = Limit() / kNumShards;
    EvictDownTo(shard, limit > size ? limit - size : 0);
    entry->place = shard->ring.size();
    shard->ring.push_back(entry);
    shard->entries.emplace(entry->hash, entry);
    shard->bytes += size;
    bytes_.fetch_add(size, std::memory_order_relaxed);
    stripes_[StripeOf(entry->hash)].entries.fetch_add(
        1, std::memory_order_relaxed);
    entry->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Ref hold(entry);
  if (Charge()) {
    return true;
  }
  MutexLock lock(&shard->mutex);
  const auto found = shard->entries.find(entry->hash);
  if (found != shard->entries.end() && found->second == entry) {
    Remove(shard, entry);
  }
  return false;
}

void MergedValueCache::Remove(Shard* shard, Entry* entry) {
  shard->mutex.AssertHeld();
  shard->entries.erase(entry->hash);
  assert(shard->ring[entry->place] == entry);
  shard->ring.back()->place = entry->place;
  shard->ring[entry->place] = shard->ring.back();
  shard->ring.pop_back();
  const size_t size = entry->size();
  shard->bytes -= size;
  bytes_.fetch_sub(size, std::memory_order_relaxed);
  stripes_[StripeOf(entry->hash)].entries.fetch_sub(1,
                                                    std::memory_order_relaxed);
  entry->Unref();
}

void MergedValueCache::EvictDownTo(Shard* shard, size_t bytes) {
  shard->mutex.AssertHeld();
  while (shard->bytes > bytes) {
    if (shard->hand >= shard->ring.size()) {
      shard->hand = 0;
    }
    Entry* const entry = shard->ring[shard->hand];
    if (entry->was_used.exchange(false, std::memory_order_relaxed)) {
      ++shard->hand;
      continue;
    }
    Remove(shard, entry);  // another one takes its place below the hand
    ++shard->evicted;
  }
}

void MergedValueCache::RaiseFlushed(const Flushed& flushed) {
  assert(&flushed.cache_ == this);
  for (size_t i = 0; i < num_stripes_; ++i) {
    if (flushed.seqs_[i] > 0) {
      RaiseTo(&stripes_[i].flushed, flushed.seqs_[i]);
    }
  }
  RaiseTo(&flushed_ranges_, flushed.ranges_);
}

void MergedValueCache::SetCapacity(size_t capacity) {
  capacity_.store(capacity, std::memory_order_relaxed);
  for (Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    EvictDownTo(&shard, Limit() / kNumShards);
  }
  Charge();
}

bool MergedValueCache::Charge() {
  if (reservation_ == nullptr) {
    return true;
  }
  const size_t stripes = num_stripes_ * sizeof(Stripe);
  const auto wanted = [this, stripes] {
    const size_t bytes = bytes_.load(std::memory_order_relaxed) + stripes;
    return (bytes + kChargeStep - 1) / kChargeStep * kChargeStep;
  };
  // One step more than needed stays charged: at its capacity the table goes up
  // and down by an entry.
  const auto is_charged = [this](size_t total) {
    const size_t charged = charged_.load(std::memory_order_relaxed);
    return total <= charged && charged - total <= kChargeStep;
  };
  if (is_charged(wanted())) {
    return true;
  }
  MutexLock lock(&charge_mutex_);
  const size_t total = wanted();
  const size_t charged = charged_.load(std::memory_order_relaxed);
  if (is_charged(total)) {
    return true;
  }
  if (room_.load(std::memory_order_relaxed) != kAnyRoom) {
    // The block cache has had no room not long ago: it gets nothing back either,
    // which would only be missed.
    return total <= charged;
  }
  const Status s = reservation_->UpdateCacheReservation(total);
  if (!s.ok()) {
    reservation_->UpdateCacheReservation(charged).PermitUncheckedError();
    inserts_to_question_.store(kInsertsPerQuestion, std::memory_order_relaxed);
    room_.store(charged > stripes ? charged - stripes : 0,
                std::memory_order_relaxed);
    return false;
  }
  charged_.store(total, std::memory_order_relaxed);
  return true;
}

MergedValueCache::Stats MergedValueCache::GetStats() const {
  Stats stats;
  for (const Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    stats.entries += shard.ring.size();
    stats.bytes += shard.bytes;
    stats.evicted += shard.evicted;
  }
  stats.charged = charged_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace ROCKSDB_NAMESPACE
