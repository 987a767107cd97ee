//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class PinnableSlice;

// Reads the values to which the entries of an internal iterator refer. An
// iterator that returns bound blob indices (BoundBlobIndex) as values provides
// it through InternalIterator::mapped_value_reader().
//
// Not thread-safe: it has the thread rules of its iterator.
class MappedValueReader {
 public:
  virtual ~MappedValueReader() = default;

  // Reads the user's value. Returns Corruption if it does not exist.
  // user_key: the user key of the value's entry.
  // value: the bound index that the iterator returned for that entry.
  // REQUIRES: the iterator is still at the entry, or the value is pinned, or
  // the implementation says that it needs neither.
  virtual Status FetchMappedValue(const Slice& user_key, const Slice& value,
                                  PinnableSlice* result) = 0;
};

}  // namespace ROCKSDB_NAMESPACE
