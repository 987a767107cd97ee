//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What DBImpl does while it recovers from a background error, and afterwards.

#include <algorithm>
#include <cassert>

#include "db/column_family.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_store.h"
#include "db/path_layout/misplaced_files.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

void DBStrata::WaitForJobsBeforeRecovery() {
  db_->mutex_.AssertHeld();
  DropQueuedFlushes();
  ++num_waiting_recoveries_;
  // A manual recovery lets background work go on, so an atomic flush does not
  // take the error for a reason to give up. But it may wait for memtables whose
  // flush has failed, and only the recovery flushes them.
  db_->atomic_flush_install_cv_.SignalAll();
  db_->WaitForBackgroundWork();
  --num_waiting_recoveries_;
}

void DBStrata::DropQueuedFlushes() {
  db_->mutex_.AssertHeld();
  while (!db_->flush_queue_.empty()) {
    const DBImpl::FlushRequest request = db_->PopFirstFromFlushQueue();
    for (const auto& [cfd, memtable_id] :
         request.cfd_to_max_mem_id_to_persist) {
      cfd->UnrefAndTryDelete();
    }
  }
  db_->unscheduled_flushes_ = 0;
}

void DBStrata::RaiseQueuedFlush(const DBImpl::FlushRequest& request) {
  db_->mutex_.AssertHeld();
  assert(!request.atomic_flush);
  if (request.flush_reason != FlushReason::kErrorRecovery &&
      request.flush_reason != FlushReason::kErrorRecoveryRetryFlush) {
    return;
  }
  const auto& [cfd, memtable_id] =
      *request.cfd_to_max_mem_id_to_persist.begin();
  for (DBImpl::FlushRequest& queued : db_->flush_queue_) {
    if (queued.atomic_flush ||
        queued.cfd_to_max_mem_id_to_persist.begin()->first != cfd) {
      continue;
    }
    queued.flush_reason = request.flush_reason;
    uint64_t& queued_id = queued.cfd_to_max_mem_id_to_persist.begin()->second;
    queued_id = std::max(queued_id, memtable_id);
    // The request may have lost its turn, see ScheduleAfterRecovery().
    db_->unscheduled_flushes_ = std::max(
        db_->unscheduled_flushes_, static_cast<int>(db_->flush_queue_.size()));
    TEST_SYNC_POINT("DBStrata::RaiseQueuedFlush:Raised");
    return;
  }
}

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
    if (cfd->delta_store() != nullptr) {
      // Picks have left folds alone, see BackgroundDeltaJob::AreFoldsAllowed().
      cfd->delta_store()->jobs().SetCollectionDue();
    }
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
