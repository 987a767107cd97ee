//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/manual_delta_job.h"

#include "db/column_family.h"
#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "db/job_context.h"
#include "db/strata/background_delta_collection.h"
#include "db/strata/background_delta_merge.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Longer than a compaction that may run waits for its thread, unless all of
// these are busy.
constexpr uint64_t kMaxQueuedWaitMicros = 10 * 1000 * 1000;

}  // namespace

BackgroundJob::Readiness DBStrata::ManualDeltaJob::Prepare() {
  DBImpl* const db = strata_->db_;
  db->mutex_.AssertHeld();
  DeltaStore* const store = cfd()->delta_store();
  DeltaJobState& jobs = store->jobs();
  num_ended_ = jobs.num_ended();
  const auto& version = cfd()->current()->storage_info()->delta();
  if (version == nullptr) {
    is_done_ = true;
    return Readiness::kNothingToDo;
  }
  const bool is_paused = db->bg_compaction_paused_ > 0;
  if (is_paused && request_->waits_for_pauses) {
    return Readiness::kOthersFirst;
  }
  if (is_paused) {
    request_->waits_for_queued = false;  // none begins before the end
  }
  if (request_->fulfils_wishes && !request_->has_taken_wishes) {
    request_->has_taken_wishes = true;
    store->AddFoldWishes(store->holds()->Take(),
                         db->versions_->current_next_file_number());
  }
  const DeltaPicker::Options options =
      BackgroundDeltaJob::PickerOptions(strata_, cfd(), *request_);
  if (!options.moves_all) {
    request_->sorted_path_id.reset();
  }
  is_merge_ = DeltaPicker::HasForcedMerge(options, *version);
  if (is_merge_) {
    // Files are not merged while a flush runs that began before they came.
    if (jobs.is_merging() ||
        DeltaPicker::PickMerge(options, *version).inputs.empty()) {
      return Readiness::kOthersFirst;
    }
    jobs.BeginMerge();
    job_ = std::make_unique<BackgroundDeltaMerge>(strata_, cfd(), request_);
  } else {
    if (jobs.is_picking() || ((options.drain || options.wishes != nullptr) &&
                              MustWaitForCompactions())) {
      return Readiness::kOthersFirst;
    }
    jobs.BeginPick();
    job_ =
        std::make_unique<BackgroundDeltaCollection>(strata_, cfd(), request_);
  }
  return Readiness::kReady;
}

bool DBStrata::ManualDeltaJob::MustWaitForCompactions() {
  if (!BackgroundDeltaJob::MustWaitForCompactions(cfd(),
                                                  request_->waits_for_queued)) {
    request_->queued_since_micros.reset();
    return false;
  }
  if (BackgroundDeltaJob::MustWaitForCompactions(cfd(),
                                                 /*waits_for_queued=*/false)) {
    // The time goes on: a compaction that fails is queued again.
    return true;
  }
  uint64_t max_wait = kMaxQueuedWaitMicros;
  TEST_SYNC_POINT_CALLBACK(
      "DBStrata::ManualDeltaJob::MustWaitForCompactions:MaxWait", &max_wait);
  const uint64_t now = BackgroundDeltaJob::NowMicros(strata_);
  if (!request_->queued_since_micros.has_value()) {
    request_->queued_since_micros = now;
  }
  request_->waits_for_queued = now < *request_->queued_since_micros + max_wait;
  return request_->waits_for_queued;
}

Status DBStrata::ManualDeltaJob::Run(JobContext* job_context) {
  return job_->Run(job_context);
}

bool DBStrata::ManualDeltaJob::OnManualEnd(const Status& s) {
  // A drain is over when no job is left.
  const bool waits = DrainsDeltas(*cfd())
                         ? !cfd()->delta_store()->jobs().IsIdle()
                         : job_->waits_for_others();
  is_done_ = s.ok() && !is_merge_ && !job_->found() && !waits;
  if (!is_merge_) {
    // The pick leaves buckets that are not forced to other jobs.
    cfd()->delta_store()->jobs().SetCollectionDue();
  }
  // Jobs that could not be scheduled beside this one may be due.
  strata_->SetDeltaJobsDue();
  strata_->ScheduleDeltaJobs();
  return s.ok() && !job_->found() && !is_done_;
}

bool DBStrata::ManualDeltaJob::MayFindMore() const {
  strata_->db_->mutex_.AssertHeld();
  // When no job runs any more, the next pick that finds nothing is the last
  // one of the call.
  const DeltaJobState& jobs = cfd()->delta_store()->jobs();
  return jobs.num_ended() != num_ended_ || jobs.IsIdle();
}

}  // namespace ROCKSDB_NAMESPACE
