//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "db/delta/delta_bucket_intake.h"
#include "db/delta/delta_damage.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_job_backoff.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// The running jobs of a delta store, and the state that they share. The jobs
// are DBStrata::BackgroundDeltaMerge and BackgroundDeltaCollection.
//
// Invariants:
// * At most one merge runs: two would take the same files.
// * Running collections have disjoint ranges of buckets. Only collections
//   change buckets, so the buckets of a range stay as they are until it is
//   released.
// * At most one thread picks a collection (is_picking). It does so without the
//   mutex, on a Version that it has pinned. Meanwhile running collections may
//   end, but none begins. A collection whose edit may drop all buckets also
//   sets is_picking until the edit is committed.
// * A failed merge delays merges only, and a failed collection delays
//   collections only: they read different files, and readers gain from either
//   alone.
//
// REQUIRES: DB mutex held, for all functions.
class DeltaJobState {
 public:
  using KeyRange = DeltaEdit::KeyRange;

  struct Collection {
    KeyRange range;
    // By how much the number of buckets may have increased when the collection
    // ends, and by how much it will have decreased.
    uint32_t more_buckets = 0;
    uint32_t fewer_buckets = 0;
    bool is_folding = false;
    // The path of the files that it writes.
    uint32_t path_id = 0;
  };
  using Handle = std::list<Collection>::iterator;

  bool is_merging() const { return is_merging_; }
  void BeginMerge() {
    assert(!is_merging_);
    is_merging_ = true;
  }
  void EndMerge() {
    assert(is_merging_);
    is_merging_ = false;
    ++num_ended_;
  }

  bool is_picking() const { return is_picking_; }
  void BeginPick() {
    assert(!is_picking_);
    is_picking_ = true;
    is_collection_due_ = false;
    wishes_wait_ = false;
  }
  void EndPick() {
    assert(is_picking_);
    is_picking_ = false;
  }

  // True if there may be something to collect: buckets, merged files or options
  // have changed since the last pick.
  bool is_collection_due() const { return is_collection_due_; }
  void SetCollectionDue() { is_collection_due_ = true; }

  // The number of the last collection of the background that was scheduled
  // here, counted over all column families of the DB; 0: none.
  uint64_t last_turn() const { return last_turn_; }
  void SetLastTurn(uint64_t turn) { last_turn_ = turn; }

  Handle BeginCollection(Collection collection) {
    return collections_.insert(collections_.end(), std::move(collection));
  }
  void EndCollection(Handle handle) {
    collections_.erase(handle);
    ++num_ended_;
  }
  // Returns the number of merges and collections that have ended. While it
  // stays the same, and jobs run, a pick that has found nothing would find
  // nothing again.
  uint64_t num_ended() const { return num_ended_; }
  size_t num_collections() const { return collections_.size(); }
  // Returns the running collections.
  std::vector<Collection> Collections() const {
    return {collections_.begin(), collections_.end()};
  }
  // True if a fold is running. At most one may run.
  bool IsFolding() const {
    return std::any_of(collections_.begin(), collections_.end(),
                       [](const Collection& c) { return c.is_folding; });
  }
  // True if a fold may begin: none is running, and enough jobs have succeeded
  // since the last fold that was given up because of an interfering change. A
  // fold that begins earlier would probably waste its work again.
  bool MayFold() const { return folds_to_skip_ == 0 && !IsFolding(); }
  // The same for keys that are wished for: enough time must have passed, as in
  // an idle DB no other job succeeds.
  bool MayFoldWishes(uint64_t now_micros) const {
    return fold_backoff_.MayRun(now_micros) && !IsFolding();
  }
  void OnFoldGivenUp(uint64_t now_micros) {
    folds_to_skip_ = kFoldsToSkip;
    fold_backoff_.OnFailure(now_micros);
  }
  void OnFoldCommitted() { fold_backoff_.OnSuccess(fold_backoff_.failures()); }
  bool IsIdle() const {
    return !is_merging_ && !is_picking_ && collections_.empty();
  }

  // Returns true if the two ranges have a bucket in common.
  static bool Overlap(const KeyRange& a, const KeyRange& b,
                      const Comparator* ucmp);

  // The bucket intake as of the last pick; nullptr before the first one.
  const std::shared_ptr<const DeltaBucketIntake>& slices() const {
    return slices_;
  }
  void SetSlices(std::shared_ptr<const DeltaBucketIntake> slices) {
    slices_ = std::move(slices);
  }

  // ---- The drain: the column family no longer separates deltas.

  // Describes the operands that a fold has left in the files that its job has
  // written. The fold is not repeated until it can have another result: when
  // there are more operands for the buckets of the file, or when the following
  // state has changed.
  struct Leftover {
    // True if some operands are left because of snapshots, of which the
    // earliest is earliest_snapshot.
    bool is_for_snapshots = false;
    SequenceNumber earliest_snapshot = 0;
    // True if some operands could not be merged. It is unknown when they can.
    bool has_failed = false;

    // If both is true, the release of the snapshots lets the other operands be
    // folded. What the next fold leaves is its own leftover.
    bool IsWaiting(SequenceNumber earliest_reader) const {
      return is_for_snapshots ? earliest_reader <= earliest_snapshot
                              : has_failed;
    }
  };
  // Leftovers by file number.
  using Leftovers = std::map<uint64_t, Leftover>;
  const Leftovers& leftovers() const { return leftovers_; }
  void AddLeftover(uint64_t file, const Leftover& leftover) {
    leftovers_[file] = leftover;
  }
  // Drops the leftovers of files for which is_gone(file number) is true.
  template <typename IsGone>
  void DropLeftovers(IsGone is_gone) {
    std::erase_if(leftovers_,
                  [&](const auto& entry) { return is_gone(entry.first); });
  }
  // Drops all leftovers, so that all of them are tried again.
  void ClearLeftovers() { leftovers_.clear(); }
  bool HasWaiting(SequenceNumber earliest_reader) const {
    return std::any_of(leftovers_.begin(), leftovers_.end(),
                       [&](const auto& entry) {
                         return entry.second.IsWaiting(earliest_reader);
                       });
  }
  bool HasWaitingForSnapshots(SequenceNumber earliest_reader) const {
    return std::any_of(leftovers_.begin(), leftovers_.end(),
                       [&](const auto& entry) {
                         return entry.second.is_for_snapshots &&
                                entry.second.IsWaiting(earliest_reader);
                       });
  }
  // Returns true if a leftover no longer waits, as the snapshots for which it
  // was left are gone.
  bool HasReleased(SequenceNumber earliest_reader) const {
    return std::any_of(leftovers_.begin(), leftovers_.end(),
                       [&](const auto& entry) {
                         return entry.second.is_for_snapshots &&
                                !entry.second.IsWaiting(earliest_reader);
                       });
  }

  // ---- Keys to fold because a compaction filter waits for them or
  // CompactRange() has requested it; nullptr: none.

  const std::shared_ptr<const DeltaFoldWishes>& wishes() const {
    return wishes_;
  }
  // The operands of these keys are in files with epochs below this one.
  uint64_t wishes_below() const { return wishes_below_; }
  void AddWishes(const DeltaFoldWishes& wishes, uint64_t below,
                 const Comparator* ucmp);
  // To be called when a pick takes wishes() for a fold. As only one fold runs
  // at a time, the next FulfilWishes() is for these wishes.
  void OnWishesTaken() { new_wishes_ = DeltaFoldWishes(); }
  // Removes the keys of the range after a fold of them has ended. Keys that
  // were added since OnWishesTaken() stay: the fold has not offered them.
  void FulfilWishes(const KeyRange& range, const Comparator* ucmp);
  // Drops `wishes` as nothing more can be done for them. Does nothing if
  // wishes() has been replaced in the meantime.
  void DropWishes(const std::shared_ptr<const DeltaFoldWishes>& wishes) {
    if (wishes_ == wishes) {
      wishes_.reset();
    }
  }

  // CompactRange() calls them at its begin and at its end. It fulfils only the
  // wishes of compactions that ended before it began.
  void BeginCall() { ++num_calls_; }
  void EndCall() {
    assert(num_calls_ > 0);
    --num_calls_;
  }
  // True while there is such a call. Wishes of compactions that end meanwhile
  // wait for its end: the call would fulfil them, too, and while compactions go
  // on it would find new ones after each of its jobs, without end.
  bool HasCalls() const { return num_calls_ > 0; }

  // True if the last pick had to leave wishes() because no fold might begin. No
  // job need be running whose end makes a collection due, so
  // DBStrata::ScheduleDeltaJobs() asks until a fold may begin.
  bool wishes_wait() const { return wishes_wait_; }
  void SetWishesWait() { wishes_wait_ = true; }

  // ---- Damage: what jobs have failed to read because of Corruption. Files
  // pile up behind it, and slower writes would not help.

  // The buckets. Those whose collection has failed are added, and those whose
  // collection has succeeded are removed.
  const DeltaDamage& damage() const { return damage_; }
  DeltaDamage& damage() { return damage_; }
  // True if the last merge, which takes all flushed files, has failed with
  // Corruption.
  bool is_merge_damaged() const { return is_merge_damaged_; }
  void SetMergeDamaged(bool is_damaged) { is_merge_damaged_ = is_damaged; }
  // True if the last collection that takes everything has failed with
  // Corruption.
  bool is_partition_damaged() const { return is_partition_damaged_; }
  void SetPartitionDamaged(bool is_damaged) {
    is_partition_damaged_ = is_damaged;
  }

  // ----

  // Returns the bytes of operands that a folding job should take in. Operands
  // beyond those whose values fit into the job's memory are rewritten for
  // nothing; on the other hand, each job writes a file to level 0.
  uint64_t fold_bytes() const { return fold_bytes_; }
  // Returns the minimum bytes of operands for which a key is worth folding if
  // there is room otherwise: a few operands would cause the whole value to be
  // rewritten. 0: not known.
  uint64_t min_fold_bytes() const { return folded_size_ / kSmallFoldDivisor; }
  // Adapts fold_bytes() and min_fold_bytes() to the result of a fold.
  // keys: number of folded keys, not 0.
  // max_bytes: limit of the bytes of values.
  // full: true if the fold has reached the limit.
  void OnFolded(uint64_t keys, uint64_t bytes_of_values, uint64_t max_bytes,
                bool full) {
    folded_size_ = bytes_of_values / keys;
    if (full) {
      fold_bytes_ = std::max(fold_bytes_ / 2, kMinFoldBytes);
    } else if (bytes_of_values < max_bytes / kFewFoldedDivisor) {
      fold_bytes_ = std::min(fold_bytes_ * 2, kMaxFoldBytes);
    }
  }

  static constexpr uint64_t kMinFoldBytes = uint64_t{256} << 10;
  static constexpr uint64_t kMaxFoldBytes = uint64_t{32} << 20;
  static constexpr uint64_t kFewFoldedDivisor = 4;
  // min_fold_bytes() as a fraction of the average value. Operands that are left
  // take up room in which others could combine, so if there is a tenth of a
  // value per key, folding the whole bucket is better.
  static constexpr uint64_t kSmallFoldDivisor = 32;

  // ----

  // These say when the next merge and the next collection of the background may
  // begin.
  DeltaJobBackoff& merge_backoff() { return merge_backoff_; }
  DeltaJobBackoff& collection_backoff() { return collection_backoff_; }

  // To be called when a merge or a collection was successful.
  void OnSuccess() { folds_to_skip_ -= folds_to_skip_ > 0 ? 1 : 0; }

  // Number of jobs that must succeed before the next fold after one was given
  // up.
  static constexpr uint32_t kFoldsToSkip = 4;

 private:
  bool is_merging_ = false;
  bool is_picking_ = false;
  // True at first, so that there is a pick after the DB is opened.
  bool is_collection_due_ = true;
  uint64_t last_turn_ = 0;
  std::list<Collection> collections_;
  uint64_t num_ended_ = 0;
  std::shared_ptr<const DeltaBucketIntake> slices_;
  DeltaJobBackoff merge_backoff_;
  DeltaJobBackoff collection_backoff_;
  uint32_t folds_to_skip_ = 0;
  DeltaJobBackoff fold_backoff_;
  Leftovers leftovers_;
  DeltaDamage damage_;
  bool is_merge_damaged_ = false;
  bool is_partition_damaged_ = false;
  uint64_t fold_bytes_ = uint64_t{4} << 20;
  // Average bytes of a value in the last fold.
  uint64_t folded_size_ = 0;
  // Picks use it without the mutex, so it is replaced, never modified.
  std::shared_ptr<const DeltaFoldWishes> wishes_;
  uint64_t wishes_below_ = 0;
  // Those of wishes_ that were added since OnWishesTaken().
  DeltaFoldWishes new_wishes_;
  int num_calls_ = 0;
  bool wishes_wait_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
