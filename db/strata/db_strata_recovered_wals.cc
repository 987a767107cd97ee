//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// WALs that an open has read and leaves for the next one. The process that
// wrote them may have ended without a sync.

#include <algorithm>
#include <string>
#include <vector>

#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "logging/logging.h"
#include "options/options_helper.h"

namespace ROCKSDB_NAMESPACE {

Status DBStrata::SyncRecoveredWals(const std::vector<uint64_t>& wal_numbers,
                                   bool have_unflushed) {
  db_->mutex_.AssertHeld();
  // With two-phase commit, prepared transactions stay in the WALs when
  // memtables are flushed, and the next open reads the WALs also if there are
  // none: it fails at a part that the power loss has taken, as the SST files
  // have what comes after it.
  if (!have_unflushed && !db_->allow_2pc()) {
    return Status::OK();
  }
  uint64_t min_number = db_->MinLogNumberToKeep();
  if (!db_->allow_2pc()) {
    min_number =
        std::max(min_number, db_->versions_->MinLogNumberWithUnflushedData());
  }
  const FileOptions file_options = db_->fs_->OptimizeForLogWrite(
      db_->file_options_,
      BuildDBOptions(db_->immutable_db_options_, db_->mutable_db_options_));
  IOOptions io_options;
  io_options.io_activity = Env::IOActivity::kDBOpen;
  for (const uint64_t number : wal_numbers) {
    if (number < min_number) {
      continue;
    }
    const std::string name =
        LogFileName(db_->immutable_db_options_.GetWalDir(), number);
    const IOStatus io_s = db_->fs_->SyncFile(
        name, file_options, io_options, db_->immutable_db_options_.use_fsync,
        /*dbg=*/nullptr);
    // File systems that do not support it do not need it, as for files that are
    // ingested.
    if (!io_s.ok() && !io_s.IsNotSupported()) {
      ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                      "Failed to sync the recovered WAL %s: %s", name.c_str(),
                      io_s.ToString().c_str());
      return io_s;
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
