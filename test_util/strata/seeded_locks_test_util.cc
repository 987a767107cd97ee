//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/seeded_locks_test_util.h"

namespace ROCKSDB_NAMESPACE {

bool SeededLocks::TryTake(const void* lock, Mode mode, size_t thread) {
  State& state = held_[lock];
  const bool has_owner = state.owner != SIZE_MAX;
  if (mode.is_shared) {
    if (has_owner) {
      return false;
    }
    ++state.readers;
    return true;
  }
  const bool is_again = mode.is_recursive && state.owner == thread;
  if ((has_owner || state.readers > 0) && !is_again) {
    return false;
  }
  state.owner = thread;
  ++state.depth;
  return true;
}

SeededLocks::Released SeededLocks::Release(const void* lock, size_t thread) {
  const auto it = held_.find(lock);
  if (it == held_.end()) {
    return Released::kNotHeld;
  }
  State& state = it->second;
  if (state.readers > 0) {
    --state.readers;
  } else if (state.owner == thread) {
    --state.depth;
  } else {
    return Released::kNotHeld;
  }
  if (state.readers > 0 || state.depth > 0) {
    return Released::kStillHeld;
  }
  held_.erase(it);
  return Released::kFree;
}

std::string SeededLocks::Describe(SeededTrace* trace) const {
  std::string lines;
  for (const auto& [lock, state] : held_) {
    lines += state.readers > 0
                 ? std::to_string(state.readers) + " threads share the lock #"
                 : "T" + std::to_string(state.owner) + " holds the lock #";
    lines += std::to_string(trace->NumberOf(lock)) + "\n";
  }
  return lines;
}

}  // namespace ROCKSDB_NAMESPACE
