//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_view_test_util.h"

namespace ROCKSDB_NAMESPACE {

// The views that one thread keeps while it does other things.
//
// Not thread-safe.
class OverlapViews {
 public:
  void Add(std::unique_ptr<OverlapView> view);
  size_t size() const { return views_.size(); }

  // Ends views that are due, and reads one of the others.
  // REQUIRES: see OverlapView::MaybeRefresh()
  void Tend(OverlapDice* dice);

  // Checks all views for the last time and ends them.
  void EndAll(OverlapDice* dice);

 private:
  std::deque<std::unique_ptr<OverlapView>> views_;
};

}  // namespace ROCKSDB_NAMESPACE
