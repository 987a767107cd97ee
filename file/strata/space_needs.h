//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// The bytes that work needs in several directories, and whether the devices of
// these directories have them.
//
// A FileSystem does not tell which directories are on the same device.
// Directories with the same number of free bytes are taken for one device. If
// they are several after all, too much is demanded of them until their free
// bytes differ.
//
// Invariant: Check() returns OK only if each device with a required directory
// has, free, the sum of what is written in its directories and the largest
// reserve of one of them.
//
// Not thread-safe.
class SpaceNeeds {
 public:
  // `bytes` are going to be written in the directory. The sum of all calls
  // counts.
  void Write(const std::string& directory, uint64_t bytes) {
    Of(directory).written += bytes;
  }
  // `bytes` are to be free besides. The largest number counts, because several
  // reserves are for the same data: a memtable may become SST files, blob files
  // or both, and a WAL only takes what a memtable takes.
  void Reserve(const std::string& directory, uint64_t bytes);
  // The device of the directory must have what its directories need. Without
  // this the needs of a directory count only if another directory of the same
  // device is required.
  void Require(const std::string& directory) {
    Of(directory).is_required = true;
  }

  // Returns true if Require() was called for the directory.
  // directory: a clean name.
  bool IsRequired(const std::string& directory) const {
    const auto need = needs_.find(directory);
    return need != needs_.end() && need->second.is_required;
  }

  // Returns NoSpace if a device lacks room. The message names the directories,
  // the free bytes and the needed bytes of each such device. Returns another
  // error if the free bytes of a required directory cannot be read. A directory
  // has room if its file system does not tell (NotSupported).
  Status Check(FileSystem* fs) const;

  // Returns true if the file system tells the free bytes of all directories
  // that were named, or fails to read them for another reason.
  bool IsSupported(FileSystem* fs) const;

 private:
  struct Need {
    uint64_t written = 0;
    uint64_t reserve = 0;
    bool is_required = false;
  };

  Need& Of(const std::string& directory);

  // The key is a clean name (CleanDirectoryName()).
  std::map<std::string, Need> needs_;
};

}  // namespace ROCKSDB_NAMESPACE
