//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A DB with several paths when the device of a path becomes read-only or is
// lost: which errors it outlasts, which work waits for the device, and how it
// goes on when the device is back.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/job_context.h"
#include "db/path_layout/open_paths.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "file/strata/path_probe.h"
#include "file/strata/space_needs.h"
#include "file/strata/space_recovery.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if the error may be that of a device, other than a lack of
// space. An error that its reporter has called fatal is not: what the job has
// left behind cannot be mended by another attempt.
bool MayBeOfDevice(const Status& error) {
  return error.IsIOError() &&
         error.severity() < Status::Severity::kFatalError &&
         (error.subcode() == Status::SubCode::kNone ||
          error.subcode() == Status::SubCode::kPathNotFound);
}

// Returns true if a write has failed in the memtable, where a part of its batch
// may be. The caller of an error of the WAL says so.
bool IsOfMemtable(BackgroundErrorReason reason, bool is_wal) {
  return reason == BackgroundErrorReason::kMemTable && !is_wal;
}

// Returns true if bytes of a WAL may be lost by an error for this reason.
bool IsOfWal(BackgroundErrorReason reason) {
  return reason == BackgroundErrorReason::kWriteCallback ||
         reason == BackgroundErrorReason::kMemTable ||
         reason == BackgroundErrorReason::kFlush;
}

}  // namespace

// Tries the directories that are watched.
class DBStrata::PathProbeClient : public SpaceRecovery::Client {
 public:
  explicit PathProbeClient(DBStrata* strata) : strata_(strata) {}

  SpaceRecovery::Outcome Try() override {
    PathFaults* const faults = strata_->FileManager()->path_faults();
    const Status s = strata_->ProbePaths(faults->Of(strata_));
    // A recovery may have found directories working, too, and jobs may have
    // failed in others meanwhile.
    const uint64_t num_removed = faults->NumRemoved(strata_);
    if (num_removed != num_removed_) {
      num_removed_ = num_removed;
      strata_->ContinueAfterPathFault();
    }
    return s.ok() ? SpaceRecovery::Outcome::kDone
                  : SpaceRecovery::Outcome::kAgain;
  }

 private:
  DBStrata* const strata_;
  // PathFaults::NumRemoved() of the last call of ContinueAfterPathFault().
  uint64_t num_removed_ = 0;
};

OpenPaths DBStrata::AllDirectories() const {
  db_->mutex_.AssertHeld();
  const ImmutableDBOptions& options = db_->immutable_db_options_;
  OpenPaths paths(options.db_paths);
  for (const ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    paths.AddFamily(cfd->GetName(), cfd->ioptions().cf_paths);
  }
  if (paths.AreSeveral()) {
    paths.AddOther(db_->dbname_, "the directory of the database");
    paths.AddOther(options.GetWalDir(), "the directory of WALs");
  }
  return paths;
}

std::string DBStrata::FaultyDirectory(const OpenPaths& paths,
                                      const Status& error) {
  db_->mutex_.AssertHeld();
  if (!paths.AreSeveral() || !MayBeOfDevice(error)) {
    return "";
  }
  std::string directory = paths.DirectoryIn(error, OpenPaths::Files::kAll);
  // A single file that is missing is damage, and does not come back by itself.
  // The same if all are missing: what is below the mount point of a device that
  // was removed is another device, on which nothing must be written.
  if (error.IsPathNotFound() && !directory.empty() &&
      db_->immutable_db_options_.fs
          ->FileExists(directory, IOOptions(), /*dbg=*/nullptr)
          .ok()) {
    directory.clear();
  }
  return directory;
}

bool DBStrata::NotePathFault(BackgroundErrorReason reason, bool is_wal,
                             IOStatus* error) {
  db_->mutex_.AssertHeld();
  const OpenPaths paths = AllDirectories();
  const std::string directory = FaultyDirectory(paths, *error);
  if (directory.empty()) {
    return false;
  }
  const bool was_retryable = error->GetRetryable();
  const bool is_data_lost = error->GetDataLoss();
  *error = status_to_io_status(paths.AddPathTo(*error, OpenPaths::Files::kAll));

  const ImmutableDBOptions& options = db_->immutable_db_options_;
  // RocksDB goes on after most errors without paranoid_checks. A batch of which
  // a part is in the memtable was not published: a flush would write this part.
  // Prepared transactions are in the WAL alone, and with manual_wal_flush bytes
  // of it are in memory, so an error of the WAL stays what it is then.
  if (is_data_lost || !options.paranoid_checks ||
      reason == BackgroundErrorReason::kAsyncFileOpen ||
      IsOfMemtable(reason, is_wal) ||
      ((is_wal || IsOfWal(reason)) &&
       (db_->allow_2pc() || options.manual_wal_flush))) {
    return false;
  }
  WatchPath(directory, *error);
  error->SetRetryable(true);
  return !was_retryable;
}

void DBStrata::AddPathToJobError(Status* s) const {
  db_->mutex_.AssertHeld();
  if (MayBeOfDevice(*s)) {
    *s = AllDirectories().AddPathTo(*s, OpenPaths::Files::kAll);
  }
}

void DBStrata::WatchPath(const std::string& directory, const Status& error) {
  db_->mutex_.AssertHeld();
  SstFileManagerImpl* const manager = FileManager();
  // Close() has canceled the client.
  if (manager == nullptr || db_->shutdown_initiated_) {
    return;
  }
  if (manager->path_faults()->Add(this, directory)) {
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "The device of %s has failed: %s. Automatic compactions to "
                    "it wait until files can be made there",
                    directory.c_str(), error.ToString().c_str());
  }
  if (path_probe_client_ == nullptr) {
    path_probe_client_ = std::make_unique<PathProbeClient>(this);
  }
  manager->space_recovery()->Start(path_probe_client_.get());
}

Status DBStrata::ProbePaths(const std::vector<std::string>& directories) {
  const ImmutableDBOptions& options = db_->immutable_db_options_;
  PathFaults* const faults = FileManager()->path_faults();
  Status result;
  for (const std::string& directory : directories) {
    IOStatus s = PathProbe::Run(options.fs.get(), directory,
                                db_->versions_->NewFileNumber());
    if (!s.ok()) {
      if (result.ok()) {
        result = std::move(s);
      }
    } else if (faults->Remove(this, directory)) {
      ROCKS_LOG_INFO(options.info_log, "Files can be made in %s again",
                     directory.c_str());
      TEST_SYNC_POINT("DBStrata::ProbePaths:Removed");
    }
  }
  return result;
}

Status DBStrata::ProbePathsBeforeRecovery() {
  db_->mutex_.AssertHeld();
  SstFileManagerImpl* const manager = FileManager();
  if (manager == nullptr || !manager->path_faults()->HasAny()) {
    return Status::OK();
  }
  // The layout may be another one than when the error occurred.
  SpaceNeeds needs;
  AddFlushNeeds(/*are_required=*/true, &needs);
  std::vector<std::string> directories = manager->path_faults()->Of(this);
  std::erase_if(directories, [&needs](const std::string& directory) {
    return !needs.IsRequired(directory);
  });
  db_->mutex_.Unlock();
  const Status s = ProbePaths(directories);
  db_->mutex_.Lock();
  return s.ok() ? s : db_->error_handler_.GetBGError();
}

void DBStrata::NoteDeletion(const std::string& file_name, const Status& s) {
  if (s.ok()) {
    return;
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  const OpenPaths paths = AllDirectories();
  const std::string directory = FaultyDirectory(
      paths,
      Status(s.code(), s.subcode(), Status::Severity::kNoError, file_name));
  if (directory.empty()) {
    return;
  }
  has_undeleted_files_ = true;
  WatchPath(directory, paths.AddPathTo(s, OpenPaths::Files::kAll));
}

void DBStrata::ContinueAfterPathFault() {
  JobContext job_context(db_->next_job_id_.fetch_add(1));
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    if (db_->shutdown_initiated_) {
      return;
    }
    // With a soft error, as after a lack of space elsewhere, jobs go on.
    if (!db_->error_handler_.IsBGWorkStopped()) {
      ScheduleAfterRecovery();
    }
    if (has_undeleted_files_) {
      has_undeleted_files_ = false;
      db_->FindObsoleteFiles(&job_context, /*force=*/true);
    }
  }
  if (job_context.HaveSomethingToDelete()) {
    db_->PurgeObsoleteFiles(job_context);
  }
  job_context.Clean();
  TEST_SYNC_POINT("DBStrata::ContinueAfterPathFault:End");
}

}  // namespace ROCKSDB_NAMESPACE
