//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "db/blob/blob_fetcher.h"
#include "db/dbformat.h"
#include "db/delta/delta_read.h"
#include "table/get_context.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

bool GetContext::DrainDeltas(const ParsedInternalKey& entry, const Slice& value,
                             Status* read_status) {
  blob_ahead_.reset();
  if (entry.type == kTypeBlobIndex && delta_read_->IsReadAhead()) {
    ReadBlobAhead(entry, value);
  }
  return DrainDeltas(entry.sequence, read_status);
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
    blob_ahead_ = std::move(blob);
  } else {
    // The value is read again when it is needed, and the error is handled
    // there.
    IGNORE_STATUS_IF_ERROR(s);
    s.PermitUncheckedError();
  }
}

bool GetContext::TakeBlobAhead(PinnableSlice* blob) {
  if (blob_ahead_ == nullptr) {
    return false;
  }
  *blob = std::move(*blob_ahead_);
  blob_ahead_.reset();
  return true;
}

bool GetContext::DrainDeltas(SequenceNumber above, Status* read_status) {
  if (max_covering_tombstone_seq_ != nullptr) {
    above = std::max(above, *max_covering_tombstone_seq_);
  }
  // An operand is saved as if it came from a file. SaveValue() must not pass it
  // to the map, and must not call this function again.
  MapPointRead* const map_read = std::exchange(map_read_, nullptr);
  DeltaRead* const delta_read = std::exchange(delta_read_, nullptr);
  assert(delta_read != nullptr);
  const bool is_only_seq =
      do_merge_ && pinnable_val_ == nullptr && columns_ == nullptr;
  bool goes_on = true;
  DeltaRead::Operand operand;
  while (goes_on && delta_read->Next(above, &operand, read_status)) {
    if (is_only_seq) {
      // Only the newest sequence number is requested, not the value.
      if (seq_ != nullptr &&
          (*seq_ == kMaxSequenceNumber || *seq_ < operand.seq)) {
        *seq_ = operand.seq;
      }
      state_ = kFound;
      goes_on = false;
    } else {
      bool matched = false;
      goes_on =
          SaveValue(ParsedInternalKey(user_key_, operand.seq, kTypeMerge),
                    operand.value, &matched, read_status, delta_read->pins());
    }
  }
  if (goes_on && !read_status->ok()) {
    if (read_status->IsIncomplete()) {
      MarkKeyMayExist();
    } else {
      state_ = kCorrupt;
    }
    goes_on = false;
  }
  map_read_ = map_read;
  delta_read_ = delta_read;
  return goes_on;
}

}  // namespace ROCKSDB_NAMESPACE
