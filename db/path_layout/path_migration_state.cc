//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_migration_state.h"

#include "db/column_family.h"
#include "db/internal_stats.h"
#include "db/path_layout/migration_pacer.h"
#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {

std::map<std::string, std::string> PathMigrationState::ToMap(
    uint64_t now_nanos) const {
  constexpr uint64_t kNanosPerMicro = 1000;
  MigratePathsProgress now = progress;
  if (report_nanos.has_value() && now_nanos > *report_nanos) {
    now.micros += (now_nanos - *report_nanos) / kNanosPerMicro;
  }
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
  put("seconds", now.micros / MigrationPacer::kMicrosPerSecond);
  put("bytes-per-second", now.BytesPerSecond());
  if (now.SecondsLeft() != UINT64_MAX) {
    put("seconds-left", now.SecondsLeft());
  }
  return values;
}

// The handlers of the property. The DB mutex is held.

bool InternalStats::HandlePathMigrationMap(
    std::map<std::string, std::string>* values, Slice /*suffix*/) {
  *values = cfd_->strata()->path_migration()->ToMap(clock_->NowNanos());
  return true;
}

bool InternalStats::HandlePathMigration(std::string* value, Slice /*suffix*/) {
  for (const auto& [name, number] :
       cfd_->strata()->path_migration()->ToMap(clock_->NowNanos())) {
    value->append(name).append(": ").append(number).append("\n");
  }
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
