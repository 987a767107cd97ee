//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A DB with several paths when the device of a path becomes read-only or is
// lost: which errors it outlasts, which work waits for the device, and how it
// goes on when the device is back.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/job_context.h"
#include "db/path_layout/directory_names.h"
#include "db/path_layout/open_paths.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "file/strata/path_probe.h"
#include "file/strata/space_needs.h"
#include "file/strata/space_recovery.h"
#include "file/strata/undeleted_files.h"
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

// Tries the directories that are watched, or have files that could not be
// deleted.
class DBStrata::PathProbeClient : public SpaceRecovery::Client {
 public:
  explicit PathProbeClient(DBStrata* strata) : strata_(strata) {}

  // Returns the client, which may be a new one; nullptr: Close() has canceled
  // it. Held.
  static PathProbeClient* Of(DBStrata* strata) {
    if (strata->FileManager() == nullptr || strata->db_->shutdown_initiated_) {
      return nullptr;
    }
    if (strata->path_probe_client_ == nullptr) {
      strata->path_probe_client_ = std::make_unique<PathProbeClient>(strata);
    }
    return static_cast<PathProbeClient*>(strata->path_probe_client_.get());
  }

  UndeletedFiles* undeleted() { return &undeleted_; }

  // Returns the names, with directory, of files that are to be tried again.
  // Held.
  std::vector<std::string> TakeDue() { return std::exchange(due_, {}); }

  SpaceRecovery::Outcome Try() override {
    SpaceRecovery::Outcome outcome = SpaceRecovery::Outcome::kDone;
    bool has_due = false;
    for (const std::string& directory : Directories()) {
      Status replaced;
      const Status s = strata_->ProbePaths({directory}, &replaced);
      replaced.PermitUncheckedError();
      InstrumentedMutexLock lock(&strata_->db_->mutex_);
      if (s.ok()) {
        AddDue(directory);
      } else {
        outcome = SpaceRecovery::Outcome::kAgain;
        NoteFault(directory, s);
      }
      has_due = !due_.empty();
    }
    // A recovery may have found directories working, too, and jobs may have
    // failed in others meanwhile.
    const uint64_t num_removed = Faults()->NumRemoved(strata_);
    if (num_removed != num_removed_ || has_due) {
      num_removed_ = num_removed;
      strata_->ContinueAfterPathFault();
    }
    return outcome;
  }

 private:
  PathFaults* Faults() { return strata_->FileManager()->path_faults(); }

  std::set<std::string> Directories() {
    const std::vector<std::string> watched = Faults()->Of(strata_);
    std::set<std::string> result(watched.begin(), watched.end());
    InstrumentedMutexLock lock(&strata_->db_->mutex_);
    if (strata_->has_undeleted_files_) {
      for (std::string& directory : undeleted_.Directories()) {
        result.insert(std::move(directory));
      }
    }
    return result;
  }

  // Held.
  void AddDue(const std::string& directory) {
    for (const std::string& name : undeleted_.Take(directory)) {
      due_.push_back(directory + "/" + name);
    }
  }

  // A deletion has failed, and now the directory itself does not work. Held.
  void NoteFault(const std::string& directory, const Status& s) {
    const std::vector<std::string> watched = Faults()->Of(strata_);
    if (std::find(watched.begin(), watched.end(), directory) == watched.end()) {
      strata_->WatchPath(directory, strata_->AllDirectories().AddPathTo(
                                        s, OpenPaths::Files::kAll));
    }
  }

  DBStrata* const strata_;
  // PathFaults::NumRemoved() of the last call of ContinueAfterPathFault().
  uint64_t num_removed_ = 0;
  // Guarded by the mutex of the DB.
  UndeletedFiles undeleted_;
  std::vector<std::string> due_;
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
  // Prepared transactions are in the WAL alone, and with manual_wal_flush some
  // bytes of the WAL are in memory, so its errors stay what they are then.
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
  PathProbeClient* const client = PathProbeClient::Of(this);
  if (client == nullptr) {
    return;
  }
  SstFileManagerImpl* const manager = FileManager();
  if (manager->path_faults()->Add(this, directory)) {
    client->undeleted()->NoteFault(directory);
    has_undeleted_files_ = !client->undeleted()->Directories().empty();
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "The device of %s has failed: %s. Automatic compactions to "
                    "it wait until files can be made there",
                    directory.c_str(), error.ToString().c_str());
  }
  manager->space_recovery()->Start(client);
}

std::vector<std::shared_ptr<FSDirectory>> DBStrata::HandlesOf(
    const std::string& directory) const {
  db_->mutex_.AssertHeld();
  std::vector<std::shared_ptr<FSDirectory>> handles;
  const auto add = [&](const std::string& name,
                       std::shared_ptr<FSDirectory> handle) {
    if (handle != nullptr &&
        CleanDirectoryName(/*fs=*/nullptr, name) == directory &&
        std::find(handles.begin(), handles.end(), handle) == handles.end()) {
      handles.push_back(std::move(handle));
    }
  };
  // The object of the DB owns these, and outlives the caller.
  const auto not_owned = [](FSDirectory* handle) {
    return std::shared_ptr<FSDirectory>(std::shared_ptr<void>(), handle);
  };
  add(db_->dbname_, not_owned(db_->directories_.GetDbDir()));
  add(db_->immutable_db_options_.GetWalDir(),
      not_owned(db_->directories_.GetWalDir()));
  for (const ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    const std::vector<DbPath>& paths = cfd->ioptions().cf_paths;
    for (size_t i = 0; i < cfd->data_dirs().size(); ++i) {
      add(paths[i].path, cfd->data_dirs()[i]);
    }
  }
  return handles;
}

void DBStrata::LogProbe(const std::string& directory,
                        PathProbe::Problem problem, const Status& s) {
  if (problem == PathProbe::Problem::kFiles) {
    return;
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  PathProbe::Problem& logged = logged_probes_[directory];
  if (logged == problem) {
    return;
  }
  logged = problem;
  const bool is_replaced = problem == PathProbe::Problem::kReplaced;
  ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                  "%s works again, but the database %s: %s%s",
                  directory.c_str(),
                  is_replaced ? "has opened another directory"
                              : "cannot sync the directory that it has opened",
                  s.ToString().c_str(),
                  is_replaced ? ""
                              : ". If the device was mounted again, close the "
                                "database and open it again");
}

Status DBStrata::ProbePaths(const std::vector<std::string>& directories,
                            Status* replaced) {
  const ImmutableDBOptions& options = db_->immutable_db_options_;
  PathFaults* const faults = FileManager()->path_faults();
  Status result;
  for (const std::string& directory : directories) {
    std::vector<std::shared_ptr<FSDirectory>> handles;
    {
      InstrumentedMutexLock lock(&db_->mutex_);
      handles = HandlesOf(directory);
    }
    PathProbe::Problem problem = PathProbe::Problem::kNone;
    IOStatus s =
        PathProbe::Run(options.fs.get(), directory,
                       db_->versions_->NewFileNumber(), handles, &problem);
    if (!s.ok()) {
      LogProbe(directory, problem, s);
      if (problem == PathProbe::Problem::kReplaced && replaced->ok()) {
        *replaced = s;
      }
      if (result.ok()) {
        result = std::move(s);
      }
    } else if (faults->Remove(this, directory)) {
      ROCKS_LOG_INFO(options.info_log, "Files can be made in %s again",
                     directory.c_str());
      {
        InstrumentedMutexLock lock(&db_->mutex_);
        logged_probes_.erase(directory);
      }
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
  // A device may stay away for long. Writers that were stalled when it failed
  // return the error, as those do that come later. A flush of the recovery
  // would release them, but there is none before the probe succeeds.
  const WriteStallRelease::Request no_stall(&write_stall_release_,
                                            /*is_recovery=*/true, &db_->bg_cv_);
  // The layout may be another one than when the error occurred.
  SpaceNeeds needs;
  AddFlushNeeds(/*are_required=*/true, &needs);
  std::vector<std::string> directories = manager->path_faults()->Of(this);
  std::erase_if(directories, [&needs](const std::string& directory) {
    return !needs.IsRequired(directory);
  });
  db_->mutex_.Unlock();
  Status replaced;
  const Status s = ProbePaths(directories, &replaced);
  TEST_SYNC_POINT("DBStrata::ProbePathsBeforeRecovery:Probed");
  db_->mutex_.Lock();
  if (!replaced.ok()) {
    // Neither the handles nor the files that are open reach what is there now,
    // and the files that the DB needs may be in neither place. So nothing but
    // an open, which looks for all files by name, helps.
    const Status error =
        AllDirectories().AddPathTo(replaced, OpenPaths::Files::kAll);
    db_->error_handler_.SetBGError(Status(error, Status::Severity::kFatalError),
                                   BackgroundErrorReason::kFlush);
  }
  if (!s.ok()) {
    // A recovery by hand ends without ResumeImpl(), which would tell Close()
    // and stalled writers. They see its end, as the mutex is not released in
    // between.
    db_->bg_cv_.SignalAll();
    return db_->error_handler_.GetBGError();
  }
  return s;
}

void DBStrata::NoteDeletion(const std::string& file_name, const Status& s) {
  if (s.ok()) {
    return;
  }
  const size_t end = file_name.find_last_of('/');
  if (end == std::string::npos) {
    return;
  }
  const std::string name = file_name.substr(end + 1);
  InstrumentedMutexLock lock(&db_->mutex_);
  OpenPaths paths = AllDirectories();
  if (IsFileOfPath(name)) {
    paths.AddOther(file_name.substr(0, end), "a path of a dropped family");
  }
  const std::string directory = FaultyDirectory(
      paths,
      Status(s.code(), s.subcode(), Status::Severity::kNoError, file_name));
  PathProbeClient* const client =
      directory.empty() ? nullptr : PathProbeClient::Of(this);
  // The device is watched if no file can be made in the directory, either.
  if (client != nullptr && client->undeleted()->Add(directory, name)) {
    has_undeleted_files_ = true;
    FileManager()->space_recovery()->Start(client);
  }
}

void DBStrata::ContinueAfterPathFault() {
  JobContext job_context(db_->next_job_id_.fetch_add(1));
  std::vector<std::string> due;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    PathProbeClient* const client = PathProbeClient::Of(this);
    if (client == nullptr) {
      return;
    }
    // With a soft error, as after a lack of space elsewhere, jobs go on.
    if (!db_->error_handler_.IsBGWorkStopped()) {
      ScheduleAfterRecovery();
    }
    due = client->TakeDue();
    has_undeleted_files_ = !client->undeleted()->Directories().empty();
    // The search does not look into the directories of families that are gone,
    // and leaves out a file whose first purge has failed, but not ended yet.
    const OpenPaths paths = AllDirectories();
    std::erase_if(due, [&](const std::string& file_name) {
      uint64_t number = 0;
      FileType type = kTempFile;
      return ParseFileName(file_name.substr(file_name.find_last_of('/') + 1),
                           &number, &type) &&
             db_->ShouldPurge(number) &&
             !paths
                  .DirectoryIn(Status::IOError(file_name),
                               OpenPaths::Files::kAll)
                  .empty();
    });
    // It finds what failed jobs have left behind, too.
    db_->FindObsoleteFiles(&job_context, /*force=*/true);
  }
  if (job_context.HaveSomethingToDelete()) {
    db_->PurgeObsoleteFiles(job_context);
  }
  for (const std::string& file_name : due) {
    const size_t end = file_name.find_last_of('/');
    uint64_t number = 0;
    FileType type = kTempFile;
    if (ParseFileName(file_name.substr(end + 1), &number, &type)) {
      db_->DeleteObsoleteFileImpl(job_context.job_id, file_name,
                                  file_name.substr(0, end), type, number);
    }
  }
  job_context.Clean();
  TEST_SYNC_POINT("DBStrata::ContinueAfterPathFault:End");
}

}  // namespace ROCKSDB_NAMESPACE
