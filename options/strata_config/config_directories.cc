//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_directories.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "db/path_layout/directory_names.h"
#include "file/filename.h"
#include "options/strata_config/config_path.h"
#include "rocksdb/file_system.h"
#include "util/string_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kLogDir = "db_log_dir";

Status CheckLogDir(const ConfigFile& file, const ConfigFile::Line& line) {
  const std::string value = UnescapeOptionString(line.value);
  if (!value.empty() && value[0] != '/') {
    return file.Error(
        line.number, line.name + ": \"" + value + "\" is not an absolute path");
  }
  return value.find(ConfigPath::kDirectory) == std::string::npos
             ? Status::OK()
             : file.Error(line.number, line.name + ": " +
                                           ConfigPath::kDirectory +
                                           " is for paths alone. LOG is in the "
                                           "directory of the database without "
                                           "this line");
}

// A path, and the line that names it.
struct LinePath {
  const ConfigFile::Line* line;
  ConfigPath path;
};

Status AddLinePaths(const ConfigFile& file, const ConfigFile::Section& section,
                    const ConfigFile::Line& line,
                    std::vector<LinePath>* paths) {
  std::vector<ConfigPath> parsed;
  const Status s = ConfigPath::ParseList(
      section.db, UnescapeOptionString(line.value), &parsed);
  if (!s.ok()) {
    return file.Error(line.number, line.name, s);
  }
  for (ConfigPath& path : parsed) {
    paths->push_back(LinePath{&line, std::move(path)});
  }
  return s;
}

Status AddSectionPaths(const ConfigFile& file,
                       const ConfigFile::Section& section,
                       std::vector<LinePath>* paths) {
  for (const ConfigFile::Line& line : section.lines) {
    if (!ConfigDirectories::IsPathList(line.name)) {
      continue;
    }
    const Status s = AddLinePaths(file, section, line, paths);
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

// Checks that no path for the databases of a pattern is that of another one.
// Those of two databases with names of their own are left to CheckOwners().
Status CheckPatterns(const ConfigFile& file,
                     const std::vector<LinePath>& paths) {
  std::string database;
  std::string other_database;
  for (size_t i = 0; i < paths.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const ConfigPath& path = paths[i].path;
      const ConfigPath& other = paths[j].path;
      if ((path.is_of_one_database() && other.is_of_one_database()) ||
          !path.CollidesWith(other, &database, &other_database)) {
        continue;
      }
      const ConfigFile::Line& line = *paths[i].line;
      return file.Error(
          line.number,
          line.name + ": \"" + path.text() + "\", for a database " + database +
              ", is the same directory as \"" + other.text() + "\" in line " +
              std::to_string(paths[j].line->number) + " for a database " +
              other_database +
              ". The databases would delete each other's files");
    }
  }
  return Status::OK();
}

// Which literal database has a directory, and by which line.
struct Owner {
  std::string database;
  size_t line;
  bool is_own;  // the directory is that of the database, and the line a header
};

// The key is a result of CleanDirectoryName().
using Owners = std::map<std::string, Owner>;

// Checks that no other database has the path, and adds it.
Status AddPath(const ConfigFile& file, const std::string& database,
               const ConfigFile::Line& line, const std::string& path,
               Owners* owners) {
  const auto [found, is_new] =
      owners->emplace(CleanDirectoryName(/*fs=*/nullptr, path),
                      Owner{database, line.number, /*is_own=*/false});
  const Owner& owner = found->second;
  if (!is_new && owner.database != database) {
    const std::string of_other =
        owner.is_own
            ? "the directory of " + owner.database +
                  ", which has a section in line " + std::to_string(owner.line)
            : "a path of " + owner.database + ", too, by line " +
                  std::to_string(owner.line);
    return file.Error(line.number,
                      line.name + ": \"" + path + "\", a path of " + database +
                          ", is " + of_other +
                          ". The databases would delete each other's files");
  }
  return Status::OK();
}

Status CheckOwners(const ConfigFile& file) {
  Owners owners;
  std::set<std::string> databases;
  for (const ConfigFile::Section& section : file.sections()) {
    if (section.db.is_literal()) {
      const std::string& database = section.db.literal();
      databases.insert(database);
      owners.emplace(database,
                     Owner{database, section.number, /*is_own=*/true});
    }
  }
  Status s;
  for (const std::string& database : databases) {
    if (s.ok()) {
      s = ConfigDirectories::ForEachPath(
          file, database,
          [&](const ConfigFile::Section&, const ConfigFile::Line& line,
              const std::string& path) {
            return AddPath(file, database, line, path, &owners);
          });
    }
  }
  return s;
}

// What the names of the files in a directory tell.
struct Contents {
  // An SST, blob or delta file; empty: there is none.
  std::string data_file;
  // The directory is that of a database, and not only a path of one. CURRENT
  // alone may be missing, after a crash, before a repair.
  bool is_database = false;
};

bool IsDataFile(FileType type) {
  return type == kTableFile || type == kBlobFile || type == kDeltaFile;
}

bool IsOfDatabase(FileType type) {
  return type == kCurrentFile || type == kDescriptorFile ||
         type == kIdentityFile || type == kOptionsFile;
}

// A directory that does not exist is empty.
Status ReadContents(FileSystem* fs, const std::string& directory,
                    Contents* contents) {
  std::vector<std::string> children;
  const Status s = fs->GetChildren(directory, IOOptions(), &children, nullptr);
  if (!s.ok()) {
    return s.IsNotFound() || s.IsPathNotFound() ? Status::OK() : s;
  }
  for (const std::string& child : children) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (!ParseFileName(child, &number, &type)) {
      continue;
    }
    if (IsDataFile(type)) {
      contents->data_file = child;
    }
    contents->is_database |= IsOfDatabase(type);
  }
  return s;
}

// Sets *has to whether the directory has a database. Anything else than a clear
// answer of the file system is an error.
Status HasDatabase(FileSystem* fs, const std::string& directory, bool* has) {
  const Status s =
      fs->FileExists(CurrentFileName(directory), IOOptions(), nullptr);
  *has = s.ok();
  return s.IsNotFound() || s.IsPathNotFound() ? Status::OK() : s;
}

// path: by the line. meaning: of the files, which are an error.
Status CheckNoFiles(FileSystem* fs, const ConfigFile& file,
                    const std::string& database, const ConfigFile::Line& line,
                    const std::string& path, const std::string& meaning) {
  if (CleanDirectoryName(fs, path) == database) {
    return Status::OK();
  }
  Contents contents;
  Status s = ReadContents(fs, path, &contents);
  if (s.ok() && !contents.data_file.empty()) {
    s = Status::InvalidArgument("\"" + path + "\" has files, such as " +
                                contents.data_file + ", " + meaning);
  }
  return s.ok() ? s : file.Error(line.number, line.name, s);
}

// A path of a call that is not the directory of the database, and what messages
// say of it.
struct OwnPath {
  FileSystem* fs;
  std::string database;
  std::string option;
  std::string directory;  // result of CleanDirectoryName()
};

// part_of: what the other database has it as.
std::string MessageOf(const OwnPath& own, const std::string& part_of,
                      const std::string& other) {
  return "\"" + own.directory + "\", which " + own.database + " has in " +
         own.option + " now, is " + part_of + " of " + other +
         ". The databases would delete each other's files. (The OPTIONS file "
         "of a database has its paths, and is not for other databases)";
}

// Returns an error if the path of the line can be the same for another
// database.
Status CheckNotPath(const ConfigFile& file, const ConfigFile::Line& line,
                    const ConfigPath& path, const OwnPath& own) {
  std::string other;
  std::string database;
  if (path.is_directory()) {
    bool is_of_other = path.IsFor(own.directory);
    const Status s = is_of_other
                         ? HasDatabase(own.fs, own.directory, &is_of_other)
                         : Status::OK();
    if (!s.ok()) {
      return file.Error(line.number, line.name, s);
    }
    other = is_of_other ? own.directory : "";
  } else if (!path.CollidesWith(ConfigPath::Of(own.database, own.directory),
                                &other, &database)) {
    return Status::OK();
  }
  return other.empty()
             ? Status::OK()
             : file.Error(line.number,
                          line.name + ": " +
                              MessageOf(own, "by this line a path", other));
}

// The same for all lines of the section, and for the directory of the database
// that it names.
Status CheckNotOfSection(const ConfigFile& file,
                         const ConfigFile::Section& section,
                         const OwnPath& own) {
  if (section.db.is_literal() && section.db.literal() == own.directory) {
    return file.Error(section.number,
                      MessageOf(own, "the directory", own.directory));
  }
  std::vector<LinePath> paths;
  Status s = AddSectionPaths(file, section, &paths);
  for (const LinePath& path : paths) {
    if (s.ok()) {
      s = CheckNotPath(file, *path.line, path.path, own);
    }
  }
  return s;
}

// Returns an error if one of the paths is the directory of the database, but
// for another one.
// contents: of the directory.
Status CheckNotDirectory(const ConfigFile& file,
                         const std::vector<LinePath>& paths,
                         const std::string& database,
                         const Contents& contents) {
  const ConfigPath directory = ConfigPath::Of(database, database);
  std::string other;
  std::string same;
  for (const LinePath& path : paths) {
    if (path.path.CollidesWith(directory, &other, &same)) {
      return file.Error(
          path.line->number,
          path.line->name + ": \"" + database +
              "\" is no database (it has no CURRENT, MANIFEST, IDENTITY or "
              "OPTIONS file), but has files, such as " +
              contents.data_file + ", and is by this line a path of " + other +
              ". A call that creates, repairs or destroys a database there "
              "would take or delete the files");
    }
  }
  return Status::OK();
}

}  // namespace

bool ConfigDirectories::IsPathList(const std::string& option) {
  return option == "db_paths" || option == "cf_paths";
}

bool ConfigDirectories::NamesDirectories(const std::string& option) {
  return IsPathList(option) || option == kLogDir;
}

Status ConfigDirectories::Check(const ConfigFile& file) {
  std::vector<LinePath> paths;
  for (const ConfigFile::Section& section : file.sections()) {
    for (const ConfigFile::Line& line : section.lines) {
      const Status s = IsPathList(line.name)
                           ? AddLinePaths(file, section, line, &paths)
                       : line.name == kLogDir ? CheckLogDir(file, line)
                                              : Status::OK();
      if (!s.ok()) {
        return s;
      }
    }
  }
  const Status s = CheckOwners(file);
  return s.ok() ? CheckPatterns(file, paths) : s;
}

Status ConfigDirectories::ForEachPath(const ConfigFile& file,
                                      const std::string& database,
                                      const PathVisitor& visit) {
  for (const ConfigFile::Section& section : file.sections()) {
    bool matches = false;
    Status s = section.db.Match(database, &matches);
    if (!s.ok()) {
      return file.Error(section.number, s.getState());
    }
    for (const ConfigFile::Line& line : section.lines) {
      if (!matches || !IsPathList(line.name)) {
        continue;
      }
      std::vector<DbPath> paths;
      s = ConfigPath::ParseFor(database, UnescapeOptionString(line.value),
                               &paths);
      if (!s.ok()) {
        return file.Error(line.number, line.name, s);
      }
      for (const DbPath& path : paths) {
        s = visit(section, line, path.path);
        if (!s.ok()) {
          return s;
        }
      }
    }
  }
  return Status::OK();
}

std::string ConfigDirectories::Expand(const std::string& option,
                                      const std::string& value,
                                      const std::string& database) {
  if (IsPathList(option)) {
    return ConfigPath::Expand(value, database);
  }
  std::string result = value;
  const std::string name = ConfigPath::NameOf(database);
  for (size_t at = result.find(ConfigPath::kName);
       option == kLogDir && at != std::string::npos;
       at = result.find(ConfigPath::kName, at + name.size())) {
    result.replace(at, std::string(ConfigPath::kName).size(), name);
  }
  return result;
}

Status ConfigDirectories::CheckNoDatabase(FileSystem* fs,
                                          const std::string& database,
                                          const std::vector<DbPath>& paths) {
  for (const DbPath& path : paths) {
    if (CleanDirectoryName(fs, path.path) == database) {
      continue;
    }
    bool is_database = false;
    const Status s = HasDatabase(fs, path.path, &is_database);
    if (!s.ok()) {
      return s;
    }
    if (is_database) {
      return Status::InvalidArgument(
          "\"" + path.path +
          "\" is a database itself. An open that has it as a path would "
          "delete its files");
    }
  }
  return Status::OK();
}

Status ConfigDirectories::CheckNotOfOthers(FileSystem* fs,
                                           const ConfigFile& file,
                                           const std::string& database,
                                           const std::string& option,
                                           const std::vector<DbPath>& paths) {
  for (const DbPath& path : paths) {
    const OwnPath own{fs, database, option, CleanDirectoryName(fs, path.path)};
    if (own.directory == database) {
      continue;
    }
    for (const ConfigFile::Section& section : file.sections()) {
      const Status s = CheckNotOfSection(file, section, own);
      if (!s.ok()) {
        return s;
      }
    }
  }
  return Status::OK();
}

Status ConfigDirectories::CheckOwnDirectory(FileSystem* fs,
                                            const ConfigFile& file,
                                            const std::string& database) {
  Contents contents;
  Status s = ReadContents(fs, database, &contents);
  if (!s.ok() || contents.is_database || contents.data_file.empty()) {
    return s;
  }
  std::vector<LinePath> paths;
  for (const ConfigFile::Section& section : file.sections()) {
    if (s.ok()) {
      s = AddSectionPaths(file, section, &paths);
    }
  }
  return s.ok() ? CheckNotDirectory(file, paths, database, contents) : s;
}

Status ConfigDirectories::CheckNew(FileSystem* fs, const ConfigFile& file,
                                   const std::string& database) {
  const Status s = CheckOwnDirectory(fs, file, database);
  if (!s.ok()) {
    return s;
  }
  return ForEachPath(
      file, database,
      [&](const ConfigFile::Section&, const ConfigFile::Line& line,
          const std::string& path) {
        return CheckNoFiles(
            fs, file, database, line, path,
            "left by another database, which may have been renamed. An open "
            "that creates " +
                database +
                " would delete them. Rename the directory as the other "
                "database was renamed, or delete the files");
      });
}

Status ConfigDirectories::AddAllPaths(FileSystem* fs, const ConfigFile& file,
                                      const std::string& database,
                                      std::vector<DbPath>* paths) {
  return ForEachPath(
      file, database,
      [&](const ConfigFile::Section&, const ConfigFile::Line& line,
          const std::string& path) {
        const DbPath added(path, UINT64_MAX);
        const Status s = CheckNoDatabase(fs, database, {added});
        if (!s.ok()) {
          return file.Error(line.number, line.name, s);
        }
        paths->push_back(added);
        return CheckNotOfOthers(fs, file, database, line.name, {added});
      });
}

Status ConfigDirectories::CheckNoUnknownFamily(FileSystem* fs,
                                               const ConfigFile& file,
                                               const std::string& database) {
  return ForEachPath(
      file, database,
      [&](const ConfigFile::Section& section, const ConfigFile::Line& line,
          const std::string& path) {
        const bool is_known = section.kind == ConfigFile::Section::kDB ||
                              section.family.is_literal() ||
                              section.family.MatchesAll();
        return is_known
                   ? Status::OK()
                   : CheckNoFiles(
                         fs, file, database, line, path,
                         "whose column family cannot be found out, as CURRENT "
                         "names no readable MANIFEST. Write sections with the "
                         "full "
                         "names of the families in place of the pattern \"" +
                             section.family.text() + "\"");
      });
}

}  // namespace ROCKSDB_NAMESPACE
