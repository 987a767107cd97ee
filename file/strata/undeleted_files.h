//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The obsolete files of a DB that could not be deleted, by directory.
//
// A file waits until files can be made in its directory, and is then tried
// once more. If it cannot be deleted although its directory works, the cause is
// not the device, and the file does not wait again until the device has failed.
// Otherwise one such file would be tried, and all directories be listed, every
// few seconds.
//
// Invariant: a file either waits or was tried, and has a directory.
//
// Directories are clean names, see CleanDirectoryName(). File names are without
// directory.
//
// Not thread-safe.
class UndeletedFiles {
 public:
  UndeletedFiles() = default;
  UndeletedFiles(const UndeletedFiles&) = delete;
  UndeletedFiles& operator=(const UndeletedFiles&) = delete;

  // Lets the file, which could not be deleted, wait. Returns false if it was
  // tried when its directory worked: it does not wait.
  bool Add(const std::string& directory, const std::string& file_name);
  // The device of the directory has failed: the files that were tried wait.
  void NoteFault(const std::string& directory);
  // Returns the files that wait in the directory, which works. They are to be
  // tried now, and wait no more.
  std::vector<std::string> Take(const std::string& directory);

  // Returns the directories in which files wait.
  std::vector<std::string> Directories() const;

 private:
  struct Files {
    std::set<std::string> waiting;
    std::set<std::string> tried;
  };

  std::map<std::string, Files> directories_;
};

}  // namespace ROCKSDB_NAMESPACE
