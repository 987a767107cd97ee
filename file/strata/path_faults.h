//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The directories in which jobs of databases have failed as they do if a device
// is lost or has become read-only. Each SstFileManager has one object, so
// databases that share it know of each other's faults.
//
// Invariants:
// 1. A directory has a fault as long as one owner has added it and not removed
//    it: owners do not end each other's faults.
// 2. Without any fault, Has() is one load of an atomic variable.
//
// Directories are clean names, see CleanDirectoryName().
//
// Thread-safe.
class PathFaults {
 public:
  PathFaults() = default;
  PathFaults(const PathFaults&) = delete;
  PathFaults& operator=(const PathFaults&) = delete;

  // Adds a directory in which a job of the owner, a database, has failed.
  // Returns false if the owner has added it already.
  bool Add(const void* owner, const std::string& directory);
  // Returns false if the owner has not added it, or has removed it.
  bool Remove(const void* owner, const std::string& directory);
  // Removes all directories of the owner, which is closed, and forgets it.
  void RemoveAll(const void* owner);

  // Returns the directories that the owner has added.
  std::vector<std::string> Of(const void* owner) const;
  // Returns true if the owner has added a directory, removed meanwhile or not.
  bool HasHad(const void* owner) const;
  // Returns how often Remove() of the owner has returned true. A caller that
  // compares two results misses no directory that works again, also if others
  // have failed meanwhile.
  uint64_t NumRemoved(const void* owner) const;
  // Returns true if there is a directory with a fault.
  bool HasAny() const { return size_.load(std::memory_order_relaxed) > 0; }
  // Returns true if an owner has added the directory.
  bool Has(const std::string& directory) const;

 private:
  mutable port::Mutex mutex_;
  // Owner and directory. Guarded by mutex_.
  std::set<std::pair<const void*, std::string>> faults_;
  // NumRemoved() of each owner that has added a directory. Guarded by mutex_.
  std::map<const void*, uint64_t> num_removed_;
  // The size of faults_. Written with mutex_ held.
  std::atomic<size_t> size_{0};
};

}  // namespace ROCKSDB_NAMESPACE
