//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_jobs_test_util.h"
#include "test_util/strata/overlap_point_reads_test_util.h"
#include "test_util/strata/overlap_state_test_util.h"
#include "test_util/strata/overlap_tailing_reads_test_util.h"
#include "test_util/strata/overlap_views_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A thread that alone writes a range of keys, and reads them in many ways: it
// knows their values at any time.
//
// Not thread-safe.
class OverlapWriter {
 public:
  // REQUIRES: *state outlives this
  OverlapWriter(OverlapState* state, size_t writer, uint64_t seed);
  OverlapWriter(const OverlapWriter&) = delete;
  OverlapWriter& operator=(const OverlapWriter&) = delete;

  // Returns when the round is over.
  void Run();

 private:
  // Does anything but a plain write.
  void DoSomethingElse();
  void WriteSomething();
  // Writes some keys at once, the same ones in all families.
  void WriteSeveral();
  void WriteKey(size_t family, size_t index);
  // Deletes the keys from `from` to `to` - 1, one by one or by a range
  // deletion.
  void DeleteKeys(size_t family, size_t from, size_t to);
  void DeleteRange(size_t family, size_t from, size_t to);
  void ReplaceRange(size_t family, size_t from, size_t to);
  // Removes values under a reader, and writes them again: an older value
  // becomes direct below its tombstone, or stays next to a range deletion.
  void RemoveUnderReader();
  std::unique_ptr<OverlapView> NewView();

  OverlapState& state_;
  const size_t writer_;
  OverlapDice dice_;
  OverlapJobs jobs_;
  OverlapPointReads point_reads_;
  OverlapTailingReads tailing_reads_;
  OverlapViews views_;
};

}  // namespace ROCKSDB_NAMESPACE
