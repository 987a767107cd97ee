//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "db/address_map/spill_file.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "util/hash_containers.h"

namespace ROCKSDB_NAMESPACE {

// Creates the spill files of a column family and has their numbers, so that a
// scan for obsolete files keeps them.
//
// Invariant: The number of a spill file is in the set from before the file
// exists until after it was deleted.
//
// Thread-safe.
class SpillFileNumbers {
 public:
  SpillFileNumbers() = default;
  SpillFileNumbers(const SpillFileNumbers&) = delete;
  SpillFileNumbers& operator=(const SpillFileNumbers&) = delete;

  // Creates a file in `directory` whose name has this number.
  // REQUIRES: this object outlives the file.
  Status Create(FileSystem* fs, const std::string& directory, uint64_t number,
                std::unique_ptr<SpillFile>* file);
  // Adds the numbers of all files to *numbers.
  void AddTo(UnorderedSet<uint64_t>* numbers) const;

 private:
  mutable std::mutex mutex_;
  std::set<uint64_t> numbers_;
};

}  // namespace ROCKSDB_NAMESPACE
