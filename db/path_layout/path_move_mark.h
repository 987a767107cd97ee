//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/path_layout/path_move_plan.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// A file in the directory of a database while files of its paths are being
// moved to other directories. It is durable before the first file is at its
// destination, and is deleted when no file is left in a source.
//
// It says which files in the destinations, and, when the database has its new
// paths already, in the sources, are those of the database. Otherwise they
// could be those of another one, which must not be overwritten or deleted.
//
// The name is none that RocksDB knows, so that an open of the database leaves
// the file alone.
struct PathMoveMark {
  // The name of the file.
  static const char* Name();

  struct Move {
    PathMoveRequest request;
    // Name of a file that was in the source, and was to be moved -> bytes.
    std::map<std::string, uint64_t> files;
  };

  // In the order of the requests.
  std::vector<Move> moves;

  // Returns the contents of the file.
  // REQUIRES: no name has a line break
  std::string Encode() const;
  // Returns Corruption if `text` is no mark or is not complete.
  Status DecodeFrom(const std::string& text);

  // Writes the mark into the directory of the database, or replaces an old one,
  // and syncs the directory. A crash leaves the old mark, or the new one.
  Status Write(FileSystem* fs, const std::string& dbname) const;
  // Returns NotFound if there is none, Corruption if it cannot be read.
  Status Read(FileSystem* fs, const std::string& dbname);
  // Deletes the mark, and syncs the directory.
  static Status Delete(FileSystem* fs, const std::string& dbname);
};

}  // namespace ROCKSDB_NAMESPACE
