//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The part of GetContext for lookups that have a PointRead. Each entry of an
// SST file takes these steps, of which RocksDB has only the last:
//
//   1. The address map may have a newer value, which takes the entry's place,
//      or the search ends here.
//   2. The operands of delta files that are newer are saved.
//   3. SaveEntry() saves the entry.

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "db/blob/blob_fetcher.h"
#include "db/dbformat.h"
#include "db/delta/delta_read.h"
#include "db/read_callback.h"
#include "db/strata/point_read.h"
#include "rocksdb/comparator.h"
#include "table/get_context.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

bool GetContext::SaveForPointRead(const ParsedInternalKey& entry,
                                  const Slice& value, bool* matched,
                                  Status* read_status, Cleanable* value_pinner,
                                  const SameFileBlobReader* same_file_reader) {
  assert(matched);
  if (!point_read_->NeedsSequence() ||
      !ucmp_->EqualWithoutTimestamp(entry.user_key, user_key_)) {
    return SaveEntry(entry, value, matched, read_status, value_pinner,
                     same_file_reader);
  }
  *matched = true;
  if (!CheckCallback(entry.sequence)) {
    return true;
  }
  switch (point_read_->OnFileEntry(entry, value)) {
    case MapPointRead::Action::kAsIs:
      break;
    case MapPointRead::Action::kReplaced:
      return SaveReplacement(matched, read_status);
    case MapPointRead::Action::kStop:
      return false;
  }
  if (!SaveDeltasAbove(entry, value, read_status)) {
    return false;
  }
  // A second question may have another answer: the snapshot may be released.
  is_visible_ = true;
  const bool goes_on = SaveEntry(entry, value, matched, read_status,
                                 value_pinner, same_file_reader);
  is_visible_ = false;
  return goes_on;
}

// Saves what the address map has found, after the operands of delta files that
// are newer. Returns as SaveValue() does.
// REQUIRES: the last action of the MapPointRead was kReplaced.
bool GetContext::SaveReplacement(bool* matched, Status* read_status) {
  MapPointRead* const map = point_read_->map();
  record_name_ = &map->record_name();
  return SaveDeltasAbove(map->key(), map->value(), read_status) &&
         SaveEntry(map->key(), map->value(), matched, read_status,
                   map->value_pinner(), /*same_file_reader=*/nullptr);
}

// Saves the operands of delta files that are newer than the entry, which is
// saved next. If they are being read, the entry's blob is read meanwhile.
// Returns false if the search is over.
bool GetContext::SaveDeltasAbove(const ParsedInternalKey& entry,
                                 const Slice& value, Status* read_status) {
  DeltaRead* const deltas = point_read_->deltas();
  if (deltas == nullptr) {
    return true;
  }
  point_read_->DropBlobAhead();
  if (entry.type == kTypeBlobIndex && deltas->IsReadAhead()) {
    ReadBlobAhead(entry, value);
  }
  return SaveDeltas(entry.sequence, read_status);
}

void GetContext::ReadBlobAhead(const ParsedInternalKey& entry,
                               const Slice& value) {
  const bool is_wanted =
      !do_merge_ || pinnable_val_ != nullptr || columns_ != nullptr;
  const bool is_covered = max_covering_tombstone_seq_ != nullptr &&
                          *max_covering_tombstone_seq_ > entry.sequence;
  if (!is_wanted || is_covered || is_blob_index_ == nullptr ||
      blob_fetcher_ == nullptr) {
    return;
  }
  auto blob = std::make_unique<PinnableSlice>();
  const Status s = blob_fetcher_->FetchBlob(
      record_name_ != nullptr ? *record_name_ : entry.user_key, value,
      /*prefetch_buffer=*/nullptr, blob.get(), /*bytes_read=*/nullptr);
  if (s.ok()) {
    TEST_SYNC_POINT("GetContext::ReadBlobAhead:Done");
    point_read_->KeepBlobAhead(std::move(blob));
  } else {
    // The value is read again when it is needed, and the error is handled
    // there.
    IGNORE_STATUS_IF_ERROR(s);
    s.PermitUncheckedError();
  }
}

// Saves the operands of delta files that are above both `above` and the range
// deletion that covers the key. Returns as SaveValue() does.
// REQUIRES: there are delta files.
bool GetContext::SaveDeltas(SequenceNumber above, Status* read_status) {
  DeltaRead* const deltas = point_read_->deltas();
  assert(deltas != nullptr);
  if (max_covering_tombstone_seq_ != nullptr) {
    above = std::max(above, *max_covering_tombstone_seq_);
  }
  const bool is_only_seq =
      do_merge_ && pinnable_val_ == nullptr && columns_ == nullptr;
  DeltaRead::Operand operand;
  while (deltas->Next(above, &operand, read_status)) {
    if (is_only_seq) {
      // Only the newest sequence number is requested, not the value.
      if (seq_ != nullptr &&
          (*seq_ == kMaxSequenceNumber || *seq_ < operand.seq)) {
        *seq_ = operand.seq;
      }
      state_ = kFound;
      return false;
    }
    // An operand is saved as if it came from an SST file.
    bool matched = false;
    if (!SaveEntry(ParsedInternalKey(user_key_, operand.seq, kTypeMerge),
                   operand.value, &matched, read_status, deltas->pins(),
                   /*same_file_reader=*/nullptr)) {
      return false;
    }
  }
  if (read_status->ok()) {
    return true;
  }
  if (read_status->IsIncomplete()) {
    MarkKeyMayExist();
  } else {
    state_ = kCorrupt;
  }
  return false;
}

bool GetContext::PointReadNeedsSequence() const {
  return point_read_->NeedsSequence();
}

// The entries that follow come from the row cache, without their sequence
// numbers.
void GetContext::OnReplay() {
  if (point_read_ != nullptr) {
    point_read_->OnReplay();
  }
}

}  // namespace ROCKSDB_NAMESPACE
