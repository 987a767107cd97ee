//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/background_delta_job.h"

#include <algorithm>
#include <list>
#include <memory>
#include <utility>

#include "db/column_family.h"
#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_job_backoff.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_store.h"
#include "db/job_context.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "monitoring/thread_status_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// CompactRange() leaves the rest of a drain, and wishes, to other jobs when so
// many folds in succession were given up.
constexpr int kMaxFoldsGivenUp = 10;

}  // namespace

int DBStrata::BackgroundDeltaJob::MaxJobs(int max_background_jobs) {
  return std::max(2, max_background_jobs / 2);
}

uint64_t DBStrata::BackgroundDeltaJob::NowMicros(DBStrata* strata) {
  constexpr uint64_t kNanosPerMicro = 1000;
  return strata->db_->immutable_db_options_.clock->NowNanos() / kNanosPerMicro;
}

bool DBStrata::BackgroundDeltaJob::MustWaitForCompactions(
    ColumnFamilyData* cfd, bool waits_for_queued) {
  const MutableCFOptions& options = cfd->GetLatestMutableCFOptions();
  return !options.disable_auto_compactions &&
         cfd->ioptions().compaction_style != kCompactionStyleNone &&
         options.level0_slowdown_writes_trigger >= 0 &&
         cfd->current()->storage_info()->NumLevelFiles(0) >=
             std::max(options.level0_slowdown_writes_trigger,
                      options.level0_file_num_compaction_trigger) &&
         ((waits_for_queued && cfd->queued_for_compaction()) ||
          cfd->compaction_picker()->IsCompactionInProgress());
}

bool DBStrata::BackgroundDeltaJob::AreFoldsAllowed(DBStrata* strata) {
  strata->db_->mutex_.AssertHeld();
  return strata->db_->error_handler_.GetBGError().ok();
}

bool DBStrata::BackgroundDeltaJob::MayFoldWishes(DBStrata* strata,
                                                 ColumnFamilyData* cfd) {
  return cfd->delta_store()->jobs().MayFoldWishes(NowMicros(strata)) &&
         AreFoldsAllowed(strata) &&
         !MustWaitForCompactions(cfd, /*waits_for_queued=*/true);
}

DeltaPicker::Options DBStrata::BackgroundDeltaJob::PickerOptions(
    DBStrata* strata, ColumnFamilyData* cfd) {
  strata->db_->mutex_.AssertHeld();
  const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
  DeltaPicker::Options options;
  options.bucket_size = cfd->ioptions().delta_bucket_size;
  options.max_buckets = cf_options.delta_max_buckets;
  options.split_ratio = cf_options.delta_bucket_split_ratio;
  options.oldest_running_flush = cfd->delta_store()->OldestRunningFlush();
  options.earliest_snapshot = strata->EarliestReader(*cfd);
  const DeltaJobState& jobs = cfd->delta_store()->jobs();
  options.can_fold = jobs.MayFold() && AreFoldsAllowed(strata);
  options.max_folded = jobs.fold_bytes();
  options.min_fold_bytes = jobs.min_fold_bytes();
  options.damage = jobs.damage();
  options.leaves_misplaced =
      cfd->current()->storage_info()->strata()->leaves_misplaced_files();
  options.wishes = jobs.wishes();
  options.wishes_below = jobs.wishes_below();
  options.paths =
      DeltaPicker::Paths::By(cf_options, cfd->ioptions().num_levels);
  if (options.wishes != nullptr) {
    options.can_fold = MayFoldWishes(strata, cfd);
  }
  if (DrainsDeltas(*cfd)) {
    options.drain = true;
    options.wishes.reset();  // everything is folded
    // A drain has nothing else to do until a fold succeeds.
    options.can_fold = !jobs.IsFolding() && AreFoldsAllowed(strata);
    options.leftovers = jobs.leftovers();
    options.max_collected = options.max_folded;
  }
  return options;
}

DeltaPicker::Options DBStrata::BackgroundDeltaJob::PickerOptions(
    DBStrata* strata, ColumnFamilyData* cfd, const Request& request) {
  DeltaPicker::Options options = PickerOptions(strata, cfd);
  options.force_below = request.force_below;
  options.leaves_misplaced &= request.force_below == 0;
  options.moves_all = options.paths->sorted == request.sorted_path_id;
  if (!request.fulfils_wishes && options.wishes != nullptr) {
    options.wishes.reset();
    // Folds for other reasons do not wait for those of wishes.
    options.can_fold =
        cfd->delta_store()->jobs().MayFold() && AreFoldsAllowed(strata);
  }
  if (options.force_below > 0 && (options.drain || options.wishes != nullptr)) {
    // The call must end, so it tries again at once, up to kMaxFoldsGivenUp.
    options.can_fold = !cfd->delta_store()->jobs().IsFolding() &&
                       (options.drain ||
                        !MustWaitForCompactions(cfd, request.waits_for_queued));
  }
  if (request.folds_given_up >= kMaxFoldsGivenUp) {
    options.can_fold = false;
    options.wishes.reset();
  }
  return options;
}

DBStrata::BackgroundDeltaJob::BackgroundDeltaJob(DBStrata* strata,
                                                 ColumnFamilyData* cfd,
                                                 Request* request)
    : BackgroundJob(Kind::kDelta, cfd, /*is_manual=*/request != nullptr,
                    request != nullptr ? request->canceled : nullptr),
      strata_(strata),
      db_(strata->db_),
      request_(request != nullptr ? request : &background_request_) {}

DeltaJobState& DBStrata::BackgroundDeltaJob::jobs() const {
  return cfd()->delta_store()->jobs();
}

Status DBStrata::BackgroundDeltaJob::Run(JobContext* job_context) {
  db_->mutex_.AssertHeld();
  Status s = strata_->scheduler_.CheckToStart(*this);
  const bool is_off =
      !is_manual() &&
      cfd()->GetLatestMutableCFOptions().disable_auto_compactions;
  if (!s.ok() || is_off) {
    GiveUp();
    return s;
  }
  ThreadStatusUtil::SetColumnFamily(cfd());
  ThreadStatusUtil::SetThreadOperation(ThreadStatus::OP_DELTA_GC);
  auto pending_outputs = std::make_unique<std::list<uint64_t>::iterator>(
      db_->CaptureCurrentFileNumberInPendingOutputs());
  failures_at_begin_ = Backoff().failures();
  s = RunMarked(job_context);
  db_->ReleaseFileNumberFromPendingOutputs(pending_outputs);
  // The job may have ended a slowdown, and no flush or compaction may follow.
  db_->NotifyOnBackgroundJobPressureChanged();
  // The job ends here. FindObsoleteFiles() may close a WAL.
  ThreadStatusUtil::ResetThreadStatus();
  // An edit in the commit group of another family has the status of the group,
  // but is left out if its own family was dropped before.
  const bool may_be_left_out = tried_to_commit_ && cfd()->IsDropped();
  db_->FindObsoleteFiles(
      job_context,
      may_be_left_out || (!s.ok() && !s.IsShutdownInProgress() &&
                          !s.IsColumnFamilyDropped() && !s.IsIncomplete()));
  return s;
}

void DBStrata::BackgroundDeltaJob::GiveBack(bool has_run) {
  if (!has_run) {
    GiveUp();
  }
}

void DBStrata::BackgroundDeltaJob::OnEnd(const Status& /*s*/) {
  // There is room for another job. A job that has failed does not start again
  // at once (DeltaJobBackoff::MayRun()): a thread that waits for the end of all
  // jobs would otherwise wait forever.
  strata_->SetDeltaJobsDue();
  db_->MaybeScheduleFlushOrCompaction();
}

void DBStrata::BackgroundDeltaJob::MakeEdit(DeltaEdit delta_edit,
                                            bool filter_changed,
                                            VersionEdit* edit) const {
  edit->SetColumnFamily(cfd()->GetID());
  edit->SetDeltaEdit(std::move(delta_edit));
  if (filter_changed) {
    edit->ChangeMergedValues();
  }
}

Status DBStrata::BackgroundDeltaJob::Commit(VersionEdit* edit) {
  db_->mutex_.AssertHeld();
  tried_to_commit_ = true;
  const ReadOptions read_options(Env::IOActivity::kCompaction);
  const WriteOptions write_options(Env::IOActivity::kCompaction);
  const Status s =
      db_->versions_->LogAndApply(cfd(), read_options, write_options, edit,
                                  &db_->mutex_, db_->directories_.GetDbDir());
  // With this status alone the edit was certainly not written.
  tried_to_commit_ = !s.IsColumnFamilyDropped();
  return s;
}

void DBStrata::BackgroundDeltaJob::Count(const DeltaMergePass::Stats& stats,
                                         uint64_t bytes_read,
                                         uint64_t bytes_written) const {
  RecordTick(db_->stats_, DELTA_GC_OPERANDS_READ, stats.operands_read);
  RecordTick(db_->stats_, DELTA_GC_OPERANDS_DROPPED,
             stats.operands_hidden + stats.operands_filtered +
                 stats.operands_combined);
  RecordTick(db_->stats_, DELTA_GC_BYTES_READ, bytes_read);
  RecordTick(db_->stats_, DELTA_GC_BYTES_WRITTEN, bytes_written);
  request_->bytes_written += bytes_written;
}

void DBStrata::BackgroundDeltaJob::NoteResult(const Status& s) {
  db_->mutex_.AssertHeld();
  if (s.ok()) {
    Backoff().OnSuccess(failures_at_begin_);
    jobs().OnSuccess();
    return;
  }
  if (s.IsShutdownInProgress() || s.IsColumnFamilyDropped() ||
      s.IsIncomplete()) {
    return;  // nothing was wrong
  }
  RecordTick(db_->stats_, DELTA_GC_FAILED);
  const uint64_t now = NowMicros(strata_);
  request_->has_noted_damage =
      !tried_to_commit_ && s.IsCorruption() && NoteDamage();
  if (request_->has_noted_damage) {
    Backoff().OnDamage(now);
  } else {
    Backoff().OnFailure(now);
  }
  if (tried_to_commit_) {
    // If it was not the MANIFEST, the edit did not go with the Version, and
    // nothing has changed.
    if (!db_->versions_->io_status().ok()) {
      db_->error_handler_.SetBGError(db_->versions_->io_status(),
                                     BackgroundErrorReason::kManifestWrite);
    }
  } else if (s.IsCorruption()) {
    // A damaged file costs its own operands only. Other buckets are collected,
    // and the DB accepts writes.
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "[%s] A job of delta files has failed: %s",
                    cfd()->GetName().c_str(), s.ToString().c_str());
  } else if (!s.IsNoSpace() && s.subcode() != Status::kSpaceLimit) {
    // A lack of space is no background error: flushes report it when it
    // matters, and merges free space.
    db_->error_handler_.SetBGError(s, BackgroundErrorReason::kCompaction);
  }
}

}  // namespace ROCKSDB_NAMESPACE
