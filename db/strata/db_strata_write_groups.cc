//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Write groups that one thread writes after its own: what WriteGroupCombiner
// needs of DBImpl.

#include "db/column_family.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "db/write_batch_internal.h"
#include "db/write_path/write_group_combiner.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

bool DBStrata::MayHaveMoreToDoThanWrite() {
  // The conditions that PreprocessWrite() looks for. A single column family has
  // its WAL switched with its memtable, whatever the size. The number of column
  // families changes only in the write thread, where the caller is.
  return db_->error_handler_.IsDBStopped() || !db_->flush_scheduler_.Empty() ||
         !db_->trim_history_scheduler_.Empty() ||
         db_->write_controller_.IsStopped() ||
         db_->write_controller_.NeedsDelay() ||
         (db_->wals_total_size_.LoadRelaxed() > db_->GetMaxTotalWalSize() &&
          db_->versions_->GetColumnFamilySet()->NumberOfColumnFamilies() > 1) ||
         (db_->write_buffer_manager_ != nullptr &&
          (db_->write_buffer_manager_->ShouldStall() ||
           db_->write_buffer_manager_->ShouldFlush()));
}

void DBStrata::OfferWriteLeadership(WriteThread::Writer* w, const Status& s,
                                    const DBImpl::WriteContext& context) {
  // A no_slowdown writer must not block, so it never leads for others. A
  // context with something to delete has to be freed by the end of its own
  // write.
  if (s.ok() && w->status.ok() && !w->no_slowdown &&
      !context.superversion_context.HaveSomethingToDelete() &&
      context.memtables_to_free_.empty() && !MayHaveMoreToDoThanWrite()) {
    w->leadership.Offer();
  }
}

Status DBStrata::PreprocessLedWrite(WriteThread::Writer* w,
                                    const WriteOptions& write_options,
                                    DBImpl::WalContext* wal_context,
                                    DBImpl::WriteContext* context,
                                    bool* handed_back) {
  Status s;
  if (MayHaveMoreToDoThanWrite()) {
    *handed_back = true;
  } else {
    TEST_SYNC_POINT_CALLBACK("DBStrata::PreprocessLedWrite:BeforeRest", w);
    // It may come to that all the same, by what other threads do.
    WriteOptions without_waiting = write_options;
    without_waiting.no_slowdown = true;
    s = db_->PreprocessWrite(without_waiting, wal_context, context);
    *handed_back = (s.IsIncomplete() && !write_options.no_slowdown) ||
                   context->superversion_context.HaveSomethingToDelete() ||
                   !context->memtables_to_free_.empty();
  }
  if (*handed_back) {
    s.PermitUncheckedError();
    db_->write_thread_.HandBackLeadership(w);
  }
  return s;
}

Status DBStrata::InsertLedGroup(WriteThread::WriteGroup* group) {
  Status s;
  for (WriteThread::Writer* const writer : *group) {
    if (!writer->ShouldWriteToMemtable()) {
      continue;
    }
    writer->status = WriteBatchInternal::InsertInto(
        writer, writer->sequence, db_->column_family_memtables_.get(),
        &db_->flush_scheduler_, &db_->trim_history_scheduler_,
        writer->leadership.ignores_missing_column_families(),
        /*log_number=*/0, db_, /*concurrent_memtable_writes=*/false,
        db_->seq_per_batch_, writer->batch_cnt, db_->batch_per_txn_);
    s.UpdateIfOk(writer->status);
  }
  // For all of the group.
  group->status = s;
  return s;
}

void DBStrata::LeadKeptWriteGroups(WriteThread::Writer* w) {
  const uint32_t kept = db_->write_thread_.LeadKeptGroups(w);
  if (kept > 0) {
    RecordTick(db_->stats_, WRITE_GROUPS_KEPT, kept);
  }
}

}  // namespace ROCKSDB_NAMESPACE
