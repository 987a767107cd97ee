//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <set>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_db_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Finds files in the directories of a DB that the DB does not know.
//
// Thread-safe: the class has no state.
class HistoryLeaks {
 public:
  // Returns the directories of all families, and that of the DB.
  static std::set<std::string> Directories(HistoryDb& db);

  // Sets *names to the paths, below the root, of SST, blob and delta files that
  // no family has, of MANIFESTs that are not the current one, of WALs that are
  // not needed, and of temporary files.
  // REQUIRES: the DB is open and has no iterators and snapshots
  static Status Find(HistoryDb& db, std::vector<std::string>* names);
};

}  // namespace ROCKSDB_NAMESPACE
