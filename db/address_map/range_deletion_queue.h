//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "db/dbformat.h"
#include "rocksdb/comparator.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// One or more range deletions of the keys in [start, end) that no sweep has
// processed yet.
struct CommittedRangeDeletion {
  std::string start;
  std::string end;
  SequenceNumber seq = 0;     // of the newest deletion
  SequenceNumber oldest = 0;  // of the oldest deletion
  // MapTransaction::born_before() of the newest deletion. A sweep removes no
  // value that was born at this file number or later.
  uint64_t born_before = 0;

  bool operator==(const CommittedRangeDeletion& other) const {
    return start == other.start && end == other.end && seq == other.seq &&
           oldest == other.oldest && born_before == other.born_before;
  }
};

// The range deletions of committed flushes whose values are still in the
// address map. Each waits until there are no readers below its sequence number,
// and then for a RangeDeletionSweep.
//
//   Add() -> Take() -> the sweep -> PutBack() of the unprocessed deletions
//
// Invariant: A range has the sequence number and the limit of births of one
// deletion, even if the range stands for several deletions. Each deletion hides
// the values that are below both of its limits, and the newest deletion hides
// the most.
//
// The rest of a range after an unfinished sweep is older than a later deletion
// covering the whole range. The rest stays a separate range, and goes first.
// Otherwise each deletion of a range would begin the sweep at the start of the
// range again, and no sweep would reach the end.
//
// A range deletion that is missing in the queue does no harm: its values are
// freed by the compaction that merges the deletion and the values, or when the
// map is rebuilt at an open. So the queue rejects new deletions beyond a limit.
//
// Thread-safe.
class RangeDeletionQueue {
 public:
  // Limit of the memory of the waiting deletions.
  static constexpr size_t kMaxBytes = size_t{32} << 20;

  explicit RangeDeletionQueue(const Comparator* user_comparator,
                              size_t max_bytes = kMaxBytes)
      : ucmp_(user_comparator), max_bytes_(max_bytes) {}
  RangeDeletionQueue(const RangeDeletionQueue&) = delete;
  RangeDeletionQueue& operator=(const RangeDeletionQueue&) = delete;

  // Adds the deletions for which there is room. Returns the number of rejected
  // deletions.
  size_t Add(std::vector<CommittedRangeDeletion>&& deletions);

  // Removes the deletions that no reader reads below, and returns them as
  // disjoint ranges in key order.
  // earliest_reader: the smallest sequence number that a reader may read at.
  std::vector<CommittedRangeDeletion> Take(SequenceNumber earliest_reader);

  // Removes the deletions with the smallest `oldest` from the given ones, and
  // returns them in the same order.
  static std::vector<CommittedRangeDeletion> TakeOldest(
      std::vector<CommittedRangeDeletion>* deletions);

  // Adds the deletions even if there is no room.
  // not_before: a time of the caller's clock; BlockedUntil() reports nothing to
  // take before it.
  void PutBack(std::vector<CommittedRangeDeletion>&& deletions,
               uint64_t not_before);

  // Returns the smallest earliest_reader for which Take() has a result, or
  // kMaxSequenceNumber if there is nothing to take at this time.
  // now: the time by the clock of PutBack().
  SequenceNumber BlockedUntil(uint64_t now) const;
  // Like BlockedUntil(), but regardless of the time.
  SequenceNumber Smallest() const;
  size_t Count() const { return count_.load(std::memory_order_relaxed); }

 private:
  static size_t BytesOf(const CommittedRangeDeletion& deletion) {
    return sizeof(deletion) + deletion.start.size() + deletion.end.size();
  }
  // REQUIRES: mutex_ held.
  void Append(CommittedRangeDeletion&& deletion);
  std::vector<CommittedRangeDeletion> Disjoint(
      const std::vector<CommittedRangeDeletion>& deletions) const;

  const Comparator* const ucmp_;
  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::vector<CommittedRangeDeletion> waiting_;
  size_t bytes_ = 0;
  SequenceNumber smallest_ = kMaxSequenceNumber;
  uint64_t not_before_ = 0;
  std::atomic<size_t> count_{0};
};

}  // namespace ROCKSDB_NAMESPACE
