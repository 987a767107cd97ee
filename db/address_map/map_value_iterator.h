//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "db/address_map/address_map.h"
#include "db/address_map/bound_blob_index.h"
#include "db/address_map/map_name.h"
#include "db/address_map/mapped_value_reader.h"
#include "db/address_map/prefix_coverage.h"
#include "db/scan_sort/scan_meter.h"
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

// Replaces each mapped index by a bound one (BoundBlobIndex), which DBIter can
// hand back to have the value read. FetchMappedValue() reads the value through
// the column family rather than through the Version that DBIter knows, which
// may no longer exist because a tailing iterator moves on to newer Versions.
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
// * tailing iterators that may use prefix filters, anywhere, as ForwardIterator
//   does not return to a file whose filter excluded a prefix. A newer
//   SuperVersion may have an extractor that the first one did not have, so that
//   these are all that are not in total order.
// For these readers, entries without a value are skipped, as if the compaction
// that will drop them had already done so. Their other entries are *kept*: the
// result of the map lookup is stored, and the files of the values are pinned,
// as long as the iterator is at the entry or the value is pinned.
class MapValueIterator final : public PassThroughIterator,
                               public MappedValueReader {
 public:
  // Called by MapIterators::Wrap().
  // runs: of the files that the child reads. Without files, the reads of seeks
  // are not charged.
  // prefix_extractor: that of the SuperVersion; may be nullptr, and is not used
  // with ReadOptions::tailing.
  // REQUIRES: the column family has a map; the extractor outlives this object.
  MapValueIterator(ColumnFamilyData* cfd, const ReadOptions& read_options,
                   const ScanMeter::Runs& runs,
                   const SliceTransform* prefix_extractor,
                   InternalIterator* child, bool in_arena);

  // Returns the result of the current entry's lookup if the entry is kept, and
  // a result that is not found otherwise. The entry is not kept afterwards.
  // REQUIRES: Valid().
  AddressMap::Lookup TakeKept() {
    return std::exchange(kept_, AddressMap::Lookup());
  }

  MappedValueReader* mapped_value_reader() override { return this; }
  // A value that is neither of the current entry nor pinned can be read, too,
  // unless its entry would have to be kept.
  Status FetchMappedValue(const Slice& user_key, const Slice& value,
                          PinnableSlice* result) override;
  // Reads the value of an entry that was kept.
  // kept: what TakeKept() returned at that entry.
  // REQUIRES: kept.found; value is the bound index of the entry.
  Status FetchKept(const Slice& user_key, const Slice& value,
                   const AddressMap::Lookup& kept, PinnableSlice* result);

  // Counts the places of the values that are read, apart from values in the
  // blob cache. FetchMappedValue() and FetchKept() pass their values to it.
  ScanMeter* meter() { return &meter_; }

  // Returns true if the value of an entry is in the blob cache, not counting
  // the secondary one. found: result of the entry's lookup. user_key_size:
  // bytes.
  bool IsCached(const AddressMap::Lookup& found, size_t user_key_size) const;

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
  void Prepare(const MultiScanArgs* scan_opts) override {
    child()->Prepare(scan_opts);
    has_lost_place_ = true;
  }

 private:
  struct PinnedBound;
  // The values that PinnedIteratorsManager pins. It may release them after this
  // iterator is destroyed, so they share the ownership of this object.
  struct Pinned {
    size_t bounds = 0;  // number of PinnedBounds
    // The results of the lookups of kept entries that the iterator has left.
    std::multimap<MapName, AddressMap::Lookup, MapNameLess> kept;
  };

  // The entries that may lack their values in the map. Keys are short that have
  // less bytes than the upper bound. A filter is used where all keys between a
  // prefix and a bound of that many bytes have the prefix, but for short ones
  // (auto_prefix_mode, or a file with another extractor).
  enum class Suspects { kNone, kShortKeys, kOutsidePrefix, kAll };

  static Suspects SuspectsOf(const ReadOptions& read_options,
                             const SliceTransform* prefix_extractor);

  // Reads the value at the address that was found for it.
  // REQUIRES: found.found; the file is pinned unless the value is lost.
  Status FetchFound(const Slice& user_key, const BlobIndex& blob_index,
                    const AddressMap::Lookup& found, PinnableSlice* result);
  void Moved() {
    if (UNLIKELY(kept_.found)) {
      LeaveKept();
    }
    bound_ = Slice();
    failed_ = false;
    has_lost_place_ = false;
  }
  // Ends the keeping of the current entry, or leaves it to the pinned value.
  // REQUIRES: kept_.found.
  void LeaveKept();
  // Returns true if bound_ can be returned as the current entry's value.
  bool IsBoundValid() const {
    if (bound_.empty() || !bound_is_pinned_) {
      return !bound_.empty() && !PinningEnabled();
    }
    // PinnedIteratorsManager releases all pinned values together.
    return pinned_bound_ == nullptr || pinned_->bounds > 0;
  }
  // Called before a step of the child.
  // REQUIRES: the child is valid.
  void BeforeStep(bool forward);
  // Returns memory of BoundBlobIndex::kMaxSize bytes for bound_, and pins it if
  // pinning is enabled.
  char* NewBuffer() const;
  // Returns the value that replaces the child's value, or an empty slice if the
  // child's value is used unchanged.
  Slice Replacement() const;
  bool PinningEnabled() const;
  bool IsShort(const Slice& user_key) const {
    return read_options_.iterate_upper_bound != nullptr &&
           user_key.size() < read_options_.iterate_upper_bound->size();
  }
  bool IsSuspect(const Slice& user_key) const;
  // Returns true if the child's entry is dead. Keeps the entry if it is a
  // suspect that is not dead.
  bool OnDead();
  void SkipDead(bool forward);
  // Returns the result of the lookup of a kept entry, or nullptr if no such
  // entry is kept.
  const AddressMap::Lookup* FindKept(const Slice& user_key,
                                     const BlobIndex& index) const;

  ColumnFamilyData* const cfd_;
  const ReadOptions read_options_;
  const Suspects suspects_;
  PrefixCoverage scope_;     // only used if suspects_ is kOutsidePrefix
  AddressMap::Lookup kept_;  // found if the current entry is kept
  PinnedIteratorsManager* pinned_iters_mgr_ = nullptr;
  // The value of the current entry if it was requested and replaced.
  mutable Slice bound_;
  mutable bool bound_is_pinned_ = false;
  // If bound_is_pinned_: the owner of bound_, or nullptr if that is static. The
  // owner exists as long as IsBoundValid() is true.
  mutable PinnedBound* pinned_bound_ = nullptr;
  mutable std::shared_ptr<Pinned> pinned_;  // set if a value was pinned
  mutable char buffer_[BoundBlobIndex::kMaxSize];
  // True if the child's value could not be prepared.
  bool failed_ = false;
  // True from Prepare() to the next move: the child has no key to compare with,
  // although it may say that it is valid.
  bool has_lost_place_ = false;
  ScanMeter meter_;
};

}  // namespace ROCKSDB_NAMESPACE
