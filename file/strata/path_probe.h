//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FSDirectory;
class FileSystem;

// Finds out whether files can be made in a directory again, after its device
// was lost or read-only.
//
// Thread-safe: the class has no state.
class PathProbe {
 public:
  PathProbe() = delete;

  enum class Problem {
    kNone,
    kFiles,     // No file can be made there.
    kHandle,    // Files can be made, but a handle of `opened` does not work.
    kReplaced,  // Files can be made, but in another directory than `opened`.
  };

  // Creates a small file, writes and syncs it, syncs the directory, and deletes
  // the file. Then compares the directory with the handles that are open, and
  // syncs these. Returns the first error.
  // number: a file number that no other file has. The file is called
  //     <number>.dbtmp: if it is left, the next search for obsolete files
  //     deletes it. That search may also delete it before this function does.
  // opened: the handles of the directory that jobs sync. They may be those of a
  //     device that has gone, although another one is in its place.
  static IOStatus Run(FileSystem* fs, const std::string& directory,
                      uint64_t number,
                      const std::vector<std::shared_ptr<FSDirectory>>& opened,
                      Problem* problem);
};

}  // namespace ROCKSDB_NAMESPACE
