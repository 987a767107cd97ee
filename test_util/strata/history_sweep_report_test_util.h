//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_sweep_judge_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Counts what the points of a sweep have shown.
//
// Not thread-safe.
class HistorySweepTotals {
 public:
  void AddScript() { ++scripts_; }
  void AddFinding() { ++findings_; }
  // saw_errors: steps of the history have seen the fault as an error.
  void AddPoint(HistorySweepOutcome outcome, bool saw_errors);

  uint64_t points() const { return points_; }

  // Returns a line without an end.
  std::string ToString() const;

 private:
  uint64_t scripts_ = 0;
  uint64_t points_ = 0;
  uint64_t findings_ = 0;
  uint64_t not_reached_ = 0;
  uint64_t went_on_ = 0;
  uint64_t went_on_with_errors_ = 0;
  uint64_t resumed_ = 0;
  uint64_t reopened_ = 0;
  uint64_t refused_ = 0;
};

// Says which point is running if the process crashes, and makes it crash if a
// point hangs. The process has one object of this class at most.
//
// Not thread-safe: Begin() and End() are called by one thread.
class HistorySweepWatch {
 public:
  // limit_seconds: a point that takes longer hangs.
  explicit HistorySweepWatch(uint64_t limit_seconds);
  ~HistorySweepWatch();
  HistorySweepWatch(const HistorySweepWatch&) = delete;
  HistorySweepWatch& operator=(const HistorySweepWatch&) = delete;

  // command: repeats the point.
  void Begin(const std::string& command);
  void End();

 private:
  void Watch();

  const uint64_t limit_seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // The members below are guarded by mutex_.
  uint64_t num_changes_ = 0;
  bool is_running_ = false;  // a point is
  bool is_ending_ = false;
  std::thread thread_;  // used by the constructor and the destructor
};

}  // namespace ROCKSDB_NAMESPACE
