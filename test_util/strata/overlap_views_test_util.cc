//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_views_test_util.h"

#include <utility>

namespace ROCKSDB_NAMESPACE {

void OverlapViews::Add(std::unique_ptr<OverlapView> view) {
  views_.push_back(std::move(view));
}

void OverlapViews::Tend(OverlapDice* dice) {
  for (auto it = views_.begin(); it != views_.end();) {
    if ((*it)->IsDue()) {
      (*it)->Check(dice);
      it = views_.erase(it);
    } else {
      ++it;
    }
  }
  if (!views_.empty()) {
    OverlapView* const view = views_[dice->Below(views_.size())].get();
    view->MaybeRefresh(dice);
    view->Check(dice);
  }
}

void OverlapViews::EndAll(OverlapDice* dice) {
  for (auto& view : views_) {
    view->Check(dice);
    view->End();
  }
  views_.clear();
}

}  // namespace ROCKSDB_NAMESPACE
