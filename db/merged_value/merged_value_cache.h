//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "cache/cache_reservation_manager.h"
#include "port/port.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class FragmentedRangeTombstoneIterator;
struct MutableCFOptions;

// Caches the results of merges that point reads of a column family have
// computed, so that a later read merges only the operands written since.
//
// An entry states about a key k: "at sequence number s its value is v". A
// reader that uses it searches the memtables only down to s and takes v as the
// base value. That is correct if no file has an entry of k that is newer than
// s. Two numbers of the cache entry show this without a search for the key:
//
//   frontier f    the reader that filled the cache entry has seen all entries
//                 of k up to f; the newest of them has sequence number s, so k
//                 has no entry in (s, f]
//   generation g  the generation of the Version that was read: an ingestion, a
//                 deletion of files, or a compaction filter that changed an
//                 entry begins a new generation
//
// The hashes of the keys are divided into stripes. Before the Version of a
// flush can be read, the flush raises a number of each stripe to the largest
// sequence number that it writes for keys of that stripe, and one number for
// all stripes to the largest sequence number of its range deletions.
//
// Invariants:
// 1. A reader at sequence number r may use an entry iff
//      s <= r, g is the generation of the reader's Version, and
//      max(s, f) >= the numbers of the stripe and of all stripes,
//    and its memtables have no range deletion above s that covers k. The
//    reader checks the last condition itself.
// 2. An entry never changes, except that f may grow. If two entries of one key
//    compete, the one of the newer generation stays; within one generation, the
//    one with the larger s.
// 3. The statement of an entry is true whether or not a flush completes.
//
// A flush carries over the values of keys that are still being written: it
// merges the operands that it writes into the cached value, which the next
// reader would otherwise have to do from files. A flush also sees everything
// that it writes, so it knows that every other key has no entry up to the last
// sequence number of the flush, and raises the f of their entries to that. See
// Flush.
//
// A value is large if it exceeds an eighth of the limit of a shard. Large
// values are not subject to the limit of their shard, which one of them could
// exceed. All large values together may use half of the capacity, or a single
// larger one all of it; the shards divide the rest. A value that is larger than
// the capacity is counted (NoteRefused()) and not cached.
//
// Memory: the entries, and the table of stripes, which is allocated with the
// first entry, are charged to the block cache. A flush that began before the
// stripes were allocated raises the number for all stripes instead. The entries
// are limited by the capacity, or by less if the block cache has no room: then
// new values replace others within the bytes that are charged, and the block
// cache is asked again from time to time. New entries reuse the memory of old
// ones (FreeListArena).
//
// Sources: the design follows "KDSep" (whose cache of deltas holds operands;
// this one holds values), the eviction "SIEVE is Simpler than LRU" (NSDI 2024).
//
// Thread-safe.
class MergedValueCache {
 private:
  struct Entry;

 public:
  // A reference to an entry, which keeps its value alive. May outlive the
  // cache.
  class Ref {
   public:
    Ref() = default;
    Ref(Ref&& other) noexcept : entry_(other.entry_) { other.entry_ = nullptr; }
    Ref& operator=(Ref&& other) noexcept {
      if (this != &other) {
        Reset();
        entry_ = other.entry_;
        other.entry_ = nullptr;
      }
      return *this;
    }
    Ref(const Ref&) = delete;
    Ref& operator=(const Ref&) = delete;
    ~Ref() { Reset(); }

    void Reset();
    bool found() const { return entry_ != nullptr; }
    // REQUIRES: found().
    SequenceNumber seq() const;
    // REQUIRES: found().
    SequenceNumber frontier() const;
    // REQUIRES: found().
    Slice value() const;
    // Raises the frontier of the entry: the caller has seen all entries of the
    // key up to `frontier`, and none above seq().
    // REQUIRES: found().
    void ExtendFrontier(SequenceNumber frontier) const;

   private:
    friend class MergedValueCache;
    explicit Ref(Entry* entry) : entry_(entry) {}
    Entry* entry_ = nullptr;
  };

  enum class Result : uint8_t {
    kHit,
    kMiss,
    kStale,  // there is an entry, but this reader cannot use it
  };

  struct Stats {
    uint64_t entries = 0;
    uint64_t bytes = 0;    // of the entries, with the table's overhead
    uint64_t charged = 0;  // bytes charged to the block cache, with the stripes
    uint64_t evicted = 0;
    uint64_t carried = 0;    // values carried over by flushes
    uint64_t large = 0;      // entries with a large value
    uint64_t too_large = 0;  // values not cached because of their size
  };

  // Updates the cache for one flush. The caller passes everything that the
  // flush reads from memtables, even if the flush does not write it: first the
  // range deletions, then the keys in order. Then it calls Finish().
  //
  // Values are carried over only if no older memtable is still unflushed, and
  // if the flush has no range deletions. Such flushes of a column family run
  // one after another.
  //
  // Not thread-safe. REQUIRES: the cache outlives this.
  class Flush {
   public:
    // holds_oldest: whether the flush writes the oldest memtable that is not in
    // a file yet, and all memtables from there to the newest one it writes.
    Flush(MergedValueCache* cache, bool holds_oldest);

    void OnRangeDeletion(SequenceNumber seq) {
      ranges_ = seq > ranges_ ? seq : ranges_;
    }
    // Adds all range deletions of one memtable. Moves the iterator.
    void OnRangeDeletions(FragmentedRangeTombstoneIterator* iter);

    // newest: largest sequence number that the flush writes for the key.
    // Returns true if the key has an entry that can be carried over, and sets
    // *known to it. The flush then has all entries of the key above
    // known->seq(). No reader can use *known after Finish(); only Carry()
    // replaces it by an entry that remains valid.
    bool OnKey(const Slice& user_key, SequenceNumber newest, Ref* known);
    // Returns false if the value has not been read during so many flushes that
    // carrying it over is not worth the work; Carry() would then do nothing.
    static bool IsWorthCarrying(const Ref& known);
    // Replaces `known` by an entry that says that the key has `value` at
    // `newest`. Returns false if the new entry was not kept.
    // REQUIRES: OnKey() returned true for this key, newest and known.
    bool Carry(const Ref& known, SequenceNumber newest, const Slice& value);

    // Raises the numbers of the stripes, and the frontiers of the entries of
    // other keys. has_shown_all: whether all entries of the flush were passed;
    // if not, the frontiers stay as they are.
    // REQUIRES: the Version with what was flushed is not published yet.
    void Finish(bool has_shown_all);

   private:
    bool has_stripes() const { return !seqs_.empty(); }
    bool carries() const {
      return holds_oldest_ && ranges_ == 0 && has_stripes();
    }

    MergedValueCache* const cache_;
    const bool holds_oldest_;
    const uint64_t number_;
    // Largest sequence number written for each stripe; 0 if there is none.
    // Empty if the cache had no stripes when the flush began.
    std::vector<SequenceNumber> seqs_;
    SequenceNumber largest_ = 0;
    SequenceNumber ranges_ = 0;
  };

  // Creates the cache of a column family with these options.
  static std::unique_ptr<MergedValueCache> Create(
      const MutableCFOptions& options);

  // capacity: bytes. reservation: charges the block cache; nullptr if no cache
  // is to be charged.
  MergedValueCache(size_t capacity,
                   std::shared_ptr<CacheReservationManager> reservation);
  ~MergedValueCache();
  MergedValueCache(const MergedValueCache&) = delete;
  MergedValueCache& operator=(const MergedValueCache&) = delete;

  // Returns the entry of the key in *ref if the reader can use it.
  // read_seq: the reader's sequence number, not above what its SuperVersion
  // contains. generation: that of the reader's Version.
  // REQUIRES: the reader took its SuperVersion before the call.
  Result Lookup(const Slice& user_key, SequenceNumber read_seq,
                uint64_t generation, Ref* ref);

  // Returns false if the value was not cached, because there is a better entry
  // of the key, or no room.
  bool Insert(const Slice& user_key, SequenceNumber seq,
              SequenceNumber frontier, uint64_t generation, const Slice& value);

  // To be called after Insert() returned false. Counts the value if it is too
  // large for the cache. Returns true if a warning is due: for the first such
  // value, and each time their number has doubled.
  bool NoteRefused(const Slice& user_key, const Slice& value);

  // Evicts entries until the cache fits the new capacity (bytes).
  void SetCapacity(size_t capacity);
  size_t capacity() const { return capacity_.load(std::memory_order_relaxed); }

  Stats GetStats() const;
  bool TEST_HasStripes() const { return stripes() != nullptr; }
  size_t TEST_StripeOf(const Slice& user_key) const {
    return StripeOf(HashOf(user_key));
  }

 private:
  // The initial capacity is divided by this to get the number of shards. With
  // smaller shards a few values would fill one, and evict each other while
  // other shards have room.
  static constexpr size_t kBytesPerShard = size_t{512} << 10;
  static constexpr size_t kMaxShards = 64;
  // The initial capacity is divided by this to get the number of stripes.
  static constexpr size_t kBytesPerStripe = 1024;
  static constexpr size_t kMinStripes = size_t{1} << 12;
  static constexpr size_t kMaxStripes = size_t{1} << 20;
  // A value is large if it exceeds the limit of a shard divided by this.
  static constexpr size_t kLargeShare = 8;
  // Maximum number of flushes that carry over a value that is not read.
  static constexpr uint8_t kMaxUnreadCarries = 64;
  // Flush::Finish() releases the shard's mutex after this many stripes.
  static constexpr size_t kStripesAtOnce = 256;
  // The block cache is charged in multiples of this many bytes.
  static constexpr size_t kChargeStep = size_t{256} << 10;
  // Number of inserts after which a block cache that had no room is asked
  // again.
  static constexpr uint32_t kInsertsPerQuestion = 1024;

  struct Stripe {
    std::atomic<SequenceNumber> flushed{0};
    // Number of entries whose keys belong to this stripe. Most keys have no
    // entry; a stripe with none is answered without a lock.
    std::atomic<uint32_t> entries{0};
  };

  // The eviction order of SIEVE. New entries are inserted at the newest end.
  // The hand moves from the oldest entry to the newest one, and then starts
  // over. It evicts an entry unless that was used since the hand last passed
  // it; used entries stay in place. So entries that are read once leave before
  // they displace entries that are read often.
  struct List {
    Entry* newest = nullptr;
    Entry* oldest = nullptr;
    Entry* hand = nullptr;  // nullptr: at `oldest`
    size_t num_entries = 0;
    size_t bytes = 0;
  };

  // A contiguous range of stripes.
  struct alignas(CACHE_LINE_SIZE) Shard {
    mutable port::Mutex mutex;
    // Hash chains: chains_per_stripe of them for each stripe, a power of two
    // that grows with the number of entries.
    std::vector<Entry*> chains;
    size_t chains_per_stripe = 0;
    // Each entry is in one of these two lists.
    List small;
    List large;
    uint64_t evicted = 0;
  };

  uint64_t HashOf(const Slice& user_key) const;
  size_t StripeOf(uint64_t hash) const { return hash & (num_stripes_ - 1); }
  Shard* ShardOfStripe(size_t stripe) {
    return &shards_[stripe / stripes_per_shard_];
  }
  Shard* ShardOf(uint64_t hash) { return ShardOfStripe(StripeOf(hash)); }
  // nullptr if there has never been an entry.
  Stripe* stripes() const { return stripes_.load(std::memory_order_acquire); }
  // Allocates the stripes. Returns false if the block cache has no room for
  // them.
  bool MakeStripes();
  // Returns the sequence number up to which an entry with this hash must be
  // complete: the larger one of the stripe's number and that for all stripes.
  // REQUIRES: the stripes are allocated.
  SequenceNumber FlushedOf(uint64_t hash) const;
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
  bool IsLarge(size_t size) const {
    return size > Limit() / num_shards_ / kLargeShare;
  }

  // Returns false if an entry of this size cannot be cached.
  bool IsWorthIt(const Slice& user_key, const Slice& value);
  // Takes the caller's reference: it is given to the table, or dropped.
  // was_carried: the entry was made from the cached one of its key, and is
  // dropped if that has been removed meanwhile. Returns false if the entry was
  // not kept.
  bool Insert(Entry* entry, bool was_carried);

  // REQUIRES: the shard's mutex is held.
  Entry** ChainOf(Shard* shard, uint64_t hash);
  // REQUIRES: the shard's mutex is held.
  void GrowChains(Shard* shard);
  // REQUIRES: the shard's mutex is held.
  Entry* Find(Shard* shard, uint64_t hash, const Slice& user_key);
  // Adds the entry in the place of `old`, which is removed, or as the newest
  // one if `old` is nullptr.
  // REQUIRES: the shard's mutex is held.
  void Add(Shard* shard, Entry* entry, Entry* old);
  // REQUIRES: the shard's mutex is held.
  void Remove(Shard* shard, Entry* entry);
  // Evicts small entries until at most `bytes` bytes of them are left.
  // REQUIRES: the shard's mutex is held.
  void EvictDownTo(Shard* shard, size_t bytes);
  // Evicts the next entry of the list, other than `keep`, that was not used
  // since the hand last passed it. Returns false if there is none among the
  // next max_steps entries.
  // REQUIRES: the shard's mutex is held.
  bool EvictOne(Shard* shard, List* list, const Entry* keep, size_t max_steps);

  // Evicts large entries other than `keep` until all large entries together are
  // within their limit; size: bytes of `keep`, which may exceed that limit.
  // Then evicts small entries, whose limit depends on the bytes of the large
  // ones.
  // REQUIRES: no shard's mutex is held.
  void MakeRoomForLarge(const Entry* keep, size_t size);

  // Charges the block cache for the stripes and the bytes of all shards, in
  // steps of kChargeStep. Returns false if it has no room.
  // REQUIRES: the stripes are allocated, or about to be.
  bool Charge();

  const uint64_t seed_;
  const size_t num_stripes_;
  std::atomic<size_t> capacity_;
  port::Mutex stripes_mutex_;  // held while the stripes are allocated
  std::unique_ptr<Stripe[]> owned_stripes_;
  std::atomic<Stripe*> stripes_{nullptr};
  // Largest sequence number of flushed range deletions, and of flushes that
  // began before the stripes were allocated.
  std::atomic<SequenceNumber> flushed_for_all_{0};
  const size_t num_shards_;
  const size_t stripes_per_shard_;
  const std::unique_ptr<Shard[]> shards_;
  std::atomic<size_t> bytes_{0};
  std::atomic<size_t> large_bytes_{0};  // part of bytes_
  std::atomic<uint64_t> too_large_{0};
  std::atomic<size_t> next_large_shard_{0};
  // Number of flushes that have begun.
  std::atomic<uint64_t> flushes_{0};
  std::atomic<uint64_t> carried_{0};

  const std::shared_ptr<CacheReservationManager> reservation_;
  port::Mutex charge_mutex_;
  std::atomic<size_t> charged_{0};
  // Bytes of entries for which the block cache had room when it last refused
  // more.
  static constexpr size_t kAnyRoom = std::numeric_limits<size_t>::max();
  std::atomic<size_t> room_{kAnyRoom};
  std::atomic<uint32_t> inserts_to_question_{0};
};

}  // namespace ROCKSDB_NAMESPACE
