//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "options/strata_config/config_file.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// The directories that lines of a file of STRATA_CONFIG name: db_paths,
// cf_paths and db_log_dir.
//
// An open deletes files of the directories of its paths that its MANIFEST does
// not name. So two databases with one directory would delete each other's
// files, which a line for several databases could bring about. Hence
//
// 1. Directories are absolute: a relative one would depend on where a program
//    was started.
// 2. A path for databases that a pattern matches is made of the name of the
//    database, "{db}", or is its directory, "{dir}" (ConfigPath).
// 3. No path, by whatever line, is a path of two databases: two that patterns
//    match, two that sections name in full, or one of each. The directory of a
//    database that a section names in full is a path of no other one.
// 4. No path is the directory of another database.
// 5. A database that is created has no path with files of another one. A
//    database that was renamed leaves such files behind, as its name was a part
//    of its paths.
// 6. No path of a call, of a line or not, is one that a line gives another
//    database. A program may have it from the OPTIONS file of that database.
// 7. No database is created in a directory with files that a line gives another
//    database as a path, and none there is repaired or destroyed.
class ConfigDirectories {
 public:
  // Returns true if the option is a list of paths: db_paths or cf_paths.
  static bool IsPathList(const std::string& option);
  // The same, or a single directory: db_log_dir.
  static bool NamesDirectories(const std::string& option);

  // Checks 1, 2 and 3 in all lines. Returns InvalidArgument that names the
  // line, and, for 3, both lines.
  static Status Check(const ConfigFile& file);

  // Calls visit(section, line, path) for each path that a line of a section for
  // the database names, whatever the column family is, and whether a later line
  // replaces it or not. Returns the first error, and ends with it.
  // database: result of CleanDirectoryName()
  using PathVisitor =
      std::function<Status(const ConfigFile::Section&, const ConfigFile::Line&,
                           const std::string& path)>;
  static Status ForEachPath(const ConfigFile& file, const std::string& database,
                            const PathVisitor& visit);

  // Returns the value of a line for a database: without placeholders, if it is
  // a value of one of these options. db_log_dir has no other one than "{db}".
  // database: result of CleanDirectoryName()
  static std::string Expand(const std::string& option, const std::string& value,
                            const std::string& database);

  // Checks 4. Returns InvalidArgument that names the path, or the error of the
  // file system if it cannot tell.
  // database: result of CleanDirectoryName(), as Expand().
  static Status CheckNoDatabase(FileSystem* fs, const std::string& database,
                                const std::vector<DbPath>& paths);

  // Checks 6: paths of an open or another call, whether lines or the program
  // have named them. Returns InvalidArgument that names the line of the other
  // database, the path and the option. The directory of the database itself is
  // left to CheckNoDatabase(), by the open of the other one.
  // database: as Expand(). option: the one with the paths.
  static Status CheckNotOfOthers(FileSystem* fs, const ConfigFile& file,
                                 const std::string& database,
                                 const std::string& option,
                                 const std::vector<DbPath>& paths);

  // Checks 7. Returns InvalidArgument that names the line, the other database
  // and a file. It is OK if the directory is that of a database by its files,
  // though CURRENT may be missing: then CheckNoDatabase() or a person has to
  // find out what the line means.
  // database: as Expand().
  static Status CheckOwnDirectory(FileSystem* fs, const ConfigFile& file,
                                  const std::string& database);

  // Checks 5 and 7. Returns InvalidArgument that names the line, the path and a
  // file.
  // database: as Expand().
  // REQUIRES: an open would create the database
  static Status CheckNew(FileSystem* fs, const ConfigFile& file,
                         const std::string& database);

  // Adds to *paths all paths that lines give the database and its column
  // families, also those that have been dropped, and those whose names are not
  // known. Returns InvalidArgument that names the line if one of them is the
  // directory of another database, or breaks 6.
  // database: as Expand().
  static Status AddAllPaths(FileSystem* fs, const ConfigFile& file,
                            const std::string& database,
                            std::vector<DbPath>* paths);

  // For calls that find out which column families there are without a MANIFEST:
  // returns InvalidArgument, as CheckNew(), if a path has files that may belong
  // to a family whose name is not known, since its section has a pattern other
  // than "*".
  // database: as Expand().
  static Status CheckNoUnknownFamily(FileSystem* fs, const ConfigFile& file,
                                     const std::string& database);
};

}  // namespace ROCKSDB_NAMESPACE
