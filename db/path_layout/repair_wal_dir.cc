//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/repair_wal_dir.h"

#include <cstdint>
#include <vector>

#include "db/path_layout/directory_names.h"
#include "file/filename.h"
#include "logging/logging.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if the file has a part of a WAL that an open would replay.
bool HasWalData(FileSystem* fs, const std::string& directory,
                const std::string& name) {
  uint64_t number = 0;
  FileType type = kTempFile;
  if (!ParseFileName(name, &number, &type) ||
      (type != kWalFile && type != kWalBufferFile)) {
    return false;
  }
  // Every open leaves a WAL, which stays empty if nothing is written.
  uint64_t size = 0;
  return !fs->GetFileSize(directory + "/" + name, IOOptions(), &size, nullptr)
              .ok() ||
         size > 0;
}

// Returns true if both names are those of one file: a directory may have
// several names, by symbolic links.
bool IsSameFile(FileSystem* fs, const std::string& a, const std::string& b) {
  bool is_same = false;
  return fs->AreFilesSame(a, b, IOOptions(), &is_same, nullptr).ok() && is_same;
}

}  // namespace

Status CheckRepairWalDir(FileSystem* fs, const std::string& dbname,
                         const DBOptions& stored, const std::string& given,
                         Logger* info_log) {
  const std::string& named = stored.wal_dir.empty() ? dbname : stored.wal_dir;
  if (CleanDirectoryName(fs, named) == CleanDirectoryName(fs, given)) {
    return Status::OK();
  }
  std::vector<std::string> children;
  const IOStatus s = fs->GetChildren(named, IOOptions(), &children, nullptr);
  if (!s.ok()) {
    ROCKS_LOG_WARN(info_log,
                   "The directory of WALs in the OPTIONS file is not that of "
                   "the repair, and cannot be read: %s",
                   s.ToString().c_str());
    return Status::OK();
  }
  for (const std::string& child : children) {
    if (HasWalData(fs, named, child) &&
        !IsSameFile(fs, named + "/" + child, given + "/" + child)) {
      return Status::InvalidArgument(
          "By its OPTIONS file, the database has its WALs in " + named +
          ", and there are some, such as " + child +
          ". The options of the repair have them in " + given +
          ". It would not find the WALs, and the next open with the right "
          "wal_dir would replay all of them over the repaired tables: merge "
          "operands would count twice. Repair with wal_dir " +
          named +
          " (ldb repair takes it from the OPTIONS file). If the WALs are not "
          "of this database, move the OPTIONS file elsewhere");
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
