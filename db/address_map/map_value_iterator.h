//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "db/address_map/address_map.h"
#include "db/address_map/prefix_coverage.h"
#include "port/likely.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "util/strata/pass_through_iterator.h"

namespace ROCKSDB_NAMESPACE {

class BlobIndex;
class ColumnFamilyData;
class PinnableSlice;
class PinnedIteratorsManager;
class SliceTransform;

// Gives what lies above it, DBIter, values that name their records: a mapped
// index does not hold the sequence number, and DBIter does not keep it with
// the value. So the value of a mapped entry becomes a *bound* index:
//
//    +------+------------------------+-------------+-------------------+
//    | 0x12 | address of a Source: 8 | sequence: 8 | the mapped index  |
//    +------+------------------------+-------------+-------------------+
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
// A reader whose sequence number is listed as a bound (see
// ImplicitSnapshotRegistry) finds every value in the map, if it sees all that
// is in the column family. One that ignores range tombstones or whole tables
// (ReadOptions::table_filter) may come upon entries that something in them
// hides and whose values are gone. So may one that uses prefix filters, outside
// of the prefix that it has sought (see PrefixCoverage), and a tailing one with
// prefixes anywhere, as ForwardIterator does not come back to a file whose
// filter said no to one. Such entries are skipped, as if the compaction that is
// to drop them had done so. The others of these readers are *kept*: as long as
// the iterator stands there, or their values are pinned, their files stay, and
// what was found is what is read.
class MapValueIterator final : public PassThroughIterator {
 public:
  // MapIterators::Wrap() makes them.
  // prefix_extractor: of the SuperVersion, may be nullptr.
  // REQUIRES: the column family has a map; the extractor outlives this.
  MapValueIterator(ColumnFamilyData* cfd, const ReadOptions& read_options,
                   const SliceTransform* prefix_extractor,
                   InternalIterator* child, bool in_arena);

  static bool IsBound(const Slice& value) {
    return value.size() > kBoundPrefix && value[0] == kBound;
  }
  // What a bound index stands for, bound to its sequence number.
  // REQUIRES: IsBound(value)
  static Status Decode(const Slice& value, BlobIndex* blob_index);
  // For a copy of a value. What was found when the iterator came there, if the
  // entry is kept: then it is moved out. Else it is not found. The copy is good
  // as long as the iterator lives, also if the value was pinned and is not any
  // more; but then of an entry that is not kept.
  // REQUIRES: IsBound(*value), and its iterator still stands there.
  static AddressMap::Lookup TakeKept(std::string* value);
  // Reads the value. One that is not there is a corruption.
  // REQUIRES: IsBound(value), and its iterator lives. If the entry is kept, the
  // iterator still stands there, or the value is pinned.
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
  struct Source {
    const MapValueIterator* iter = nullptr;
    AddressMap::Lookup kept;  // found if the entry is kept
  };
  static constexpr size_t kSequenceOffset = 1 + sizeof(Source*);
  static constexpr size_t kBoundPrefix = kSequenceOffset + sizeof(uint64_t);
  // The prefix, the type, a birth, and one byte more: an index that is longer
  // is corrupt, and must not become a good one by being cut.
  static constexpr size_t kMaxBound = kBoundPrefix + 1 + 10 + 1;

  // A bound index that is pinned, and what it needs.
  struct PinnedBound {
    Source source;
    char bytes[kMaxBound];
  };

  // What entries can have lost their values?
  enum class Suspects { kNone, kOutsidePrefix, kAll };

  static Suspects SuspectsOf(const ReadOptions& read_options,
                             const SliceTransform* prefix_extractor);
  static Source* SourceOf(const Slice& value);

  void Moved() {
    bound_ = Slice();
    failed_ = false;
    if (UNLIKELY(source_.kept.found)) {
      source_.kept = AddressMap::Lookup();
    }
  }
  // Before a step of the child.
  // REQUIRES: the child is valid.
  void BeforeStep(bool forward);
  // What this makes of the child's value, or an empty slice if that is to be
  // used as it is.
  Slice Replacement() const;
  bool PinningEnabled() const;
  bool IsSuspect(const Slice& user_key) const;
  // Keeps the entry if it is a suspect that is not dead.
  bool OnDead();
  void SkipDead(bool forward);
  size_t Bind(const Slice& value, Source* source, char* buffer) const;

  ColumnFamilyData* const cfd_;
  const ReadOptions read_options_;
  const Suspects suspects_;
  PrefixCoverage scope_;   // only used if suspects_ is kOutsidePrefix
  mutable Source source_;  // of the current entry
  PinnedIteratorsManager* pinned_iters_mgr_ = nullptr;
  // The value of the current entry if it was asked for and replaced.
  mutable Slice bound_;
  mutable bool bound_is_pinned_ = false;
  mutable char buffer_[kMaxBound];
  // The child's value could not be prepared.
  bool failed_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
