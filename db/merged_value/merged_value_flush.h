//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "db/merged_value/merged_value_cache.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class FragmentedRangeTombstoneIterator;
struct ImmutableOptions;

// What a flush does to the merged values of its column family: it notes what it
// writes, and merges operands into values that are known, so that readers need
// not do so from files.
//
// A value is carried over if all that the flush has of the key above it is
// operands, and their merge gives a plain value. Otherwise it is of no use after
// the flush, and the next reader makes another one.
//
// Invariant: what is merged is what a reader of the memtables would merge. If a
// filter of the flush changes operands, the Version of the flush begins a new
// generation of merged values, to which the old ones are nothing.
//
// Used by one thread.
class MergedValueFlush {
 public:
  // mems_are_oldest: nothing of the column family that is older than what is
  // flushed is in memtables.
  // REQUIRES: the column family has a MergedValueCache; it outlives this.
  MergedValueFlush(const ColumnFamilyData& cfd, bool mems_are_oldest);

  // All of one memtable. Moves the iterator.
  // REQUIRES: before OnEntry().
  void OnRangeDeletions(FragmentedRangeTombstoneIterator* iter) {
    flush_.OnRangeDeletions(iter);
  }
  // What the iterator over the memtables does. It may begin anew.
  // REQUIRES: values stay where they are until Finish().
  void OnBegin();
  void OnEntry(const InternalIterator& iter);
  // It leaves something out: what is known by then is not all.
  void OnSkip() { has_all_ = false; }
  void OnEnd();

  // Nothing is carried over of keys of which not all entries were shown.
  // REQUIRES: the Version with what was flushed is not published yet.
  void Finish();

 private:
  void BeginKey(const Slice& user_key, SequenceNumber newest);
  void EndKey();

  const ImmutableOptions& ioptions_;
  MergedValueCache::Flush flush_;

  // The key whose entries come by; none if newest_ is 0.
  std::string key_;
  SequenceNumber newest_ = 0;
  // What is known of it, as long as it may be carried over.
  MergedValueCache::Ref known_;
  // Of the entries above it, the newest first.
  std::vector<Slice> operands_;
  bool has_all_operands_ = false;
  // Everything from the beginning up to here; and up to the end.
  bool has_all_ = false;
  bool is_at_end_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
