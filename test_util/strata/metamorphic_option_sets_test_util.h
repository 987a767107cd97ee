//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_variants_test_util.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Makes sets of options: the variants of history scripts, random ones, and
// random sequences of sets, so that features are switched on and off between
// two opens. All of them are allowed, see "What it cannot be combined with" in
// the documentation of each feature.
//
// Thread-safe: the class has no state.
class MetamorphicOptionSets {
 public:
  // Returns this many sets for the history, chosen by the seed. The same
  // arguments give the same sets.
  // REQUIRES: the first step is "open"
  static std::vector<HistoryVariant> Choose(
      uint64_t seed, const std::vector<HistoryWords>& steps, size_t count);
};

}  // namespace ROCKSDB_NAMESPACE
