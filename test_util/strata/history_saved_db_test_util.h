//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_db_test_util.h"
#include "test_util/strata/history_model_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A copy of a closed DB, its families and its model, to which the DB can be
// reset. The files are in memory, so the DB should be small.
//
// Not thread-safe.
class HistorySavedDb {
 public:
  // REQUIRES: *db outlives this
  explicit HistorySavedDb(HistoryDb* db) : db_(*db) {}
  HistorySavedDb(const HistorySavedDb&) = delete;
  HistorySavedDb& operator=(const HistorySavedDb&) = delete;

  // REQUIRES: the DB is closed
  Status Save();
  // Closes the DB and resets it.
  // REQUIRES: Save() has returned OK
  Status Restore();

 private:
  HistoryDb& db_;
  std::map<std::string, std::string> files_;  // contents, by path
  std::map<std::string, HistoryDb::Family> families_;
  HistoryModel model_;
};

}  // namespace ROCKSDB_NAMESPACE
