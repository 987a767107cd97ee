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

class DeltaDamage;
class DeltaStore;
class DeltaVersion;

// Estimates how many bytes of each merged file belong to each bucket (a slice).
// DeltaPicker compares them with the size of the bucket's extent. As for
// extents, bytes are those of keys and operands before compression. The
// estimate has the granularity of blocks and is computed from indexes, which
// are in memory.
//
// A store may have some 10,000 buckets and ten files, so results for old files
// and buckets are reused when either changes.
//
// A file that cannot be opened because of Corruption does not fail the
// estimate, which is for other buckets, too. It is tried again each time.
//
// Immutable, so any thread may read it.
class DeltaBucketIntake {
 public:
  struct File {
    File() = default;
    File(const File&) = default;
    File& operator=(const File&) = default;
    File(File&&) = default;
    File& operator=(File&&) = default;
    ~File() { error.PermitUncheckedError(); }

    uint64_t number = 0;
    uint64_t last_epoch = 0;
    // Bytes of the file before each bucket, in order, and before the end of the
    // last bucket.
    std::vector<uint64_t> offsets;
    // OK, or the Corruption because of which the file cannot be opened. (This
    // is not noticed if the whole file is in one bucket.)
    Status error;
    // The buckets that its key range overlaps, both included, by their order.
    size_t first_bucket = 0;
    size_t last_bucket = 0;
  };

  // Computes the estimate for the buckets and the merged files of the version.
  // old: an earlier estimate to reuse; may be nullptr.
  // REQUIRES: a Version that has `version` is pinned; DB mutex not held.
  static Status Estimate(const DeltaVersion& version, const DeltaStore& store,
                         const ReadOptions& read_options,
                         const DeltaBucketIntake* old,
                         std::shared_ptr<const DeltaBucketIntake>* result);

  DeltaBucketIntake() = default;
  // REQUIRES: each file has offsets of all buckets and of the end.
  DeltaBucketIntake(DeltaBucketTable buckets, std::vector<File> files)
      : buckets_(std::move(buckets)), files_(std::move(files)) {}

  const std::vector<File>& files() const { return files_; }

  // Returns the bytes of the bucket in the files that it sees, i.e. those whose
  // last epoch is above its floor.
  // bucket: position of the bucket in the order of all buckets.
  uint64_t SizeOf(size_t bucket, uint64_t floor) const {
    uint64_t size = 0;
    for (const File& file : files_) {
      if (file.last_epoch > floor) {
        size += file.offsets[bucket + 1] - file.offsets[bucket];
      }
    }
    return size;
  }

  // Adds the buckets that have still to take in a file that cannot be opened,
  // so that it need not fail a job for each of them. Returns false if damage
  // knows all of them.
  bool AddUnreadableTo(DeltaDamage* damage, const Comparator* ucmp) const;

  size_t ApproximateMemoryUsage() const;

 private:
  // The buckets to which File::offsets refer.
  DeltaBucketTable buckets_;
  std::vector<File> files_;
};

}  // namespace ROCKSDB_NAMESPACE
