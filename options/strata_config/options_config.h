//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "options/strata_config/config_applier.h"
#include "options/strata_config/config_file.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Env;
class FileSystem;
class Logger;

// The file that the environment variable STRATA_CONFIG names, and what it has
// done to the options of one open of a database.
//
// Invariants:
// 1. The file is read once, by Load(). A column family that is created while
//    the database is open gets the options that the file had then.
// 2. Without the variable there is no object, and an open costs a getenv().
// 3. Errors are InvalidArgument that begins with STRATA_CONFIG and names the
//    file.
//
// Not thread-safe.
class OptionsConfig {
 public:
  static constexpr const char* kVariable = "STRATA_CONFIG";
  using Changes = std::vector<ConfigChange>;

  // Reads and checks the file. *config: nullptr: the variable is not set, is
  // empty, or the process has rights that its caller does not have.
  // env: of the database; nullptr: the default one.
  // dbname: as the program names the database.
  static Status Load(Env* env, const std::string& dbname,
                     std::shared_ptr<OptionsConfig>* config);

  // REQUIRES: only Load() calls it
  OptionsConfig(Env* env, const std::string& dbname);
  OptionsConfig(const OptionsConfig&) = delete;
  OptionsConfig& operator=(const OptionsConfig&) = delete;

  // See ConfigApplier.
  void ApplyOnlyDirectories() { applier_.ApplyOnlyDirectories(); }

  // Apply the file. On failure the options are unchanged. It is an error if the
  // file gives a path of the options to another database, or if a line gives
  // the directory of another database (CheckNotOfOthers()).
  // changes: see ConfigApplier::Apply().
  Status Apply(DBOptions* options, Changes* changes);
  Status Apply(const std::string& family, ColumnFamilyOptions* options,
               Changes* changes);
  Status ApplyToUnknownFamily(ColumnFamilyOptions* options, Changes* changes);

  // Returns InvalidArgument if the open would create the database, and a path
  // by a line of the file, or its directory, has files of another one
  // (ConfigDirectories::CheckNew()).
  // options: of the open, with the file applied.
  Status CheckNew(const DBOptions& options) const;

  // See ConfigDirectories. For calls that repair or destroy the database.
  Status CheckOwnDirectory() const;

  // See ConfigDirectories. For paths of options to which the file is not
  // applied.
  Status CheckNotOfOthers(const std::string& option,
                          const std::vector<DbPath>& paths) const;

  // Adds the column families that sections for the database name in full. The
  // database may have them.
  Status AddFamilies(std::set<std::string>* names) const;
  // See ConfigDirectories.
  Status CheckNoUnknownFamily() const;
  Status AddAllPaths(std::vector<DbPath>* paths) const;

  // Writes to LOG which sections have matched so far, and the changes. Only the
  // former is one of the lines that each LOG file begins with.
  // log: nullptr: nothing is written.
  void Log(Logger* log, const Changes& changes) const;
  // Writes only the changes.
  void LogChanges(Logger* log, const Changes& changes) const;

  // Returns s, the result of an open with these changes. If it is about
  // options, the message of the result names the lines that have changed those
  // in the message of s, or else the first lines that have changed some. The
  // code is that of s.
  Status Explain(const Status& s, const Changes& changes) const;

 private:
  // Returns s, an error of ConfigFile or ConfigApplier, with the variable.
  static Status Named(const Status& s);
  // Checks paths with the file applied.
  // changes: those from `begin` on are of these options.
  Status CheckPaths(const Changes& changes, size_t begin, const char* option,
                    const std::vector<DbPath>& paths) const;

  ConfigFile file_;
  // Declared before applier_, which is given them.
  Env* const env_;
  const std::string database_;
  ConfigApplier applier_;
};

}  // namespace ROCKSDB_NAMESPACE
