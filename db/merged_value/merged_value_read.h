//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "db/dbformat.h"
#include "db/merged_value/merged_value_cache.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class MergeContext;
class PinnableSlice;
class PinnableWideColumns;
class ReadCallback;
struct ReadOptions;
struct SuperVersion;

// One point lookup in a column family with a MergedValueCache. It decides where
// the search for merge operands may stop, and fills the cache with the result.
//
// PointRead has one. The memtables pass it each entry of the key that is
// visible to the reader, newest first. The cache is asked at the first entry
// that is an operand, or, if there is none, after the memtables. Files pass it
// their operands. The merge at the end passes it the result.
//
// Invariants:
// 1. It fills the cache only if the newest entry that is visible to the reader
//    is a merge operand, because the sequence number of such an entry never
//    changes.
// 2. The frontier that it fills in is not above the reader's sequence number,
//    because it has seen nothing newer.
// 3. With an address map, it fills the cache only if the map was settled during
//    the whole lookup (UnsettledMapJobs).
//
// Not thread-safe.
class MergedValueRead {
 public:
  // Returns true if a lookup with these options may use the cache. A lookup
  // with a ReadCallback may not, since it does not see all entries up to its
  // sequence number; nor may lookups that need all operands, or that read less
  // than all entries.
  static bool Allows(const ReadOptions& read_options,
                     const ReadCallback* callback);

  // sequence: the reader's sequence number.
  // has_snapshot: `sequence` was known before the SuperVersion was taken, so
  //     that has all entries up to `sequence`.
  // fills: ReadOptions::fill_cache.
  // merge_context: of the lookup.
  // REQUIRES: the column family has a cache; all arguments outlive this.
  MergedValueRead(const ColumnFamilyData* cfd,
                  const SuperVersion* super_version, const Slice& user_key,
                  SequenceNumber sequence, bool has_snapshot, bool fills,
                  MergeContext* merge_context);
  MergedValueRead(const MergedValueRead&) = delete;
  MergedValueRead& operator=(const MergedValueRead&) = delete;
  ~MergedValueRead() {
    if (was_found_ && !was_used_) {
      OnUnused();
    }
  }

  // ---- Memtables.

  // To be called with each entry that is visible to the reader.
  // entry: its sequence number.
  // type: its type; kTypeRangeDeletion if a range deletion covers it.
  // covering: sequence number of the newest range deletion seen that covers the
  //     key, 0 if there is none.
  // Returns true if the search ends here: value() is then the base value of the
  // operands found before.
  bool StopsAt(SequenceNumber entry, ValueType type, SequenceNumber covering) {
    if (type != kTypeMerge && !was_asked_) {
      is_other_ = true;  // the newest, or the base of operands not noted
      return false;
    }
    return StopsAtOperand(entry, type, covering);
  }
  // To be called after the memtables were read, whose operands are in the merge
  // context. Returns true if the lookup is complete, with its result in *value
  // or *columns, and in *status.
  bool Finish(SequenceNumber covering, Status* status, std::string* value,
              PinnableWideColumns* columns);
  // REQUIRES: StopsAt() was true.
  Slice value() const { return ref_.value(); }

  // ---- Files.

  void OnFileOperand(SequenceNumber entry) {
    if (!is_other_ && newest_ == 0) {
      newest_ = entry;
    }
    ++operands_;
  }
  // The row cache gives entries without their sequence numbers.
  void OnReplay() { is_other_ = is_other_ || newest_ == 0; }

  // ---- The merge.

  // Puts the result of the merge into the cache if it is valid there.
  // result: plain value, the merge of all operands of the lookup.
  void Fill(const Slice& result);

 private:
  // A lookup that used a cached value makes a new entry only if it merged at
  // least this many operands into it.
  static constexpr size_t kMinOperandsToRefill = 4;

  bool StopsAtOperand(SequenceNumber entry, ValueType type,
                      SequenceNumber covering);
  void Ask();
  void OnUse();
  void OnUnused();

  const ColumnFamilyData* const cfd_;
  const SuperVersion* const super_version_;
  MergeContext* const merge_context_;
  const Slice user_key_;
  const SequenceNumber sequence_;
  const bool has_snapshot_;
  uint64_t settled_as_of_ = 0;
  const bool fills_;

  bool was_asked_ = false;
  // The newest entry is not an operand, or its sequence number is unknown.
  bool is_other_ = false;
  // The cache had a value for this reader. It goes unused if a memtable has a
  // newer value, deletion or range deletion of the key.
  bool was_found_ = false;
  // The base value of the merge is from the cache.
  bool was_used_ = false;
  // Sequence number of the newest operand.
  SequenceNumber newest_ = 0;
  // Of the operands that are newer than the cached value: the sequence number
  // of the oldest one, and how many there are.
  SequenceNumber oldest_ = 0;
  size_t operands_ = 0;
  MergedValueCache::Ref ref_;
};

}  // namespace ROCKSDB_NAMESPACE
