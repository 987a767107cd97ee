//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_job_state.h"

namespace ROCKSDB_NAMESPACE {

bool DeltaJobState::Overlap(const KeyRange& a, const KeyRange& b,
                            const Comparator* ucmp) {
  return !a.EndsBefore(b, ucmp) && !b.EndsBefore(a, ucmp);
}

void DeltaJobState::AddWishes(const DeltaFoldWishes& wishes, uint64_t below,
                              const Comparator* ucmp) {
  auto all = wishes_ == nullptr ? std::make_shared<DeltaFoldWishes>()
                                : std::make_shared<DeltaFoldWishes>(*wishes_);
  all->AddAllOf(wishes, ucmp);
  wishes_ = std::move(all);
  new_wishes_.AddAllOf(wishes, ucmp);
  wishes_below_ = std::max(wishes_below_, below);
  SetCollectionDue();
}

void DeltaJobState::FulfilWishes(const KeyRange& range,
                                 const Comparator* ucmp) {
  if (wishes_ == nullptr || !wishes_->Overlaps(range, ucmp)) {
    return;
  }
  auto rest = std::make_shared<DeltaFoldWishes>(*wishes_);
  rest->Remove(range, ucmp);
  rest->AddAllOf(new_wishes_, ucmp);
  wishes_ = rest->empty() ? nullptr : std::move(rest);
}

}  // namespace ROCKSDB_NAMESPACE
