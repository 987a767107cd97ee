//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "db/delta/delta_bucket_table.h"
#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_table_factory.h"
#include "db/delta/delta_version.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// Tells whether delta files may have operands of a key. Asked for every base
// (value or tombstone) that a flush writes, so it uses only data in memory:
// ranges of keys, floors of buckets and filters.
//
// Invariant: the answer is false only if there are no operands. It may be true
// because of a filter's false positive or because a file cannot be opened,
// whose error is reported by the readers of operands. The cost is an
// unnecessary anchor.
//
// Not thread-safe.
class DeltaKeyFilter {
 public:
  // version: nullptr if there are no delta files.
  // earlier: readers of operand files that are in no Version yet; not nullptr.
  // REQUIRES: store, and a Version that has `version`, outlive this object.
  DeltaKeyFilter(const DeltaStore* store, const DeltaVersion* version,
                 std::vector<std::shared_ptr<DeltaFileReader>> earlier,
                 const ReadOptions& read_options);

  // Returns false only if there are no operands of the key. Keys may come in
  // any order; ascending order is fastest.
  // REQUIRES: DB mutex not held
  bool MayHoldOperand(const Slice& user_key);

  // Returns false only if there are no operands of keys in [start, end], both
  // ends included. Uses neither I/O nor filters.
  bool OverlapsRange(const Slice& start, const Slice& end) const;

 private:
  // Sets bucket_, recent_ and extent_ to those of the key's bucket.
  void EnterBucketOf(const Slice& user_key);
  bool IsInRange(const DeltaFileDescription& file, const Slice& user_key) const;
  bool MayHave(const DeltaFileMeta& file, const Slice& user_key);

  const DeltaStore* const store_;
  const DeltaVersion* const version_;
  const std::shared_ptr<const DeltaTableSettings> settings_;
  const Comparator* const ucmp_;
  const std::vector<std::shared_ptr<DeltaFileReader>> earlier_;
  const ReadOptions read_options_;

  // The last key's bucket, if has_bucket_.
  DeltaBucketTable::Position bucket_;
  bool has_bucket_ = false;
  DeltaVersion::Files recent_{nullptr, nullptr};  // seen by the bucket
  const DeltaFileMeta* extent_ = nullptr;         // of the bucket

  // Numbers of files that could not be opened; each is tried only once.
  std::unordered_set<uint64_t> unreadable_;
};

}  // namespace ROCKSDB_NAMESPACE
