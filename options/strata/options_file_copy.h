//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/copy_layout.h"

namespace ROCKSDB_NAMESPACE {

// Changes the text of an OPTIONS file for a copy of the database in another
// directory, or for the database itself if its files have moved or if it goes
// back to RocksDB.
//
// Invariant: the text for a copy names no directory in which the original has
// files. A database that is opened by its OPTIONS file deletes unknown files
// there, so a copy that named these directories would delete the original's.
class OptionsFileCopy {
 public:
  // Returns the text for a copy in one directory. It has neither cf_paths nor
  // layouts, and no path_prices, which are those of other devices. This
  // function changes no other line.
  // keeps_wal_dir: whether wal_dir and db_log_dir stay, too; if not, they are
  // empty. A backup, which is not opened before it was restored, keeps them:
  // the caller of a restore chooses the directory of the WALs, which may be the
  // original one.
  static std::string IntoOneDirectory(const std::string& text,
                                      bool keeps_wal_dir);

  // Returns the layout of a column family in a copy; nullptr: none.
  using LayoutOfFamily =
      std::function<const CopyLayout::ColumnFamily*(const std::string& family)>;

  // As IntoOneDirectory(), but column families with a layout have its cf_paths
  // and ids.
  // families: receives the names of the column families in the text.
  // Returns NotSupported, naming the family, if its compaction style does not
  // allow several paths.
  static Status IntoLayout(const std::string& text, bool keeps_wal_dir,
                           const LayoutOfFamily& layout_of,
                           std::set<std::string>* families,
                           std::string* result);

  // Returns the text without the sections of other column families than these.
  // The file may still have one that was dropped while the copy was made, and a
  // database cannot be opened with a column family that it does not have.
  static std::string OnlyFamilies(const std::string& text,
                                  const std::set<std::string>& families);

  // Returns true if a column family in the text has cf_paths.
  static bool HasPaths(const std::string& text);

  // Returns the new cf_paths of a column family; nullptr: they do not change.
  using PathsOfFamily =
      std::function<const std::vector<DbPath>*(const std::string& family)>;

  // Returns the text for the database itself after files have moved. A column
  // family without cf_paths gets none: it would not keep them.
  // families: receives the names of the column families with cf_paths.
  static std::string ReplacePaths(const std::string& text,
                                  const PathsOfFamily& paths_of,
                                  std::set<std::string>* families);

  // An option that RocksDB does not have.
  struct OwnOption {
    std::string family;  // empty: an option of the database
    std::string name;
    std::string value;
  };
  // Returns those in the text, in their order, as comments or not.
  static std::vector<OwnOption> OwnOptions(const std::string& text);

  // Returns the text without the lines of those of these options for which
  // `drops` returns true. This function changes no other line.
  static std::string WithoutOwnOptions(
      const std::string& text,
      const std::function<bool(const std::string& name)>& drops);

  // Returns the text with those of these options that another text has, in
  // place of its own ones. A section that the other text lacks gets none.
  static std::string WithOwnOptionsOf(const std::string& text,
                                      const std::string& other);

  // Returns the text with this option in the sections of these column families.
  // REQUIRES: RocksDB does not have the option, and the sections lack it
  static std::string WithOwnOption(const std::string& text,
                                   const std::set<std::string>& families,
                                   const std::string& name,
                                   const std::string& value);

  // Adds the cf_paths of all column families in the text to *directories.
  // Returns an error if they are no list of paths.
  static Status AddPaths(const std::string& text,
                         std::set<std::string>* directories);
};

}  // namespace ROCKSDB_NAMESPACE
