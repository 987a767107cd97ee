// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/address_map.h"

#ifdef OS_LINUX
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cassert>
#include <string>
#include <thread>

#include "port/likely.h"
#include "port/mmap.h"
#include "port/port.h"
#include "util/math.h"

// Layout.
//
// A table is one lazily zeroed mapping. Each shard owns an equal range of the
// mapping and uses the first num_buckets buckets of it; buckets that it no
// longer needs after removals have no memory behind them. When a shard's range
// is full, the shard moves to the next table, which has ranges four times as
// long or four times as many shards; the other shards follow one by one. Old
// tables stay mapped, without memory behind them: a late reader of an old table
// finds zeros and then the changed version counter.
//
// The home bucket of a direct entry, and of the first kMaxNear versioned
// entries of a key (*near* ones), is a monotone function of the hash, so
// growing and moving go through memory in order, and the entries of a key are
// found together. Superseded entries and all other versioned ones (*far* ones)
// mix in their sequence number: thousands of versions of one key must not form
// one long cluster. The names of far entries are in a set beside the table
// (FarNames), so that far entries can be found by the key as well. An entry
// whose home bucket is full goes to the next bucket with room. `over` of a
// bucket is the exact number of entries that went past it; `past` is a filter
// of their hashes. A search ends at the first bucket that no entry with the
// searched hash bits went past.
//
// A small map begins with four shards of up to 64 buckets, and each next table
// has four times as many shards until there are 1,024. A map of a thousand
// entries therefore takes some tens of KB. The shard of a small table does not
// determine the 10 highest bits of hi. An array beside the buckets holds them
// for the operations that need whole hashes: moving entries and walking the
// map. A lookup compares the other 86 bits. A small table has at most 300,000
// entries, and the probability that two of their keys agree in these 86 bits is
// below 1 in 10^15.
//
// Entry, 26 bytes (hash: hi 64 bits, lo 32 bits; the 10 highest bits of hi
// follow from the shard, except in small tables):
//   id    hi << 10 | lo bits 0-9
//   seq   low 48 bits of the sequence number << 16 | lo bits 10-25
//   loc   offset 32 | size 18 | slot bits 0-13
//   meta  slot bits 14-19 | lo bits 26-31 | mode 2 | extension 2
// The mode is the value of MapMode for near entries and 3 for far entries.
// Extension: 0: birth is 0. 1: birth is the number of the entry's file.
// 2: the first word of loc is the index of a side cell that contains
//   word 0: offset 32 | size 32
//   word 1: slot 24 | high 8 bits of the sequence number | link cell 32
//   word 2: birth
// and the link cell, if any, contains the sequence number and birth of the next
// older entry of the chain.

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint32_t kBucketEntries = 19;
// Number of high bits of a hash that are not stored in entries.
constexpr uint32_t kPartBits = 10;
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
constexpr size_t kPageSize = 4096;
constexpr uint32_t kPageBuckets = 8;
constexpr size_t kChargeStep = 256 << 10;
constexpr int kMaxSpins = 64;
// Maximum fill of a shard after shrinking, in percent. It leaves room to grow
// again and is well above half of the capacity, below which a shard shrinks.
constexpr uint32_t kShrunkPercent = 75;

constexpr uint64_t kSeqMask = (uint64_t{1} << 48) - 1;
constexpr uint32_t kSizeLimit = 1 << 18;
constexpr uint32_t kSlotLimit = 1 << 20;

// Maximum number of versioned entries of one key that share a home bucket,
// which has room for 19 entries.
constexpr size_t kMaxNear = 4;
// A mode that exists only in the table: a versioned entry whose home bucket
// depends on the sequence number.
constexpr uint32_t kFarMode = 3;
// Approximate memory of a name in FarNames, in bytes.
constexpr size_t kFarNameBytes = 80;

enum : uint32_t { kExtNone = 0, kExtOwnFile = 1, kExtSide = 2 };

// ThreadSanitizer does not support fences (and GCC warns about them). It orders
// atomic operations by itself, so it is correct without them.
inline void FenceAcquire() {
#ifndef __SANITIZE_THREAD__
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}
inline void FenceRelease() {
#ifndef __SANITIZE_THREAD__
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

template <typename T>
inline T Load(const std::atomic<T>& word) {
  return word.load(std::memory_order_relaxed);
}
template <typename T, typename V>
inline void Store(std::atomic<T>& word, V value) {
  word.store(static_cast<T>(value), std::memory_order_relaxed);
}

inline uint64_t IdWord(const MapKeyHash& key) {
  return key.hi << 10 | (key.lo & 0x3ff);
}
inline uint64_t Id16(const MapKeyHash& key) { return key.lo >> 10 & 0xffff; }
inline uint32_t Id6(const MapKeyHash& key) { return key.lo >> 26; }

inline uint32_t RawModeOf(uint32_t meta) { return meta >> 2 & 3; }
inline MapMode ModeOf(uint32_t meta) {
  const uint32_t raw = RawModeOf(meta);
  return raw == kFarMode ? MapMode::kVersioned : static_cast<MapMode>(raw);
}
inline uint32_t RawMode(MapMode mode, bool is_far) {
  return mode == MapMode::kVersioned && is_far ? kFarMode
                                               : static_cast<uint32_t>(mode);
}

// Returns the position within the shard, not yet scaled to its bucket count.
inline uint32_t LocOf(const MapKeyHash& key, uint32_t shard_bits) {
  return static_cast<uint32_t>(key.hi << shard_bits >> 32);
}
inline uint32_t MixedLocOf(const MapKeyHash& key, uint64_t seq,
                           uint32_t shard_bits) {
  // Only the low 48 bits, because the entry itself holds no more.
  return LocOf(key, shard_bits) ^
         static_cast<uint32_t>((seq & kSeqMask) * 0x9E3779B97F4A7C15u >> 32);
}
inline uint32_t PlaceLocOf(const MapKeyHash& key, uint64_t seq,
                           uint32_t raw_mode, uint32_t shard_bits) {
  return raw_mode == static_cast<uint32_t>(MapMode::kDirect) ||
                 raw_mode == static_cast<uint32_t>(MapMode::kVersioned)
             ? LocOf(key, shard_bits)
             : MixedLocOf(key, seq, shard_bits);
}
inline uint32_t HomeOf(uint32_t loc, uint32_t num_buckets) {
  return static_cast<uint32_t>(uint64_t{loc} * num_buckets >> 32);
}

inline size_t Capacity(uint32_t num_buckets) {
  return size_t{num_buckets} * kBucketEntries * 92 / 100;
}

inline uint32_t RoundUpToPage(uint64_t buckets) {
  return static_cast<uint32_t>((buckets + kPageBuckets - 1) / kPageBuckets *
                               kPageBuckets);
}

void AvoidHugePages(void* addr, size_t length) {
#if defined(OS_LINUX) && defined(MADV_NOHUGEPAGE)
  // With huge pages, the unused end of each shard's range would become
  // resident.
  (void)madvise(addr, length, MADV_NOHUGEPAGE);
#else
  (void)addr;
  (void)length;
#endif
}

void ReturnMemory(void* addr, size_t length) {
#if defined(OS_LINUX) && defined(MADV_DONTNEED)
  (void)madvise(addr, length, MADV_DONTNEED);
#else
  (void)addr;
  (void)length;
#endif
}

}  // namespace

struct AddressMap::Bucket {
  std::atomic<uint32_t> occupied;  // one bit for each entry
  std::atomic<uint32_t> over;      // number of entries that went past it
  // One bit for each value of the six identity bits in meta; a clear bit means
  // that no entry with this value went past. Bits stay set until `over` is 0 or
  // the shard is resized, so the filter is not exact, but it saves most steps
  // of an unsuccessful search.
  std::atomic<uint64_t> past;
  std::atomic<uint64_t> id[kBucketEntries];
  std::atomic<uint64_t> seq[kBucketEntries];
  std::atomic<uint64_t> loc[kBucketEntries];
  std::atomic<uint16_t> meta[kBucketEntries];

  void StoreEntry(uint32_t i, uint64_t id_word, uint64_t seq_word,
                  uint64_t loc_word, uint32_t meta_word) {
    Store(id[i], id_word);
    Store(seq[i], seq_word);
    Store(loc[i], loc_word);
    Store(meta[i], meta_word);
    Store(occupied, Load(occupied) | uint32_t{1} << i);
  }
};

struct alignas(128) AddressMap::Shard {
  // Read without the mutex.
  std::atomic<uint64_t> version{0};  // odd while a writer changes the shard
  std::atomic<Bucket*> base{nullptr};
  std::atomic<uint32_t> num_buckets{0};
  std::atomic<bool> moved{false};  // to the next table; never false again
  // Used by writers. Guarded by mutex, except that count may be read without.
  std::mutex mutex;
  std::atomic<uint64_t> count{0};
  Bucket* range = nullptr;
  // The kPartBits highest bits of each entry's hash, in bucket order; nullptr
  // if these bits follow from the shard.
  uint16_t* high = nullptr;
  // Bytes that EndWrite() has yet to charge and to release.
  size_t uncharged = 0;
  size_t unreleased = 0;

  void SetHigh(uint32_t bucket, uint32_t index, const MapKeyHash& key) {
    if (high != nullptr) {
      high[size_t{bucket} * kBucketEntries + index] =
          static_cast<uint16_t>(key.hi >> (64 - kPartBits));
    }
  }
};

struct AddressMap::Table {
  Table(uint32_t bits, uint32_t buckets, MemMapping&& m, MemMapping&& s)
      : shard_bits(bits),
        stride(buckets),
        mapping(std::move(m)),
        scratch(std::move(s)),
        shards(new Shard[size_t{1} << bits]) {
    for (size_t i = 0; i < NumShards(); ++i) {
      shards[i].range = static_cast<Bucket*>(mapping.Get()) + i * stride;
      shards[i].base.store(shards[i].range, std::memory_order_relaxed);
    }
    if (IsSmall()) {
      const size_t in_shard = size_t{stride} * kBucketEntries;
      high.reset(new uint16_t[NumShards() * in_shard]);
      for (size_t i = 0; i < NumShards(); ++i) {
        shards[i].high = high.get() + i * in_shard;
      }
    }
  }

  bool IsSmall() const { return shard_bits < kPartBits; }
  // Returns the memory of one bucket, in bytes.
  size_t BucketBytes() const {
    return sizeof(Bucket) + (IsSmall() ? kBucketEntries * sizeof(uint16_t) : 0);
  }

  size_t NumShards() const { return size_t{1} << shard_bits; }
  Shard* Of(const MapKeyHash& key) const {
    return &shards[key.hi >> (64 - shard_bits)];
  }

  const uint32_t shard_bits;
  const uint32_t stride;  // buckets of a shard's range
  MemMapping mapping;
  // Holds a copy of the shard that is being resized, which readers use
  // meanwhile. Only one shard of a table is resized at a time.
  std::mutex scratch_mutex;  // taken after a shard's mutex
  MemMapping scratch;
  size_t scratch_used = 0;  // buckets, for the memory charge
  std::unique_ptr<Shard[]> shards;
  std::unique_ptr<uint16_t[]> high;  // see Shard; not initialized
  std::atomic<Table*> next{nullptr};
  std::atomic<size_t> num_moved{0};
  std::atomic<size_t> cursor{0};  // next shard for HelpMove() to move
};

AddressMap::AddressMap(const Options& options, BlobFileSlotTable* files)
    : files_(files),
      charge_(options.charge),
      expected_(options.expected_entries) {
  static_assert(sizeof(Bucket) == 512);
  static_assert(kNumParts == 1 << kPartBits);
}

AddressMap::~AddressMap() {
  if (charge_ != nullptr && charged_ != 0) {
    charge_->SetCharged(0).PermitUncheckedError();
  }
}

Status AddressMap::Charge(size_t bytes, bool force) {
  std::lock_guard<std::mutex> lock(charge_mutex_);
  const size_t total =
      (used_ + bytes + kChargeStep - 1) / kChargeStep * kChargeStep;
  if (total > charged_ && charge_ != nullptr) {
    Status s = charge_->SetCharged(total);
    if (!s.ok() && !force) {
      charge_->SetCharged(charged_).PermitUncheckedError();
      return s;
    }
    s.PermitUncheckedError();
    charged_ = total;
  }
  used_ += bytes;
  return Status::OK();
}

void AddressMap::Release(size_t bytes) {
  std::lock_guard<std::mutex> lock(charge_mutex_);
  assert(used_ >= bytes);
  used_ -= bytes;
  const size_t total = (used_ + kChargeStep - 1) / kChargeStep * kChargeStep;
  if (total < charged_) {
    charge_->SetCharged(total).PermitUncheckedError();
    charged_ = total;
  }
}

size_t AddressMap::MemoryUsage() const {
  std::lock_guard<std::mutex> lock(charge_mutex_);
  return used_;
}

std::unique_ptr<AddressMap::Table> AddressMap::NewTable(uint32_t shard_bits,
                                                        uint32_t stride,
                                                        Status* status) {
  const size_t fixed = sizeof(Shard) << shard_bits;
  *status = Charge(fixed, false);
  if (!status->ok()) {
    return nullptr;
  }
  const size_t range = size_t{stride} * sizeof(Bucket);
  MemMapping mapping = MemMapping::AllocateLazyZeroed(range << shard_bits);
  MemMapping scratch = MemMapping::AllocateLazyZeroed(range);
  if (mapping.Get() == nullptr || scratch.Get() == nullptr) {
    Release(fixed);
    *status = Status::MemoryLimit("Address map: cannot reserve address space");
    return nullptr;
  }
  AvoidHugePages(mapping.Get(), mapping.Length());
  AvoidHugePages(scratch.Get(), scratch.Length());
  return std::make_unique<Table>(shard_bits, stride, std::move(mapping),
                                 std::move(scratch));
}

OverflowCells* AddressMap::SideOf(const MapKeyHash& key) const {
  // The store follows from the hash, not from the shard: entries keep their
  // cells when shards move.
  return &side_[key.hi >> 58];
}

AddressMap::FarNames* AddressMap::FarOf(const MapKeyHash& key) const {
  return &far_[key.hi >> 58];
}

void AddressMap::FarNames::Add(const MapName& name) {
  std::lock_guard<std::mutex> lock(mutex);
  [[maybe_unused]] const bool is_new = names.insert(name).second;
  assert(is_new);
  count.store(names.size(), std::memory_order_relaxed);
}

void AddressMap::FarNames::Remove(const MapName& name) {
  std::lock_guard<std::mutex> lock(mutex);
  [[maybe_unused]] const size_t removed = names.erase(name);
  assert(removed == 1);
  count.store(names.size(), std::memory_order_relaxed);
}

bool AddressMap::FarNames::Has(const MapName& name) const {
  std::lock_guard<std::mutex> lock(mutex);
  return names.count(name) > 0;
}

std::vector<MapName> AddressMap::FarNames::Below(const MapKeyHash& key,
                                                 SequenceNumber seq) const {
  std::vector<MapName> result;
  if (count.load(std::memory_order_relaxed) > 0) {
    std::lock_guard<std::mutex> lock(mutex);
    const auto end = names.lower_bound(MapName{key, seq, 0});
    for (auto it = names.lower_bound(MapName{key, 0, 0}); it != end; ++it) {
      result.push_back(*it);
    }
  }
  return result;
}

MapKeyHash AddressMap::KeyAt(const Table* table, const Shard* shard,
                             const Bucket& b, uint32_t i,
                             const uint16_t* high) {
  const uint64_t id = Load(b.id[i]);
  const uint64_t part =
      high != nullptr ? high[i]
                      : static_cast<uint64_t>(shard - table->shards.get()) >>
                            (table->shard_bits - kPartBits);
  MapKeyHash key;
  key.hi = part << (64 - kPartBits) | id >> 10;
  key.lo =
      static_cast<uint32_t>((id & 0x3ff) | (Load(b.seq[i]) & 0xffff) << 10) |
      static_cast<uint32_t>(Load(b.meta[i]) >> 4 & 0x3f) << 26;
  return key;
}

MapKeyHash AddressMap::KeyAt(const Table* table, const Shard* shard,
                             uint32_t bucket, uint32_t index) {
  return KeyAt(table, shard, shard->range[bucket], index,
               shard->high == nullptr
                   ? nullptr
                   : shard->high + size_t{bucket} * kBucketEntries);
}

// ---- Searches

void AddressMap::Prefetch(const View& view, uint32_t loc) const {
  if (view.num_buckets == 0) {
    return;
  }
  const char* const b =
      reinterpret_cast<const char*>(view.base + HomeOf(loc, view.num_buckets));
  for (size_t line = 0; line < sizeof(Bucket); line += 64) {
    PREFETCH(b + line, 0, 1);
  }
}

void AddressMap::Prefetch(const MapKeyHash& key) const {
  const Table* const table = current_.load(std::memory_order_acquire);
  if (table != nullptr) {
    // It does not matter if the shard has moved or is changing.
    const View view = ViewOf(table->Of(key), table);
    Prefetch(view, LocOf(key, view.shard_bits));
  }
}

bool AddressMap::Decode(const View& view, const MapKeyHash& key,
                        uint32_t bucket, uint32_t index, Decoded* out) const {
  const Bucket& b = view.base[bucket];
  const uint32_t meta = Load(b.meta[index]);
  const uint64_t loc = Load(b.loc[index]);
  out->seq = Load(b.seq[index]) >> 16;
  out->mode = ModeOf(meta);
  out->is_far = RawModeOf(meta) == kFarMode;
  out->bucket = bucket;
  out->index = index;
  out->has_link = false;
  out->side = OverflowCells::kNone;
  out->link_side = OverflowCells::kNone;
  if ((meta & 3) != kExtSide) {
    out->address.offset = static_cast<uint32_t>(loc >> 32);
    out->address.size = static_cast<uint32_t>(loc >> 14 & (kSizeLimit - 1));
    out->address.slot = static_cast<uint32_t>(loc & 0x3fff) | (meta >> 10)
                                                                  << 14;
    out->birth =
        (meta & 3) == kExtOwnFile ? files_->Number(out->address.slot) : 0;
    return true;
  }
  const OverflowCells* const store = SideOf(key);
  out->side = static_cast<uint32_t>(loc >> 32);
  const OverflowCells::Cell* const cell = store->Get(out->side);
  if (cell == nullptr) {
    return false;  // torn
  }
  const uint64_t word0 = Load(cell->word[0]);
  const uint64_t word1 = Load(cell->word[1]);
  out->address.offset = static_cast<uint32_t>(word0 >> 32);
  out->address.size = static_cast<uint32_t>(word0);
  out->address.slot = static_cast<uint32_t>(word1 >> 40);
  out->seq |= (word1 >> 32 & 0xff) << 48;
  out->birth = Load(cell->word[2]);
  out->link_side = static_cast<uint32_t>(word1);
  if (out->link_side != OverflowCells::kNone) {
    const OverflowCells::Cell* const link = store->Get(out->link_side);
    if (link == nullptr) {
      return false;  // torn
    }
    out->has_link = true;
    out->link_seq = Load(link->word[0]);
    out->link_birth = Load(link->word[1]);
  }
  return true;
}

bool AddressMap::FindTop(const View& view, const MapKeyHash& key,
                         Decoded* out) const {
  if (view.num_buckets == 0) {
    return false;
  }
  const uint64_t id = IdWord(key);
  // Prefetches all cache lines of the bucket at once: a hit needs the last ones
  // as well.
  Prefetch(view, LocOf(key, view.shard_bits));
  uint32_t n = HomeOf(LocOf(key, view.shard_bits), view.num_buckets);
  for (uint32_t step = 0; step < view.num_buckets; ++step) {
    const Bucket& b = view.base[n];
    const uint32_t occupied = Load(b.occupied);
    for (uint32_t i = 0; i < kBucketEntries; ++i) {
      if (Load(b.id[i]) != id || (occupied >> i & 1) == 0 ||
          (Load(b.seq[i]) & 0xffff) != Id16(key)) {
        continue;
      }
      const uint32_t meta = Load(b.meta[i]);
      if ((meta >> 4 & 0x3f) == Id6(key) && ModeOf(meta) == MapMode::kDirect) {
        return Decode(view, key, n, i, out);
      }
    }
    if ((Load(b.past) >> Id6(key) & 1) == 0) {
      return false;
    }
    n = n + 1 == view.num_buckets ? 0 : n + 1;
  }
  return false;
}

template <typename Fn>
bool AddressMap::ScanKey(const View& view, const MapKeyHash& key, uint32_t loc,
                         const Fn& fn) const {
  if (view.num_buckets == 0) {
    return false;
  }
  const uint64_t id = IdWord(key);
  uint32_t n = HomeOf(loc, view.num_buckets);
  for (uint32_t step = 0; step < view.num_buckets; ++step) {
    const Bucket& b = view.base[n];
    const uint32_t occupied = Load(b.occupied);
    for (uint32_t i = 0; i < kBucketEntries; ++i) {
      if (Load(b.id[i]) != id || (occupied >> i & 1) == 0 ||
          (Load(b.seq[i]) & 0xffff) != Id16(key)) {
        continue;
      }
      const uint32_t meta = Load(b.meta[i]);
      if ((meta >> 4 & 0x3f) == Id6(key) && fn(n, i, meta)) {
        return true;
      }
    }
    if ((Load(b.past) >> Id6(key) & 1) == 0) {
      return false;
    }
    n = n + 1 == view.num_buckets ? 0 : n + 1;
  }
  return false;
}

bool AddressMap::FindNear(const View& view, const MapKeyHash& key,
                          SequenceNumber seq, uint64_t birth,
                          Decoded* out) const {
  return ScanKey(view, key, LocOf(key, view.shard_bits),
                 [&](uint32_t n, uint32_t i, uint32_t meta) {
                   return RawModeOf(meta) ==
                              static_cast<uint32_t>(MapMode::kVersioned) &&
                          Load(view.base[n].seq[i]) >> 16 == (seq & kSeqMask) &&
                          Decode(view, key, n, i, out) && out->seq == seq &&
                          out->birth == birth;
                 });
}

bool AddressMap::FindMixed(const View& view, const MapKeyHash& key,
                           SequenceNumber seq, uint64_t birth,
                           Decoded* out) const {
  return ScanKey(
      view, key, MixedLocOf(key, seq, view.shard_bits),
      [&](uint32_t n, uint32_t i, uint32_t meta) {
        const uint32_t raw = RawModeOf(meta);
        return (raw == kFarMode ||
                raw == static_cast<uint32_t>(MapMode::kSuperseded)) &&
               Load(view.base[n].seq[i]) >> 16 == (seq & kSeqMask) &&
               Decode(view, key, n, i, out) && out->seq == seq &&
               out->birth == birth;
      });
}

bool AddressMap::FindVersioned(const View& view, const MapKeyHash& key,
                               SequenceNumber seq, uint64_t birth,
                               Decoded* out) const {
  return FindNear(view, key, seq, birth, out) ||
         (FarOf(key)->count.load(std::memory_order_relaxed) > 0 &&
          FindMixed(view, key, seq, birth, out) &&
          out->mode == MapMode::kVersioned);
}

size_t AddressMap::CountNear(const View& view, const MapKeyHash& key) const {
  size_t count = 0;
  ScanKey(view, key, LocOf(key, view.shard_bits),
          [&](uint32_t, uint32_t, uint32_t meta) {
            count +=
                RawModeOf(meta) == static_cast<uint32_t>(MapMode::kVersioned)
                    ? 1
                    : 0;
            return count >= kMaxNear;
          });
  return count;
}

// ---- Readers

AddressMap::View AddressMap::ViewOf(const Shard* shard, const Table* table) {
  return View{Load(shard->base), Load(shard->num_buckets), table->shard_bits};
}

template <typename Read, typename Again>
void AddressMap::ReadShard(const MapKeyHash& key, const Read& read,
                           const Again& again) const {
  const Table* table = current_.load(std::memory_order_acquire);
  if (table == nullptr) {
    return;
  }
  for (uint32_t spins = 0;;) {
    Shard* const shard = table->Of(key);
    const uint64_t version = shard->version.load(std::memory_order_acquire);
    if (shard->moved.load(std::memory_order_acquire)) {
      table = table->next.load(std::memory_order_acquire);
      continue;
    }
    if ((version & 1) == 0) {
      read(ViewOf(shard, table));
      // The loads above come before the check below.
      FenceAcquire();
      if (shard->version.load(std::memory_order_relaxed) == version) {
        return;
      }
      again();
    }
    if (++spins % kMaxSpins == 0) {
      // The shard's writers follow each other closely. A writer that holds the
      // mutex for long is copying the shard, which does not disturb readers, so
      // there is no need to wait for the mutex.
      const Lock lock(shard->mutex, std::try_to_lock);
      if (lock.owns_lock() && !shard->moved.load(std::memory_order_acquire)) {
        read(ViewOf(shard, table));
        return;
      }
      std::this_thread::yield();
    }
    port::AsmVolatilePause();
  }
}

template <typename Find>
AddressMap::Lookup AddressMap::ReadPinned(const MapKeyHash& key, bool pin,
                                          const Find& find) const {
  Lookup result;
  Decoded entry;
  const auto again = [&] {
    result.pin.Reset();
    result.found = false;
    result.has_direct = false;
  };
  ReadShard(
      key,
      [&](const View& view) {
        result.found = find(view, &entry, &result);
        // Pins inside the validated section: if the entry is unchanged, the
        // slot was not given to another file before the pin.
        if (result.found && pin && files_->Pin(entry.address.slot)) {
          result.pin = MapFilePin(files_, entry.address.slot);
        }
      },
      again);
  if (result.found) {
    result.entry.name = MapName{key, entry.seq, entry.birth};
    result.entry.address = entry.address;
    result.entry.mode = entry.mode;
  }
  return result;
}

bool AddressMap::DirectSeq(const MapKeyHash& key, SequenceNumber* seq) const {
  bool found = false;
  Decoded top;
  ReadShard(
      key, [&](const View& view) { found = FindTop(view, key, &top); },
      [&] { found = false; });
  if (found) {
    *seq = top.seq;
  }
  return found;
}

AddressMap::Lookup AddressMap::FindDirect(const MapKeyHash& key,
                                          bool pin) const {
  return ReadPinned(key, pin,
                    [&](const View& view, Decoded* entry, Lookup* result) {
                      result->has_direct = FindTop(view, key, entry);
                      result->direct_seq = entry->seq;
                      return result->has_direct;
                    });
}

AddressMap::Lookup AddressMap::FindDurableDirect(const MapKeyHash& key,
                                                 bool pin) const {
  return ReadPinned(
      key, pin, [&](const View& view, Decoded* entry, Lookup* result) {
        result->has_direct = FindTop(view, key, entry);
        result->direct_seq = entry->seq;
        bool found = result->has_direct;
        SequenceNumber above = ~SequenceNumber{0};
        while (found && files_->IsPending(entry->address.slot)) {
          // Under a torn read the links could form a cycle.
          if (!entry->has_link || entry->link_seq > above) {
            return false;
          }
          above = entry->link_seq;
          const uint64_t birth = entry->link_birth;
          const Decoded upper = *entry;
          found = FindMixed(view, key, above, birth, entry);
          if (found && upper.seq == entry->seq && upper.birth <= entry->birth) {
            return false;
          }
        }
        return found;
      });
}

AddressMap::Lookup AddressMap::FindByName(const MapName& name, bool pin) const {
  return ReadPinned(
      name.key, pin, [&](const View& view, Decoded* entry, Lookup* result) {
        result->has_direct = FindTop(view, name.key, entry);
        result->direct_seq = entry->seq;
        if (result->has_direct && entry->Is(name)) {
          return true;
        }
        return FindNear(view, name.key, name.seq, name.birth, entry) ||
               FindMixed(view, name.key, name.seq, name.birth, entry);
      });
}

bool AddressMap::MayHaveBelow(const MapKeyHash& key, SequenceNumber seq) const {
  if (FarOf(key)->count.load(std::memory_order_relaxed) > 0) {
    return true;
  }
  bool found = false;
  ReadShard(
      key,
      [&](const View& view) {
        Decoded entry;
        found = ScanKey(view, key, LocOf(key, view.shard_bits),
                        [&](uint32_t n, uint32_t i, uint32_t) {
                          return Decode(view, key, n, i, &entry) &&
                                 (entry.seq < seq || entry.has_link);
                        });
      },
      [&] { found = false; });
  return found;
}

// ---- Writers: one shard

AddressMap::Shard* AddressMap::LockShard(const MapKeyHash& key, Table** table,
                                         Lock* lock) const {
  Table* t = current_.load(std::memory_order_acquire);
  if (t == nullptr) {
    return nullptr;
  }
  for (;;) {
    Shard* const shard = t->Of(key);
    *lock = Lock(shard->mutex);
    if (!shard->moved.load(std::memory_order_relaxed)) {
      *table = t;
      return shard;
    }
    lock->unlock();
    t = t->next.load(std::memory_order_acquire);
  }
}

void AddressMap::BeginWrite(Shard* shard) {
  const uint64_t version = Load(shard->version);
  assert((version & 1) == 0);
  Store(shard->version, version + 1);
  // A reader that observes one of the following stores also observes the odd
  // version.
  FenceRelease();
}

void AddressMap::EndWrite(Shard* shard) {
  const uint64_t version = Load(shard->version);
  assert((version & 1) == 1);
  shard->version.store(version + 1, std::memory_order_release);
  if (shard->uncharged != 0) {
    Charge(shard->uncharged, true).PermitUncheckedError();
    shard->uncharged = 0;
  }
  if (shard->unreleased != 0) {
    Release(shard->unreleased);
    shard->unreleased = 0;
  }
}

namespace {

// Returns the bucket for a new entry and counts the entry in each bucket that
// it goes past. *index: the free position in the returned bucket.
template <typename BucketType>
BucketType* TakePlace(BucketType* base, uint32_t num_buckets, uint32_t home,
                      const MapKeyHash& key, uint32_t* index) {
  constexpr uint32_t kFull = (uint32_t{1} << kBucketEntries) - 1;
  uint32_t n = home;
  for (;;) {
    BucketType& b = base[n];
    const uint32_t occupied = Load(b.occupied);
    if (occupied != kFull) {
      *index = static_cast<uint32_t>(CountTrailingZeroBits(~occupied));
      return &b;
    }
    Store(b.over, Load(b.over) + 1);
    Store(b.past, Load(b.past) | uint64_t{1} << Id6(key));
    n = n + 1 == num_buckets ? 0 : n + 1;
    assert(n != home);
  }
}

}  // namespace

void AddressMap::Place(Shard* shard, const View& view, const MapKeyHash& key,
                       const Decoded& e) {
  const MapAddress& a = e.address;
  uint32_t ext = kExtNone;
  if (e.has_link || e.seq > kSeqMask || a.size >= kSizeLimit ||
      a.slot >= kSlotLimit) {
    ext = kExtSide;
  } else if (e.birth != 0) {
    ext = e.birth == files_->Number(a.slot) ? kExtOwnFile : kExtSide;
  }
  uint64_t loc;
  uint32_t slot_high = 0;
  if (ext == kExtSide) {
    OverflowCells* const store = SideOf(key);
    uint32_t link_index = OverflowCells::kNone;
    if (e.has_link) {
      link_index = store->Allocate(&shard->uncharged);
    }
    const uint32_t index = store->Allocate(&shard->uncharged);
    // The cells may have belonged to other shards; see OverflowCells::Free().
    FenceRelease();
    if (e.has_link) {
      OverflowCells::Cell* const link = store->Get(link_index);
      Store(link->word[0], e.link_seq);
      Store(link->word[1], e.link_birth);
    }
    OverflowCells::Cell* const cell = store->Get(index);
    Store(cell->word[0], uint64_t{a.offset} << 32 | a.size);
    Store(cell->word[1],
          uint64_t{a.slot} << 40 | (e.seq >> 48 & 0xff) << 32 | link_index);
    Store(cell->word[2], e.birth);
    loc = uint64_t{index} << 32;
  } else {
    loc = uint64_t{a.offset} << 32 | uint64_t{a.size} << 14 | (a.slot & 0x3fff);
    slot_high = a.slot >> 14;
  }
  const uint32_t raw_mode = RawMode(e.mode, e.is_far);
  if (raw_mode == kFarMode) {
    FarOf(key)->Add(MapName{key, e.seq, e.birth});
    shard->uncharged += kFarNameBytes;
  }
  const uint32_t home = HomeOf(
      PlaceLocOf(key, e.seq, raw_mode, view.shard_bits), view.num_buckets);
  uint32_t i = 0;
  Bucket* const b = TakePlace(view.base, view.num_buckets, home, key, &i);
  shard->SetHigh(static_cast<uint32_t>(b - view.base), i, key);
  b->StoreEntry(i, IdWord(key), e.seq << 16 | Id16(key), loc,
                slot_high << 10 | Id6(key) << 4 | raw_mode << 2 | ext);
  Store(shard->count, Load(shard->count) + 1);
}

void AddressMap::PlaceVersioned(Shard* shard, const View& view,
                                const MapKeyHash& key, Decoded* entry) {
  entry->mode = MapMode::kVersioned;
  entry->has_link = false;
  entry->is_far = CountNear(view, key) >= kMaxNear;
  Place(shard, view, key, *entry);
}

void AddressMap::Erase(Shard* shard, const View& view, const MapKeyHash& key,
                       const Decoded& e) {
  Bucket& b = view.base[e.bucket];
  Store(b.occupied, Load(b.occupied) & ~(uint32_t{1} << e.index));
  const uint32_t raw_mode = RawMode(e.mode, e.is_far);
  if (raw_mode == kFarMode) {
    FarOf(key)->Remove(MapName{key, e.seq, e.birth});
    shard->unreleased += kFarNameBytes;
  }
  uint32_t n = HomeOf(PlaceLocOf(key, e.seq, raw_mode, view.shard_bits),
                      view.num_buckets);
  while (n != e.bucket) {
    Bucket& passed = view.base[n];
    const uint32_t over = Load(passed.over) - 1;
    assert(over != ~uint32_t{0});
    Store(passed.over, over);
    if (over == 0) {
      Store(passed.past, 0);
    }
    n = n + 1 == view.num_buckets ? 0 : n + 1;
  }
  if (e.side != OverflowCells::kNone) {
    SideOf(key)->Free(e.side);
  }
  if (e.link_side != OverflowCells::kNone) {
    SideOf(key)->Free(e.link_side);
  }
  Store(shard->count, Load(shard->count) - 1);
}

void AddressMap::LoadChain(const View& view, const MapKeyHash& key,
                           Chain* chain) const {
  Decoded e;
  if (!FindTop(view, key, &e)) {
    return;
  }
  chain->push_back(e);
  while (e.has_link) {
    const Decoded upper = e;
    if (!FindMixed(view, key, upper.link_seq, upper.link_birth, &e)) {
      assert(false);
      return;
    }
    chain->push_back(e);
  }
}

// The caller updates the live counts: moving an entry within the table must not
// let the count of its file drop to zero even for a moment.
void AddressMap::StoreChain(Shard* shard, const View& view,
                            const MapKeyHash& key, const Chain& old,
                            Chain* now) {
  for (const Decoded& e : old) {
    Erase(shard, view, key, e);
  }
  for (size_t i = 0; i < now->size(); ++i) {
    Decoded& e = (*now)[i];
    e.mode = i == 0 ? MapMode::kDirect : MapMode::kSuperseded;
    e.has_link = i + 1 < now->size();
    if (e.has_link) {
      e.link_seq = (*now)[i + 1].seq;
      e.link_birth = (*now)[i + 1].birth;
    }
    Place(shard, view, key, e);
  }
}

void AddressMap::CutChain(Shard* shard, const View& view, const MapKeyHash& key,
                          const Chain& chain, size_t first) {
  if (first >= chain.size()) {
    return;
  }
  Chain now;
  for (size_t i = 0; i < first; ++i) {
    now.push_back(chain[i]);
  }
  BeginWrite(shard);
  StoreChain(shard, view, key, chain, &now);
  for (size_t i = first; i < chain.size(); ++i) {
    files_->SubLive(chain[i].address.slot, chain[i].address.size);
  }
  EndWrite(shard);
}

void AddressMap::InsertLocked(Shard* shard, const View& view,
                              const Record& record, uint32_t slot) {
  const MapName& name = record.name;
  Decoded added;
  added.seq = name.seq;
  added.birth = name.birth;
  added.address = MapAddress{slot, record.offset, record.size};
  added.mode = record.direct ? MapMode::kDirect : MapMode::kVersioned;

  Chain old;
  LoadChain(view, name.key, &old);
  Chain now;
  bool placed = !record.direct;
  Decoded replaced;
  bool replaces = false;
  for (const Decoded& e : old) {
    if (!placed && (e.Is(name) || e.OlderThan(name))) {
      now.push_back(added);
      placed = true;
    }
    if (e.Is(name)) {
      replaced = e;
      replaces = true;
    } else {
      now.push_back(e);
    }
  }
  if (!placed) {
    now.push_back(added);
  }
  Decoded versioned;
  bool was_versioned = false;
  if (!replaces) {
    // The chain holds every direct and superseded entry, so an entry with this
    // name can only be versioned.
    was_versioned =
        FindVersioned(view, name.key, name.seq, name.birth, &versioned);
    if (was_versioned) {
      replaced = versioned;
      replaces = true;
    }
  }

  BeginWrite(shard);
  files_->AddLive(slot, record.size);
  if (was_versioned) {
    Erase(shard, view, name.key, versioned);
  }
  if (record.direct || (replaces && !was_versioned)) {
    StoreChain(shard, view, name.key, old, &now);
  }
  if (!record.direct) {
    PlaceVersioned(shard, view, name.key, &added);
  }
  if (replaces) {
    files_->SubLive(replaced.address.slot, replaced.address.size);
  }
  EndWrite(shard);
}

bool AddressMap::RemoveIfInLocked(Shard* shard, const View& view,
                                  const MapName& name, uint32_t slot) {
  Chain old;
  LoadChain(view, name.key, &old);
  Chain now;
  Decoded removed;
  bool in_chain = false;
  for (const Decoded& e : old) {
    if (e.Is(name)) {
      removed = e;
      in_chain = true;
    } else {
      now.push_back(e);
    }
  }
  if (!in_chain &&
      !FindVersioned(view, name.key, name.seq, name.birth, &removed)) {
    return false;
  }
  if (removed.address.slot != slot) {
    return false;
  }
  BeginWrite(shard);
  if (in_chain) {
    StoreChain(shard, view, name.key, old, &now);
  } else {
    Erase(shard, view, name.key, removed);
  }
  files_->SubLive(slot, removed.address.size);
  EndWrite(shard);
  return true;
}

// ---- Changes

Status AddressMap::InsertBatch(uint32_t slot, const Record* records, size_t n) {
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) {
      const Table* const t = current_.load(std::memory_order_acquire);
      if (t != nullptr) {
        const MapKeyHash& key = records[i + kAhead].name.key;
        // A torn view is harmless for a prefetch.
        Prefetch(ViewOf(t->Of(key), t), LocOf(key, t->shard_bits));
      }
    }
    if (i % 64 == 0) {
      HelpMove();
    }
    Table* table = nullptr;
    Shard* shard = nullptr;
    Lock lock;
    Status s = LockWithRoom(records[i].name.key, &table, &shard, &lock);
    if (!s.ok()) {
      return s;
    }
    InsertLocked(shard, ViewOf(shard, table), records[i], slot);
  }
  return Status::OK();
}

void AddressMap::UndoBatch(uint32_t slot, const Record* records, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    RemoveIfIn(records[i].name, slot);
  }
}

bool AddressMap::RemoveIfIn(const MapName& name, uint32_t slot) {
  Table* table = nullptr;
  Lock lock;
  Shard* const shard = LockShard(name.key, &table, &lock);
  if (shard == nullptr ||
      !RemoveIfInLocked(shard, ViewOf(shard, table), name, slot)) {
    return false;
  }
  ShrinkIfSparse(table, shard);
  return true;
}

void AddressMap::CommitBatch(const Record* records, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (!records[i].direct) {
      continue;
    }
    const MapName& name = records[i].name;
    Table* table = nullptr;
    Lock lock;
    Shard* const shard = LockShard(name.key, &table, &lock);
    if (shard == nullptr) {
      return;
    }
    const View view = ViewOf(shard, table);
    Chain chain;
    LoadChain(view, name.key, &chain);
    // Cut the entries after the newest committed one. The newest committed
    // entry is this record's or one that was committed earlier. In the latter
    // case this record's entry is already hidden and must be cut here, because
    // no other operation would do it.
    size_t first = 0;
    while (first < chain.size() && !chain[first].OlderThan(name)) {
      ++first;
      if (!files_->IsPending(chain[first - 1].address.slot)) {
        break;
      }
    }
    CutChain(shard, view, name.key, chain, first);
    ShrinkIfSparse(table, shard);
  }
}

AddressMap::RenameResult AddressMap::Rename(const MapName& name) {
  Table* table = nullptr;
  Lock lock;
  Shard* const shard = LockShard(name.key, &table, &lock);
  if (shard == nullptr) {
    return RenameResult::kGone;
  }
  const View view = ViewOf(shard, table);
  Chain old;
  LoadChain(view, name.key, &old);
  for (const Decoded& e : old) {
    if (e.Is(name)) {
      return RenameResult::kAlreadyDirect;
    }
  }
  Decoded entry;
  if (!FindVersioned(view, name.key, name.seq, name.birth, &entry)) {
    return RenameResult::kGone;
  }
  if (!old.empty() && !old[0].OlderThan(name)) {
    return RenameResult::kNewerDirect;
  }
  Chain now;
  now.push_back(entry);
  BeginWrite(shard);
  Erase(shard, view, name.key, entry);
  StoreChain(shard, view, name.key, old, &now);
  for (const Decoded& e : old) {
    files_->SubLive(e.address.slot, e.address.size);
  }
  EndWrite(shard);
  return RenameResult::kRenamed;
}

bool AddressMap::Demote(const MapName& name) {
  Table* table = nullptr;
  Lock lock;
  Shard* const shard = LockShard(name.key, &table, &lock);
  if (shard == nullptr) {
    return false;
  }
  const View view = ViewOf(shard, table);
  Chain chain;
  LoadChain(view, name.key, &chain);
  size_t at = 0;
  while (at < chain.size() && !chain[at].Is(name)) {
    ++at;
  }
  if (at == chain.size()) {
    Decoded entry;
    return FindVersioned(view, name.key, name.seq, name.birth, &entry);
  }
  Chain newer;
  for (size_t i = 0; i < at; ++i) {
    newer.push_back(chain[i]);
  }
  Decoded demoted = chain[at];
  BeginWrite(shard);
  StoreChain(shard, view, name.key, chain, &newer);
  PlaceVersioned(shard, view, name.key, &demoted);
  for (size_t i = at + 1; i < chain.size(); ++i) {
    files_->SubLive(chain[i].address.slot, chain[i].address.size);
  }
  EndWrite(shard);
  return true;
}

void AddressMap::DemoteAll() {
  std::vector<MapName> direct;
  for (uint32_t part = 0; part < kNumParts; ++part) {
    ForEachInPart(part, [&direct](const Entry& entry) {
      if (entry.mode == MapMode::kDirect) {
        direct.push_back(entry.name);
      }
    });
    for (const MapName& name : direct) {
      Demote(name);
    }
    direct.clear();
  }
}

bool AddressMap::Remove(const MapName& name) {
  Table* table = nullptr;
  Lock lock;
  Shard* const shard = LockShard(name.key, &table, &lock);
  if (shard == nullptr) {
    return false;
  }
  const View view = ViewOf(shard, table);
  Chain chain;
  LoadChain(view, name.key, &chain);
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i].Is(name)) {
      CutChain(shard, view, name.key, chain, i);
      ShrinkIfSparse(table, shard);
      return true;
    }
  }
  Decoded entry;
  if (!FindVersioned(view, name.key, name.seq, name.birth, &entry)) {
    return false;
  }
  BeginWrite(shard);
  Erase(shard, view, name.key, entry);
  files_->SubLive(entry.address.slot, entry.address.size);
  EndWrite(shard);
  ShrinkIfSparse(table, shard);
  return true;
}

size_t AddressMap::RemoveHidden(const MapKeyHash& key, SequenceNumber above,
                                SequenceNumber below,
                                SequenceNumber* newest_left) {
  assert(above < below);
  *newest_left = 0;
  Table* table = nullptr;
  Lock lock;
  Shard* const shard = LockShard(key, &table, &lock);
  if (shard == nullptr) {
    return 0;
  }
  const View view = ViewOf(shard, table);
  Chain chain;
  LoadChain(view, key, &chain);
  Chain kept;
  autovector<Decoded, 8> removed;
  size_t num_direct = 0;
  // Returns true if the entry is to be removed.
  const auto judge = [&](const Decoded& e) {
    if (e.seq >= below) {
      return false;
    }
    if (e.seq <= above) {
      *newest_left = std::max(*newest_left, e.seq);
      return false;
    }
    removed.push_back(e);
    return true;
  };
  for (const Decoded& e : chain) {
    if (judge(e)) {
      ++num_direct;
    } else {
      kept.push_back(e);
    }
  }
  ScanKey(view, key, LocOf(key, view.shard_bits),
          [&](uint32_t n, uint32_t i, uint32_t meta) {
            Decoded e;
            if (ModeOf(meta) == MapMode::kVersioned &&
                RawModeOf(meta) != kFarMode && Decode(view, key, n, i, &e)) {
              judge(e);
            }
            return false;
          });
  for (const MapName& name : FarOf(key)->Below(key, below)) {
    Decoded e;
    const bool found = FindMixed(view, key, name.seq, name.birth, &e);
    assert(found);
    if (found) {
      judge(e);
    }
  }
  if (removed.empty()) {
    return 0;
  }
  BeginWrite(shard);
  if (num_direct > 0) {
    StoreChain(shard, view, key, chain, &kept);
  }
  for (size_t i = num_direct; i < removed.size(); ++i) {
    Erase(shard, view, key, removed[i]);
  }
  for (const Decoded& e : removed) {
    files_->SubLive(e.address.slot, e.address.size);
  }
  EndWrite(shard);
  ShrinkIfSparse(table, shard);
  return removed.size();
}

bool AddressMap::SwapAddress(const MapName& name, const MapAddress& from,
                             const MapAddress& to) {
  Table* table = nullptr;
  Lock lock;
  Shard* const shard = LockShard(name.key, &table, &lock);
  if (shard == nullptr) {
    return false;
  }
  const View view = ViewOf(shard, table);
  Decoded entry;
  if (!(FindTop(view, name.key, &entry) && entry.Is(name)) &&
      !FindNear(view, name.key, name.seq, name.birth, &entry) &&
      !FindMixed(view, name.key, name.seq, name.birth, &entry)) {
    return false;
  }
  if (!(entry.address == from)) {
    return false;
  }
  BeginWrite(shard);
  files_->AddLive(to.slot, to.size);
  Erase(shard, view, name.key, entry);
  entry.address = to;
  Place(shard, view, name.key, entry);
  files_->SubLive(from.slot, from.size);
  EndWrite(shard);
  return true;
}

// ---- Growth

Status AddressMap::LockWithRoom(const MapKeyHash& key, Table** table,
                                Shard** shard, Lock* lock) {
  if (current_.load(std::memory_order_acquire) == nullptr) {
    std::lock_guard<std::mutex> tables_lock(tables_mutex_);
    if (current_.load(std::memory_order_relaxed) == nullptr) {
      uint32_t bits = kFirstShardBits;
      while (bits < kPartBits &&
             expected_ >> bits > Capacity(kSmallStride) * 3 / 4) {
        bits += 2;
      }
      uint32_t stride = kSmallStride;
      if (bits == kPartBits) {
        while (bits < kMaxShardBits && expected_ >> bits > 16384) {
          ++bits;
        }
        const uint64_t want = (expected_ >> bits) * 3 / 2 / 16;
        while (stride < kMaxStride && stride < want) {
          stride *= 2;
        }
      }
      Status s;
      std::unique_ptr<Table> first = NewTable(bits, stride, &s);
      if (first == nullptr) {
        return s;
      }
      tables_.push_back(std::move(first));
      current_.store(tables_.back().get(), std::memory_order_release);
    }
  }
  for (;;) {
    if (lock->owns_lock()) {
      lock->unlock();
    }
    *shard = LockShard(key, table, lock);
    Shard* const s = *shard;
    if (Load(s->count) + 1 <= Capacity(Load(s->num_buckets))) {
      return Status::OK();
    }
    if (Load(s->num_buckets) < (*table)->stride) {
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

Status AddressMap::GrowShard(Table* table, Shard* shard) {
  const uint32_t old_buckets = Load(shard->num_buckets);
  const uint32_t new_buckets =
      std::min(table->stride,
               old_buckets + RoundUpToPage(std::max(1u, old_buckets / 16)));
  Status s = Charge((new_buckets - old_buckets) * table->BucketBytes(), false);
  if (s.ok()) {
    ResizeShard(table, shard, new_buckets);
  }
  return s;
}

// Gives memory back after mass deletes. The removals pay for the cost: a shard
// grows by 1/16 and shrinks to at most kShrunkPercent, so many entries must be
// removed before it is less than half full and shrinks.
void AddressMap::ShrinkIfSparse(Table* table, Shard* shard) {
  const uint32_t old_buckets = Load(shard->num_buckets);
  const uint64_t count = Load(shard->count);
  if (LIKELY(old_buckets == 0 || count >= Capacity(old_buckets) / 2)) {
    return;
  }
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
      gives_all
          ? 0
          : RoundUpToPage(count * 100 / (kBucketEntries * kShrunkPercent) + 1);
  if (new_buckets >= old_buckets) {
    return;
  }
  ResizeShard(table, shard, new_buckets);
  // Late readers find zeros and then the changed version.
  ReturnMemory(shard->range + new_buckets,
               (old_buckets - new_buckets) * sizeof(Bucket));
  Release((old_buckets - new_buckets) * table->BucketBytes());
}

void AddressMap::ResizeShard(Table* table, Shard* shard, uint32_t new_buckets) {
  const uint32_t old_buckets = Load(shard->num_buckets);
  std::vector<uint16_t> high;
  if (shard->high != nullptr) {
    high.assign(shard->high,
                shard->high + size_t{old_buckets} * kBucketEntries);
  }
  std::lock_guard<std::mutex> lock(table->scratch_mutex);
  Bucket* const copy = static_cast<Bucket*>(table->scratch.Get());
  if (old_buckets > table->scratch_used) {
    Charge((old_buckets - table->scratch_used) * sizeof(Bucket), true)
        .PermitUncheckedError();
    table->scratch_used = old_buckets;
  }
  // The scratch area may still be read by late readers of the shard that used
  // it last. A reader that observes the stores below also observes that the
  // version of that shard changed, because scratch_mutex orders the change
  // before these stores.
  FenceRelease();
  for (uint32_t n = 0; n < old_buckets; ++n) {
    const Bucket& from = shard->range[n];
    Bucket& to = copy[n];
    Store(to.over, Load(from.over));
    Store(to.past, Load(from.past));
    Store(to.occupied, 0);
    for (uint32_t occupied = Load(from.occupied); occupied != 0;
         occupied &= occupied - 1) {
      const uint32_t i = static_cast<uint32_t>(CountTrailingZeroBits(occupied));
      to.StoreEntry(i, Load(from.id[i]), Load(from.seq[i]), Load(from.loc[i]),
                    Load(from.meta[i]));
    }
  }
  BeginWrite(shard);
  Store(shard->base, copy);
  EndWrite(shard);
  // Readers that still use the range find that the version has changed.
  FenceRelease();
  for (uint32_t n = 0; n < old_buckets; ++n) {
    Store(shard->range[n].occupied, 0);
    Store(shard->range[n].over, 0);
    Store(shard->range[n].past, 0);
  }
  for (uint32_t n = 0; n < old_buckets; ++n) {
    const Bucket& from = copy[n];
    for (uint32_t occupied = Load(from.occupied); occupied != 0;
         occupied &= occupied - 1) {
      const uint32_t i = static_cast<uint32_t>(CountTrailingZeroBits(occupied));
      const MapKeyHash key = KeyAt(
          table, shard, from, i,
          high.empty() ? nullptr : high.data() + size_t{n} * kBucketEntries);
      const uint32_t home =
          HomeOf(PlaceLocOf(key, Load(from.seq[i]) >> 16,
                            RawModeOf(Load(from.meta[i])), table->shard_bits),
                 new_buckets);
      uint32_t index = 0;
      Bucket* const to =
          TakePlace(shard->range, new_buckets, home, key, &index);
      shard->SetHigh(static_cast<uint32_t>(to - shard->range), index, key);
      to->StoreEntry(index, Load(from.id[i]), Load(from.seq[i]),
                     Load(from.loc[i]), Load(from.meta[i]));
    }
  }
  BeginWrite(shard);
  Store(shard->base, shard->range);
  Store(shard->num_buckets, new_buckets);
  EndWrite(shard);
}

Status AddressMap::MakeNextTable(Table* table) {
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
  std::unique_ptr<Table> next = NewTable(bits, stride, &s);
  if (next == nullptr) {
    return s;
  }
  tables_.push_back(std::move(next));
  table->next.store(tables_.back().get(), std::memory_order_release);
  return s;
}

// Charges the memory even if it exceeds the limit, because the old shard's
// memory is released immediately afterwards.
void AddressMap::MoveShard(Table* table, Shard* shard) {
  assert(!shard->moved.load());
  Table* const next = table->next.load(std::memory_order_relaxed);
  const uint32_t child_bits = next->shard_bits - table->shard_bits;
  const uint32_t num_children = uint32_t{1} << child_bits;
  Shard* const children =
      &next->shards[static_cast<size_t>(shard - table->shards.get())
                    << child_bits];
  const uint32_t buckets = Load(shard->num_buckets);
  // No other thread accesses the children until `moved` is set.
  uint64_t counts[4] = {};
  assert(num_children <= 4);
  const auto for_each = [&](const auto& fn) {
    for (uint32_t n = 0; n < buckets; ++n) {
      const Bucket& b = shard->range[n];
      for (uint32_t occupied = Load(b.occupied); occupied != 0;
           occupied &= occupied - 1) {
        const uint32_t i =
            static_cast<uint32_t>(CountTrailingZeroBits(occupied));
        const MapKeyHash key = KeyAt(table, shard, n, i);
        fn(b, i, key, next->Of(key) - children);
      }
    }
  };
  for_each([&](const Bucket&, uint32_t, const MapKeyHash&, ptrdiff_t child) {
    ++counts[child];
  });
  size_t bytes = 0;
  for (uint32_t c = 0; c < num_children; ++c) {
    // Room for the entries and one more at a fill of 89%.
    const uint32_t want =
        counts[c] == 0
            ? 0
            : RoundUpToPage((counts[c] + 1) * 100 / (kBucketEntries * 89) + 1);
    Store(children[c].num_buckets, std::min(want, next->stride));
    Store(children[c].count, counts[c]);
    bytes += Load(children[c].num_buckets) * next->BucketBytes();
  }
  Charge(bytes, true).PermitUncheckedError();
  for_each([&](const Bucket& b, uint32_t i, const MapKeyHash& key,
               ptrdiff_t child) {
    const uint32_t num = Load(children[child].num_buckets);
    const uint32_t home =
        HomeOf(PlaceLocOf(key, Load(b.seq[i]) >> 16, RawModeOf(Load(b.meta[i])),
                          next->shard_bits),
               num);
    uint32_t index = 0;
    Bucket* const to = TakePlace(children[child].range, num, home, key, &index);
    children[child].SetHigh(static_cast<uint32_t>(to - children[child].range),
                            index, key);
    to->StoreEntry(index, Load(b.id[i]), Load(b.seq[i]), Load(b.loc[i]),
                   Load(b.meta[i]));
  });
  BeginWrite(shard);
  shard->moved.store(true, std::memory_order_release);
  EndWrite(shard);
  Store(shard->count, 0);
  if (buckets != 0) {
    ReturnMemory(shard->range, size_t{buckets} * sizeof(Bucket));
    Release(size_t{buckets} * table->BucketBytes());
  }
  if (table->num_moved.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      table->NumShards()) {
    {
      std::lock_guard<std::mutex> lock(table->scratch_mutex);
      ReturnMemory(table->scratch.Get(), table->scratch.Length());
      Release(table->scratch_used * sizeof(Bucket));
      table->scratch_used = 0;
    }
    // `high` is read only under the mutex of a shard that has not moved, and
    // every shard has.
    table->high.reset();
    // A later table may have been finished before the current one; the loop
    // skips such tables as well.
    Table* t = current_.load(std::memory_order_acquire);
    while (t->num_moved.load(std::memory_order_acquire) == t->NumShards()) {
      Table* const after = t->next.load(std::memory_order_acquire);
      if (current_.compare_exchange_strong(t, after,
                                           std::memory_order_acq_rel)) {
        t = after;
      }
    }
  }
}

// Moves one shard to the next table, if there is one. Insertions pay for the
// move: InsertBatch() calls this once for every 64 records.
void AddressMap::HelpMove() {
  Table* const table = current_.load(std::memory_order_acquire);
  if (table == nullptr ||
      table->next.load(std::memory_order_acquire) == nullptr) {
    return;
  }
  const size_t n = table->cursor.fetch_add(1, std::memory_order_relaxed);
  if (n >= table->NumShards()) {
    return;
  }
  Shard* const shard = &table->shards[n];
  Lock lock(shard->mutex);
  if (!shard->moved.load(std::memory_order_relaxed)) {
    MoveShard(table, shard);
  }
}

// ---- All entries

void AddressMap::ForEachInPart(
    uint32_t part, const std::function<void(const Entry&)>& fn) const {
  assert(part < kNumParts);
  const Table* const first = current_.load(std::memory_order_acquire);
  if (first == nullptr) {
    return;
  }
  // Walks the part shard by shard. Each step locks the shard of the first key
  // that was not walked yet, in the table that holds it at that moment.
  const uint64_t begin = uint64_t{part} << (64 - kPartBits);
  const uint64_t end = begin + (uint64_t{1} << (64 - kPartBits));
  MapKeyHash at{begin, 0};
  std::vector<Entry> entries;
  do {
    entries.clear();
    uint32_t bits = 0;
    {
      Table* table = nullptr;
      Lock lock;
      const Shard* const shard = LockShard(at, &table, &lock);
      bits = table->shard_bits;
      const View view = ViewOf(shard, table);
      const auto add = [&](uint32_t n, uint32_t i) {
        const MapKeyHash key = KeyAt(table, shard, n, i);
        Decoded e;
        if (Decode(view, key, n, i, &e)) {
          entries.push_back(
              Entry{MapName{key, e.seq, e.birth}, e.address, e.mode});
        }
      };
      if (table->IsSmall()) {
        // The shard holds entries of other parts as well. `high` of an
        // unoccupied position is undefined.
        for (uint32_t n = 0; n < view.num_buckets; ++n) {
          const uint32_t occupied = Load(view.base[n].occupied);
          const uint16_t* const high = shard->high + size_t{n} * kBucketEntries;
          for (uint32_t i = 0; i < kBucketEntries; ++i) {
            if ((occupied >> i & 1) != 0 && high[i] == part) {
              add(n, i);
            }
          }
        }
      } else {
        entries.reserve(Load(shard->count));
        for (uint32_t n = 0; n < view.num_buckets; ++n) {
          for (uint32_t occupied = Load(view.base[n].occupied); occupied != 0;
               occupied &= occupied - 1) {
            add(n, static_cast<uint32_t>(CountTrailingZeroBits(occupied)));
          }
        }
      }
    }
    for (const Entry& e : entries) {
      fn(e);
    }
    if (bits < kPartBits) {
      return;  // the shard contained the whole part
    }
    at.hi += uint64_t{1} << (64 - bits);
  } while (at.hi != end);
}

size_t AddressMap::Forget(const std::vector<uint32_t>& slots) {
  const std::vector<uint32_t> sorted = [&] {
    std::vector<uint32_t> copy = slots;
    std::sort(copy.begin(), copy.end());
    return copy;
  }();
  size_t removed = 0;
  for (uint32_t part = 0; part < kNumParts; ++part) {
    // An entry that a concurrent change moves within the part is in the copy
    // already; RemoveIfIn() finds it by its name.
    ForEachInPart(part, [&](const Entry& e) {
      if (std::binary_search(sorted.begin(), sorted.end(), e.address.slot) &&
          RemoveIfIn(e.name, e.address.slot)) {
        ++removed;
      }
    });
  }
  return removed;
}

uint64_t AddressMap::NumEntries() const {
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
      n += Load(table->shards[i].count);
    }
  }
  return n;
}

size_t AddressMap::TEST_NumSideCells() const {
  size_t n = 0;
  for (const OverflowCells& store : side_) {
    n += store.NumUsed();
  }
  return n;
}

uint32_t AddressMap::TEST_Generation() const {
  std::lock_guard<std::mutex> lock(tables_mutex_);
  return static_cast<uint32_t>(tables_.size());
}

Status AddressMap::TEST_Check() const {
  Table* table = current_.load(std::memory_order_acquire);
  uint64_t total = 0;
  size_t cells = 0;
  size_t far = 0;
  for (; table != nullptr; table = table->next.load()) {
    for (size_t n = 0; n < table->NumShards(); ++n) {
      Shard* const shard = &table->shards[n];
      Lock lock(shard->mutex);
      if (shard->moved.load()) {
        continue;
      }
      const View view = ViewOf(shard, table);
      std::vector<uint32_t> over(view.num_buckets);
      uint64_t count = 0;
      for (uint32_t m = 0; m < view.num_buckets; ++m) {
        const Bucket& b = view.base[m];
        for (uint32_t i = 0; i < kBucketEntries; ++i) {
          if ((Load(b.occupied) >> i & 1) == 0) {
            continue;
          }
          ++count;
          const MapKeyHash key = KeyAt(table, shard, m, i);
          Decoded e;
          if (table->Of(key) != shard || !Decode(view, key, m, i, &e)) {
            return Status::Corruption("Entry in a wrong shard or torn");
          }
          cells += (e.side != OverflowCells::kNone ? 1 : 0) +
                   (e.link_side != OverflowCells::kNone ? 1 : 0);
          far += e.is_far ? 1 : 0;
          if (e.is_far != FarOf(key)->Has(MapName{key, e.seq, e.birth})) {
            return Status::Corruption(
                "Far entry missing from the set, or near entry in it");
          }
          uint32_t h = HomeOf(PlaceLocOf(key, e.seq, RawMode(e.mode, e.is_far),
                                         view.shard_bits),
                              view.num_buckets);
          for (; h != m; h = h + 1 == view.num_buckets ? 0 : h + 1) {
            ++over[h];
            if ((Load(view.base[h].past) >> Id6(key) & 1) == 0) {
              return Status::Corruption("Entry not reachable from its home");
            }
          }
          Chain chain;
          LoadChain(view, key, &chain);
          size_t in_chain = 0;
          for (size_t c = 0; c < chain.size(); ++c) {
            const Decoded& d = chain[c];
            in_chain += d.bucket == m && d.index == i;
            if (c > 0 && !d.OlderThan(MapName{key, chain[c - 1].seq,
                                              chain[c - 1].birth})) {
              return Status::Corruption("Chain out of order");
            }
          }
          if (in_chain != (e.mode == MapMode::kVersioned ? 0 : 1)) {
            return Status::Corruption("Entry not reachable by its chain");
          }
        }
      }
      for (uint32_t m = 0; m < view.num_buckets; ++m) {
        if (over[m] != Load(view.base[m].over)) {
          return Status::Corruption("Wrong overflow count");
        }
      }
      if (count != Load(shard->count)) {
        return Status::Corruption("Wrong entry count");
      }
      total += count;
    }
  }
  if (total != NumEntries()) {
    return Status::Corruption("Wrong total");
  }
  if (cells != TEST_NumSideCells()) {
    return Status::Corruption("Side cells leaked");
  }
  for (const FarNames& names : far_) {
    far -= names.count.load();
  }
  if (far != 0) {
    return Status::Corruption("Names of far entries leaked");
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
