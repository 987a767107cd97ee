//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/family_implicit_snapshots.h"

#include <algorithm>

#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

void FamilyImplicitSnapshots::MergeInto(
    std::vector<SequenceNumber>* snapshots) const {
  shared_->MergeInto(snapshots);
  TEST_SYNC_POINT("FamilyImplicitSnapshots::MergeInto:Shared");
  if (own_ != nullptr) {
    own_->MergeInto(snapshots);
  }
}

SequenceNumber FamilyImplicitSnapshots::Min() const {
  const SequenceNumber min = shared_->Min();
  TEST_SYNC_POINT("FamilyImplicitSnapshots::Min:Shared");
  return own_ == nullptr ? min : std::min(min, own_->Min());
}

FamilyImplicitSnapshots::Blocker FamilyImplicitSnapshots::NotifyWhenNoneBelow(
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
