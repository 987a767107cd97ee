//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BackgroundJobScheduler;
class ColumnFamilyData;
struct JobContext;

// A job that runs beside flushes and compactions: what it does, and what
// BackgroundJobScheduler must know of it.
//
// In a background thread, after BackgroundJobScheduler::Schedule():
//
//   Run() -> GiveBack(true) -> AfterRun() -> AfterPurge() -> OnEnd()
//   If the DB is closed before a thread is free: GiveBack(false)
//
// In a thread of the application (a manual job), in
// BackgroundJobScheduler::RunManual():
//
//   Prepare() -> Run() -> OnManualEnd() -> MayFindMore() while it returns false
//
// Invariants:
// 1. The column family is referenced from Schedule() until GiveBack() has
//    returned. The caller of RunManual() has a reference of its own.
// 2. A scheduled job is destroyed with the DB mutex held. After a manual job
//    has run, its destructor needs neither the mutex nor the DB.
//
// Column families are opaque here.
class BackgroundJob {
 public:
  // Jobs of a kind are counted together, and are treated alike, see
  // BackgroundJobScheduler::Traits.
  enum class Kind {
    kBlobGc,
    kRangeSweep,
    kMapRemovals,
    // Merges of delta files and collections of buckets.
    kDelta,
  };
  static constexpr size_t kNumKinds = 4;

  // The result of Prepare().
  enum class Readiness {
    kReady,
    kOthersFirst,  // other jobs have to end before
    kNothingToDo,
  };

  // cfd: may be nullptr if the job is not for one column family.
  // is_manual: the job is for RunManual(), and not for Schedule().
  // canceled: the application sets it to true to cancel the manual job; may be
  // nullptr.
  BackgroundJob(Kind kind, ColumnFamilyData* cfd, bool is_manual = false,
                const std::atomic<bool>* canceled = nullptr)
      : kind_(kind), cfd_(cfd), is_manual_(is_manual), canceled_(canceled) {}
  virtual ~BackgroundJob() = default;

  BackgroundJob(const BackgroundJob&) = delete;
  BackgroundJob& operator=(const BackgroundJob&) = delete;

  Kind kind() const { return kind_; }
  ColumnFamilyData* cfd() const { return cfd_; }
  bool is_manual() const { return is_manual_; }
  // Returns true if the application has canceled the job. Any thread.
  bool IsCanceled() const {
    return canceled_ != nullptr && canceled_->load(std::memory_order_acquire);
  }

  // Does the job. Obsolete files that it puts into the context are deleted
  // afterwards.
  // REQUIRES: DB mutex held; it may be released and taken again.
  virtual Status Run(JobContext* job_context) = 0;

  // ---- For jobs of the background.

  // Gives back what the job has taken for itself when it was scheduled.
  // has_run: false if the DB is being closed and Run() was not called.
  // REQUIRES: DB mutex held; it stays held.
  virtual void GiveBack(bool /*has_run*/) {}

  // Schedules what has become possible by Run(). After a failure of a kind that
  // backs off, this is called when the time is over.
  // REQUIRES: DB mutex held; it stays held.
  virtual void AfterRun() {}

  // Does what is left after obsolete files were deleted.
  // REQUIRES: DB mutex not held.
  virtual void AfterPurge() {}

  // Schedules what has become possible by the end of the job, which is no
  // longer counted.
  // s: result of Run().
  // REQUIRES: DB mutex held; it stays held.
  virtual void OnEnd(const Status& /*s*/) {}

  // ---- For manual jobs.

  // Decides what the job does.
  // REQUIRES: DB mutex held; it stays held.
  virtual Readiness Prepare() { return Readiness::kReady; }

  // Schedules what could not be scheduled beside the job, which is no longer
  // counted. Returns true if the job found nothing to do because of other jobs:
  // the caller then waits until MayFindMore() returns true.
  // s: result of Run().
  // REQUIRES: DB mutex held; it stays held.
  virtual bool OnManualEnd(const Status& /*s*/) { return false; }

  // Returns true if another attempt may find something to do, because of what
  // other jobs have done since Prepare(). It is called each time the waiting
  // thread is woken, which happens at the end of any job, so it must return
  // false if nothing of interest has changed: otherwise two jobs that find
  // nothing would wake each other without end.
  // REQUIRES: DB mutex held; it stays held.
  virtual bool MayFindMore() const { return true; }

 private:
  friend class BackgroundJobScheduler;

  const Kind kind_;
  ColumnFamilyData* const cfd_;
  const bool is_manual_;
  const std::atomic<bool>* const canceled_;
  // Set by Schedule().
  BackgroundJobScheduler* scheduler_ = nullptr;
};

}  // namespace ROCKSDB_NAMESPACE
