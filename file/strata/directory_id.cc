//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/directory_id.h"

#ifndef OS_WIN
#include <sys/stat.h>
#endif

#include <algorithm>
#include <cstdint>

#include "rocksdb/file_system.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// More than the id of any file system known takes up.
constexpr size_t kMaxIdSize = 128;

}  // namespace

std::string DirectoryIdOfFd(int fd) {
  std::string id;
#ifndef OS_WIN
  struct stat status;
  if (fstat(fd, &status) == 0) {
    PutVarint64(&id, static_cast<uint64_t>(status.st_dev));
    PutVarint64(&id, static_cast<uint64_t>(status.st_ino));
  }
#else
  (void)fd;
#endif
  return id;
}

size_t CopyDirectoryId(const std::string& from, char* id, size_t max_size) {
  if (from.size() > max_size) {
    return 0;
  }
  std::copy(from.begin(), from.end(), id);
  return from.size();
}

std::string DirectoryIdOf(const FSDirectory& directory) {
  char id[kMaxIdSize];
  return std::string(id, directory.GetUniqueId(id, sizeof(id)));
}

IOStatus CheckDirectoryId(const std::string& name, const std::string& opened,
                          const std::string& now) {
  if (opened.empty() || now.empty() || opened == now) {
    return IOStatus::OK();
  }
  return IOStatus::IOError(
      "While fsync: " + name,
      "The directory is not the one that the database has opened. Another file "
      "system was mounted there, or the directory was replaced. Close the "
      "database and open it again");
}

}  // namespace ROCKSDB_NAMESPACE
