//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileMetaData;

// The blob files whose values a compaction has to move, because they lie on
// another path than the one where it writes values.
//
// Neighbouring entries mostly refer to the same blob file, so the last answer
// is kept. Not thread-safe: every subcompaction has its own.
class BlobRelocation {
 public:
  using BlobFiles = std::vector<std::shared_ptr<BlobFileMetaData>>;

  // Nothing has to move.
  BlobRelocation() = default;

  // Moves the values of those of `blob_files`, which are the input Version's
  // (sorted by number), that are not on `path_id`.
  BlobRelocation(const BlobFiles& blob_files, uint32_t path_id);

  bool IsEmpty() const { return numbers_.empty(); }

  // Where values belong.
  // REQUIRES: !IsEmpty().
  uint32_t path_id() const { return path_id_; }

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
