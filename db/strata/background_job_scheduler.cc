//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/background_job_scheduler.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "db/job_context.h"
#include "monitoring/iostats_context_imp.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kBackOffMicros = 1000 * 1000;
constexpr uint64_t kMaxWaitForOthersMicros = 100 * 1000;

}  // namespace

const BackgroundJobScheduler::Traits& BackgroundJobScheduler::TraitsOf(
    Kind kind) {
  static constexpr std::array<Traits, BackgroundJob::kNumKinds> kTraits{{
      // kBlobGc
      {.start_point = "BackgroundJobScheduler::Work:BlobGc",
       .io_stats_pool = Env::Priority::LOW,
       .is_refused = true,
       .is_aborted = false,
       .is_unscheduled = true,
       .backs_off = true,
       .keeps_family_to_the_end = false,
       .counts_to_the_end = true,
       .manual_checks_errors_first = false},
      // kRangeSweep
      {.start_point = "BackgroundJobScheduler::Work:RangeSweep",
       .io_stats_pool = Env::Priority::LOW,
       .is_refused = true,
       .is_aborted = false,
       .is_unscheduled = true,
       .backs_off = false,  // RangeDeletionQueue::PutBack() says when
       .keeps_family_to_the_end = true,
       .counts_to_the_end = true,
       .manual_checks_errors_first = false},
      // kMapRemovals
      {.start_point = "BackgroundJobScheduler::Work:MapRemovals",
       .io_stats_pool = Env::Priority::HIGH,
       .is_refused = false,
       .is_aborted = false,
       .is_unscheduled = false,
       .backs_off = false,
       .keeps_family_to_the_end = false,
       .counts_to_the_end = false,
       .manual_checks_errors_first = false},
      // kDelta
      {.start_point = "BackgroundJobScheduler::Work:Delta",
       .io_stats_pool = Env::Priority::LOW,
       .is_refused = true,
       .is_aborted = true,
       .is_unscheduled = true,
       .backs_off = false,  // DeltaJobBackoff::MayRun() says when
       .keeps_family_to_the_end = false,
       .counts_to_the_end = true,
       .manual_checks_errors_first = true},
  }};
  return kTraits[Index(kind)];
}

bool BackgroundJobScheduler::MayStart(Kind kind) const {
  host_->mutex()->AssertHeld();
  const Traits& traits = TraitsOf(kind);
  // A pause begins with that of compactions, and then waits for jobs.
  if (!host_->IsOpen() || host_->IsWorkPaused() ||
      host_->AreCompactionsPaused() || host_->IsShuttingDown() ||
      !host_->StoppingError().ok()) {
    return false;
  }
  if (traits.is_refused && host_->RefusesNewJobs()) {
    return false;
  }
  return !traits.is_aborted || !host_->AreCompactionsAborted();
}

Status BackgroundJobScheduler::CheckToStop(const BackgroundJob& job) const {
  if (host_->IsShuttingDown()) {
    return Status::ShutdownInProgress();
  }
  if (job.cfd() != nullptr && host_->IsDropped(job.cfd())) {
    return Status::ColumnFamilyDropped();
  }
  if (job.is_manual() && (host_->AreManualJobsPaused() || job.IsCanceled())) {
    return Status::Incomplete(Status::SubCode::kManualCompactionPaused);
  }
  if ((job.is_manual() || TraitsOf(job.kind()).is_aborted) &&
      host_->AreCompactionsAborted()) {
    return Status::Incomplete(Status::SubCode::kCompactionAborted);
  }
  return Status::OK();
}

Status BackgroundJobScheduler::CheckToStart(const BackgroundJob& job) const {
  host_->mutex()->AssertHeld();
  Status s = CheckToStop(job);
  if (s.ok()) {
    s = host_->StoppingError();
  }
  return s;
}

bool BackgroundJobScheduler::HasUnpausedJobs() const {
  host_->mutex()->AssertHeld();
  return std::any_of(counts_.begin(), counts_.end(), [](const Counts& counts) {
    return counts.all > counts.late;
  });
}

bool BackgroundJobScheduler::HasJobsOf(bool Traits::*trait) const {
  host_->mutex()->AssertHeld();
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i].all > 0 && TraitsOf(static_cast<Kind>(i)).*trait) {
      return true;
    }
  }
  return false;
}

void BackgroundJobScheduler::WaitForOthers() {
  host_->mutex()->AssertHeld();
  host_->cv()->TimedWait(host_->clock()->NowMicros() + kMaxWaitForOthersMicros);
}

void BackgroundJobScheduler::Schedule(std::unique_ptr<BackgroundJob> job,
                                      Env::Priority pool) {
  host_->mutex()->AssertHeld();
  assert(!job->is_manual());
  job->scheduler_ = this;
  if (job->cfd() != nullptr) {
    host_->Ref(job->cfd());
  }
  const Kind kind = job->kind();
  ++counts_[Index(kind)].all;
  host_->StartThread(pool, &BackgroundJobScheduler::Work, job.release(),
                     TraitsOf(kind).is_unscheduled
                         ? &BackgroundJobScheduler::Unschedule
                         : nullptr);
}

void BackgroundJobScheduler::Unschedule(void* arg) {
  std::unique_ptr<BackgroundJob> job(static_cast<BackgroundJob*>(arg));
  BackgroundJobScheduler* const scheduler = job->scheduler_;
  scheduler->host_->mutex()->AssertHeld();
  scheduler->Release(job.get(), /*has_run=*/false);
  --scheduler->counts_[Index(job->kind())].all;
}

void BackgroundJobScheduler::Work(void* arg) {
  std::unique_ptr<BackgroundJob> job(static_cast<BackgroundJob*>(arg));
  BackgroundJobScheduler* const scheduler = job->scheduler_;
  IOSTATS_SET_THREAD_POOL_ID(TraitsOf(job->kind()).io_stats_pool);
  TEST_SYNC_POINT(TraitsOf(job->kind()).start_point);
  scheduler->RunInBackground(std::move(job));
}

void BackgroundJobScheduler::RunInBackground(
    std::unique_ptr<BackgroundJob> job) {
  const Traits& traits = TraitsOf(job->kind());
  Counts* const counts = &counts_[Index(job->kind())];
  JobContext job_context(host_->NewJobId(), /*_create_superversion=*/true);
  Status s;
  bool was_last_reference = false;
  {
    InstrumentedMutexLock lock(host_->mutex());
    TEST_SYNC_POINT_CALLBACK(
        "BackgroundJobScheduler::RunInBackground:BeforeRun", job.get());
    s = host_->Run(job.get(), &job_context);
    TEST_SYNC_POINT_CALLBACK("BackgroundJobScheduler::RunInBackground:AfterRun",
                             job.get());
    if (!traits.keeps_family_to_the_end) {
      was_last_reference = Release(job.get(), /*has_run=*/true);
    }
    if (traits.backs_off && !s.ok() && !s.IsShutdownInProgress() &&
        !s.IsColumnFamilyDropped()) {
      BackOff();
    }
    if (!traits.counts_to_the_end) {
      --counts->all;
      // Waiters for the job do not wait for the deletion of its files.
      host_->cv()->SignalAll();
    }
    job->AfterRun();
  }
  Purge(&job_context);
  job->AfterPurge();

  InstrumentedMutexLock lock(host_->mutex());
  if (traits.keeps_family_to_the_end) {
    was_last_reference = Release(job.get(), /*has_run=*/true);
  }
  if (was_last_reference) {
    PurgeDroppedFamily();
  }
  if (traits.counts_to_the_end) {
    --counts->all;
  }
  job->OnEnd(s);
  job.reset();
  s.PermitUncheckedError();
  // The DB may be gone once the mutex is released after this.
  host_->cv()->SignalAll();
}

bool BackgroundJobScheduler::Release(BackgroundJob* job, bool has_run) {
  job->GiveBack(has_run);
  return job->cfd() != nullptr && host_->Unref(job->cfd());
}

void BackgroundJobScheduler::PurgeDroppedFamily() {
  host_->mutex()->AssertHeld();
  // A job has looked for obsolete files while it had the reference.
  JobContext job_context(host_->NewJobId());
  host_->FindObsoleteFiles(&job_context);
  host_->mutex()->Unlock();
  Purge(&job_context);
  host_->mutex()->Lock();
}

void BackgroundJobScheduler::BackOff() {
  host_->cv()->SignalAll();
  host_->mutex()->Unlock();
  host_->clock()->SleepForMicroseconds(kBackOffMicros);
  host_->mutex()->Lock();
}

void BackgroundJobScheduler::Purge(JobContext* job_context) {
  if (job_context->HaveSomethingToDelete()) {
    host_->PurgeObsoleteFiles(job_context);
  }
  job_context->Clean();
}

void BackgroundJobScheduler::BeginManualCall(ColumnFamilyData* cfd) {
  host_->mutex()->AssertHeld();
  ++num_manual_calls_;
  host_->Ref(cfd);
}

void BackgroundJobScheduler::EndManualCall(ColumnFamilyData* cfd) {
  host_->mutex()->AssertHeld();
  if (host_->Unref(cfd)) {
    PurgeDroppedFamily();
  }
  --num_manual_calls_;
  host_->cv()->SignalAll();
}

Status BackgroundJobScheduler::RunManual(BackgroundJob* job) {
  assert(job->is_manual());
  JobContext job_context(host_->NewJobId(), /*_create_superversion=*/true);
  Status s;
  {
    InstrumentedMutexLock lock(host_->mutex());
    s = RunManualLocked(job, &job_context);
  }
  Purge(&job_context);
  return s;
}

Status BackgroundJobScheduler::RunManualLocked(BackgroundJob* job,
                                               JobContext* job_context) {
  Status s = CheckManual(*job);
  if (!s.ok()) {
    return s;
  }
  switch (job->Prepare()) {
    case BackgroundJob::Readiness::kReady:
      break;
    case BackgroundJob::Readiness::kOthersFirst:
      WaitForOthers();
      return s;
    case BackgroundJob::Readiness::kNothingToDo:
      return s;
  }
  Counts* const counts = &counts_[Index(job->kind())];
  const int late = host_->AreCompactionsPaused() ? 1 : 0;
  ++counts->all;
  ++counts->manual;
  counts->late += late;
  s = host_->Run(job, job_context);
  counts->late -= late;
  --counts->manual;
  --counts->all;
  const bool waits = job->OnManualEnd(s);
  // Also if the job has found nothing: another one may wait for what this one
  // has held while it looked.
  host_->cv()->SignalAll();
  if (waits) {
    WaitForMore(*job);
  }
  return s;
}

Status BackgroundJobScheduler::CheckManual(const BackgroundJob& job) const {
  return TraitsOf(job.kind()).manual_checks_errors_first ? CheckToStart(job)
                                                         : CheckToStop(job);
}

void BackgroundJobScheduler::WaitForMore(const BackgroundJob& job) {
  // The job may be canceled without a signal, so the waits have a time limit.
  while (!job.MayFindMore() && CheckManual(job).ok()) {
    WaitForOthers();
  }
}

}  // namespace ROCKSDB_NAMESPACE
