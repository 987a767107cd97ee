//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_directories.h"

#include <cstdint>
#include <map>
#include <utility>

#include "db/path_layout/directory_names.h"
#include "file/filename.h"
#include "options/strata_config/config_file.h"
#include "rocksdb/file_system.h"
#include "rocksdb/utilities/options_type.h"
#include "util/strata/path_list.h"
#include "util/string_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kLogDir = "db_log_dir";
const char* const kPlaceholder = "{db}";

std::string ReplaceAll(const std::string& text, const std::string& what,
                       const std::string& with) {
  std::string result;
  size_t begin = 0;
  while (true) {
    const size_t found = text.find(what, begin);
    result += text.substr(begin, found - begin);
    if (found == std::string::npos) {
      return result;
    }
    result += with;
    begin = found + what.size();
  }
}

// Returns the name in the form in which it stands in a list of paths.
std::string Encode(const std::string& name) {
  return PathListToString({DbPath(name, UINT64_MAX)});
}

// Parses the value of db_paths or cf_paths for a database of this name.
Status ParseFor(const std::string& name, const std::string& value,
                std::vector<DbPath>* paths) {
  return ParsePathList(OptionTypeInfo::StripOuterBraces(
                           ReplaceAll(value, kPlaceholder, Encode(name))),
                       paths);
}

// Which database, by its name, has which directory, by which line.
using Owners = std::map<std::string, std::pair<std::string, size_t>>;

// path: has no placeholder.
Status CheckPath(const ConfigFile& file, const ConfigFile::Section& section,
                 const ConfigFile::Line& line, const std::string& path,
                 Owners* owners) {
  if (!section.db.is_literal()) {
    return file.Error(
        line.number,
        line.name + ": \"" + path +
            "\" would be a path of each database that matches \"" +
            section.db.text() +
            "\". They would delete each other's files. Put " + kPlaceholder +
            " into the path, which stands for the name of the database");
  }
  const auto [found, is_new] =
      owners->emplace(CleanDirectoryName(/*fs=*/nullptr, path),
                      std::make_pair(section.db.literal(), line.number));
  const auto& [database, number] = found->second;
  if (!is_new && database != section.db.literal()) {
    return file.Error(
        line.number, line.name + ": \"" + path + "\" is a path of " + database +
                         ", too, by line " + std::to_string(number) +
                         ". The databases would delete each other's files");
  }
  return Status::OK();
}

Status CheckLine(const ConfigFile& file, const ConfigFile::Section& section,
                 const ConfigFile::Line& line, Owners* owners) {
  const std::string value = UnescapeOptionString(line.value);
  if (line.name == kLogDir) {
    return value.empty() || value[0] == '/'
               ? Status::OK()
               : file.Error(line.number, line.name + ": \"" + value +
                                             "\" is not an absolute path");
  }
  // The same list for two databases.
  std::vector<DbPath> paths;
  std::vector<DbPath> others;
  Status s = ParseFor("a", value, &paths);
  if (s.ok()) {
    s = ParseFor("b", value, &others);
  }
  if (!s.ok()) {
    return file.Error(line.number, line.name, s);
  }
  for (size_t i = 0; s.ok() && i < paths.size(); ++i) {
    const std::string& path = paths[i].path;
    if (path[0] != '/') {
      s = file.Error(line.number,
                     line.name + ": \"" + path + "\" is not an absolute path");
    } else if (path == others[i].path) {
      s = CheckPath(file, section, line, path, owners);
    }
  }
  return s;
}

}  // namespace

bool ConfigDirectories::IsPathList(const std::string& option) {
  return option == "db_paths" || option == "cf_paths";
}

Status ConfigDirectories::Check(const ConfigFile& file) {
  Owners owners;
  for (const ConfigFile::Section& section : file.sections()) {
    for (const ConfigFile::Line& line : section.lines) {
      if (!IsPathList(line.name) && line.name != kLogDir) {
        continue;
      }
      const Status s = CheckLine(file, section, line, &owners);
      if (!s.ok()) {
        return s;
      }
    }
  }
  return Status::OK();
}

std::string ConfigDirectories::NameOf(const std::string& database) {
  const std::string name =
      !database.empty() && database[0] == '/' ? database.substr(1) : database;
  return name.empty() ? "%2F"
                      : ReplaceAll(ReplaceAll(name, "%", "%25"), "/", "%2F");
}

std::string ConfigDirectories::Expand(const std::string& option,
                                      const std::string& value,
                                      const std::string& database) {
  if (IsPathList(option)) {
    return ReplaceAll(value, kPlaceholder, Encode(NameOf(database)));
  }
  return option == kLogDir ? ReplaceAll(value, kPlaceholder, NameOf(database))
                           : value;
}

Status ConfigDirectories::CheckNoDatabase(FileSystem* fs,
                                          const std::string& database,
                                          const std::vector<DbPath>& paths) {
  for (const DbPath& path : paths) {
    if (CleanDirectoryName(fs, path.path) != database &&
        fs->FileExists(CurrentFileName(path.path), IOOptions(), nullptr).ok()) {
      return Status::InvalidArgument(
          "\"" + path.path +
          "\" is a database itself. An open that has it as a path would "
          "delete its files");
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
