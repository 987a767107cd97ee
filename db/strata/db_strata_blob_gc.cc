//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Garbage collection of the blob files of column families with an address map:
// when jobs run, and their way from the copies to the MANIFEST. What a job
// does is in db/blob_gc/blob_gc_*.

#include <algorithm>
#include <cinttypes>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_job.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_gc/blob_gc_storage.h"
#include "db/blob_gc/blob_key_bounds.h"
#include "db/blob_gc/blob_run_merger.h"
#include "db/blob_gc/unmapped_blob_gc.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/column_family.h"
#include "db/job_context.h"
#include "db/strata/db_strata.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "file/random_access_file_reader.h"
#include "logging/logging.h"
#include "monitoring/iostats_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "monitoring/thread_status_util.h"
#include "rocksdb/listener.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

// A job, from when its files were picked.
struct DBStrata::BlobGcTask {
  DBStrata* strata = nullptr;
  ColumnFamilyData* cfd = nullptr;  // referenced
  BlobGcPicker::Job job;
  std::unique_ptr<BlobGcStorage> storage;
  // Space amplification is above the limit.
  bool is_urgent = false;
  // Of CollectBlobGarbage().
  bool is_manual = false;
  const std::atomic<bool>* canceled = nullptr;
  // To BlobGcJob::Context.
  std::vector<std::vector<uint64_t>> runs;
  std::vector<bool> goes_on;
  uint64_t max_copied = 0;
  // To CollectBlobGarbage() and its merges: files that this call has found to
  // be unreadable.
  std::set<uint64_t>* unreadable = nullptr;
  // Of the job, if it succeeded.
  std::vector<BlobFileAddition> additions;
  bool reached_limit = false;
};

namespace {

// A buffer for each of them (BlobGcJob).
constexpr size_t kMaxMergedRuns = 64;
// Where the limit leaves less for garbage, merges take this share nevertheless.
constexpr double kMinMergeSlack = 0.1;
// Of the buffers of all jobs.
constexpr size_t kMaxReadMemory = size_t{64} << 20;
// How long a merge waits for jobs that run already.
constexpr uint64_t kMaxWaitForJobsMicros = 10 * 1000 * 1000;

// Beside those, compactions and flushes have their own.
int MaxJobs(int max_background_jobs, bool above_limit) {
  return std::max(1, above_limit ? max_background_jobs - max_background_jobs / 4
                                 : max_background_jobs / 2);
}

}  // namespace

void DBStrata::AddBlobGcThreads() {
  // Jobs, and the sweep of range deletions, run beside compactions, not instead
  // of them.
  const int max_jobs = db_->mutable_db_options_.max_background_jobs;
  db_->env_->IncBackgroundThreadsIfNeeded(
      db_->GetBGJobLimits().max_compactions +
          MaxJobs(max_jobs, /*above_limit=*/true) + 1,
      Env::Priority::LOW);
}

void DBStrata::ScheduleBlobGc() {
  db_->mutex_.AssertHeld();
  // What was collected would stay on disk beside its copies.
  const bool allowed = db_->disable_delete_obsolete_files_ == 0;
  if (UNLIKELY(allowed != blob_gc_allowed_)) {
    blob_gc_allowed_ = allowed;
    for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
      if (cfd->address_map_store() != nullptr) {
        cfd->address_map_store()->SetGcAllowed(allowed);
      }
    }
  }
  if (!blob_gc_due_) {
    return;
  }
  ScheduleRangeSweeps();
  if (!allowed || !MayStartJobs()) {
    return;
  }
  blob_gc_due_ = false;
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->address_map_store() != nullptr && !cfd->IsDropped()) {
      ScheduleBlobGc(cfd);
    }
  }
}

void DBStrata::ScheduleBlobGc(ColumnFamilyData* cfd) {
  AddressMapStore* const blobs = cfd->address_map_store();
  const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
  const double limit = cf_options.blob_gc_space_amp_limit;
  if (!blobs->enabled() || !blobs->ready() || limit == 0) {
    return;
  }
  for (;;) {
    const std::vector<BlobGcPicker::File> files =
        blobs->FilesForGc(*cfd->current()->storage_info());
    BlobGcPicker::Options options;
    options.space_amp_limit = limit;
    options.flush_size = cf_options.write_buffer_size;
    options.max_copied = blobs->max_gc_copies();
    options.max_jobs = MaxJobs(db_->mutable_db_options_.max_background_jobs,
                               /*above_limit=*/false);
    options.next_file_number = db_->versions_->current_next_file_number();
    options.file_size = cf_options.blob_file_size;
    const bool above_limit =
        BlobGcPicker::SpaceOf(files, 0).Amplification() > limit;
    if (bg_blob_gc_scheduled_ - running_manual_blob_gc_ -
            (range_sweep_scheduled_ ? 1 : 0) >=
        MaxJobs(db_->mutable_db_options_.max_background_jobs, above_limit)) {
      // The end of a job sets blob_gc_due_.
      return;
    }
    auto task = std::make_unique<BlobGcTask>();
    task->job = BlobGcPicker::Pick(options, files);
    if (task->job.files.empty()) {
      task->job = BlobGcPicker::PickSmall(options, files);
    }
    if (task->job.files.empty()) {
      return;
    }
    task->strata = this;
    task->cfd = cfd;
    cfd->Ref();
    task->storage = std::make_unique<BlobGcStorage>(blobs, task->job.files);
    task->is_urgent = above_limit;
    ++bg_blob_gc_scheduled_;
    TEST_SYNC_POINT_CALLBACK("DBStrata::ScheduleBlobGc", &task->job);
    db_->env_->Schedule(&DBStrata::BGWorkBlobGc, task.release(),
                        Env::Priority::LOW,
                        db_->GetTaskTag(DBImpl::TaskType::kDefault),
                        &DBStrata::UnscheduleBlobGc);
  }
}

void DBStrata::UnscheduleBlobGc(void* arg) {
  // The DB is being closed: mutex_ is held.
  const std::unique_ptr<BlobGcTask> task(static_cast<BlobGcTask*>(arg));
  task->storage.reset();
  task->cfd->UnrefAndTryDelete();
  --task->strata->bg_blob_gc_scheduled_;
}

void DBStrata::BGWorkBlobGc(void* arg) {
  IOSTATS_SET_THREAD_POOL_ID(Env::Priority::LOW);
  TEST_SYNC_POINT("DBStrata::BGWorkBlobGc:Start");
  const std::unique_ptr<BlobGcTask> task(static_cast<BlobGcTask*>(arg));
  task->strata->BackgroundBlobGc(task.get());
}

Status DBStrata::CheckBlobGc(const BlobGcTask& task) const {
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
  if (task.is_manual &&
      db_->compaction_aborted_.load(std::memory_order_acquire) > 0) {
    return Status::Incomplete(Status::SubCode::kCompactionAborted);
  }
  return Status::OK();
}

void DBStrata::BackgroundBlobGc(BlobGcTask* task) {
  JobContext job_context(db_->next_job_id_.fetch_add(1),
                         /*_create_superversion=*/true);
  Status s;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    s = RunBlobGc(task, &job_context);
    task->cfd->UnrefAndTryDelete();
    if (!s.ok() && !s.IsShutdownInProgress() && !s.IsColumnFamilyDropped()) {
      // As after a compaction that failed: what was wrong may go away.
      db_->bg_cv_.SignalAll();
      db_->mutex_.Unlock();
      db_->immutable_db_options_.clock->SleepForMicroseconds(1000000);
      db_->mutex_.Lock();
    }
    db_->MaybeScheduleFlushOrCompaction();
  }
  if (job_context.HaveSomethingToDelete()) {
    db_->PurgeObsoleteFiles(job_context);
  }
  job_context.Clean();

  InstrumentedMutexLock lock(&db_->mutex_);
  --bg_blob_gc_scheduled_;
  if (s.ok()) {
    // There is room for another one. After a failure it waits for another
    // occasion: who waits for all jobs would wait for ever.
    SetBlobGcDue();
    ScheduleBlobGc();
  }
  // The DB may be gone once the mutex is released after this.
  db_->bg_cv_.SignalAll();
}

Status DBStrata::RunBlobGc(BlobGcTask* task, JobContext* job_context) {
  db_->mutex_.AssertHeld();
  ColumnFamilyData* const cfd = task->cfd;
  AddressMapStore* const blobs = cfd->address_map_store();
  SuperVersionContext* const sv_context =
      job_context->superversion_contexts.data();
  Status s = CheckBlobGc(*task);
  if (s.ok() && db_->error_handler_.IsBGWorkStopped()) {
    s = db_->error_handler_.GetBGError();
  }
  if (!s.ok() || task->storage->files().empty()) {
    task->storage.reset();
    return s;
  }

  ThreadStatusUtil::SetColumnFamily(cfd);
  ThreadStatusUtil::SetThreadOperation(ThreadStatus::OP_BLOB_GC);
  auto pending_outputs = std::make_unique<std::list<uint64_t>::iterator>(
      db_->CaptureCurrentFileNumberInPendingOutputs());
  BlobGcJob::Context context;
  context.cfd = cfd;
  context.versions = db_->versions_.get();
  context.db_options = &db_->immutable_db_options_;
  context.dbname = db_->dbname_;
  context.mutable_cf_options = cfd->GetLatestMutableCFOptions();
  context.read_file_options = db_->fs_->OptimizeForCompactionTableRead(
      db_->file_options_for_compaction_, db_->immutable_db_options_);
  context.write_file_options = db_->file_options_for_compaction_;
  context.db_id = db_->db_id_;
  context.db_session_id = db_->db_session_id_;
  context.job_id = job_context->job_id;
  context.io_tracer = db_->io_tracer_;
  context.blob_callback = &db_->blob_callback_;
  context.io_priority = task->is_urgent ? Env::IO_MID : Env::IO_LOW;
  context.check = [this, task] { return CheckBlobGc(*task); };
  context.runs = task->runs;
  context.goes_on = task->goes_on;
  context.max_copied = task->max_copied;
  context.max_read_memory =
      kMaxReadMemory /
      static_cast<size_t>(MaxJobs(db_->mutable_db_options_.max_background_jobs,
                                  /*above_limit=*/true));
  BlobGcJob job(context, task->storage->files(), task->job.path_id);
  const uint64_t copying =
      task->max_copied == 0 ? task->job.live_size
                            : std::min(task->max_copied, task->job.live_size);
  blobs->BeginCopies(copying);
  db_->mutex_.Unlock();

  const uint64_t started = db_->immutable_db_options_.clock->NowMicros();
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] [JOB %d] Collecting garbage of %zu blob files: %" PRIu64
                 " bytes, %" PRIu64 " of them live%s%s",
                 cfd->GetName().c_str(), job_context->job_id,
                 task->storage->files().size(), task->job.size,
                 task->job.live_size,
                 task->is_urgent ? "; above the limit" : "",
                 task->runs.empty() ? "" : "; merging sorted runs");
  BlobGarbageCollectionInfo info;
  info.cf_id = cfd->GetID();
  info.cf_name = cfd->GetName();
  info.thread_id = db_->env_->GetThreadID();
  info.job_id = job_context->job_id;
  info.is_manual = task->is_manual;
  info.input_bytes = task->job.size;
  for (const BlobGcStorage::File& file : task->storage->files()) {
    info.input_files.push_back(file.number);
  }
  for (const auto& listener : db_->immutable_db_options_.listeners) {
    listener->OnBlobGarbageCollectionBegin(db_, info);
  }
  s = job.Run();
  std::vector<BlobFileAddition> additions = job.additions();
  if (s.ok() && !additions.empty()) {
    TEST_SYNC_POINT_CALLBACK("DBStrata::RunBlobGc:Copied", &s);
    // The id may stand for the last path: GetDataDir() takes any.
    s = db_->GetDataDir(cfd, task->job.path_id)
            ->FsyncWithDirOptions(
                IOOptions(), nullptr,
                DirFsyncOptions(DirFsyncOptions::FsyncReason::kNewFileSynced));
    if (s.ok() && cfd->ioptions().blob_cache != nullptr) {
      task->storage->MoveCached(cfd->blob_source(), job.TakeKeySizes());
    }
    if (s.ok()) {
      s = task->storage->Publish(job.TakeOutputs(), job.TakeSources());
    }
  }

  db_->mutex_.Lock();
  blobs->EndCopies(copying);
  if (s.ok()) {
    s = CheckBlobGc(*task);
  }
  bool wrote_manifest = false;
  size_t num_dropped = 0;
  if (s.ok() && !additions.empty()) {
    TEST_SYNC_POINT("DBStrata::RunBlobGc:BeforeEdit");
    VersionEdit edit;
    edit.SetColumnFamily(cfd->GetID());
    for (BlobFileAddition& addition : additions) {
      addition.SetCollected();
      edit.AddBlobFile(addition);
    }
    const std::vector<uint64_t> drops =
        task->storage->AddDrops(*cfd->current()->storage_info(), &edit);
    const ReadOptions read_options(Env::IOActivity::kCompaction);
    const WriteOptions write_options(Env::IOActivity::kCompaction);
    wrote_manifest = true;
    s = db_->versions_->LogAndApply(cfd, read_options, write_options, &edit,
                                    &db_->mutex_, db_->directories_.GetDbDir());
    blobs->FinishDrops(drops);
    if (s.ok()) {
      num_dropped = drops.size();
      RecordTick(db_->stats_, BLOB_MAP_FILES_DROPPED, num_dropped);
    }
  }
  task->storage->Close();
  if (task->storage->committed()) {
    db_->InstallSuperVersionAndScheduleWork(cfd, sv_context);
  }
  db_->mutex_.Unlock();
  TEST_SYNC_POINT("DBStrata::RunBlobGc:AfterEdit");
  task->storage->Settle();
  const bool committed = additions.empty() || task->storage->committed();
  if (committed && s.ok()) {
    RecordTick(db_->stats_, BLOB_MAP_GC_FILES, job.stats().files_read);
    RecordTick(db_->stats_, BLOB_MAP_GC_VALUES, task->storage->num_moved());
  } else if (!s.IsShutdownInProgress() && !s.IsColumnFamilyDropped()) {
    RecordTick(db_->stats_, BLOB_MAP_GC_FAILED);
  }
  RecordTick(db_->stats_, BLOB_MAP_GC_BYTES_READ, job.stats().bytes_read);
  RecordTick(db_->stats_, BLOB_MAP_GC_BYTES_WRITTEN, job.stats().bytes_written);
  ROCKS_LOG_INFO(
      db_->immutable_db_options_.info_log,
      "[%s] [JOB %d] Collected garbage of %" PRIu64 " blob files: read %" PRIu64
      " bytes, wrote %" PRIu64 " (%zu files), %" PRIu64 " of %" PRIu64
      " values moved, %zu files dropped, %" PRIu64 " ms: %s",
      cfd->GetName().c_str(), job_context->job_id, job.stats().files_read,
      job.stats().bytes_read, job.stats().bytes_written, additions.size(),
      task->storage->num_moved(), job.stats().values_copied, num_dropped,
      (db_->immutable_db_options_.clock->NowMicros() - started) / 1000,
      s.ToString().c_str());
  info.status = s;
  info.values_moved = task->storage->num_moved();
  if (committed) {
    info.output_bytes = job.stats().bytes_written;
    for (const BlobFileAddition& addition : additions) {
      info.output_files.push_back(addition.GetBlobFileNumber());
    }
  }
  for (const auto& listener : db_->immutable_db_options_.listeners) {
    listener->OnBlobGarbageCollectionCompleted(db_, info);
  }

  db_->mutex_.Lock();
  db_->ReleaseFileNumberFromPendingOutputs(pending_outputs);
  task->storage.reset();
  if (s.ok()) {
    task->additions = std::move(additions);
    task->reached_limit = job.reached_limit();
    blobs->OnGcSucceeded();
    blobs->OnGcFailed(job.failed_files());
  } else if (s.IsShutdownInProgress() || s.IsColumnFamilyDropped() ||
             s.IsIncomplete()) {
    // Nothing was wrong.
  } else if (wrote_manifest) {
    db_->error_handler_.SetBGError(s, BackgroundErrorReason::kManifestWrite);
  } else if (s.IsNoSpace() || s.subcode() == Status::kSpaceLimit) {
    // Less at a time may still find room, and makes more.
    blobs->OnGcOutOfSpace(task->max_copied > 0
                              ? std::min(task->max_copied, task->job.live_size)
                              : task->job.live_size);
  } else if (job.unreadable_file() != 0) {
    // What is damaged costs what is in it: reads of it fail, and its file
    // stays. It says nothing about the rest, so it is no background error.
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "[%s] [JOB %d] Blob file #%" PRIu64
                    " cannot be collected and is left as it is, as a value in "
                    "it or its record index cannot be read: %s. `ldb "
                    "verify_address_map` lists the keys",
                    cfd->GetName().c_str(), job_context->job_id,
                    job.unreadable_file(), s.ToString().c_str());
    blobs->OnGcFailed(job.failed_files());
    blobs->OnGcDamaged(job.unreadable_file());
    if (task->unreadable != nullptr) {
      task->unreadable->insert(job.unreadable_file());
    }
    // The other files of the job are as they were.
    SetBlobGcDue();
  } else {
    // Who asks for a job hears of it; the files are to blame if they could not
    // be read.
    blobs->OnGcFailed(
        job.failed_files().empty() && !task->is_manual
            ? std::set<uint64_t>(task->job.files.begin(), task->job.files.end())
            : job.failed_files());
    db_->error_handler_.SetBGError(s, BackgroundErrorReason::kCompaction);
  }
  DropEmptyBlobFiles(cfd, Env::IOActivity::kCompaction, sv_context);
  // What follows is not of the job: it may close a WAL.
  ThreadStatusUtil::ResetThreadStatus();
  db_->FindObsoleteFiles(job_context, !s.ok() && !s.IsShutdownInProgress() &&
                                          !s.IsColumnFamilyDropped());
  return s;
}

Status DBStrata::CollectBlobGarbage(const CollectBlobGarbageOptions& options,
                                    ColumnFamilyHandle* column_family) {
  if (db_->read_only_) {
    return Status::NotSupported("Not supported operation in read only mode.");
  }
  if (!(options.space_amp_limit >= 1.0 &&
        options.space_amp_limit <= BlobGcPicker::kMaxLimit)) {
    return Status::InvalidArgument(
        "CollectBlobGarbageOptions::space_amp_limit must be from 1 to 1000");
  }
  ColumnFamilyData* const cfd =
      static_cast_with_check<ColumnFamilyHandleImpl>(column_family)->cfd();
  AddressMapStore* const blobs = cfd->address_map_store();
  if (blobs == nullptr || !blobs->enabled()) {
    return Status::NotSupported(
        "CollectBlobGarbage needs enable_blob_address_map: compactions collect "
        "other blob files");
  }
  uint64_t first_new_number = 0;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    first_new_number = db_->versions_->current_next_file_number();
    // The DB is not closed, and the column family not deleted, before the end.
    ++manual_blob_gc_calls_;
    cfd->Ref();
  }
  // Each file once: what could not be copied would be picked again.
  std::set<uint64_t> done_files;
  // A file that cannot be read does not keep the others from being collected.
  // The first such error is what the caller gets.
  std::set<uint64_t> unreadable;
  Status first_damage;
  Status s = UnmappedBlobGc::Collect(db_, cfd, options);
  if (s.ok() && options.max_sorted_runs > 0) {
    s = MergeBlobRuns(options, cfd, &done_files, &unreadable, &first_damage);
  }
  for (bool done = false; s.ok() && !done;) {
    BlobGcTask task;
    task.cfd = cfd;
    task.canceled = options.canceled;
    task.unreadable = &unreadable;
    std::vector<uint64_t> picked;
    const size_t num_unreadable = unreadable.size();
    s = RunManualBlobGc(&task, [&] {
      std::vector<BlobGcPicker::File> files = blobs->FilesForGc(
          *cfd->current()->storage_info(), /*also_failed=*/true);
      for (BlobGcPicker::File& file : files) {
        file.is_busy |= file.number >= first_new_number ||
                        done_files.count(file.number) > 0 ||
                        unreadable.count(file.number) > 0;
      }
      BlobGcPicker::Options picker_options;
      picker_options.space_amp_limit = options.space_amp_limit;
      picker_options.min_copied = picker_options.max_copied =
          std::min(blobs->max_gc_copies(),
                   cfd->GetLatestMutableCFOptions().blob_file_size);
      picker_options.next_file_number =
          db_->versions_->current_next_file_number();
      task.job = BlobGcPicker::Pick(picker_options, files);
      done = task.job.files.empty();
      picked = task.job.files;
    });
    if (unreadable.size() > num_unreadable) {
      first_damage = first_damage.ok() ? s : first_damage;
      s = Status::OK();  // the next job is without the file
    } else {
      done_files.insert(picked.begin(), picked.end());
    }
  }
  // Small files, and then what was made of them: fewer each time.
  std::set<uint64_t> merged_files;
  std::set<uint64_t> outputs;
  for (bool done = false; s.ok() && !done;) {
    BlobGcTask task;
    task.cfd = cfd;
    task.canceled = options.canceled;
    task.unreadable = &unreadable;
    std::vector<uint64_t> picked;
    const size_t num_unreadable = unreadable.size();
    s = RunManualBlobGc(&task, [&] {
      std::vector<BlobGcPicker::File> files = blobs->FilesForGc(
          *cfd->current()->storage_info(), /*also_failed=*/true);
      for (BlobGcPicker::File& file : files) {
        file.is_busy |= (file.number >= first_new_number &&
                         outputs.count(file.number) == 0) ||
                        merged_files.count(file.number) > 0 ||
                        unreadable.count(file.number) > 0;
      }
      const uint64_t file_size =
          cfd->GetLatestMutableCFOptions().blob_file_size;
      BlobGcPicker::Options picker_options;
      picker_options.min_copied = picker_options.max_copied =
          std::min(blobs->max_gc_copies(), file_size);
      picker_options.file_size = file_size;
      picker_options.merge_all_small = true;
      task.job = BlobGcPicker::PickSmall(picker_options, files);
      done = task.job.files.empty();
      picked = task.job.files;
    });
    if (unreadable.size() > num_unreadable) {
      first_damage = first_damage.ok() ? s : first_damage;
      s = Status::OK();
      continue;
    }
    merged_files.insert(picked.begin(), picked.end());
    for (const BlobFileAddition& addition : task.additions) {
      outputs.insert(addition.GetBlobFileNumber());
    }
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  cfd->UnrefAndTryDelete();
  --manual_blob_gc_calls_;
  db_->bg_cv_.SignalAll();
  return s.ok() ? first_damage : s;
}

Status DBStrata::RunManualBlobGc(BlobGcTask* task,
                                 const std::function<void()>& pick) {
  task->strata = this;
  task->is_manual = true;
  ColumnFamilyData* const cfd = task->cfd;
  JobContext job_context(db_->next_job_id_.fetch_add(1),
                         /*_create_superversion=*/true);
  Status s;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    s = CheckBlobGc(*task);
    while (s.ok() &&
           (db_->bg_work_paused_ > 0 || db_->bg_compaction_paused_ > 0)) {
      db_->bg_cv_.TimedWait(db_->immutable_db_options_.clock->NowMicros() +
                            100000);
      s = CheckBlobGc(*task);
    }
    if (s.ok()) {
      pick();
    }
    if (s.ok() && !task->job.files.empty()) {
      task->storage = std::make_unique<BlobGcStorage>(cfd->address_map_store(),
                                                      task->job.files);
      ++bg_blob_gc_scheduled_;
      ++running_manual_blob_gc_;
      s = RunBlobGc(task, &job_context);
      --running_manual_blob_gc_;
      --bg_blob_gc_scheduled_;
      // For what could not be scheduled meanwhile.
      SetBlobGcDue();
      ScheduleBlobGc();
      db_->bg_cv_.SignalAll();
    }
  }
  if (job_context.HaveSomethingToDelete()) {
    db_->PurgeObsoleteFiles(job_context);
  }
  job_context.Clean();
  return s;
}

Status DBStrata::ReadBlobRuns(const BlobGcTask& check, ColumnFamilyData* cfd,
                              std::set<uint64_t>* numbers,
                              std::unique_ptr<BlobRunMerger>* runs) {
  const ImmutableOptions& ioptions = cfd->ioptions();
  AddressMapStore* const blobs = cfd->address_map_store();
  std::vector<BlobGcPicker::File> candidates;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    // Files that a job has would be left out. Where jobs follow each other,
    // some are: that is not worth waiting for.
    const uint64_t until =
        db_->immutable_db_options_.clock->NowMicros() + kMaxWaitForJobsMicros;
    Status s = CheckBlobGc(check);
    while (s.ok() && blobs->HasGcJobs() &&
           db_->immutable_db_options_.clock->NowMicros() < until) {
      db_->bg_cv_.TimedWait(db_->immutable_db_options_.clock->NowMicros() +
                            100000);
      s = CheckBlobGc(check);
    }
    if (!s.ok()) {
      return s;
    }
    candidates = blobs->FilesForGc(*cfd->current()->storage_info(),
                                   /*also_failed=*/true);
  }
  const FileOptions file_options = db_->fs_->OptimizeForCompactionTableRead(
      db_->file_options_for_compaction_, db_->immutable_db_options_);
  IOOptions io_options;
  io_options.rate_limiter_priority = Env::IO_LOW;
  io_options.io_activity = Env::IOActivity::kCompaction;
  std::vector<BlobRunMerger::File> files;
  for (const BlobGcPicker::File& candidate : candidates) {
    TEST_SYNC_POINT("DBStrata::ReadBlobRuns:File");
    Status s = CheckBlobGc(check);
    if (!s.ok()) {
      return s;
    }
    const AddressMapStore::FilePin pin(blobs, candidate.number);
    if (candidate.is_busy || !pin.pinned()) {
      continue;
    }
    std::unique_ptr<RandomAccessFileReader> reader;
    BlobFileLayoutV2 layout;
    s = BlobGcJob::OpenFile(ioptions, file_options, io_options, db_->io_tracer_,
                            candidate.number, candidate.path_id, &reader,
                            &layout);
    BlobRunMerger::File file;
    bool found = false;
    if (s.ok()) {
      s = BlobKeyBounds::Read(reader.get(), io_options, layout, &file.bounds,
                              &found);
    }
    if (s.IsCorruption() || s.IsNotFound() || s.IsPathNotFound()) {
      // Perhaps only of garbage: whoever reads its values checks them.
      ROCKS_LOG_WARN(db_->immutable_db_options_.info_log, "[%s] Not sorted: %s",
                     cfd->GetName().c_str(), s.ToString().c_str());
      continue;
    }
    if (!s.ok()) {
      return s;
    }
    if (found) {
      file.number = candidate.number;
      file.size = candidate.live_size;
      file.size_on_disk = candidate.size;
      file.path_id = candidate.path_id;
      numbers->insert(file.number);
      files.push_back(std::move(file));
    }
  }
  *runs = std::make_unique<BlobRunMerger>(ioptions.user_comparator,
                                          std::move(files));
  return Status::OK();
}

// One merge of sorted runs, in pieces. What was copied in a piece is free soon,
// not only in the end. A piece takes as much of each run as it may copy in all;
// these files, and no others, are kept from other jobs until the next piece was
// picked.
struct DBStrata::BlobRunMerge {
  ColumnFamilyData* cfd = nullptr;
  BlobRunMerger::Merge merge;
  uint64_t max_piece = 0;
  std::vector<uint64_t> outputs;
  uint64_t output_bytes = 0;
  uint64_t max_file_size = 0;
  std::set<uint64_t> marked;
  const std::set<uint64_t>* unreadable = nullptr;

  // REQUIRES of the following: DB mutex held.
  void Pick(BlobGcTask* task) {
    AddressMapStore* const blobs = cfd->address_map_store();
    std::map<uint64_t, BlobGcPicker::File> files;
    for (const BlobGcPicker::File& file :
         blobs->FilesForGc(*cfd->current()->storage_info(),
                           /*also_failed=*/true)) {
      if (file.live_size > 0 && unreadable->count(file.number) == 0 &&
          (!file.is_busy || marked.count(file.number))) {
        files.emplace(file.number, file);
      }
    }
    task->job.path_id = merge.path_id;
    task->max_copied =
        std::max(uint64_t{1}, std::min(max_piece, blobs->max_gc_copies()));
    std::set<uint64_t> now;
    for (const std::vector<uint64_t>& run : merge.runs) {
      std::vector<uint64_t> taken;
      uint64_t live_size = 0;
      bool goes_on = false;
      for (const uint64_t number : run) {
        const auto file = files.find(number);
        if (file == files.end()) {
          continue;  // it is empty, or another job has it
        }
        if (live_size >= task->max_copied) {
          goes_on = true;
          break;
        }
        live_size += file->second.live_size;
        task->job.size += file->second.size;
        taken.push_back(number);
      }
      if (taken.empty()) {
        continue;
      }
      task->job.live_size += live_size;
      task->job.files.insert(task->job.files.end(), taken.begin(), taken.end());
      now.insert(taken.begin(), taken.end());
      task->runs.push_back(std::move(taken));
      task->goes_on.push_back(goes_on);
    }
    Mark(std::move(now));
  }

  void Mark(std::set<uint64_t>&& now) {
    AddressMapStore* const blobs = cfd->address_map_store();
    for (const uint64_t number : now) {
      blobs->BeginGc(number);
    }
    for (const uint64_t number : marked) {
      blobs->EndGc(number);
    }
    marked = std::move(now);
  }
};

Status DBStrata::MergeBlobRuns(const CollectBlobGarbageOptions& options,
                               ColumnFamilyData* cfd, std::set<uint64_t>* files,
                               std::set<uint64_t>* unreadable,
                               Status* first_damage) {
  AddressMapStore* const blobs = cfd->address_map_store();
  BlobGcTask check;
  check.cfd = cfd;
  check.is_manual = true;
  check.canceled = options.canceled;
  std::unique_ptr<BlobRunMerger> runs;
  Status s = ReadBlobRuns(check, cfd, files, &runs);
  while (s.ok()) {
    BlobRunMerge merge;
    merge.cfd = cfd;
    merge.unreadable = unreadable;
    uint64_t max_open_bytes = 0;
    uint64_t blob_file_size = 0;
    {
      InstrumentedMutexLock lock(&db_->mutex_);
      const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
      blob_file_size = std::min(
          std::max(uint64_t{1}, cf_options.blob_file_size), uint64_t{1} << 40);
      // While a merge goes on, of one file of each run a part was copied: that
      // is garbage beyond the limit.
      const double limit = cf_options.blob_gc_space_amp_limit;
      const BlobGcPicker::Space space = BlobGcPicker::SpaceOf(
          blobs->FilesForGc(*cfd->current()->storage_info()), 0);
      max_open_bytes =
          limit == 0
              ? std::numeric_limits<uint64_t>::max() / 2
              : static_cast<uint64_t>(
                    std::min(std::max(limit - 1.0, kMinMergeSlack), 2.0) / 2 *
                    static_cast<double>(space.live));
      BlobRunMerger::Limits limits;
      limits.max_runs = options.max_sorted_runs;
      limits.max_merged = kMaxMergedRuns;
      limits.max_open_bytes = max_open_bytes;
      merge.merge = runs->PickMerge(limits);
      if (merge.merge.runs.empty()) {
        merge.merge = runs->PickGarbage(options.space_amp_limit);
      }
      if (merge.merge.runs.empty()) {
        break;
      }
      blobs->AddMergeSpace(max_open_bytes);
    }
    for (bool again = true; s.ok() && again;) {
      merge.max_piece = std::max(blob_file_size,
                                 std::min(max_open_bytes, 16 * blob_file_size));
      BlobGcTask task;
      task.cfd = cfd;
      task.canceled = options.canceled;
      task.unreadable = unreadable;
      const size_t num_unreadable = unreadable->size();
      s = RunManualBlobGc(&task, [&] { merge.Pick(&task); });
      TEST_SYNC_POINT("DBStrata::MergeBlobRuns:Piece");
      again = task.reached_limit;
      if (unreadable->size() > num_unreadable) {
        *first_damage = first_damage->ok() ? s : *first_damage;
        s = Status::OK();  // the piece again, without the file
        again = true;
        continue;
      }
      if ((s.IsNoSpace() || s.subcode() == Status::kSpaceLimit) &&
          task.max_copied > blob_file_size) {
        s = Status::OK();  // the next one takes less
        again = true;
      }
      for (const BlobFileAddition& addition : task.additions) {
        files->insert(addition.GetBlobFileNumber());
        merge.outputs.push_back(addition.GetBlobFileNumber());
        merge.output_bytes += addition.GetTotalBlobBytes();
        merge.max_file_size =
            std::max(merge.max_file_size, addition.GetTotalBlobBytes());
      }
    }
    {
      InstrumentedMutexLock lock(&db_->mutex_);
      merge.Mark({});
      blobs->SubMergeSpace(max_open_bytes);
    }
    runs->AddMerged(merge.merge.path_id, std::move(merge.outputs),
                    merge.output_bytes, merge.max_file_size);
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  // Files that were pinned when their last value died.
  ScheduleMapRemovals(cfd);
  return s;
}

Status DBStrata::CompactRangeAndBlobs(const CompactRangeOptions& options,
                                      ColumnFamilyHandle* column_family,
                                      const Slice* begin, const Slice* end,
                                      const std::string& trim_ts) {
  const bool is_all = begin == nullptr && end == nullptr;
  Status s = is_all ? DrainDeltas(options, column_family) : Status::OK();
  if (s.ok()) {
    s = db_->CompactRangeInternal(options, column_family, begin, end, trim_ts);
  }
  if (s.ok() && is_all) {
    s = CompactDeltas(options, column_family);
  }
  const AddressMapStore* const blobs =
      static_cast_with_check<ColumnFamilyHandleImpl>(column_family)
          ->cfd()
          ->address_map_store();
  if (s.ok() && blobs != nullptr && blobs->enabled() && begin == nullptr &&
      end == nullptr &&
      options.blob_garbage_collection_policy ==
          BlobGarbageCollectionPolicy::kForce) {
    CollectBlobGarbageOptions collect;
    collect.max_sorted_runs = 1;
    collect.canceled = options.canceled;
    s = CollectBlobGarbage(collect, column_family);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
