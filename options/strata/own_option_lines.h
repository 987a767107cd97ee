//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// How an OPTIONS file holds the options that RocksDB does not have: as lines
//
//   # strata: name=value
//
// RocksDB takes such a line for a comment and loads the rest. Otherwise it
// would not load the file, with ignore_unknown_options neither, since the
// file's version is its own. Whether RocksDB can read the data is for the
// MANIFEST to say.
class OwnOptionLines {
 public:
  // Whether `name` is an option of a database or a column family that RocksDB
  // does not have.
  static bool IsOwn(const std::string& name);

  // The text of a section, "name=value" on each line, with the lines of own
  // options turned into comments.
  static std::string Hide(const std::string& section);

  // A line of a file, or, if it is such a comment, the option that it holds.
  static std::string Reveal(const std::string& line);
};

}  // namespace ROCKSDB_NAMESPACE
