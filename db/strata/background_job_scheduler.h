//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "db/strata/background_job.h"
#include "monitoring/instrumented_mutex.h"
#include "rocksdb/env.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {

// Runs Strata's jobs beside flushes and compactions: the scheduler says when
// they may start and when they must stop, has threads run them, counts them,
// and deletes the files that they leave. It does not know which jobs are due
// (its owner does) nor what they do (BackgroundJob).
//
// Invariants:
// 1. A job counts from Schedule(), or from before Run() in RunManual(), until
//    its last step that uses the DB. The DB is not closed while a job counts.
//    A job of a kind with !counts_to_the_end counts until AfterRun() only, so
//    that the next one may be scheduled; its owner keeps the DB open itself.
// 2. The end of a job is signalled with the mutex held. Nothing of the DB is
//    used once the mutex is released after that, as the DB may be gone.
// 3. A job that waits for a thread when the DB is closed does not run: the pool
//    gives it back with the mutex held. Jobs of a kind with !is_unscheduled run
//    nevertheless.
//
// Column families are opaque here.
// Thread-safe as each declaration says.
class BackgroundJobScheduler {
 public:
  using Kind = BackgroundJob::Kind;

  // The interface of the DB that the scheduler uses.
  class Host {
   public:
    virtual ~Host() = default;

    virtual InstrumentedMutex* mutex() = 0;
    // Signalled when a job ends; belongs to mutex().
    virtual InstrumentedCondVar* cv() = 0;
    virtual SystemClock* clock() = 0;

    // Returns true if the DB is open for writing.
    // REQUIRES: DB mutex held.
    virtual bool IsOpen() const = 0;
    // Returns true if all background work is paused.
    // REQUIRES: DB mutex held.
    virtual bool IsWorkPaused() const = 0;
    // Returns true if compactions are paused. So they are from when a pause of
    // all background work waits for the end of jobs.
    // REQUIRES: DB mutex held.
    virtual bool AreCompactionsPaused() const = 0;
    // Returns true if the DB is being closed and refuses new compactions.
    // REQUIRES: DB mutex held.
    virtual bool RefusesNewJobs() const = 0;
    // Returns the background error if background work is stopped.
    // REQUIRES: DB mutex held.
    virtual Status StoppingError() const = 0;

    // The following may be called with or without the mutex.
    virtual bool IsShuttingDown() const = 0;
    virtual bool AreManualJobsPaused() const = 0;
    virtual bool AreCompactionsAborted() const = 0;
    virtual bool IsDropped(ColumnFamilyData* cfd) const = 0;

    // REQUIRES: DB mutex held.
    virtual void Ref(ColumnFamilyData* cfd) = 0;
    // Returns true if the reference was the last one: the family was dropped,
    // and its files have become obsolete.
    // REQUIRES: DB mutex held.
    virtual bool Unref(ColumnFamilyData* cfd) = 0;

    virtual int NewJobId() = 0;
    // Has a thread of the pool call work(job).
    // unschedule: called with the job, and with the DB mutex held, if the DB is
    // closed before; nullptr: work() is called in any case.
    virtual void StartThread(Env::Priority pool, void (*work)(void*), void* job,
                             void (*unschedule)(void*)) = 0;
    // Adds the files that have become obsolete to the context.
    // REQUIRES: DB mutex held.
    virtual void FindObsoleteFiles(JobContext* job_context) = 0;
    // REQUIRES: DB mutex not held.
    virtual void PurgeObsoleteFiles(JobContext* job_context) = 0;
    // Calls Run() of the job; its reads and writes count for its kind and its
    // column family (PathJobScope).
    // REQUIRES: DB mutex held; it may be released and taken again.
    virtual Status Run(BackgroundJob* job, JobContext* job_context) = 0;
  };

  // How jobs of a kind are treated.
  struct Traits {
    // The sync point at the beginning of the job's thread.
    const char* start_point;
    // The pool that I/O statistics of the thread are for.
    Env::Priority io_stats_pool;
    // Starts no job while new compactions are refused.
    bool is_refused;
    // Starts no job while compactions are aborted, and stops those that run.
    // (A manual job is stopped in any case.)
    bool is_aborted;
    // A job that waits for a thread when the DB is closed does not run.
    bool is_unscheduled;
    // A thread sleeps a second after a failure, as after that of a compaction:
    // what was wrong may go away.
    bool backs_off;
    // The column family is referenced until OnEnd(), and not only until
    // AfterRun().
    bool keeps_family_to_the_end;
    // The job counts until OnEnd(), and not only until AfterRun().
    bool counts_to_the_end;
    // RunManual() asks for a background error before Prepare() is called, and
    // not only in the job.
    bool manual_checks_errors_first;
  };
  static const Traits& TraitsOf(Kind kind);

  explicit BackgroundJobScheduler(Host* host) : host_(host) {}

  BackgroundJobScheduler(const BackgroundJobScheduler&) = delete;
  BackgroundJobScheduler& operator=(const BackgroundJobScheduler&) = delete;

  // Returns true if jobs of the kind may start.
  // REQUIRES: DB mutex held.
  bool MayStart(Kind kind) const;

  // Has the job run by a thread of the pool.
  // REQUIRES: DB mutex held; MayStart(job->kind()); !job->is_manual().
  void Schedule(std::unique_ptr<BackgroundJob> job,
                Env::Priority pool = Env::Priority::LOW);

  // Runs the job in this thread, also while background work is paused: the
  // thread that has paused it may be this one. Returns OK without running it if
  // it has nothing to do, or if other jobs have to end first, after a moment in
  // which they may have ended. If the job has run and found nothing because of
  // other jobs, this returns when BackgroundJob::MayFindMore() is true, or the
  // job has to stop.
  // REQUIRES: DB mutex not held; job->is_manual(); BeginManualCall() was
  // called.
  Status RunManual(BackgroundJob* job);

  // Begins a call of the application that runs manual jobs, one after another.
  // Until its end the DB is not closed, and the column family not deleted.
  // REQUIRES: DB mutex held.
  void BeginManualCall(ColumnFamilyData* cfd);
  // The column family may be gone afterwards. If it is, its files are deleted,
  // for which this releases the mutex.
  // REQUIRES: DB mutex held; BeginManualCall() was called.
  void EndManualCall(ColumnFamilyData* cfd);
  // Returns true while there are such calls.
  bool HasManualCalls() const { return num_manual_calls_ > 0; }

  // Returns an error if the job, which runs or is about to run, has to stop:
  // ShutdownInProgress, ColumnFamilyDropped, or Incomplete.
  // REQUIRES: the job has a reference to its column family. Any thread.
  Status CheckToStop(const BackgroundJob& job) const;
  // The same for a job that begins: returns the background error, too.
  // REQUIRES: DB mutex held.
  Status CheckToStart(const BackgroundJob& job) const;

  // Returns the number of jobs of the kind, manual ones included.
  // REQUIRES: DB mutex held.
  int NumJobs(Kind kind) const { return counts_[Index(kind)].all; }
  // Returns the number of jobs of the kind that have, or wait for, a thread.
  // REQUIRES: DB mutex held.
  int NumInBackground(Kind kind) const {
    return counts_[Index(kind)].all - counts_[Index(kind)].manual;
  }
  // Returns true if there are jobs of a kind with counts_to_the_end.
  // REQUIRES: DB mutex held.
  bool HasJobs() const { return HasJobsOf(&Traits::counts_to_the_end); }
  // Returns true if there are jobs for which a pause has to wait: all but the
  // manual ones that began after a pause did. The pause would otherwise have to
  // wait for all jobs of a call, one after another, as few moments are left
  // between them. (A job that does not count to the end may still be deleting
  // files.)
  // REQUIRES: DB mutex held.
  bool HasUnpausedJobs() const;
  // Returns true if there are jobs of a kind with is_aborted.
  // REQUIRES: DB mutex held.
  bool HasAbortedJobs() const { return HasJobsOf(&Traits::is_aborted); }

  // Waits until a job ends, for a tenth of a second at most.
  // REQUIRES: DB mutex held; it is released meanwhile.
  void WaitForOthers();

 private:
  struct Counts {
    int all = 0;
    int manual = 0;
    int late = 0;  // those of the manual ones that began during a pause
  };

  static size_t Index(Kind kind) { return static_cast<size_t>(kind); }
  bool HasJobsOf(bool Traits::*trait) const;

  // The thread pool calls these with a job.
  static void Work(void* job);
  static void Unschedule(void* job);

  void RunInBackground(std::unique_ptr<BackgroundJob> job);
  Status RunManualLocked(BackgroundJob* job, JobContext* job_context);
  // Returns why the manual job may not be prepared, or OK.
  Status CheckManual(const BackgroundJob& job) const;
  // Waits until the job, which has found nothing, may find more or has to stop.
  void WaitForMore(const BackgroundJob& job);
  // Returns true if the job had the last reference to its column family.
  bool Release(BackgroundJob* job, bool has_run);
  // Deletes the files of a family whose last reference was released.
  // REQUIRES: DB mutex held; it is released and taken again.
  void PurgeDroppedFamily();
  void BackOff();
  void Purge(JobContext* job_context);

  Host* const host_;
  std::array<Counts, BackgroundJob::kNumKinds> counts_;
  std::atomic<int> num_manual_calls_{0};  // Close() reads it without the mutex
};

}  // namespace ROCKSDB_NAMESPACE
