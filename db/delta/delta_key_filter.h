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

// May there be operands of a key in delta files? Asked for every base (value or
// tombstone) that a flush writes, so it looks at ranges of keys, floors of
// buckets and filters, which are in memory, and at nothing else.
//
// Invariant: false only if there is none. A filter's false positive gives true,
// and so does a file that cannot be opened, whose error is for those who read
// operands to report. That costs an anchor too many.
//
// Not thread-safe.
class DeltaKeyFilter {
 public:
  // version: nullptr if there are no delta files. earlier: operand files that
  // no Version has yet; the readers are not null.
  // REQUIRES: store, and a Version that has `version`, outlive this.
  DeltaKeyFilter(const DeltaStore* store, const DeltaVersion* version,
                 std::vector<std::shared_ptr<DeltaFileReader>> earlier,
                 const ReadOptions& read_options);

  // Keys may come in any order. It is fastest if they ascend.
  // REQUIRES: DB mutex not held
  bool MayHoldOperand(const Slice& user_key);

  // May there be any of keys from start to end, both included? Without I/O, and
  // without filters.
  bool OverlapsRange(const Slice& start, const Slice& end) const;

 private:
  // Sets what depends on the bucket of the key.
  void EnterBucketOf(const Slice& user_key);
  bool IsInRange(const DeltaFileDescription& file, const Slice& user_key) const;
  bool MayHave(const DeltaFileMeta& file, const Slice& user_key);

  const DeltaStore* const store_;
  const DeltaVersion* const version_;
  const std::shared_ptr<const DeltaTableSettings> settings_;
  const Comparator* const ucmp_;
  const std::vector<std::shared_ptr<DeltaFileReader>> earlier_;
  const ReadOptions read_options_;

  // The last key's bucket. While there was none: the end.
  DeltaBucketTable::Position bucket_;
  bool has_bucket_ = false;
  DeltaVersion::Files recent_{nullptr, nullptr};  // that the bucket sees
  const DeltaFileMeta* extent_ = nullptr;         // of the bucket

  // Numbers of files that could not be opened: each is tried once.
  std::unordered_set<uint64_t> unreadable_;
};

}  // namespace ROCKSDB_NAMESPACE
