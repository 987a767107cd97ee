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
#include "options/strata/merged_value_options.h"
#include "port/likely.h"
#include "rocksdb/table.h"
#include "util/hash.h"
#include "util/math.h"
#include "util/mutexlock.h"
#include "util/random.h"
#include "util/strata/free_list_arena.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns how many parts of of_size bytes the capacity has, rounded down to a
// power of two, within [min, max].
size_t PartsOf(size_t capacity, size_t of_size, size_t min, size_t max) {
  const size_t wanted = std::min(std::max(capacity / of_size, min), max);
  return size_t{1} << FloorLog2(wanted);
}

// Returns the seed of the hashes. It is random, so that the keys that share a
// stripe cannot be predicted; debug builds use a constant for tests.
uint64_t NewSeed(const void* cache) {
#ifdef NDEBUG
  return Random64(reinterpret_cast<uintptr_t>(cache)).Next();
#else
  (void)cache;
  return 301;
#endif
}

void RaiseTo(std::atomic<SequenceNumber>* number, SequenceNumber to) {
  SequenceNumber old = number->load(std::memory_order_relaxed);
  while (old < to && !number->compare_exchange_weak(old, to)) {
  }
}

}  // namespace

// Allocated as one block of memory: this struct, then the key, then the value.
struct MergedValueCache::Entry {
  std::atomic<uint32_t> refs{1};  // the table's and those of Ref objects
  // Bits of uses: the entry was used since the hand last passed it; the entry
  // was read since a flush carried it over.
  static constexpr uint8_t kUsed = 1;
  static constexpr uint8_t kRead = 2;
  std::atomic<uint8_t> uses{0};
  // Number of consecutive times that the entry was carried over unread.
  uint8_t unread_carries = 0;
  uint32_t key_size;
  uint32_t value_size;
  uint64_t hash;
  uint64_t generation;
  SequenceNumber seq;
  std::atomic<SequenceNumber> frontier;
  // The members from here on are guarded by the shard's mutex.

  // Number of the first flush that may raise the frontier: once it has passed
  // all of its entries, it is known to have none of the key above seq.
  uint64_t first_flush;
  // The next entry of the hash chain.
  Entry* next;
  // The neighbours in the shard's list.
  Entry* newer;
  Entry* older;
  bool is_large = false;

  static Entry* New(const Slice& key, const Slice& value) {
    char* const memory = FreeListArena::Process()->Allocate(
        sizeof(Entry) + key.size() + value.size());
    Entry* const entry = new (memory) Entry();
    entry->key_size = static_cast<uint32_t>(key.size());
    entry->value_size = static_cast<uint32_t>(value.size());
    memcpy(memory + sizeof(Entry), key.data(), key.size());
    memcpy(memory + sizeof(Entry) + key.size(), value.data(), value.size());
    return entry;
  }
  void Unref() {
    const uint32_t before = refs.fetch_sub(1, std::memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
      const size_t size = sizeof(Entry) + key_size + value_size;
      this->~Entry();
      FreeListArena::Process()->Free(reinterpret_cast<char*>(this), size);
    }
  }
  static size_t SizeOf(const Slice& key, const Slice& value) {
    return FreeListArena::RoundUp(sizeof(Entry) + key.size() + value.size()) +
           sizeof(Entry*);
  }
  size_t size() const { return SizeOf(key(), value()); }
  const char* data() const {
    return reinterpret_cast<const char*>(this) + sizeof(Entry);
  }
  // Returns true if no file can have a newer entry of the key. flushed: largest
  // sequence number in files of entries that may affect the key (FlushedOf()).
  bool IsGoodFor(SequenceNumber flushed) const {
    return std::max(seq, frontier.load(std::memory_order_relaxed)) >= flushed;
  }
  Slice key() const { return Slice(data(), key_size); }
  Slice value() const { return Slice(data() + key_size, value_size); }
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
    : seed_(NewSeed(this)),
      num_stripes_(
          PartsOf(capacity, kBytesPerStripe, kMinStripes, kMaxStripes)),
      capacity_(capacity),
      num_shards_(PartsOf(capacity, kBytesPerShard, 1, kMaxShards)),
      stripes_per_shard_(num_stripes_ / num_shards_),
      shards_(new Shard[num_shards_]),
      reservation_(std::move(reservation)) {}

MergedValueCache::~MergedValueCache() {
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

uint64_t MergedValueCache::HashOf(const Slice& user_key) const {
  return Hash64(user_key.data(), user_key.size(), seed_);
}

bool MergedValueCache::MakeStripes() {
  MutexLock lock(&stripes_mutex_);
  if (stripes() != nullptr) {
    return true;
  }
  if (!Charge()) {
    return false;
  }
  owned_stripes_.reset(new Stripe[num_stripes_]);
  for (size_t i = 0; i < num_shards_; ++i) {
    MutexLock shard_lock(&shards_[i].mutex);
    shards_[i].chains_per_stripe = 1;
    shards_[i].chains.assign(stripes_per_shard_, nullptr);
  }
  // This is done last: a thread that sees the stripes uses the chains.
  stripes_.store(owned_stripes_.get(), std::memory_order_release);
  return true;
}

SequenceNumber MergedValueCache::FlushedOf(uint64_t hash) const {
  return std::max(
      stripes()[StripeOf(hash)].flushed.load(std::memory_order_acquire),
      flushed_for_all_.load(std::memory_order_acquire));
}

MergedValueCache::Entry** MergedValueCache::ChainOf(Shard* shard,
                                                    uint64_t hash) {
  shard->mutex.AssertHeld();
  const size_t stripe = StripeOf(hash) & (stripes_per_shard_ - 1);
  // Uses bits of the hash that do not select the stripe.
  const size_t chain = (hash >> 40) & (shard->chains_per_stripe - 1);
  return &shard->chains[stripe * shard->chains_per_stripe + chain];
}

void MergedValueCache::GrowChains(Shard* shard) {
  shard->mutex.AssertHeld();
  shard->chains_per_stripe *= 2;
  shard->chains.assign(stripes_per_shard_ * shard->chains_per_stripe, nullptr);
  for (const List* list : {&shard->small, &shard->large}) {
    for (Entry* entry = list->oldest; entry != nullptr; entry = entry->newer) {
      Entry** const chain = ChainOf(shard, entry->hash);
      entry->next = *chain;
      *chain = entry;
    }
  }
}

MergedValueCache::Entry* MergedValueCache::Find(Shard* shard, uint64_t hash,
                                                const Slice& user_key) {
  Entry* entry = *ChainOf(shard, hash);
  while (entry != nullptr &&
         (entry->hash != hash || entry->key() != user_key)) {
    entry = entry->next;
  }
  return entry;
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
  const uint64_t hash = HashOf(user_key);
  if (stripes[StripeOf(hash)].entries.load(std::memory_order_relaxed) == 0) {
    return Result::kMiss;
  }
  const SequenceNumber flushed = FlushedOf(hash);
  Shard* const shard = ShardOf(hash);
  MutexLock lock(&shard->mutex);
  Entry* const entry = Find(shard, hash, user_key);
  if (entry == nullptr) {
    return Result::kMiss;
  }
  if (!entry->IsGoodFor(flushed) || entry->generation < generation) {
    // No reader that begins later can use the entry.
    Remove(shard, entry);
    return Result::kStale;
  }
  if (entry->generation != generation || entry->seq > read_seq) {
    return Result::kStale;
  }
  entry->uses.store(Entry::kUsed | Entry::kRead, std::memory_order_relaxed);
  entry->refs.fetch_add(1, std::memory_order_relaxed);
  *ref = Ref(entry);
  return Result::kHit;
}

bool MergedValueCache::Insert(const Slice& user_key, SequenceNumber seq,
                              SequenceNumber frontier, uint64_t generation,
                              const Slice& value) {
  if (!IsWorthIt(user_key, value)) {
    return false;
  }
  Entry* const entry = Entry::New(user_key, value);
  entry->hash = HashOf(user_key);
  entry->generation = generation;
  entry->seq = seq;
  entry->frontier.store(frontier, std::memory_order_relaxed);
  return Insert(entry, /*was_carried=*/false);
}

bool MergedValueCache::IsWorthIt(const Slice& user_key, const Slice& value) {
  constexpr size_t kMaxSize = std::numeric_limits<uint32_t>::max();
  if (room_.load(std::memory_order_relaxed) != kAnyRoom &&
      inserts_to_question_.fetch_sub(1, std::memory_order_relaxed) <= 1) {
    room_.store(kAnyRoom, std::memory_order_relaxed);
  }
  return user_key.size() <= kMaxSize && value.size() <= kMaxSize &&
         Entry::SizeOf(user_key, value) <= Limit();
}

bool MergedValueCache::NoteRefused(const Slice& user_key, const Slice& value) {
  if (Entry::SizeOf(user_key, value) <= Limit()) {
    return false;
  }
  const uint64_t count = too_large_.fetch_add(1, std::memory_order_relaxed) + 1;
  return (count & (count - 1)) == 0;
}

bool MergedValueCache::Insert(Entry* entry, bool was_carried) {
  if (UNLIKELY(stripes() == nullptr) && !MakeStripes()) {
    entry->Unref();
    return false;
  }
  Shard* const shard = ShardOf(entry->hash);
  bool is_large = false;
  {
    MutexLock lock(&shard->mutex);
    Entry* const old = Find(shard, entry->hash, entry->key());
    if (old != nullptr) {
      if (old->generation == entry->generation && old->seq == entry->seq) {
        RaiseTo(&old->frontier,
                entry->frontier.load(std::memory_order_relaxed));
      }
      if (old->generation > entry->generation ||
          (old->generation == entry->generation && old->seq >= entry->seq)) {
        entry->Unref();
        return false;
      }
    } else if (was_carried) {
      entry->Unref();  // the old entry has been removed meanwhile
      return false;
    }
    const size_t size = entry->size();
    if (size > Limit()) {
      entry->Unref();  // the limit has been lowered meanwhile
      return false;
    }
    entry->is_large = is_large = IsLarge(size);
    if (!was_carried) {
      entry->first_flush = flushes_.load(std::memory_order_relaxed) + 1;
      // A value that replaces an outdated one belongs to a key that is read
      // repeatedly.
      entry->uses.store(old != nullptr ? Entry::kUsed | Entry::kRead : 0,
                        std::memory_order_relaxed);
    }
    entry->refs.fetch_add(1, std::memory_order_relaxed);
    if (old == nullptr && !is_large) {
      // Evicts before the new entry is added, so that it is not evicted itself.
      const size_t limit = ShardLimit();
      EvictDownTo(shard, limit - std::min(limit, size));
    }
    Add(shard, entry, old);
    if (!is_large) {
      EvictDownTo(shard, ShardLimit());  // changes if the old entry was large
    }
  }
  Ref hold(entry);
  if (is_large) {
    MakeRoomForLarge(entry, entry->size());
  }
  if (Charge()) {
    return true;
  }
  MutexLock lock(&shard->mutex);
  if (Find(shard, entry->hash, entry->key()) == entry) {
    Remove(shard, entry);
  }
  return false;
}

void MergedValueCache::Add(Shard* shard, Entry* entry, Entry* old) {
  shard->mutex.AssertHeld();
  Entry** const chain = ChainOf(shard, entry->hash);
  entry->next = *chain;
  *chain = entry;
  stripes()[StripeOf(entry->hash)].entries.fetch_add(1,
                                                     std::memory_order_relaxed);
  List* const list = entry->is_large ? &shard->large : &shard->small;
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
  if (old != nullptr) {
    Remove(shard, old);
  }
  if (shard->small.num_entries + shard->large.num_entries >
      2 * shard->chains.size()) {
    GrowChains(shard);
  }
}

void MergedValueCache::Remove(Shard* shard, Entry* entry) {
  shard->mutex.AssertHeld();
  Entry** link = ChainOf(shard, entry->hash);
  while (*link != entry) {
    link = &(*link)->next;
  }
  *link = entry->next;
  stripes()[StripeOf(entry->hash)].entries.fetch_sub(1,
                                                     std::memory_order_relaxed);
  List* const list = entry->is_large ? &shard->large : &shard->small;
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

bool MergedValueCache::EvictOne(Shard* shard, List* list, const Entry* keep,
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

void MergedValueCache::EvictDownTo(Shard* shard, size_t bytes) {
  shard->mutex.AssertHeld();
  while (shard->small.bytes > bytes) {
    EvictOne(shard, &shard->small, /*keep=*/nullptr, /*max_steps=*/SIZE_MAX);
  }
}

void MergedValueCache::MakeRoomForLarge(const Entry* keep, size_t size) {
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
    MutexLock lock(&shards_[i].mutex);
    EvictDownTo(&shards_[i], ShardLimit());
  }
}

void MergedValueCache::SetCapacity(size_t capacity) {
  capacity_.store(capacity, std::memory_order_relaxed);
  MakeRoomForLarge(/*keep=*/nullptr, /*size=*/0);
  if (stripes() != nullptr) {
    Charge();
  }
}

bool MergedValueCache::Charge() {
  if (reservation_ == nullptr) {
    return true;
  }
  const size_t stripes = num_stripes_ * (sizeof(Stripe) + sizeof(Entry*));
  const auto wanted = [this, stripes] {
    const size_t bytes = bytes_.load(std::memory_order_relaxed) + stripes;
    return (bytes + kChargeStep - 1) / kChargeStep * kChargeStep;
  };
  // Up to one step more than needed may stay charged: a full cache grows and
  // shrinks by an entry all the time.
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
    // The block cache had no room a short time ago. Nothing is given back to it
    // either, since the bytes would soon be needed again.
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
  for (size_t i = 0; i < num_shards_; ++i) {
    const Shard& shard = shards_[i];
    MutexLock lock(&shard.mutex);
    stats.entries += shard.small.num_entries + shard.large.num_entries;
    stats.bytes += shard.small.bytes + shard.large.bytes;
    stats.evicted += shard.evicted;
    stats.large += shard.large.num_entries;
  }
  stats.too_large = too_large_.load(std::memory_order_relaxed);
  stats.charged = charged_.load(std::memory_order_relaxed);
  stats.carried = carried_.load(std::memory_order_relaxed);
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
  for (size_t i = 0; i < cache->num_shards_; ++i) {
    MutexLock lock(&cache->shards_[i].mutex);
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
  const uint64_t hash = cache_->HashOf(user_key);
  const size_t index = cache_->StripeOf(hash);
  seqs_[index] = std::max(seqs_[index], newest);
  if (!carries() ||
      cache_->stripes()[index].entries.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  const SequenceNumber flushed = cache_->FlushedOf(hash);
  Shard* const shard = cache_->ShardOfStripe(index);
  MutexLock lock(&shard->mutex);
  Entry* const entry = cache_->Find(shard, hash, user_key);
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
  if (!IsWorthCarrying(known) || !cache_->IsWorthIt(old.key(), value)) {
    return false;
  }
  Entry* const entry = Entry::New(old.key(), value);
  entry->hash = old.hash;
  entry->generation = old.generation;
  entry->seq = newest;
  entry->frontier.store(newest, std::memory_order_relaxed);
  // Only kUsed is copied: a value that is written but never read has to be
  // evicted in the end.
  const uint8_t uses = old.uses.load(std::memory_order_relaxed);
  entry->uses.store(uses & Entry::kUsed, std::memory_order_relaxed);
  entry->unread_carries = (uses & Entry::kRead) != 0
                              ? 0
                              : static_cast<uint8_t>(old.unread_carries + 1);
  // The frontier of the new entry may be raised by this flush already. Of all
  // flushes that may still carry values over, this one began first.
  entry->first_flush = number_;
  if (!cache_->Insert(entry, /*was_carried=*/true)) {
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
    Shard* const shard = cache_->ShardOfStripe(i);
    MutexLock lock(&shard->mutex);
    for (const size_t end = i + kStripesAtOnce; i < end; ++i) {
      if (i == cache_->num_stripes_ || cache_->ShardOfStripe(i) != shard) {
        break;
      }
      if (seqs_[i] == 0) {
        continue;
      }
      Stripe* const stripe = &cache_->stripes()[i];
      if (knows_others && stripe->entries.load(std::memory_order_relaxed) > 0) {
        const SequenceNumber flushed =
            std::max(stripe->flushed.load(std::memory_order_relaxed), for_all);
        const size_t chains = shard->chains_per_stripe;
        Entry* const* const first =
            &shard->chains[(i & (cache_->stripes_per_shard_ - 1)) * chains];
        for (Entry* const* chain = first; chain != first + chains; ++chain) {
          for (Entry* entry = *chain; entry != nullptr; entry = entry->next) {
            if (entry->first_flush <= number_ && entry->IsGoodFor(flushed)) {
              RaiseTo(&entry->frontier, largest_);
            }
          }
        }
      }
      RaiseTo(&stripe->flushed, seqs_[i]);
    }
  }
  RaiseTo(&cache_->flushed_for_all_, ranges_);
}

}  // namespace ROCKSDB_NAMESPACE
