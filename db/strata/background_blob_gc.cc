//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/background_blob_gc.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <list>
#include <memory>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_job.h"
#include "db/blob_gc/blob_range_sort_job.h"
#include "db/blob_heat/blob_heat.h"
#include "db/column_family.h"
#include "db/job_context.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "monitoring/thread_status_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Limit, in bytes, of the buffers of all jobs together.
constexpr size_t kMaxReadMemory = size_t{64} << 20;

bool IsFailure(const Status& s) {
  return !s.ok() && !s.IsShutdownInProgress() && !s.IsColumnFamilyDropped();
}

}  // namespace

int DBStrata::BackgroundBlobGc::MaxJobs(int max_background_jobs,
                                        bool above_limit) {
  return std::max(1, above_limit ? max_background_jobs - max_background_jobs / 4
                                 : max_background_jobs / 2);
}

std::optional<WriteStallInfo> DBStrata::BackgroundBlobGc::UpdateSlowdown(
    ColumnFamilyData* cfd) {
  if (cfd->IsDropped()) {
    return std::nullopt;
  }
  // Each computation of a slowdown that goes on slows writes down further. So
  // the slowdown is not computed where garbage does not change it.
  AddressMapStore* const blobs = cfd->address_map_store();
  const bool slowed_down = blobs->gc()->slows_down();
  const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
  blobs->AddGcDebt(/*compaction_needed_bytes=*/0,
                   *cfd->current()->storage_info(), cf_options);
  if (blobs->gc()->slows_down() == slowed_down) {
    return std::nullopt;
  }
  // The next SuperVersion compares its condition with this one.
  WriteStallCondition* const condition =
      &cfd->GetSuperVersion()->write_stall_condition;
  WriteStallInfo info;
  info.cf_name = cfd->GetName();
  info.condition.prev = *condition;
  *condition = cfd->RecalculateWriteStallConditions(cf_options);
  info.condition.cur = *condition;
  if (info.condition.cur == info.condition.prev) {
    return std::nullopt;
  }
  return info;
}

DBStrata::BackgroundBlobGc::BackgroundBlobGc(DBStrata* strata,
                                             ColumnFamilyData* cfd, Plan plan)
    : BackgroundJob(Kind::kBlobGc, cfd),
      strata_(strata),
      db_(strata->db_),
      blobs_(cfd->address_map_store()),
      plan_(std::move(plan)),
      storage_(std::make_unique<BlobGcStorage>(blobs_, plan_.job.files)) {
  db_->mutex_.AssertHeld();
  if (plan_.is_scan_sort) {
    blobs_->gc()->SetSorting(true);
  }
  if (UsesHotRoom()) {
    blobs_->heat()->SetBusy(true);
  }
  scan_job_bytes_ = plan_.is_scan_sort    ? plan_.max_copied
                    : plan_.is_scan_merge ? plan_.job.live_size
                                          : 0;
  blobs_->scan_debts()->BeginJob(scan_job_bytes_);
}

DBStrata::BackgroundBlobGc::BackgroundBlobGc(
    DBStrata* strata, ColumnFamilyData* cfd, const std::atomic<bool>* canceled,
    std::set<uint64_t>* unreadable, std::function<void(Plan* plan)> pick)
    : BackgroundJob(Kind::kBlobGc, cfd, /*is_manual=*/true, canceled),
      strata_(strata),
      db_(strata->db_),
      blobs_(cfd->address_map_store()),
      pick_(std::move(pick)),
      unreadable_(unreadable) {}

void DBStrata::BackgroundBlobGc::GiveBack(bool /*has_run*/) {
  db_->mutex_.AssertHeld();
  storage_.reset();
  if (plan_.is_scan_sort) {
    blobs_->gc()->SetSorting(false);
  }
  if (UsesHotRoom()) {
    blobs_->heat()->SetBusy(false);
  }
  blobs_->scan_debts()->EndJob(scan_job_bytes_);
}

void DBStrata::BackgroundBlobGc::AfterRun() {
  db_->MaybeScheduleFlushOrCompaction();
}

void DBStrata::BackgroundBlobGc::OnEnd(const Status& s) {
  if (!s.ok()) {
    strata_->ForgetDueJobs();
  }
  // There is room for another job. After a failure none is scheduled before the
  // next event, such as a scan of a range that is due: a thread that waits for
  // the end of all jobs would otherwise wait forever. An event that came while
  // the job ran is such a next one.
  const bool was_refused = strata_->TakeBlobGcRefused();
  if (was_refused || s.ok()) {
    strata_->SetBlobGcDue();
    strata_->ScheduleBlobGc();
  }
  if (!s.ok()) {
    // The attempt above was no event: jobs that fail must not start each other.
    strata_->TakeBlobGcRefused();
  }
}

BackgroundJob::Readiness DBStrata::BackgroundBlobGc::Prepare() {
  db_->mutex_.AssertHeld();
  pick_(&plan_);
  if (plan_.job.files.empty()) {
    return Readiness::kNothingToDo;
  }
  storage_ = std::make_unique<BlobGcStorage>(blobs_, plan_.job.files);
  return Readiness::kReady;
}

bool DBStrata::BackgroundBlobGc::OnManualEnd(const Status& /*s*/) {
  // Jobs that could not be scheduled beside this one may be due.
  strata_->SetBlobGcDue();
  strata_->ScheduleBlobGc();
  return false;
}

Status DBStrata::BackgroundBlobGc::Run(JobContext* job_context) {
  db_->mutex_.AssertHeld();
  Status s = strata_->scheduler_.CheckToStart(*this);
  const int job_id = job_context->job_id;
  auto pending_outputs = std::make_unique<std::list<uint64_t>::iterator>(
      db_->CaptureCurrentFileNumberInPendingOutputs());
  if (!s.ok() || !MakeJob(job_id)) {
    db_->ReleaseFileNumberFromPendingOutputs(pending_outputs);
    storage_.reset();
    if (plan_.is_scan_sort) {
      // The job may have had the last reference to a Version.
      db_->FindObsoleteFiles(job_context, /*force=*/false);
    }
    return s;
  }
  ThreadStatusUtil::SetColumnFamily(cfd());
  ThreadStatusUtil::SetThreadOperation(ThreadStatus::OP_BLOB_GC);
  SuperVersionContext* const sv_context =
      job_context->superversion_contexts.data();
  const uint64_t copying =
      plan_.max_copied == 0 ? plan_.job.live_size
                            : std::min(plan_.max_copied, plan_.job.live_size);
  blobs_->gc()->BeginCopies(copying);
  db_->mutex_.Unlock();

  ReportBegin(job_id);
  s = Copy();

  db_->mutex_.Lock();
  blobs_->gc()->EndCopies(copying);
  bool wrote_manifest = false;
  s = Commit(s, sv_context, &wrote_manifest);
  db_->mutex_.Unlock();

  TEST_SYNC_POINT("DBStrata::BackgroundBlobGc::Run:AfterEdit");
  storage_->Settle();
  ReportEnd(s, job_id);

  db_->mutex_.Lock();
  db_->ReleaseFileNumberFromPendingOutputs(pending_outputs);
  EndSort(s);
  EndHeat(s);
  storage_.reset();
  NoteResult(s, wrote_manifest, job_id);
  if (!s.ok() || !job_->failed_files().empty()) {
    // Jobs avoid some files from now on.
    if (const auto change = UpdateSlowdown(cfd()); change.has_value()) {
      // Behind the changes that the commit has brought.
      sv_context->PushWriteStallNotification(
          change->condition.prev, change->condition.cur, change->cf_name,
          &cfd()->ioptions());
    }
  }
  strata_->DropEmptyBlobFiles(cfd(), Env::IOActivity::kCompaction, sv_context);
  // The job may have ended a slowdown, and no flush or compaction may follow.
  db_->NotifyOnBackgroundJobPressureChanged();
  // The job ends here. FindObsoleteFiles() may close a WAL.
  ThreadStatusUtil::ResetThreadStatus();
  db_->FindObsoleteFiles(job_context, /*force=*/IsFailure(s));
  job_.reset();
  return s;
}

Env::IOPriority DBStrata::BackgroundBlobGc::IoPriority() const {
  db_->mutex_.AssertHeld();
  const bool collects =
      !plan_.is_scan_sort && plan_.heat == BlobHeatPicker::Kind::kNone;
  if (collects && (db_->write_controller_.NeedsDelay() ||
                   db_->write_controller_.IsStopped())) {
    // Compactions have this priority then, and would leave nothing of the rate
    // to the job that may have to end the slowdown.
    return Env::IO_USER;
  }
  return plan_.is_urgent ? Env::IO_MID : Env::IO_LOW;
}

void DBStrata::BackgroundBlobGc::FillContext(int job_id,
                                             BlobCopyContext* context) {
  context->cfd = cfd();
  context->versions = db_->versions_.get();
  context->db_options = &db_->immutable_db_options_;
  context->dbname = db_->dbname_;
  context->mutable_cf_options = cfd()->GetLatestMutableCFOptions();
  context->read_file_options = db_->fs_->OptimizeForCompactionTableRead(
      db_->file_options_for_compaction_, db_->immutable_db_options_);
  context->write_file_options = db_->file_options_for_compaction_;
  context->db_id = db_->db_id_;
  context->db_session_id = db_->db_session_id_;
  context->job_id = job_id;
  context->event_logger = &db_->event_logger_;
  context->io_tracer = db_->io_tracer_;
  context->blob_callback = &db_->blob_callback_;
  context->io_priority = IoPriority();
  context->check = [this] { return strata_->scheduler_.CheckToStop(*this); };
}

bool DBStrata::BackgroundBlobGc::MakeJob(int job_id) {
  db_->mutex_.AssertHeld();
  if (plan_.is_scan_sort) {
    return MakeSortJob(job_id);
  }
  if (plan_.heat == BlobHeatPicker::Kind::kPromote) {
    return MakePromotionJob(job_id);
  }
  if (storage_->files().empty()) {
    return false;
  }
  if (plan_.heat != BlobHeatPicker::Kind::kNone) {
    return MakeDemotionJob(job_id);
  }
  BlobGcJob::Context context;
  FillContext(job_id, &context);
  context.runs = plan_.runs;
  context.goes_on = plan_.goes_on;
  context.hot = plan_.job.hot;
  context.max_copied = plan_.max_copied;
  context.bounds = plan_.bounds;
  context.min_piece = plan_.min_piece;
  context.num_pieces = plan_.num_pieces;
  if (plan_.is_scan_merge) {
    context.max_reads = BlobRangeSortJob::kMaxReads;
  }
  context.max_read_memory =
      kMaxReadMemory /
      static_cast<size_t>(MaxJobs(db_->mutable_db_options_.max_background_jobs,
                                  /*above_limit=*/true));
  job_ = std::make_unique<BlobGcJob>(context, storage_->files(),
                                     plan_.job.path_id);
  return true;
}

void DBStrata::BackgroundBlobGc::ReportBegin(int job_id) {
  started_ = db_->immutable_db_options_.clock->NowMicros();
  info_.is_scan_sort = plan_.is_scan_sort;
  info_.is_promotion = plan_.heat == BlobHeatPicker::Kind::kPromote;
  info_.is_demotion =
      plan_.heat != BlobHeatPicker::Kind::kNone && !info_.is_promotion;
  if (plan_.is_scan_sort) {
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "[%s] [JOB %d] Sorting values for scans: about %" PRIu64
                   " bytes, for which scans have paid %" PRIu64,
                   cfd()->GetName().c_str(), job_id, plan_.job.live_size,
                   range_.debt);
  } else if (plan_.heat != BlobHeatPicker::Kind::kNone) {
    LogHeatBegin(job_id);
  } else {
    ROCKS_LOG_INFO(
        db_->immutable_db_options_.info_log,
        "[%s] [JOB %d] Collecting garbage of %zu blob files: %" PRIu64
        " bytes, %" PRIu64 " of them live%s%s",
        cfd()->GetName().c_str(), job_id, storage_->files().size(),
        plan_.job.size, plan_.job.live_size,
        plan_.is_urgent ? "; above the limit" : "",
        plan_.is_scan_merge
            ? "; merging files for scans"
            : (plan_.runs.empty() ? "" : "; merging sorted runs"));
  }
  info_.cf_id = cfd()->GetID();
  info_.cf_name = cfd()->GetName();
  info_.thread_id = db_->env_->GetThreadID();
  info_.job_id = job_id;
  info_.is_manual = is_manual();
  info_.input_bytes = plan_.job.size;
  for (const BlobGcStorage::File& file : storage_->files()) {
    info_.input_files.push_back(file.number);
  }
  for (const auto& listener : db_->immutable_db_options_.listeners) {
    listener->OnBlobGarbageCollectionBegin(db_, info_);
  }
}

Status DBStrata::BackgroundBlobGc::Copy() {
  Status s = job_->Run();
  if (!s.ok() || job_->additions().empty()) {
    return s;
  }
  TEST_SYNC_POINT_CALLBACK("DBStrata::BackgroundBlobGc::Copy:Copied", &s);
  std::vector<MappedBlobFile> outputs = job_->TakeOutputs();
  std::set<uint32_t> path_ids;
  for (const MappedBlobFile& output : outputs) {
    path_ids.insert(output.path_id);
  }
  for (const uint32_t path_id : path_ids) {
    // The id may stand for the last path: GetDataDir() takes any.
    if (s.ok()) {
      s = db_->GetDataDir(cfd(), path_id)
              ->FsyncWithDirOptions(
                  IOOptions(), nullptr,
                  DirFsyncOptions(
                      DirFsyncOptions::FsyncReason::kNewFileSynced));
    }
  }
  if (s.ok() && cfd()->ioptions().blob_cache != nullptr) {
    storage_->MoveCached(cfd()->blob_source(), job_->TakeKeySizes());
  }
  if (s.ok()) {
    s = storage_->Publish(std::move(outputs), job_->TakeSources());
  }
  return s;
}

Status DBStrata::BackgroundBlobGc::Commit(Status s,
                                          SuperVersionContext* sv_context,
                                          bool* wrote_manifest) {
  db_->mutex_.AssertHeld();
  if (s.ok()) {
    s = strata_->scheduler_.CheckToStop(*this);
  }
  if (s.ok() && !job_->additions().empty()) {
    // Before another job can drop an output. A failure drops all of them.
    KeepKeyRanges();
    *wrote_manifest = true;
    s = WriteEdit();
  }
  storage_->Close();
  if (storage_->committed()) {
    db_->InstallSuperVersionAndScheduleWork(cfd(), sv_context);
  }
  return s;
}

void DBStrata::BackgroundBlobGc::KeepKeyRanges() {
  db_->mutex_.AssertHeld();
  std::vector<BlobGcPicker::KeyRange> keys = job_->TakeKeyRanges();
  const std::vector<BlobFileAddition>& additions = job_->additions();
  assert(keys.size() == additions.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    blobs_->gc()->SetKeyRange(additions[i].GetBlobFileNumber(),
                              std::move(keys[i]));
  }
}

Status DBStrata::BackgroundBlobGc::WriteEdit() {
  TEST_SYNC_POINT("DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit");
  VersionEdit edit;
  edit.SetColumnFamily(cfd()->GetID());
  for (BlobFileAddition addition : job_->additions()) {
    addition.SetCollected();
    edit.AddBlobFile(std::move(addition));
  }
  const std::vector<uint64_t> drops =
      storage_->AddDrops(*cfd()->current()->storage_info(), &edit);
  const ReadOptions read_options(Env::IOActivity::kCompaction);
  const WriteOptions write_options(Env::IOActivity::kCompaction);
  uint64_t hot_bytes = 0;
  Status s = ReserveHotBytes(drops, &hot_bytes);
  if (s.ok()) {
    s = db_->versions_->LogAndApply(cfd(), read_options, write_options, &edit,
                                    &db_->mutex_, db_->directories_.GetDbDir());
    blobs_->heat()->EndReserve(hot_bytes);
  }
  blobs_->FinishDrops(drops);
  if (s.ok()) {
    num_dropped_ = drops.size();
    RecordTick(db_->stats_, BLOB_MAP_FILES_DROPPED, num_dropped_);
  }
  return s;
}

void DBStrata::BackgroundBlobGc::ReportEnd(const Status& s, int job_id) {
  const bool committed = job_->additions().empty() || storage_->committed();
  Count(s, committed);
  Log(s, job_id);
  info_.status = s;
  info_.values_moved = storage_->num_moved();
  if (committed) {
    info_.output_bytes = job_->stats().bytes_written;
    for (const BlobFileAddition& addition : job_->additions()) {
      info_.output_files.push_back(addition.GetBlobFileNumber());
    }
  }
  for (const auto& listener : db_->immutable_db_options_.listeners) {
    listener->OnBlobGarbageCollectionCompleted(db_, info_);
  }
}

void DBStrata::BackgroundBlobGc::Count(const Status& s, bool committed) {
  if (committed && s.ok()) {
    RecordTick(db_->stats_, BLOB_MAP_GC_FILES, job_->stats().files_read);
    RecordTick(db_->stats_, BLOB_MAP_GC_VALUES, storage_->num_moved());
    CountHeat();
  } else if (!s.IsShutdownInProgress() && !s.IsColumnFamilyDropped() &&
             !s.IsIncomplete()) {
    // A job that was canceled, or that found no room on the hot path, is
    // Incomplete: nothing is wrong with its files.
    RecordTick(db_->stats_, BLOB_MAP_GC_FAILED);
  }
  RecordTick(db_->stats_, BLOB_MAP_GC_BYTES_READ, job_->stats().bytes_read);
  RecordTick(db_->stats_, BLOB_MAP_GC_BYTES_WRITTEN,
             job_->stats().bytes_written);
  if (plan_.is_scan_sort || plan_.is_scan_merge) {
    RecordTick(db_->stats_, BLOB_MAP_SCAN_SORTS);
    RecordTick(db_->stats_, BLOB_MAP_SCAN_SORT_BYTES_WRITTEN,
               job_->stats().bytes_written);
  } else if (!plan_.runs.empty()) {
    RecordTick(db_->stats_, BLOB_MAP_MANUAL_SORT_BYTES_WRITTEN,
               job_->stats().bytes_written);
  }
}

void DBStrata::BackgroundBlobGc::Log(const Status& s, int job_id) {
  ROCKS_LOG_INFO(
      db_->immutable_db_options_.info_log,
      "[%s] [JOB %d] %s of %" PRIu64 " blob files: read %" PRIu64
      " bytes, wrote %" PRIu64 " (%zu files), %" PRIu64 " of %" PRIu64
      " values moved, %zu files dropped, %" PRIu64 " ms: %s",
      cfd()->GetName().c_str(), job_id,
      plan_.is_scan_sort   ? "Sorted values"
      : info_.is_promotion ? "Promoted values"
      : info_.is_demotion  ? "Demoted values"
                           : "Collected garbage",
      job_->stats().files_read, job_->stats().bytes_read,
      job_->stats().bytes_written, job_->additions().size(),
      storage_->num_moved(), job_->stats().values_copied, num_dropped_,
      (db_->immutable_db_options_.clock->NowMicros() - started_) / 1000,
      s.ToString().c_str());
}

void DBStrata::BackgroundBlobGc::NoteResult(const Status& s,
                                            bool wrote_manifest, int job_id) {
  db_->mutex_.AssertHeld();
  if (s.ok()) {
    additions_ = job_->additions();
    reached_limit_ = job_->reached_limit();
    blobs_->gc()->OnSucceeded();
    blobs_->gc()->OnFailed(job_->failed_files());
  } else if (s.IsShutdownInProgress() || s.IsColumnFamilyDropped() ||
             s.IsIncomplete()) {
    // Nothing was wrong.
  } else if (wrote_manifest) {
    db_->error_handler_.SetBGError(s, BackgroundErrorReason::kManifestWrite);
  } else {
    NoteFailure(s, job_id);
  }
}

void DBStrata::BackgroundBlobGc::NoteFailure(const Status& s, int job_id) {
  if (s.IsNoSpace() || s.subcode() == Status::kSpaceLimit) {
    // A smaller job may still find room, and frees some.
    blobs_->gc()->OnOutOfSpace(
        plan_.max_copied > 0 ? std::min(plan_.max_copied, plan_.job.live_size)
                             : plan_.job.live_size);
  } else if (job_->unreadable_file() != 0) {
    // A damaged file costs what is in it: reads of it fail, and the file stays.
    // The other files are not in doubt, so this is no background error.
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "[%s] [JOB %d] Blob file #%" PRIu64
                    " cannot be collected and is left as it is, as a value in "
                    "it or its record index cannot be read: %s. `ldb "
                    "verify_address_map` lists the keys",
                    cfd()->GetName().c_str(), job_id, job_->unreadable_file(),
                    s.ToString().c_str());
    blobs_->gc()->OnFailed(job_->failed_files());
    blobs_->gc()->OnDamaged(job_->unreadable_file());
    if (unreadable_ != nullptr) {
      unreadable_->insert(job_->unreadable_file());
    }
    // The other files of the job are as they were.
    strata_->SetBlobGcDue();
  } else if (job_->has_unreadable_keys()) {
    // Reads and compactions of the SST files find the same.
    ROCKS_LOG_WARN(db_->immutable_db_options_.info_log,
                   "[%s] [JOB %d] Values were not sorted, as an SST file could "
                   "not be read: %s",
                   cfd()->GetName().c_str(), job_id, s.ToString().c_str());
  } else {
    // The caller of a manual job gets the error. Files are kept from later jobs
    // if they could not be read, or if there is no caller.
    blobs_->gc()->OnFailed(
        job_->failed_files().empty() && !is_manual()
            ? std::set<uint64_t>(plan_.job.files.begin(), plan_.job.files.end())
            : job_->failed_files());
    db_->error_handler_.SetBGError(s, BackgroundErrorReason::kCompaction);
  }
}

}  // namespace ROCKSDB_NAMESPACE
