//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The words of a step: its name and arguments, or the arguments alone.
using HistoryWords = std::vector<std::string>;

// Takes the arguments of a step from its words.
//
// Thread-safe: the class has no state.
class HistoryArguments {
 public:
  // Returns false if `text` is no decimal number of at most 18 digits.
  static bool ParseNumber(const std::string& text, uint64_t* number);

  // Removes the first "name=value" from `words` and sets *value. Returns false,
  // and changes nothing, if there is none.
  static bool TakeNamed(HistoryWords* words, const std::string& name,
                        std::string* value);

  // Removes the first `word` from `words`. Returns false if there is none.
  static bool TakeWord(HistoryWords* words, const std::string& word);

  // If the first word is "cf=NAME", removes it and sets *cf.
  static void TakeFamily(HistoryWords* words, std::string* cf);

  // Splits `words` at words ";". The result has at least one part.
  static std::vector<HistoryWords> SplitAtSemicolons(const HistoryWords& words);
};

}  // namespace ROCKSDB_NAMESPACE
