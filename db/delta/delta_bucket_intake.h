//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "db/delta/delta_bucket_table.h"
#include "rocksdb/comparator.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DeltaStore;
class DeltaVersion;

// How many bytes of each merged file lie in which bucket (a slice): what
// DeltaPicker weighs against what the buckets have already. Bytes are those of
// keys and operands before compression, as those of extents. An estimate, as
// coarse as blocks, from indexes, which are in memory.
//
// A store may have some 10,000 buckets and ten files, so what is known of old
// ones is taken over when the files or the buckets change.
//
// Immutable, so all threads may read it.
class DeltaBucketIntake {
 public:
  struct File {
    uint64_t number = 0;
    uint64_t last_epoch = 0;
    // How much of the file comes before each bucket, in order, and before the
    // end of the last.
    std::vector<uint64_t> offsets;
  };

  // Of the buckets and the merged files of the version. old may be nullptr.
  // REQUIRES: a Version that has `version` is pinned; DB mutex not held.
  static Status Estimate(const DeltaVersion& version, const DeltaStore& store,
                         const ReadOptions& read_options,
                         const DeltaBucketIntake* old,
                         std::shared_ptr<const DeltaBucketIntake>* result);

  DeltaBucketIntake() = default;
  // REQUIRES: offsets of all buckets, and the end.
  DeltaBucketIntake(DeltaBucketTable buckets, std::vector<File> files)
      : buckets_(std::move(buckets)), files_(std::move(files)) {}

  const std::vector<File>& files() const { return files_; }

  // What the bucket, given by its place in the order of all, has in the files
  // that it sees: those whose last epoch is above its floor.
  uint64_t SizeOf(size_t bucket, uint64_t floor) const {
    uint64_t size = 0;
    for (const File& file : files_) {
      if (file.last_epoch > floor) {
        size += file.offsets[bucket + 1] - file.offsets[bucket];
      }
    }
    return size;
  }

  size_t ApproximateMemoryUsage() const;

 private:
  // Whose offsets the files have.
  DeltaBucketTable buckets_;
  std::vector<File> files_;
};

}  // namespace ROCKSDB_NAMESPACE
