//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/slice_transform.h"

namespace ROCKSDB_NAMESPACE {

// Follows an iterator over several sorted runs that uses prefix filters
// (ReadOptions::total_order_seek is false, and so is auto_prefix_mode), and
// says which of its entries it has seen everything of.
//
// A seek leaves out the files and memtables that have nothing with the prefix
// of its target. So the iterator sees all entries with this prefix, but of
// others it may find old ones and miss what hides them. At a change of
// direction the runs are sought again, by the key that the iterator is at.
//
// Invariant: Covers(key) is false if something that hides entries of the key
// may be left out. It is false always after a seek without a prefix, as there
// are memtables which find nothing then.
//
// Used by one thread at a time.
class PrefixCoverage {
 public:
  // REQUIRES: extractor outlives this.
  explicit PrefixCoverage(const SliceTransform* extractor)
      : extractor_(extractor) {}

  // The iterator is about to seek.
  void OnSeek(const Slice& user_key, bool forward) {
    forward_ = forward;
    Set(user_key);
  }
  // It is about to go to its first or last entry.
  void OnSeekToEnd(bool forward) {
    forward_ = forward;
    has_prefix_ = false;
  }
  // It is about to make a step from this key.
  void OnStep(const Slice& user_key, bool forward) {
    if (forward != forward_) {
      forward_ = forward;
      Set(user_key);
    }
  }

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
