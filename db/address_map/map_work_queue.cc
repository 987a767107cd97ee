//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_work_queue.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ROCKSDB_NAMESPACE {

void MapWorkQueue::Signal(uint32_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  signals_.insert(id);
  has_signals_.store(true, std::memory_order_release);
}

std::vector<uint32_t> MapWorkQueue::TakeNews(SequenceNumber earliest_snapshot) {
  std::set<uint32_t> news;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    news.swap(signals_);
    has_signals_.store(false, std::memory_order_release);
  }
  while (!by_sequence_.empty() &&
         by_sequence_.begin()->first <= earliest_snapshot) {
    const uint32_t id = by_sequence_.begin()->second;
    news.insert(id);
    EraseWait(id);
  }
  return std::vector<uint32_t>(news.begin(), news.end());
}

void MapWorkQueue::WaitForSnapshots(uint32_t id, SequenceNumber sequence) {
  assert(sequence < kMaxSequenceNumber);
  EraseWait(id);
  waits_[id] = sequence;
  by_sequence_.emplace(sequence, id);
}

void MapWorkQueue::EraseWait(uint32_t id) {
  const auto found = waits_.find(id);
  if (found != waits_.end()) {
    by_sequence_.erase({found->second, id});
    waits_.erase(found);
  }
}

void MapWorkQueue::OnBoundsReleased(uint32_t id) {
  Signal(id);
  if (marking_waits_.erase(id) > 0) {
    marking_due_.insert(id);
  }
}

void MapWorkQueue::OnSharedBoundsReleased() {
  const std::set<uint32_t> waiting = std::exchange(shared_waits_, {});
  for (const uint32_t id : waiting) {
    OnBoundsReleased(id);
  }
}

std::set<uint32_t> MapWorkQueue::TakeMarkingDue() {
  return std::exchange(marking_due_, {});
}

std::set<uint32_t> MapWorkQueue::TakeRemovalsDue() {
  return std::exchange(removals_due_, {});
}

uint32_t MapWorkQueue::TakeSweepDue() {
  assert(HasSweepDue());
  const auto first = std::min_element(
      sweeps_due_.begin(), sweeps_due_.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  const uint32_t id = first->first;
  sweeps_due_.erase(first);
  return id;
}

}  // namespace ROCKSDB_NAMESPACE
