//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_path.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "db/path_layout/directory_names.h"
#include "rocksdb/utilities/options_type.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Two databases whose names, and parts of whose directories, are different.
const char* const kDatabaseA = "/a/a";
const char* const kDatabaseB = "/b/b";

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

// Returns the text in the form in which it stands in a list of paths.
std::string Encode(const std::string& text) {
  return PathListToString({DbPath(text, UINT64_MAX)});
}

std::string Clean(const std::string& path) {
  return CleanDirectoryName(/*fs=*/nullptr, path);
}

bool HasParentPart(const std::string& path) {
  return (path + "/").find("/../") != std::string::npos;
}

// path: absolute, and a result of Clean().
std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  size_t begin = 1;
  while (begin < path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Sets *name to the part, if it is not known yet. Returns true if both are the
// same.
bool Bind(const std::string& part, std::string* name) {
  if (name->empty()) {
    *name = part;
  }
  return *name == part;
}

}  // namespace

std::string ConfigPath::NameOf(const std::string& database) {
  const std::string name =
      !database.empty() && database[0] == '/' ? database.substr(1) : database;
  return name.empty() ? "%2F"
                      : ReplaceAll(ReplaceAll(name, "%", "%25"), "/", "%2F");
}

bool ConfigPath::DatabaseOf(const std::string& name, std::string* database) {
  const std::string decoded =
      name == "%2F"
          ? "/"
          : "/" + ReplaceAll(ReplaceAll(name, "%2F", "/"), "%25", "%");
  if (Clean(decoded) != decoded || NameOf(decoded) != name) {
    return false;
  }
  *database = decoded;
  return true;
}

std::string ConfigPath::Expand(const std::string& value,
                               const std::string& database) {
  // In this order no name becomes a placeholder: a directory has a slash.
  return ReplaceAll(ReplaceAll(value, kDirectory, Encode(database)), kName,
                    Encode(NameOf(database)));
}

Status ConfigPath::ParseFor(const std::string& database,
                            const std::string& value,
                            std::vector<DbPath>* paths) {
  return ParsePathList(
      OptionTypeInfo::StripOuterBraces(Expand(value, database)), paths);
}

Status ConfigPath::ParseList(const ConfigGlob& databases,
                             const std::string& value,
                             std::vector<ConfigPath>* paths) {
  std::vector<DbPath> a;
  std::vector<DbPath> b;
  std::vector<DbPath> own;
  Status s = ParseFor(kDatabaseA, value, &a);
  if (s.ok()) {
    s = ParseFor(kDatabaseB, value, &b);
  }
  if (s.ok() && databases.is_literal()) {
    s = ParseFor(databases.literal(), value, &own);
  }
  std::vector<ConfigPath> result;
  for (size_t i = 0; s.ok() && i < a.size(); ++i) {
    ConfigPath path;
    path.databases_ = databases;
    if (databases.is_literal()) {
      path.owner_ = databases.literal();
      path.text_ = own[i].path;
    } else {
      path.text_ = ReplaceAll(a[i].path, NameOf(kDatabaseA), kName);
    }
    s = path.Place(a[i].path, b[i].path);
    if (s.ok() && databases.is_literal()) {
      path.SetOwner(databases.literal(), Clean(own[i].path));
    }
    result.push_back(std::move(path));
  }
  if (s.ok()) {
    *paths = std::move(result);
  }
  return s;
}

ConfigPath ConfigPath::Of(const std::string& database,
                          const std::string& path) {
  ConfigPath result;
  result.text_ = path;
  result.SetOwner(database, path);
  result.is_directory_ = false;
  return result;
}

void ConfigPath::SetOwner(const std::string& database,
                          const std::string& path) {
  owner_ = database;
  is_directory_ = path == database;
  parts_.clear();
  for (std::string& part : PartsOf(path)) {
    parts_.emplace_back(std::move(part));
  }
}

Status ConfigPath::Place(const std::string& a, const std::string& b) {
  if (a[0] != '/') {
    return Status::InvalidArgument("\"" + text_ + "\" is not an absolute path");
  }
  if (HasParentPart(a)) {
    return Status::InvalidArgument(
        "a path has a part \"..\". Write the path without it: it could take "
        "the name of the database away");
  }
  if (Clean(a) == kDatabaseA && Clean(b) == kDatabaseB) {
    text_ = is_of_one_database() ? text_ : kDirectory;
    is_directory_ = true;
    return Status::OK();
  }
  const std::string name_a = NameOf(kDatabaseA);
  const std::vector<std::string> parts_a = PartsOf(Clean(a));
  const std::vector<std::string> parts_b = PartsOf(Clean(b));
  bool has_name = false;
  for (size_t i = 0; i < std::min(parts_a.size(), parts_b.size()); ++i) {
    if (parts_a[i] == parts_b[i]) {
      parts_.emplace_back(parts_a[i]);
      continue;
    }
    if (parts_a[i].find(name_a) == std::string::npos) {
      return Status::InvalidArgument(
          std::string("there is other text beside ") + kDirectory +
          ", which stands for a whole path: the directory of the database");
    }
    if (parts_a[i] != name_a && !is_of_one_database()) {
      return Status::InvalidArgument(
          "\"" + text_ + "\" has other text beside " + kName +
          ". Make it a directory of its own, as in /nvme/" + kName +
          ": otherwise the path of one database could be that of another one "
          "with a longer name");
    }
    has_name = true;
    parts_.emplace_back(std::nullopt);
  }
  return has_name || is_of_one_database()
             ? Status::OK()
             : Status::InvalidArgument(
                   "\"" + text_ +
                   "\" would be a path of each database that matches \"" +
                   databases_.text() +
                   "\". They would delete each other's files. Put " + kName +
                   " into the path, which stands for the name of the "
                   "database, or write " +
                   kDirectory + ", which is its directory");
}

bool ConfigPath::IsFor(const std::string& database) const {
  if (is_of_one_database()) {
    return database == *owner_;
  }
  bool matches = false;
  // A pattern that cannot be compared may match.
  return !databases_.Match(database, &matches).ok() || matches;
}

bool ConfigPath::FindDatabase(const std::string& name,
                              std::string* database) const {
  if (is_of_one_database()) {
    *database = *owner_;
    return true;
  }
  return DatabaseOf(name, database) && IsFor(*database);
}

bool ConfigPath::CollidesWith(const ConfigPath& other, std::string* database,
                              std::string* other_database) const {
  if (is_directory_ || other.is_directory_ ||
      parts_.size() != other.parts_.size()) {
    return false;
  }
  std::string name = is_of_one_database() ? NameOf(*owner_) : "";
  std::string other_name =
      other.is_of_one_database() ? NameOf(*other.owner_) : "";
  for (size_t i = 0; i < parts_.size(); ++i) {
    const std::optional<std::string>& part = parts_[i];
    const std::optional<std::string>& other_part = other.parts_[i];
    if (!part.has_value() && !other_part.has_value()) {
      return false;  // One name is that of one database.
    }
    const bool can_be_equal = !part.has_value() ? Bind(*other_part, &name)
                              : !other_part.has_value()
                                  ? Bind(*part, &other_name)
                                  : *part == *other_part;
    if (!can_be_equal) {
      return false;
    }
  }
  return name != other_name && FindDatabase(name, database) &&
         other.FindDatabase(other_name, other_database);
}

}  // namespace ROCKSDB_NAMESPACE
