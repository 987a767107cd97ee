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

// Determines which names one subcompaction removes from the address map: the
// names of its mapped input entries minus those of its mapped output entries.
// It receives both from BlobGarbageMeter. Each input name is classified as
//
// kept      It is output, in any mode. The name stays in the map.
// hidden    CompactionIterator dropped it because a newer entry of the key or
//           a range tombstone covers it in its snapshot stripe. It is removed
//           from the map during the job, in batches. With defer_all it is
//           demoted instead, and removed like a deferred name.
// deferred  All other cases: a filter dropped or changed it, a merge consumed
//           it, or it became an inline value. It is added to DeferredRemovals,
//           which the owner of the job applies after the commit.
//
// Why hidden names may be removed at once: No snapshot of the job reads them,
// no later snapshot can, and the entries that hide them are already committed.
// So they are dead even if the job fails. The old files then name values that
// are gone, but only below the hiding entries. The names must be removed before
// the edit is installed: if the tombstone over a direct entry of the bottom
// level disappears with the edit, or the value over it gets the sequence number
// zero, a read in between would find the old value in the map by the key alone.
// CheckAtCommit() asserts this.
//
// For that reason HideCurrent() must be called for every hidden entry. Calling
// it for an entry that is not hidden loses the entry's value.
//
// Why two groups of names suffice: The inputs of the last user key with mapped
// entries, B, and of the one before it, A, are held. When the input reaches a
// mapped entry of a third key, C, the names of A are classified. No output of A
// can follow then:
// 1. Every output is metered before CompactionIterator is asked for the next
//    one (SubcompactionState::AddToOutput precedes CompactionIterator::Next).
// 2. One call of Next() moves the input only until it has an output. If it
//    looks ahead of the current entry (for a SingleDelete, a tombstone in the
//    bottommost level or merge operands), it stops no later than at the first
//    entry of another user key. So when the input is at the first entry of C,
//    the entries that are output before the input moves again belong to C or to
//    the user key right before it, which is B or lies between B and C.
// 3. Merge results that wait in MergeHelper belong to the current key of 2, and
//    are all output before the input moves again.
// So the memory is bounded by the mapped versions of two user keys. (In fact a
// mapped entry is output while the input is still at it, but the groups do not
// depend on that.)
//
// This is also checked: an output entry whose name is in neither group must be
// new, which its birth shows. Otherwise Out() fails the compaction, so that its
// deferred removals are never applied.
//
// Several input entries may have the same name (files that a repair found
// twice). The name is kept if one of them is output, and hidden only if all of
// them are hidden.
//
// Not thread-safe: used by the thread of one subcompaction. The map and the
// removals are shared.
class MappedEntryMeter {
 public:
  struct Counts {
    uint64_t inputs = 0;
    uint64_t kept = 0;
    uint64_t hidden = 0;    // includes names that the map no longer had
    uint64_t deferred = 0;  // excludes names that the map no longer had
  };

  // hash_seed: seed of the key hashes in the map.
  // first_new_birth: file number; all file numbers that the job allocates are
  // at least this, all that were in use when it began are smaller.
  // defer_all: if true, hidden names stay in the map until no Version names
  // them. Needed if sequence numbers do not determine visibility, as a reader
  // may still look up a hidden entry by its name then. Names that must no
  // longer be found by the key alone are nevertheless demoted before the edit.
  // REQUIRES: map, ucmp and removals outlive this object.
  MappedEntryMeter(AddressMap* map, uint64_t hash_seed, const Comparator* ucmp,
                   uint64_t first_new_birth, DeferredRemovals* removals,
                   bool defer_all = false);
  MappedEntryMeter(const MappedEntryMeter&) = delete;
  MappedEntryMeter& operator=(const MappedEntryMeter&) = delete;

  // Called for each entry of the input (each time that the input iterator is
  // positioned) or of the output. Sets *is_mapped if the entry is mapped. An
  // error must fail the compaction. After names for DeferredRemovals were
  // dropped, each mapped input entry is an error: the compaction could not be
  // committed at its end.
  Status Meter(const ParsedInternalKey& ikey, const Slice& value, bool is_input,
               bool* is_mapped);

  // Called when the input is at a mapped entry.
  // REQUIRES: keys are passed in order.
  void In(const Slice& user_key, SequenceNumber seq, uint64_t birth);
  // Called when the input is at any other entry, including sentinels of range
  // tombstones.
  void InOther() { on_mapped_ = false; }
  // Called when the current input entry is dropped because it is hidden as
  // described above. Does nothing if the entry is not mapped.
  void HideCurrent();
  // Called for a mapped output entry. An error must fail the compaction.
  Status Out(const Slice& user_key, SequenceNumber seq, uint64_t birth);

  // Classifies the remaining names and removes the last hidden names. Not
  // called if the subcompaction failed; the job's removals are then cleared,
  // not applied.
  // REQUIRES: the input is exhausted, all outputs were metered, and the edit
  // is not installed yet.
  void Finish();

  // Handles a compaction filter's kRemoveAndSkipUntil: returns kRemove instead
  // and stores the end of the range. Returns other decisions unchanged.
  //
  // Skipping the range would drop tombstones and versions that hide names which
  // were already removed, and would expose older ones. So each key of the range
  // is removed individually, without calling the filter: the dropped entries
  // are metered, older entries stay hidden, and entries that snapshots need are
  // kept.
  // REQUIRES: skip_until is greater than the current user key if decision is
  // kRemoveAndSkipUntil.
  CompactionFilter::Decision RemoveRange(CompactionFilter::Decision decision,
                                         const Slice& skip_until);
  // Returns true if the entry must be removed without calling the filter.
  // REQUIRES: keys are passed in order.
  bool InRemovedRange(const Slice& user_key);

  // Asserts in debug builds that the map finds no hidden value by the key
  // alone.
  // REQUIRES: Finish() was called; the edit was just committed.
  void CheckAtCommit() const;

  const Counts& counts() const { return counts_; }

 private:
  static constexpr size_t kBatchSize = 256;

  struct Pending {
    MapName name;
    uint32_t copies = 1;
    uint32_t hidden = 0;  // number of hidden copies
    bool kept = false;
  };
  // The mapped inputs of a user key, newest first.
  using Group = std::vector<Pending>;

  static Pending* Find(Group* group, const MapName& name);
  void Retire(Group* group);
  // Removes the hidden names from the map. With defer_all_, demotes those that
  // the map finds by the key alone instead.
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
  // Index in group_ of the entry that the input is at, if on_mapped_.
  size_t current_ = 0;
  bool on_mapped_ = false;

  std::vector<MapName> hidden_;
  std::vector<MapName> deferred_;
  bool lost_names_ = false;  // removals_ has dropped names

  bool has_removed_range_ = false;
  std::string removed_range_end_;  // exclusive

  Counts counts_;
#ifndef NDEBUG
  // The first kMaxChecked hidden names.
  static constexpr size_t kMaxChecked = size_t{1} << 16;
  std::vector<MapName> checked_;
#endif  // !NDEBUG
};

}  // namespace ROCKSDB_NAMESPACE
