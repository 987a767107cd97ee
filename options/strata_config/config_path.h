//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options/strata_config/config_glob.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// A path that a line of a file of STRATA_CONFIG gives to one database, or to
// all that a pattern matches. Placeholders stand for what differs between them:
//
//   {db}    a name that is made of that of the database (NameOf())
//   {dir}   the directory of the database
//
// Invariants:
// 1. The path is absolute and has no part "..", which would take the name of
//    the database away.
// 2. {dir} is a path, and no part of one.
// 3. For the databases of a pattern, the path has a placeholder, and {db} is a
//    whole part of it. With other text beside {db}, the path of one database
//    could be that of another one whose name is longer.
// 4. So the name of a database can be found in its path, and CollidesWith()
//    finds all pairs of databases that have a path in common. Directories of
//    databases are left to others: which ones there are is not known, and with
//    the pattern "*" each directory beside {db} could be a path of a database.
class ConfigPath {
 public:
  // The placeholders.
  static constexpr char kName[] = "{db}";
  static constexpr char kDirectory[] = "{dir}";

  // Parses the value of db_paths or cf_paths in a section for these databases.
  // Returns InvalidArgument, without the place of the line, if the value is no
  // list of paths or breaks 1, 2 or 3. On failure *paths is unchanged.
  // value: without the escapes of the file.
  static Status ParseList(const ConfigGlob& databases, const std::string& value,
                          std::vector<ConfigPath>* paths);
  // The path of one database. Its directory counts as a path, too, so it is not
  // is_directory().
  // REQUIRES: both are results of CleanDirectoryName()
  static ConfigPath Of(const std::string& database, const std::string& path);

  // Returns the name that stands for the database: its own without the first
  // slash, with "%2F" for each other one and "%25" for each "%", as in a URL.
  // It is the name of one directory, and no two databases have the same.
  // database: result of CleanDirectoryName()
  static std::string NameOf(const std::string& database);
  // Finds the database whose NameOf() is the name. Returns false if there is
  // none.
  static bool DatabaseOf(const std::string& name, std::string* database);

  // Returns the value of db_paths or cf_paths for the database.
  static std::string Expand(const std::string& value,
                            const std::string& database);
  // Parses it. Does not check the invariants.
  static Status ParseFor(const std::string& database, const std::string& value,
                         std::vector<DbPath>* paths);

  // The path for messages. It has placeholders if several databases can match
  // its section.
  const std::string& text() const { return text_; }
  bool is_of_one_database() const { return owner_.has_value(); }
  // The directory of the database, or of each database of the pattern.
  bool is_directory() const { return is_directory_; }
  // Returns true if it may be a path of the database.
  bool IsFor(const std::string& database) const;

  // Returns true if it is, for one database, the same directory as `other` for
  // another one. Sets *database and *other_database to such databases. False if
  // one of them is_directory().
  bool CollidesWith(const ConfigPath& other, std::string* database,
                    std::string* other_database) const;

 private:
  ConfigPath() = default;

  // Checks the invariants, and sets all but owner_.
  // a, b: the path for two databases.
  Status Place(const std::string& a, const std::string& b);
  // Makes it the path of one database.
  void SetOwner(const std::string& database, const std::string& path);
  // Sets *database to that whose name is the name. Returns false if the path is
  // not for it.
  bool FindDatabase(const std::string& name, std::string* database) const;

  std::string text_;
  ConfigGlob databases_;
  std::optional<std::string> owner_;  // the only database
  bool is_directory_ = false;
  // Without slashes. No value: a name of a database.
  std::vector<std::optional<std::string>> parts_;
};

}  // namespace ROCKSDB_NAMESPACE
