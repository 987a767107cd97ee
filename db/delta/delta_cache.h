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
#include "util/strata/sieve_table.h"

namespace ROCKSDB_NAMESPACE {

class Statistics;
struct ImmutableOptions;
struct MutableCFOptions;

// Caches what point reads have found in the delta files of a column family, so
// that the next read of a key only has to read newer files.
//
// An entry states about a key k: "of the operands that flushes of epochs up to
// E have written for k, exactly this list is left in delta files (newest first,
// each with the last epoch of its file), and none of their anchors of k is
// above a." An entry is not a copy of files: it stays true while the files are
// merged and collected. A reader at sequence number r with a DeltaVersion V
// reads the files that are newer than E and uses the list instead of all other
// files.
//
// Entries use epochs rather than sequence numbers for two reasons. First,
// flushes of a column family are committed in the order of their epochs: a
// Version has all flushes up to its horizon and none above. The horizon is the
// last epoch of the newest operand file, or the floor of the key's bucket if
// that is higher. (Anchors of ingested files and of deleted files may have
// epochs out of order. They do not count for the horizon; see 1.) Second, a
// file records which epochs it was made of, but not which sequence numbers: an
// operand that was combined from several has the sequence number of the newest
// one.
//
// Invariant: an entry (list, a, E, generation, bucket) may be used by a reader
// at r of V iff
//  1. The generation is that of V (VersionStrata::merged_values()). Ingestion,
//     deletion of files, and filters that changed something begin a new
//     generation, so the following rules only concern flushes, merges and
//     collections.
//  2. a and all operands of the list are at r or below. Then r sees all of the
//     list, and no operand of it was combined from some that r sees and others
//     that it does not: jobs do not combine operands across a sequence number
//     at which something may read.
//  3. E is not above the horizon of V. Otherwise V may lack a flush whose
//     operands are in the list, and the reader would find them in memtables as
//     well.
//  4. The floor of the key's bucket is not above E. Then everything that the
//     extent of the bucket was made of is in the list, or was hidden by anchors
//     that the list accounts for. If the floor were above E, the extent could
//     have operands combined from some in the list and others that are not, and
//     anchors that hide operands of the list could be gone together with what
//     they hide.
//  5. No fold has turned the operands into a value in the meantime. That is
//     certain if the extent is unchanged (`bucket`), or if E is not below the
//     fold epoch: file numbers below the fold epoch were allocated before the
//     last fold was committed. As no flush runs while a fold is committed, a
//     Version with a flush of a later epoch includes the fold, and so does the
//     reader's Version (3).
// The reader must then
//  6. read all operand files that are not covered, i.e. whose last epoch is
//     above E, and look for anchors above a in all anchor files that are not
//     covered. The newest anchor also hides entries of the list up to its
//     sequence number.
//  7. skip operands of the list whose file has a last epoch that is not below
//     the cut, the lowest first epoch of the files that are not covered. A
//     merged file with epochs on both sides of E contains these operands,
//     perhaps combined with newer ones. Files are merged as a whole and only
//     once, so the remaining operands are in no file that was read.
//  8. use the list only in place of a covered file that may have the key. If
//     there is no such file, V has nothing of the key up to E (for example
//     after all delta files were gone for a while). With exact filters this
//     rule alone would replace most of the others.
//
// Other jobs do not invalidate entries. Merges and collections combine operands
// and drop operands that are hidden by anchors that they keep; they do so on
// one side of E, or else 4 or 7 detects it. Splitting and joining buckets is
// like collecting them. Floors are raised without a job only where there was
// nothing. Entries do not outlive the DB, so recovery and repair find none.
//
// E and `bucket` may be raised while the entry is in use, each to the value of
// a reader that was allowed to use the entry and found nothing newer. Each of
// the two values is valid independently of the other.
//
// Source: "KDSep" (its KD cache keeps deltas by key; an update drops them).
//
// Thread-safe.
class DeltaCache : private SieveTable::Policy {
 private:
  struct Entry;
  struct Item;

 public:
  // The properties of a reader that decide which entries of one key it may use.
  struct View {
    SequenceNumber read_seq = 0;
    uint64_t generation = 0;
    uint64_t horizon = 0;
    uint64_t floor = 0;
    // Identifies the extent of the key's bucket: increases with each job that
    // writes the bucket; 0 without buckets.
    uint64_t bucket = 0;
  };

  // A reference to an entry, which keeps the entry in memory. It may outlive
  // the cache.
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
    // Returns a, see above.
    // REQUIRES: found()
    SequenceNumber anchor() const;
    // Returns E as of the lookup.
    uint64_t epoch() const { return epoch_; }
    // Returns the number of operands in the list.
    // REQUIRES: found()
    size_t size() const;
    // Returns operand i of the list, the newest one first.
    // REQUIRES: found(), i < size()
    DeltaOperands::Operand operator[](size_t i) const;
    // True if Confirm() would change nothing.
    // REQUIRES: found()
    bool IsUpToDate(const View& view) const;
    // Keeps the values in memory until the cleanups of *cleanable run.
    // REQUIRES: found()
    void PinTo(Cleanable* cleanable) const;
    // Raises E and `bucket` of the entry to those of the view: the reader has
    // found neither operand nor anchor of the key in files that are not
    // covered, and has used all of the list.
    // REQUIRES: found(); `view` is that of the lookup, and its reader sees all
    // entries that its Version has of the key.
    void Confirm(const View& view) const;

   private:
    friend class DeltaCache;
    Entry* entry_ = nullptr;
    uint64_t epoch_ = 0;
  };

  // Returns a cache for a column family with these options.
  static std::unique_ptr<DeltaCache> Create(const ImmutableOptions& ioptions,
                                            const MutableCFOptions& options);

  // capacity: bytes.
  // reservation: charges the memory to the block cache; nullptr: the memory is
  // not charged.
  // statistics: may be nullptr.
  DeltaCache(size_t capacity,
             std::shared_ptr<CacheReservationManager> reservation,
             Statistics* statistics);
  DeltaCache(const DeltaCache&) = delete;
  DeltaCache& operator=(const DeltaCache&) = delete;

  // Returns the entry of the key if the reader may use it; otherwise a Ref with
  // found() == false.
  Ref Lookup(const Slice& user_key, const View& view);

  // Inserts the first (newest) `count` operands of `operands`: all operands of
  // the key that the reader has found and that `anchor`, the newest anchor,
  // does not hide.
  // REQUIRES: count > 0; the reader sees all entries that its Version has of
  // the key.
  void Insert(const Slice& user_key, const View& view, SequenceNumber anchor,
              const DeltaOperands& operands, size_t count);

  // To be called before a fold is committed.
  // next_epoch: a number that no file has yet as its epoch.
  // REQUIRES: no flush of the column family begins until the Version of the
  // fold is current.
  void OnFold(uint64_t next_epoch);

  bool is_on() const { return table_.capacity() > 0; }
  // Sets the capacity in bytes and evicts entries beyond it.
  void SetCapacity(size_t capacity) { table_.SetCapacity(capacity); }
  // As those of SieveTable.
  void LimitCapacity(size_t capacity) { table_.LimitCapacity(capacity); }
  void Trim() { table_.Trim(); }
  size_t capacity() const { return table_.capacity(); }
  SieveTable::Stats GetStats() const { return table_.GetStats(); }

 private:
  static void RaiseTo(std::atomic<uint64_t>* number, uint64_t to);
  bool Admits(SieveTable::Entry* old, SieveTable::Entry* entry) override;
  bool MayUse(const Entry& entry, uint64_t epoch, const View& view) const;

  SieveTable table_;
  Statistics* const statistics_;
  std::atomic<uint64_t> fold_epoch_{0};
};

}  // namespace ROCKSDB_NAMESPACE
