//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/missing_file.h"

#include "db/path_layout/path_layout.h"
#include "file/filename.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool Exists(FileSystem* fs, const std::string& name) {
  return fs->FileExists(name, IOOptions(), nullptr).ok();
}

}  // namespace

std::string FirstMissingFile(FileSystem* fs,
                             const std::vector<ManifestFamily::File>& files,
                             const std::vector<DbPath>& paths) {
  for (const ManifestFamily::File& file : files) {
    const std::string& directory = PathLayout::Directory(paths, file.path_id);
    const std::string name =
        file.type == kTableFile  ? MakeTableFileName(directory, file.number)
        : file.type == kBlobFile ? BlobFileName(directory, file.number)
                                 : DeltaFileName(directory, file.number);
    // LevelDB's name of an SST file is read, too.
    if (!Exists(fs, name) && (file.type != kTableFile ||
                              !Exists(fs, Rocks2LevelTableFileName(name)))) {
      return name;
    }
  }
  return "";
}

}  // namespace ROCKSDB_NAMESPACE
