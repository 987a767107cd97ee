//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>

#include "db/address_map/bound_blob_index.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class Arena;
class ColumnFamilyData;
class PinnableSlice;
struct ReadOptions;
struct SuperVersion;

// Creates the iterators between DBIter and the other iterators of a column
// family with an address map:
//
//   DBIter -> MapPrefetchIterator -> MapValueIterator -> MergingIterator
//   DBIter -> MapValueIterator -> MapTailingIterator -> ForwardIterator
//
// and reads the values that their entries refer to, on behalf of DBIter.
class MapIterators {
 public:
  MapIterators() = delete;

  // Returns the iterator to use in place of `child`, or `child` if the column
  // family has no map. The result is allocated in the arena, like the child.
  // sequence: sequence number that DBIter reads at.
  // sv: what the child reads.
  // REQUIRES: read_options, sv and the arena outlive the result.
  static InternalIterator* Wrap(ColumnFamilyData* cfd,
                                const ReadOptions& read_options,
                                SequenceNumber sequence, const SuperVersion& sv,
                                InternalIterator* child, Arena* arena);

  // Like Wrap(), for a ForwardIterator on the heap.
  // last_sequence: returns the newest visible sequence number.
  static InternalIterator* WrapTailing(
      ColumnFamilyData* cfd, const ReadOptions& read_options,
      const std::function<SequenceNumber()>& last_sequence,
      InternalIterator* child);

  // Returns true if the value of a kTypeBlobIndex entry was produced by these
  // iterators.
  // REQUIRES: the value comes from an iterator of a column family with a map.
  static bool IsMappedValue(const Slice& value) {
    return BoundBlobIndex::IsBound(value);
  }

  // Reads the user's value that `value` refers to. Returns Corruption if it
  // does not exist.
  // iter: the iterator that returned the value.
  // REQUIRES: IsMappedValue(value); the iterator has not moved, or the value is
  // pinned.
  static Status Fetch(InternalIterator* iter, const Slice& user_key,
                      const Slice& value, PinnableSlice* result);
};

}  // namespace ROCKSDB_NAMESPACE
