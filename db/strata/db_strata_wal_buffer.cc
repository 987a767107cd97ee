//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <cassert>
#include <cinttypes>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/strata/db_strata.h"
#include "db/transaction_log_impl.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "db/write_path/cut_checked_log_iterator.h"
#include "db/write_path/wal_buffer.h"
#include "db/write_path/wal_buffer_recovery.h"
#include "file/filename.h"
#include "file/writable_file_writer.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

IOOptions OpeningOptions() {
  IOOptions options;
  options.io_activity = Env::IOActivity::kDBOpen;
  return options;
}

}  // namespace

Status DBStrata::RecoverWalBuffer(const std::vector<std::string>& wal_dir_files,
                                  bool read_only) {
  // Best-efforts recovery does not look for WALs, but leaves them: and what the
  // buffer has is all that there is of the end of one.
  if (!db_->immutable_db_options_.best_efforts_recovery &&
      !WalBufferRecovery::IsAmong(wal_dir_files)) {
    return Status::OK();
  }
  const WalBufferRecovery recovery(
      db_->fs_.get(), db_->immutable_db_options_.GetWalDir(), OpeningOptions(),
      db_->immutable_db_options_.info_log.get());
  const WALRecoveryMode mode = db_->immutable_db_options_.wal_recovery_mode;
  Status s = read_only ? recovery.Find(mode, &wal_buffer_missing_)
                       : recovery.Recover(mode);
  if (s.IsCorruption()) {
    // There is nothing that could be used. All else must not be ignored: a DB
    // that is open has a buffer of its own in that place.
    db_->MaybeIgnoreError(&s);
  }
  return s;
}

uint64_t DBStrata::WalBufferBytes(uint64_t wal_number) const {
  return wal_buffer_missing_.wal_number == wal_number
             ? wal_buffer_missing_.bytes.size()
             : 0;
}

void DBStrata::AppendWalBuffer(uint64_t wal_number,
                               std::unique_ptr<FSSequentialFile>* file) {
  if (WalBufferBytes(wal_number) > 0) {
    *file = WalBufferRecovery::Append(std::move(*file), wal_buffer_missing_);
  }
}

Status DBStrata::CreateWalBuffer() {
  assert(wal_buffer_ == nullptr);
  takes_back_groups_ = db_->immutable_db_options_.allow_2pc ||
                       db_->immutable_db_options_.wal_mmap_buffer_size > 0;
  if (db_->immutable_db_options_.wal_mmap_buffer_size == 0) {
    // The WALs have been recovered.
    db_->versions_->strata()->SetWalBufferMark(false);
    return Status::OK();
  }
  const Status s = WalBuffer::Create(
      db_->immutable_db_options_.fs, db_->immutable_db_options_.GetWalDir(),
      db_->immutable_db_options_.wal_mmap_buffer_size, OpeningOptions(),
      db_->stats_, db_->immutable_db_options_.info_log.get(), &wal_buffer_);
  // The open makes a new MANIFEST, or MarkWalBuffer() adds the mark.
  db_->versions_->strata()->SetWalBufferMark(s.ok());
  return s;
}

Status DBStrata::RollManifest(Env::IOActivity activity) {
  db_->mutex_.AssertHeld();
  // Behind the edit of another thread in one group, this one does not get its
  // new MANIFEST. A MANIFEST that was begun since serves.
  const uint64_t manifest = db_->versions_->manifest_file_number();
  Status s;
  while (s.ok() && db_->versions_->manifest_file_number() == manifest) {
    VersionEdit edit;
    s = db_->versions_->LogAndApplyToDefaultColumnFamily(
        ReadOptions(activity), WriteOptions(activity), &edit, &db_->mutex_,
        db_->directories_.GetDbDir(),
        /*new_descriptor_log=*/true);
  }
  return s;
}

Status DBStrata::MarkWalBuffer() {
  db_->mutex_.AssertHeld();
  const bool has_buffer = wal_buffer_ != nullptr;
  if (db_->versions_->strata()->HasWalBufferMark() == has_buffer) {
    return Status::OK();
  }
  // The MANIFEST was not made by this open (reuse_manifest_on_open).
  Status s;
  if (has_buffer) {
    VersionEdit edit;
    edit.MarkWalBuffer();
    s = db_->versions_->LogAndApplyToDefaultColumnFamily(
        ReadOptions(Env::IOActivity::kDBOpen),
        WriteOptions(Env::IOActivity::kDBOpen), &edit, &db_->mutex_,
        db_->directories_.GetDbDir());
    if (s.ok()) {
      db_->versions_->strata()->NoteWalBufferMark();
    }
  } else {
    s = RollManifest(Env::IOActivity::kDBOpen);
  }
  return s;
}

void DBStrata::RemoveWalBuffer() {
  db_->mutex_.AssertHeld();
  if (!wal_buffer_->Remove() || !db_->opened_successfully_ ||
      !db_->versions_->strata()->HasWalBufferMark()) {
    return;
  }
  TEST_SYNC_POINT("DBStrata::RemoveWalBuffer:Removed");
  const uint64_t old_manifest = db_->versions_->manifest_file_number();
  db_->versions_->strata()->SetWalBufferMark(false);
  const Status s = RollManifest(Env::IOActivity::kUnknown);
  if (!s.ok()) {
    ROCKS_LOG_WARN(db_->immutable_db_options_.info_log,
                   "The MANIFEST keeps the mark of a WAL buffer, as the "
                   "creation of a new MANIFEST failed: %s. The WALs have all "
                   "writes. RocksDB refuses the DB until this library has "
                   "opened and closed it again",
                   s.ToString().c_str());
    return;
  }
  // CloseHelper() has searched for obsolete files already.
  if (db_->disable_delete_obsolete_files_ == 0) {
    db_->fs_
        ->DeleteFile(DescriptorFileName(db_->dbname_, old_manifest),
                     IOOptions(),
                     /*dbg=*/nullptr)
        .PermitUncheckedError();
  }
}

Status DBStrata::WriteOutWalBuffer(const WriteOptions& write_options) {
  if (wal_buffer_ == nullptr) {
    return wal_buffer_missing_.bytes.empty()
               ? Status::OK()
               : Status::NotSupported(
                     "The DB is read-only, and at its open the end of a WAL "
                     "was in " +
                     WalBufferFileName(db_->immutable_db_options_.GetWalDir()) +
                     " alone: what looks at files of WALs would miss that. If "
                     "a process has the DB open for writing, call its "
                     "FlushWAL() and open the DB read-only again; otherwise "
                     "open and close it once");
  }
  IOOptions io_options;
  IOStatus s = WritableFileWriter::PrepareIOOptions(write_options, io_options);
  if (s.ok()) {
    s = wal_buffer_->WriteOut(io_options);
  }
  if (!s.ok()) {
    // No background error yet: nothing is lost, and whoever writes to the WAL
    // next has this error again, or it is none any more.
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "WAL buffer write error %s", s.ToString().c_str());
  }
  return s;
}

bool DBStrata::CutWalBack(const WalPosition& position) {
  db_->wal_write_mutex_.AssertHeld();
  DBImpl::LogWriterNumber& wal = db_->logs_.back();
  if (wal.writer->file()->use_direct_io()) {
    return false;
  }
  // Before a later write can be published: an iterator that sees that one sees
  // this, too.
  num_wal_cuts_.fetch_add(1);
  wal.LimitPreSyncSize(position.offset);
  IOStatus s;
  if (wal_buffer_ == nullptr) {
    s = TruncateWal(position.offset);
  }
  // A buffer knows itself what it still has to cut. Without one, the writer
  // goes on where the file ends.
  if (s.ok()) {
    s = wal.writer->CutBack(WriteOptions(), position);
  }
  if (!s.ok()) {
    // A buffer tries it again before the WAL gets anything more, or a newer
    // WAL takes its place. Without a buffer, the next open finds a damaged end.
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "WAL #%" PRIu64 " was not cut back to %" PRIu64
                    " bytes after a failed write: %s",
                    wal.number, position.offset, s.ToString().c_str());
  }
  return s.ok() || wal_buffer_ != nullptr;
}

IOStatus DBStrata::TruncateWal(uint64_t size) {
  db_->wal_write_mutex_.AssertHeld();
  const DBImpl::LogWriterNumber& wal = db_->logs_.back();
  IOStatus s = wal.writer->file()->writable_file()->Truncate(size, IOOptions(),
                                                             /*dbg=*/nullptr);
  uint64_t size_of_file = 0;
  if (s.ok()) {
    s = GetWalFileSize(wal.number, &size_of_file);
  }
  if (s.ok() && size_of_file != size) {
    s = IOStatus::NotSupported("The file system has not truncated the file",
                               std::to_string(size_of_file) + " bytes");
  }
  return s;
}

IOStatus DBStrata::GetWalFileSize(uint64_t number, uint64_t* size) {
  return db_->immutable_db_options_.fs->GetFileSize(
      LogFileName(db_->immutable_db_options_.GetWalDir(), number), IOOptions(),
      size, /*dbg=*/nullptr);
}

void DBStrata::TakeBackGroup(const WalPosition& begin, bool is_recorded) {
  if (!takes_back_groups_) {
    return;
  }
  uint64_t wal_number = 0;
  bool must_not_go_on = false;
  {
    InstrumentedMutexLock lock(&db_->wal_write_mutex_);
    const DBImpl::LogWriterNumber& wal = db_->logs_.back();
    wal_number = wal.number;
    const uint64_t end = wal.writer->file()->GetFileSize();
    // With manual_wal_flush, the file may lack earlier groups, which a cut
    // would drop.
    const bool is_to_be_cut =
        wal_buffer_ != nullptr || (!is_recorded && !db_->manual_wal_flush_);
    const bool is_cut = is_to_be_cut && CutWalBack(begin);
    failed_group_stays_ = is_recorded && !is_cut;
    if (is_to_be_cut && !is_cut && !is_recorded) {
      // An open stops at a part of the group, and goes on with a next WAL that
      // begins with the same sequence number. Without paranoid_checks the next
      // group would be in the same WAL, behind the part. If the WAL has all
      // that was appended, that may be the whole group.
      uint64_t size = 0;
      const IOStatus s = GetWalFileSize(wal.number, &size);
      must_not_go_on =
          !s.ok() || size >= end || !db_->immutable_db_options_.paranoid_checks;
    }
  }
  if (must_not_go_on) {
    StopAtUncutGroup(wal_number, begin.offset);
  }
}

void DBStrata::StopAtUncutGroup(uint64_t wal_number, uint64_t offset) {
  StopAtFailedGroup(wal_number, offset,
                    ", and that cannot be cut off: close and open the DB");
}

void DBStrata::StopAtFailedGroup(uint64_t wal_number, uint64_t offset,
                                 const std::string& what) {
  InstrumentedMutexLock lock(&db_->mutex_);
  db_->error_handler_.SetBGError(
      Status::IOError(
          LogFileName(db_->immutable_db_options_.GetWalDir(), wal_number),
          "has a write at offset " + std::to_string(offset) +
              " that has failed" + what),
      BackgroundErrorReason::kMemTable);
}

void DBStrata::EndTrackedGroup(const IOStatus& s, WalExtent* group) {
  const DBImpl::LogWriterNumber& wal = db_->logs_.back();
  group->wal_number = wal.number;
  if (s.ok()) {
    group->end = wal.writer->file()->GetFileSize();
  } else if (wal_buffer_ != nullptr) {
    CutWalBack(group->begin);
  } else if (!db_->manual_wal_flush_) {
    group->stays = !CutWalBack(group->begin);
  }
}

void DBStrata::KeepBufferedState(WalExtent* group) {
  db_->wal_write_mutex_.AssertHeld();
  group->replaced_state =
      std::make_unique<WriteBatch>(std::move(db_->cached_recoverable_state_));
}

void DBStrata::TakeBackUnsyncedGroup(WalExtent* group) {
  if (wal_buffer_ == nullptr || group->is_synced) {
    return;
  }
  {
    InstrumentedMutexLock lock(&db_->wal_write_mutex_);
    const DBImpl::LogWriterNumber& wal = db_->logs_.back();
    if (wal.number == group->wal_number &&
        wal.writer->file()->GetFileSize() == group->end) {
      CutWalBack(group->begin);
      if (group->replaced_state != nullptr) {
        // Without a group behind this one, the state is still this one's.
        db_->cached_recoverable_state_ = std::move(*group->replaced_state);
        db_->cached_recoverable_state_empty_ =
            db_->cached_recoverable_state_.Count() == 0;
      }
      return;
    }
  }
  StopAtFailedGroup(group->wal_number, group->begin.offset,
                    ", and others behind it: close and open the DB");
}

Status DBStrata::FinishBufferCut() {
  return wal_buffer_->FinishCut(IOOptions());
}

Status DBStrata::GetUpdatesSince(
    SequenceNumber seq, const TransactionLogIterator::ReadOptions& options,
    std::unique_ptr<TransactionLogIterator>* iter) {
  const uint64_t num_cuts = num_wal_cuts_;
  Status s = db_->wal_manager_.GetUpdatesSince(seq, iter, options,
                                               db_->versions_.get());
  if (s.ok() && takes_back_groups_) {
    *iter = std::make_unique<CutCheckedLogIterator>(std::move(*iter),
                                                    &num_wal_cuts_, num_cuts);
    s = (*iter)->status();
  }
  return s;
}

Status DBStrata::CompleteWalSizes(VectorWalPtr* files) {
  if (wal_buffer_ == nullptr) {
    return Status::OK();
  }
  // If this fails, bytes of a WAL may be missing although a newer one is there.
  Status s = WriteOutWalBuffer(WriteOptions());
  for (size_t i = 0; s.ok() && i + 1 < files->size(); ++i) {
    std::unique_ptr<WalFile>& file = (*files)[i];
    if (file->Type() != kAliveLogFile) {
      continue;
    }
    uint64_t size = 0;
    s = db_->env_->GetFileSize(
        LogFileName(db_->immutable_db_options_.GetWalDir(), file->LogNumber()),
        &size);
    if (s.ok()) {
      file = std::make_unique<WalFileImpl>(file->LogNumber(), file->Type(),
                                           file->StartSequence(), size);
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
