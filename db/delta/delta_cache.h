//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "db/delta/delta_operands.h"
#include "rocksdb/cleanable.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"
#include "util/strata/clock_table.h"

namespace ROCKSDB_NAMESPACE {

class Statistics;
struct ImmutableOptions;
struct MutableCFOptions;

// What point reads have found in the delta files of a column family, so that
// the next read of a key asks only files that are newer.
//
// An entry says of a key k: "what flushes of epochs up to E have left of k in
// delta files is exactly this list of operands (newest first, each with the
// last epoch of the file in which it was), and no anchor of theirs above a."
// It is no copy of files: it stays true while these are merged and collected.
// A reader at r with a DeltaVersion V reads the files that are newer than E and
// takes the list instead of all others.
//
// Epochs rather than sequence numbers, as flushes of a column family are
// committed in the order of their epochs: a Version has all of them up to its
// horizon, the last epoch of the newest operand file or the floor of the key's
// bucket if that is higher, and none above. (Anchors of ingested files and of
// deleted ones may have epochs that are not in order. They do not count for the
// horizon; see 1.) And files tell of which epochs they are made, but not of
// which sequence numbers: an operand that was made of several has the newest
// one's.
//
// Invariant: an entry (list, a, E, generation, bucket) may be used by a reader
// at r of V iff
//  1. The generation is that of V (Version::merged_values()). Ingestion,
//     deletion of files, and filters that changed something begin a new one, so
//     what follows is about flushes, merges and collections only.
//  2. a and all of the list are at r or below. Then r sees all of it, and no
//     operand of it is made of some that r sees and others that it does not:
//     jobs do not combine operands across a sequence number that somebody may
//     read at.
//  3. E is not above the horizon of V: else V may lack a flush whose operands
//     are in the list, and the reader finds them in memtables as well.
//  4. The floor of the key's bucket is not above E. All that the extent of the
//     bucket was made of is then in the list, or was hidden by anchors that the
//     list knows of. If the floor were above E, the extent could have operands
//     made of some in the list and others that are not, and anchors that hide
//     operands of the list could be gone with what they hide.
//  5. No fold has made a value of the operands in between. That is certain if
//     the extent is the one that it was (`bucket`), or if E is not below the
//     fold epoch: file numbers up to it were given out when the last fold was
//     about to be committed. As a fold keeps flushes away, a Version with a
//     flush of a later epoch has the fold, and so has the reader's (3).
// The reader must then
//  6. read all files of operands that are not covered, that is whose last epoch
//     is above E, and look for anchors above a in all such files of anchors.
//     The newest anchor hides what is up to it in the list, too.
//  7. leave out of the list what came from files whose last epoch is not below
//     the lowest first epoch of files that are not covered (the cut). A merged
//     file of epochs on both sides of E has them, perhaps combined with newer
//     ones. Files merge as a whole, and only once, so that the others are in no
//     file that was read.
//  8. take the list only in place of a covered file that may have the key. If
//     there is none, V has nothing of the key up to E (as when all delta files
//     were gone for a while). It is what would do instead of most of the others
//     if filters were never wrong.
//
// Other jobs leave this alone: merging and collecting combine operands, or drop
// what anchors hide that they keep, on one side of E, or are seen by 4 or 7;
// splitting, and putting buckets together, as collecting; floors are raised
// without a job only where there was nothing. Nothing outlives the DB, so
// recovery and repair find no entries.
//
// E and `bucket` may be raised while the entry is in use, each to what a reader
// has who was allowed to use it and found nothing newer. Both are true by
// themselves.
//
// Source: "KDSep" (its KD cache keeps deltas by key; an update drops them).
//
// Thread-safe.
class DeltaCache {
 private:
  struct Entry;
  struct Item;

 public:
  // What a reader has, as far as it concerns the use of entries of one key.
  struct View {
    SequenceNumber read_seq = 0;
    uint64_t generation = 0;
    uint64_t horizon = 0;
    uint64_t floor = 0;
    // Larger with each job that writes the key's bucket; 0 without buckets.
    uint64_t bucket = 0;
  };

  // Holds an entry while somebody uses it, which may be longer than the cache
  // lives.
  class Ref {
   public:
    Ref() = default;
    Ref(Ref&& other) noexcept { *this = std::move(other); }
    Ref& operator=(Ref&& other) noexcept;
    Ref(const Ref&) = delete;
    Ref& operator=(const Ref&) = delete;
    ~Ref() { Reset(); }

    void Reset();
    bool found() const { return entry_ != nullptr; }
    // REQUIRES of all: found().
    SequenceNumber anchor() const;
    // E when it was looked up.
    uint64_t epoch() const { return epoch_; }
    size_t size() const;
    DeltaOperands::Operand operator[](size_t i) const;
    // Confirm() would change nothing.
    bool IsUpToDate(const View& view) const;
    // The values live as long as the cleanable, from now on.
    void PinTo(Cleanable* cleanable) const;
    // The reader has found nothing of the key, neither operand nor anchor, in
    // files that are not covered, and used all of the list.
    // REQUIRES: the view is that of the look-up, and its reader sees all that
    // its Version has of the key.
    void Confirm(const View& view) const;

   private:
    friend class DeltaCache;
    Entry* entry_ = nullptr;
    uint64_t epoch_ = 0;
  };

  // For a column family with these options.
  static std::unique_ptr<DeltaCache> Create(const ImmutableOptions& ioptions,
                                            const MutableCFOptions& options);

  // reservation: of the block cache; nullptr: nobody is charged. statistics may
  // be nullptr.
  DeltaCache(size_t capacity,
             std::shared_ptr<CacheReservationManager> reservation,
             Statistics* statistics);
  DeltaCache(const DeltaCache&) = delete;
  DeltaCache& operator=(const DeltaCache&) = delete;

  // Not found: there is none that the reader may use.
  Ref Lookup(const Slice& user_key, const View& view);

  // The newest operands of `operands`, count of them: all that the reader has
  // found, and which the anchor, the newest one, does not hide.
  // REQUIRES: not empty; the reader sees all that its Version has of the key.
  void Insert(const Slice& user_key, const View& view, SequenceNumber anchor,
              const DeltaOperands& operands, size_t count);

  // A fold is about to be committed. next_epoch: no file has it yet.
  // REQUIRES: until its Version is current, no flush of the column family
  // begins.
  void OnFold(uint64_t next_epoch);

  bool is_on() const { return table_.capacity() > 0; }
  // Evicts what is too much.
  void SetCapacity(size_t capacity) { table_.SetCapacity(capacity); }
  size_t capacity() const { return table_.capacity(); }
  ClockTable::Stats GetStats() const { return table_.GetStats(); }

 private:
  // The operands of a key are not kept if they take more than this part.
  static constexpr size_t kMaxShare = 512;

  static void RaiseTo(std::atomic<uint64_t>* number, uint64_t to);
  static bool Keeps(const ClockTable::Entry& old_entry,
                    const ClockTable::Entry& new_entry);
  bool MayUse(const Entry& entry, uint64_t epoch, const View& view) const;

  ClockTable table_;
  Statistics* const statistics_;
  std::atomic<uint64_t> fold_epoch_{0};
};

}  // namespace ROCKSDB_NAMESPACE
