//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The parts of ImportColumnFamilyJob that make linked files durable and that
// handle files that a failed import leaves.

#include <string>
#include <unordered_set>
#include <vector>

#include "db/import_column_family_job.h"
#include "file/file_util.h"
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
  for (std::vector<IngestedFileInfo>& files : files_to_import_) {
    for (IngestedFileInfo& file : files) {
      if (file.copy_file) {
        continue;  // CopyFile() has synced it.
      }
      const std::string& name = file.internal_file_path;
      IOStatus s = fs_->SyncFile(name, FileOptions(env_options_), IOOptions(),
                                 db_options_.use_fsync, /*dbg=*/nullptr);
      // A file system that has no syncs needs none, as in an ingestion.
      if (s.ok() || s.IsNotSupported()) {
        continue;
      }
      // A sync opens the file for writing, and the file may be read-only.
      ROCKS_LOG_WARN(db_options_.info_log,
                     "Imported file %s is copied, as its link cannot be "
                     "synced: %s",
                     name.c_str(), s.ToString().c_str());
      s = fs_->DeleteFile(name, IOOptions(), /*dbg=*/nullptr);
      if (s.ok()) {
        file.copy_file = true;
        s = CopyFile(fs_.get(), file.external_file_path, Temperature::kUnknown,
                     name, Temperature::kUnknown, /*size=*/0,
                     db_options_.use_fsync, io_tracer_);
      }
      if (!s.ok()) {
        return s;
      }
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
