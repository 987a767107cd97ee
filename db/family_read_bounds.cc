//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/family_read_bounds.h"

#include <algorithm>

#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

void FamilyReadBounds::MergeInto(std::vector<SequenceNumber>* snapshots) const {
  shared_->MergeInto(snapshots);
  TEST_SYNC_POINT("FamilyReadBounds::MergeInto:Shared");
  if (own_ != nullptr) {
    own_->MergeInto(snapshots);
  }
}

SequenceNumber FamilyReadBounds::Min() const {
  const SequenceNumber min = shared_->Min();
  TEST_SYNC_POINT("FamilyReadBounds::Min:Shared");
  return own_ == nullptr ? min : std::min(min, own_->Min());
}

FamilyReadBounds::Blocker FamilyReadBounds::NotifyWhenNoneBelow(
    SequenceNumber limit) const {
  if (shared_->NotifyWhenNoneBelow(limit)) {
    return Blocker::kShared;
  }
  if (own_ != nullptr && own_->NotifyWhenNoneBelow(limit)) {
    return Blocker::kOwn;
  }
  return Blocker::kNone;
}

}  // namespace ROCKSDB_NAMESPACE
