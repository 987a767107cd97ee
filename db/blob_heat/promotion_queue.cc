//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/promotion_queue.h"

#include <algorithm>
#include <utility>

namespace ROCKSDB_NAMESPACE {

bool PromotionQueue::Push(const Slice& key, const MapName& name,
                          uint64_t size) {
  if (ask_again_.load(std::memory_order_relaxed) > 0 && IsDue() &&
      ask_again_.fetch_sub(1, std::memory_order_relaxed) == 1) {
    return true;
  }
  if (is_full_.load(std::memory_order_relaxed) && IsDue()) {
    return false;
  }
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;
  }
  if (!refused_.empty() && IsRefused(name.key.hi)) {
    return false;
  }
  const uint64_t batch = batch_bytes_.load(std::memory_order_relaxed);
  const auto found = by_hash_.find(name.key.hi);
  if (found != by_hash_.end()) {
    ++repeats_;
    Candidate& candidate = candidates_[found->second];
    bytes_ = bytes_ - candidate.size + size;
    candidate.key.assign(key.data(), key.size());
    candidate.name = name;
    candidate.size = size;
  } else if (candidates_.size() < kMaxCandidates &&
             (bytes_ < batch || bytes_ + size <= kMaxBatches * batch)) {
    by_hash_.emplace(name.key.hi, candidates_.size());
    candidates_.push_back(Candidate{key.ToString(), name, size});
    bytes_ += size;
  } else {
    // A batch waits, or there are too many small values.
    is_full_.store(bytes_ >= batch, std::memory_order_relaxed);
  }
  if (IsDue() || !MustBeDue()) {
    return false;
  }
  is_due_.store(true, std::memory_order_release);
  return true;
}

bool PromotionQueue::MustBeDue() const {
  return !candidates_.empty() &&
         (bytes_ >= batch_bytes_.load(std::memory_order_relaxed) ||
          repeats_ >=
              std::max(kMinRepeats, kRepeatsPerValue * candidates_.size()));
}

bool PromotionQueue::IsRefused(uint64_t hash) {
  if (refused_.count(hash) == 0) {
    return false;
  }
  if (++ignored_ < pause_) {
    return true;
  }
  refused_.clear();
  return false;
}

void PromotionQueue::Refuse(const std::vector<MapKeyHash>& keys) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (refused_.empty()) {
    ignored_ = 0;
    pause_ = keys.empty() ? 0 : std::clamp(2 * pause_, kMinPause, kMaxPause);
  }
  for (const MapKeyHash& key : keys) {
    if (refused_.size() < kMaxCandidates) {
      refused_.insert(key.hi);
    }
  }
}

void PromotionQueue::ForgetRefused() {
  const std::lock_guard<std::mutex> lock(mutex_);
  refused_.clear();
  pause_ = 0;
}

void PromotionQueue::ForgetDue() {
  const std::lock_guard<std::mutex> lock(mutex_);
  repeats_ = 0;
  ask_again_.store(0, std::memory_order_relaxed);
  is_due_.store(false, std::memory_order_release);
}

std::vector<PromotionQueue::Candidate> PromotionQueue::Take() {
  std::vector<Candidate> taken;
  const std::lock_guard<std::mutex> lock(mutex_);
  taken.swap(candidates_);
  by_hash_.clear();
  bytes_ = 0;
  repeats_ = 0;
  is_full_.store(false, std::memory_order_relaxed);
  ask_again_.store(0, std::memory_order_relaxed);
  is_due_.store(false, std::memory_order_release);
  return taken;
}

size_t PromotionQueue::Count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return candidates_.size();
}

uint64_t PromotionQueue::Bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

}  // namespace ROCKSDB_NAMESPACE
