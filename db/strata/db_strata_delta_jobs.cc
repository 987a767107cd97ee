//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Merges of delta files and collections of buckets: when jobs run, and the jobs
// of CompactRange(). BackgroundDeltaMerge and BackgroundDeltaCollection say
// what a job does.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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

namespace {

// Returns the number of merges that run or wait for a thread.
int NumMerges(ColumnFamilySet* families) {
  int result = 0;
  for (ColumnFamilyData* cfd : *families) {
    result +=
        cfd->delta_store() != nullptr && cfd->delta_store()->jobs().is_merging()
            ? 1
            : 0;
  }
  return result;
}

// Returns the families that may have jobs. They take turns with collections,
// as the first ones would otherwise take all places as long as they have work.
// last_turn: set to the number of the last turn, which the last family in the
// result has had.
std::vector<ColumnFamilyData*> FamiliesInTurn(ColumnFamilySet* families,
                                              uint64_t* last_turn) {
  std::vector<ColumnFamilyData*> result;
  size_t next = 0;
  *last_turn = 0;
  for (ColumnFamilyData* cfd : *families) {
    if (cfd->delta_store() == nullptr || cfd->IsDropped()) {
      continue;
    }
    result.push_back(cfd);
    const uint64_t turn = cfd->delta_store()->jobs().last_turn();
    if (turn > *last_turn) {
      *last_turn = turn;
      next = result.size();
    }
  }
  std::rotate(result.begin(), result.begin() + static_cast<ptrdiff_t>(next),
              result.end());
  return result;
}

}  // namespace

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
  ColumnFamilySet* const all = db_->versions_->GetColumnFamilySet();
  const auto num_jobs = [this] {
    return scheduler_.NumJobs(BackgroundJob::Kind::kDelta);
  };
  const int max_jobs =
      BackgroundDeltaJob::MaxJobs(db_->mutable_db_options_.max_background_jobs);
  // A merge, maybe of another family, takes none of the places of collections.
  int num_collections = num_jobs() - NumMerges(all);
  uint64_t last_turn = 0;
  for (ColumnFamilyData* cfd : FamiliesInTurn(all, &last_turn)) {
    ScheduleDeltaJobs(cfd);
    if (num_collections < max_jobs - 1 && num_jobs() < max_jobs &&
        BackgroundDeltaCollection::TrySchedule(this, cfd)) {
      ++num_collections;
      cfd->delta_store()->jobs().SetLastTurn(++last_turn);
    }
  }
}

// Takes the wishes of compactions, and schedules a merge if one is due.
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
