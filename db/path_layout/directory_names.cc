//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/directory_names.h"

#include <algorithm>
#include <set>
#include <vector>

#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool IsInside(const std::string& inner, const std::string& outer) {
  if (outer.back() == '/') {
    return inner.compare(0, outer.size(), outer) == 0;
  }
  return inner.size() > outer.size() && inner[outer.size()] == '/' &&
         inner.compare(0, outer.size(), outer) == 0;
}

}  // namespace

std::string CleanDirectoryName(FileSystem* fs, const std::string& directory) {
  std::string name = directory;
  if (fs != nullptr && (name.empty() || name[0] != '/')) {
    // Some file systems return the current directory, whatever the name is.
    std::string here;
    const IOStatus s = fs->GetAbsolutePath(".", IOOptions(), &here, nullptr);
    if (s.ok()) {
      name = here + "/" + name;
    }
  }
  const bool is_absolute = !name.empty() && name[0] == '/';
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin < name.size()) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (part == ".." && is_absolute) {
      // The root directory is its own parent.
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    begin = end + 1;
  }
  std::string result = is_absolute ? "/" : "";
  for (size_t i = 0; i < parts.size(); ++i) {
    result += (i == 0 ? "" : "/") + parts[i];
  }
  return result.empty() ? "." : result;
}

bool IsSameDirectory(FileSystem* fs, const std::string& a,
                     const std::string& b) {
  if (CleanDirectoryName(fs, a) == CleanDirectoryName(fs, b)) {
    return true;
  }
  bool is_same = false;
  return fs->AreFilesSame(a, b, IOOptions(), &is_same, nullptr).ok() && is_same;
}

bool DirectoriesOverlap(const std::string& a, const std::string& b) {
  return a == b || IsInside(a, b) || IsInside(b, a);
}

std::vector<std::string> DirectoriesNotAmong(
    FileSystem* fs, const std::vector<std::string>& directories,
    const std::vector<std::string>& others) {
  std::set<std::string> known;
  for (const std::string& directory : others) {
    known.insert(CleanDirectoryName(fs, directory));
  }
  std::vector<std::string> result;
  for (const std::string& directory : directories) {
    if (known.insert(CleanDirectoryName(fs, directory)).second) {
      result.push_back(directory);
    }
  }
  return result;
}

std::string ParentDirectory(const std::string& name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : name.substr(0, slash);
}

}  // namespace ROCKSDB_NAMESPACE
