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
#include "db/delta/delta_edit.h"
#include "db/delta/delta_fold_wishes.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Which jobs a delta store has at work, and what they have to know of each
// other. What the jobs are, see db_impl_delta_jobs.cc.
//
// Invariants:
// * One merge at a time: two would take the same files.
// * Collections that run have ranges of buckets that do not overlap. Nobody
//   else changes buckets, so those of a range stay as they are until it is
//   released.
// * One thread at a time looks for a collection (is_picking). It looks without
//   the mutex, at a Version that it has pinned. Meanwhile others can only end.
//   So does a collection whose edit may drop all buckets.
//
// REQUIRES of all: DB mutex held.
class DeltaJobState {
 public:
  using KeyRange = DeltaEdit::KeyRange;

  struct Collection {
    KeyRange range;
    // How many more buckets there may be when it is over, and how many fewer
    // there will be.
    uint32_t more_buckets = 0;
    uint32_t fewer_buckets = 0;
    bool is_folding = false;
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
  }

  bool is_picking() const { return is_picking_; }
  void BeginPick() {
    assert(!is_picking_);
    is_picking_ = true;
    is_collection_due_ = false;
  }
  void EndPick() {
    assert(is_picking_);
    is_picking_ = false;
  }

  // There may be something to collect: buckets, merged files or options have
  // changed since somebody has looked.
  bool is_collection_due() const { return is_collection_due_; }
  void SetCollectionDue() { is_collection_due_ = true; }

  Handle BeginCollection(Collection collection) {
    return collections_.insert(collections_.end(), std::move(collection));
  }
  void EndCollection(Handle handle) { collections_.erase(handle); }
  size_t num_collections() const { return collections_.size(); }
  // Those that run.
  std::vector<Collection> Collections() const {
    return {collections_.begin(), collections_.end()};
  }
  // One fold at a time.
  bool IsFolding() const {
    return std::any_of(collections_.begin(), collections_.end(),
                       [](const Collection& c) { return c.is_folding; });
  }
  // Not too soon after one was given up since something came between: the work
  // would be for nothing again.
  bool MayFold() const { return folds_to_skip_ == 0 && !IsFolding(); }
  void OnFoldGivenUp() { folds_to_skip_ = kFoldsToSkip; }
  bool IsIdle() const {
    return !is_merging_ && !is_picking_ && collections_.empty();
  }

  // Do ranges of buckets have one in common?
  static bool Overlap(const KeyRange& a, const KeyRange& b,
                      const Comparator* ucmp);

  // Of the last time that somebody has looked; nullptr if nobody has.
  const std::shared_ptr<const DeltaBucketIntake>& slices() const {
    return slices_;
  }
  void SetSlices(std::shared_ptr<const DeltaBucketIntake> slices) {
    slices_ = std::move(slices);
  }

  // ---- The drain: the column family does not separate deltas any more.

  // What a fold has left in a file that its job has written. It is not tried
  // again before that can make a difference: when there is more for its
  // buckets, or what follows has changed.
  struct Leftover {
    // Some operands are left for the sake of snapshots from here on.
    bool is_for_snapshots = false;
    SequenceNumber earliest_snapshot = 0;
    // Some could not be merged. Nobody knows when they can.
    bool has_failed = false;

    bool IsWaiting(SequenceNumber earliest_reader) const {
      return has_failed ||
             (is_for_snapshots && earliest_reader <= earliest_snapshot);
    }
  };
  // By the numbers of the files.
  using Leftovers = std::map<uint64_t, Leftover>;
  const Leftovers& leftovers() const { return leftovers_; }
  void AddLeftover(uint64_t file, const Leftover& leftover) {
    leftovers_[file] = leftover;
  }
  // Of files that are gone.
  template <typename IsGone>
  void DropLeftovers(IsGone is_gone) {
    std::erase_if(leftovers_,
                  [&](const auto& entry) { return is_gone(entry.first); });
  }
  // Somebody wants everything to be tried.
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
  // A snapshot is gone that some of them were left for?
  bool HasReleased(SequenceNumber earliest_reader) const {
    return std::any_of(leftovers_.begin(), leftovers_.end(),
                       [&](const auto& entry) {
                         return entry.second.is_for_snapshots &&
                                !entry.second.IsWaiting(earliest_reader);
                       });
  }

  // ---- Keys that are to be folded, nullptr: none. A compaction filter waits
  // for them, or CompactRange() has asked for it.

  const std::shared_ptr<const DeltaFoldWishes>& wishes() const {
    return wishes_;
  }
  // Their operands are in files with lower epochs.
  uint64_t wishes_below() const { return wishes_below_; }
  void AddWishes(const DeltaFoldWishes& wishes, uint64_t below,
                 const Comparator* ucmp);
  // A fold of these keys has come to its end.
  void FulfilWishes(const KeyRange& range, const Comparator* ucmp);
  // There is nothing more to be done for them. Not if there are others by now.
  void DropWishes(const std::shared_ptr<const DeltaFoldWishes>& wishes) {
    if (wishes_ == wishes) {
      wishes_.reset();
    }
  }

  // ----

  // How many bytes of operands a job that folds should have. What it has too
  // many for the values that it may hold is rewritten for nothing; and each job
  // makes a file in level 0.
  uint64_t fold_bytes() const { return fold_bytes_; }
  // A key with fewer bytes of operands is better left, if there is room: next
  // to nothing goes into a value that is written whole. 0: not known.
  uint64_t min_fold_bytes() const { return folded_size_ / kSmallFoldDivisor; }
  // keys: not 0. max_bytes: of values.
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
  // Of a value. What is left takes up room that others could combine in, so
  // with a tenth of a value for a key all of a bucket is better folded.
  static constexpr uint64_t kSmallFoldDivisor = 32;

  // ----

  // A job has failed, or was successful. What was wrong may go away, but each
  // attempt may read and write as much as the job: the time until the next one
  // doubles. That is not for jobs that somebody has asked for.
  void OnFailure(uint64_t now_micros);
  void OnSuccess() {
    num_failures_ = 0;
    retry_at_micros_ = 0;
    folds_to_skip_ -= folds_to_skip_ > 0 ? 1 : 0;
  }
  bool MayRun(uint64_t now_micros) const {
    return now_micros >= retry_at_micros_;
  }

  static constexpr uint64_t kFirstRetryMicros = 1000 * 1000;
  static constexpr uint64_t kLastRetryMicros = 64 * kFirstRetryMicros;
  // Jobs that are successful before the next fold.
  static constexpr uint32_t kFoldsToSkip = 4;

 private:
  bool is_merging_ = false;
  bool is_picking_ = false;
  // After it is opened, somebody has to look.
  bool is_collection_due_ = true;
  std::list<Collection> collections_;
  std::shared_ptr<const DeltaBucketIntake> slices_;
  uint32_t num_failures_ = 0;
  uint64_t retry_at_micros_ = 0;
  uint32_t folds_to_skip_ = 0;
  Leftovers leftovers_;
  uint64_t fold_bytes_ = uint64_t{4} << 20;
  // What folded values took up, on average, the last time.
  uint64_t folded_size_ = 0;
  // Pickers have it without the mutex: another one takes its place.
  std::shared_ptr<const DeltaFoldWishes> wishes_;
  uint64_t wishes_below_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
