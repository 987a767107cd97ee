//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob/range_deletion_queue.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "db/range_tombstone_fragmenter.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

void RangeDeletionQueue::Append(CommittedRangeDeletion&& deletion) {
  bytes_ += BytesOf(deletion);
  smallest_ = std::min(smallest_, deletion.seq);
  waiting_.push_back(std::move(deletion));
}

size_t RangeDeletionQueue::Add(
    std::vector<CommittedRangeDeletion>&& deletions) {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t left_out = 0;
  for (CommittedRangeDeletion& deletion : deletions) {
    if (bytes_ + BytesOf(deletion) <= max_bytes_) {
      Append(std::move(deletion));
    } else {
      ++left_out;
    }
  }
  deletions.clear();
  count_.store(waiting_.size(), std::memory_order_relaxed);
  return left_out;
}

std::vector<CommittedRangeDeletion> RangeDeletionQueue::Take(
    SequenceNumber earliest_reader) {
  std::vector<std::string> keys;
  std::vector<std::string> ends;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<CommittedRangeDeletion> taken;
    taken.swap(waiting_);
    bytes_ = 0;
    smallest_ = kMaxSequenceNumber;
    for (CommittedRangeDeletion& deletion : taken) {
      if (deletion.seq > earliest_reader) {
        Append(std::move(deletion));
      } else {
        keys.push_back(
            InternalKey(deletion.start, deletion.seq, kTypeRangeDeletion)
                .Encode()
                .ToString());
        ends.push_back(std::move(deletion.end));
      }
    }
    count_.store(waiting_.size(), std::memory_order_relaxed);
  }
  const FragmentedRangeTombstoneList fragments(
      std::make_unique<VectorIterator>(std::move(keys), std::move(ends),
                                       &icmp_),
      icmp_);
  std::vector<CommittedRangeDeletion> result;
  for (const auto& stack : fragments) {
    // The first is the newest.
    const SequenceNumber seq = *fragments.seq_iter(stack.seq_start_idx);
    if (!result.empty() && result.back().seq == seq &&
        icmp_.user_comparator()->Compare(result.back().end, stack.start_key) ==
            0) {
      result.back().end = stack.end_key.ToString();
    } else {
      result.push_back(CommittedRangeDeletion{
          stack.start_key.ToString(), stack.end_key.ToString(), seq});
    }
  }
  return result;
}

void RangeDeletionQueue::PutBack(
    std::vector<CommittedRangeDeletion>&& deletions, uint64_t not_before) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (CommittedRangeDeletion& deletion : deletions) {
    Append(std::move(deletion));
  }
  deletions.clear();
  not_before_ = not_before;
  count_.store(waiting_.size(), std::memory_order_relaxed);
}

SequenceNumber RangeDeletionQueue::BlockedUntil(uint64_t now) const {
  if (Count() == 0) {
    return kMaxSequenceNumber;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  return now < not_before_ ? kMaxSequenceNumber : smallest_;
}

}  // namespace ROCKSDB_NAMESPACE
