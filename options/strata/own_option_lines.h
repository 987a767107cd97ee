//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Converts the lines of Strata's own options in an OPTIONS file, which have the
// form
//
//   # strata: name=value
//
// RocksDB reads such a line as a comment and loads the rest. With plain lines
// it would refuse the file, even with ignore_unknown_options, since that does
// not apply to files of its own version. Whether RocksDB can read the data is
// recorded in the MANIFEST.
class OwnOptionLines {
 public:
  // Returns true if `name` is an option of a database or a column family that
  // RocksDB does not have.
  static bool IsOwn(const std::string& name);

  // Returns the text of a section, which has "name=value" on each line, with
  // the lines of own options turned into comments.
  static std::string Hide(const std::string& section);

  // Returns a line of a file unchanged, or, if it is such a comment, the option
  // line in it.
  static std::string Reveal(const std::string& line);
};

}  // namespace ROCKSDB_NAMESPACE
