//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Maps each blob file of a column family to the cf_path on which it lies. A
// blob reference names a file by number alone, and its reader cannot always ask
// a Version: blob direct write reads files that are not in any Version yet.
//
// Files on path 0 are not stored, so that there is no cost for a database whose
// blob files are all on that path.
//
// Registrations are counted: a file is known until each Register() is matched
// by an Unregister(). The direct-write manager and the metadata object of a
// Version own the same file for overlapping times, and a Version that recovery
// tries and drops must not remove the file of the other owner.
//
// Thread-safe.
class BlobFilePathRegistry {
 public:
  BlobFilePathRegistry() = default;
  BlobFilePathRegistry(const BlobFilePathRegistry&) = delete;
  BlobFilePathRegistry& operator=(const BlobFilePathRegistry&) = delete;

  // To be called before any reader can find the file's number.
  void Register(uint64_t blob_file_number, uint32_t path_id);

  // No effect on a file that is not known, i.e. one on path 0.
  void Unregister(uint64_t blob_file_number);

  // Returns the path id of the file; 0 if the file is not known.
  uint32_t PathId(uint64_t blob_file_number) const;

  // Number of known files.
  size_t size() const { return size_.load(std::memory_order_acquire); }
  // Returns true if a file has been added since the open, also if it is gone.
  bool has_known_files() const {
    return has_known_files_.load(std::memory_order_acquire);
  }

 private:
  struct Entry {
    uint32_t path_id = 0;
    uint32_t users = 0;
  };

  mutable port::Mutex mutex_;
  std::unordered_map<uint64_t, Entry> entries_;
  // entries_.size(), readable without mutex_.
  std::atomic<size_t> size_{0};
  std::atomic<bool> has_known_files_{false};
};

}  // namespace ROCKSDB_NAMESPACE
