//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/read_ahead_budget.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "db/blob_v2/blob_read_group.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Minimum number of entries that Limit() examines.
constexpr size_t kMinLooks = 16;

}  // namespace

ReadAheadBudget* ReadAheadBudget::OfProcess() {
  static ReadAheadBudget* const budget = new ReadAheadBudget(kLimit);
  return budget;
}

uint64_t ReadAheadBudget::Share(const Scan& scan, uint64_t most) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t scans = scans_ + (scan.groups == 0 ? 1 : 0);
  // A quarter of the limit is reserved for the last value of each scan, which
  // may exceed its share, and for gaps between values. Otherwise scans in
  // progress would constantly free the results of each other.
  return std::min(most, std::max((limit_ - limit_ / 4) / scans, kMinShare));
}

void ReadAheadBudget::Hold(
    Scan* scan, const std::vector<std::shared_ptr<BlobReadGroup>>& groups) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& group : groups) {
    Add(group, scan);
  }
  Limit(groups.size());
}

void ReadAheadBudget::HoldOne(const std::shared_ptr<BlobReadGroup>& group,
                              Scan* scan) {
  std::lock_guard<std::mutex> lock(mutex_);
  Add(group, scan);
  Limit(/*keep=*/1);
}

void ReadAheadBudget::Release(BlobReadGroup* group) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (group->is_held_) {
    Erase(group->held_as_);
  }
}

uint64_t ReadAheadBudget::TEST_Held() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return held_;
}

void ReadAheadBudget::Add(const std::shared_ptr<BlobReadGroup>& group,
                          Scan* scan) {
  assert(!group->is_held_);
  entries_.push_back(Entry{group, group->Span(), scan});
  held_ += entries_.back().bytes;
  scans_ += scan->groups++ == 0 ? 1 : 0;
  group->is_held_ = true;
  group->held_as_ = std::prev(entries_.end());
  group->budget_ = this;
  group->scan_ = scan;
}

void ReadAheadBudget::Erase(Entries::iterator entry) {
  held_ -= entry->bytes;
  scans_ -= --entry->scan->groups == 0 ? 1 : 0;
  entry->group->is_held_ = false;
  entries_.erase(entry);
}

void ReadAheadBudget::Limit(size_t keep) {
  // Groups that are still being read cannot be freed. The number of examined
  // entries is bounded; the next call examines them again.
  size_t left = std::min(entries_.size() - std::min(keep, entries_.size()),
                         2 * keep + kMinLooks);
  for (auto it = entries_.begin(); held_ > limit_ && left > 0; --left) {
    const auto entry = it++;
    if (entry->group->GiveBack()) {
      Erase(entry);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
