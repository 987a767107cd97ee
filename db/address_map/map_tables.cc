// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_tables.h"

#include <algorithm>
#include <utility>

#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The first table of a map that expects few entries has 1 << kFirstShardBits
// shards. Each next table has four times as many, up to 1 << kPartBits.
constexpr uint32_t kFirstShardBits = 2;
// Buckets per shard of a small table, i.e. of a table with fewer than
// 1 << kPartBits shards: 32 KiB, room for 1,118 entries.
constexpr uint32_t kSmallStride = 64;
constexpr uint32_t kMaxShardBits = 24;
// Buckets per shard beyond which the next table gets more shards instead of
// longer ones: 2 MiB, about 70,000 entries.
constexpr uint32_t kMaxStride = 4096;
constexpr uint32_t kPageBuckets = 8;
static_assert(kPageBuckets * sizeof(MapBucket) == 4096);
// Maximum fill of a shard after shrinking, in percent. It leaves room to grow
// again and is well above half of the capacity, below which a shard shrinks.
constexpr uint32_t kShrunkPercent = 75;

uint32_t RoundUpToPage(uint64_t buckets) {
  return static_cast<uint32_t>((buckets + kPageBuckets - 1) / kPageBuckets *
                               kPageBuckets);
}

// Copies an entry to its place in the buckets `to`, which are or will be those
// of the shard.
void CopyEntry(const MapBucket& from, uint32_t i, const MapKeyHash& key,
               const MapShardView& to, MapShard* shard) {
  const uint32_t home =
      to.HomeOf(key, from.SeqBits(i), MapBucket::RawModeOf(from.Meta(i)));
  uint32_t index = 0;
  MapBucket* const b = to.TakePlace(key, home, &index);
  shard->SetHigh(static_cast<uint32_t>(b - to.base), index, key);
  b->CopyEntry(index, from, i);
}

// Calls fn(bucket, index, key) for each entry of the shard.
// REQUIRES: the shard's mutex is held.
template <typename Fn>
void ForEachEntry(const MapTable* table, const MapShard* shard, const Fn& fn) {
  const uint32_t buckets = shard->NumBuckets();
  for (uint32_t n = 0; n < buckets; ++n) {
    const MapBucket& b = shard->range[n];
    b.ForEach([&](uint32_t i) { fn(b, i, table->KeyAt(shard, n, i)); });
  }
}

}  // namespace

std::unique_ptr<MapTable> MapTables::NewTable(uint32_t shard_bits,
                                              uint32_t stride, Status* status) {
  const size_t fixed = MapTable::FixedBytes(shard_bits);
  *status = memory_->Add(fixed);
  if (!status->ok()) {
    return nullptr;
  }
  std::unique_ptr<MapTable> table = MapTable::Create(shard_bits, stride);
  if (table == nullptr) {
    memory_->Sub(fixed);
    *status = Status::MemoryLimit("Address map: cannot reserve address space");
  }
  return table;
}

Status MapTables::MakeFirstTable() {
  std::lock_guard<std::mutex> lock(tables_mutex_);
  if (current_.load(std::memory_order_relaxed) != nullptr) {
    return Status::OK();
  }
  uint32_t bits = kFirstShardBits;
  while (bits < MapBucket::kPartBits &&
         expected_ >> bits > Capacity(kSmallStride) * 3 / 4) {
    bits += 2;
  }
  uint32_t stride = kSmallStride;
  if (bits == MapBucket::kPartBits) {
    while (bits < kMaxShardBits && expected_ >> bits > 16384) {
      ++bits;
    }
    const uint64_t want = (expected_ >> bits) * 3 / 2 / 16;
    while (stride < kMaxStride && stride < want) {
      stride *= 2;
    }
  }
  Status s;
  std::unique_ptr<MapTable> first = NewTable(bits, stride, &s);
  if (first == nullptr) {
    return s;
  }
  tables_.push_back(std::move(first));
  current_.store(tables_.back().get(), std::memory_order_release);
  return s;
}

Status MapTables::MakeNextTable(MapTable* table) {
  std::lock_guard<std::mutex> lock(tables_mutex_);
  if (table->next.load(std::memory_order_relaxed) != nullptr) {
    return Status::OK();
  }
  uint32_t bits = table->shard_bits;
  uint32_t stride = table->stride;
  if (table->IsSmall()) {
    bits += 2;
  } else if (stride < kMaxStride || bits + 2 > kMaxShardBits) {
    stride *= 4;
  } else {
    bits += 2;
  }
  Status s;
  std::unique_ptr<MapTable> next = NewTable(bits, stride, &s);
  if (next == nullptr) {
    return s;
  }
  tables_.push_back(std::move(next));
  table->next.store(tables_.back().get(), std::memory_order_release);
  return s;
}

Status MapTables::LockWithRoom(const MapKeyHash& key, MapTable** table,
                               MapShard** shard, Lock* lock) {
  if (Current() == nullptr) {
    const Status s = MakeFirstTable();
    if (!s.ok()) {
      return s;
    }
  }
  for (;;) {
    if (lock->owns_lock()) {
      lock->unlock();
    }
    *shard = LockShard(key, table, lock);
    MapShard* const s = *shard;
    if (s->Count() + 1 <= Capacity(s->NumBuckets())) {
      return Status::OK();
    }
    if (s->NumBuckets() < (*table)->stride) {
      const Status status = GrowShard(*table, s);
      if (!status.ok()) {
        return status;
      }
      continue;  // locks again; simple, and rare
    }
    const Status status = MakeNextTable(*table);
    if (!status.ok()) {
      return status;
    }
    MoveShard(*table, s);
  }
}

Status MapTables::GrowShard(MapTable* table, MapShard* shard) {
  const uint32_t old_buckets = shard->NumBuckets();
  const uint32_t new_buckets =
      std::min(table->stride,
               old_buckets + RoundUpToPage(std::max(1u, old_buckets / 16)));
  Status s = memory_->Add((new_buckets - old_buckets) * table->BucketBytes());
  if (s.ok()) {
    ResizeShard(table, shard, new_buckets);
  }
  return s;
}

// Gives memory back after mass deletes. The removals pay for the cost: a shard
// grows by 1/16 and shrinks to at most kShrunkPercent, so many entries must be
// removed before it is less than half full and shrinks.
void MapTables::Shrink(MapTable* table, MapShard* shard) {
  const uint32_t old_buckets = shard->NumBuckets();
  const uint64_t count = shard->Count();
  // An empty shard of a small table keeps its last page, as the page may soon
  // be used again. Larger tables, which have a thousand shards or more, give
  // all pages of empty shards back.
  const bool gives_all = count == 0 && !table->IsSmall();
  if (old_buckets <= kPageBuckets && !gives_all) {
    return;
  }
  // If there is a next table, insertions move the shards there, where they take
  // no more memory than their entries need. Without insertions, the memory is
  // given back here.
  const uint32_t new_buckets =
      gives_all ? 0
                : RoundUpToPage(
                      count * 100 / (MapBucket::kEntries * kShrunkPercent) + 1);
  if (new_buckets >= old_buckets) {
    return;
  }
  ResizeShard(table, shard, new_buckets);
  // Late readers find zeros and then the changed version.
  table->GiveBack(shard, new_buckets, old_buckets - new_buckets);
  memory_->Sub((old_buckets - new_buckets) * table->BucketBytes());
}

void MapTables::ResizeShard(MapTable* table, MapShard* shard,
                            uint32_t new_buckets) {
  TEST_SYNC_POINT_CALLBACK("MapTables::ResizeShard:Begin", shard);
  const uint32_t old_buckets = shard->NumBuckets();
  std::vector<uint16_t> high;
  if (shard->high != nullptr) {
    high.assign(shard->HighOf(0), shard->HighOf(old_buckets));
  }
  std::lock_guard<std::mutex> lock(table->scratch_mutex);
  MapBucket* const copy = static_cast<MapBucket*>(table->scratch.Get());
  if (old_buckets > table->scratch_used) {
    memory_->AddAlways((old_buckets - table->scratch_used) * sizeof(MapBucket));
    table->scratch_used = old_buckets;
  }
  // The scratch area may still be read by late readers of the shard that used
  // it last. A reader that observes the stores below also observes that the
  // version of that shard changed, because scratch_mutex orders the change
  // before these stores.
  MapFence::Release();
  for (uint32_t n = 0; n < old_buckets; ++n) {
    copy[n].CopyFrom(shard->range[n]);
  }
  shard->BeginWrite();
  shard->base.store(copy, std::memory_order_relaxed);
  EndWrite(shard);
  // Readers that still use the range find that the version has changed.
  MapFence::Release();
  for (uint32_t n = 0; n < old_buckets; ++n) {
    shard->range[n].Clear();
  }
  TEST_SYNC_POINT("MapTables::ResizeShard:Cleared");
  const MapShardView view{shard->range, new_buckets, table->shard_bits};
  for (uint32_t n = 0; n < old_buckets; ++n) {
    const uint16_t* const high_bits =
        high.empty() ? nullptr : high.data() + size_t{n} * MapBucket::kEntries;
    copy[n].ForEach([&](uint32_t i) {
      CopyEntry(copy[n], i, table->KeyAt(shard, copy[n], i, high_bits), view,
                shard);
    });
  }
  shard->BeginWrite();
  shard->base.store(shard->range, std::memory_order_relaxed);
  shard->num_buckets.store(new_buckets, std::memory_order_relaxed);
  EndWrite(shard);
}

// Charges the memory even if it exceeds the limit, because the old shard's
// memory is released immediately afterwards.
void MapTables::MakeRoomInChildren(const MapTable* table, const MapShard* shard,
                                   const MapTable* next, MapShard* children) {
  const uint32_t num_children = uint32_t{1}
                                << (next->shard_bits - table->shard_bits);
  uint64_t counts[4] = {};
  assert(num_children <= 4);
  ForEachEntry(table, shard,
               [&](const MapBucket&, uint32_t, const MapKeyHash& key) {
                 ++counts[next->Of(key) - children];
               });
  size_t bytes = 0;
  for (uint32_t c = 0; c < num_children; ++c) {
    // Room for the entries and one more at a fill of 89%.
    const uint32_t want =
        counts[c] == 0
            ? 0
            : RoundUpToPage((counts[c] + 1) * 100 / (MapBucket::kEntries * 89) +
                            1);
    children[c].num_buckets.store(std::min(want, next->stride),
                                  std::memory_order_relaxed);
    children[c].SetCount(counts[c]);
    bytes += children[c].NumBuckets() * next->BucketBytes();
  }
  memory_->AddAlways(bytes);
}

void MapTables::MoveShard(MapTable* table, MapShard* shard) {
  assert(!shard->moved.load());
  MapTable* const next = table->next.load(std::memory_order_relaxed);
  // No other thread accesses the children until `moved` is set.
  MapShard* const children =
      &next->shards[static_cast<size_t>(shard - table->shards.get())
                    << (next->shard_bits - table->shard_bits)];
  MakeRoomInChildren(table, shard, next, children);
  ForEachEntry(table, shard,
               [&](const MapBucket& b, uint32_t i, const MapKeyHash& key) {
                 MapShard* const child = next->Of(key);
                 CopyEntry(b, i, key, next->ViewOf(child), child);
               });
  shard->BeginWrite();
  shard->moved.store(true, std::memory_order_release);
  EndWrite(shard);
  shard->SetCount(0);
  const uint32_t buckets = shard->NumBuckets();
  if (buckets != 0) {
    table->GiveBack(shard, 0, buckets);
    memory_->Sub(buckets * table->BucketBytes());
  }
  if (table->num_moved.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      table->NumShards()) {
    RetireTable(table);
  }
}

void MapTables::RetireTable(MapTable* table) {
  {
    std::lock_guard<std::mutex> lock(table->scratch_mutex);
    table->GiveBackScratch();
    memory_->Sub(table->scratch_used * sizeof(MapBucket));
    table->scratch_used = 0;
  }
  // `high` is read only under the mutex of a shard that has not moved, and
  // every shard has.
  table->high.reset();
  // A later table may have been finished before the current one; the loop
  // skips such tables as well.
  MapTable* t = Current();
  while (t->num_moved.load(std::memory_order_acquire) == t->NumShards()) {
    MapTable* const after = t->next.load(std::memory_order_acquire);
    if (current_.compare_exchange_strong(t, after, std::memory_order_acq_rel)) {
      t = after;
    }
  }
}

void MapTables::HelpMove() {
  MapTable* const table = Current();
  if (table == nullptr ||
      table->next.load(std::memory_order_acquire) == nullptr) {
    return;
  }
  const size_t n = table->cursor.fetch_add(1, std::memory_order_relaxed);
  if (n >= table->NumShards()) {
    return;
  }
  MapShard* const shard = &table->shards[n];
  Lock lock(shard->mutex);
  if (!shard->moved.load(std::memory_order_relaxed)) {
    MoveShard(table, shard);
  }
}

uint64_t MapTables::NumEntries() const {
  std::lock_guard<std::mutex> lock(tables_mutex_);
  uint64_t n = 0;
  for (const auto& table : tables_) {
    if (table->num_moved.load(std::memory_order_acquire) ==
        table->NumShards()) {
      continue;
    }
    for (size_t i = 0; i < table->NumShards(); ++i) {
      // While a shard moves, its children may be filled but not yet in use. The
      // sum is exact if there are no concurrent writers.
      n += table->shards[i].Count();
    }
  }
  return n;
}

size_t MapTables::NumTables() const {
  std::lock_guard<std::mutex> lock(tables_mutex_);
  return tables_.size();
}

}  // namespace ROCKSDB_NAMESPACE
