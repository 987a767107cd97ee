//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Sweeps of committed range deletions in column families with an address map:
// when they run. BackgroundRangeSweep says what one does.

#include <memory>

#include "db/column_family.h"
#include "db/strata/background_range_sweep.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

void DBStrata::ScheduleRangeSweeps() {
  db_->mutex_.AssertHeld();
  // One at a time: compactions want their threads.
  if (scheduler_.NumJobs(BackgroundJob::Kind::kRangeSweep) > 0 ||
      !scheduler_.MayStart(BackgroundJob::Kind::kRangeSweep)) {
    return;
  }
  ColumnFamilyData* next = nullptr;
  while (next == nullptr) {
    if (!map_work_.HasSweepDue()) {
      return;
    }
    // nullptr: it was dropped.
    next = db_->versions_->GetColumnFamilySet()->GetColumnFamily(
        map_work_.TakeSweepDue());
  }
  scheduler_.Schedule(std::make_unique<BackgroundRangeSweep>(this, next));
}

}  // namespace ROCKSDB_NAMESPACE
