//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/path_layout/path_mover.h"
#include "rocksdb/utilities/ldb_cmd.h"

namespace ROCKSDB_NAMESPACE {

// ldb move_paths: moves the files of a closed database from directories among
// its paths to others (PathMover), for a device that is replaced or drained.
// The database is not opened.
class MovePathsCommand : public LDBCommand {
 public:
  static std::string Name() { return "move_paths"; }

  MovePathsCommand(const std::vector<std::string>& params,
                   const std::map<std::string, std::string>& options,
                   const std::vector<std::string>& flags);

  void DoCommand() override;
  bool NoDBOpen() override { return true; }

  static void Help(std::string& ret);

 private:
  // Parses the flags of the command.
  Status Parse(const std::map<std::string, std::string>& options,
               const std::vector<std::string>& flags);
  // Gives --cf_paths to the family in --column_family, also if others have a
  // layout: the OPTIONS file does not have the paths of all families. Without
  // --column_family they are those of all families with a layout, or, if none
  // has one, of all families, which could have them by db_paths.
  void ApplyPaths();
  PathMover::Family FamilyOf(const std::string& name) const;

  PathMover::MoveOptions move_options_;
  // The db_paths that the program has passed to LDBTool; may be empty.
  std::vector<DbPath> db_paths_;
  // False: --column_family was given.
  bool all_families_ = true;
  // Value of --cf_paths if --column_family was given.
  std::vector<DbPath> paths_of_family_;
};

}  // namespace ROCKSDB_NAMESPACE
