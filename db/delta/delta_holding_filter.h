//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_version.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;
class Compaction;
class DeltaFileMeta;
class DeltaStore;
class InternalKey;
class LookupKey;

// Wraps the compaction filter of a compaction in a column family with delta
// files. A decision of the user's filter about a value is executed only if
// delta files have no operands that readers would merge with the value.
// Otherwise the value is kept: without it, readers would get another result
// from the operands alone, permanently. In RocksDB such operands lie above the
// value, and a compaction of both merges them before it asks the filter about
// the result. So the key is added to the keys to fold (DeltaFoldWishes), and
// the next compaction asks the filter about the complete value.
//
// If delta files have anything in a range that the filter removes
// (kRemoveAndSkipUntil), there is a decision for each key of the range instead:
//  1. A value with operands is kept, as above.
//  2. A key of which delta files have no operands, not even hidden ones, is
//     removed with all of its entries and without a tombstone, as the range
//     would be: kRemoveAndSkipUntil with *skip_until == key says so. Thus no
//     SingleDelete() of the key meets a tombstone that the application has not
//     written.
//  3. A value whose operands are all hidden is replaced by a tombstone, because
//     a snapshot may see the operands with an older value, which must stay. The
//     same is done with all values if leaves_tombstones is set.
//  4. An operand is removed alone, or kept if delta files have operands.
//  5. A value of TimedPut() is treated like other values, although filters are
//     not asked about it.
//
// Operands that are added after the Version of the compaction's inputs are
// treated like files that are added to level 0 after a compaction of RocksDB
// has begun.
//
// Not thread-safe.
class DeltaHoldingFilter final : public CompactionFilter {
 public:
  // Replaces *filter by a DeltaHoldingFilter around it. Does nothing if *filter
  // is nullptr, or if there are no delta files.
  // leaves_tombstones: no entry of the compaction may be removed without a
  // tombstone, as in a column family with an address map (MappedEntryMeter).
  // owned: owner of *filter if the caller owns it, else empty; owner of the new
  // filter afterwards.
  // REQUIRES: the compaction outlives the new filter, and so does the old
  // *filter if it is not owned.
  static void Wrap(const Compaction& compaction, bool leaves_tombstones,
                   const CompactionFilter** filter,
                   std::unique_ptr<CompactionFilter>* owned);

  // Returns true if the filter of a compaction is a DeltaHoldingFilter, which
  // may have another filter around it.
  // compaction: nullptr if the filter is that of another job.
  // REQUIRES: the job has called Wrap(), which depends on the same conditions.
  static bool IsUsed(const Compaction* compaction,
                     const CompactionFilter& filter);
  // Returns the decision about a value of TimedPut(), about which filters are
  // not asked: that of a range which `filter` removes and which includes the
  // key, or kKeep.
  // REQUIRES: as IsUsed(); `filter` is the filter of the compaction.
  static Decision DecideOnTimedPut(const Compaction* compaction,
                                   const CompactionFilter& filter, int level,
                                   const Slice& key);
  // Sets *buffer to the last internal key that an entry of the user key can
  // have, and returns it. A Seek() from a value of the key to it moves on, and
  // skips all entries of the key except for a tombstone with the sequence
  // number 0.
  static Slice LastKeyOf(const Slice& user_key, InternalKey* buffer);

  // REQUIRES: all arguments outlive this object, and a Version that has
  // `version` is pinned.
  DeltaHoldingFilter(const DeltaStore& store, const DeltaVersion& version,
                     bool leaves_tombstones, DeltaHolds* holds,
                     const CompactionFilter* filter,
                     std::unique_ptr<CompactionFilter> owned);
  ~DeltaHoldingFilter() override;

  const char* Name() const override { return filter_->Name(); }
  // All decisions are made by FilterV4() and FilterBlobByKey().
  //
  // Without a value and columns, FilterV4() does not ask the user's filter, see
  // DecideOnTimedPut().
  Decision FilterV4(
      int level, const Slice& key, ValueType value_type,
      const Slice* existing_value, const WideColumns* existing_columns,
      std::string* new_value,
      std::vector<std::pair<std::string, std::string>>* new_columns,
      std::string* skip_until,
      WideColumnBlobResolver* blob_resolver) const override;
  Decision FilterBlobByKey(int level, const Slice& key, std::string* new_value,
                           std::string* skip_until) const override;
  bool SupportsFilterV4() const override { return filter_->SupportsFilterV4(); }
  BlobDecision PrepareBlobOutput(const Slice& key, const Slice& existing_value,
                                 std::string* new_value) const override {
    // The value does not depend on where it is stored.
    return filter_->PrepareBlobOutput(key, existing_value, new_value);
  }
  bool IgnoreSnapshots() const override { return filter_->IgnoreSnapshots(); }

 private:
  // Returns the decision to execute when the user's filter removes the range
  // [key, *skip_until).
  Decision BeginRemovedRange(const Slice& key, bool is_operand,
                             std::string* skip_until) const;
  bool IsInRemovedRange(const Slice& key) const;
  // Returns the decision about an entry in such a range, see above.
  Decision RemoveInRange(const Slice& key, bool is_operand,
                         std::string* skip_until) const;
  // Returns the decision to execute instead of `decision` about a value, or
  // about an operand that is removed together with newer entries.
  Decision Held(const Slice& key, Decision decision) const;
  // Returns true if readers at the newest sequence number may see operands.
  bool HasOperands(const Slice& key) const;
  // Returns true if there may be operands, seen or hidden.
  bool HasAnyOperands(const Slice& key) const;
  bool HasAnyOperandsIn(const DeltaFileMeta& file, const LookupKey& key) const;

  const DeltaStore& store_;
  const DeltaVersion& version_;
  const bool leaves_tombstones_;
  DeltaHolds* const holds_;
  const CompactionFilter* const filter_;
  const std::unique_ptr<CompactionFilter> owned_;
  const Comparator* const ucmp_;
  const ReadOptions read_options_;

  // Mutable as the functions of filters are const.
  mutable DeltaFoldWishes wishes_;
  mutable std::string removed_until_;
  mutable bool has_removed_range_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
