//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/open_paths.h"

#include <algorithm>
#include <cassert>

#include "db/path_layout/directory_names.h"
#include "file/filename.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Maximum number of column families that an error names for a directory.
constexpr size_t kMaxNamedUsers = 3;

// Returns s with an addition to its message. A status may have no message.
Status WithAddition(const Status& s, const std::string& addition) {
  const char* const message = s.getState();
  return Status(
      s.code(), s.subcode(), s.severity(),
      message == nullptr ? addition : std::string(message) + " " + addition);
}

// Returns true if the text has the name of the directory, or the name of an
// SST, blob or delta file in it, at the position.
bool NamesPathAt(const std::string& text, size_t position,
                 const std::string& directory) {
  size_t end = position + directory.size();
  if (end == text.size() || text[end] != '/') {
    // Not the beginning of a longer name.
    return end == text.size() || text.find_first_of(":;,' )`", end) == end;
  }
  end = text.find_first_not_of('/', end);
  if (end == std::string::npos) {
    return true;
  }
  const size_t length =
      std::min(text.find_first_of(":;,' )`", end), text.size()) - end;
  if (length == 0) {
    return true;
  }
  uint64_t number = 0;
  FileType type = kTempFile;
  return ParseFileName(text.substr(end, length), &number, &type) &&
         (type == kTableFile || type == kBlobFile || type == kDeltaFile);
}

bool NamesPath(const std::string& text, const std::string& directory) {
  for (size_t i = text.find(directory); i != std::string::npos;
       i = text.find(directory, i + 1)) {
    const bool is_begin = i == 0 || text.find_last_of(" `'(", i - 1) == i - 1;
    if (is_begin && NamesPathAt(text, i, directory)) {
      return true;
    }
  }
  return false;
}

// The name as messages have it, without slashes at the end. File names begin
// with the spelling in the options.
std::string WithoutSlashes(std::string name) {
  while (name.size() > 1 && name.back() == '/') {
    name.pop_back();
  }
  return name;
}

}  // namespace

OpenPaths::OpenPaths(const std::vector<DbPath>& db_paths)
    : db_paths_(db_paths) {
  Add(/*family=*/"", db_paths_);
}

OpenPaths::OpenPaths(const std::vector<DbPath>& db_paths,
                     const std::vector<ColumnFamilyDescriptor>& families)
    : OpenPaths(db_paths) {
  for (const ColumnFamilyDescriptor& family : families) {
    AddFamily(family.name, family.options.cf_paths);
  }
}

void OpenPaths::AddFamily(const std::string& name,
                          const std::vector<DbPath>& cf_paths) {
  Add(name, cf_paths.empty() ? db_paths_ : cf_paths);
}

void OpenPaths::Add(const std::string& family,
                    const std::vector<DbPath>& paths) {
  for (uint32_t i = 0; i < paths.size(); ++i) {
    const auto [it, is_new] = index_.emplace(
        CleanDirectoryName(/*fs=*/nullptr, paths[i].path), directories_.size());
    if (is_new) {
      directories_.push_back({paths[i].path, /*users=*/{}});
    }
    directories_[it->second].users.push_back({i, family});
  }
}

std::string OpenPaths::UsersOf(const Directory& directory) const {
  std::string result;
  size_t n = 0;
  for (const User& user : directory.users) {
    if (!user.family.empty() && ++n <= kMaxNamedUsers) {
      result += (n == 1 ? "path id " : ", path id ") +
                std::to_string(user.path_id) + " of column family " +
                user.family;
    }
  }
  if (n == 0) {
    // All families have paths of their own.
    result = "path id " + std::to_string(directory.users[0].path_id) +
             " of db_paths";
  } else if (n > kMaxNamedUsers) {
    result += " and of " + std::to_string(n - kMaxNamedUsers) + " more";
  }
  return result;
}

std::vector<std::string> OpenPaths::Names() const {
  std::vector<std::string> names;
  for (const Directory& directory : directories_) {
    names.push_back(directory.name);
  }
  return names;
}

Status OpenPaths::Create(FileSystem* fs) const {
  for (const Directory& directory : directories_) {
    const IOStatus s =
        fs->CreateDirIfMissing(directory.name, IOOptions(), /*dbg=*/nullptr);
    if (!s.ok()) {
      return AddPathTo(s, directory.name, "cannot be created");
    }
  }
  return Status::OK();
}

Status OpenPaths::AddPathTo(const Status& s) const {
  assert(!s.ok());
  if (!AreSeveral() || s.getState() == nullptr ||
      (!s.IsIOError() && !s.IsCorruption())) {
    return s;
  }
  const std::string text = s.getState();
  for (const char* known : {"path id ", "Path id "}) {
    if (text.find(known) != std::string::npos) {
      return s;
    }
  }
  const Directory* found = nullptr;
  size_t length = 0;
  for (const auto& [clean_name, i] : index_) {
    // A path may be inside another one.
    if (clean_name.size() > length &&
        (NamesPath(text, WithoutSlashes(directories_[i].name)) ||
         NamesPath(text, clean_name))) {
      found = &directories_[i];
      length = clean_name.size();
    }
  }
  return found == nullptr ? s
                          : WithAddition(s, "(" + found->name + " is " +
                                                UsersOf(*found) + ")");
}

Status OpenPaths::AddPathTo(const Status& s, const std::string& directory,
                            const std::string& what) const {
  assert(!s.ok());
  const auto it = index_.find(CleanDirectoryName(/*fs=*/nullptr, directory));
  if (it == index_.end() || !AreSeveral()) {
    return s;
  }
  const Directory& found = directories_[it->second];
  const std::string addition =
      "(" + UsersOf(found) + ": the directory " + found.name + " " + what + ")";
  // Some file systems return NotFound, without a message, for a directory that
  // may not be read.
  return s.IsNotFound() ? Status::IOError(addition) : WithAddition(s, addition);
}

}  // namespace ROCKSDB_NAMESPACE
