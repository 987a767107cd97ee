//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "table/pass_through_iterator.h"

namespace ROCKSDB_NAMESPACE {

class BlobIndex;
class ColumnFamilyData;
class MappedBlobs;
class PinnableSlice;
class PinnedIteratorsManager;

// Gives what lies above it, DBIter, values that name their records: a mapped
// index does not hold the sequence number, and DBIter does not keep it with
// the value. So the value of a mapped entry becomes a *bound* index:
//
//    +------+-----------------------------+-------------+-------------------+
//    | 0x12 | address of this iterator: 8 | sequence: 8 | the mapped index  |
//    +------+-----------------------------+-------------+-------------------+
//
// which exists in memory only. Fetch() reads what it stands for, by the column
// family: the Version that DBIter knows may be gone, as a tailing iterator
// moves on to others.
//
// Invariants:
// * A value that IsValuePinned() stays as long as upstream says, also when the
//   iterator moves on.
// * A value that begins like a bound index is one. What a damaged file has of
//   this kind becomes something that nobody can decode.
//
// A reader whose sequence number is listed as a bound (see ReadBoundRegistry)
// finds every value in the map. One that ignores range tombstones, or whole
// tables (ReadOptions::table_filter), may find entries that something in them
// hides and whose values are gone: these are skipped, as if the compaction that
// is to drop them had done so. If one goes between that look and the read, the
// reader gets Aborted.
class MapValueIterator final : public PassThroughIterator {
 public:
  // MapIterators::Wrap() makes them.
  // REQUIRES: the column family has a map
  MapValueIterator(ColumnFamilyData* cfd, const ReadOptions& read_options,
                   InternalIterator* child, bool in_arena);

  static bool IsBound(const Slice& value) {
    return value.size() > kBoundPrefix && value[0] == kBound;
  }
  // What a bound index stands for, bound to its sequence number.
  // REQUIRES: IsBound(value)
  static Status Decode(const Slice& value, BlobIndex* blob_index);
  // Reads the value. One that is not there is a corruption, or as said above.
  // REQUIRES: IsBound(value), and its iterator lives.
  static Status Fetch(const Slice& user_key, const Slice& value,
                      PinnableSlice* result);

  bool Valid() const override { return !failed_ && child()->Valid(); }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(const Slice& target) override;
  void SeekForPrev(const Slice& target) override;
  void Next() override;
  bool NextAndGetResult(IterateResult* result) override;
  void Prev() override;
  Slice value() const override;
  bool IsValuePinned() const override;
  void SetPinnedItersMgr(PinnedIteratorsManager* pinned_iters_mgr) override;

 private:
  static constexpr char kBound = 0x12;
  static constexpr size_t kSequenceOffset = 1 + sizeof(MapValueIterator*);
  static constexpr size_t kBoundPrefix = kSequenceOffset + sizeof(uint64_t);
  // The prefix, the type, a birth, and one byte more: an index that is longer
  // is corrupt, and must not become a good one by being cut.
  static constexpr size_t kMaxBound = kBoundPrefix + 1 + 10 + 1;

  void Moved() {
    bound_ = Slice();
    failed_ = false;
  }
  // What this makes of the child's value, or an empty slice if that is to be
  // used as it is.
  Slice Replacement() const;
  bool PinningEnabled() const;
  bool OnDead();
  void SkipDead(bool forward);
  size_t Bind(const Slice& value, char* buffer) const;

  ColumnFamilyData* const cfd_;
  const ReadOptions read_options_;
  // Skip entries whose values are not there; or nullptr.
  const MappedBlobs* const dead_in_;
  PinnedIteratorsManager* pinned_iters_mgr_ = nullptr;
  // The value of the current entry if it was asked for and replaced.
  mutable Slice bound_;
  mutable bool bound_is_pinned_ = false;
  mutable char buffer_[kMaxBound];
  // The child's value could not be prepared.
  bool failed_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
