//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/opened_directory.h"

#include <utility>

#include "db/path_layout/directory_names.h"
#include "file/sst_file_manager_impl.h"
#include "file/strata/directory_id.h"
#include "file/strata/path_faults.h"
#include "options/db_options.h"

namespace ROCKSDB_NAMESPACE {

OpenedDirectory::OpenedDirectory(std::unique_ptr<FSDirectory>&& directory,
                                 std::string name, FileSystem* fs,
                                 const PathFaults* faults)
    : FSDirectoryWrapper(std::move(directory)),
      name_(std::move(name)),
      clean_name_(CleanDirectoryName(/*fs=*/nullptr, name_)),
      fs_(fs),
      faults_(faults),
      id_(DirectoryIdOf(*this)) {}

void OpenedDirectory::Wrap(const ImmutableDBOptions& options,
                           const std::string& name,
                           std::unique_ptr<FSDirectory>* directory) {
  if (options.sst_file_manager == nullptr ||
      DirectoryIdOf(**directory).empty()) {
    return;
  }
  *directory = std::make_unique<OpenedDirectory>(
      std::move(*directory), name, options.fs.get(),
      static_cast<SstFileManagerImpl*>(options.sst_file_manager.get())
          ->path_faults());
}

IOStatus OpenedDirectory::Fsync(const IOOptions& options, IODebugContext* dbg) {
  return Checked(FSDirectoryWrapper::Fsync(options, dbg));
}

IOStatus OpenedDirectory::FsyncWithDirOptions(
    const IOOptions& options, IODebugContext* dbg,
    const DirFsyncOptions& dir_options) {
  return Checked(
      FSDirectoryWrapper::FsyncWithDirOptions(options, dbg, dir_options));
}

IOStatus OpenedDirectory::Checked(IOStatus s) const {
  if (!s.ok() || !faults_->HasAny() || !faults_->Has(clean_name_)) {
    return s;
  }
  std::unique_ptr<FSDirectory> now;
  s = fs_->NewDirectory(name_, IOOptions(), &now, /*dbg=*/nullptr);
  return s.ok() ? CheckDirectoryId(name_, id_, DirectoryIdOf(*now)) : s;
}

}  // namespace ROCKSDB_NAMESPACE
