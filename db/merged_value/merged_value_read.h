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

// One point lookup in a column family with a MergedValueCache: says where its
// walk over merge operands may stop, and what its result is good for.
//
// MergeContext carries it. The memtables tell it of each entry of the key that
// the reader sees, newest first; the table is asked at the first one that is an
// operand, or if there is none when the memtables are through. A file tells it
// of operands. The merge at the end gives it the result.
//
// Invariant: it fills the table only if the newest entry that the reader sees
// is a merge operand, as the sequence number of such an entry never changes,
// and with a frontier that is not above the reader's sequence number, as it
// knows nothing of what is newer. With an address map all of it must have been
// found while the map was settled (UnsettledMapJobs).
//
// Used by one thread.
class MergedValueRead {
 public:
  // Can a lookup with these options use it? Callbacks see entries out of order;
  // others want to see all operands, or less than all entries.
  static bool Allows(const ReadOptions& read_options,
                     const ReadCallback* callback);

  MergedValueRead() = default;
  ~MergedValueRead() { Detach(); }
  MergedValueRead(const MergedValueRead&) = delete;
  MergedValueRead& operator=(const MergedValueRead&) = delete;

  // Begins a lookup: the merge context has it until Detach().
  // sequence: that the reader reads at. has_snapshot: the SuperVersion holds all
  // up to there, for it was the reader's before. fills: as fill_cache of
  // ReadOptions.
  // REQUIRES: the column family has a cache; all outlive this.
  void Attach(const ColumnFamilyData* cfd, const SuperVersion* super_version,
              const Slice& user_key, SequenceNumber sequence,
              bool has_snapshot, bool fills, MergeContext* merge_context);
  void Detach();

  // ---- Memtables.

  // Of each entry that the reader sees, with its type, kTypeRangeDeletion if a
  // range deletion covers it. covering: the newest range deletion of the key that
  // was seen.
  // True: the walk ends here, and value() is the base of what it has found.
  bool StopsAt(SequenceNumber entry, ValueType type, SequenceNumber covering) {
    if (type != kTypeMerge && !was_asked_) {
      is_other_ = true;  // the newest, or the base of operands not noted
      return false;
    }
    return StopsAtOperand(entry, type, covering);
  }
  // After the memtables, whose operands are in the merge context. True if the
  // lookup has its result: in value or columns, and in status.
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

  // Its result, a plain value, of all operands.
  void Fill(const Slice& result);

 private:
  // With so many operands above what was found, it is worth a new entry.
  static constexpr size_t kMinOperandsToRefill = 4;

  bool StopsAtOperand(SequenceNumber entry, ValueType type,
                      SequenceNumber covering);
  void Ask();
  void OnUse();

  const ColumnFamilyData* cfd_ = nullptr;
  const SuperVersion* super_version_ = nullptr;
  MergeContext* merge_context_ = nullptr;
  Slice user_key_;
  SequenceNumber sequence_ = 0;
  bool has_snapshot_ = false;
  bool fills_ = false;
  uint64_t settled_as_of_ = 0;

  bool was_asked_ = false;
  // The newest entry is no operand, or one of unknown sequence number.
  bool is_other_ = false;
  // The base of the merge is the table's.
  bool was_used_ = false;
  SequenceNumber newest_ = 0;  // operand
  // Of the operands that are newer than what was found.
  SequenceNumber oldest_ = 0;
  size_t operands_ = 0;
  MergedValueCache::Ref ref_;
};

}  // namespace ROCKSDB_NAMESPACE
