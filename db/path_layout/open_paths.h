//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// The directories of SST, blob and delta files that an open of a database
// names: db_paths, and the cf_paths of each column family.
//
// Each path can be a device of its own, which can be missing, read-only or
// broken while the others work. So an error of an open says which path it is
// about, by path id and column family.
//
// Invariant: with one directory in all, nothing here has an effect, and the
// open is RocksDB's, with RocksDB's errors.
//
// An error keeps its code, severity and flags (IOStatus::GetDataLoss() and so
// on): only its message grows.
//
// Directories are compared by CleanDirectoryName(), without the file system.
class OpenPaths {
 public:
  // The files by whose names an error can be about a directory. An open's
  // errors about MANIFEST and WAL say enough, while an error of a job does not
  // say that these share the device of a path.
  enum class Files {
    kOfPaths,  // SST, blob and delta files
    kAll,      // all files directly in the directory
  };

  // db_paths: those of the DB, see SanitizeOptions().
  explicit OpenPaths(const std::vector<DbPath>& db_paths);
  OpenPaths(const std::vector<DbPath>& db_paths,
            const std::vector<ColumnFamilyDescriptor>& families);

  // cf_paths: empty: the family has the paths of the DB.
  void AddFamily(const std::string& name, const std::vector<DbPath>& cf_paths);

  // Adds a directory of other files. Errors call it by `what`, such as "the
  // directory of WALs", unless it is a path of a column family.
  // REQUIRES: AddFamily(), Names() and Create() are not called afterwards.
  void AddOther(const std::string& directory, const std::string& what);

  // Returns true if there is more than one directory.
  bool AreSeveral() const { return directories_.size() > 1; }

  // Returns the directories as they are spelled in the options.
  std::vector<std::string> Names() const;

  // Creates each directory that does not exist. The error has the path.
  Status Create(FileSystem* fs) const;

  // Returns s, which must be an error, with the path of the directory whose
  // name, or the name of a file in it, is in the message. Returns s unchanged
  // if there is none, if the message says something of a path already, if the
  // error is about options, and without AreSeveral().
  Status AddPathTo(const Status& s, Files files = Files::kOfPaths) const;

  // Returns the directory, as CleanDirectoryName(), whose name, or the name of
  // a file in it, is in the message; empty: none.
  std::string DirectoryIn(const Status& s, Files files) const;

  // Returns s, which must be an error, with the path of this directory. Unlike
  // AddPathTo(), it does not need the name in the message, which not all file
  // systems have.
  // what: what failed, such as "cannot be listed".
  Status AddPathTo(const Status& s, const std::string& directory,
                   const std::string& what) const;

 private:
  struct User {
    uint32_t path_id;
    std::string family;  // empty: the DB, for families without cf_paths
  };
  struct Directory {
    std::string name;  // as it is spelled in the options
    std::vector<User> users;
    std::string what;  // AddOther() gave it; empty: it was not called
  };

  void Add(const std::string& family, const std::vector<DbPath>& paths);
  // Returns the entry of index_ for DirectoryIn(), or its end.
  std::map<std::string, size_t>::const_iterator Find(const Status& s,
                                                     Files files) const;
  // "path id 1 of column family default, ..."
  std::string UsersOf(const Directory& directory) const;

  const std::vector<DbPath> db_paths_;
  // In the order in which they are created: a path may be inside another one.
  std::vector<Directory> directories_;
  // CleanDirectoryName() -> index in directories_
  std::map<std::string, size_t> index_;
};

// Returns true for the name, without directory, of an SST, blob or delta file.
bool IsFileOfPath(const std::string& name);

}  // namespace ROCKSDB_NAMESPACE
