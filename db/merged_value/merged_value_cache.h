//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/cache_reservation_manager.h"
#include "port/port.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"
#include "util/strata/sieve_table.h"

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
// Large values share memory (see SieveTable). A value that is larger than the
// capacity is counted (NoteRefused()) and not cached.
//
// Memory: the entries, and the table of stripes, which is allocated with the
// first entry, are charged to the block cache. A flush that began before the
// stripes were allocated raises the number for all stripes instead.
//
// Source: the design follows "KDSep" (whose cache of deltas holds operands;
// this one holds values).
//
// Thread-safe.
class MergedValueCache : private SieveTable::Policy {
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

  // The charged bytes include those of the stripes.
  struct Stats : public SieveTable::Stats {
    uint64_t carried = 0;    // values carried over by flushes
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
  void SetCapacity(size_t capacity) { table_.SetCapacity(capacity); }
  // As those of SieveTable.
  void LimitCapacity(size_t capacity) { table_.LimitCapacity(capacity); }
  void Trim() { table_.Trim(); }
  size_t capacity() const { return table_.capacity(); }

  Stats GetStats() const;
  bool TEST_HasStripes() const { return stripes() != nullptr; }
  size_t TEST_StripeOf(const Slice& user_key) const {
    return StripeOf(table_.HashOf(user_key));
  }

 private:
  // The initial capacity is divided by this to get the number of shards. With
  // smaller shards a few values would fill one, and evict each other while
  // other shards have room.
  static constexpr size_t kBytesPerShard = size_t{512} << 10;
  // The initial capacity is divided by this to get the number of stripes.
  static constexpr size_t kBytesPerStripe = 1024;
  static constexpr size_t kMinStripes = size_t{1} << 12;
  static constexpr size_t kMaxStripes = size_t{1} << 20;
  // Maximum number of flushes that carry over a value that is not read.
  static constexpr uint8_t kMaxUnreadCarries = 64;
  // Flush::Finish() releases the shard's mutex after this many stripes.
  static constexpr size_t kStripesAtOnce = 256;

  struct Stripe {
    std::atomic<SequenceNumber> flushed{0};
    // Number of entries whose keys belong to this stripe. Most keys have no
    // entry; a stripe with none is answered without a lock.
    std::atomic<uint32_t> entries{0};
  };

  // Each shard of the table has a contiguous range of stripes.
  size_t StripeOf(uint64_t hash) const {
    return table_.ShardOf(hash) * stripes_per_shard_ +
           (hash & (stripes_per_shard_ - 1));
  }
  // nullptr if there has never been an entry.
  Stripe* stripes() const { return stripes_.load(std::memory_order_acquire); }
  // Allocates the stripes. Returns false if the block cache has no room for
  // them.
  bool MakeStripes();
  // Returns the sequence number up to which an entry with this hash must be
  // complete: the larger one of the stripe's number and that for all stripes.
  // REQUIRES: the stripes are allocated.
  SequenceNumber FlushedOf(uint64_t hash) const;
  // Takes the caller's reference: it is given to the table, or dropped. Returns
  // false if the entry was not kept.
  bool Insert(Entry* entry);

  bool Admits(SieveTable::Entry* old, SieveTable::Entry* entry) override;
  void OnAdd(const SieveTable::Entry& entry) override;
  void OnRemove(const SieveTable::Entry& entry) override;

  SieveTable table_;
  const size_t num_stripes_;
  const size_t stripes_per_shard_;
  port::Mutex stripes_mutex_;  // held while the stripes are allocated
  std::unique_ptr<Stripe[]> owned_stripes_;
  std::atomic<Stripe*> stripes_{nullptr};
  // Largest sequence number of flushed range deletions, and of flushes that
  // began before the stripes were allocated.
  std::atomic<SequenceNumber> flushed_for_all_{0};
  std::atomic<uint64_t> too_large_{0};
  // Number of flushes that have begun.
  std::atomic<uint64_t> flushes_{0};
  std::atomic<uint64_t> carried_{0};
};

}  // namespace ROCKSDB_NAMESPACE
