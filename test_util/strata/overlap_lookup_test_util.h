//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_state_test_util.h"
#include "test_util/strata/overlap_values_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A read of some keys of one writer, by one call of the DB.
//
// Not thread-safe.
class OverlapLookup {
 public:
  struct Key {
    size_t family = 0;
    size_t index = 0;
    Status status;
    OverlapValue found;
  };

  // Chooses the keys.
  // is_cross: the keys are in any families, rather than in `family`.
  OverlapLookup(OverlapState* state, OverlapDice* dice, size_t num_keys,
                size_t family, size_t writer, bool is_cross);

  size_t writer() const { return writer_; }
  const std::vector<Key>& keys() const { return keys_; }

  // Reads the keys with Get() or MultiGet().
  void Run(const ReadOptions& read_options);
  // Reads the key with GetEntity().
  // REQUIRES: there is one key
  void RunEntity(const ReadOptions& read_options);
  // Reads the key with GetMergeOperands() and applies the operands.
  // counts: a callback sees each operand, so that the lookup has a fixed
  //     sequence number.
  // REQUIRES: there is one key
  void RunOperands(const ReadOptions& read_options, bool counts);

  // Returns the function that was called, for messages.
  // REQUIRES: a function was called
  const std::string& what() const { return what_; }

  // Returns what any read may have.
  static ReadOptions RandomOptions(OverlapDice* dice);

 private:
  void RunMultiGet(const ReadOptions& read_options);

  OverlapState& state_;
  const size_t writer_;
  const bool is_cross_;
  std::vector<Key> keys_;
  std::string what_;
};

}  // namespace ROCKSDB_NAMESPACE
