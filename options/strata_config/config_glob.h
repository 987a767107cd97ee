//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// A pattern for the names of databases or column families in a file of
// STRATA_CONFIG: that of fnmatch(3) without flags. So "*" and "?" match a slash
// and a leading dot, too, "[...]" is a set of characters, and a backslash takes
// the meaning of the next character away.
//
// Invariant: a literal pattern, which has none of these except for backslashes,
// matches exactly one name, in every locale.
//
// Thread-safe.
class ConfigGlob {
 public:
  // Matches nothing.
  ConfigGlob() = default;
  // For a column family.
  explicit ConfigGlob(const std::string& text);
  // For a database: a slash at the end, and in a literal pattern parts that are
  // "." or "..", do not matter, as in the names that it is matched with
  // (CleanDirectoryName()).
  static ConfigGlob OfDatabase(const std::string& text);

  // The pattern as it was given.
  const std::string& text() const { return text_; }
  bool is_literal() const { return is_literal_; }
  // The only name that it matches. REQUIRES: is_literal()
  const std::string& literal() const { return pattern_; }
  // Returns true if the pattern matches every name, and says so: "*".
  bool MatchesAll() const { return pattern_ == "*" && !is_literal_; }

  // Sets *matches. Returns InvalidArgument if the C library cannot compare the
  // pattern with the name, and NotSupported where there is no fnmatch().
  Status Match(const std::string& name, bool* matches) const;

 private:
  std::string text_;
  // Without backslashes if it is literal.
  std::string pattern_;
  bool is_literal_ = true;
};

}  // namespace ROCKSDB_NAMESPACE
