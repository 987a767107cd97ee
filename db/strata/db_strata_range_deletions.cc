//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Frees the values that committed range deletions cover, in column families
// with an address map: when sweeps run. What one does is in
// db/address_map/range_deletion_sweep.*.

#include <cinttypes>
#include <memory>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/range_deletion_sweep.h"
#include "db/column_family.h"
#include "db/job_context.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/iostats_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

struct DBStrata::RangeSweepTask {
  DBStrata* strata = nullptr;
  ColumnFamilyData* cfd = nullptr;  // referenced
};

namespace {

// Entries and ranges that a job looks at: then it lets go of its Version, and
// the empty files are dropped. A few seconds.
constexpr uint64_t kMaxSweepSteps = uint64_t{1} << 22;
// After a file could not be read.
constexpr uint64_t kRetryMicros = 600 * 1000 * 1000;

}  // namespace

void DBStrata::ScheduleRangeSweeps() {
  db_->mutex_.AssertHeld();
  // One at a time: compactions want their threads.
  if (range_sweep_scheduled_ || !MayStartJobs()) {
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
  auto task = std::make_unique<RangeSweepTask>();
  task->strata = this;
  task->cfd = next;
  next->Ref();
  range_sweep_scheduled_ = true;
  ++bg_blob_gc_scheduled_;
  db_->env_->Schedule(&DBStrata::BGWorkRangeSweep, task.release(),
                      Env::Priority::LOW,
                      db_->GetTaskTag(DBImpl::TaskType::kDefault),
                      &DBStrata::UnscheduleRangeSweep);
}

void DBStrata::UnscheduleRangeSweep(void* arg) {
  // The DB is being closed: mutex_ is held.
  const std::unique_ptr<RangeSweepTask> task(static_cast<RangeSweepTask*>(arg));
  task->strata->FinishRangeSweep(*task);
}

void DBStrata::FinishRangeSweep(const RangeSweepTask& task) {
  db_->mutex_.AssertHeld();
  task.cfd->address_map_store()->SignalWork();  // for what is left
  task.cfd->UnrefAndTryDelete();
  range_sweep_scheduled_ = false;
  --bg_blob_gc_scheduled_;
}

void DBStrata::BGWorkRangeSweep(void* arg) {
  IOSTATS_SET_THREAD_POOL_ID(Env::Priority::LOW);
  TEST_SYNC_POINT("DBStrata::BGWorkRangeSweep:Start");
  const std::unique_ptr<RangeSweepTask> task(static_cast<RangeSweepTask*>(arg));
  task->strata->BackgroundRangeSweep(*task);
}

void DBStrata::BackgroundRangeSweep(const RangeSweepTask& task) {
  JobContext job_context(db_->next_job_id_.fetch_add(1),
                         /*_create_superversion=*/true);
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    RunRangeSweep(task.cfd, &job_context);
    db_->FindObsoleteFiles(&job_context, /*force=*/false);
  }
  if (job_context.HaveSomethingToDelete()) {
    db_->PurgeObsoleteFiles(job_context);
  }
  job_context.Clean();

  InstrumentedMutexLock lock(&db_->mutex_);
  FinishRangeSweep(task);
  // For what is left, or has come.
  ScheduleMapRemovals();
  SetBlobGcDue();
  db_->MaybeScheduleFlushOrCompaction();
  // The DB may be gone once the mutex is released after this.
  db_->bg_cv_.SignalAll();
}

void DBStrata::RunRangeSweep(ColumnFamilyData* cfd, JobContext* job_context) {
  db_->mutex_.AssertHeld();
  const auto check = [this, cfd] {
    if (db_->shutting_down_.load(std::memory_order_acquire)) {
      return Status::ShutdownInProgress();
    }
    return cfd->IsDropped() ? Status::ColumnFamilyDropped() : Status::OK();
  };
  Status s = check();
  if (!s.ok()) {
    return;
  }
  AddressMapStore* const blobs = cfd->address_map_store();
  const SequenceNumber earliest = EarliestReader(*cfd);
  db_->mutex_.Unlock();
  std::vector<CommittedRangeDeletion> deletions =
      blobs->range_deletions()->Take(earliest);
  const size_t num_deletions = deletions.size();
  db_->mutex_.Lock();
  // After they were taken: it has what they were committed with.
  Version* const version = cfd->current();
  version->Ref();
  db_->mutex_.Unlock();

  TEST_SYNC_POINT("DBStrata::RunRangeSweep:Begin");
  const uint64_t started = db_->immutable_db_options_.clock->NowMicros();
  RangeDeletionSweep sweep(
      cfd, version,
      db_->fs_->OptimizeForCompactionTableRead(
          db_->file_options_for_compaction_, db_->immutable_db_options_),
      check);
  s = sweep.Run(kMaxSweepSteps, &deletions);
  TEST_SYNC_POINT("DBStrata::RunRangeSweep:End");
  const uint64_t now = db_->immutable_db_options_.clock->NowMicros();
  const bool failed =
      !s.ok() && !s.IsShutdownInProgress() && !s.IsColumnFamilyDropped();
  RecordTick(db_->stats_, BLOB_MAP_RANGE_DELETED, sweep.values_removed());
  ROCKS_LOG_INFO(
      db_->immutable_db_options_.info_log,
      "[%s] [JOB %d] Freed the values under %zu range deletions: read "
      "%" PRIu64 " keys, %" PRIu64 " values, %" PRIu64 " ms; %zu are left: %s",
      cfd->GetName().c_str(), job_context->job_id, num_deletions,
      sweep.entries_read(), sweep.values_removed(), (now - started) / 1000,
      deletions.size(), s.ToString().c_str());
  if (!deletions.empty()) {
    blobs->range_deletions()->PutBack(std::move(deletions),
                                      failed ? now + kRetryMicros : 0);
  }

  db_->mutex_.Lock();
  version->Unref();
  DropEmptyBlobFiles(cfd, Env::IOActivity::kCompaction,
                     job_context->superversion_contexts.data());
}

}  // namespace ROCKSDB_NAMESPACE
