//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/durable_files.h"

#include <memory>

#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

Status SyncDirectory(FileSystem* fs, const std::string& directory) {
  std::unique_ptr<FSDirectory> opened;
  IOStatus s = fs->NewDirectory(directory, IOOptions(), &opened, nullptr);
  if (s.ok()) {
    s = opened->FsyncWithDirOptions(IOOptions(), nullptr, DirFsyncOptions());
  }
  return s;
}

Status ReplaceFile(FileSystem* fs, const std::string& directory,
                   const std::string& temporary, const std::string& name,
                   const Slice& contents) {
  const std::string temporary_name = directory + "/" + temporary;
  // This function deletes the file after an error.
  IOStatus s = WriteStringToFile(fs, contents, temporary_name,
                                 /*should_sync=*/true);
  if (!s.ok()) {
    return s;
  }
  s = fs->RenameFile(temporary_name, directory + "/" + name, IOOptions(),
                     nullptr);
  if (!s.ok()) {
    fs->DeleteFile(temporary_name, IOOptions(), nullptr).PermitUncheckedError();
    return s;
  }
  return SyncDirectory(fs, directory);
}

}  // namespace ROCKSDB_NAMESPACE
