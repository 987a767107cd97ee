//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "db/strata/background_job.h"
#include "db/strata/db_strata.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Removes from address maps what no reader needs any more, drops blob files
// that became empty, and marks files for compaction that implicit snapshots
// have kept from being marked. One job does this for all column families.
//
// Invariants:
// 1. One job at a time removes. The next one may be scheduled while this one
//    deletes files.
// 2. The job counts as a purge of DBImpl (bg_purge_scheduled_) from before
//    Schedule() until OnEnd(): the DB is not closed before, and the job runs
//    even if the DB is being closed.
// 3. No job removes, or writes an edit, while background work is paused:
//    PauseBackgroundWork() waits for Run(), and from then on
//    ScheduleMapRemovals() leaves what is due to ContinueBackgroundWork().
//
// The class is a part of DBStrata, and reaches DBImpl as DBStrata does: it
// drops files with edits, and asks for the readers of all column families.
class DBStrata::BackgroundMapRemovals : public BackgroundJob {
 public:
  // REQUIRES: DB mutex held.
  explicit BackgroundMapRemovals(DBStrata* strata);

  Status Run(JobContext* job_context) override;
  void AfterRun() override;
  void AfterPurge() override;
  void OnEnd(const Status& s) override;

 private:
  // REQUIRES: DB mutex held; it is released meanwhile.
  void RunFor(ColumnFamilyData* cfd, JobContext* job_context);

  DBStrata* const strata_;
};

}  // namespace ROCKSDB_NAMESPACE
