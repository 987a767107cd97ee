//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_model_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Converts values and contents to the text of history scripts, and back.
//
// Thread-safe: the class has no state.
class HistoryText {
 public:
  // The name of the default column, whose name is empty, in scripts.
  static constexpr char kDefaultColumn[] = "_";

  // Returns the value that a word of a script stands for: "@100" and
  // "@100:tag" are generated values of 100 bytes that begin with that word.
  static std::string ValueOf(const std::string& word);

  // Reverses ValueOf(), even if generated values are parts of `value`.
  static std::string ShowValue(const std::string& value);

  // Returns the value alone if it is plain, otherwise "{COLUMN=VALUE ...}".
  static std::string ShowColumns(const HistoryModel::Columns& columns);

  // Returns lines "KEY=VALUE", in the order of the keys or in reverse.
  static std::string ShowContents(const HistoryModel::Contents& contents,
                                  bool reverse = false);
};

}  // namespace ROCKSDB_NAMESPACE
