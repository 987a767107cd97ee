//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/range_deletion_queue.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

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
  std::vector<CommittedRangeDeletion> due;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<CommittedRangeDeletion> all;
    all.swap(waiting_);
    bytes_ = 0;
    smallest_ = kMaxSequenceNumber;
    for (CommittedRangeDeletion& deletion : all) {
      if (deletion.seq > earliest_reader) {
        Append(std::move(deletion));
      } else if (ucmp_->Compare(deletion.start, deletion.end) < 0) {
        due.push_back(std::move(deletion));
      }
    }
    count_.store(waiting_.size(), std::memory_order_relaxed);
  }
  return Disjoint(due);
}

// Returns disjoint deletions: one for each span between adjacent boundaries,
// with the sequence number and `born_before` of the newest deletion that is
// open there, and the smallest `oldest`. Adjacent spans for which all of them
// are equal are joined.
std::vector<CommittedRangeDeletion> RangeDeletionQueue::Disjoint(
    const std::vector<CommittedRangeDeletion>& deletions) const {
  struct Boundary {
    const std::string* key;
    const CommittedRangeDeletion* deletion;
    bool is_start;
  };
  std::vector<Boundary> boundaries;
  boundaries.reserve(2 * deletions.size());
  for (const CommittedRangeDeletion& deletion : deletions) {
    boundaries.push_back(Boundary{&deletion.start, &deletion, true});
    boundaries.push_back(Boundary{&deletion.end, &deletion, false});
  }
  std::sort(boundaries.begin(), boundaries.end(),
            [this](const Boundary& a, const Boundary& b) {
              return ucmp_->Compare(*a.key, *b.key) < 0;
            });
  // The newest deletion is the last one. If two have one sequence number, it is
  // the one with the lower limit of births.
  const auto is_older = [](const CommittedRangeDeletion* a,
                           const CommittedRangeDeletion* b) {
    return a->seq != b->seq ? a->seq < b->seq : a->born_before > b->born_before;
  };
  std::multiset<const CommittedRangeDeletion*, decltype(is_older)> open(
      is_older);
  std::multiset<SequenceNumber> oldest;
  std::vector<CommittedRangeDeletion> result;
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const Boundary& boundary = boundaries[i];
    const std::string& key = *boundary.key;
    if (i > 0 && !open.empty() &&
        ucmp_->Compare(*boundaries[i - 1].key, key) < 0) {
      const std::string& start = *boundaries[i - 1].key;
      const CommittedRangeDeletion& newest = **open.rbegin();
      if (!result.empty() && result.back().seq == newest.seq &&
          result.back().born_before == newest.born_before &&
          result.back().oldest == *oldest.begin() &&
          ucmp_->Compare(result.back().end, start) == 0) {
        result.back().end = key;
      } else {
        result.push_back(CommittedRangeDeletion{
            start, key, newest.seq, *oldest.begin(), newest.born_before});
      }
    }
    if (boundary.is_start) {
      open.insert(boundary.deletion);
      oldest.insert(boundary.deletion->oldest);
    } else {
      // One of equal deletions is as good as another.
      open.erase(open.find(boundary.deletion));
      oldest.erase(oldest.find(boundary.deletion->oldest));
    }
  }
  return result;
}

std::vector<CommittedRangeDeletion> RangeDeletionQueue::TakeOldest(
    std::vector<CommittedRangeDeletion>* deletions) {
  SequenceNumber oldest = kMaxSequenceNumber;
  for (const CommittedRangeDeletion& deletion : *deletions) {
    oldest = std::min(oldest, deletion.oldest);
  }
  const auto rest =
      std::stable_partition(deletions->begin(), deletions->end(),
                            [oldest](const CommittedRangeDeletion& deletion) {
                              return deletion.oldest == oldest;
                            });
  std::vector<CommittedRangeDeletion> taken(
      std::make_move_iterator(deletions->begin()),
      std::make_move_iterator(rest));
  deletions->erase(deletions->begin(), rest);
  return taken;
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

SequenceNumber RangeDeletionQueue::Smallest() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return smallest_;
}

SequenceNumber RangeDeletionQueue::BlockedUntil(uint64_t now) const {
  if (Count() == 0) {
    return kMaxSequenceNumber;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  return now < not_before_ ? kMaxSequenceNumber : smallest_;
}

}  // namespace ROCKSDB_NAMESPACE
