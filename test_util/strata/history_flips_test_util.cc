//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_flips_test_util.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "file/filename.h"
#include "rocksdb/env.h"
#include "test_util/strata/history_leaks_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool IsFlipped(FileType type) {
  switch (type) {
    case kTableFile:
    case kBlobFile:
    case kDeltaFile:
    case kTempFile:
    case kDescriptorFile:
    case kCurrentFile:
    case kOptionsFile:
    case kWalFile:
    case kIdentityFile:
    case kWalBufferFile:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string HistoryFlip::ToString(const std::string& root) const {
  return path.substr(std::min(path.size(), root.size() + 1)) + ":" +
         std::to_string(offset);
}

Status HistoryFlips::List(HistoryDb& db, std::vector<HistoryFlip>* flips) {
  flips->clear();
  std::vector<std::pair<FileType, std::string>> files;
  for (const std::string& directory : HistoryLeaks::Directories(db)) {
    std::vector<std::string> children;
    const Status s = Env::Default()->GetChildren(directory, &children);
    if (s.IsNotFound()) {
      continue;
    }
    if (!s.ok()) {
      return s;
    }
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kInfoLogFile;
      if (ParseFileName(child, &number, &type) && IsFlipped(type)) {
        files.emplace_back(type, directory + "/" + child);
      }
    }
  }
  std::sort(files.begin(), files.end());
  for (const auto& [type, path] : files) {
    uint64_t size = 0;
    const Status s = Env::Default()->GetFileSize(path, &size);
    if (!s.ok()) {
      return s;
    }
    const uint64_t stride = size <= kMaxBytes ? 1 : size / kMaxBytes + 1;
    for (uint64_t offset = 0; offset < size; offset += stride) {
      flips->push_back({path, type, offset});
    }
  }
  return Status::OK();
}

Status HistoryFlips::Apply(const HistoryFlip& flip) {
  const int fd = open(flip.path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return Status::IOError("cannot open", flip.path);
  }
  const off_t offset = static_cast<off_t>(flip.offset);
  unsigned char byte = 0;
  bool is_done = pread(fd, &byte, 1, offset) == 1;
  byte = static_cast<unsigned char>(byte ^ (1u << (flip.offset % 8)));
  is_done = is_done && pwrite(fd, &byte, 1, offset) == 1;
  close(fd);
  return is_done ? Status::OK() : Status::IOError("cannot change", flip.path);
}

}  // namespace ROCKSDB_NAMESPACE
