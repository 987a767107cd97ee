//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/incomplete_file.h"

#include "logging/logging.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

void DeleteIncompleteFile(FileSystem* fs, const std::string& path,
                          Logger* log) {
  if (fs->FileExists(path, IOOptions(), /*dbg=*/nullptr).IsNotFound()) {
    return;
  }
  const IOStatus s = fs->DeleteFile(path, IOOptions(), /*dbg=*/nullptr);
  if (!s.ok()) {
    ROCKS_LOG_WARN(log, "Incomplete file %s could not be deleted: %s",
                   path.c_str(), s.ToString().c_str());
  }
}

}  // namespace ROCKSDB_NAMESPACE
