//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <memory>

#include "db/delta/delta_merge_job.h"
#include "db/delta/delta_picker.h"
#include "db/strata/background_delta_job.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Merges recent delta files of a column family: DeltaPicker selects them,
// DeltaMergeJob writes the merged files, and this class leads these to the
// MANIFEST.
//
// Invariant: one merge of a column family runs at a time (DeltaJobState).
class DBStrata::BackgroundDeltaMerge : public BackgroundDeltaJob {
 public:
  // request: see BackgroundDeltaJob.
  // REQUIRES: DB mutex held; DeltaJobState::BeginMerge() was called.
  BackgroundDeltaMerge(DBStrata* strata, ColumnFamilyData* cfd,
                       Request* request = nullptr)
      : BackgroundDeltaJob(strata, cfd, request) {}

 protected:
  void GiveUp() override;
  bool NoteDamage() override;
  DeltaJobBackoff& Backoff() const override;
  Status RunMarked(JobContext* job_context) override;

 private:
  // Writes the merged files. REQUIRES: DB mutex not held.
  Status Write(DeltaMergeJob::Context context);
  // Commits the edit if s is OK. REQUIRES: DB mutex held; it is released
  // meanwhile.
  Status CommitMerge(Status s, JobContext* job_context);
  // Counts, logs, and deletes the files of a job that has failed before its
  // edit. REQUIRES: DB mutex not held.
  void Report(const Status& s);

  // Set by RunMarked().
  DeltaPicker::Merge pick_;
  size_t num_inputs_ = 0;
  std::unique_ptr<DeltaMergeJob> job_;
};

}  // namespace ROCKSDB_NAMESPACE
