//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// How a tailing iterator continues when a new SuperVersion is installed.
//
// Among the operands of a key: in the new SuperVersion, the operands that were
// read may be part of a value, or of a single operand, whose internal key may
// be a different one or the same. The reader would apply them twice, or never
// see the remaining operands. So the iterator takes the new SuperVersion behind
// the key.
//
// At another entry: in the new SuperVersion, the entry may have another type,
// and with it another internal key. A flush moves a value to a blob file, a
// compaction moves it back to an SST file, or a compaction filter replaces an
// entity by a value. So the entry is recognized by its user key and its
// sequence number.

#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/forward_iterator.h"

namespace ROCKSDB_NAMESPACE {

bool ForwardIterator::StayAmongOperands() {
  if (ExtractValueType(key()) != kTypeMerge) {
    return false;
  }
  operands_key_ = ExtractUserKey(key()).ToString();
  stays_ = true;
  return true;
}

void ForwardIterator::LeaveOperands() {
  stays_ = false;
  if (!status().ok() || (valid_ && user_comparator_->Equal(
                                       ExtractUserKey(key()), operands_key_))) {
    return;
  }
  RenewIterators();
  // Seeks behind all entries of the key: kTypeDeletion is the smallest type.
  const InternalKey last(operands_key_, /*_s=*/0, kTypeDeletion);
  SeekInternal(last.Encode(), /*seek_to_first=*/false,
               /*seek_after_async_io=*/false);
  if (read_options_.async_io) {
    SeekInternal(last.Encode(), /*seek_to_first=*/false,
                 /*seek_after_async_io=*/true);
  }
}

bool ForwardIterator::IsAtEntry(const Slice& internal_key) const {
  return GetInternalKeySeqno(key()) == GetInternalKeySeqno(internal_key) &&
         user_comparator_->Equal(ExtractUserKey(key()),
                                 ExtractUserKey(internal_key));
}

const Version* ForwardIterator::current_version() const { return sv_->current; }

}  // namespace ROCKSDB_NAMESPACE
