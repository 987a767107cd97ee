//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/open_paths.h"

#include <algorithm>
#include <cassert>

#include "db/path_layout/directory_names.h"
#include "file/filename.h"
#include "rocksdb/file_system.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Maximum number of column families that an error names for a directory.
constexpr size_t kMaxNamedUsers = 3;

// Returns s with an addition to its message.
Status WithAddition(const Status& s, const std::string& addition) {
  const std::string message = MessageOf(s);
  return WithMessage(s, message.empty() ? addition : message + " " + addition);
}

// Returns true if the text has the name of the directory, or the name of a file
// in it, at the position.
bool NamesPathAt(const std::string& text, size_t position,
                 const std::string& directory, OpenPaths::Files files) {
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
  if (files == OpenPaths::Files::kAll) {
    return text.find('/', end) >= end + length;
  }
  return IsFileOfPath(text.substr(end, length));
}

bool NamesPath(const std::string& text, const std::string& directory,
               OpenPaths::Files files) {
  for (size_t i = text.find(directory); i != std::string::npos;
       i = text.find(directory, i + 1)) {
    const bool is_begin = i == 0 || text.find_last_of(" `'(", i - 1) == i - 1;
    if (is_begin && NamesPathAt(text, i, directory, files)) {
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
      directories_.push_back({paths[i].path, /*users=*/{}, /*what=*/""});
    }
    directories_[it->second].users.push_back({i, family});
  }
}

void OpenPaths::AddOther(const std::string& directory,
                         const std::string& what) {
  const auto [it, is_new] = index_.emplace(
      CleanDirectoryName(/*fs=*/nullptr, directory), directories_.size());
  if (is_new) {
    directories_.push_back({directory, /*users=*/{}, /*what=*/""});
  }
  std::string& described = directories_[it->second].what;
  if (described.empty()) {
    described = what;
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
  if (n == 0 && !directory.what.empty()) {
    result = directory.what;
  } else if (n == 0) {
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

std::map<std::string, size_t>::const_iterator OpenPaths::Find(
    const Status& s, Files files) const {
  auto found = index_.end();
  if (s.getState() == nullptr) {
    return found;
  }
  const std::string text = s.getState();
  for (auto it = index_.begin(); it != index_.end(); ++it) {
    // A path may be inside another one.
    if ((found == index_.end() || it->first.size() > found->first.size()) &&
        (NamesPath(text, WithoutSlashes(directories_[it->second].name),
                   files) ||
         NamesPath(text, it->first, files))) {
      found = it;
    }
  }
  return found;
}

std::string OpenPaths::DirectoryIn(const Status& s, Files files) const {
  const auto found = Find(s, files);
  return found == index_.end() ? "" : found->first;
}

Status OpenPaths::AddPathTo(const Status& s, Files files) const {
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
  const auto it = Find(s, files);
  if (it == index_.end()) {
    return s;
  }
  const Directory& found = directories_[it->second];
  const std::string addition = "(" + found.name + " is " + UsersOf(found) + ")";
  return text.find(addition) == std::string::npos ? WithAddition(s, addition)
                                                  : s;
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

bool IsFileOfPath(const std::string& name) {
  uint64_t number = 0;
  FileType type = kTempFile;
  return ParseFileName(name, &number, &type) &&
         (type == kTableFile || type == kBlobFile || type == kDeltaFile);
}

}  // namespace ROCKSDB_NAMESPACE
