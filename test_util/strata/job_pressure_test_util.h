//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "rocksdb/listener.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Keeps what listeners are told about write stalls.
//
// Thread-safe.
class JobPressureListener : public EventListener {
 public:
  void OnBackgroundJobPressureChanged(
      DB* /*db*/, const BackgroundJobPressure& pressure) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    proximities_.push_back(pressure.write_stall_proximity_pct);
  }

  void OnStallConditionsChanged(const WriteStallInfo& info) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    condition_ = info.condition.cur;
  }

  // Returns what listeners were told last about the slowdown of any family.
  WriteStallCondition condition() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return condition_;
  }

  // Return whether a value of write_stall_proximity_pct since the last Forget()
  // says that writes are slowed down, or that they are not.
  bool HasSlowdown() const {
    return Has([](int proximity) { return proximity >= 100; });
  }
  bool HasNoSlowdown() const {
    return Has([](int proximity) { return proximity < 100; });
  }
  void Forget() {
    const std::lock_guard<std::mutex> lock(mutex_);
    proximities_.clear();
  }

 private:
  template <typename Fn>
  bool Has(Fn fn) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(proximities_.begin(), proximities_.end(), fn);
  }

  mutable std::mutex mutex_;
  std::vector<int> proximities_;
  WriteStallCondition condition_ = WriteStallCondition::kNormal;
};

}  // namespace ROCKSDB_NAMESPACE
