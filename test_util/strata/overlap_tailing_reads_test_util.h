//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "rocksdb/iterator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/overlap_db_test_util.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_state_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Tailing iterators of a writer, which must show its latest writes.
//
// Not thread-safe. REQUIRES: the thread of the writer uses this.
class OverlapTailingReads {
 public:
  // REQUIRES: *state outlives this
  OverlapTailingReads(OverlapState* state, size_t writer)
      : state_(*state), writer_(writer) {}
  OverlapTailingReads(const OverlapTailingReads&) = delete;
  OverlapTailingReads& operator=(const OverlapTailingReads&) = delete;

  // Reads some keys and checks them, if the DB's options allow this.
  void Read(OverlapDice* dice);

 private:
  // Reports what other reads show of the key that a tailing iterator shows
  // wrong, when the iterator has begun at the key `from`.
  void Explain(Iterator* iterator, size_t family, size_t from, size_t wrong);

  OverlapState& state_;
  const size_t writer_;
  std::array<std::unique_ptr<Iterator>, OverlapDb::kNumFamilies> iterators_;
};

}  // namespace ROCKSDB_NAMESPACE
