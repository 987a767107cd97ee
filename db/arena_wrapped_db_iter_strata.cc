//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/arena_wrapped_db_iter.h"

namespace ROCKSDB_NAMESPACE {

SequenceNumber ArenaWrappedDBIter::RenewReadBound(const Snapshot* snapshot) {
  if (!read_bound_.registered()) {
    return kMaxSequenceNumber;
  }
  if (snapshot != nullptr) {
    return read_bound_.RenewAt(snapshot->GetSequenceNumber());
  }
  return read_bound_.Renew(
      [this] { return db_impl_->GetLatestSequenceNumber(); });
}

}  // namespace ROCKSDB_NAMESPACE
