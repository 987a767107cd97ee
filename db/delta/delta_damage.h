//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The buckets of which collections have failed to read something because of
// Corruption. Without this memory such a collection would be the best one
// again, and fail again.
//
// If the collection took several buckets, all of them are suspect: they are
// collected one by one, so that the damaged one is found. A bucket whose own
// collection has failed is damaged, and is left alone.
//
// Invariant: the ranges ascend and have no bucket in common; damaged ranges do
// not touch each other.
//
// Not thread-safe.
//
// REQUIRES: all calls pass the same comparator.
class DeltaDamage {
 public:
  using KeyRange = DeltaEdit::KeyRange;

  enum class State : uint8_t { kSound, kSuspect, kDamaged };

  struct Range {
    KeyRange range;
    State state = State::kSuspect;  // never kSound

    bool operator==(const Range&) const = default;
  };

  DeltaDamage() = default;
  DeltaDamage(const DeltaDamage&) = default;
  DeltaDamage& operator=(const DeltaDamage&) = default;
  ~DeltaDamage() { error_.PermitUncheckedError(); }

  // To be called when a collection of these buckets has failed. The range
  // replaces parts of others. A single bucket is damaged, and ends the
  // suspicion of the whole ranges that it is in.
  // num_buckets: the number of buckets of the range, at least 1.
  // error: the Corruption.
  void Add(const KeyRange& range, size_t num_buckets, const Status& error,
           const Comparator* ucmp);
  // To be called when a collection of these buckets has succeeded.
  void Remove(const KeyRange& range, const Comparator* ucmp);
  void Clear();

  // Returns the worst state in the range.
  State StateOf(const KeyRange& range, const Comparator* ucmp) const;
  bool HasDamaged() const { return num_damaged_ > 0; }
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }
  // Returns the first error since there was none; OK if empty().
  const Status& error() const { return error_; }

 private:
  // Returns the indexes [first, last) of the ranges that overlap this one.
  std::pair<size_t, size_t> Overlapped(const KeyRange& range,
                                       const Comparator* ucmp) const;
  // Removes the range from the others. Returns the index at which it can be
  // inserted.
  size_t Cut(const KeyRange& range, const Comparator* ucmp);
  // Joins the damaged ranges at index - 1 and index if they touch.
  void JoinBefore(size_t index, const Comparator* ucmp);

  std::vector<Range> ranges_;
  // The number of damaged ranges.
  size_t num_damaged_ = 0;
  Status error_;
};

}  // namespace ROCKSDB_NAMESPACE
