//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Merges of delta files and collections of buckets: when jobs run, and their
// way from the files they write to the MANIFEST. What is to be done,
// DeltaPicker decides; what a job does is in db/delta/delta_merge_job.* and
// delta_gc_job.*.
//
// A job holds a reference to its Version, in which its files stay. What it may
// drop depends on who reads: the list of snapshots is taken when its files are
// known, so all who read what it leaves, and have no snapshot of that list,
// read at a later sequence number than all that it has seen.

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/delta/delta_bucket_intake.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_fold_commit.h"
#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_folder.h"
#include "db/delta/delta_gc_job.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_merge_job.h"
#include "db/delta/delta_merge_pass.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_read.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/job_context.h"
#include "db/path_layout/path_layout.h"
#include "db/strata/db_strata.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/iostats_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "monitoring/thread_status_util.h"
#include "options/strata/merged_value_options.h"
#include "rocksdb/compaction_filter.h"
#include "test_util/sync_point.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

void SetDeltaEdit(const ColumnFamilyData& cfd, DeltaEdit delta_edit,
                  bool filter_changed, VersionEdit* edit) {
  edit->SetColumnFamily(cfd.GetID());
  edit->SetDeltaEdit(std::move(delta_edit));
  if (filter_changed) {
    edit->ChangeMergedValues();
  }
}

void Record(Statistics* statistics, const DeltaMergePass::Stats& stats,
            uint64_t bytes_read, uint64_t bytes_written) {
  RecordTick(statistics, DELTA_GC_OPERANDS_READ, stats.operands_read);
  RecordTick(statistics, DELTA_GC_OPERANDS_DROPPED,
             stats.operands_hidden + stats.operands_filtered +
                 stats.operands_combined);
  RecordTick(statistics, DELTA_GC_BYTES_READ, bytes_read);
  RecordTick(statistics, DELTA_GC_BYTES_WRITTEN, bytes_written);
}

// By CompactRange(), before it leaves the rest of the drain to others.
constexpr int kMaxFoldsGivenUp = 10;

// Each fold makes a file of level 0. Compactions have to keep up. (With fewer
// than their trigger they have nothing to do.)
bool Level0IsFull(ColumnFamilyData& cfd) {
  const MutableCFOptions& options = cfd.GetLatestMutableCFOptions();
  return !options.disable_auto_compactions &&
         cfd.ioptions().compaction_style != kCompactionStyleNone &&
         options.level0_slowdown_writes_trigger >= 0 &&
         cfd.current()->storage_info()->NumLevelFiles(0) >=
             std::max(options.level0_slowdown_writes_trigger,
                      options.level0_file_num_compaction_trigger);
}

// Beside compactions and flushes, of all column families. One of them is left
// for merges, of which readers gain most.
int MaxDeltaJobs(int max_background_jobs) {
  return std::max(2, max_background_jobs / 2);
}

}  // namespace

// A job, from when it was scheduled. It is marked in the DeltaJobState: as a
// merge, or as one that looks for a collection.
struct DBStrata::DeltaJobTask {
  DBStrata* strata = nullptr;
  ColumnFamilyData* cfd = nullptr;  // referenced
  bool is_merge = false;
  // Of CompactRange().
  bool is_manual = false;
  const std::atomic<bool>* canceled = nullptr;
  // As in DeltaPicker::Options.
  uint64_t force_below = 0;
  // There was something to do.
  bool found = false;
  // Of the drain, one after the other.
  int folds_given_up = 0;
};

// What the passes of a job need. Made, and destroyed, under the mutex.
class DBStrata::DeltaJobRun {
 public:
  // Pins the current Version.
  DeltaJobRun(DBStrata* strata, const DeltaJobTask* task,
              JobContext* job_context)
      : strata_(strata),
        db_(strata->db_),
        task_(task),
        job_context_(job_context),
        cfd_(task->cfd),
        moptions_(cfd_->GetLatestMutableCFOptions()),
        read_options_(MakeReadOptions()),
        version_(cfd_->current()),
        deltas_(version_->storage_info()->delta()),
        started_(db_->immutable_db_options_.clock->NowMicros()) {
    db_->mutex_.AssertHeld();
    version_->Ref();
  }
  ~DeltaJobRun() {
    db_->mutex_.AssertHeld();
    deltas_.reset();
    version_->Unref();
  }
  DeltaJobRun(const DeltaJobRun&) = delete;
  DeltaJobRun& operator=(const DeltaJobRun&) = delete;

  Version* version() const { return version_; }
  // nullptr: there are no delta files.
  const std::shared_ptr<const DeltaVersion>& deltas() const { return deltas_; }
  const MutableCFOptions& moptions() const { return moptions_; }
  const ImmutableOptions& ioptions() const { return cfd_->ioptions(); }
  DeltaStore* store() const { return cfd_->delta_store(); }
  const char* cf_name() const { return cfd_->GetName().c_str(); }
  int job_id() const { return job_context_->job_id; }
  uint64_t micros() const {
    return db_->immutable_db_options_.clock->NowMicros() - started_;
  }

  const ReadOptions& read_options() const { return read_options_; }

  static DeltaPicker::Options PickerOptions(DBStrata* strata,
                                            ColumnFamilyData* cfd) {
    strata->db_->mutex_.AssertHeld();
    const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
    DeltaPicker::Options options;
    options.bucket_size = cfd->ioptions().delta_bucket_size;
    options.max_buckets = cf_options.delta_max_buckets;
    options.split_ratio = cf_options.delta_bucket_split_ratio;
    options.oldest_running_flush = cfd->delta_store()->OldestRunningFlush();
    options.earliest_snapshot = strata->EarliestReader(*cfd);
    const DeltaJobState& jobs = cfd->delta_store()->jobs();
    options.can_fold = jobs.MayFold();
    options.max_folded = jobs.fold_bytes();
    options.min_fold_bytes = jobs.min_fold_bytes();
    options.wishes = jobs.wishes();
    options.wishes_below = jobs.wishes_below();
    if (options.wishes != nullptr) {
      // They wait for nothing but level 0.
      options.can_fold = !jobs.IsFolding() && !Level0IsFull(*cfd);
    }
    if (DrainsDeltas(*cfd)) {
      options.drain = true;
      options.wishes.reset();  // everything is folded
      // There is nothing else to do until one succeeds.
      options.can_fold = !jobs.IsFolding();
      options.leftovers = jobs.leftovers();
      options.max_collected = options.max_folded;
    }
    return options;
  }
  DeltaPicker::Options PickerOptions() const {
    return PickerOptions(strata_, cfd_, *task_);
  }
  static DeltaPicker::Options PickerOptions(DBStrata* strata,
                                            ColumnFamilyData* cfd,
                                            const DeltaJobTask& task) {
    DeltaPicker::Options options = PickerOptions(strata, cfd);
    options.force_below = task.force_below;
    options.can_fold &= task.folds_given_up < kMaxFoldsGivenUp;
    return options;
  }

  // REQUIRES of the following: mutex held; what they give out is of no use
  // without this.

  // But for the filter.
  void MakePassContext(DeltaMergePass::Context* context) {
    db_->mutex_.AssertHeld();
    db_->InitSnapshotContext(job_context_, cfd_);
    context->store = store();
    context->ioptions = &ioptions();
    context->moptions = &moptions_;
    context->snapshots = job_context_->snapshot_seqs;
    context->earliest_snapshot = job_context_->GetEarliestSnapshotSequence();
    context->earliest_write_conflict_snapshot =
        job_context_->earliest_write_conflict_snapshot;
    context->job_snapshot = job_context_->GetJobSnapshotSequence();
    context->latest_listed_snapshot = job_context_->latest_listed_snapshot;
    context->snapshot_checker = job_context_->snapshot_checker;
    context->check = [this] { return strata_->CheckDeltaJob(*task_); };
    context->shutting_down = &db_->shutting_down_;
    context->read_options = read_options_;
    context->env = db_->env_;
    context->info_log = db_->immutable_db_options_.info_log.get();
  }

  DeltaFileBuilder::Options OutputOptions() {
    db_->mutex_.AssertHeld();
    DeltaFileBuilder::Options options;
    // As an SST file of level 0, like those of flushes.
    options.path_id = PathLayout::SstPathIdOr(moptions_, /*level=*/0,
                                              /*otherwise=*/0);
    options.db_id = db_->db_id_;
    options.job_id = job_id();
    options.reason = TableFileCreationReason::kCompaction;
    options.file_options = db_->file_options_for_compaction_;
    options.write_options = WriteOptions(Env::IOActivity::kCompaction);
    options.write_options.rate_limiter_priority =
        read_options_.rate_limiter_priority;
    options.write_hint = version_->storage_info()->CalculateSSTWriteHint(
        /*level=*/0,
        db_->immutable_db_options_.calculate_sst_write_lifetime_hint_set);
    directory_ = db_->GetDataDir(cfd_, options.path_id);
    return options;
  }

  std::function<uint64_t()> NewFileNumber() {
    return [this] { return db_->versions_->NewFileNumber(); };
  }

  // Where the files are. REQUIRES: OutputOptions() was called.
  FSDirectory* directory() const { return directory_; }

  // The one that compactions have, until DropFilter(). NotSupported: it wants
  // to be asked about what snapshots see. REQUIRES of both: mutex not held, as
  // it is the user's code.
  Status MakeFilter(DeltaMergePass::Context* pass) {
    const CompactionFilter* filter = ioptions().compaction_filter;
    CompactionFilterFactory* const factory =
        ioptions().compaction_filter_factory.get();
    if (filter == nullptr && factory != nullptr &&
        factory->ShouldFilterTableFileCreation(
            TableFileCreationReason::kCompaction)) {
      CompactionFilter::Context context;
      context.is_full_compaction = false;
      context.is_manual_compaction = task_->is_manual;
      context.column_family_id = cfd_->GetID();
      context.reason = TableFileCreationReason::kCompaction;
      own_filter_ = factory->CreateCompactionFilter(context);
      filter = own_filter_.get();
    }
    pass->filter = filter;
    return filter == nullptr || filter->IgnoreSnapshots()
               ? Status::OK()
               : Status::NotSupported(
                     "CompactionFilter::IgnoreSnapshots() = false is not "
                     "supported anymore.");
  }
  void DropFilter() { own_filter_.reset(); }

 private:
  ReadOptions MakeReadOptions() const {
    ReadOptions read_options(Env::IOActivity::kCompaction);
    read_options.verify_checksums = true;
    read_options.fill_cache = false;
    // As those of compactions.
    read_options.rate_limiter_priority =
        db_->write_controller_.NeedsDelay() ||
                db_->write_controller_.IsStopped()
            ? Env::IO_USER
            : Env::IO_LOW;
    read_options.readahead_size =
        db_->mutable_db_options_.compaction_readahead_size;
    return read_options;
  }

  DBStrata* const strata_;
  DBImpl* const db_;
  const DeltaJobTask* const task_;
  JobContext* const job_context_;
  ColumnFamilyData* const cfd_;
  const MutableCFOptions moptions_;
  const ReadOptions read_options_;
  Version* const version_;
  std::shared_ptr<const DeltaVersion> deltas_;
  const uint64_t started_;
  std::unique_ptr<CompactionFilter> own_filter_;
  FSDirectory* directory_ = nullptr;
};

void DBStrata::AddDeltaThreads() {
  const int max_jobs = db_->mutable_db_options_.max_background_jobs;
  // With those of AddBlobGcThreads().
  db_->env_->IncBackgroundThreadsIfNeeded(
      db_->GetBGJobLimits().max_compactions + MaxDeltaJobs(max_jobs) +
          (has_address_maps_ ? max_jobs + 1 : 0),
      Env::Priority::LOW);
}

void DBStrata::SetDeltaOptionsChanged(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  if (cfd->delta_store() != nullptr) {
    cfd->delta_store()->jobs().SetCollectionDue();
    SetDeltaJobsDue();
  }
}

void DBStrata::ScheduleDeltaJobs() {
  db_->mutex_.AssertHeld();
  if (!has_delta_stores_ || !delta_jobs_due_ || !MayStartJobs() ||
      db_->compaction_aborted_.load(std::memory_order_acquire) > 0) {
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
  if (!jobs.MayRun(db_->immutable_db_options_.clock->NowMicros())) {
    // Whoever comes by next asks again. Nobody waits for it.
    SetDeltaJobsDue();
    return;
  }
  cfd->delta_store()->AddFoldWishes(cfd->delta_store()->holds()->Take(),
                                    db_->versions_->current_next_file_number());
  // The end of a job makes it due again where there is no room now.
  const int max_jobs =
      MaxDeltaJobs(db_->mutable_db_options_.max_background_jobs);
  if (bg_delta_jobs_scheduled_ < max_jobs && !jobs.is_merging() &&
      !DeltaPicker::PickMerge(DeltaJobRun::PickerOptions(this, cfd), *version)
           .inputs.empty()) {
    jobs.BeginMerge();
    StartDeltaJob(cfd, /*is_merge=*/true);
  }
  if (bg_delta_jobs_scheduled_ < max_jobs - 1 && jobs.is_collection_due() &&
      !jobs.is_picking() && DeltaPicker::MayCollect(*version) &&
      !(DrainsDeltas(*cfd) && Level0IsFull(*cfd))) {
    jobs.BeginPick();
    StartDeltaJob(cfd, /*is_merge=*/false);
  }
}

void DBStrata::StartDeltaJob(ColumnFamilyData* cfd, bool is_merge) {
  auto task = std::make_unique<DeltaJobTask>();
  task->strata = this;
  task->cfd = cfd;
  cfd->Ref();
  task->is_merge = is_merge;
  ++bg_delta_jobs_scheduled_;
  TEST_SYNC_POINT_CALLBACK("DBStrata::StartDeltaJob", &task->is_merge);
  db_->env_->Schedule(&DBStrata::BGWorkDeltaJob, task.release(),
                      Env::Priority::LOW,
                      db_->GetTaskTag(DBImpl::TaskType::kDefault),
                      &DBStrata::UnscheduleDeltaJob);
}

// The job has not begun.
void DBStrata::GiveUpDeltaJob(const DeltaJobTask& task) {
  db_->mutex_.AssertHeld();
  DeltaJobState& jobs = task.cfd->delta_store()->jobs();
  if (task.is_merge) {
    jobs.EndMerge();
  } else {
    jobs.EndPick();
    jobs.SetCollectionDue();
  }
}

void DBStrata::UnscheduleDeltaJob(void* arg) {
  // The DB is being closed: mutex_ is held.
  const std::unique_ptr<DeltaJobTask> task(static_cast<DeltaJobTask*>(arg));
  DBStrata* const strata = task->strata;
  strata->GiveUpDeltaJob(*task);
  task->cfd->UnrefAndTryDelete();
  --strata->bg_delta_jobs_scheduled_;
}

void DBStrata::BGWorkDeltaJob(void* arg) {
  IOSTATS_SET_THREAD_POOL_ID(Env::Priority::LOW);
  TEST_SYNC_POINT("DBStrata::BGWorkDeltaJob:Start");
  const std::unique_ptr<DeltaJobTask> task(static_cast<DeltaJobTask*>(arg));
  task->strata->BackgroundDeltaJob(task.get());
}

Status DBStrata::CheckDeltaJob(const DeltaJobTask& task) const {
  if (db_->shutting_down_.load(std::memory_order_acquire)) {
    return Status::ShutdownInProgress();
  }
  if (task.cfd->IsDropped()) {
    return Status::ColumnFamilyDropped();
  }
  if (task.is_manual &&
      (db_->manual_compaction_paused_.load(std::memory_order_acquire) > 0 ||
       (task.canceled != nullptr &&
        task.canceled->load(std::memory_order_acquire)))) {
    return Status::Incomplete(Status::SubCode::kManualCompactionPaused);
  }
  if (db_->compaction_aborted_.load(std::memory_order_acquire) > 0) {
    return Status::Incomplete(Status::SubCode::kCompactionAborted);
  }
  return Status::OK();
}

void DBStrata::BackgroundDeltaJob(DeltaJobTask* task) {
  JobContext job_context(db_->next_job_id_.fetch_add(1),
                         /*_create_superversion=*/true);
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    RunDeltaJob(task, &job_context).PermitUncheckedError();
    task->cfd->UnrefAndTryDelete();
  }
  if (job_context.HaveSomethingToDelete()) {
    db_->PurgeObsoleteFiles(job_context);
  }
  job_context.Clean();

  InstrumentedMutexLock lock(&db_->mutex_);
  --bg_delta_jobs_scheduled_;
  // There is room for another one. One that has failed does not start again at
  // once (DeltaJobState::MayRun()): who waits for all would wait for ever.
  SetDeltaJobsDue();
  db_->MaybeScheduleFlushOrCompaction();
  // The DB may be gone once the mutex is released after this.
  db_->bg_cv_.SignalAll();
}

Status DBStrata::RunDeltaJob(DeltaJobTask* task, JobContext* job_context) {
  db_->mutex_.AssertHeld();
  ColumnFamilyData* const cfd = task->cfd;
  Status s = CheckDeltaJob(*task);
  if (s.ok() && db_->error_handler_.IsBGWorkStopped()) {
    s = db_->error_handler_.GetBGError();
  }
  const bool is_off = !task->is_manual &&
                      cfd->GetLatestMutableCFOptions().disable_auto_compactions;
  if (!s.ok() || is_off) {
    GiveUpDeltaJob(*task);
    return s;
  }
  ThreadStatusUtil::SetColumnFamily(cfd);
  ThreadStatusUtil::SetThreadOperation(ThreadStatus::OP_DELTA_GC);
  auto pending_outputs = std::make_unique<std::list<uint64_t>::iterator>(
      db_->CaptureCurrentFileNumberInPendingOutputs());
  s = task->is_merge ? RunDeltaMerge(task, job_context)
                     : RunDeltaCollection(task, job_context);
  db_->ReleaseFileNumberFromPendingOutputs(pending_outputs);
  // What follows is not of the job: it may close a WAL.
  ThreadStatusUtil::ResetThreadStatus();
  db_->FindObsoleteFiles(job_context, !s.ok() && !s.IsShutdownInProgress() &&
                                          !s.IsColumnFamilyDropped() &&
                                          !s.IsIncomplete());
  return s;
}

Status DBStrata::CommitDeltaJob(ColumnFamilyData* cfd, VersionEdit* edit) {
  db_->mutex_.AssertHeld();
  const ReadOptions read_options(Env::IOActivity::kCompaction);
  const WriteOptions write_options(Env::IOActivity::kCompaction);
  return db_->versions_->LogAndApply(cfd, read_options, write_options, edit,
                                     &db_->mutex_,
                                     db_->directories_.GetDbDir());
}

void DBStrata::FinishDeltaJob(const DeltaJobTask& task, const Status& s,
                              bool tried_to_commit) {
  db_->mutex_.AssertHeld();
  DeltaJobState& jobs = task.cfd->delta_store()->jobs();
  if (s.ok()) {
    jobs.OnSuccess();
    return;
  }
  if (s.IsShutdownInProgress() || s.IsColumnFamilyDropped() ||
      s.IsIncomplete()) {
    return;  // nothing was wrong
  }
  RecordTick(db_->stats_, DELTA_GC_FAILED);
  jobs.OnFailure(db_->immutable_db_options_.clock->NowMicros());
  if (tried_to_commit) {
    // If it was not the MANIFEST, the edit did not go with the Version, and
    // nothing has changed.
    if (!db_->versions_->io_status().ok()) {
      db_->error_handler_.SetBGError(db_->versions_->io_status(),
                                     BackgroundErrorReason::kManifestWrite);
    }
  } else if (s.IsCorruption()) {
    // A damaged file costs its own operands only. The job is tried again later,
    // and the DB accepts writes.
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "[%s] A job of delta files has failed: %s",
                    task.cfd->GetName().c_str(), s.ToString().c_str());
  } else if (!s.IsNoSpace() && s.subcode() != Status::kSpaceLimit) {
    // Without space, flushes say so when it matters; merging files is what
    // gives some back.
    db_->error_handler_.SetBGError(s, BackgroundErrorReason::kCompaction);
  }
}

Status DBStrata::RunDeltaMerge(DeltaJobTask* task, JobContext* job_context) {
  db_->mutex_.AssertHeld();
  ColumnFamilyData* const cfd = task->cfd;
  DeltaJobState& jobs = cfd->delta_store()->jobs();
  std::optional<DeltaJobRun> run;
  run.emplace(this, task, job_context);
  DeltaPicker::Merge pick;
  if (run->deltas() != nullptr) {
    pick = DeltaPicker::PickMerge(run->PickerOptions(), *run->deltas());
  }
  if (pick.inputs.empty()) {
    jobs.EndMerge();
    return Status::OK();
  }
  task->found = true;
  const size_t num_inputs = pick.inputs.size();
  DeltaMergeJob::Context context;
  run->MakePassContext(&context.pass);
  context.output = run->OutputOptions();
  context.new_file_number = run->NewFileNumber();
  context.verify_contents = run->moptions().paranoid_file_checks;
  db_->mutex_.Unlock();

  Status s = run->MakeFilter(&context.pass);
  auto job = std::make_unique<DeltaMergeJob>(std::move(context),
                                             std::move(pick.inputs));
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] [JOB %d] Merging %zu delta files, %" PRIu64
                 " bytes, up to epoch %" PRIu64,
                 run->cf_name(), run->job_id(), num_inputs, pick.bytes,
                 pick.last_epoch);
  TEST_SYNC_POINT("DBStrata::RunDeltaMerge:Begin");
  if (s.ok()) {
    s = job->Run();
  }
  if (s.ok()) {
    s = job->Publish(run->directory());
  }
  run->DropFilter();
  TEST_SYNC_POINT_CALLBACK("DBStrata::RunDeltaMerge:BeforeEdit", &s);

  db_->mutex_.Lock();
  if (s.ok()) {
    s = CheckDeltaJob(*task);
  }
  bool tried_to_commit = false;
  if (s.ok()) {
    VersionEdit edit;
    DeltaEdit delta_edit;
    job->AddTo(&delta_edit);
    SetDeltaEdit(*cfd, std::move(delta_edit), job->stats().filter_changed,
                 &edit);
    tried_to_commit = true;
    s = CommitDeltaJob(cfd, &edit);
  }
  jobs.EndMerge();
  if (s.ok()) {
    // Buckets may take it in now.
    jobs.SetCollectionDue();
    db_->InstallSuperVersionAndScheduleWork(
        cfd, job_context->superversion_contexts.data());
  }
  db_->mutex_.Unlock();

  TEST_SYNC_POINT("DBStrata::RunDeltaMerge:AfterEdit");
  const DeltaMergePass::Stats stats = job->stats();
  const uint64_t bytes_written = job->bytes_written();
  const size_t num_outputs = job->files().size();
  if (!s.ok() && !tried_to_commit) {
    job->Abandon();
  }
  if (s.ok()) {
    RecordTick(db_->stats_, DELTA_MERGES);
  }
  Record(db_->stats_, stats, job->bytes_read(), bytes_written);
  ROCKS_LOG_INFO(
      db_->immutable_db_options_.info_log,
      "[%s] [JOB %d] Merged %zu delta files into %zu: %" PRIu64
      " bytes into %" PRIu64 ", %" PRIu64 " operands into %" PRIu64 " (%" PRIu64
      " hidden, %" PRIu64 " combined, %" PRIu64 " filtered), %" PRIu64
      " anchors into %" PRIu64 ", %" PRIu64 " ms: %s",
      run->cf_name(), run->job_id(), num_inputs, num_outputs, pick.bytes,
      bytes_written, stats.operands_read, stats.operands_kept,
      stats.operands_hidden, stats.operands_combined, stats.operands_filtered,
      stats.anchors_read, stats.anchors_kept, run->micros() / 1000,
      s.ToString().c_str());

  db_->mutex_.Lock();
  job.reset();
  run.reset();
  FinishDeltaJob(*task, s, tried_to_commit);
  return s;
}

Status DBStrata::RunDeltaCollection(DeltaJobTask* task,
                                    JobContext* job_context) {
  db_->mutex_.AssertHeld();
  ColumnFamilyData* const cfd = task->cfd;
  DeltaJobState& jobs = cfd->delta_store()->jobs();
  std::optional<DeltaJobRun> run;
  run.emplace(this, task, job_context);
  if (run->deltas() == nullptr) {
    jobs.EndPick();
    return Status::OK();
  }

  // Without the mutex, as there may be many buckets. Those that are to be
  // collected stay as they are: whatever began to change some is in `running`,
  // and nobody else begins to.
  const DeltaPicker::Options options = run->PickerOptions();
  const std::vector<DeltaJobState::Collection> running = jobs.Collections();
  std::shared_ptr<const DeltaBucketIntake> slices = jobs.slices();
  db_->mutex_.Unlock();
  TEST_SYNC_POINT("DBStrata::RunDeltaCollection:Pick");
  Status s =
      DeltaBucketIntake::Estimate(*run->deltas(), *run->store(),
                                  run->read_options(), slices.get(), &slices);
  DeltaPicker::Collection pick;
  if (s.ok()) {
    pick =
        DeltaPicker::PickCollection(options, *run->deltas(), *slices, running);
  }
  db_->mutex_.Lock();
  bool tried_to_commit = false;
  if (s.ok()) {
    jobs.SetSlices(std::move(slices));
    s = CheckDeltaJob(*task);
  }
  if (!s.ok() || !pick.found) {
    if (s.ok() && running.empty() &&
        DeltaPicker::CanFulfil(options, *run->deltas())) {
      jobs.DropWishes(options.wishes);
    }
    jobs.EndPick();
    run.reset();
    if (!s.ok()) {
      jobs.SetCollectionDue();
      FinishDeltaJob(*task, s, tried_to_commit);
    }
    return s;
  }
  task->found = true;
  TEST_SYNC_POINT_CALLBACK("DBStrata::RunDeltaCollection:Picked", &pick);
  DeltaJobState::Collection collection;
  collection.range = {pick.plan.begin, pick.plan.end};
  collection.more_buckets = pick.plan.max_new_buckets;
  collection.fewer_buckets = pick.fewer_buckets;
  collection.is_folding = pick.plan.fold;
  const DeltaJobState::Handle handle =
      jobs.BeginCollection(std::move(collection));
  jobs.EndPick();
  // There may be more, for another thread.
  jobs.SetCollectionDue();
  SetDeltaJobsDue();
  ScheduleDeltaJobs();

  DeltaGcJob::Context context;
  run->MakePassContext(&context.pass);
  context.output = run->OutputOptions();
  context.new_file_number = run->NewFileNumber();
  context.version = run->deltas();
  context.bucket_size = options.bucket_size;
  context.split_ratio = options.split_ratio;
  context.verify_contents = run->moptions().paranoid_file_checks;
  std::unique_ptr<DeltaValueFolder> folder;
  if (pick.plan.fold) {
    DeltaValueFolder::Context fold_context;
    fold_context.store = run->store();
    fold_context.ioptions = &run->ioptions();
    fold_context.floor = pick.plan.floor;
    fold_context.earliest_snapshot = context.pass.earliest_snapshot;
    fold_context.file_options = db_->fs_->OptimizeForCompactionTableRead(
        db_->file_options_for_compaction_, db_->immutable_db_options_);
    fold_context.shutting_down = &db_->shutting_down_;
    fold_context.io_priority = run->read_options().rate_limiter_priority;
    fold_context.max_bytes = DeltaValueFolder::MaxBytes(run->moptions());
    TEST_SYNC_POINT_CALLBACK("DeltaValueFolder::MaxBytes",
                             &fold_context.max_bytes);
    folder = std::make_unique<DeltaValueFolder>(fold_context, run->version());
    context.folder = folder.get();
  }
  db_->mutex_.Unlock();

  s = run->MakeFilter(&context.pass);
  auto job = std::make_unique<DeltaGcJob>(std::move(context));
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] [JOB %d] Collecting %zu delta buckets, %" PRIu64
                 " bytes, up to epoch %" PRIu64 "%s%s%s",
                 run->cf_name(), run->job_id(), pick.num_buckets, pick.bytes,
                 pick.plan.floor, pick.plan.fold ? "; folding" : "",
                 pick.plan.merge_neighbours ? "; putting them together" : "",
                 pick.plan.rewrite_all ? "; rewriting all" : "");
  TEST_SYNC_POINT_CALLBACK("DBStrata::RunDeltaCollection:Begin", &pick.plan);
  if (s.ok()) {
    s = job->Run(pick.plan);
  }
  if (folder != nullptr) {
    folder->Finish();
  }
  DeltaFoldJob fold_job;
  fold_job.check = [this, task] { return CheckDeltaJob(*task); };
  fold_job.publish = [&job, &run] { return job->Publish(run->directory()); };
  fold_job.withdraw = [&job, &run] { return job->Abandon(run->directory()); };
  if (s.ok() && (folder == nullptr || folder->values()->empty())) {
    s = fold_job.publish();
  }
  run->DropFilter();
  TEST_SYNC_POINT_CALLBACK("DBStrata::RunDeltaCollection:BeforeEdit", &s);

  db_->mutex_.Lock();
  if (s.ok()) {
    s = CheckDeltaJob(*task);
  }
  // Buckets may all go only if no other job has some of them, and none begins
  // before the edit is committed: nobody may look for one meanwhile.
  const bool is_alone =
      s.ok() && jobs.num_collections() == 1 && !jobs.is_picking();
  if (is_alone) {
    jobs.BeginPick();
  }
  VersionEdit edit;
  std::unique_ptr<DeltaFoldCommit> fold;
  if (s.ok()) {
    DeltaEdit delta_edit;
    job->AddTo(&delta_edit, /*drop_unused_buckets=*/is_alone);
    SetDeltaEdit(*cfd, std::move(delta_edit), job->stats().pass.filter_changed,
                 &edit);
    if (folder != nullptr) {
      s = BeginDeltaFold(cfd, run->job_id(), folder.get(), fold_job, &edit,
                         &fold);
    }
    if (s.ok() && job->stats().operands_folded > 0) {
      assert(fold != nullptr);
      run->store()->OnFold(db_->versions_->current_next_file_number());
    }
  }
  if (s.ok()) {
    tried_to_commit = true;
    s = CommitDeltaJob(cfd, &edit);
  }
  SuperVersionContext* const sv_context =
      job_context->superversion_contexts.data();
  if (s.ok()) {
    db_->InstallSuperVersionAndScheduleWork(cfd, sv_context);
  }
  EndDeltaFold(&fold, s, sv_context);
  if (is_alone) {
    jobs.EndPick();
  }
  jobs.EndCollection(handle);
  if (s.ok() && folder != nullptr && folder->stats().keys_folded > 0) {
    jobs.OnFolded(folder->stats().keys_folded, folder->stats().bytes_folded,
                  folder->max_bytes(), folder->stats().full);
  }
  if (s.ok() && pick.plan.wishes != nullptr && !folder->stats().full &&
      !folder->stats().read_failed) {
    jobs.FulfilWishes({pick.plan.begin, pick.plan.end}, cfd->user_comparator());
  }
  if (s.ok() && options.drain) {
    FinishDrainJob(cfd, options.earliest_snapshot, *job, folder.get());
  }
  // What is next may be there, or not have been possible beside this one.
  jobs.SetCollectionDue();
  db_->mutex_.Unlock();

  TEST_SYNC_POINT("DBStrata::RunDeltaCollection:AfterEdit");
  const DeltaGcJob::Stats stats = job->stats();
  if (!s.ok() && !tried_to_commit) {
    job->Abandon(run->directory());
  }
  if (s.ok()) {
    RecordTick(db_->stats_, DELTA_BUCKETS_COLLECTED, stats.buckets_read);
    RecordTick(db_->stats_, DELTA_OPERANDS_FOLDED, stats.operands_folded);
  }
  Record(db_->stats_, stats.pass, stats.pass.bytes_read, stats.bytes_written);
  ROCKS_LOG_INFO(
      db_->immutable_db_options_.info_log,
      "[%s] [JOB %d] Collected %" PRIu64 " delta buckets into %" PRIu64
      " (%" PRIu64 " floors raised): %" PRIu64
      " bytes of operands into %" PRIu64 ", %" PRIu64 " operands into %" PRIu64
      " (%" PRIu64 " hidden, %" PRIu64 " combined, %" PRIu64
      " filtered, %" PRIu64 " folded), %" PRIu64 " files, %" PRIu64
      " bytes written, %" PRIu64 " ms: %s",
      run->cf_name(), run->job_id(), stats.buckets_read, stats.buckets_written,
      stats.buckets_raised, stats.pass.bytes_read, stats.pass.bytes_kept,
      stats.pass.operands_read,
      stats.pass.operands_kept - stats.operands_folded,
      stats.pass.operands_hidden, stats.pass.operands_combined,
      stats.pass.operands_filtered, stats.operands_folded, stats.files_written,
      stats.bytes_written, run->micros() / 1000, s.ToString().c_str());
  if (folder != nullptr) {
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "[%s] [JOB %d] Fold: %" PRIu64 " keys, %" PRIu64
                   " left, %" PRIu64 " failed%s: %s",
                   run->cf_name(), run->job_id(), folder->stats().keys_folded,
                   folder->stats().keys_left, folder->stats().merges_failed,
                   folder->stats().full ? "; no room for more" : "",
                   folder->last_failure().ToString().c_str());
  }

  db_->mutex_.Lock();
  Status drain_s;
  if (s.ok() && options.drain &&
      cfd->current()->storage_info()->delta() == nullptr) {
    drain_s = RollManifestAfterDrain(job_context);
  } else if (s.ok() && (options.drain || pick.plan.wishes != nullptr) &&
             folder != nullptr && folder->stats().read_failed) {
    drain_s = folder->last_failure();
  }
  job.reset();
  folder.reset();
  run.reset();
  if (s.IsTryAgain() && pick.plan.fold) {
    // Something came between a fold and the files that it has read. Nothing was
    // wrong, and the next job goes without. That of a drain does not, but there
    // has to be something new between each time.
    jobs.OnFoldGivenUp();
    ++task->folds_given_up;
    return Status::OK();
  }
  if (s.ok()) {
    task->folds_given_up = 0;
    s = drain_s;
  }
  FinishDeltaJob(*task, s, tried_to_commit);
  return s;
}

Status DBStrata::CompactDeltas(const CompactRangeOptions& options,
                               ColumnFamilyHandle* column_family) {
  ColumnFamilyData* const cfd =
      static_cast_with_check<ColumnFamilyHandleImpl>(column_family)->cfd();
  if (cfd->delta_store() == nullptr) {
    return Status::OK();
  }
  DeltaJobTask task;
  task.strata = this;
  task.cfd = cfd;
  task.is_manual = true;
  task.canceled = options.canceled;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    task.force_below = db_->versions_->current_next_file_number();
    cfd->delta_store()->jobs().ClearLeftovers();
    // The DB is not closed, and the column family not deleted, before the end;
    // DisableManualCompaction() waits for it.
    ++manual_blob_gc_calls_;
    cfd->Ref();
  }
  Status s;
  for (bool done = false; s.ok() && !done;) {
    s = RunManualDeltaJob(&task, &done);
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  cfd->UnrefAndTryDelete();
  --manual_blob_gc_calls_;
  db_->bg_cv_.SignalAll();
  return s;
}

Status DBStrata::RunManualDeltaJob(DeltaJobTask* task, bool* done) {
  JobContext job_context(db_->next_job_id_.fetch_add(1),
                         /*_create_superversion=*/true);
  Status s;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    s = CheckDeltaJob(*task);
    if (s.ok() && db_->error_handler_.IsBGWorkStopped()) {
      s = db_->error_handler_.GetBGError();
    }
    if (s.ok()) {
      DeltaJobState& jobs = task->cfd->delta_store()->jobs();
      const bool is_paused =
          db_->bg_work_paused_ > 0 || db_->bg_compaction_paused_ > 0;
      if (is_paused || !MarkManualDeltaJob(task, done)) {
        // Others have to end first.
        if (!*done) {
          db_->bg_cv_.TimedWait(db_->immutable_db_options_.clock->NowMicros() +
                                100000);
        }
      } else {
        ++bg_delta_jobs_scheduled_;
        task->found = false;
        s = RunDeltaJob(task, &job_context);
        --bg_delta_jobs_scheduled_;
        *done = s.ok() && !task->is_merge && !task->found && jobs.IsIdle();
        // For what could not be scheduled meanwhile.
        SetDeltaJobsDue();
        ScheduleDeltaJobs();
        db_->bg_cv_.SignalAll();
        if (s.ok() && !task->found && !*done) {
          db_->bg_cv_.TimedWait(db_->immutable_db_options_.clock->NowMicros() +
                                100000);
        }
      }
    }
  }
  if (job_context.HaveSomethingToDelete()) {
    db_->PurgeObsoleteFiles(job_context);
  }
  job_context.Clean();
  return s;
}

bool DBStrata::MarkManualDeltaJob(DeltaJobTask* task, bool* done) {
  db_->mutex_.AssertHeld();
  DeltaJobState& jobs = task->cfd->delta_store()->jobs();
  const auto& version = task->cfd->current()->storage_info()->delta();
  if (version == nullptr) {
    *done = true;
    return false;
  }
  task->cfd->delta_store()->AddFoldWishes(
      task->cfd->delta_store()->holds()->Take(),
      db_->versions_->current_next_file_number());
  const DeltaPicker::Options options =
      DeltaJobRun::PickerOptions(this, task->cfd, *task);
  task->is_merge = DeltaPicker::HasForcedMerge(options, *version);
  if (task->is_merge) {
    // Not while a flush is under way that began before these files came.
    if (jobs.is_merging() ||
        DeltaPicker::PickMerge(options, *version).inputs.empty()) {
      return false;
    }
    jobs.BeginMerge();
  } else {
    if (jobs.is_picking() ||
        ((DrainsDeltas(*task->cfd) || jobs.wishes() != nullptr) &&
         Level0IsFull(*task->cfd))) {
      return false;
    }
    jobs.BeginPick();
  }
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
