//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/blob_heat.h"

#include <algorithm>
#include <cassert>

#include "db/path_layout/path_layout.h"
#include "monitoring/statistics_impl.h"

namespace ROCKSDB_NAMESPACE {

BlobHeat::BlobHeat(size_t num_paths, Statistics* stats)
    : num_paths_(std::max<size_t>(num_paths, 1)), stats_(stats) {}

BlobHeat::~BlobHeat() = default;

void BlobHeat::Configure(uint64_t budget, uint32_t path_id) {
  if (budget == budget_ && path_id == this->path_id()) {
    return;
  }
  budget_ = budget;
  path_id_.store(path_id, std::memory_order_relaxed);
  threshold_.store(kMinReads, std::memory_order_relaxed);
  hand_ = 0;
  lacks_room_ = false;
  max_value_.store(budget < kLeastBudget ? 0 : budget / kMinValuesOfBudget,
                   std::memory_order_relaxed);
  queue_.SetBatch(
      std::clamp(budget / kBatchesOfBudget, uint64_t{1}, kMaxBatch));
  // Values on the new hot path, and those that have become too large, are not
  // to be copied.
  queue_.Clear();
  queue_.ForgetRefused();
  FrequencySketch* sketch = nullptr;
  if (budget > 0) {
    const size_t size = FrequencySketch::SizeFor(budget);
    size_t i = 0;
    while (FrequencySketch::kMinSize << i < size) {
      ++i;
    }
    if (sketches_[i] == nullptr) {
      sketches_[i] = std::make_unique<FrequencySketch>(size);
    }
    sketch = sketches_[i].get();
  }
  sketch_.store(sketch, std::memory_order_release);
}

void BlobHeat::OnRead(const Slice& user_key, const MapName& name,
                      const BlobFileSlotTable::Place& place, uint64_t size) {
  FrequencySketch* const sketch = sketch_.load(std::memory_order_acquire);
  if (sketch == nullptr) {
    return;
  }
  const uint32_t reads = sketch->Add(name.key);
  if (place.hot.is_hot()) {
    // A hot value on another path than the hot one is about to go home. Its
    // copy would take the old hot path for its home.
    RecordTick(stats_, BLOB_MAP_HOT_READ);
    return;
  }
  if (reads < threshold() ||
      PathLayout::IndexOf(place.path_id, num_paths_) == path_id() ||
      size > max_value()) {
    return;
  }
  if (queue_.Push(user_key, name, size) && on_due_) {
    on_due_();
  }
}

void BlobHeat::GiveUpWaiting() {
  hand_ = 0;
  lacks_room_ = false;
  SetThreshold(FrequencySketch::kMaxEstimate);
  queue_.Clear();
}

bool BlobHeat::Reserve(uint64_t added, uint64_t before, uint64_t after) {
  // The files that other edits are adding are in neither number, or, for a
  // moment, in both of them.
  if (after + reserved_ > budget_ && after > before) {
    return false;
  }
  reserved_ += added;
  return true;
}

size_t BlobHeat::MemoryUsage() const {
  size_t bytes = 0;
  for (const auto& sketch : sketches_) {
    bytes += sketch == nullptr ? 0 : sketch->size();
  }
  return bytes;
}

}  // namespace ROCKSDB_NAMESPACE
