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

// Returns values that contain the whole names of their records to DBIter. A
// mapped index does not contain the sequence number, and DBIter does not keep
// it with the value. So the value of a mapped entry is replaced by a *bound*
// index:
//
//    +------+------------------------+-------------+-------------------+
//    | 0x12 | address of a Source: 8 | sequence: 8 | the mapped index  |
//    +------+------------------------+-------------+-------------------+
//
// which exists in memory only. Fetch() reads the value through the column
// family rather than through the Version that DBIter knows, which may no longer
// exist because a tailing iterator moves on to newer Versions.
//
// Invariants:
// 1. A value for which IsValuePinned() is true stays valid for as long as
//    RocksDB guarantees, also when the iterator moves on.
// 2. A value that begins like a bound index is one. If a damaged file contains
//    such a value, it is replaced by one that cannot be decoded.
//
// A reader whose sequence number is registered in ImplicitSnapshotRegistry
// finds every value in the map if it sees all entries of the column family.
// Some readers do not, and may reach hidden entries whose values were removed:
// * readers that ignore range tombstones or whole tables
//   (ReadOptions::table_filter);
// * readers that use prefix filters, outside of the prefix of the seek (see
//   PrefixCoverage);
// * tailing iterators with prefixes, anywhere, as ForwardIterator does not
//   return to a file whose filter excluded a prefix.
// For these readers, entries without a value are skipped, as if the compaction
// that will drop them had already done so. Their other entries are *kept*: the
// result of the map lookup is stored, and the files of the values are pinned,
// as long as the iterator is at the entry or the value is pinned.
class MapValueIterator final : public PassThroughIterator {
 public:
  // Called by MapIterators::Wrap().
  // prefix_extractor: that of the SuperVersion; may be nullptr.
  // REQUIRES: the column family has a map; the extractor outlives this object.
  MapValueIterator(ColumnFamilyData* cfd, const ReadOptions& read_options,
                   const SliceTransform* prefix_extractor,
                   InternalIterator* child, bool in_arena);

  static bool IsBound(const Slice& value) {
    return value.size() > kBoundPrefix && value[0] == kBound;
  }
  // Decodes a bound index, including its sequence number.
  // REQUIRES: IsBound(value).
  static Status Decode(const Slice& value, BlobIndex* blob_index);
  // Makes a copy of a value independent of the iterator's position. If the
  // entry is kept, moves the result of its lookup out and returns it; otherwise
  // returns a result that is not found. The copy is valid as long as the
  // iterator exists, even if the value was pinned and is unpinned later, but it
  // then refers to an entry that is not kept.
  // REQUIRES: IsBound(*value); the iterator is still at the entry.
  static AddressMap::Lookup TakeKept(std::string* value);
  // Reads the value. Returns Corruption if it does not exist.
  // REQUIRES: IsBound(value); the iterator exists; if the entry is kept, the
  // iterator is still at the entry, or the value is pinned.
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
  // The prefix, the type, a birth and one more byte: a longer index is corrupt,
  // and must not become a valid one by truncation.
  static constexpr size_t kMaxBound = kBoundPrefix + 1 + 10 + 1;

  // A pinned bound index and the Source that it refers to.
  struct PinnedBound {
    Source source;
    char bytes[kMaxBound];
  };

  // The entries that may lack their values in the map.
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
  // Called before a step of the child.
  // REQUIRES: the child is valid.
  void BeforeStep(bool forward);
  // Returns the value that replaces the child's value, or an empty slice if the
  // child's value is used unchanged.
  Slice Replacement() const;
  bool PinningEnabled() const;
  bool IsSuspect(const Slice& user_key) const;
  // Returns true if the child's entry is dead. Keeps the entry if it is a
  // suspect that is not dead.
  bool OnDead();
  void SkipDead(bool forward);
  size_t Bind(const Slice& value, Source* source, char* buffer) const;

  ColumnFamilyData* const cfd_;
  const ReadOptions read_options_;
  const Suspects suspects_;
  PrefixCoverage scope_;   // only used if suspects_ is kOutsidePrefix
  mutable Source source_;  // for the current entry
  PinnedIteratorsManager* pinned_iters_mgr_ = nullptr;
  // The value of the current entry if it was requested and replaced.
  mutable Slice bound_;
  mutable bool bound_is_pinned_ = false;
  mutable char buffer_[kMaxBound];
  // True if the child's value could not be prepared.
  bool failed_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
