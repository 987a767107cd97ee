//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What DBImpl does when a background error was cleared.

#include <algorithm>

#include "db/column_family.h"
#include "db/path_layout/misplaced_files.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

void DBStrata::ScheduleAfterRecovery() {
  db_->mutex_.AssertHeld();
  TEST_SYNC_POINT("DBStrata::ScheduleAfterRecovery");
  if (db_->shutdown_initiated_) {
    return;
  }
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->IsDropped() || !cfd->initialized()) {
      continue;
    }
    // A compaction that failed has left the compaction queue, and the scores do
    // not count the files that it had taken.
    cfd->current()->storage_info()->ComputeCompactionScore(
        cfd->ioptions(), cfd->GetLatestMutableCFOptions(),
        cfd->GetFullHistoryTsLow());
    MisplacedFiles::FindAfterFailure(cfd);
    db_->EnqueuePendingCompaction(cfd);
  }
  // A flush that began while background work was stopped has left its request
  // in the queue, but is not counted any more.
  db_->unscheduled_flushes_ = std::max(
      db_->unscheduled_flushes_, static_cast<int>(db_->flush_queue_.size()));
  SetBlobGcDue();
  SetDeltaJobsDue();
  // Memtables whose flush requests were dropped while background work was
  // stopped. The call also schedules what was enqueued above. It waits for
  // nothing, so its status is OK.
  db_->RetryFlushesForErrorRecovery(FlushReason::kCatchUpAfterErrorRecovery,
                                    /*wait=*/false)
      .PermitUncheckedError();
  if (UNLIKELY(has_address_maps_)) {
    ScheduleMapRemovals();
  }
}

}  // namespace ROCKSDB_NAMESPACE
