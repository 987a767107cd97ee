//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/deferred_removals.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/dbformat.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Finds out what one subcompaction takes out of the address map: the names of
// its mapped input entries minus those of its mapped output entries. It sees
// both through BlobGarbageMeter. Each input name meets one of three fates:
//
// kept      It is output, under whatever mode. Nothing happens.
// hidden    CompactionIterator dropped it because a newer entry of the key or
//           a range tombstone covers it in its snapshot stripe. It is removed
//           from the map during the job, in batches. With defer_all it is
//           demoted instead, and removed like a deferred one.
// deferred  All else: a filter dropped or changed it, a merge consumed it, it
//           became an inline value. It goes to DeferredRemovals, which the
//           job's owner applies after the commit.
//
// Why hidden names may go at once. No snapshot of the job reads them, no later
// snapshot can, and what hides them is committed already. So they are dead
// even if the job fails; the old files then name values that are gone, but
// below what hides them. They must go before the edit is installed: if the
// tombstone over a direct entry of the bottom level disappears with the edit,
// or the value over it gets the sequence number zero, a read in between would
// find the old value in the map by the key alone. CheckAtCommit() asserts it.
//
// HideCurrent must not be omitted for that reason. HideCurrent on an entry that
// is not hidden loses its value.
//
// Why two groups of names suffice. The inputs of the last user key with mapped
// entries, B, and of the one before, A, are held; when the input reaches a
// mapped entry of a third, C, those of A are judged. No output of A is still
// to come then:
// 1. Every output is metered before CompactionIterator is asked for the next
//    one (SubcompactionState::AddToOutput precedes CompactionIterator::Next).
// 2. One call of Next moves the input only until it has an output. Where it
//    looks ahead of the entry in hand (a SingleDelete, a tombstone in the
//    bottommost level, merge operands) it stops at the latest at the first
//    entry of another user key. So when it stands on the first entry of C,
//    what it outputs, before it moves the input again, belongs to C or to the
//    user key right before it, which is B or lies between B and C.
// 3. Merge results that wait in MergeHelper are of the key in hand of 2, and
//    are all output before the input moves again.
// The memory is therefore bounded by the mapped versions of two user keys.
// (Today a mapped entry is even output while the input stands on it. The
// groups do not depend on that.)
//
// This is checked as well: an output entry whose name is in neither group must
// be new, which its birth tells. Otherwise Out fails the compaction, so that
// its deferred removals never happen.
//
// Several input entries may have the same name (files that a repair found
// twice). If one is output the name is kept; it is hidden only if all are.
//
// Not thread-safe: one thread's subcompaction. The map and the removals are
// shared.
class MappedEntryMeter {
 public:
  struct Counts {
    uint64_t inputs = 0;
    uint64_t kept = 0;
    uint64_t hidden = 0;    // of these the map may have lost some before
    uint64_t deferred = 0;  // without those that the map no longer had
  };

  // hash_seed: that of the keys in the map. first_new_birth: all file numbers
  // that the job allocates are at least this, all that were in use when it
  // began are below.
  // defer_all: hidden names stay in the map until no Version names them. Where
  // sequence numbers do not tell what is visible, a reader may still be on the
  // way to them, by the name. What must not be found by the key alone any more
  // is demoted before the edit all the same.
  // REQUIRES: map, ucmp and removals outlive this.
  MappedEntryMeter(AddressMap* map, uint64_t hash_seed, const Comparator* ucmp,
                   uint64_t first_new_birth, DeferredRemovals* removals,
                   bool defer_all = false);
  MappedEntryMeter(const MappedEntryMeter&) = delete;
  MappedEntryMeter& operator=(const MappedEntryMeter&) = delete;

  // One entry of the input (each time that the input iterator is positioned)
  // or of the output. Tells whether it was a mapped one.
  Status Meter(const ParsedInternalKey& ikey, const Slice& value, bool is_input,
               bool* is_mapped);

  // The input stands on a mapped entry now.
  // REQUIRES: keys come in order.
  void In(const Slice& user_key, SequenceNumber seq, uint64_t birth);
  // The input stands on another entry: all types, and sentinels of range
  // tombstones.
  void InOther() { on_mapped_ = false; }
  // The entry that the input stands on is dropped and hidden as described
  // above. Nothing happens if it is not a mapped one.
  void HideCurrent();
  Status Out(const Slice& user_key, SequenceNumber seq, uint64_t birth);

  // Judges what is left and removes the last hidden names. If the
  // subcompaction failed, this is not called, and the job's removals are
  // cleared, not applied.
  // REQUIRES: the input is exhausted, all outputs were metered, and the edit
  // is not installed yet.
  void Finish();

  // A compaction filter's kRemoveAndSkipUntil. Skipping would drop tombstones
  // and versions that hide names already removed, and would expose deeper
  // ones. So each key of the range is removed by itself, without asking the
  // filter: what is dropped is metered, what lies below stays hidden, and
  // what snapshots need stays.
  //
  // Turns the decision into kRemove and remembers the range's end; returns
  // other decisions as they are.
  // REQUIRES: skip_until is greater than the user key in hand, if decision is
  // kRemoveAndSkipUntil.
  CompactionFilter::Decision RemoveRange(CompactionFilter::Decision decision,
                                         const Slice& skip_until);
  // Must the entry be removed without asking the filter?
  // REQUIRES: keys come in order.
  bool InRemovedRange(const Slice& user_key);

  // Asserts, in debug builds, that the map finds no hidden value by the key
  // alone.
  // REQUIRES: Finish() was called; the edit is committed just now.
  void CheckAtCommit() const;

  const Counts& counts() const { return counts_; }

 private:
  static constexpr size_t kBatchSize = 256;

  struct Pending {
    MapName name;
    uint32_t copies = 1;
    uint32_t hidden = 0;  // of the copies
    bool kept = false;
  };
  // The mapped inputs of a user key, newest first.
  using Group = std::vector<Pending>;

  static Pending* Find(Group* group, const MapName& name);
  void Retire(Group* group);
  // Takes out what the map finds by the key alone, or all of it.
  void RemoveHidden();
  void HandOverDeferred();

  AddressMap* const map_;
  const uint64_t hash_seed_;
  const Comparator* const ucmp_;
  const uint64_t first_new_birth_;
  DeferredRemovals* const removals_;
  const bool defer_all_;

  Group group_;
  Group prev_group_;
  // What the input stands on, if on_mapped_.
  size_t current_ = 0;
  bool on_mapped_ = false;

  std::vector<MapName> hidden_;
  std::vector<MapName> deferred_;

  bool has_removed_range_ = false;
  std::string removed_range_end_;  // exclusive

  Counts counts_;
#ifndef NDEBUG
  // The hidden names, or the first ones of them.
  static constexpr size_t kMaxChecked = size_t{1} << 16;
  std::vector<MapName> checked_;
#endif  // !NDEBUG
};

}  // namespace ROCKSDB_NAMESPACE
