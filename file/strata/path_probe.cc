//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/path_probe.h"

#include <memory>
#include <utility>

#include "file/filename.h"
#include "file/strata/directory_id.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

namespace {

IOStatus WriteFile(FileSystem* fs, const std::string& name) {
  std::unique_ptr<FSWritableFile> file;
  IOStatus s = fs->NewWritableFile(name, FileOptions(), &file, nullptr);
  if (s.ok()) {
    s = file->Append(Slice("probe\n"), IOOptions(), nullptr);
    if (s.ok()) {
      s = file->Sync(IOOptions(), nullptr);
    }
    IOStatus closed = file->Close(IOOptions(), nullptr);
    if (s.ok()) {
      s = std::move(closed);
    }
    closed.PermitUncheckedError();
  }
  return s;
}

// id: is set to that of the directory.
IOStatus SyncProbedDirectory(FileSystem* fs, const std::string& directory,
                             std::string* id) {
  std::unique_ptr<FSDirectory> opened;
  IOStatus s = fs->NewDirectory(directory, IOOptions(), &opened, nullptr);
  if (s.ok()) {
    *id = DirectoryIdOf(*opened);
    s = opened->FsyncWithDirOptions(
        IOOptions(), nullptr,
        DirFsyncOptions(DirFsyncOptions::FsyncReason::kNewFileSynced));
  }
  return s;
}

IOStatus ProbeFiles(FileSystem* fs, const std::string& directory,
                    uint64_t number, std::string* id) {
  const std::string name = TempFileName(directory, number);
  IOStatus s = WriteFile(fs, name);
  if (s.ok()) {
    s = SyncProbedDirectory(fs, directory, id);
  }
  IOStatus deleted = fs->DeleteFile(name, IOOptions(), nullptr);
  if (s.ok() && !deleted.IsPathNotFound() && !deleted.IsNotFound()) {
    s = std::move(deleted);
  }
  deleted.PermitUncheckedError();
  return s;
}

}  // namespace

IOStatus PathProbe::Run(FileSystem* fs, const std::string& directory,
                        uint64_t number,
                        const std::vector<std::shared_ptr<FSDirectory>>& opened,
                        Problem* problem) {
  *problem = Problem::kNone;
  std::string id;
  IOStatus s = ProbeFiles(fs, directory, number, &id);
  if (!s.ok()) {
    *problem = Problem::kFiles;
    return s;
  }
  for (const std::shared_ptr<FSDirectory>& handle : opened) {
    s = CheckDirectoryId(directory, DirectoryIdOf(*handle), id);
    if (!s.ok()) {
      *problem = Problem::kReplaced;
      return s;
    }
  }
  for (const std::shared_ptr<FSDirectory>& handle : opened) {
    // Some file systems need no sync for a new file, and do not do it.
    s = handle->FsyncWithDirOptions(
        IOOptions(), nullptr,
        DirFsyncOptions(DirFsyncOptions::FsyncReason::kDefault));
    if (!s.ok()) {
      *problem = Problem::kHandle;
      return s;
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
