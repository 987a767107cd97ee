//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileMetaData;

// The blob files whose values a compaction has to move because they are on
// another path than the one to which the compaction writes values.
//
// Neighboring entries mostly refer to the same blob file, so the last answer is
// cached. Not thread-safe: every subcompaction has its own object.
class BlobRelocation {
 public:
  using BlobFiles = std::vector<std::shared_ptr<BlobFileMetaData>>;

  // No values have to be moved.
  BlobRelocation() = default;

  // The values of blob files that are not on path `path_id` have to be moved.
  // Hot values count as being on their home path.
  // blob_files: the blob files of the input Version, sorted by number.
  BlobRelocation(const BlobFiles& blob_files, uint32_t path_id);

  bool IsEmpty() const { return numbers_.empty(); }

  // The path to which values are moved.
  // REQUIRES: !IsEmpty().
  uint32_t path_id() const { return path_id_; }

  // Returns true if the values of the blob file have to be moved.
  bool ShouldRelocate(uint64_t blob_file_number) {
    if (blob_file_number != last_number_) {
      LookUp(blob_file_number);
    }
    return last_answer_;
  }

 private:
  void LookUp(uint64_t blob_file_number);

  uint32_t path_id_ = 0;
  std::vector<uint64_t> numbers_;  // sorted
  uint64_t last_number_ = 0;       // not a valid file number
  bool last_answer_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
