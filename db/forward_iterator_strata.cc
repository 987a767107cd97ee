//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// How a tailing iterator continues when a new SuperVersion is installed while
// it is among the operands of a key. In the new SuperVersion, the operands that
// were read may be part of a value, or of a single operand, whose internal key
// may be a different one or the same. The reader would apply them twice, or
// never see the remaining operands.

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

const Version* ForwardIterator::current_version() const { return sv_->current; }

}  // namespace ROCKSDB_NAMESPACE
