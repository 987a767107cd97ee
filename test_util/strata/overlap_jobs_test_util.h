//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_state_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Requests jobs of the DB. The functions that begin with "Run" are those of
// threads, and return when the round is over.
//
// Thread-safe.
class OverlapJobs {
 public:
  // REQUIRES: *state outlives this
  explicit OverlapJobs(OverlapState* state) : state_(*state) {}

  // Compacts ranges of keys.
  void RunCompactions(uint64_t seed);
  // Compacts files that jobs have just written, and single old files.
  void RunOvertakingCompactions(uint64_t seed);
  void RunFlushes(uint64_t seed);
  // REQUIRES: the DB has an address map
  void RunGarbageCollections(uint64_t seed);

  // Compacts any file, or the oldest one, so that entries below tombstones and
  // operands move without these.
  void CompactSomeFile(size_t family, OverlapDice* dice);

  void Flush(const std::vector<size_t>& families, bool wait);

 private:
  struct File {
    uint64_t number;
    std::string name;
    int level;
  };

  std::vector<File> Files(size_t family);
  // Compacts files that are newer than *newest, or maybe any file, and sets
  // *newest to the number of the newest file.
  void Overtake(size_t family, OverlapDice* dice, uint64_t* newest);
  // Compacts one of the files, and maybe others of its level.
  // REQUIRES: !fresh.empty()
  void CompactFresh(size_t family, OverlapDice* dice,
                    const std::vector<File>& fresh);
  // Compacts files of one level into this or a deeper one.
  void Compact(size_t family, OverlapDice* dice, int level,
               const std::vector<std::string>& inputs);

  OverlapState& state_;
};

}  // namespace ROCKSDB_NAMESPACE
