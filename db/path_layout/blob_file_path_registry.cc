//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/blob_file_path_registry.h"

#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

void BlobFilePathRegistry::Register(uint64_t blob_file_number,
                                    uint32_t path_id) {
  if (path_id == 0) {
    return;
  }
  MutexLock lock(&mutex_);
  Entry& entry = entries_[blob_file_number];
  entry.path_id = path_id;
  ++entry.users;
  size_.store(entries_.size(), std::memory_order_release);
  has_known_files_.store(true, std::memory_order_release);
}

void BlobFilePathRegistry::Unregister(uint64_t blob_file_number) {
  if (size() == 0) {
    return;
  }
  MutexLock lock(&mutex_);
  const auto it = entries_.find(blob_file_number);
  if (it != entries_.end() && --it->second.users == 0) {
    entries_.erase(it);
    size_.store(entries_.size(), std::memory_order_release);
  }
}

uint32_t BlobFilePathRegistry::PathId(uint64_t blob_file_number) const {
  if (size() == 0) {
    return 0;
  }
  MutexLock lock(&mutex_);
  const auto it = entries_.find(blob_file_number);
  return it != entries_.end() ? it->second.path_id : 0;
}

}  // namespace ROCKSDB_NAMESPACE
