//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What a DB with several paths does when a device is full: it recovers by
// itself when the devices have room again, and compactions look for room where
// their outputs go.

#include <algorithm>
#include <cassert>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/compaction/compaction.h"
#include "db/path_layout/directory_names.h"
#include "db/path_layout/job_space.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "file/strata/space_needs.h"
#include "file/strata/space_recovery.h"
#include "file/strata/space_reservations.h"
#include "logging/log_buffer.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// For MANIFEST, OPTIONS file and CURRENT, beside the bytes that the MANIFEST
// has: a recovery may begin another one.
constexpr uint64_t kMetadataBytes = uint64_t{1} << 20;

bool IsLackOfSpace(const Status& error) {
  return error.subcode() == Status::SubCode::kNoSpace ||
         error.subcode() == Status::SubCode::kSpaceLimit;
}

// Returns what there is no room for, without the words of the status, which say
// the same.
std::string ShortageText(const Status& room) {
  return IsLackOfSpace(room) ? room.getState() : room.ToString();
}

}  // namespace

// Tries the recovery of the DB.
class DBStrata::SpaceRecoveryClient : public SpaceRecovery::Client {
 public:
  explicit SpaceRecoveryClient(DBStrata* strata)
      : strata_(strata), db_(strata->db_) {}

  SpaceRecovery::Outcome Try() override {
    SpaceNeeds needs;
    uint64_t unflushed = 0;
    Status error;
    {
      InstrumentedMutexLock lock(&db_->mutex_);
      if (db_->shutdown_initiated_) {
        // CancelSpaceRecovery() must find the client, so that Close() knows of
        // the recovery that has not ended.
        return SpaceRecovery::Outcome::kAgain;
      }
      error = db_->error_handler_.GetBGError();
      if (error.ok()) {
        return SpaceRecovery::Outcome::kDone;
      }
      unflushed = strata_->AddRecoveryNeeds(error, &needs);
    }
    // A fatal error ends the recovery, whether there is room or not.
    if (error.severity() < Status::Severity::kFatalError) {
      if (const Status room = CheckRoom(error, unflushed, needs); !room.ok()) {
        ROCKS_LOG_WARN(db_->immutable_db_options_.info_log,
                       "The recovery from \"%s\" waits for space: %s",
                       error.ToString().c_str(), ShortageText(room).c_str());
        return SpaceRecovery::Outcome::kAgain;
      }
    }
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "All paths have room for the recovery from \"%s\"",
                   error.ToString().c_str());
    TEST_SYNC_POINT("DBStrata::SpaceRecoveryClient::Try:Recover");
    const Status s = db_->error_handler_.RecoverFromBGError();
    return s.ok() || s.IsShutdownInProgress() ||
                   s.severity() >= Status::Severity::kFatalError
               ? SpaceRecovery::Outcome::kDone
               : SpaceRecovery::Outcome::kAgain;
  }

 private:
  // unflushed: the bytes that the recovery flushes.
  Status CheckRoom(const Status& error, uint64_t unflushed,
                   const SpaceNeeds& needs) {
    SstFileManagerImpl* const manager = strata_->FileManager();
    const uint64_t limit = manager->GetMaxAllowedSpace();
    const uint64_t size = manager->GetTotalSize();
    // The recovery from a soft error flushes nothing.
    if (error.severity() == Status::Severity::kHardError && limit > 0 &&
        size + unflushed >= limit) {
      return Status::SpaceLimit(
          "The files of all paths have " + std::to_string(size) +
          " bytes, memtables have " + std::to_string(unflushed) +
          ", and the SstFileManager allows " + std::to_string(limit));
    }
    return needs.Check(db_->immutable_db_options_.fs.get());
  }

  DBStrata* const strata_;
  DBImpl* const db_;
};

void DBStrata::EnableSpaceRecovery(const std::vector<std::string>& paths) {
  if (db_->own_sfm_) {
    return;
  }
  SpaceNeeds needs;
  for (const std::string& path : paths) {
    needs.Require(path);
  }
  needs.Require(db_->immutable_db_options_.GetWalDir());
  if (needs.IsSupported(db_->immutable_db_options_.fs.get())) {
    has_several_paths_ = true;
    db_->error_handler_.EnableSpaceRecovery();
  }
}

bool DBStrata::CanRecoverFrom(const Status& error) {
  db_->mutex_.AssertHeld();
  if (!IsLackOfSpace(error)) {
    return false;
  }
  // The column families, and with them the paths, may be others than at the
  // open.
  SpaceNeeds needs;
  AddRecoveryNeeds(error, &needs);
  return needs.IsSupported(db_->immutable_db_options_.fs.get());
}

bool DBStrata::HasFamilyOnOtherPath() {
  db_->mutex_.AssertHeld();
  const std::string first = CleanDirectoryName(
      /*fs=*/nullptr, db_->immutable_db_options_.db_paths[0].path);
  for (const ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    for (const DbPath& path : cfd->ioptions().cf_paths) {
      if (!cfd->IsDropped() &&
          CleanDirectoryName(/*fs=*/nullptr, path.path) != first) {
        return true;
      }
    }
  }
  return false;
}

SstFileManagerImpl* DBStrata::FileManager() const {
  return static_cast<SstFileManagerImpl*>(
      db_->immutable_db_options_.sst_file_manager.get());
}

bool DBStrata::FindSeveralPaths() {
  db_->mutex_.AssertHeld();
  SstFileManagerImpl* const manager = FileManager();
  assert(manager != nullptr);
  // If the SstFileManager has begun with the DB as one with a single path, it
  // goes on with it until the DB has recovered.
  has_several_paths_ =
      has_several_paths_ ||
      (!manager->IsWaiting(&db_->error_handler_) && HasFamilyOnOtherPath());
  return has_several_paths_;
}

bool DBStrata::IsTooLateToRecoverFrom(const Status& error) {
  db_->mutex_.AssertHeld();
  return db_->shutdown_initiated_ && IsLackOfSpace(error) && FindSeveralPaths();
}

bool DBStrata::StartSpaceRecovery(const Status& error) {
  db_->mutex_.AssertHeld();
  SstFileManagerImpl* const manager = FileManager();
  if (!FindSeveralPaths()) {
    return false;
  }
  if (error.severity() == Status::Severity::kSoftError) {
    // Those of the compaction that has failed are among them.
    failed_outputs_.clear();
    for (const ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
      failed_outputs_[cfd->GetID()] = manager->space_reservations()->Of(cfd);
    }
  }
  if (space_recovery_client_ == nullptr) {
    space_recovery_client_ = std::make_unique<SpaceRecoveryClient>(this);
  }
  manager->space_recovery()->Start(space_recovery_client_.get());
  return true;
}

bool DBStrata::CancelSpaceRecovery() {
  SpaceRecovery::Client* client = nullptr;
  SpaceRecovery::Client* probe = nullptr;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    client = space_recovery_client_.get();
    probe = path_probe_client_.get();
  }
  SstFileManagerImpl* const manager = FileManager();
  if (probe != nullptr) {
    manager->space_recovery()->Cancel(probe);
    manager->path_faults()->RemoveAll(this);
  }
  return client != nullptr && manager->space_recovery()->Cancel(client);
}

uint64_t DBStrata::AddRecoveryNeeds(const Status& error, SpaceNeeds* needs) {
  db_->mutex_.AssertHeld();
  const uint64_t unflushed = AddFlushNeeds(/*are_required=*/true, needs);
  if (error.severity() == Status::Severity::kSoftError) {
    AddFailedOutputs(needs);
  }
  return unflushed;
}

void DBStrata::AddFailedOutputs(SpaceNeeds* needs) {
  db_->mutex_.AssertHeld();
  for (const auto& [family_id, outputs] : failed_outputs_) {
    ColumnFamilyData* const cfd =
        db_->versions_->GetColumnFamilySet()->GetColumnFamily(family_id);
    if (cfd == nullptr || cfd->IsDropped()) {
      continue;
    }
    // If the layout has changed, the next compaction writes elsewhere.
    const std::set<std::string> used = LayoutDirectories(
        cfd->ioptions().cf_paths, cfd->GetLatestMutableCFOptions(),
        cfd->NumberLevels());
    for (const auto& [directory, bytes] : outputs) {
      if (used.count(directory) > 0) {
        needs->Write(directory, bytes);
        needs->Require(directory);
      }
    }
  }
}

void DBStrata::ForgetFailedOutputs() {
  db_->mutex_.AssertHeld();
  const Status error = db_->error_handler_.GetBGError();
  if (db_->shutdown_initiated_ || !IsLackOfSpace(error) ||
      error.severity() != Status::Severity::kSoftError ||
      !db_->error_handler_.IsRecoveryInProgress() ||
      space_recovery_client_ == nullptr) {
    return;
  }
  failed_outputs_.clear();
  FileManager()->space_recovery()->Start(space_recovery_client_.get());
}

uint64_t DBStrata::AddFlushNeeds(bool are_required, SpaceNeeds* needs) {
  db_->mutex_.AssertHeld();
  FlushSpace flushes;
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->IsDropped() || !cfd->initialized()) {
      continue;
    }
    const uint64_t unflushed =
        (cfd->mem()->IsEmpty() ? 0 : cfd->mem()->ApproximateMemoryUsageFast()) +
        cfd->imm()->ApproximateUnflushedMemTablesMemoryUsage();
    flushes.Add(cfd->ioptions().cf_paths, cfd->GetLatestMutableCFOptions(),
                unflushed, cfd->blob_partition_manager() != nullptr);
  }
  flushes.AddTo(are_required, needs);

  const ImmutableDBOptions& options = db_->immutable_db_options_;
  needs->Write(db_->dbname_,
               db_->versions_->manifest_file_size() + kMetadataBytes);
  // A WAL that could not be written has bytes in memory, which go to the file
  // when the recovery begins another WAL. If that fails, the error is fatal.
  const std::string& wal_dir = options.GetWalDir();
  needs->Write(
      wal_dir,
      uint64_t{db_->mutable_db_options_.writable_file_max_buffer_size} +
          options.wal_mmap_buffer_size);
  // Besides, there is to be room for the WAL of a memtable. The older WALs are
  // deleted after the recovery, unless others need them, so theirs counts.
  const bool are_deleted = !db_->allow_2pc() && options.WAL_ttl_seconds == 0 &&
                           options.WAL_size_limit_MB == 0;
  const uint64_t deleted =
      are_deleted ? db_->wals_total_size_.LoadRelaxed() : 0;
  needs->Reserve(wal_dir, flushes.write_buffer() -
                              std::min(flushes.write_buffer(), deleted));
  if (are_required) {
    needs->Require(db_->dbname_);
    needs->Require(wal_dir);
  }
  return flushes.unflushed();
}

bool DBStrata::ReserveSpace(Compaction* compaction, const Status& bg_error,
                            LogBuffer* log_buffer) {
  db_->mutex_.AssertHeld();
  SpaceReservations* const reservations = FileManager()->space_reservations();
  const SpaceReservations::Bytes outputs = CompactionOutputBytes(*compaction);
  TEST_SYNC_POINT_CALLBACK("DBStrata::ReserveSpace:Outputs",
                           const_cast<SpaceReservations::Bytes*>(&outputs));
  // As in RocksDB, only a DB that has found a full device looks for room.
  if (bg_error.IsNoSpace()) {
    if (const Status room = CheckOutputRoom(outputs); !room.ok()) {
      ROCKS_LOG_BUFFER_MAX_SZ(
          log_buffer, /*max_log_size=*/2048,
          "[%s] A compaction to level %d does not begin: %s",
          compaction->column_family_data()->GetName().c_str(),
          compaction->output_level(), ShortageText(room).c_str());
      return false;
    }
  }
  compaction->SetSpaceReservation(
      reservations->Reserve(compaction->column_family_data(), outputs));
  return true;
}

Status DBStrata::CheckOutputRoom(const SpaceReservations::Bytes& outputs) {
  db_->mutex_.AssertHeld();
  SstFileManagerImpl* const manager = FileManager();
  SpaceNeeds needs;
  for (const auto& [directory, bytes] : manager->space_reservations()->All()) {
    needs.Write(directory, bytes);
  }
  const uint64_t buffer = manager->GetCompactionBufferSize();
  for (const auto& [directory, bytes] : outputs) {
    needs.Write(directory, bytes);
    needs.Reserve(directory, buffer);
    needs.Require(directory);
  }
  if (buffer == 0) {
    // Flushes and the WAL must find room after the compaction.
    AddFlushNeeds(/*are_required=*/false, &needs);
  }
  return needs.Check(db_->immutable_db_options_.fs.get());
}

}  // namespace ROCKSDB_NAMESPACE
