//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>

#include "db/strata/background_delta_job.h"
#include "db/strata/background_job.h"
#include "db/strata/db_strata.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// One step of CompactRange() of all keys, or of MigratePaths(): a merge of
// delta files if there are files to merge, or else a collection of buckets.
//
// Invariant: the step runs only if the mark in the DeltaJobState that it needs
// is free. Otherwise the caller waits for other jobs and makes another step.
class DBStrata::ManualDeltaJob : public BackgroundJob {
 public:
  // REQUIRES: the column family has a delta store; request outlives this
  // object.
  ManualDeltaJob(DBStrata* strata, ColumnFamilyData* cfd,
                 BackgroundDeltaJob::Request* request)
      : BackgroundJob(Kind::kDelta, cfd, /*is_manual=*/true, request->canceled),
        strata_(strata),
        request_(request) {}

  Readiness Prepare() override;
  Status Run(JobContext* job_context) override;
  bool OnManualEnd(const Status& s) override;
  bool MayFindMore() const override;

  // Returns true if nothing is left to do for CompactRange().
  bool is_done() const { return is_done_; }

 private:
  // Returns true if a compaction of level 0 has to go first. Ends the wait for
  // one that is queued and does not begin.
  bool MustWaitForCompactions();

  DBStrata* const strata_;
  BackgroundDeltaJob::Request* const request_;
  bool is_merge_ = false;
  // DeltaJobState::num_ended() at Prepare().
  uint64_t num_ended_ = 0;
  std::unique_ptr<BackgroundDeltaJob> job_;
  bool is_done_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
