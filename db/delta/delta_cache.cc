//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_cache.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "monitoring/statistics_impl.h"
#include "options/cf_options.h"
#include "options/strata/delta_options.h"
#include "rocksdb/table.h"

namespace ROCKSDB_NAMESPACE {

// An operand of an entry. Its value ends at offset `value_end` of the values,
// which follow the items.
struct DeltaCache::Item {
  SequenceNumber seq = 0;
  uint64_t epoch = 0;
  size_t value_end = 0;
};

// The payload: an Item for each operand, then their values.
struct DeltaCache::Entry : public SieveTable::Entry {
  uint64_t generation = 0;
  SequenceNumber anchor = 0;
  // Newest sequence number of the list and the anchor.
  SequenceNumber newest_seq = 0;
  std::atomic<uint64_t> epoch{0};
  std::atomic<uint64_t> bucket{0};
  size_t num_operands = 0;

  Item* items() { return reinterpret_cast<Item*>(this + 1); }
  const Item* items() const { return reinterpret_cast<const Item*>(this + 1); }
  char* values() { return reinterpret_cast<char*>(items() + num_operands); }
  const char* values() const {
    return reinterpret_cast<const char*>(items() + num_operands);
  }
};

//======== DeltaCache::Ref

DeltaCache::Ref& DeltaCache::Ref::operator=(Ref&& other) noexcept {
  if (this != &other) {
    Reset();
    entry_ = std::exchange(other.entry_, nullptr);
    epoch_ = other.epoch_;
  }
  return *this;
}

void DeltaCache::Ref::Reset() {
  if (entry_ != nullptr) {
    entry_->Unref();
    entry_ = nullptr;
  }
}

SequenceNumber DeltaCache::Ref::anchor() const { return entry_->anchor; }

size_t DeltaCache::Ref::size() const { return entry_->num_operands; }

DeltaOperands::Operand DeltaCache::Ref::operator[](size_t i) const {
  assert(i < size());
  const Entry* const entry = entry_;
  const Item* const items = entry->items();
  const size_t begin = i == 0 ? 0 : items[i - 1].value_end;
  DeltaOperands::Operand operand;
  operand.seq = items[i].seq;
  operand.epoch = items[i].epoch;
  operand.value = Slice(entry->values() + begin, items[i].value_end - begin);
  return operand;
}

bool DeltaCache::Ref::IsUpToDate(const View& view) const {
  return entry_->epoch.load(std::memory_order_relaxed) >= view.horizon &&
         entry_->bucket.load(std::memory_order_relaxed) >= view.bucket;
}

void DeltaCache::Ref::PinTo(Cleanable* cleanable) const {
  entry_->refs.fetch_add(1, std::memory_order_relaxed);
  cleanable->RegisterCleanup(
      [](void* entry, void* /*unused*/) {
        static_cast<Entry*>(entry)->Unref();
      },
      entry_, nullptr);
}

void DeltaCache::Ref::Confirm(const View& view) const {
  RaiseTo(&entry_->epoch, view.horizon);
  RaiseTo(&entry_->bucket, view.bucket);
}

//======== DeltaCache

void DeltaCache::RaiseTo(std::atomic<uint64_t>* number, uint64_t to) {
  uint64_t old = number->load(std::memory_order_relaxed);
  while (old < to && !number->compare_exchange_weak(old, to)) {
  }
}

std::unique_ptr<DeltaCache> DeltaCache::Create(
    const ImmutableOptions& ioptions, const MutableCFOptions& options) {
  const auto* const table =
      options.table_factory->GetOptions<BlockBasedTableOptions>();
  std::shared_ptr<CacheReservationManager> reservation;
  if (table != nullptr && table->block_cache != nullptr &&
      table->cache_usage_options.options_overrides
              .at(CacheEntryRole::kDeltaCache)
              .charged != CacheEntryRoleOptions::Decision::kDisabled) {
    reservation = std::make_shared<
        CacheReservationManagerImpl<CacheEntryRole::kDeltaCache>>(
        table->block_cache);
  }
  return std::make_unique<DeltaCache>(DeltaCacheSize(ioptions, options),
                                      std::move(reservation), ioptions.stats);
}

DeltaCache::DeltaCache(size_t capacity,
                       std::shared_ptr<CacheReservationManager> reservation,
                       Statistics* statistics)
    : table_(this, capacity, SieveTable::kMaxShards,
             SieveTable::LargeEntries::kRefused, std::move(reservation)),
      statistics_(statistics) {}

bool DeltaCache::Admits(SieveTable::Entry* old, SieveTable::Entry* entry) {
  if (old == nullptr) {
    return true;
  }
  const auto& a = static_cast<const Entry&>(*old);
  const auto& b = static_cast<const Entry&>(*entry);
  if (a.generation != b.generation) {
    return a.generation < b.generation;
  }
  const uint64_t a_epoch = a.epoch.load(std::memory_order_relaxed);
  const uint64_t b_epoch = b.epoch.load(std::memory_order_relaxed);
  if (a_epoch != b_epoch) {
    return a_epoch < b_epoch;
  }
  // Of two equivalent entries the old one is kept, as it may be in use.
  return a.bucket.load(std::memory_order_relaxed) <
         b.bucket.load(std::memory_order_relaxed);
}

bool DeltaCache::MayUse(const Entry& entry, uint64_t epoch,
                        const View& view) const {
  if (entry.generation != view.generation || entry.newest_seq > view.read_seq ||
      epoch > view.horizon || epoch < view.floor) {
    return false;
  }
  return epoch >= fold_epoch_.load(std::memory_order_acquire) ||
         (view.bucket != 0 &&
          entry.bucket.load(std::memory_order_relaxed) == view.bucket);
}

DeltaCache::Ref DeltaCache::Lookup(const Slice& user_key, const View& view) {
  Ref ref;
  ref.entry_ = static_cast<Entry*>(table_.Find(user_key));
  if (ref.found()) {
    // Loaded only once: it may be raised to a value that this reader must not
    // use.
    ref.epoch_ = ref.entry_->epoch.load(std::memory_order_relaxed);
    if (MayUse(*ref.entry_, ref.epoch_, view)) {
      SieveTable::MarkUsed(ref.entry_);
    } else {
      ref.Reset();
    }
  }
  RecordTick(statistics_, ref.found() ? DELTA_CACHE_HIT : DELTA_CACHE_MISS);
  return ref;
}

void DeltaCache::Insert(const Slice& user_key, const View& view,
                        SequenceNumber anchor, const DeltaOperands& operands,
                        size_t count) {
  assert(count > 0 && count <= operands.size());
  assert(operands[count - 1].seq > anchor);
  if (view.bucket == 0 &&
      view.horizon < fold_epoch_.load(std::memory_order_acquire)) {
    return;  // no reader could use it
  }
  size_t payload = count * sizeof(Item);
  for (size_t i = 0; i < count; ++i) {
    payload += operands[i].value.size();
  }
  Entry* const entry =
      table_.New<Entry>(user_key, table_.HashOf(user_key), payload);
  if (entry == nullptr) {
    return;
  }
  entry->generation = view.generation;
  entry->anchor = anchor;
  entry->newest_seq = std::max(anchor, operands[0].seq);
  entry->epoch.store(view.horizon, std::memory_order_relaxed);
  entry->bucket.store(view.bucket, std::memory_order_relaxed);
  entry->num_operands = count;
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    const DeltaOperands::Operand& operand = operands[i];
    memcpy(entry->values() + end, operand.value.data(), operand.value.size());
    end += operand.value.size();
    new (entry->items() + i) Item{operand.seq, operand.epoch, end};
  }
  if (table_.Insert(entry)) {
    RecordTick(statistics_, DELTA_CACHE_ADD);
  }
}

void DeltaCache::OnFold(uint64_t next_epoch) {
  RaiseTo(&fold_epoch_, next_epoch);
}

}  // namespace ROCKSDB_NAMESPACE
