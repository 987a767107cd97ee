//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/merged_value_read.h"

#include <algorithm>
#include <cassert>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/memtable.h"
#include "db/merge_context.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/wide_columns.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns a sequence number up to which the SuperVersion has all entries of the
// column family: any other entry is in a newer memtable.
SequenceNumber FrontierOf(const SuperVersion& super_version) {
  const SequenceNumber earliest =
      super_version.mem->GetEarliestSequenceNumber();
  return earliest == kMaxSequenceNumber ? 0 : earliest;
}

}  // namespace

bool MergedValueRead::Allows(const ReadOptions& read_options,
                             const ReadCallback* callback) {
  return callback == nullptr && read_options.read_tier != kPersistedTier &&
         read_options.read_tier != kMemtableTier &&
         !read_options.ignore_range_deletions &&
         !read_options.merge_operand_count_threshold.has_value();
}

MergedValueRead::MergedValueRead(const ColumnFamilyData* cfd,
                                 const SuperVersion* super_version,
                                 const Slice& user_key, SequenceNumber sequence,
                                 bool has_snapshot, bool fills,
                                 MergeContext* merge_context)
    : cfd_(cfd),
      super_version_(super_version),
      merge_context_(merge_context),
      user_key_(user_key),
      sequence_(sequence),
      has_snapshot_(has_snapshot),
      fills_(fills && (cfd->address_map_store() == nullptr ||
                       cfd->address_map_store()->unsettled_jobs()->IsSettled(
                           &settled_as_of_))) {}

void MergedValueRead::Ask() {
  was_asked_ = true;
  SequenceNumber sequence = sequence_;
  if (!has_snapshot_ &&
      cfd_->GetSuperVersionNumber() != super_version_->version_number) {
    // The sequence number was read after the SuperVersion was taken. A value
    // with newer operands would be right for this key, but inconsistent with
    // other keys of the batch that are read from files.
    sequence = std::min(sequence, FrontierOf(*super_version_));
  }
  Statistics* const statistics = cfd_->ioptions().stats;
  switch (cfd_->merged_values()->Lookup(
      user_key_, sequence,
      super_version_->current->strata()->merged_values().number(), &ref_)) {
    case MergedValueCache::Result::kHit:
      was_found_ = true;  // counted when it is known whether it is used
      break;
    case MergedValueCache::Result::kMiss:
      RecordTick(statistics, MERGED_VALUE_CACHE_MISS);
      break;
    case MergedValueCache::Result::kStale:
      RecordTick(statistics, MERGED_VALUE_CACHE_STALE);
      break;
  }
}

bool MergedValueRead::StopsAtOperand(SequenceNumber entry, ValueType type,
                                     SequenceNumber covering) {
  if (!was_asked_) {
    assert(type == kTypeMerge);
    newest_ = entry;
    Ask();
  }
  if (ref_.found()) {
    if (covering > ref_.seq()) {
      ref_.Reset();  // deleted since
    } else if (entry <= ref_.seq()) {
      OnUse();
      return true;
    }
  }
  if (type == kTypeMerge) {
    oldest_ = entry;
    ++operands_;
  }
  return false;
}

void MergedValueRead::OnUse() {
  was_used_ = true;
  // This reader has seen all entries of the key up to its own sequence number.
  // If it found operands above the cached value, the key has no entry between
  // that value and the oldest of them.
  SequenceNumber frontier = std::min(sequence_, FrontierOf(*super_version_));
  if (oldest_ > 0) {
    frontier = std::min(frontier, oldest_ - 1);
  }
  if (frontier > ref_.frontier()) {
    ref_.ExtendFrontier(frontier);
  }
  RecordTick(cfd_->ioptions().stats, MERGED_VALUE_CACHE_HIT);
}

void MergedValueRead::OnUnused() {
  RecordTick(cfd_->ioptions().stats, MERGED_VALUE_CACHE_STALE);
}

bool MergedValueRead::Finish(SequenceNumber covering, Status* status,
                             std::string* value, PinnableWideColumns* columns) {
  assert(status->ok() || status->IsMergeInProgress());
  if (!was_asked_) {
    assert(status->ok());
    Ask();
  }
  if (!ref_.found() || covering > ref_.seq()) {
    ref_.Reset();
    return false;
  }
  OnUse();
  const ImmutableOptions& ioptions = cfd_->ioptions();
  ReadOnlyMemTable::HandleTypeValue(
      user_key_, ref_.value(), /*value_pinned=*/true, /*do_merge=*/true,
      status->IsMergeInProgress(), merge_context_,
      ioptions.merge_operator.get(), ioptions.clock, ioptions.stats,
      ioptions.logger, status, value, columns, /*is_blob_index=*/nullptr);
  return true;
}

void MergedValueRead::Fill(const Slice& result) {
  if (!fills_ || is_other_ || newest_ == 0 ||
      (was_used_ && operands_ < kMinOperandsToRefill)) {
    return;
  }
  assert(operands_ == merge_context_->GetNumOperands());
  const MergedValueGeneration& generation =
      super_version_->current->strata()->merged_values();
  if (generation.as_of() > sequence_) {
    return;  // entries that an edit has added may be invisible to the reader
  }
  if (cfd_->address_map_store() != nullptr &&
      !cfd_->address_map_store()->unsettled_jobs()->WasSettledSince(
          settled_as_of_)) {
    return;
  }
  TEST_SYNC_POINT("MergedValueRead::Fill");
  if (cfd_->merged_values()->Insert(
          user_key_, newest_, std::min(sequence_, FrontierOf(*super_version_)),
          generation.number(), result)) {
    RecordTick(cfd_->ioptions().stats, MERGED_VALUE_CACHE_ADD);
  } else if (cfd_->merged_values()->NoteRefused(user_key_, result)) {
    ROCKS_LOG_WARN(
        cfd_->ioptions().logger,
        "[%s] A merged value of %" ROCKSDB_PRIszt
        " bytes is too large for the merged-value cache (%" ROCKSDB_PRIszt
        " bytes): each read of its key merges all operands. "
        "Increase merged_value_cache_size to avoid this. (\"too-large\" in "
        "the property %s counts such values.)",
        cfd_->GetName().c_str(), result.size(),
        cfd_->merged_values()->capacity(),
        DB::Properties::kMergedValueCache.c_str());
  }
}

}  // namespace ROCKSDB_NAMESPACE
