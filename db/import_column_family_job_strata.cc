//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The parts of ImportColumnFamilyJob that make linked files durable and that
// handle files that a failed import leaves.

#include <unordered_set>
#include <vector>

#include "db/import_column_family_job.h"
#include "logging/logging.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

void ImportColumnFamilyJob::LeaveFiles(
    const std::unordered_set<uint64_t>& numbers) {
  for (std::vector<IngestedFileInfo>& files : files_to_import_) {
    std::erase_if(files, [&numbers](const IngestedFileInfo& file) {
      return numbers.count(file.fd.GetNumber()) > 0;
    });
  }
}

Status ImportColumnFamilyJob::SyncLinkedFiles() {
  for (const std::vector<IngestedFileInfo>& files : files_to_import_) {
    for (const IngestedFileInfo& file : files) {
      if (file.copy_file) {
        continue;  // CopyFile() has synced it.
      }
      const IOStatus s =
          fs_->SyncFile(file.internal_file_path, FileOptions(env_options_),
                        IOOptions(), db_options_.use_fsync, /*dbg=*/nullptr);
      // A file system that has no syncs needs none, as in an ingestion.
      if (!s.ok() && !s.IsNotSupported()) {
        ROCKS_LOG_WARN(db_options_.info_log,
                       "Failed to sync imported file %s: %s",
                       file.internal_file_path.c_str(), s.ToString().c_str());
        return s;
      }
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
