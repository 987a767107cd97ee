//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/path_faults.h"

#include <algorithm>

#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

bool PathFaults::Add(const void* owner, const std::string& directory) {
  MutexLock lock(&mutex_);
  const bool is_new = faults_.emplace(owner, directory).second;
  num_removed_.emplace(owner, 0);
  size_.store(faults_.size(), std::memory_order_relaxed);
  return is_new;
}

bool PathFaults::Remove(const void* owner, const std::string& directory) {
  MutexLock lock(&mutex_);
  const bool was_there = faults_.erase({owner, directory}) > 0;
  if (was_there) {
    ++num_removed_[owner];
  }
  size_.store(faults_.size(), std::memory_order_relaxed);
  return was_there;
}

void PathFaults::RemoveAll(const void* owner) {
  MutexLock lock(&mutex_);
  std::erase_if(faults_,
                [owner](const auto& fault) { return fault.first == owner; });
  num_removed_.erase(owner);
  size_.store(faults_.size(), std::memory_order_relaxed);
}

std::vector<std::string> PathFaults::Of(const void* owner) const {
  std::vector<std::string> directories;
  MutexLock lock(&mutex_);
  for (const auto& [of, directory] : faults_) {
    if (of == owner) {
      directories.push_back(directory);
    }
  }
  return directories;
}

bool PathFaults::HasHad(const void* owner) const {
  MutexLock lock(&mutex_);
  return num_removed_.count(owner) > 0;
}

uint64_t PathFaults::NumRemoved(const void* owner) const {
  MutexLock lock(&mutex_);
  const auto it = num_removed_.find(owner);
  return it == num_removed_.end() ? 0 : it->second;
}

bool PathFaults::Has(const std::string& directory) const {
  if (!HasAny()) {
    return false;
  }
  MutexLock lock(&mutex_);
  return std::any_of(
      faults_.begin(), faults_.end(),
      [&directory](const auto& fault) { return fault.second == directory; });
}

}  // namespace ROCKSDB_NAMESPACE
