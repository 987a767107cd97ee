//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/seeded_schedule_test_util.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ROCKSDB_NAMESPACE {

SeededSchedule::SeededSchedule(const Options& options)
    : options_(options), engine_(options.seed) {
  assert(options_.switch_one_in > 0);
  assert(options_.expected_steps > 0);
  if (options_.policy == Policy::kPriorities) {
    for (size_t i = 0; i < options_.change_points; ++i) {
      change_points_.insert(1 + Below(options_.expected_steps));
    }
  }
}

void SeededSchedule::AddThread() {
  // Equal priorities are possible, but improbable; Next() has a rule for them.
  priorities_.push_back(static_cast<int64_t>(Below(uint64_t{1} << 62)));
  waits_.push_back(0);
}

void SeededSchedule::Yield(size_t thread) {
  yields_ = true;
  waits_[thread] = 0;
  Demote(thread);
}

size_t SeededSchedule::Next(const std::vector<size_t>& runnable,
                            size_t running) {
  assert(!runnable.empty());
  ++steps_;
  const size_t next = options_.policy == Policy::kUniform
                          ? NextUniform(runnable, running)
                          : NextByPriority(runnable, running);
  yields_ = false;
  return next;
}

size_t SeededSchedule::NextUniform(const std::vector<size_t>& runnable,
                                   size_t running) {
  const auto self = std::lower_bound(runnable.begin(), runnable.end(), running);
  const bool can_go_on = self != runnable.end() && *self == running;
  if (can_go_on && runnable.size() == 1) {
    return running;
  }
  if (can_go_on && yields_) {
    // All but the running thread.
    const size_t other = Below(runnable.size() - 1);
    const size_t position = static_cast<size_t>(self - runnable.begin());
    return runnable[other < position ? other : other + 1];
  }
  if (can_go_on && Below(options_.switch_one_in) != 0) {
    return running;
  }
  return runnable[Below(runnable.size())];
}

size_t SeededSchedule::NextByPriority(const std::vector<size_t>& runnable,
                                      size_t running) {
  if (change_points_.erase(steps_) != 0) {
    Demote(running);
  }
  std::vector<uint64_t> waits(priorities_.size(), 0);
  for (const size_t thread : runnable) {
    waits[thread] = waits_[thread] + 1;
    if (waits[thread] > options_.max_wait) {
      Promote(thread);
    }
  }
  // If priorities are equal, the first thread has the higher one.
  const size_t next = *std::max_element(
      runnable.begin(), runnable.end(),
      [this](size_t a, size_t b) { return priorities_[a] < priorities_[b]; });
  waits[next] = 0;
  waits_ = std::move(waits);
  return next;
}

}  // namespace ROCKSDB_NAMESPACE
