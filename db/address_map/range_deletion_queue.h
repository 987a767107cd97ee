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

// Range deletions of the keys from start to before end: of several, the newest
// and the oldest that no sweep has come to.
struct CommittedRangeDeletion {
  std::string start;
  std::string end;
  SequenceNumber seq = 0;
  SequenceNumber oldest = 0;

  bool operator==(const CommittedRangeDeletion& other) const {
    return start == other.start && end == other.end && seq == other.seq &&
           oldest == other.oldest;
  }
};

// The range deletions of committed flushes whose values are still in the
// address map: each waits until nobody reads below it, then for a
// RangeDeletionSweep.
//
//   Add() -> Take() -> the sweep -> what it has not come to: PutBack()
//
// One that is not here is nowhere lost: a compaction that meets both the
// deletion and the values frees them, and so does an open that builds the map
// anew. So beyond a limit new ones are not taken.
//
// Thread-safe.
class RangeDeletionQueue {
 public:
  // What the keys of those that wait take up.
  static constexpr size_t kMaxBytes = size_t{32} << 20;

  explicit RangeDeletionQueue(const Comparator* user_comparator,
                              size_t max_bytes = kMaxBytes)
      : ucmp_(user_comparator), max_bytes_(max_bytes) {}
  RangeDeletionQueue(const RangeDeletionQueue&) = delete;
  RangeDeletionQueue& operator=(const RangeDeletionQueue&) = delete;

  // Takes as many as it has room for. Returns how many it has not.
  size_t Add(std::vector<CommittedRangeDeletion>&& deletions);

  // Takes out those for which earliest_reader is high enough, and makes them
  // disjoint, in the order of the keys.
  std::vector<CommittedRangeDeletion> Take(SequenceNumber earliest_reader);

  // Whether or not there is room. Nothing is to be taken out before not_before,
  // a time of the caller's clock.
  void PutBack(std::vector<CommittedRangeDeletion>&& deletions,
               uint64_t not_before);

  // Take() with it has a result. kMaxSequenceNumber if there is nothing to take
  // at this time.
  SequenceNumber BlockedUntil(uint64_t now) const;
  // The same at any time.
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
