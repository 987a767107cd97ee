//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/snapshot.h"
#include "test_util/strata/overlap_db_test_util.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_key_history_test_util.h"
#include "test_util/strata/overlap_state_test_util.h"

namespace ROCKSDB_NAMESPACE {

// The contents of the DB at one moment, and a snapshot, or iterators, that must
// show these as long as they live.
//
// Not thread-safe.
class OverlapView {
 public:
  // Creates a view of the keys of the writers from first_writer to
  // last_writer - 1, at this moment.
  // REQUIRES: these are the calling writer, or all writers while none writes;
  // *state outlives this
  OverlapView(OverlapState* state, OverlapDice* dice, size_t first_writer,
              size_t last_writer);
  ~OverlapView() { End(); }
  OverlapView(const OverlapView&) = delete;
  OverlapView& operator=(const OverlapView&) = delete;

  // Reads something in one of several ways and checks it. Does nothing after
  // End().
  void Check(OverlapDice* dice);

  // Maybe moves a view that consists of iterators to this moment.
  // REQUIRES: as for the constructor, unless the view is of several writers,
  // which does not move
  void MaybeRefresh(OverlapDice* dice);

  // Releases the snapshot or the iterators.
  void End();

  // Returns true when the view should end.
  bool IsDue() const { return until_ <= std::chrono::steady_clock::now(); }

 private:
  using Versions = std::vector<OverlapKeyHistory::Version>;

  static ReadOptions IteratorOptions(OverlapDice* dice);

  // Notes the contents at this moment.
  void Record();
  void Read(OverlapDice* dice);
  void ReadByIterator(size_t family, size_t writer, Iterator* iterator,
                      OverlapDice* dice);
  void ReadAtSnapshot(size_t family, size_t writer, OverlapDice* dice);

  OverlapState& state_;
  const size_t first_writer_;
  const size_t last_writer_;
  // [family][writer]; if the view is of some writers only, those of the others
  // are empty.
  std::array<std::vector<Versions>, OverlapDb::kNumFamilies> expected_;
  const Snapshot* snapshot_ = nullptr;
  std::array<std::unique_ptr<Iterator>, OverlapDb::kNumFamilies> iterators_;
  std::chrono::steady_clock::time_point until_;
  bool has_ended_ = false;
  std::string what_;
};

}  // namespace ROCKSDB_NAMESPACE
