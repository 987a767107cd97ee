//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/space_needs.h"

#include <algorithm>

#include "db/path_layout/directory_names.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

struct NeededDevice {
  uint64_t written = 0;
  uint64_t reserve = 0;
  bool is_required = false;
  std::string directories;
};

}  // namespace

SpaceNeeds::Need& SpaceNeeds::Of(const std::string& directory) {
  return needs_[CleanDirectoryName(/*fs=*/nullptr, directory)];
}

void SpaceNeeds::Reserve(const std::string& directory, uint64_t bytes) {
  Need& need = Of(directory);
  need.reserve = std::max(need.reserve, bytes);
}

Status SpaceNeeds::Check(FileSystem* fs) const {
  std::map<uint64_t, NeededDevice> devices;  // by their free bytes
  for (const auto& [directory, need] : needs_) {
    uint64_t free = 0;
    const IOStatus s = fs->GetFreeSpace(directory, IOOptions(), &free,
                                        /*dbg=*/nullptr);
    if (!s.ok()) {
      if (need.is_required && !s.IsNotSupported()) {
        return s;
      }
      continue;
    }
    NeededDevice& device = devices[free];
    device.written += need.written;
    device.reserve = std::max(device.reserve, need.reserve);
    device.is_required = device.is_required || need.is_required;
    device.directories += (device.directories.empty() ? "" : ", ") + directory;
  }
  std::string shortages;
  for (const auto& [free, device] : devices) {
    const uint64_t needed = device.written + device.reserve;
    if (device.is_required && free < needed) {
      shortages += (shortages.empty() ? "" : "; ") + device.directories +
                   " has " + std::to_string(free) + " free bytes, needed are " +
                   std::to_string(needed);
    }
  }
  return shortages.empty() ? Status::OK() : Status::NoSpace(shortages);
}

bool SpaceNeeds::IsSupported(FileSystem* fs) const {
  return std::none_of(needs_.begin(), needs_.end(), [fs](const auto& entry) {
    uint64_t free = 0;
    return fs->GetFreeSpace(entry.first, IOOptions(), &free, /*dbg=*/nullptr)
        .IsNotSupported();
  });
}

}  // namespace ROCKSDB_NAMESPACE
