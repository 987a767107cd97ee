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

// Updates the MergedValueCache of a column family for a flush: it records what
// the flush writes, and merges operands into cached values, so that readers
// need not do that from files.
//
// A value is carried over if all entries of the key that the flush has above it
// are operands, and their merge gives a plain value. Otherwise the value cannot
// be used after the flush, and the next reader computes another one.
//
// Invariant: the operands that are merged are those that a reader of the
// memtables would merge. If a compaction filter of the flush changes operands,
// the Version of the flush begins a new generation of merged values, in which
// the old ones are not used.
//
// Not thread-safe.
class MergedValueFlush {
 public:
  // mems_are_oldest: whether the column family has no memtable that is older
  // than those that are flushed.
  // REQUIRES: the column family has a MergedValueCache; it outlives this.
  MergedValueFlush(const ColumnFamilyData& cfd, bool mems_are_oldest);

  // Adds all range deletions of one memtable. Moves the iterator.
  // REQUIRES: OnEntry() has not been called.
  void OnRangeDeletions(FragmentedRangeTombstoneIterator* iter) {
    flush_.OnRangeDeletions(iter);
  }
  // The four functions below follow the iterator over the memtables.

  // The iterator is at the first entry. It may start over.
  void OnBegin();
  // The iterator is at an entry.
  // REQUIRES: the value stays where it is until Finish().
  void OnEntry(const InternalIterator& iter);
  // The iterator skips entries, so this object does not see all of them.
  void OnSkip() { has_all_ = false; }
  // The iterator is at the end.
  void OnEnd();

  // Completes the update of the cache. No value is carried over for keys of
  // which not all entries were seen.
  // REQUIRES: the Version with what was flushed is not published yet.
  void Finish();

 private:
  void BeginKey(const Slice& user_key, SequenceNumber newest);
  void EndKey();

  const ImmutableOptions& ioptions_;
  MergedValueCache::Flush flush_;

  // The current key; there is none if newest_ is 0.
  std::string key_;
  SequenceNumber newest_ = 0;
  // The cached value of the key, as long as it may be carried over.
  MergedValueCache::Ref known_;
  // The operands above that value, the newest first.
  std::vector<Slice> operands_;
  bool has_all_operands_ = false;
  // All entries from the first one to the current one were seen.
  bool has_all_ = false;
  bool is_at_end_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
