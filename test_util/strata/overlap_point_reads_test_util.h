//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_key_history_test_util.h"
#include "test_util/strata/overlap_state_test_util.h"
#include "test_util/strata/overlap_values_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Reads keys at this moment, while others may write them, and checks the
// answers. The answers of one call must be those of one moment.
//
// Thread-safe.
class OverlapPointReads {
 public:
  // The answer to a read of one key.
  struct Answer {
    size_t family = 0;
    size_t writer = 0;
    size_t index = 0;
    // Taken before the read began.
    OverlapKeyHistory::Floor floor;
    Status status;
    OverlapValue found;
  };

  // REQUIRES: *state outlives this
  explicit OverlapPointReads(OverlapState* state) : state_(*state) {}

  // Reads and checks some keys of one writer.
  void ReadSome(size_t writer, OverlapDice* dice);

  // Reads and checks all keys, one by one.
  // REQUIRES: no thread writes
  void ReadAll(size_t family, size_t writer, const std::string& when);

 private:
  using Intervals = std::vector<OverlapKeyHistory::Interval>;

  // Checks the answers of one call of the function `what`.
  void Check(const std::string& what, const std::vector<Answer>& answers);
  // Checks one answer, and sets *intervals to when it was correct.
  bool CheckOne(const std::string& what, const Answer& answer,
                Intervals* intervals);
  // Returns true if there is a step at which all answers were correct.
  static bool HaveCommonStep(const std::vector<Intervals>& all);

  OverlapState& state_;
};

}  // namespace ROCKSDB_NAMESPACE
