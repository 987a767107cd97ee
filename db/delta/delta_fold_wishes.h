//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/delta/delta_edit.h"
#include "port/port.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// A set of keys whose operands are to be merged into values (folded), however
// few they are: a compaction filter would not have kept the value below them,
// and may decide only about a value that includes all its operands
// (DeltaHoldingFilter).
//
// The set stores up to kMaxKeys keys of up to kMaxKeyBytes bytes in all, or one
// key of any size. The range that includes all keys replaces a larger set.
//
// Not thread-safe.
//
// REQUIRES: all calls pass the same comparator.
class DeltaFoldWishes {
 public:
  using KeyRange = DeltaEdit::KeyRange;

  static constexpr size_t kMaxKeys = 4096;
  static constexpr size_t kMaxKeyBytes = size_t{4} << 20;

  bool empty() const { return keys_.empty() && ranges_.empty(); }

  void Add(const Slice& user_key, const Comparator* ucmp);
  void AddRange(const KeyRange& range);
  void AddAll() { AddRange(KeyRange()); }
  void AddAllOf(const DeltaFoldWishes& other, const Comparator* ucmp);

  bool Contains(const Slice& user_key, const Comparator* ucmp) const;
  // Returns true if a key of the set may be in the range.
  bool Overlaps(const KeyRange& range, const Comparator* ucmp) const;
  // Removes the keys of the range, which were folded.
  void Remove(const KeyRange& range, const Comparator* ucmp);

 private:
  void Shrink(const Comparator* ucmp);

  // Sorted and unique.
  std::vector<std::string> keys_;
  size_t key_bytes_ = 0;  // summed size of keys_
  // In any order; may overlap.
  std::vector<KeyRange> ranges_;
};

// Collects the wishes of compaction filters until a job is scheduled.
class DeltaHolds {
 public:
  void Add(const DeltaFoldWishes& wishes, const Comparator* ucmp);
  // Returns all wishes and removes them.
  DeltaFoldWishes Take();

 private:
  port::Mutex mutex_;
  DeltaFoldWishes wishes_;  // guarded by mutex_
};

}  // namespace ROCKSDB_NAMESPACE
