//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Merges of delta files and collections of buckets: when jobs run, and the jobs
// of CompactRange(). BackgroundDeltaMerge and BackgroundDeltaCollection say
// what a job does.

#include <cstdint>
#include <memory>
#include <utility>

#include "db/column_family.h"
#include "db/delta/delta_damage.h"
#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_job_backoff.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/strata/background_delta_collection.h"
#include "db/strata/background_delta_job.h"
#include "db/strata/background_delta_merge.h"
#include "db/strata/db_strata.h"
#include "db/strata/manual_delta_job.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

void DBStrata::SetDeltaOptionsChanged(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  if (cfd->delta_store() != nullptr) {
    cfd->delta_store()->jobs().SetCollectionDue();
    SetDeltaJobsDue();
  }
}

void DBStrata::ScheduleDeltaJobs() {
  db_->mutex_.AssertHeld();
  if (!has_delta_stores_ || !delta_jobs_due_ ||
      !scheduler_.MayStart(BackgroundJob::Kind::kDelta)) {
    return;
  }
  // Unlike blob files, delta files do not wait for DisableFileDeletions() to
  // end: it is the readers who gain, and there is less of them.
  delta_jobs_due_ = false;
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->delta_store() != nullptr && !cfd->IsDropped()) {
      ScheduleDeltaJobs(cfd);
    }
  }
}

void DBStrata::ScheduleDeltaJobs(ColumnFamilyData* cfd) {
  DeltaJobState& jobs = cfd->delta_store()->jobs();
  const auto& version = cfd->current()->storage_info()->delta();
  if (version == nullptr ||
      cfd->GetLatestMutableCFOptions().disable_auto_compactions) {
    return;
  }
  const uint64_t now = BackgroundDeltaJob::NowMicros(this);
  const bool may_merge = jobs.merge_backoff().MayRun(now);
  const bool may_collect = jobs.collection_backoff().MayRun(now);
  if (!may_merge || !may_collect) {
    // The next call asks again for the kind that has to wait. No thread waits
    // until the time has come.
    SetDeltaJobsDue();
  }
  if (may_collect && !jobs.HasCalls()) {
    cfd->delta_store()->AddFoldWishes(
        cfd->delta_store()->holds()->Take(),
        db_->versions_->current_next_file_number());
  }
  if (jobs.wishes_wait()) {
    if (BackgroundDeltaJob::MayFoldWishes(this, cfd)) {
      jobs.SetCollectionDue();
    } else {
      // The next call asks again. A compaction for which they wait need not
      // leave anything that makes jobs due.
      SetDeltaJobsDue();
    }
  }
  // The end of a job makes it due again where there is no room now.
  const int max_jobs =
      BackgroundDeltaJob::MaxJobs(db_->mutable_db_options_.max_background_jobs);
  if (may_merge && scheduler_.NumJobs(BackgroundJob::Kind::kDelta) < max_jobs &&
      !jobs.is_merging() &&
      !DeltaPicker::PickMerge(BackgroundDeltaJob::PickerOptions(this, cfd),
                              *version)
           .inputs.empty()) {
    jobs.BeginMerge();
    StartDeltaJob(std::make_unique<BackgroundDeltaMerge>(this, cfd),
                  /*is_merge=*/true);
  }
  if (may_collect &&
      scheduler_.NumJobs(BackgroundJob::Kind::kDelta) < max_jobs - 1 &&
      jobs.is_collection_due() && !jobs.is_picking() &&
      DeltaPicker::MayCollect(*version)) {
    if (DrainsDeltas(*cfd) && BackgroundDeltaJob::MustWaitForCompactions(
                                  cfd, /*waits_for_queued=*/true)) {
      // A compaction that finds nothing to do has no end that makes it due.
      SetDeltaJobsDue();
      return;
    }
    jobs.BeginPick();
    StartDeltaJob(std::make_unique<BackgroundDeltaCollection>(this, cfd),
                  /*is_merge=*/false);
  }
}

void DBStrata::StartDeltaJob(std::unique_ptr<BackgroundDeltaJob> job,
                             bool is_merge) {
  TEST_SYNC_POINT_CALLBACK("DBStrata::StartDeltaJob", &is_merge);
  scheduler_.Schedule(std::move(job));
}

Status DBStrata::CompactDeltas(const CompactRangeOptions& options,
                               ColumnFamilyData* cfd) {
  BackgroundDeltaJob::Request request;
  request.canceled = options.canceled;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    // DisableManualCompaction() waits for the end of the call.
    const Status s = BeginManualCall(cfd);
    if (!s.ok()) {
      return s;
    }
    request.force_below = db_->versions_->current_next_file_number();
    request.sorted_path_id =
        DeltaPicker::Paths::By(cfd->GetLatestMutableCFOptions(),
                               cfd->ioptions().num_levels)
            .sorted;
    cfd->delta_store()->jobs().BeginCall();
    cfd->delta_store()->jobs().ClearLeftovers();
    cfd->delta_store()->jobs().damage().Clear();
  }
  Status s;
  for (bool done = false; s.ok() && !done;) {
    ManualDeltaJob job(this, cfd, &request);
    request.has_noted_damage = false;
    s = scheduler_.RunManual(&job);
    done = job.is_done();
    if (s.IsCorruption() && request.has_noted_damage) {
      // The next pick leaves something alone, so this comes to an end.
      s = Status::OK();
    }
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  const DeltaDamage& damage = cfd->delta_store()->jobs().damage();
  if (s.ok() && damage.HasDamaged()) {
    s = damage.error();
  }
  // Wishes may have waited for the end of the call.
  cfd->delta_store()->jobs().EndCall();
  SetDeltaJobsDue();
  ScheduleDeltaJobs();
  scheduler_.EndManualCall(cfd);
  return s.ok() ? request.fold_error : s;
}

}  // namespace ROCKSDB_NAMESPACE
