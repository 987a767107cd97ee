//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/background_delta_collection.h"

#include <cassert>
#include <cinttypes>
#include <utility>

#include "db/column_family.h"
#include "db/delta/delta_bucket_intake.h"
#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_store.h"
#include "db/job_context.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

bool DBStrata::BackgroundDeltaCollection::TrySchedule(DBStrata* strata,
                                                      ColumnFamilyData* cfd) {
  strata->db_->mutex_.AssertHeld();
  DeltaJobState& jobs = cfd->delta_store()->jobs();
  const auto& version = cfd->current()->storage_info()->delta();
  if (version == nullptr ||
      cfd->GetLatestMutableCFOptions().disable_auto_compactions ||
      !jobs.collection_backoff().MayRun(NowMicros(strata)) ||
      !jobs.is_collection_due() || jobs.is_picking() ||
      !DeltaPicker::MayCollect(*version)) {
    return false;
  }
  if (DrainsDeltas(*cfd) &&
      MustWaitForCompactions(cfd, /*waits_for_queued=*/true)) {
    // A compaction that finds nothing to do has no end that makes it due.
    strata->SetDeltaJobsDue();
    return false;
  }
  TEST_SYNC_POINT_CALLBACK("DBStrata::BackgroundDeltaCollection::TrySchedule",
                           cfd);
  jobs.BeginPick();
  strata->StartDeltaJob(
      std::make_unique<BackgroundDeltaCollection>(strata, cfd),
      /*is_merge=*/false);
  return true;
}

void DBStrata::BackgroundDeltaCollection::GiveUp() {
  jobs().EndPick();
  jobs().SetCollectionDue();
}

bool DBStrata::BackgroundDeltaCollection::NoteDamage() {
  if (pick_.takes_all) {
    jobs().SetPartitionDamaged(true);
    return false;
  }
  return found_;  // as CommitCollection() has noted
}

DeltaJobBackoff& DBStrata::BackgroundDeltaCollection::Backoff() const {
  return jobs().collection_backoff();
}

Status DBStrata::BackgroundDeltaCollection::RunMarked(JobContext* job_context) {
  db_->mutex_.AssertHeld();
  run_.emplace(strata_, this, job_context);
  if (run_->deltas() == nullptr) {
    jobs().EndPick();
    run_.reset();
    return Status::OK();
  }
  Status s = Pick();
  if (!s.ok() || !pick_.found) {
    return EndWithoutPick(s);
  }
  Begin();
  DeltaGcJob::Context context = MakeContext();
  db_->mutex_.Unlock();

  s = Write(std::move(context));
  TEST_SYNC_POINT_CALLBACK(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", &s);

  db_->mutex_.Lock();
  s = CommitCollection(s, job_context);
  db_->mutex_.Unlock();

  TEST_SYNC_POINT("DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit");
  Report(s);

  db_->mutex_.Lock();
  return End(s, job_context);
}

Status DBStrata::BackgroundDeltaCollection::Pick() {
  options_ = PickerOptions();
  if (options_.wishes != nullptr && options_.can_fold) {
    jobs().OnWishesTaken();
  }
  const std::vector<DeltaJobState::Collection> running = jobs().Collections();
  was_alone_at_pick_ = running.empty();
  std::shared_ptr<const DeltaBucketIntake> slices = jobs().slices();
  db_->mutex_.Unlock();
  TEST_SYNC_POINT("DBStrata::BackgroundDeltaCollection::Pick:Begin");
  Status s =
      DeltaBucketIntake::Estimate(*run_->deltas(), *run_->store(),
                                  run_->read_options(), slices.get(), &slices);
  bool is_any_unreadable = false;
  if (s.ok()) {
    is_any_unreadable =
        slices->AddUnreadableTo(&options_.damage, cfd()->user_comparator());
    pick_ = DeltaPicker::PickCollection(options_, *run_->deltas(), *slices,
                                        running);
    waits_for_others_ = pick_.waits_for_others;
  }
  db_->mutex_.Lock();
  if (is_any_unreadable &&
      slices->AddUnreadableTo(&jobs().damage(), cfd()->user_comparator())) {
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "[%s] Buckets are left alone as a delta file cannot be "
                    "read: %s",
                    run_->cf_name(),
                    options_.damage.error().ToString().c_str());
  }
  if (s.ok()) {
    jobs().SetSlices(std::move(slices));
    s = strata_->scheduler_.CheckToStop(*this);
  }
  return s;
}

Status DBStrata::BackgroundDeltaCollection::EndWithoutPick(const Status& s) {
  if (s.ok() && was_alone_at_pick_ &&
      DeltaPicker::CanFulfil(options_, *run_->deltas())) {
    jobs().DropWishes(options_.wishes);
  }
  if (options_.wishes != nullptr && !options_.can_fold) {
    jobs().SetWishesWait();
  }
  jobs().EndPick();
  run_.reset();
  if (!s.ok()) {
    jobs().SetCollectionDue();
    NoteResult(s);
  }
  return s;
}

void DBStrata::BackgroundDeltaCollection::Begin() {
  found_ = true;
  TEST_SYNC_POINT_CALLBACK("DBStrata::BackgroundDeltaCollection::Begin:Picked",
                           &pick_);
  DeltaJobState::Collection collection;
  collection.range = {pick_.plan.begin, pick_.plan.end};
  collection.more_buckets = pick_.plan.max_new_buckets;
  collection.fewer_buckets = pick_.fewer_buckets;
  collection.is_folding = pick_.plan.fold;
  collection.path_id = options_.paths->sorted;
  handle_ = jobs().BeginCollection(std::move(collection));
  jobs().EndPick();
  if (!pick_.takes_all) {
    // Another thread may find more buckets. Not beside a collection of all of
    // them: a job that waits for a thread of the pool counts as one that picks,
    // so neither could drop the buckets, and there would always be a next one.
    jobs().SetCollectionDue();
    strata_->SetDeltaJobsDue();
    strata_->ScheduleDeltaJobs();
  }
  // A manual job may wait until this pick has ended.
  db_->bg_cv_.SignalAll();
}

DeltaGcJob::Context DBStrata::BackgroundDeltaCollection::MakeContext() {
  DeltaGcJob::Context context;
  run_->MakePassContext(&context.pass);
  context.output = run_->OutputOptions(options_.paths->sorted);
  context.new_file_number = run_->NewFileNumber();
  context.version = run_->deltas();
  context.bucket_size = options_.bucket_size;
  context.split_ratio = options_.split_ratio;
  context.checks = DeltaOutputChecks::OfJobs(run_->moptions());
  if (pick_.plan.fold) {
    MakeFolder(context.pass.earliest_snapshot);
    context.folder = folder_.get();
  }
  return context;
}

void DBStrata::BackgroundDeltaCollection::MakeFolder(
    SequenceNumber earliest_snapshot) {
  DeltaValueFolder::Context context;
  context.store = run_->store();
  context.ioptions = &run_->ioptions();
  context.floor = pick_.plan.floor;
  context.earliest_snapshot = earliest_snapshot;
  context.file_options = db_->fs_->OptimizeForCompactionTableRead(
      db_->file_options_for_compaction_, db_->immutable_db_options_);
  context.shutting_down = &db_->shutting_down_;
  context.io_priority = run_->read_options().rate_limiter_priority;
  context.max_bytes = DeltaValueFolder::MaxBytes(run_->moptions());
  TEST_SYNC_POINT_CALLBACK(
      "DBStrata::BackgroundDeltaCollection::MakeFolder:MaxBytes",
      &context.max_bytes);
  folder_ = std::make_unique<DeltaValueFolder>(context, run_->version());
}

Status DBStrata::BackgroundDeltaCollection::Write(DeltaGcJob::Context context) {
  Status s = run_->MakeFilter(&context.pass);
  job_ = std::make_unique<DeltaGcJob>(std::move(context));
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] [JOB %d] Collecting %zu delta buckets, %" PRIu64
                 " bytes, up to epoch %" PRIu64 "%s%s%s%s",
                 run_->cf_name(), run_->job_id(), pick_.num_buckets,
                 pick_.bytes, pick_.plan.floor,
                 pick_.plan.fold ? "; folding" : "",
                 pick_.plan.merge_neighbours ? "; putting them together" : "",
                 pick_.plan.rewrite_all ? "; rewriting all" : "",
                 pick_.moves_files ? "; for files on other paths" : "");
  TEST_SYNC_POINT_CALLBACK("DBStrata::BackgroundDeltaCollection::Write:Begin",
                           &pick_.plan);
  if (s.ok()) {
    s = job_->Run(pick_.plan);
  }
  if (folder_ != nullptr) {
    folder_->Finish();
  }
  fold_job_.check = [this] { return strata_->scheduler_.CheckToStop(*this); };
  fold_job_.publish = [this] { return job_->Publish(run_->directory()); };
  fold_job_.withdraw = [this] { return job_->Abandon(run_->directory()); };
  if (s.ok() && (folder_ == nullptr || folder_->values()->empty())) {
    s = fold_job_.publish();
  }
  run_->DropFilter();
  return s;
}

Status DBStrata::BackgroundDeltaCollection::CommitCollection(
    Status s, JobContext* job_context) {
  db_->mutex_.AssertHeld();
  if (s.ok()) {
    s = strata_->scheduler_.CheckToStop(*this);
  }
  // All buckets may be dropped only if no other job has some of them, and none
  // begins before the edit is committed. So no job may select any meanwhile.
  const bool is_alone =
      s.ok() && jobs().num_collections() == 1 && !jobs().is_picking();
  if (is_alone) {
    jobs().BeginPick();
  }
  VersionEdit edit;
  std::unique_ptr<DeltaFoldCommit> fold;
  if (s.ok()) {
    s = FillEdit(is_alone, &edit, &fold);
  }
  if (s.ok()) {
    s = Commit(&edit);
  }
  SuperVersionContext* const sv_context =
      job_context->superversion_contexts.data();
  if (s.ok()) {
    db_->InstallSuperVersionAndScheduleWork(cfd(), sv_context);
  }
  strata_->EndDeltaFold(&fold, s, sv_context);
  if (is_alone) {
    jobs().EndPick();
  }
  if (s.IsCorruption() && !tried_to_commit_ && !pick_.takes_all) {
    // From here on, another thread may pick these buckets.
    jobs().damage().Add({pick_.plan.begin, pick_.plan.end}, pick_.num_buckets,
                        s, cfd()->user_comparator());
  }
  jobs().EndCollection(handle_);
  if (s.ok()) {
    NoteSuccess();
  }
  // The next collection may be due, or may not have been possible beside this
  // one.
  jobs().SetCollectionDue();
  return s;
}

Status DBStrata::BackgroundDeltaCollection::FillEdit(
    bool is_alone, VersionEdit* edit, std::unique_ptr<DeltaFoldCommit>* fold) {
  DeltaEdit delta_edit;
  job_->AddTo(&delta_edit, /*drop_unused_buckets=*/is_alone);
  MakeEdit(std::move(delta_edit), job_->stats().pass.filter_changed, edit);
  Status s;
  if (folder_ != nullptr) {
    s = strata_->BeginDeltaFold(cfd(), run_->job_id(), folder_.get(), fold_job_,
                                edit, fold);
  }
  if (s.ok() && job_->stats().operands_folded > 0) {
    assert(*fold != nullptr);
    run_->store()->OnFold(db_->versions_->current_next_file_number());
  }
  return s;
}

void DBStrata::BackgroundDeltaCollection::NoteSuccess() {
  if (pick_.takes_all) {
    jobs().SetPartitionDamaged(false);
  }
  const DeltaEdit::KeyRange range{pick_.plan.begin, pick_.plan.end};
  jobs().damage().Remove(range, cfd()->user_comparator());
  if (folder_ != nullptr) {
    jobs().OnFoldCommitted();
  }
  if (folder_ != nullptr && folder_->stats().keys_folded > 0) {
    jobs().OnFolded(folder_->stats().keys_folded, folder_->stats().bytes_folded,
                    folder_->max_bytes(), folder_->stats().full);
  }
  if (pick_.plan.wishes != nullptr && !folder_->stats().full &&
      !folder_->stats().read_failed) {
    jobs().FulfilWishes(range, cfd()->user_comparator());
  }
  if (options_.drain) {
    strata_->FinishDrainJob(cfd(), options_.earliest_snapshot, *job_,
                            folder_.get());
  }
}

void DBStrata::BackgroundDeltaCollection::Report(const Status& s) {
  const DeltaGcJob::Stats stats = job_->stats();
  if (!s.ok() && !tried_to_commit_) {
    job_->Abandon(run_->directory());
  }
  if (s.ok()) {
    RecordTick(db_->stats_, DELTA_BUCKETS_COLLECTED, stats.buckets_read);
    RecordTick(db_->stats_, DELTA_OPERANDS_FOLDED, stats.operands_folded);
  }
  Count(stats.pass, stats.pass.bytes_read, stats.bytes_written);
  LogCollection(stats, s);
  if (folder_ != nullptr) {
    LogFold();
  }
}

void DBStrata::BackgroundDeltaCollection::LogCollection(
    const DeltaGcJob::Stats& stats, const Status& s) {
  ROCKS_LOG_INFO(
      db_->immutable_db_options_.info_log,
      "[%s] [JOB %d] Collected %" PRIu64 " delta buckets into %" PRIu64
      " (%" PRIu64 " floors raised): %" PRIu64
      " bytes of operands into %" PRIu64 ", %" PRIu64 " operands into %" PRIu64
      " (%" PRIu64 " hidden, %" PRIu64 " combined, %" PRIu64
      " filtered, %" PRIu64 " folded), %" PRIu64 " files, %" PRIu64
      " bytes written, %" PRIu64 " ms: %s",
      run_->cf_name(), run_->job_id(), stats.buckets_read,
      stats.buckets_written, stats.buckets_raised, stats.pass.bytes_read,
      stats.pass.bytes_kept, stats.pass.operands_read,
      stats.pass.operands_kept - stats.operands_folded,
      stats.pass.operands_hidden, stats.pass.operands_combined,
      stats.pass.operands_filtered, stats.operands_folded, stats.files_written,
      stats.bytes_written, run_->micros() / 1000, s.ToString().c_str());
}

void DBStrata::BackgroundDeltaCollection::LogFold() {
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] [JOB %d] Fold: %" PRIu64 " keys, %" PRIu64
                 " left, %" PRIu64 " failed%s: %s",
                 run_->cf_name(), run_->job_id(), folder_->stats().keys_folded,
                 folder_->stats().keys_left, folder_->stats().merges_failed,
                 folder_->stats().full ? "; no room for more" : "",
                 folder_->last_failure().ToString().c_str());
}

Status DBStrata::BackgroundDeltaCollection::End(Status s,
                                                JobContext* job_context) {
  db_->mutex_.AssertHeld();
  const Status drain_s = s.ok() ? EndDrain(job_context) : Status::OK();
  job_.reset();
  folder_.reset();
  run_.reset();
  if (s.IsTryAgain() && pick_.plan.fold) {
    // Another job came between the fold and the files that it has read. Nothing
    // was wrong, and the next job does without a fold. A drain cannot do so,
    // but each of its folds fails only if another job has come again. After a
    // background error, no job folds before the recovery, and then there is no
    // reason to wait.
    if (AreFoldsAllowed(strata_)) {
      jobs().OnFoldGivenUp(NowMicros(strata_));
    }
    ++request_->folds_given_up;
    return Status::OK();
  }
  if (s.ok()) {
    request_->folds_given_up = 0;
    s = drain_s;
  }
  NoteResult(s);
  return s;
}

Status DBStrata::BackgroundDeltaCollection::EndDrain(JobContext* job_context) {
  if (options_.drain && cfd()->current()->storage_info()->delta() == nullptr) {
    return strata_->RollManifestWithoutDeltas(Env::IOActivity::kCompaction,
                                              job_context);
  }
  if ((options_.drain || pick_.plan.wishes != nullptr) && folder_ != nullptr) {
    if (folder_->stats().read_failed) {
      return folder_->last_failure();
    }
    if (folder_->stats().damaged && request_->fold_error.ok()) {
      request_->fold_error = folder_->last_failure();
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
