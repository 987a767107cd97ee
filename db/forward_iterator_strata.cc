//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// How a tailing iterator goes on when there is a new SuperVersion while it is
// among the operands of a key. The operands that were read may be part of a
// value in the new one, or of one operand, whose internal key is another one or
// the same: the reader would apply them twice, or never see the rest.

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
  // Behind all that it may have of the key: this is the smallest type.
  const InternalKey last(operands_key_, /*_s=*/0, kTypeDeletion);
  SeekInternal(last.Encode(), /*seek_to_first=*/false,
               /*seek_after_async_io=*/false);
  if (read_options_.async_io) {
    SeekInternal(last.Encode(), /*seek_to_first=*/false,
                 /*seek_after_async_io=*/true);
  }
}

}  // namespace ROCKSDB_NAMESPACE
