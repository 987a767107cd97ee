//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/utilities/path_migration.h"

namespace ROCKSDB_NAMESPACE {

// The state of the calls of MigratePaths() for one column family. Guarded by
// the DB mutex.
struct PathMigrationState {
  // There is at most one call for a column family at a time.
  bool is_running = false;
  // The progress of the running call, or of the last one, by its last report:
  // a job that runs is not in it.
  MigratePathsProgress progress;
  // When the running call has reported it, by SystemClock::NowNanos().
  std::optional<uint64_t> report_nanos;
  // The compactions of misplaced files that calls have run since the DB was
  // opened. Those of the background do not count.
  struct Compacted {
    uint64_t compactions = 0;
    // Bytes that these compactions have written.
    uint64_t bytes = 0;
  };
  Compacted compacted;

  // Returns the values of the property "rocksdb.path-migration". The time of a
  // running call includes that since its last report: a job can take long.
  // now_nanos: by the clock of report_nanos.
  std::map<std::string, std::string> ToMap(uint64_t now_nanos) const;
};

}  // namespace ROCKSDB_NAMESPACE
