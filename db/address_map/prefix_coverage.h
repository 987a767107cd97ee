//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/slice_transform.h"

namespace ROCKSDB_NAMESPACE {

// Tracks an iterator over several sorted runs that uses prefix filters
// (ReadOptions::total_order_seek and auto_prefix_mode are false), and tells for
// which keys the iterator sees all entries.
//
// A seek excludes the files and memtables that have no entry with the prefix of
// its target. So the iterator sees all entries with this prefix, but of other
// keys it may see old entries and miss the entries that hide them. At a change
// of direction all runs are repositioned by a seek to the current key.
//
// Invariant: Covers(key) is false if entries that hide entries of the key may
// be excluded. It is always false after a seek whose target has no prefix, as
// there are memtables that find nothing then.
//
// Used by one thread at a time.
class PrefixCoverage {
 public:
  // REQUIRES: extractor outlives this object.
  explicit PrefixCoverage(const SliceTransform* extractor)
      : extractor_(extractor) {}

  // Called before the iterator seeks to user_key.
  void OnSeek(const Slice& user_key, bool forward) {
    forward_ = forward;
    Set(user_key);
  }
  // Called before the iterator moves to its first or last entry.
  void OnSeekToEnd(bool forward) {
    forward_ = forward;
    has_prefix_ = false;
  }
  // Called before the iterator makes a step from user_key.
  void OnStep(const Slice& user_key, bool forward) {
    if (forward != forward_) {
      forward_ = forward;
      Set(user_key);
    }
  }

  // Returns true if the iterator sees all entries of the key.
  bool Covers(const Slice& user_key) const {
    return has_prefix_ && extractor_->InDomain(user_key) &&
           extractor_->Transform(user_key) == Slice(prefix_);
  }

 private:
  void Set(const Slice& user_key) {
    has_prefix_ = extractor_->InDomain(user_key);
    if (has_prefix_) {
      const Slice prefix = extractor_->Transform(user_key);
      prefix_.assign(prefix.data(), prefix.size());
    }
  }

  const SliceTransform* const extractor_;
  bool forward_ = true;
  bool has_prefix_ = false;
  std::string prefix_;
};

}  // namespace ROCKSDB_NAMESPACE
