//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "options/strata_config/options_config.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The options of calls that open, repair or destroy a database, after the file
// that STRATA_CONFIG names (OptionsConfig) was applied. These classes are the
// seams to RocksDB's functions, which use the options of such an object in
// place of the options that they were given.
//
// Invariants:
// 1. Without STRATA_CONFIG the options are those that were given, and those of
//    an open are not copied.
// 2. If the file cannot be applied, status() is the result of the call, which
//    has done nothing then.
//
// Not thread-safe.

// For an open.
class ConfiguredOptions {
 public:
  // REQUIRES: db_options and column_families outlive this object
  ConfiguredOptions(const DBOptions& db_options, const std::string& dbname,
                    const std::vector<ColumnFamilyDescriptor>& column_families);

  const Status& status() const { return status_; }
  const DBOptions& db_options() const {
    return db_options_.has_value() ? *db_options_ : given_db_options_;
  }
  const std::vector<ColumnFamilyDescriptor>& column_families() const {
    return db_options_.has_value() ? column_families_ : given_column_families_;
  }

  // The result of the open: s, which names the lines of the file if it is an
  // error about options.
  Status Explain(const Status& s) const;
  // The same, for opens without OnOpen(): if s is OK, writes to the LOG of the
  // database, if it has one, what the file has done.
  Status Finish(const Status& s, const std::unique_ptr<DB>& db) const;

  // Writes to LOG what the file has done.
  void Log(Logger* log) const;
  // For column families that are created later; nullptr: there is no file.
  const std::shared_ptr<OptionsConfig>& config() const { return config_; }

 private:
  const DBOptions& given_db_options_;
  const std::vector<ColumnFamilyDescriptor>& given_column_families_;
  std::shared_ptr<OptionsConfig> config_;
  Status status_;
  // If there is a file.
  std::optional<DBOptions> db_options_;
  std::vector<ColumnFamilyDescriptor> column_families_;
  OptionsConfig::Changes changes_;
};

// For a column family that is created in an open database.
class ConfiguredFamily {
 public:
  // config: of the open; nullptr: there is no file.
  // REQUIRES: options outlive this object
  ConfiguredFamily(const std::shared_ptr<OptionsConfig>& config,
                   const std::string& name, const ColumnFamilyOptions& options);

  const Status& status() const { return status_; }
  const ColumnFamilyOptions& options() const {
    return options_.has_value() ? *options_ : given_options_;
  }
  // See ConfiguredOptions.
  Status Explain(const Status& s) const;
  // To be called after the family was created.
  void Log(Logger* log) const;

 private:
  const ColumnFamilyOptions& given_options_;
  const std::shared_ptr<OptionsConfig> config_;
  Status status_;
  std::optional<ColumnFamilyOptions> options_;
  OptionsConfig::Changes changes_;
};

// For RepairDB().
class ConfiguredRepair {
 public:
  // unknown_options: for column families that are not among the others;
  // nullptr: there are none. Otherwise those that the MANIFEST names are added
  // to column_families(), as the file may have options for them; and so are the
  // default one and that of persistent statistics, which has the options that
  // an open gives it. If the MANIFEST that CURRENT names cannot be read, those
  // that the file names are added, too, and status() is InvalidArgument if
  // there may be others whose paths the file has.
  ConfiguredRepair(const std::string& dbname, const DBOptions& db_options,
                   const std::vector<ColumnFamilyDescriptor>& column_families,
                   const ColumnFamilyOptions* unknown_options);

  const Status& status() const { return status_; }
  const DBOptions& db_options() const { return db_options_; }
  const std::vector<ColumnFamilyDescriptor>& column_families() const {
    return column_families_;
  }
  const ColumnFamilyOptions& unknown_options() const {
    return unknown_options_;
  }
  // Those of the default column family, or else unknown_options().
  const ColumnFamilyOptions& default_options() const;

  // Writes to LOG what the file has done.
  void Log(Logger* log) const;

 private:
  Status Apply(const std::string& dbname, bool has_unknown);
  Status AddFamilies(const std::string& dbname);
  Status Validate() const;

  DBOptions db_options_;
  std::vector<ColumnFamilyDescriptor> column_families_;
  ColumnFamilyOptions unknown_options_;
  std::shared_ptr<OptionsConfig> config_;
  Status status_;
  OptionsConfig::Changes changes_;
};

// For DestroyDB(): applies the directories of the file, and nothing else, to
// the options of the database and to *families. Adds to *families one without a
// name that has all paths by lines for the database. They are its own
// (ConfigDirectories), so it does not matter which column families there are: a
// family may have been dropped while its files stayed.
Status ConfigureDestroy(const std::string& dbname, Options* options,
                        std::vector<ColumnFamilyDescriptor>* families);

// For tools that read files of a database without an open: applies the file to
// *options, or, if there are several column families, to those in *families.
// dbname: empty: the tool has no database, and nothing is applied.
Status ConfigureTool(const std::string& dbname, Options* options,
                     std::vector<ColumnFamilyDescriptor>* families);

}  // namespace ROCKSDB_NAMESPACE
