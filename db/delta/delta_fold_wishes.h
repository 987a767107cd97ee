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

// Keys whose operands are to be merged into values (folded), however few they
// are: a compaction filter would not have kept the value below them, and may
// decide only about a value that has all its operands (DeltaHoldingFilter).
//
// Up to kMaxKeys keys are known one by one. Beyond that the range that they lie
// in takes their place.
//
// Not thread-safe. REQUIRES of all: the same comparator each time.
class DeltaFoldWishes {
 public:
  using KeyRange = DeltaEdit::KeyRange;

  static constexpr size_t kMaxKeys = 4096;

  bool empty() const { return keys_.empty() && ranges_.empty(); }

  void Add(const Slice& user_key, const Comparator* ucmp);
  void AddRange(const KeyRange& range);
  void AddAll() { AddRange(KeyRange()); }
  void AddAllOf(const DeltaFoldWishes& other, const Comparator* ucmp);

  bool Contains(const Slice& user_key, const Comparator* ucmp) const;
  // Is there a key of the range among them?
  bool Overlaps(const KeyRange& range, const Comparator* ucmp) const;
  // Those of the range are fulfilled.
  void Remove(const KeyRange& range, const Comparator* ucmp);

 private:
  void Shrink(const Comparator* ucmp);

  // In order, each once.
  std::vector<std::string> keys_;
  // In any order; they may overlap.
  std::vector<KeyRange> ranges_;
};

// What filters of compactions wish for, until a job is looked for.
//
// Thread-safe.
class DeltaHolds {
 public:
  void Add(const DeltaFoldWishes& wishes, const Comparator* ucmp);
  DeltaFoldWishes Take();

 private:
  port::Mutex mutex_;
  DeltaFoldWishes wishes_;  // guarded by mutex_
};

}  // namespace ROCKSDB_NAMESPACE
