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

// What point reads of a column family have made of merge operands, so that a
// later read merges only what was written since.
//
// An entry says of a key k: "at sequence number s its value is v". A reader
// walks the memtables down to s only, and starts from v, if nothing newer than
// s can be in a file. That is known without asking for each key, by two numbers
// of an entry and of the reader:
//
//   frontier f    the reader that filled it has seen all of k up to f; as the
//                 newest of that was s, there is nothing of k in (s, f]
//   generation g  of the Version that was read: ingestion, deletion of files
//                 and filters that changed something begin a new one
//
// A flush raises a number for each stripe of hashes to the largest sequence
// number that it writes of such keys, and one for all to that of its range
// deletions, before its Version can be read. So:
//
// Invariant: an entry may be used by a reader of sequence number r iff
//   s <= r, g is the generation of its Version, and
//   max(s, f) >= what was flushed of the stripe and of range deletions,
// and if no range deletion above s that covers k is in its memtables, which the
// reader sees for itself.
//
// Of keys that go on being written to, a flush carries values over: it merges
// the operands that it writes into the value that was known, as the next reader
// would have to, from files. And as it comes by all it writes, it knows of all
// other keys that there is nothing of them up to its own last sequence number,
// which becomes their f. See Flush.
//
// Invariant: what an entry says never changes but for f, which only grows. Of
// two of one key the one of the newer generation stays, of these the one with
// the larger s. What an entry says is true whether a flush comes to its end or
// not.
//
// Large values (of more than an eighth of what each shard may hold) are not
// bound to what their shard may hold, which one of them could exceed. All of
// them together may take up half of the capacity, or one that is larger all of
// it; the shards share what is left. One too large for that is counted
// (NoteRefused()), and not kept.
//
// Memory: entries, and a table of stripes that is made for the first one, are
// charged to the block cache. A flush that began before there were stripes
// raises the number for all instead. The limit of entries is the capacity, or
// less if the block cache has no room: then values take the places of others in
// what is charged, and now and then it is asked again. New entries are made of
// the memory of old ones (FreeListArena).
//
// Source: design after "KDSep" (its cache of deltas holds operands; this one
// holds values); eviction after "SIEVE is Simpler than LRU" (NSDI 2024).
//
// Thread-safe.
class MergedValueCache {
 private:
  struct Entry;

 public:
  // Holds an entry while somebody uses its value, which may be longer than the
  // cache lives.
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
    // REQUIRES of all: found().
    SequenceNumber seq() const;
    SequenceNumber frontier() const;
    Slice value() const;
    // The caller has seen all of the key up to here, and nothing above seq().
    void ExtendFrontier(SequenceNumber frontier) const;

   private:
    friend class MergedValueCache;
    explicit Ref(Entry* entry) : entry_(entry) {}
    Entry* entry_ = nullptr;
  };

  enum class Result : uint8_t {
    kHit,
    kMiss,
    kStale,  // there is one, and this reader cannot use it
  };

  struct Stats {
    uint64_t entries = 0;
    uint64_t bytes = 0;    // of them, with what the table needs for each
    uint64_t charged = 0;  // with the stripes
    uint64_t evicted = 0;
    uint64_t carried = 0;    // over by flushes
    uint64_t large = 0;      // of the entries
    uint64_t too_large = 0;  // values that were not kept, as they are that
  };

  // One flush. Show it everything that is flushed, whatever becomes of it:
  // range deletions first, then keys in order; then Finish().
  //
  // It carries values over if nothing that is older than what it writes is in
  // memory only, and if there are no range deletions. Such flushes of a column
  // family run one after another.
  //
  // Used by one thread. The cache outlives it.
  class Flush {
   public:
    // holds_oldest: it writes the oldest memtable that is not in a file yet,
    // and all up to its youngest one.
    Flush(MergedValueCache* cache, bool holds_oldest);

    void OnRangeDeletion(SequenceNumber seq) {
      ranges_ = seq > ranges_ ? seq : ranges_;
    }
    // All of one memtable. Moves the iterator.
    void OnRangeDeletions(FragmentedRangeTombstoneIterator* iter);

    // newest: of all that it writes of the key. True: *known is what was known
    // before, and the flush has all of the key above known->seq(). Nothing is
    // known any more, unless there is a Carry().
    bool OnKey(const Slice& user_key, SequenceNumber newest, Ref* known);
    // Would a Carry() be kept? No if nobody has read the value for so long that
    // it is not worth the work.
    static bool IsWorthCarrying(const Ref& known);
    // At newest the value is this one. False if it was not kept.
    // REQUIRES: OnKey() was true for that key, newest and known.
    bool Carry(const Ref& known, SequenceNumber newest, const Slice& value);

    // has_shown_all: otherwise nothing is known of other keys.
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
    // By stripe, 0: nothing. Empty if the cache had no stripes when it began.
    std::vector<SequenceNumber> seqs_;
    SequenceNumber largest_ = 0;
    SequenceNumber ranges_ = 0;
  };

  // For a column family with these options.
  static std::unique_ptr<MergedValueCache> Create(
      const MutableCFOptions& options);

  // reservation: of the block cache; nullptr: nobody is charged.
  MergedValueCache(size_t capacity,
                   std::shared_ptr<CacheReservationManager> reservation);
  ~MergedValueCache();
  MergedValueCache(const MergedValueCache&) = delete;
  MergedValueCache& operator=(const MergedValueCache&) = delete;

  // read_seq: of the reader, and not above what its SuperVersion holds.
  // REQUIRES: the reader has taken its SuperVersion before.
  Result Lookup(const Slice& user_key, SequenceNumber read_seq,
                uint64_t generation, Ref* ref);

  // False if it was not kept: there is a better one, or no room.
  bool Insert(const Slice& user_key, SequenceNumber seq,
              SequenceNumber frontier, uint64_t generation, const Slice& value);

  // After Insert() was false. True if the value is too large to be kept, and a
  // warning is due: the first time, and each time that there were twice as
  // many.
  bool NoteRefused(const Slice& user_key, const Slice& value);

  // Evicts what is too much.
  void SetCapacity(size_t capacity);
  size_t capacity() const { return capacity_.load(std::memory_order_relaxed); }

  Stats GetStats() const;
  bool TEST_HasStripes() const { return stripes() != nullptr; }
  size_t TEST_StripeOf(const Slice& user_key) const {
    return StripeOf(HashOf(user_key));
  }

 private:
  // One shard for so much of the first capacity: few values in each, and some
  // would be driven out by others while there is room elsewhere.
  static constexpr size_t kBytesPerShard = size_t{512} << 10;
  static constexpr size_t kMaxShards = 64;
  // One stripe for so much of the first capacity.
  static constexpr size_t kBytesPerStripe = 1024;
  static constexpr size_t kMinStripes = size_t{1} << 12;
  static constexpr size_t kMaxStripes = size_t{1} << 20;
  // A value of more than this part of what a shard may hold is large.
  static constexpr size_t kLargeShare = 8;
  // So many flushes carry a value over that nobody reads.
  static constexpr uint8_t kMaxUnreadCarries = 64;
  // Finish() lets readers of the shard in after so many stripes.
  static constexpr size_t kStripesAtOnce = 256;
  // What the block cache is charged in.
  static constexpr size_t kChargeStep = size_t{256} << 10;
  // After so many inserts a block cache that had no room is asked again.
  static constexpr uint32_t kInsertsPerQuestion = 1024;

  struct Stripe {
    std::atomic<SequenceNumber> flushed{0};
    // How many entries have this stripe. Most keys have none and are answered
    // without a lock.
    std::atomic<uint32_t> entries{0};
  };

  // New entries come to its one end; the hand goes from the other end to this
  // one, and then starts over. An entry that was used since it came by stays
  // where it is (SIEVE): what is read once leaves before it has driven out what
  // is read often.
  struct List {
    Entry* newest = nullptr;
    Entry* oldest = nullptr;
    Entry* hand = nullptr;  // nullptr: at the oldest
    size_t num_entries = 0;
    size_t bytes = 0;
  };

  // Stripes that follow one another.
  struct alignas(CACHE_LINE_SIZE) Shard {
    mutable port::Mutex mutex;
    // Of each stripe so many lists of entries, a power of two that grows with
    // the entries.
    std::vector<Entry*> chains;
    size_t chains_per_stripe = 0;
    // All entries are in one of them.
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
  // nullptr: there has never been an entry.
  Stripe* stripes() const { return stripes_.load(std::memory_order_acquire); }
  // False if the block cache has no room for them.
  bool MakeStripes();
  // The largest sequence number in files that the entry must know of.
  // REQUIRES: there are stripes.
  SequenceNumber FlushedOf(uint64_t hash) const;
  size_t Limit() const {
    return std::min(capacity(), room_.load(std::memory_order_relaxed));
  }

  // How many bytes of small entries each shard may hold.
  size_t ShardLimit() const {
    const size_t limit = Limit();
    const size_t large = large_bytes_.load(std::memory_order_relaxed);
    return (limit - std::min(limit, large)) / num_shards_;
  }
  bool IsLarge(size_t size) const {
    return size > Limit() / num_shards_ / kLargeShare;
  }

  bool IsWorthIt(const Slice& user_key, const Slice& value);
  // The caller's reference goes over to the table, or is dropped. was_carried:
  // out of the one that is there.
  bool Insert(Entry* entry, bool was_carried);

  // REQUIRES of all: the shard's mutex is held.
  Entry** ChainOf(Shard* shard, uint64_t hash);
  void GrowChains(Shard* shard);
  Entry* Find(Shard* shard, uint64_t hash, const Slice& user_key);
  // In the place of `old`, or as the newest if that is nullptr.
  void Add(Shard* shard, Entry* entry, Entry* old);
  void Remove(Shard* shard, Entry* entry);
  // Small ones.
  void EvictDownTo(Shard* shard, size_t bytes);
  // The next one of the list that was not used since the hand came by, but not
  // `keep`. False if there is none, or max_steps entries have had to stay.
  bool EvictOne(Shard* shard, List* list, const Entry* keep, size_t max_steps);

  // Large entries give way, as far as they are too many, but not `keep`; then
  // small ones make room for those that are left.
  // REQUIRES: no shard's mutex is held
  void MakeRoomForLarge(const Entry* keep, size_t size);

  // Charges for the stripes and the bytes of all shards, in steps. False if
  // there is no room. REQUIRES: stripes are there or about to be.
  bool Charge();

  const uint64_t seed_;
  const size_t num_stripes_;
  std::atomic<size_t> capacity_;
  port::Mutex stripes_mutex_;  // of who makes them
  std::unique_ptr<Stripe[]> owned_stripes_;
  std::atomic<Stripe*> stripes_{nullptr};
  // Of range deletions, and of flushes that found no stripes.
  std::atomic<SequenceNumber> flushed_for_all_{0};
  const size_t num_shards_;
  const size_t stripes_per_shard_;
  const std::unique_ptr<Shard[]> shards_;
  std::atomic<size_t> bytes_{0};
  std::atomic<size_t> large_bytes_{0};  // of them
  std::atomic<uint64_t> too_large_{0};
  std::atomic<size_t> next_large_shard_{0};
  // How many have begun.
  std::atomic<uint64_t> flushes_{0};
  std::atomic<uint64_t> carried_{0};

  const std::shared_ptr<CacheReservationManager> reservation_;
  port::Mutex charge_mutex_;
  std::atomic<size_t> charged_{0};
  // Of entries, what the block cache had room for when it refused more.
  static constexpr size_t kAnyRoom = std::numeric_limits<size_t>::max();
  std::atomic<size_t> room_{kAnyRoom};
  std::atomic<uint32_t> inserts_to_question_{0};
};

}  // namespace ROCKSDB_NAMESPACE
