//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Takes the words that change how a step reads, which begin with "+":
//   +async +nofill +pin +tailing +prefetch=N +readahead=N +totalorder
// Thread-safe: the class has no state.
class HistoryReadOptions {
 public:
  // Removes these words and sets the options that they name. Returns false if a
  // word that begins with "+" is none of them.
  static bool Take(HistoryWords* words, ReadOptions* options);
};

}  // namespace ROCKSDB_NAMESPACE
