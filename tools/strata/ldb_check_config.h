//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "options/strata_config/config_applier.h"
#include "options/strata_config/config_file.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/ldb_cmd.h"

namespace ROCKSDB_NAMESPACE {

// ldb check_config: prints what a file of STRATA_CONFIG would change in the
// options of databases, and whether it would have their opens refused. It reads
// the OPTIONS file and the MANIFEST of each, and changes nothing.
class CheckConfigCommand : public LDBCommand {
 public:
  static std::string Name() { return "check_config"; }

  CheckConfigCommand(const std::vector<std::string>& params,
                     const std::map<std::string, std::string>& options,
                     const std::vector<std::string>& flags);

  void DoCommand() override;
  bool NoDBOpen() override { return true; }

  static void Help(std::string& ret);

 private:
  // A database, as its OPTIONS file and MANIFEST describe it.
  struct Database {
    std::string name;
    bool exists = false;
    bool has_options_file = false;
    DBOptions db_options;
    std::vector<ColumnFamilyDescriptor> families;
  };

  Status Check();
  // Checks one database. *is_refused: set if its open would be refused.
  Status CheckDatabase(const std::string& name, bool* is_refused);
  Status Load(const std::string& name, Database* database) const;
  // Gives families whose merge operator ldb cannot make a stand-in, as the
  // program has it.
  void AddMergeOperators(Database* database) const;
  // Returns the error that an open with these options would return, as far as
  // it is about options and paths.
  Status CheckOpen(const Database& database) const;
  Status CheckFiles(const Database& database) const;
  // Checks that no path is that of another database.
  // database: result of CleanDirectoryName()
  Status CheckPaths(const std::string& database, const char* option,
                    const std::vector<DbPath>& paths) const;

  // Returns the databases that --db names.
  std::vector<std::string> Databases() const;
  bool IsDatabase(const std::string& name) const;
  void PrintUnusedSections() const;

  std::string file_name_;
  ConfigFile file_;
  // The numbers of the headers of sections that have matched.
  std::set<size_t> used_sections_;
};

}  // namespace ROCKSDB_NAMESPACE
