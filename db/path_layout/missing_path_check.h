//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Finds out, when a database is opened, whether a path is missing as a whole:
// its device is not mounted, or the options name another directory than the
// database had. The error then says which path it is, and what is on it. An
// error about one of its files would not.
//
// Invariant: Run() returns OK if each directory that should have files has at
// least one of them. A single file that is missing is not the matter of this
// class.
//
// If nothing is missing, Run() costs one question to the file system for each
// directory: whether one of its files exists. Nothing is changed on disk.
class MissingPathCheck {
 public:
  // fs: must live as long as this object.
  explicit MissingPathCheck(FileSystem* fs) : fs_(fs) {}

  // To be called before the AddFile() of the files of a column family.
  void BeginFamily(const std::string& name,
                   const std::vector<DbPath>& cf_paths);
  // Adds a file that the newest state of the MANIFEST needs. A file with a path
  // id beyond the list is ignored: CheckPathOfFile() looks for it.
  // REQUIRES: type is kTableFile, kBlobFile or kDeltaFile
  void AddFile(FileType type, uint64_t number, uint32_t path_id,
               uint64_t bytes);

  // Returns OK, or an IOError that names each path that is missing. It never is
  // a PathNotFound, which callers take for the error of a file.
  Status Run();

  // Returns true if Run() returned an error, and if each directory that is
  // named there is an existing one without the files. It may be the empty
  // directory that a user has put in the place of a lost one. Its files are not
  // in another directory of the column family either: then, the options would
  // be wrong.
  bool AreAllEmpty() const {
    return num_missing_ > 0 && num_missing_ == num_empty_;
  }

 private:
  // The files of a type that a column family has on a path.
  struct Count {
    uint64_t files = 0;
    uint64_t bytes = 0;
  };
  // A path of a column family.
  struct Path {
    std::string family;
    uint32_t id = 0;
    Count sst;
    Count blob;
    Count delta;
  };
  struct Directory {
    std::string name;
    std::vector<Path> paths;
    std::vector<std::pair<FileType, uint64_t>> files;
    // The paths of the family that has files[0].
    std::vector<DbPath> cf_paths;
  };

  // Returns what is wrong with the directory, for the message; empty: nothing.
  // *is_empty: see AreAllEmpty().
  // REQUIRES: !directory.files.empty()
  std::string Examine(const Directory& directory, bool* is_empty) const;
  // Returns the name of another directory of the family that has the first
  // file; empty: none.
  std::string FindElsewhere(const Directory& directory) const;
  static std::string Describe(const Directory& directory, const Path& path,
                              const std::string& problem);

  FileSystem* const fs_;
  // CleanDirectoryName(), without the file system -> directory
  std::map<std::string, Directory> directories_;
  // Those of the family of the last BeginFamily().
  std::vector<DbPath> cf_paths_;
  // path id of the family -> its directory, and the index of its path there
  std::vector<std::pair<Directory*, size_t>> current_;
  size_t num_missing_ = 0;
  size_t num_empty_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
