//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Gathers wrong answers and errors, and says when a run is over: at its time,
// or after too many findings.
//
// Thread-safe.
class OverlapFindings {
 public:
  OverlapFindings(double seconds, size_t max_findings)
      : max_findings_(max_findings),
        start_(std::chrono::steady_clock::now()),
        end_(start_ +
             std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6))) {}
  OverlapFindings(const OverlapFindings&) = delete;
  OverlapFindings& operator=(const OverlapFindings&) = delete;

  void Report(const std::string& text);
  // Reports an error.
  void Must(const Status& s, const std::string& what);

  bool IsRunOver() const {
    return is_full_ || std::chrono::steady_clock::now() >= end_;
  }

  // The number of reports, including those beyond the maximum.
  uint64_t count() const { return count_; }
  std::vector<std::string> All() const;
  // Returns the time from the start to the first finding; 0 if there is none.
  double FirstSeconds() const;

 private:
  const size_t max_findings_;
  const std::chrono::steady_clock::time_point start_;
  const std::chrono::steady_clock::time_point end_;
  std::atomic<uint64_t> count_{0};
  std::atomic<bool> is_full_{false};
  mutable std::mutex mutex_;
  // The members below are guarded by mutex_.
  std::vector<std::string> findings_;
  double first_seconds_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
