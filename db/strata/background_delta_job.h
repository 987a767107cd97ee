//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_merge_pass.h"
#include "db/delta/delta_picker.h"
#include "db/strata/background_job.h"
#include "db/strata/db_strata.h"
#include "db/strata/delta_job_run.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DeltaJobBackoff;
class DeltaJobState;
class VersionEdit;

// What merges of delta files and collections of buckets have in common: how
// they begin and end, how an edit is committed, and what a failure means.
//
// Invariants:
// 1. A job is marked in the DeltaJobState of its column family from before it
//    is made: as a merge, or as one that looks for a collection. RunMarked(),
//    or GiveUp() if that is not called, removes the mark.
// 2. A failed job does not start again at once (DeltaJobBackoff::MayRun()),
//    unless picks leave alone what it could not read (DeltaDamage), or a job
//    that began after the failure has succeeded. A damaged file costs its own
//    operands only, and is no background error.
//
// The class is a part of DBStrata, and reaches DBImpl as DBStrata does: a job
// pins a Version, takes the list of snapshots, protects its outputs from
// deletion, writes to the MANIFEST and installs a SuperVersion.
class DBStrata::BackgroundDeltaJob : public BackgroundJob {
 public:
  // The wishes of CompactRange(), or of MigratePaths(), for its jobs, and the
  // results that they pass on to the next one.
  struct Request {
    const std::atomic<bool>* canceled = nullptr;
    // See DeltaPicker::Options.
    uint64_t force_below = 0;
    // The path of sorted files by the options at the beginning of the call,
    // which moves all of them there; nullopt: it has changed since, so that the
    // call, which must end, moves only those that existed when it began.
    std::optional<uint32_t> sorted_path_id;
    // The number of folds that were given up, one after the other.
    int folds_given_up = 0;
    // False: all wishes are left to jobs in the background.
    bool fulfils_wishes = true;
    // Wishes of compactions that end later are left to jobs in the background
    // (DeltaJobState::HasCalls()).
    bool has_taken_wishes = false;
    // True: no job of the call begins while background work is paused.
    bool waits_for_pauses = false;
    // False: the call has waited long enough for a compaction that is queued,
    // and waits only for one that runs. A lack of space, a limiter of threads
    // or a pause can keep a compaction in the queue for any time, and the call
    // must end.
    bool waits_for_queued = true;
    // The time at which the call has found such a compaction; nullopt: it waits
    // for none.
    std::optional<uint64_t> queued_since_micros;
    // The last job has failed because of buckets that picks leave alone from
    // now on, so the call can go on.
    bool has_noted_damage = false;
    // The first Corruption of the tree because of which folds have left
    // operands. The call returns it when it has done all else.
    Status fold_error;
    // The sum of what its jobs have written.
    uint64_t bytes_written = 0;

    Request() = default;
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    ~Request() { fold_error.PermitUncheckedError(); }
  };

  // Returns how many jobs there may be, beside compactions and flushes, for all
  // column families together. One of them is left for merges, of which readers
  // gain most: all but one may be collections.
  static int MaxJobs(int max_background_jobs);
  // Returns the time by which jobs measure how long they wait, in microseconds.
  // It is not the wall clock, which may be set back: a wait would then be that
  // much longer.
  static uint64_t NowMicros(DBStrata* strata);
  // Each fold makes a file of level 0, and compactions have to keep up. Returns
  // true if they do not, and one of them runs or is about to. (With fewer files
  // than their trigger they have nothing to do, and universal compaction leaves
  // files of unlike sizes as they are.)
  // waits_for_queued: false: only one that runs counts.
  // REQUIRES: DB mutex held.
  static bool MustWaitForCompactions(ColumnFamilyData* cfd,
                                     bool waits_for_queued);
  // Returns true if a job in the background may begin any fold. While there is
  // a background error, TryEnterDeltaFold() refuses all folds. Jobs that picked
  // one nevertheless would follow each other without end, and a recovery, which
  // waits for the end of all jobs, would wait forever. ScheduleAfterRecovery()
  // makes collections due again.
  // REQUIRES: DB mutex held.
  static bool AreFoldsAllowed(DBStrata* strata);
  // Returns true if a job in the background may begin a fold of wishes.
  // REQUIRES: DB mutex held; the column family has a delta store.
  static bool MayFoldWishes(DBStrata* strata, ColumnFamilyData* cfd);
  // Returns the options of a job in the background.
  // REQUIRES: DB mutex held; the column family has a delta store.
  static DeltaPicker::Options PickerOptions(DBStrata* strata,
                                            ColumnFamilyData* cfd);
  // Returns the options of a job of the request. CompactRange() tries folds
  // that the background leaves, up to a number of them, so that the call ends.
  // REQUIRES: DB mutex held; the column family has a delta store.
  static DeltaPicker::Options PickerOptions(DBStrata* strata,
                                            ColumnFamilyData* cfd,
                                            const Request& request);

  Status Run(JobContext* job_context) final;
  void GiveBack(bool has_run) final;
  void OnEnd(const Status& s) final;

  // Returns true if there was something to do.
  bool found() const { return found_; }
  // Returns true if there was nothing to do because other jobs are doing it. A
  // request is not fulfilled before they have ended.
  bool waits_for_others() const { return waits_for_others_; }

 protected:
  // request: of a manual job, and outlives it; nullptr for one of the
  // background.
  BackgroundDeltaJob(DBStrata* strata, ColumnFamilyData* cfd, Request* request);

  // Removes the mark of a job that has not begun.
  // REQUIRES: DB mutex held.
  virtual void GiveUp() = 0;
  // To be called when the job has failed to read a damaged file. Returns true
  // if picks leave what the job has read alone from now on, so that other jobs
  // need not wait.
  // REQUIRES: DB mutex held.
  virtual bool NoteDamage() = 0;
  // Returns the backoff of jobs that do the same.
  // REQUIRES: DB mutex held.
  virtual DeltaJobBackoff& Backoff() const = 0;
  // Does the job.
  // REQUIRES: DB mutex held; it may be released and taken again.
  virtual Status RunMarked(JobContext* job_context) = 0;

  // Steps of RunMarked().

  DeltaJobState& jobs() const;
  DeltaPicker::Options PickerOptions() const {
    return PickerOptions(strata_, cfd(), *request_);
  }
  // Makes the edit of the job.
  void MakeEdit(DeltaEdit delta_edit, bool filter_changed,
                VersionEdit* edit) const;
  // REQUIRES: DB mutex held; it is released meanwhile.
  Status Commit(VersionEdit* edit);
  // Counts what the job has read and written.
  void Count(const DeltaMergePass::Stats& stats, uint64_t bytes_read,
             uint64_t bytes_written) const;
  // Tells the job state and the error handler what has become of the job.
  // REQUIRES: DB mutex held.
  void NoteResult(const Status& s);

  DBStrata* const strata_;
  DBImpl* const db_;
  Request* const request_;
  // Exists during RunMarked().
  std::optional<DeltaJobRun> run_;
  bool found_ = false;
  bool waits_for_others_ = false;
  // The edit was given to Commit(), and may have been committed.
  bool tried_to_commit_ = false;

 private:
  Request background_request_;
  // Backoff().failures() when the job began.
  uint64_t failures_at_begin_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
