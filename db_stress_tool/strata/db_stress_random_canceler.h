//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include <atomic>

#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

// Decides at random whether a call is cancelled: before it begins, after a
// random time, or not at all.
class StressRandomCanceler {
 public:
  explicit StressRandomCanceler(Random* rand);
  ~StressRandomCanceler() { Join(); }
  StressRandomCanceler(const StressRandomCanceler&) = delete;
  StressRandomCanceler& operator=(const StressRandomCanceler&) = delete;

  // Returns nullptr if the call is not cancelled.
  std::atomic<bool>* flag() { return has_flag_ ? &canceled_ : nullptr; }
  bool canceled() const { return canceled_; }
  // Waits until the flag no longer changes.
  void Join() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }

 private:
  std::atomic<bool> canceled_{false};
  bool has_flag_ = false;
  port::Thread thread_;
};

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
