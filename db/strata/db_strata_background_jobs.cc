//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What the BackgroundJobScheduler needs of DBImpl, and the threads for its
// jobs.

#include <memory>

#include "db/column_family.h"
#include "db/job_context.h"
#include "db/path_layout/path_job_stats.h"
#include "db/strata/background_blob_gc.h"
#include "db/strata/background_delta_job.h"
#include "db/strata/background_job_scheduler.h"
#include "db/strata/db_strata.h"
#include "monitoring/thread_status_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

class DBStrata::BackgroundJobHost : public BackgroundJobScheduler::Host {
 public:
  explicit BackgroundJobHost(DBImpl* db) : db_(db) {}

  InstrumentedMutex* mutex() override { return &db_->mutex_; }
  InstrumentedCondVar* cv() override { return &db_->bg_cv_; }
  SystemClock* clock() override { return db_->immutable_db_options_.clock; }

  bool IsOpen() const override {
    return db_->opened_successfully_ && !db_->read_only_;
  }
  bool IsWorkPaused() const override { return db_->bg_work_paused_ > 0; }
  bool AreCompactionsPaused() const override {
    return db_->bg_compaction_paused_ > 0;
  }
  bool RefusesNewJobs() const override {
    return db_->reject_new_background_jobs_;
  }
  Status StoppingError() const override {
    return db_->error_handler_.IsBGWorkStopped()
               ? db_->error_handler_.GetBGError()
               : Status::OK();
  }
  bool IsShuttingDown() const override {
    return db_->shutting_down_.load(std::memory_order_acquire);
  }
  bool AreManualJobsPaused() const override {
    return db_->manual_compaction_paused_.load(std::memory_order_acquire) > 0;
  }
  bool AreCompactionsAborted() const override {
    return db_->compaction_aborted_.load(std::memory_order_acquire) > 0;
  }
  bool IsDropped(ColumnFamilyData* cfd) const override {
    return cfd->IsDropped();
  }
  void Ref(ColumnFamilyData* cfd) override { cfd->Ref(); }
  bool Unref(ColumnFamilyData* cfd) override {
    return cfd->UnrefAndTryDelete();
  }
  int NewJobId() override { return db_->next_job_id_.fetch_add(1); }
  void StartThread(Env::Priority pool, void (*work)(void*), void* job,
                   void (*unschedule)(void*)) override {
    // Without a function that gives the job back, the pool must run it.
    void* const tag = unschedule == nullptr
                          ? nullptr
                          : db_->GetTaskTag(DBImpl::TaskType::kDefault);
    db_->env_->Schedule(work, job, pool, tag, unschedule);
  }
  void FindObsoleteFiles(JobContext* job_context) override {
    db_->FindObsoleteFiles(job_context, /*force=*/false, /*no_full_scan=*/true);
  }
  void PurgeObsoleteFiles(JobContext* job_context) override {
    db_->PurgeObsoleteFiles(*job_context);
  }
  Status Run(BackgroundJob* job, JobContext* job_context) override {
    const PathJobScope path_job(job->kind() == BackgroundJob::Kind::kDelta
                                    ? PathJob::kDelta
                                    : PathJob::kBlobGc,
                                job->cfd());
    // A job of another DB may have run in this thread before.
    ThreadStatusUtil::SetEnableTracking(
        db_->immutable_db_options_.enable_thread_tracking);
    return job->Run(job_context);
  }

 private:
  DBImpl* const db_;
};

std::unique_ptr<BackgroundJobScheduler::Host> DBStrata::NewBackgroundJobHost() {
  return std::make_unique<BackgroundJobHost>(db_);
}

bool DBStrata::HasUnpausedWork() const {
  const bool has_work = scheduler_.HasUnpausedJobs();
  if (has_work) {
    TEST_SYNC_POINT("DBStrata::HasUnpausedWork:Waits");
  }
  return has_work;
}

bool DBStrata::HasAbortedJobs() const {
  const bool has_jobs = scheduler_.HasAbortedJobs();
  if (has_jobs) {
    TEST_SYNC_POINT("DBStrata::HasAbortedJobs:Waits");
  }
  return has_jobs;
}

Status DBStrata::CheckNotClosing() const {
  db_->mutex_.AssertHeld();
  return background_job_host_->IsShuttingDown() ? Status::ShutdownInProgress()
                                                : Status::OK();
}

Status DBStrata::BeginManualCall(ColumnFamilyData* cfd) {
  Status s = CheckNotClosing();
  if (s.ok()) {
    scheduler_.BeginManualCall(cfd);
  }
  return s;
}

void DBStrata::AddThreads() {
  db_->mutex_.AssertHeld();
  const MutableDBOptions& options = db_->mutable_db_options_;
  int num_jobs = 0;
  if (has_address_maps_) {
    // One more, for the sweep of range deletions.
    num_jobs += BackgroundBlobGc::MaxJobs(options.max_background_jobs,
                                          /*above_limit=*/true) +
                1;
  }
  if (has_delta_stores_) {
    num_jobs += BackgroundDeltaJob::MaxJobs(options.max_background_jobs);
  }
  if (num_jobs > 0) {
    const DBImpl::BGJobLimits limits = DBImpl::GetBGJobLimits(
        options.max_background_flushes, options.max_background_compactions,
        options.max_background_jobs, /*parallelize_compactions=*/true);
    db_->env_->IncBackgroundThreadsIfNeeded(limits.max_compactions + num_jobs,
                                            Env::Priority::LOW);
  }
}

}  // namespace ROCKSDB_NAMESPACE
