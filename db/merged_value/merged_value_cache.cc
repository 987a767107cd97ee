//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/merged_value_cache.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "db/range_tombstone_fragmenter.h"
#include "options/cf_options.h"
#include "options/strata/merged_value_options.h"
#include "port/likely.h"
#include "rocksdb/table.h"
#include "test_util/sync_point.h"
#include "util/math.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns how many parts of of_size bytes the capacity has, rounded down to a
// power of two, within [min, max].
size_t PartsOf(size_t capacity, size_t of_size, size_t min, size_t max) {
  const size_t wanted = std::min(std::max(capacity / of_size, min), max);
  return size_t{1} << FloorLog2(wanted);
}

void RaiseTo(std::atomic<SequenceNumber>* number, SequenceNumber to) {
  SequenceNumber old = number->load(std::memory_order_relaxed);
  while (old < to && !number->compare_exchange_weak(old, to)) {
  }
}

}  // namespace

// The payload is the value.
struct MergedValueCache::Entry : public SieveTable::Entry {
  // Bit of `uses`: the entry was read since a flush carried it over.
  static constexpr uint8_t kRead = 2;
  // Number of consecutive times that the entry was carried over unread.
  uint8_t unread_carries = 0;
  uint64_t generation = 0;
  SequenceNumber seq = 0;
  std::atomic<SequenceNumber> frontier{0};
  // Number of the first flush that may raise the frontier: once it has passed
  // all of its entries, it is known to have none of the key above seq. 0: the
  // entry is not in the table yet, and was not carried over. Guarded by the
  // shard's mutex.
  uint64_t first_flush = 0;

  // Returns true if no file can have a newer entry of the key. flushed: largest
  // sequence number in files of entries that may affect the key (FlushedOf()).
  bool IsGoodFor(SequenceNumber flushed) const {
    return std::max(seq, frontier.load(std::memory_order_relaxed)) >= flushed;
  }
  char* value_data() { return reinterpret_cast<char*>(this + 1); }
  Slice value() const {
    return Slice(reinterpret_cast<const char*>(this + 1),
                 key_offset - sizeof(*this));
  }
};

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
  // Usually writes nothing, because the frontier is high enough already; so the
  // cache line that all readers share is not invalidated.
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
    : table_(this, capacity,
             PartsOf(capacity, kBytesPerShard, 1, SieveTable::kMaxShards),
             SieveTable::LargeEntries::kShareMemory, std::move(reservation)),
      num_stripes_(
          PartsOf(capacity, kBytesPerStripe, kMinStripes, kMaxStripes)),
      stripes_per_shard_(num_stripes_ / table_.num_shards()) {
  assert(stripes_per_shard_ % kStripesAtOnce == 0);
}

bool MergedValueCache::MakeStripes() {
  MutexLock lock(&stripes_mutex_);
  if (stripes() != nullptr) {
    return true;
  }
  if (!table_.ChargeOther(num_stripes_ * sizeof(Stripe))) {
    return false;
  }
  owned_stripes_.reset(new Stripe[num_stripes_]);
  stripes_.store(owned_stripes_.get(), std::memory_order_release);
  return true;
}

SequenceNumber MergedValueCache::FlushedOf(uint64_t hash) const {
  return std::max(
      stripes()[StripeOf(hash)].flushed.load(std::memory_order_acquire),
      flushed_for_all_.load(std::memory_order_acquire));
}

MergedValueCache::Result MergedValueCache::Lookup(const Slice& user_key,
                                                  SequenceNumber read_seq,
                                                  uint64_t generation,
                                                  Ref* ref) {
  ref->Reset();
  const Stripe* const stripes = this->stripes();
  if (stripes == nullptr) {
    return Result::kMiss;
  }
  const uint64_t hash = table_.HashOf(user_key);
  if (stripes[StripeOf(hash)].entries.load(std::memory_order_relaxed) == 0) {
    return Result::kMiss;
  }
  const SequenceNumber flushed = FlushedOf(hash);
  SieveTable::LockedShard shard(&table_, table_.ShardOf(hash));
  auto* const entry = static_cast<Entry*>(shard.Find(user_key, hash));
  if (entry == nullptr) {
    return Result::kMiss;
  }
  if (!entry->IsGoodFor(flushed) || entry->generation < generation) {
    // No reader that begins later can use the entry.
    shard.Remove(entry);
    return Result::kStale;
  }
  if (entry->generation != generation || entry->seq > read_seq) {
    return Result::kStale;
  }
  SieveTable::MarkUsed(entry, Entry::kRead);
  entry->refs.fetch_add(1, std::memory_order_relaxed);
  *ref = Ref(entry);
  return Result::kHit;
}

bool MergedValueCache::Insert(const Slice& user_key, SequenceNumber seq,
                              SequenceNumber frontier, uint64_t generation,
                              const Slice& value) {
  Entry* const entry =
      table_.New<Entry>(user_key, table_.HashOf(user_key), value.size());
  if (entry == nullptr) {
    return false;
  }
  memcpy(entry->value_data(), value.data(), value.size());
  entry->generation = generation;
  entry->seq = seq;
  entry->frontier.store(frontier, std::memory_order_relaxed);
  return Insert(entry);
}

bool MergedValueCache::NoteRefused(const Slice& user_key, const Slice& value) {
  if (table_.Fits<Entry>(user_key, value.size())) {
    return false;
  }
  const uint64_t count = too_large_.fetch_add(1, std::memory_order_relaxed) + 1;
  return (count & (count - 1)) == 0;
}

bool MergedValueCache::Insert(Entry* entry) {
  if (UNLIKELY(stripes() == nullptr) && !MakeStripes()) {
    entry->Unref();
    return false;
  }
  return table_.Insert(entry);
}

bool MergedValueCache::Admits(SieveTable::Entry* old_entry,
                              SieveTable::Entry* new_entry) {
  auto* const old = static_cast<Entry*>(old_entry);
  auto* const entry = static_cast<Entry*>(new_entry);
  const bool was_carried = entry->first_flush != 0;
  if (old != nullptr) {
    if (old->generation == entry->generation && old->seq == entry->seq) {
      RaiseTo(&old->frontier, entry->frontier.load(std::memory_order_relaxed));
    }
    if (old->generation > entry->generation ||
        (old->generation == entry->generation && old->seq >= entry->seq)) {
      return false;
    }
  } else if (was_carried) {
    return false;  // the entry that it was made from has been removed meanwhile
  }
  if (!was_carried) {
    entry->first_flush = flushes_.load(std::memory_order_relaxed) + 1;
    TEST_SYNC_POINT("MergedValueCache::Admits:Numbered");
    if (old != nullptr) {
      // A value that replaces an outdated one belongs to a key that is read
      // repeatedly.
      SieveTable::MarkUsed(entry, Entry::kRead);
    }
  }
  return true;
}

void MergedValueCache::OnAdd(const SieveTable::Entry& entry) {
  stripes()[StripeOf(entry.hash)].entries.fetch_add(1,
                                                    std::memory_order_relaxed);
}

void MergedValueCache::OnRemove(const SieveTable::Entry& entry) {
  stripes()[StripeOf(entry.hash)].entries.fetch_sub(1,
                                                    std::memory_order_relaxed);
}

MergedValueCache::Stats MergedValueCache::GetStats() const {
  Stats stats{table_.GetStats()};
  stats.carried = carried_.load(std::memory_order_relaxed);
  stats.too_large = too_large_.load(std::memory_order_relaxed);
  return stats;
}

//======== MergedValueCache::Flush

MergedValueCache::Flush::Flush(MergedValueCache* cache, bool holds_oldest)
    : cache_(cache),
      holds_oldest_(holds_oldest),
      number_(cache->flushes_.fetch_add(1, std::memory_order_relaxed) + 1),
      seqs_(cache->stripes() != nullptr ? cache->num_stripes_ : 0) {
  // After this loop, a thread that inserts an entry under a shard's mutex sees
  // number_, so the entry has a larger first_flush. All other entries were
  // inserted before, so OnKey() finds them.
  for (size_t i = 0; i < cache->table_.num_shards(); ++i) {
    const SieveTable::LockedShard shard(&cache->table_, i);
  }
}

void MergedValueCache::Flush::OnRangeDeletions(
    FragmentedRangeTombstoneIterator* iter) {
  for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
    OnRangeDeletion(iter->seq());
  }
}

bool MergedValueCache::Flush::OnKey(const Slice& user_key,
                                    SequenceNumber newest, Ref* known) {
  known->Reset();
  largest_ = std::max(largest_, newest);
  if (!has_stripes()) {
    return false;
  }
  const uint64_t hash = cache_->table_.HashOf(user_key);
  const size_t index = cache_->StripeOf(hash);
  seqs_[index] = std::max(seqs_[index], newest);
  if (!carries() ||
      cache_->stripes()[index].entries.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  const SequenceNumber flushed = cache_->FlushedOf(hash);
  const SieveTable::LockedShard shard(&cache_->table_,
                                      cache_->table_.ShardOf(hash));
  auto* const entry = static_cast<Entry*>(shard.Find(user_key, hash));
  if (entry == nullptr || entry->first_flush > number_ ||
      entry->seq >= newest) {
    return false;  // in the last case the entry covers all that is flushed
  }
  entry->first_flush = number_ + 1;
  if (!entry->IsGoodFor(flushed)) {
    return false;
  }
  entry->refs.fetch_add(1, std::memory_order_relaxed);
  *known = Ref(entry);
  return true;
}

bool MergedValueCache::Flush::IsWorthCarrying(const Ref& known) {
  const Entry& entry = *known.entry_;
  return entry.unread_carries < kMaxUnreadCarries ||
         (entry.uses.load(std::memory_order_relaxed) & Entry::kRead) != 0;
}

bool MergedValueCache::Flush::Carry(const Ref& known, SequenceNumber newest,
                                    const Slice& value) {
  const Entry& old = *known.entry_;
  if (!IsWorthCarrying(known)) {
    return false;
  }
  Entry* const entry =
      cache_->table_.New<Entry>(old.key(), old.hash, value.size());
  if (entry == nullptr) {
    return false;
  }
  memcpy(entry->value_data(), value.data(), value.size());
  entry->generation = old.generation;
  entry->seq = newest;
  entry->frontier.store(newest, std::memory_order_relaxed);
  // The new entry counts as used if the old one does, but not as read: a value
  // that is written but never read has to be evicted in the end.
  const uint8_t uses = old.uses.load(std::memory_order_relaxed);
  entry->unread_carries = (uses & Entry::kRead) != 0
                              ? 0
                              : static_cast<uint8_t>(old.unread_carries + 1);
  // The frontier of the new entry may be raised by this flush already. Of all
  // flushes that may still carry values over, this one began first.
  entry->first_flush = number_;
  if (!cache_->Insert(entry)) {
    return false;
  }
  cache_->carried_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void MergedValueCache::Flush::Finish(bool has_shown_all) {
  if (!has_stripes()) {
    // Entries may have been added since the flush began.
    RaiseTo(&cache_->flushed_for_all_, std::max(ranges_, largest_));
    return;
  }
  const bool knows_others = has_shown_all && carries();
  const SequenceNumber for_all =
      cache_->flushed_for_all_.load(std::memory_order_acquire);
  // For each stripe, the frontiers of the entries are raised first, and then
  // the number that readers compare them with.
  for (size_t i = 0; i < cache_->num_stripes_;) {
    const SieveTable::LockedShard shard(&cache_->table_,
                                        i / cache_->stripes_per_shard_);
    for (const size_t end = i + kStripesAtOnce; i < end; ++i) {
      if (seqs_[i] == 0) {
        continue;
      }
      Stripe* const stripe = &cache_->stripes()[i];
      if (knows_others && stripe->entries.load(std::memory_order_relaxed) > 0) {
        const SequenceNumber flushed =
            std::max(stripe->flushed.load(std::memory_order_relaxed), for_all);
        shard.ForEach(
            i, cache_->stripes_per_shard_ - 1,
            [this, flushed](SieveTable::Entry* found) {
              auto* const entry = static_cast<Entry*>(found);
              if (entry->first_flush <= number_ && entry->IsGoodFor(flushed)) {
                RaiseTo(&entry->frontier, largest_);
              }
            });
      }
      RaiseTo(&stripe->flushed, seqs_[i]);
    }
  }
  RaiseTo(&cache_->flushed_for_all_, ranges_);
}

}  // namespace ROCKSDB_NAMESPACE
