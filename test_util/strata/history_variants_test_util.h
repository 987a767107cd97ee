//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_options_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Options with which a history runs again. The results of reads must not depend
// on them, whereas the files of the DB do.
struct HistoryVariant {
  std::string name;
  // Override the options of the history, in "open" and in "setoptions": the
  // first list when the DB is opened, the next one when it is opened again, and
  // so on; the first one follows the last. Empty for the history's own options.
  std::vector<HistoryOptionList> lists;
};

// Returns all variants. Thread-safe.
const std::vector<HistoryVariant>& HistoryVariants();

}  // namespace ROCKSDB_NAMESPACE
