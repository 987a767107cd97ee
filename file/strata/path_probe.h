//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Finds out whether files can be made in a directory again, after its device
// was lost or read-only.
//
// Thread-safe: the class has no state.
class PathProbe {
 public:
  PathProbe() = delete;

  // Creates a small file, writes and syncs it, syncs the directory, and deletes
  // the file. Returns the first error.
  // number: a file number that no other file has. The file is called
  //     <number>.dbtmp: if it is left, the next search for obsolete files
  //     deletes it. That search may also delete it before this function does.
  static IOStatus Run(FileSystem* fs, const std::string& directory,
                      uint64_t number);
};

}  // namespace ROCKSDB_NAMESPACE
