//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Frees the values that committed range deletions cover, in column families
// with an address map: when sweeps run. What one does is in
// db/blob/range_deletion_sweep.*.

#include <cinttypes>
#include <memory>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/range_deletion_sweep.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/job_context.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/iostats_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

struct DBImpl::RangeSweepTask {
  DBImpl* db = nullptr;
  ColumnFamilyData* cfd = nullptr;  // referenced
};

namespace {

// Entries and ranges that a job looks at: then it lets go of its Version, and
// the empty files are dropped. A few seconds.
constexpr uint64_t kMaxSweepSteps = uint64_t{1} << 22;
// After a file could not be read.
constexpr uint64_t kRetryMicros = 600 * 1000 * 1000;

}  // namespace

void DBImpl::ScheduleRangeSweeps() {
  mutex_.AssertHeld();
  // One at a time: compactions want their threads.
  if (range_sweep_scheduled_ || !opened_successfully_ || read_only_ ||
      bg_work_paused_ > 0 || bg_compaction_paused_ > 0 ||
      reject_new_background_jobs_ ||
      shutting_down_.load(std::memory_order_acquire) ||
      error_handler_.IsBGWorkStopped()) {
    return;
  }
  ColumnFamilyData* next = nullptr;
  while (next == nullptr) {
    if (!map_work_.HasSweepDue()) {
      return;
    }
    // nullptr: it was dropped.
    next = versions_->GetColumnFamilySet()->GetColumnFamily(
        map_work_.TakeSweepDue());
  }
  auto task = std::make_unique<RangeSweepTask>();
  task->db = this;
  task->cfd = next;
  next->Ref();
  range_sweep_scheduled_ = true;
  ++bg_blob_gc_scheduled_;
  env_->Schedule(&DBImpl::BGWorkRangeSweep, task.release(), Env::Priority::LOW,
                 GetTaskTag(TaskType::kDefault), &DBImpl::UnscheduleRangeSweep);
}

void DBImpl::UnscheduleRangeSweep(void* arg) {
  // The DB is being closed: mutex_ is held.
  const std::unique_ptr<RangeSweepTask> task(static_cast<RangeSweepTask*>(arg));
  task->db->FinishRangeSweep(*task);
}

void DBImpl::FinishRangeSweep(const RangeSweepTask& task) {
  mutex_.AssertHeld();
  task.cfd->address_map_store()->SignalWork();  // for what is left
  task.cfd->UnrefAndTryDelete();
  range_sweep_scheduled_ = false;
  --bg_blob_gc_scheduled_;
}

void DBImpl::BGWorkRangeSweep(void* arg) {
  IOSTATS_SET_THREAD_POOL_ID(Env::Priority::LOW);
  TEST_SYNC_POINT("DBImpl::BGWorkRangeSweep:Start");
  const std::unique_ptr<RangeSweepTask> task(static_cast<RangeSweepTask*>(arg));
  task->db->BackgroundRangeSweep(*task);
}

void DBImpl::BackgroundRangeSweep(const RangeSweepTask& task) {
  JobContext job_context(next_job_id_.fetch_add(1),
                         /*_create_superversion=*/true);
  {
    InstrumentedMutexLock lock(&mutex_);
    RunRangeSweep(task.cfd, &job_context);
    FindObsoleteFiles(&job_context, /*force=*/false);
  }
  if (job_context.HaveSomethingToDelete()) {
    PurgeObsoleteFiles(job_context);
  }
  job_context.Clean();

  InstrumentedMutexLock lock(&mutex_);
  FinishRangeSweep(task);
  // For what is left, or has come.
  ScheduleMapRemovals();
  SetBlobGcDue();
  MaybeScheduleFlushOrCompaction();
  // The DB may be gone once the mutex is released after this.
  bg_cv_.SignalAll();
}

void DBImpl::RunRangeSweep(ColumnFamilyData* cfd, JobContext* job_context) {
  mutex_.AssertHeld();
  const auto check = [this, cfd] {
    if (shutting_down_.load(std::memory_order_acquire)) {
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
  mutex_.Unlock();
  std::vector<CommittedRangeDeletion> deletions =
      blobs->range_deletions()->Take(earliest);
  const size_t num_deletions = deletions.size();
  mutex_.Lock();
  // After they were taken: it has what they were committed with.
  Version* const version = cfd->current();
  version->Ref();
  mutex_.Unlock();

  TEST_SYNC_POINT("DBImpl::RunRangeSweep:Begin");
  const uint64_t started = immutable_db_options_.clock->NowMicros();
  RangeDeletionSweep sweep(
      cfd, version,
      fs_->OptimizeForCompactionTableRead(file_options_for_compaction_,
                                          immutable_db_options_),
      check);
  s = sweep.Run(kMaxSweepSteps, &deletions);
  TEST_SYNC_POINT("DBImpl::RunRangeSweep:End");
  const uint64_t now = immutable_db_options_.clock->NowMicros();
  const bool failed =
      !s.ok() && !s.IsShutdownInProgress() && !s.IsColumnFamilyDropped();
  RecordTick(stats_, BLOB_MAP_RANGE_DELETED, sweep.values_removed());
  ROCKS_LOG_INFO(
      immutable_db_options_.info_log,
      "[%s] [JOB %d] Freed the values under %zu range deletions: read "
      "%" PRIu64 " keys, %" PRIu64 " values, %" PRIu64 " ms; %zu are left: %s",
      cfd->GetName().c_str(), job_context->job_id, num_deletions,
      sweep.entries_read(), sweep.values_removed(), (now - started) / 1000,
      deletions.size(), s.ToString().c_str());
  if (!deletions.empty()) {
    blobs->range_deletions()->PutBack(std::move(deletions),
                                      failed ? now + kRetryMicros : 0);
  }

  mutex_.Lock();
  version->Unref();
  DropEmptyBlobFiles(cfd, Env::IOActivity::kCompaction,
                     job_context->superversion_contexts.data());
}

}  // namespace ROCKSDB_NAMESPACE
