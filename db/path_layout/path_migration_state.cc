//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_migration_state.h"

#include "db/column_family.h"
#include "db/internal_stats.h"
#include "db/path_layout/migration_pacer.h"

namespace ROCKSDB_NAMESPACE {

std::map<std::string, std::string> PathMigrationState::ToMap() const {
  std::map<std::string, std::string> values;
  const auto put = [&values](const char* name, uint64_t number) {
    values[name] = std::to_string(number);
  };
  put("running", is_running ? 1 : 0);
  put("files-at-start", progress.files_at_start);
  put("bytes-at-start", progress.bytes_at_start);
  put("bytes-moved", progress.bytes_moved);
  put("files-left", progress.files_left);
  put("bytes-left", progress.bytes_left);
  put("bytes-written", progress.bytes_written);
  put("jobs", progress.jobs);
  put("seconds", progress.micros / MigrationPacer::kMicrosPerSecond);
  put("bytes-per-second", progress.BytesPerSecond());
  if (progress.SecondsLeft() != UINT64_MAX) {
    put("seconds-left", progress.SecondsLeft());
  }
  return values;
}

// The handlers of the property. The DB mutex is held.

bool InternalStats::HandlePathMigrationMap(
    std::map<std::string, std::string>* values, Slice /*suffix*/) {
  *values = cfd_->strata()->path_migration()->ToMap();
  return true;
}

bool InternalStats::HandlePathMigration(std::string* value, Slice /*suffix*/) {
  for (const auto& [name, number] : cfd_->strata()->path_migration()->ToMap()) {
    value->append(name).append(": ").append(number).append("\n");
  }
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
