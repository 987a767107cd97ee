//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// MigratePaths(): the DB's part of a PathMigration.

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "db/column_family.h"
#include "db/compaction/compaction.h"
#include "db/compaction/compaction_picker.h"
#include "db/delta/delta_damage.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/path_layout/migration_pacer.h"
#include "db/path_layout/misplaced_bytes.h"
#include "db/path_layout/misplaced_files.h"
#include "db/path_layout/path_layout.h"
#include "db/path_layout/path_migration.h"
#include "db/path_layout/path_migration_state.h"
#include "db/strata/background_delta_job.h"
#include "db/strata/db_strata.h"
#include "db/strata/manual_delta_job.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "rocksdb/utilities/path_migration.h"
#include "test_util/sync_point.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kNanosPerMicro = 1000;
// LOG tells of the progress when so much time has passed.
constexpr uint64_t kLogIntervalMicros = 10 * MigrationPacer::kMicrosPerSecond;

// Returns the value of an option that is a list of path ids.
std::string IdsToString(const std::vector<uint32_t>& ids) {
  std::string text;
  for (const uint32_t id : ids) {
    text.append(text.empty() ? "" : ":").append(std::to_string(id));
  }
  return text;
}

bool HasSameLayout(const MutableCFOptions& a, const MutableCFOptions& b) {
  return a.level_sst_path_ids == b.level_sst_path_ids &&
         a.level_blob_path_ids == b.level_blob_path_ids &&
         a.delta_sorted_path_id == b.delta_sorted_path_id;
}

}  // namespace

class DBStrata::PathMigrationHost : public PathMigration::Host {
 public:
  // REQUIRES: DB mutex not held; the layout was set; BeginManualCall() was
  // called.
  PathMigrationHost(DBStrata* strata, ColumnFamilyData* cfd,
                    const MigratePathsOptions& options)
      : strata_(strata), db_(strata->db_), cfd_(cfd), options_(options) {
    request_.canceled = options.canceled;
    // Wishes of compaction filters are left to jobs in the background.
    request_.fulfils_wishes = false;
    request_.waits_for_pauses = true;
    InstrumentedMutexLock lock(&db_->mutex_);
    first_new_file_ = db_->versions_->current_next_file_number();
    if (cfd->delta_store() != nullptr) {
      cfd->delta_store()->jobs().ClearLeftovers();
      cfd->delta_store()->jobs().damage().Clear();
    }
    last_log_micros_ = NowMicros();
  }

  // The wall clock may be set back, or ahead.
  uint64_t NowMicros() override {
    return db_->immutable_db_options_.clock->NowNanos() / kNanosPerMicro;
  }
  void WaitAMoment() override {
    InstrumentedMutexLock lock(&db_->mutex_);
    strata_->scheduler_.WaitForOthers();
  }
  PathMigration::Left Look() override;
  bool HasOlderJobs() override;
  bool IsPaused() override {
    InstrumentedMutexLock lock(&db_->mutex_);
    return db_->bg_work_paused_ > 0 || db_->bg_compaction_paused_ > 0;
  }
  Status CheckToGoOn() override;
  Status RunJob(PathMigration::Job* job) override;
  std::string LeftText() override;
  void OnProgress(const MigratePathsProgress& progress) override;

  void LogBegin();
  void LogEnd(const MigratePathsProgress& progress, const Status& s);

 private:
  Status RunCompaction(PathMigration::Job* job);
  // Returns true if an exclusive CompactRange() waits until it may begin: it
  // comes first, and RunManualCompaction() would wait for it whether the call
  // is canceled or not.
  bool IsExclusiveCompactionWaiting();
  Status RunDeltaJob(PathMigration::Job* job);
  // Prepares the request of the next job of delta files. Returns false if no
  // delta file is misplaced any more.
  bool PrepareRequest();
  // Returns why the last job of delta files has found nothing to do although
  // some are misplaced.
  Status WhyStuck();
  PathMigrationState::Compacted Compacted();
  const char* Name() const { return cfd_->GetName().c_str(); }

  DBStrata* const strata_;
  DBImpl* const db_;
  ColumnFamilyData* const cfd_;
  const MigratePathsOptions& options_;
  BackgroundDeltaJob::Request request_;
  // Jobs that began before the layout was set have an older one in
  // DBImpl::pending_outputs_: SetOptions() takes two for the OPTIONS file.
  uint64_t first_new_file_ = 0;
  // The result of the last Look().
  std::optional<MisplacedBytes> misplaced_;
  uint64_t last_log_micros_ = 0;
};

PathMigration::Left DBStrata::PathMigrationHost::Look() {
  InstrumentedMutexLock lock(&db_->mutex_);
  misplaced_ = MisplacedBytes::Of(cfd_);
  const MisplacedBytes::Count sum = misplaced_->Sum();
  PathMigration::Left left;
  left.files = sum.files;
  left.bytes = sum.bytes;
  left.is_done = misplaced_->IsEmpty();
  return left;
}

bool DBStrata::PathMigrationHost::HasOlderJobs() {
  InstrumentedMutexLock lock(&db_->mutex_);
  const auto num_old =
      std::count_if(db_->pending_outputs_.begin(), db_->pending_outputs_.end(),
                    [this](uint64_t file) { return file < first_new_file_; });
  // An ingestion that was prepared may stay so for as long as the application
  // likes, and its one file number with it. It is not known which numbers these
  // are, so as many of them may be of ingestions as there are.
  if (num_old > db_->num_outstanding_prepared_ingestions_.load()) {
    TEST_SYNC_POINT("DBStrata::PathMigrationHost::HasOlderJobs:Waits");
    return true;
  }
  // A compaction gets its options when it is picked, and a thread, which takes
  // such a number, later.
  const MutableCFOptions& options = cfd_->GetLatestMutableCFOptions();
  const auto& compactions =
      *cfd_->compaction_picker()->compactions_in_progress();
  return std::any_of(compactions.begin(), compactions.end(),
                     [&options](const Compaction* compaction) {
                       return !HasSameLayout(compaction->mutable_cf_options(),
                                             options);
                     });
}

Status DBStrata::PathMigrationHost::CheckToGoOn() {
  TEST_SYNC_POINT_CALLBACK("DBStrata::PathMigrationHost::CheckToGoOn", cfd_);
  const auto incomplete = [](Status::SubCode subcode, const char* why) {
    return Status(Status::kIncomplete, subcode, Status::kNoError, why);
  };
  if (db_->shutting_down_.load(std::memory_order_acquire)) {
    return Status::ShutdownInProgress();
  }
  if (cfd_->IsDropped()) {
    return Status::ColumnFamilyDropped();
  }
  if (db_->manual_compaction_paused_.load(std::memory_order_acquire) > 0) {
    return incomplete(Status::SubCode::kManualCompactionPaused,
                      "manual compactions are disabled");
  }
  // Before `canceled`, which AbortAllCompactions() may have set.
  if (db_->compaction_aborted_.load(std::memory_order_acquire) > 0) {
    return incomplete(Status::SubCode::kCompactionAborted,
                      "compactions are aborted");
  }
  if (options_.canceled != nullptr && options_.canceled->load()) {
    return incomplete(Status::SubCode::kManualCompactionPaused, "canceled");
  }
  return Status::OK();
}

Status DBStrata::PathMigrationHost::RunJob(PathMigration::Job* job) {
  TEST_SYNC_POINT_CALLBACK("DBStrata::PathMigrationHost::RunJob", cfd_);
  if (misplaced_->num_sst() > 0) {
    return RunCompaction(job);
  }
  return misplaced_->num_hot() > 0
             ? strata_->DrainHotFile(cfd_, options_.canceled,
                                     &job->bytes_written, &job->is_busy,
                                     &job->stuck)
             : RunDeltaJob(job);
}

Status DBStrata::PathMigrationHost::RunCompaction(PathMigration::Job* job) {
  Status s;
  const PathMigrationState::Compacted before = Compacted();
  if (!IsExclusiveCompactionWaiting()) {
    s = MisplacedFiles::CompactOne(db_, cfd_, options_.canceled);
  }
  const PathMigrationState::Compacted after = Compacted();
  job->bytes_written = after.bytes - before.bytes;
  job->is_busy = s.ok() && after.compactions == before.compactions;
  return s;
}

bool DBStrata::PathMigrationHost::IsExclusiveCompactionWaiting() {
  InstrumentedMutexLock lock(&db_->mutex_);
  return std::any_of(db_->manual_compaction_dequeue_.begin(),
                     db_->manual_compaction_dequeue_.end(),
                     [](const auto* compaction) {
                       return compaction->exclusive && !compaction->in_progress;
                     });
}

PathMigrationState::Compacted DBStrata::PathMigrationHost::Compacted() {
  InstrumentedMutexLock lock(&db_->mutex_);
  return cfd_->strata()->path_migration()->compacted;
}

Status DBStrata::PathMigrationHost::RunDeltaJob(PathMigration::Job* job) {
  if (!PrepareRequest()) {
    return Status::OK();
  }
  TEST_SYNC_POINT_CALLBACK("DBStrata::PathMigrationHost::RunDeltaJob:Prepared",
                           cfd_);
  const uint64_t before = request_.bytes_written;
  ManualDeltaJob delta_job(strata_, cfd_, &request_);
  Status s = strata_->scheduler_.RunManual(&delta_job);
  job->bytes_written = request_.bytes_written - before;
  if (s.IsCorruption() && request_.has_noted_damage) {
    // The next job leaves the damaged buckets alone.
    s = Status::OK();
  }
  // Without the path the layout has changed since the request was prepared, and
  // the job has left the files that the next one finds.
  if (s.ok() && delta_job.is_done() && request_.sorted_path_id.has_value()) {
    job->stuck = WhyStuck();
  }
  return s;
}

bool DBStrata::PathMigrationHost::PrepareRequest() {
  InstrumentedMutexLock lock(&db_->mutex_);
  const auto& deltas = cfd_->current()->storage_info()->delta();
  if (deltas == nullptr || cfd_->delta_store() == nullptr) {
    return false;
  }
  const DeltaPicker::Paths paths = DeltaPicker::Paths::By(
      cfd_->GetLatestMutableCFOptions(), cfd_->ioptions().num_levels);
  request_.force_below = DeltaPicker::ForceBelowToMove(paths, *deltas);
  request_.sorted_path_id = paths.sorted;
  request_.has_noted_damage = false;
  return request_.force_below > 0;
}

Status DBStrata::PathMigrationHost::WhyStuck() {
  InstrumentedMutexLock lock(&db_->mutex_);
  const DeltaDamage& damage = cfd_->delta_store()->jobs().damage();
  if (damage.HasDamaged()) {
    return damage.error();
  }
  if (!request_.fold_error.ok()) {
    return request_.fold_error;
  }
  return Status::Incomplete(
      "delta files cannot be moved yet: they are to become values, but "
      "snapshots "
      "need their operands, or these cannot be merged");
}

std::string DBStrata::PathMigrationHost::LeftText() {
  std::string text;
  const std::vector<MisplacedBytes::Count>& paths = misplaced_->paths();
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].files > 0) {
      text.append(text.empty() ? ": " : ", ")
          .append(std::to_string(paths[i].bytes))
          .append(" bytes in ")
          .append(std::to_string(paths[i].files))
          .append(" files on path ")
          .append(std::to_string(i))
          .append(" (")
          .append(cfd_->ioptions().cf_paths[i].path)
          .append(")");
    }
  }
  return text;
}

void DBStrata::PathMigrationHost::OnProgress(
    const MigratePathsProgress& progress) {
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    PathMigrationState* const state = cfd_->strata()->path_migration();
    state->progress = progress;
    state->report_nanos = db_->immutable_db_options_.clock->NowNanos();
  }
  const uint64_t now = NowMicros();
  if (now >= last_log_micros_ + kLogIntervalMicros) {
    last_log_micros_ = now;
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "[%s] Migration of paths: %" PRIu64 " of %" PRIu64
                   " bytes moved, %" PRIu64 " bytes in %" PRIu64
                   " files left, %" PRIu64 " bytes/s",
                   Name(), progress.bytes_moved, progress.bytes_at_start,
                   progress.bytes_left, progress.files_left,
                   progress.BytesPerSecond());
  }
  if (options_.on_progress) {
    options_.on_progress(progress);
  }
}

void DBStrata::PathMigrationHost::LogBegin() {
  std::string layout;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    const MutableCFOptions& options = cfd_->GetLatestMutableCFOptions();
    layout =
        "level_sst_path_ids=" + IdsToString(options.level_sst_path_ids) +
        ", level_blob_path_ids=" + IdsToString(options.level_blob_path_ids) +
        ", delta_sorted_path_id=" +
        std::to_string(options.delta_sorted_path_id);
  }
  const PathMigration::Left left = Look();
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] Migration of paths begins, to %s, at most %" PRIu64
                 " bytes/s (0: no limit); %" PRIu64 " bytes in %" PRIu64
                 " files to move%s",
                 Name(), layout.c_str(), options_.max_bytes_per_second,
                 left.bytes, left.files, LeftText().c_str());
}

void DBStrata::PathMigrationHost::LogEnd(const MigratePathsProgress& progress,
                                         const Status& s) {
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] Migration of paths ends: %" PRIu64
                 " bytes moved in %" PRIu64 " s by %" PRIu64
                 " jobs, which have written %" PRIu64 " bytes: %s",
                 Name(), progress.bytes_moved,
                 progress.micros / MigrationPacer::kMicrosPerSecond,
                 progress.jobs, progress.bytes_written, s.ToString().c_str());
}

Status DBStrata::CheckMigration(const MigratePathsOptions& options,
                                ColumnFamilyData* cfd) const {
  db_->mutex_.AssertHeld();
  if (db_->shutting_down_.load(std::memory_order_acquire)) {
    return Status::ShutdownInProgress();
  }
  if (cfd->IsDropped()) {
    return Status::ColumnFamilyDropped();
  }
  MutableCFOptions layout = cfd->GetLatestMutableCFOptions();
  layout.level_sst_path_ids =
      options.level_sst_path_ids.value_or(layout.level_sst_path_ids);
  layout.level_blob_path_ids =
      options.level_blob_path_ids.value_or(layout.level_blob_path_ids);
  layout.delta_sorted_path_id =
      options.delta_sorted_path_id.value_or(layout.delta_sorted_path_id);
  if (!PathLayout::PlacesFiles(layout)) {
    return Status::InvalidArgument(
        "MigratePaths: nothing says where files of column family " +
        cfd->GetName() +
        " belong: level_sst_path_ids, level_blob_path_ids and "
        "delta_sorted_path_id are not set");
  }
  if (cfd->strata()->path_migration()->is_running) {
    return Status::Busy("MigratePaths: another call for column family " +
                        cfd->GetName() + " is running");
  }
  return Status::OK();
}

Status DBStrata::SetLayout(const MigratePathsOptions& options,
                           ColumnFamilyHandle* column_family) {
  std::unordered_map<std::string, std::string> values;
  if (options.level_sst_path_ids.has_value()) {
    values["level_sst_path_ids"] = IdsToString(*options.level_sst_path_ids);
  }
  if (options.level_blob_path_ids.has_value()) {
    values["level_blob_path_ids"] = IdsToString(*options.level_blob_path_ids);
  }
  if (options.delta_sorted_path_id.has_value()) {
    values["delta_sorted_path_id"] =
        std::to_string(*options.delta_sorted_path_id);
  }
  return values.empty() ? Status::OK()
                        : db_->SetOptions({{column_family, values}});
}

void DBStrata::LeaveMisplacedFiles(ColumnFamilyData* cfd, bool leave) {
  db_->mutex_.AssertHeld();
  cfd->current()->storage_info()->strata()->LeaveMisplacedFiles(leave);
  const bool has_some = MisplacedFiles::FindAfterFailure(cfd);
  if (!leave && !cfd->IsDropped()) {
    if (has_some) {
      db_->EnqueuePendingCompaction(cfd);
    }
    SetDeltaOptionsChanged(cfd);
    db_->MaybeScheduleFlushOrCompaction();
  }
}

Status DBStrata::MigratePaths(ColumnFamilyHandle* column_family,
                              const MigratePathsOptions& options,
                              MigratePathsProgress* progress) {
  if (progress != nullptr) {
    *progress = MigratePathsProgress();
  }
  if (db_->read_only_) {
    return Status::NotSupported("Not supported operation in read only mode.");
  }
  ColumnFamilyData* const cfd =
      static_cast_with_check<ColumnFamilyHandleImpl>(column_family)->cfd();
  const CompactionStyle style = cfd->ioptions().compaction_style;
  if (style != kCompactionStyleLevel && style != kCompactionStyleUniversal) {
    return Status::NotSupported(
        "MigratePaths needs level or universal compaction, which moves files");
  }
  PathMigrationState* const state = cfd->strata()->path_migration();
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    Status s = CheckMigration(options, cfd);
    if (!s.ok()) {
      return s;
    }
    state->is_running = true;
    // The DB is not closed, and the family not deleted, before the end.
    scheduler_.BeginManualCall(cfd);
    LeaveMisplacedFiles(cfd, /*leave=*/true);
  }
  Status s = SetLayout(options, column_family);
  if (s.ok()) {
    TEST_SYNC_POINT_CALLBACK("DBStrata::MigratePaths:LayoutIsSet", cfd);
    PathMigrationHost host(this, cfd, options);
    host.LogBegin();
    PathMigration migration(&host, options.max_bytes_per_second);
    s = migration.Run();
    host.LogEnd(migration.progress(), s);
    if (progress != nullptr) {
      *progress = migration.progress();
    }
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  LeaveMisplacedFiles(cfd, /*leave=*/false);
  state->is_running = false;
  state->report_nanos.reset();
  scheduler_.EndManualCall(cfd);
  return s;
}

// Called for manual compactions, so that the reason is that of a call.
void DBStrata::CountMoved(Compaction* compaction, const Status& status) {
  db_->mutex_.AssertHeld();
  if (!status.ok() ||
      compaction->compaction_reason() != CompactionReason::kMisplacedFiles) {
    return;
  }
  uint64_t bytes = 0;
  for (const auto& [level, file] : compaction->edit()->GetNewFiles()) {
    bytes += file.fd.GetFileSize();
  }
  for (const BlobFileAddition& file :
       compaction->edit()->GetBlobFileAdditions()) {
    bytes += file.GetTotalBlobBytes();
  }
  PathMigrationState::Compacted& compacted =
      compaction->column_family_data()->strata()->path_migration()->compacted;
  ++compacted.compactions;
  compacted.bytes += bytes;
}

Status MigratePaths(DB* db, ColumnFamilyHandle* column_family,
                    const MigratePathsOptions& options,
                    MigratePathsProgress* progress) {
  if (db == nullptr || column_family == nullptr) {
    return Status::InvalidArgument(
        "MigratePaths needs a DB and a column family");
  }
  return static_cast_with_check<DBImpl>(db->GetRootDB())
      ->strata()
      ->MigratePaths(column_family, options, progress);
}

}  // namespace ROCKSDB_NAMESPACE
