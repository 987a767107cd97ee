//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "db/delta/delta_fold_commit.h"
#include "db/delta/delta_folder.h"
#include "db/delta/delta_gc_job.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_picker.h"
#include "db/strata/background_delta_job.h"
#include "db/version_edit.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Collects buckets of delta files, and folds operands into values where the
// plan says so: DeltaPicker selects the buckets, DeltaGcJob writes their files,
// DeltaValueFolder and DeltaFoldCommit make the values, and this class leads
// all of them to the MANIFEST.
//
// Invariants:
// 1. The buckets that are selected stay as they are: whatever had begun to
//    change some was known to the selection, and only one job of a column
//    family selects at a time (DeltaJobState::BeginPick()).
// 2. All buckets may be dropped only if no other job has some of them, and none
//    begins before the edit is committed.
// 3. A fold that is given up is no failure. The next job in the background does
//    without one, unless it drains, and so do jobs for wishes until some time
//    has passed (DeltaJobState::MayFoldWishes()).
class DBStrata::BackgroundDeltaCollection : public BackgroundDeltaJob {
 public:
  // request: see BackgroundDeltaJob.
  // REQUIRES: DB mutex held; DeltaJobState::BeginPick() was called.
  BackgroundDeltaCollection(DBStrata* strata, ColumnFamilyData* cfd,
                            Request* request = nullptr)
      : BackgroundDeltaJob(strata, cfd, request) {}

  // Schedules a collection of the background if one is due and may begin.
  // Returns true if it has done so.
  // REQUIRES: DB mutex held; the column family has a delta store; jobs may
  // start (BackgroundJobScheduler::MayStart()).
  static bool TrySchedule(DBStrata* strata, ColumnFamilyData* cfd);

 protected:
  void GiveUp() override;
  bool NoteDamage() override;
  DeltaJobBackoff& Backoff() const override;
  Status RunMarked(JobContext* job_context) override;

 private:
  // Selects buckets without the mutex, as there may be many.
  // REQUIRES: DB mutex held; it is released meanwhile.
  Status Pick();
  // Ends a job that has nothing to do, or could not find out.
  // REQUIRES: DB mutex held.
  Status EndWithoutPick(const Status& s);
  // Marks the buckets as being collected, so that others may be selected.
  // REQUIRES: DB mutex held.
  void Begin();
  // REQUIRES: DB mutex held.
  DeltaGcJob::Context MakeContext();
  // REQUIRES: DB mutex held.
  void MakeFolder(SequenceNumber earliest_snapshot);
  // Writes the files. Publishes them, too, if there are no values, whose commit
  // does so otherwise.
  // REQUIRES: DB mutex not held.
  Status Write(DeltaGcJob::Context context);
  // Commits the edit with the values if s is OK, and tells the job state what
  // has become of the buckets.
  // REQUIRES: DB mutex held; it is released meanwhile.
  Status CommitCollection(Status s, JobContext* job_context);
  // Puts the files into the edit, and the values of a fold, which are written
  // and published here. *fold stays nullptr if there are no values.
  // is_alone: the edit may drop all buckets.
  // REQUIRES: DB mutex held; it is released meanwhile.
  Status FillEdit(bool is_alone, VersionEdit* edit,
                  std::unique_ptr<DeltaFoldCommit>* fold);
  // Tells the job state what a committed job has folded, and what a drain has
  // left.
  // REQUIRES: DB mutex held.
  void NoteSuccess();
  // Counts, logs, and deletes the files of a job that has failed before its
  // edit.
  // REQUIRES: DB mutex not held.
  void Report(const Status& s);
  void LogCollection(const DeltaGcJob::Stats& stats, const Status& s);
  void LogFold();
  // Ends the job, and with it a drain that has left no operand.
  // REQUIRES: DB mutex held; it is released meanwhile.
  Status End(Status s, JobContext* job_context);
  // Returns what keeps a drain, or the fulfilment of wishes, from going on.
  // Tells CompactRange() what they have to leave behind.
  // REQUIRES: DB mutex held; it is released meanwhile.
  Status EndDrain(JobContext* job_context);

  // Set by RunMarked().
  DeltaPicker::Options options_;
  DeltaPicker::Collection pick_;
  // Nothing else was being collected when the buckets were selected.
  bool was_alone_at_pick_ = false;
  DeltaJobState::Handle handle_{};
  std::unique_ptr<DeltaValueFolder> folder_;
  std::unique_ptr<DeltaGcJob> job_;
  DeltaFoldJob fold_job_;
};

}  // namespace ROCKSDB_NAMESPACE
