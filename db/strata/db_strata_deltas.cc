//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What DBImpl does for column families that separate deltas.

#include <cinttypes>
#include <memory>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/delta/delta_flush.h"
#include "db/delta/delta_version.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "options/options_helper.h"
#include "options/strata/delta_options.h"

namespace ROCKSDB_NAMESPACE {

Status DBStrata::RecoverDeltaStores() {
  db_->mutex_.AssertHeld();
  Status s;
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    s = RecoverDeltaStore(cfd);
    if (!s.ok()) {
      break;
    }
  }
  return s;
}

Status DBStrata::RecoverDeltaStore(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  if (cfd->current()->storage_info()->delta() != nullptr) {
    Status s = ValidateOptionsOfDeltas(
        BuildDBOptions(db_->immutable_db_options_, db_->mutable_db_options_),
        cfd->GetLatestCFOptions());
    if (s.ok() && db_->seq_per_batch_) {
      s = DeltasOfTransactions(cfd->GetName());
    }
    if (!s.ok()) {
      return s;
    }
    if (cfd->delta_store() == nullptr) {
      cfd->strata()->CreateDeltaStore();
    }
    if (!cfd->ioptions().enable_delta_separation) {
      const DeltaVersion::Totals totals =
          cfd->current()->storage_info()->delta()->GetTotals();
      ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                     "[%s] Drain of delta files, as delta separation is off: "
                     "%" PRIu64 " files, %" PRIu64 " bytes",
                     cfd->GetName().c_str(), totals.num_files, totals.bytes);
    }
  }
  if (cfd->delta_store() != nullptr && !has_delta_stores_) {
    has_delta_stores_ = true;
    AddThreads();
  }
  return Status::OK();
}

void DBStrata::CloseDeltaFlush(const FlushJob& job) {
  db_->mutex_.AssertHeld();
  if (job.delta_flush() != nullptr) {
    job.delta_flush()->Close();
    db_->bg_cv_.SignalAll();
  }
}

void DBStrata::AbandonDeltaFlushes(
    const std::vector<std::unique_ptr<FlushJob>>& jobs) {
  for (const auto& job : jobs) {
    if (job->delta_flush() != nullptr) {
      job->delta_flush()->AbandonForRepetition(&db_->mutex_);
    }
  }
}

DeltaFlush* DBStrata::BeginRecoveryDeltas(ColumnFamilyData* cfd,
                                          const FileDescriptor& sst_file,
                                          SequenceNumber first_seq) {
  db_->mutex_.AssertHeld();
  // No edit is applied before the last of these flushes: the Version stays.
  auto flush =
      DeltaFlush::BeginRecovery(cfd, *cfd->current(), sst_file, first_seq,
                                /*any_order=*/db_->seq_per_batch_,
                                db_->versions_.get(), recovery_delta_flushes_);
  if (flush == nullptr) {
    return nullptr;
  }
  recovery_delta_flushes_.push_back(std::move(flush));
  return recovery_delta_flushes_.back().get();
}

Status DBStrata::AddRecoveryDeltas(ColumnFamilyData* cfd,
                                   const DeltaFlush& flush,
                                   const FileDescriptor& sst_file,
                                   VersionEdit* edit,
                                   InternalStats::CompactionStats* stats) {
  db_->mutex_.AssertHeld();
  if (!flush.HasFiles()) {
    return Status::OK();
  }
  // Also if there is no SST file, for which upstream does it.
  Status s =
      db_->GetDataDir(cfd, sst_file.GetPathId())
          ->FsyncWithDirOptions(
              IOOptions(), nullptr,
              DirFsyncOptions(DirFsyncOptions::FsyncReason::kNewFileSynced));
  if (s.ok()) {
    flush.AddTo(edit);
    stats->bytes_written += flush.bytes_written();
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
