//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/write_batch.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_key_history_test_util.h"
#include "test_util/strata/overlap_state_test_util.h"

namespace ROCKSDB_NAMESPACE {

// One write of a writer: a batch, and what it does to the histories of keys.
//
// Not thread-safe. REQUIRES: the thread of the writer uses this.
class OverlapWrite {
 public:
  // REQUIRES: *state outlives this
  OverlapWrite(OverlapState* state, size_t writer)
      : state_(*state), writer_(writer), step_(state->NextStep(writer)) {}
  OverlapWrite(const OverlapWrite&) = delete;
  OverlapWrite& operator=(const OverlapWrite&) = delete;

  // Adds a random operation on the key that its use allows.
  // REQUIRES for this and the next functions: the write has no operation on
  // this key in this family
  void AddRandom(size_t family, size_t index, OverlapDice* dice);
  // REQUIRES: no SingleDelete() is used for the key
  void AddDelete(size_t family, size_t index);
  // Adds a range deletion of the keys from `from` to `to` - 1.
  void AddDeleteRange(size_t family, size_t from, size_t to);
  // Adds the same, and puts of some of the keys after it. A reader sees both at
  // once.
  void AddReplaceRange(size_t family, size_t from, size_t to,
                       OverlapDice* dice);

  // Writes the batch.
  // REQUIRES: this is called once
  void Commit();

 private:
  using Version = OverlapKeyHistory::Version;

  // A change of one key.
  struct Change {
    size_t family;
    size_t index;
    Version version;
  };

  // Each of these adds one operation to the batch and sets the value of the
  // version that it makes.
  Status AddPutOrSingleDelete(size_t family, const std::string& key,
                              const OverlapValue& old, OverlapDice* dice,
                              Version* version);
  Status AddPut(size_t family, size_t index, const std::string& key,
                OverlapDice* dice, Version* version);
  Status AddMerge(size_t family, const std::string& key,
                  const OverlapValue& old, OverlapDice* dice, Version* version);

  // Returns a value of this write.
  std::string NewValue(const std::string& key,
                       const std::string& payload) const;
  static std::string Payload(OverlapDice* dice, bool is_large);

  OverlapState& state_;
  const size_t writer_;
  const uint64_t step_;
  WriteBatch batch_;
  std::vector<Change> changes_;
};

}  // namespace ROCKSDB_NAMESPACE
