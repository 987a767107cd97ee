//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/overlap_db_test_util.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_findings_test_util.h"
#include "test_util/strata/overlap_key_history_test_util.h"
#include "test_util/strata/overlap_stress_options_test_util.h"

namespace ROCKSDB_NAMESPACE {

// The state that the threads of a run of OverlapStress share: the DB, the model
// of its contents, the findings, and what the threads do at this time.
//
// Thread-safe.
class OverlapState {
 public:
  struct Counts {
    std::atomic<uint64_t> writes{0};
    std::atomic<uint64_t> reads{0};  // Point reads, by key.
    std::atomic<uint64_t> views{0};  // Reads of views, by view.
    std::atomic<uint64_t> jobs{0};   // Jobs that threads requested.
  };

  explicit OverlapState(const OverlapStressOptions& options);
  OverlapState(const OverlapState&) = delete;
  OverlapState& operator=(const OverlapState&) = delete;

  const OverlapStressOptions& options() const { return options_; }
  OverlapDb& db() { return db_; }
  OverlapFindings& findings() { return findings_; }
  Counts& counts() { return counts_; }

  OverlapKeyHistory& history(size_t family, size_t writer, size_t index) {
    return *histories_[family][writer][index];
  }
  // Returns the latest versions of all keys of a writer.
  std::vector<OverlapKeyHistory::Version> Latest(size_t family, size_t writer);
  // Returns "<family>/<key>", for messages.
  static std::string Name(size_t family, size_t writer, size_t index);

  // Numbers the next write of a writer.
  // REQUIRES: only the thread of this writer calls it
  uint64_t NextStep(size_t writer) { return ++steps_[writer]; }

  // Writers hold this shared during a write, and others exclusively while they
  // create a view of all keys.
  std::shared_mutex& views_mutex() { return views_mutex_; }

  // Returns the number of a key. Half of the results are of a few keys.
  size_t PickIndex(OverlapDice* dice) const;

  // Returns true when all threads must end.
  bool IsRoundOver() const { return is_round_over_ || findings_.IsRunOver(); }
  void BeginRound() { is_round_over_ = false; }
  void EndRound() { is_round_over_ = true; }

  // The number of views that a thread may have at a time.
  size_t max_views() const { return max_views_; }
  void SetMaxViews(size_t number) { max_views_ = number; }
  // Moves the few keys of PickIndex().
  void SetHotIndex(size_t index) { hot_ = index; }

 private:
  const OverlapStressOptions options_;
  OverlapFindings findings_;
  OverlapDb db_;
  // [family][writer][index]
  std::array<std::vector<std::vector<std::unique_ptr<OverlapKeyHistory>>>,
             OverlapDb::kNumFamilies>
      histories_;
  std::vector<uint64_t> steps_;  // The last step of each writer.
  std::shared_mutex views_mutex_;
  std::atomic<bool> is_round_over_{false};
  std::atomic<size_t> max_views_{2};
  std::atomic<size_t> hot_{0};
  Counts counts_;
};

}  // namespace ROCKSDB_NAMESPACE
