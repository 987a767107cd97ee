//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFileMeta;
class DeltaStore;
class DeltaVersion;

// Estimates how many bytes of delta files the keys of a range take up, for
// DB::GetApproximateSizes(). Hidden operands and parts of files that no bucket
// names any more count, too: the estimate is about space on disk.
//
// A file whose keys are all in the range counts with its size. For others the
// index tells the positions of the bounds in the file, with the granularity of
// a block. If such a file cannot be opened, or has range anchors alone, a bound
// within the file is taken to be in its middle.
//
// Invariants, if no error margin is given, and indexes can be read:
// 1. The sizes of two adjacent ranges add up to that of their union.
// 2. The size of a range that has all keys is DeltaVersion::Totals::bytes.
//
// Thread-safe.
class DeltaRangeSize {
 public:
  // REQUIRES: all arguments outlive this object; a Version that has `version`
  // is pinned.
  DeltaRangeSize(const DeltaVersion& version, const DeltaStore& store,
                 const ReadOptions& read_options)
      : version_(version), store_(store), read_options_(read_options) {}

  // Returns the estimate for the keys from `start` on and before `limit`, in
  // bytes; 0 if there are none.
  // error_margin: SizeApproximationOptions::files_size_error_margin. If the
  //     files that the range cuts have less than this share of the others, they
  //     count with half of their size, and none of them is opened.
  // REQUIRES: DB mutex not held, as files may be opened.
  uint64_t Bytes(const Slice& start, const Slice& limit,
                 double error_margin) const;

 private:
  // Returns how many bytes of the file precede the key: 0 for its smallest key,
  // and its size for those that are above its largest one.
  uint64_t OffsetOf(const DeltaFileMeta& file, const Slice& user_key) const;

  const DeltaVersion& version_;
  const DeltaStore& store_;
  const ReadOptions& read_options_;
};

}  // namespace ROCKSDB_NAMESPACE
