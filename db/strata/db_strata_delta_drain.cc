//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The drain of a column family that has delta files and does not separate
// deltas any more: collections make values of all operands, until no delta file
// is left. BackgroundDeltaCollection runs the collections.

#include <cassert>
#include <cinttypes>
#include <cstdint>

#include "db/column_family.h"
#include "db/delta/delta_fold_wishes.h"
#include "db/delta/delta_folder.h"
#include "db/delta/delta_gc_job.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_read.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "options/strata/merged_value_options.h"

namespace ROCKSDB_NAMESPACE {

bool DBStrata::DrainsDeltas(const ColumnFamilyData& cfd) {
  return cfd.delta_store() != nullptr &&
         !cfd.ioptions().enable_delta_separation;
}

void DBStrata::FinishDrainJob(ColumnFamilyData* cfd,
                              SequenceNumber earliest_snapshot,
                              const DeltaGcJob& job,
                              const DeltaValueFolder* folder) {
  db_->mutex_.AssertHeld();
  DeltaJobState& jobs = cfd->delta_store()->jobs();
  const auto& now = cfd->current()->storage_info()->delta();
  jobs.DropLeftovers([&](uint64_t number) {
    return now == nullptr || FindSortedDeltaFile(*now, number) == nullptr;
  });
  if (folder != nullptr) {
    const DeltaValueFolder::Stats& stats = folder->stats();
    if (!stats.full && !stats.read_failed) {
      DeltaJobState::Leftover leftover;
      leftover.is_for_snapshots = stats.keys_left_for_snapshots > 0;
      // As DeltaPicker compares it.
      leftover.earliest_snapshot = earliest_snapshot;
      leftover.has_failed = stats.merges_failed > 0;
      for (const DeltaFileDescription& file : job.files()) {
        if (file.kind == DeltaFileDescription::Kind::kOperands) {
          jobs.AddLeftover(file.number, leftover);
        }
      }
    }
  }
  drains_wait_for_readers_ |= DrainWaitsForReaders(cfd);
  if (now == nullptr) {
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "[%s] Drain of delta files: there are none any more",
                   cfd->GetName().c_str());
  } else {
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "[%s] Drain of delta files: %" PRIu64 " files, %" PRIu64
                   " bytes are left%s",
                   cfd->GetName().c_str(), now->GetTotals().num_files,
                   now->GetTotals().bytes,
                   jobs.HasWaiting(EarliestReader(*cfd))
                       ? "; some wait for snapshots to be released, or cannot "
                         "be merged"
                       : "");
  }
}

Status DBStrata::RollManifestWithoutDeltas(Env::IOActivity activity,
                                           JobContext* job_context) {
  db_->mutex_.AssertHeld();
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (!cfd->IsDropped() &&
        cfd->current()->storage_info()->delta() != nullptr) {
      return Status::OK();
    }
  }
  return RollManifestAndSchedule(activity, job_context);
}

bool DBStrata::DrainWaitsForReaders(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  DeltaJobState& jobs = cfd->delta_store()->jobs();
  for (;;) {
    const SequenceNumber earliest = EarliestReader(*cfd);
    if (jobs.HasReleased(earliest)) {
      jobs.SetCollectionDue();
      SetDeltaJobsDue();
    }
    if (!jobs.HasWaitingForSnapshots(earliest)) {
      return false;
    }
    // No snapshot is released while the mutex is held. So if the earliest
    // reader is none that notifies, and it is still there, it is a snapshot.
    if (ReadBoundsOf(*cfd).NotifyWhenNoneBelow(earliest + 1) !=
            FamilyImplicitSnapshots::Blocker::kNone ||
        EarliestReader(*cfd) == earliest) {
      return true;
    }
  }
}

void DBStrata::ResumeDrains() {
  db_->mutex_.AssertHeld();
  if (drains_wait_for_readers_) {
    drains_wait_for_readers_ = false;
    for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
      if (!DrainsDeltas(*cfd) ||
          cfd->current()->storage_info()->delta() == nullptr) {
        continue;
      }
      drains_wait_for_readers_ |= DrainWaitsForReaders(cfd);
    }
  }
  ScheduleDeltaJobs();
}

Status DBStrata::DrainDeltas(const CompactRangeOptions& options,
                             ColumnFamilyData* cfd) {
  const bool is_filtered = MayFilterChangeValues(cfd->ioptions());
  if (!DrainsDeltas(*cfd) && !is_filtered) {
    return Status::OK();
  }
  bool is_flush_needed = false;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    if (DrainsDeltas(*cfd) && !HasDeltas(cfd) &&
        cfd->delta_store()->OldestRunningFlush() == UINT64_MAX) {
      // The next flush leaves all operands in its SST file.
      return Status::OK();
    }
    is_flush_needed = HasUnflushedEntries(cfd);
  }
  if (is_flush_needed) {
    Status s = FlushForDrain(options, cfd);
    if (!s.ok()) {
      return s;
    }
  }
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    const Status s = CheckNotClosing();
    if (!s.ok()) {
      return s;
    }
    if (!HasDeltas(cfd)) {
      // A wish now would fold operands that come later.
      return Status::OK();
    }
    if (is_filtered) {
      DeltaFoldWishes all;
      all.AddAll();
      cfd->delta_store()->AddFoldWishes(
          all, db_->versions_->current_next_file_number());
    }
  }
  return CompactDeltas(options, cfd);
}

bool DBStrata::HasDeltas(ColumnFamilyData* cfd) {
  return cfd->current()->storage_info()->delta() != nullptr;
}

bool DBStrata::HasUnflushedEntries(ColumnFamilyData* cfd) const {
  db_->mutex_.AssertHeld();
  // Only write-prepared transactions have entries elsewhere (RocksDB's cached
  // recoverable state), and their DBs refuse delta stores.
  assert(!db_->seq_per_batch_);
  return !cfd->mem()->IsEmpty() || cfd->imm()->NumNotFlushed() > 0;
}

Status DBStrata::FlushForDrain(const CompactRangeOptions& options,
                               ColumnFamilyData* cfd) {
  FlushOptions flush_options;
  flush_options.allow_write_stall = options.allow_write_stall;
  return db_->immutable_db_options_.atomic_flush
             ? db_->AtomicFlushMemTables(flush_options,
                                         FlushReason::kManualCompaction)
             : db_->FlushMemTable(cfd, flush_options,
                                  FlushReason::kManualCompaction);
}

}  // namespace ROCKSDB_NAMESPACE
