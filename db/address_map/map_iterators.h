//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class Arena;
class ColumnFamilyData;
class PinnableSlice;
class SliceTransform;
struct ReadOptions;

// What stands between the iterators of a column family with an address map and
// DBIter:
//
//   DBIter -> MapPrefetchIterator -> MapValueIterator -> MergingIterator
//   DBIter -> MapValueIterator -> MapTailingIterator -> ForwardIterator
//
// and what DBIter makes of the values that come from there.
class MapIterators {
 public:
  MapIterators() = delete;

  // The iterator to use in place of `child`, which is the same if the column
  // family has no map.
  // sequence: what DBIter reads at. prefix_extractor: of the SuperVersion, may
  // be nullptr.
  // REQUIRES: read_options, prefix_extractor and the arena outlive the result,
  // which belongs to the arena, as the child does.
  static InternalIterator* Wrap(ColumnFamilyData* cfd,
                                const ReadOptions& read_options,
                                SequenceNumber sequence,
                                const SliceTransform* prefix_extractor,
                                InternalIterator* child, Arena* arena);

  // The same for a ForwardIterator on the heap. Whether there is an extractor
  // is all that is asked; SetOptions() may change it later.
  static InternalIterator* WrapTailing(
      ColumnFamilyData* cfd, const ReadOptions& read_options,
      const std::function<SequenceNumber()>& last_sequence,
      const SliceTransform* prefix_extractor, InternalIterator* child);

  // Is this, the value of a kTypeBlobIndex entry, one of theirs?
  // REQUIRES: it comes from an iterator of a column family with a map.
  static bool IsMappedValue(const Slice& value);

  // Reads what it stands for. A value that is not there is a corruption.
  // REQUIRES: IsMappedValue(value); the iterator has not moved, or the value is
  // pinned.
  static Status Fetch(const Slice& user_key, const Slice& value,
                      PinnableSlice* result);
};

}  // namespace ROCKSDB_NAMESPACE
