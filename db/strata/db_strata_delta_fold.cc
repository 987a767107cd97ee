//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The gate phase of folds: how they keep out of the way of flushes, ingestions
// and deletions of files. What they write is in db/delta/delta_fold_commit.*.

#include <cassert>
#include <cinttypes>
#include <memory>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/delta/delta_fold_commit.h"
#include "db/delta/delta_folder.h"
#include "db/delta/delta_store.h"
#include "db/path_layout/path_layout.h"
#include "db/strata/background_delta_job.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "file/sst_file_manager_impl.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A fold that may not begin its commit within this time is given up: its data
// is still right, but a caller may wait for the job.
constexpr uint64_t kMaxFoldEntryWaitMicros = 10 * 1000 * 1000;
constexpr uint64_t kMaxSleepMicros = 100 * 1000;

}  // namespace

Status DBStrata::TryEnterDeltaFold(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  // A recovery that is under way flushes. The fold does not return the error,
  // which is not its own, and has been reported.
  if (!db_->error_handler_.GetBGError().ok()) {
    return Status::TryAgain("A fold waits for the recovery from an error");
  }
  if (db_->num_running_ingest_file_ > 0 || num_delta_fold_blocks_ > 0) {
    return Status::TryAgain("A fold waits for an ingestion or deletion");
  }
  if (cfd->delta_store()->OldestRunningFlush() != UINT64_MAX ||
      !flush_order_gate_.EnterForFold(cfd)) {
    return Status::TryAgain("A fold waits for a flush");
  }
  ++num_running_delta_folds_;
  return Status::OK();
}

void DBStrata::LeaveDeltaFold(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  flush_order_gate_.LeaveForFold(cfd);
  assert(num_running_delta_folds_ > 0);
  --num_running_delta_folds_;
  db_->bg_cv_.SignalAll();
  // The parked requests are in the queue again.
  db_->MaybeScheduleFlushOrCompaction();
}

Status DBStrata::EnterDeltaFold(ColumnFamilyData* cfd,
                                const DeltaFoldJob& job) {
  db_->mutex_.AssertHeld();
  // Not in the gate: it waits for flushes, which must not wait for it.
  SystemClock* const clock = db_->immutable_db_options_.clock;
  uint64_t max_wait = kMaxFoldEntryWaitMicros;
  TEST_SYNC_POINT_CALLBACK("DBStrata::EnterDeltaFold:MaxWait", &max_wait);
  const uint64_t until = BackgroundDeltaJob::NowMicros(this) + max_wait;
  for (;;) {
    Status s = job.check();
    if (s.ok()) {
      s = TryEnterDeltaFold(cfd);
    }
    // A recovery waits for the end of all jobs, so a fold does not wait for the
    // recovery. No job of the background folds before it has ended, see
    // BackgroundDeltaJob::AreFoldsAllowed().
    if (!s.IsTryAgain() || BackgroundDeltaJob::NowMicros(this) >= until ||
        !db_->error_handler_.GetBGError().ok()) {
      return s;
    }
    TEST_SYNC_POINT("DBStrata::EnterDeltaFold:Waits");
    db_->bg_cv_.TimedWait(clock->NowMicros() + kMaxSleepMicros);
  }
}

std::unique_ptr<DeltaFoldCommit> DBStrata::NewDeltaFoldCommit(
    ColumnFamilyData* cfd, int job_id, DeltaValueFolder* folder,
    const DeltaFoldJob& job) {
  db_->mutex_.AssertHeld();
  const uint32_t path_id =
      PathLayout::SstPathIdOr(cfd->GetLatestMutableCFOptions(), 0, 0);
  DeltaFoldCommit::Context context;
  context.cfd = cfd;
  context.versions = db_->versions_.get();
  context.db_options = &db_->immutable_db_options_;
  context.dbname = db_->dbname_;
  context.db_id = db_->db_id_;
  context.db_session_id = db_->db_session_id_;
  context.job_id = job_id;
  context.file_options = db_->file_options_for_compaction_;
  context.io_tracer = db_->io_tracer_;
  context.event_logger = &db_->event_logger_;
  context.blob_callback = &db_->blob_callback_;
  context.path_id = path_id;
  context.directory = db_->GetDataDir(cfd, path_id);
  context.fast_sst_open = db_->mutable_db_options_.fast_sst_open;
  // Flushes wait for it.
  context.io_priority = Env::IO_USER;
  context.job = job;
  return std::make_unique<DeltaFoldCommit>(std::move(context), folder);
}

Status DBStrata::BeginDeltaFold(ColumnFamilyData* cfd, int job_id,
                                DeltaValueFolder* folder,
                                const DeltaFoldJob& job, VersionEdit* edit,
                                std::unique_ptr<DeltaFoldCommit>* fold) {
  db_->mutex_.AssertHeld();
  assert(*fold == nullptr);
  if (folder->values()->empty()) {
    return Status::OK();
  }
  Status s = EnterDeltaFold(cfd, job);
  if (!s.ok()) {
    return s;
  }
  std::unique_ptr<DeltaFoldCommit> commit =
      NewDeltaFoldCommit(cfd, job_id, folder, job);

  // As InitSnapshotContext() has them. Readers of maps have their bounds before
  // they take the SuperVersion, so it may be one that has the values.
  std::vector<SequenceNumber> snapshots = db_->snapshots_.GetAll();
  const SequenceNumber published = db_->GetLastPublishedSequence();
  if (snapshots.empty() || snapshots.back() < published) {
    snapshots.push_back(published);
  }
  ReadBoundsOf(*cfd).MergeInto(&snapshots);
  s = commit->Begin(std::move(snapshots));
  if (s.ok()) {
    db_->mutex_.Unlock();
    TEST_SYNC_POINT("DBStrata::BeginDeltaFold:Entered");
    s = commit->Write();
    if (s.ok()) {
      s = commit->Publish();
    }
    db_->mutex_.Lock();
  }
  if (s.ok()) {
    s = job.check();
  }
  if (s.ok()) {
    s = commit->Recheck();
  }
  if (s.ok()) {
    commit->AddTo(edit);
    *fold = std::move(commit);
    TEST_SYNC_POINT("DBStrata::BeginDeltaFold:BeforeEdit");
  } else {
    *fold = std::move(commit);
    EndDeltaFold(fold, s, /*sv_context=*/nullptr);
  }
  return s;
}

void DBStrata::EndDeltaFold(std::unique_ptr<DeltaFoldCommit>* fold,
                            const Status& status,
                            SuperVersionContext* sv_context) {
  db_->mutex_.AssertHeld();
  if (*fold == nullptr) {
    return;
  }
  DeltaFoldCommit* const commit = fold->get();
  ColumnFamilyData* const cfd = commit->cfd();
  commit->Close(status);
  if (commit->committed() && !status.ok()) {
    // The values are in the map, so readers have to see their names.
    assert(sv_context != nullptr);
    db_->InstallSuperVersionAndScheduleWork(cfd, sv_context);
  }
  db_->mutex_.Unlock();
  TEST_SYNC_POINT("DBStrata::EndDeltaFold:BeforeSettle");
  commit->Settle();
  const std::string sst = commit->has_file()
                              ? TableFileName(cfd->ioptions().cf_paths,
                                              commit->meta().fd.GetNumber(),
                                              commit->meta().fd.GetPathId())
                              : std::string();
  if (commit->committed()) {
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "[%s] Fold of merge operands: table #%" PRIu64 ", %" PRIu64
                   " bytes, %" PRIu64
                   " of values; %zu keys were overwritten meanwhile",
                   cfd->GetName().c_str(), commit->meta().fd.GetNumber(),
                   commit->meta().fd.GetFileSize(), commit->bytes_written(),
                   commit->num_hidden());
    auto* const sfm = static_cast<SstFileManagerImpl*>(
        db_->immutable_db_options_.sst_file_manager.get());
    if (sfm != nullptr && !sst.empty()) {
      sfm->OnAddFile(sst).PermitUncheckedError();
    }
  } else {
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "[%s] Fold of merge operands was given up: %s",
                   cfd->GetName().c_str(), status.ToString().c_str());
  }
  db_->mutex_.Lock();
  for (const uint64_t number : commit->FilesToKeep()) {
    ROCKS_LOG_WARN(db_->immutable_db_options_.info_log,
                   "[%s] File #%" PRIu64
                   " of the fold stays until the DB is opened again, as delta "
                   "files could not be deleted",
                   cfd->GetName().c_str(), number);
    // Full scans take it for one that is being deleted.
    db_->MarkAsGrabbedForPurge(number);
  }
  if (cfd->address_map_store() != nullptr && sv_context != nullptr) {
    SetBlobGcDue();
    DropEmptyBlobFiles(cfd, Env::IOActivity::kCompaction, sv_context);
    ScheduleMapRemovals(cfd);
  }
  fold->reset();
  LeaveDeltaFold(cfd);
}

// An ingestion waits here before it stops writes: a fold calls listeners, which
// may write.
DBStrata::DeltaFoldBlock::DeltaFoldBlock(DBStrata* strata) : strata_(strata) {
  strata_->db_->mutex_.AssertHeld();
  ++strata_->num_delta_fold_blocks_;
  strata_->WaitForDeltaFolds();
}

DBStrata::DeltaFoldBlock::~DeltaFoldBlock() {
  strata_->db_->mutex_.AssertHeld();
  if (--strata_->num_delta_fold_blocks_ == 0) {
    strata_->db_->bg_cv_.SignalAll();
  }
}

void DBStrata::WaitForDeltaFolds() {
  db_->mutex_.AssertHeld();
  while (num_running_delta_folds_ > 0) {
    TEST_SYNC_POINT("DBStrata::WaitForDeltaFolds:Waits");
    db_->bg_cv_.Wait();
  }
}

}  // namespace ROCKSDB_NAMESPACE
