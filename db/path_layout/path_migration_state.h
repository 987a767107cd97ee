//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/utilities/path_migration.h"

namespace ROCKSDB_NAMESPACE {

// What a column family knows of the calls of MigratePaths(). Guarded by the DB
// mutex.
struct PathMigrationState {
  // There is at most one call for a column family at a time.
  bool is_running = false;
  // That of the running call, or of the last one.
  MigratePathsProgress progress;
  // The compactions of misplaced files that calls have run since the DB was
  // opened. Those of the background do not count.
  struct Compacted {
    uint64_t compactions = 0;
    // What they have written.
    uint64_t bytes = 0;
  };
  Compacted compacted;

  // Returns the values of the property "rocksdb.path-migration".
  std::map<std::string, std::string> ToMap() const;
};

}  // namespace ROCKSDB_NAMESPACE
