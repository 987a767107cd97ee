//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What WriteGroupCombiner needs of WriteThread and DBImpl.

#include "db/write_path/write_group_combiner.h"

#include <string>

#include "db/db_impl/db_impl.h"
#include "db/write_batch_internal.h"
#include "db/write_callback.h"
#include "db/write_thread.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/options.h"
#include "rocksdb/write_buffer_manager.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

uint32_t WriteThread::LeadKeptGroups(Writer* leader) {
  uint32_t kept = 0;
  Writer* next = leader->leadership.TakeNext();
  while (next != nullptr) {
    TEST_SYNC_POINT_CALLBACK("WriteThread::LeadKeptGroups:Lead", next);
    bool handed_back = false;
    const Status s = next->leadership.Lead(&handed_back);
    if (handed_back) {
      s.PermitUncheckedError();
      break;
    }
    if (next->callback_status.ok()) {
      next->status = s;
    } else {
      // Writer::FinalStatus() has it.
      s.PermitUncheckedError();
    }
    ++kept;
    next->leadership.SetWasLed();
    // The writer may be gone once it is complete.
    Writer* const after = next->leadership.TakeNext();
    SetState(next, STATE_COMPLETED);
    next = after;
  }
  return kept;
}

void WriteThread::HandBackLeadership(Writer* w) {
  w->leadership.OnHandBack();
  SetState(w, STATE_GROUP_LEADER);
}

bool WriteThread::MayBeLed(const Writer& w) {
  // No fsync, rate limiter, validation, or batch that becomes a memtable.
  return !w.sync && w.rate_limiter_priority == Env::IO_TOTAL &&
         !w.ingest_wbwi &&
         (w.callback == nullptr || w.callback->AllowWriteBatching());
}

bool DBImpl::MayHaveMoreToDoThanWrite() {
  // What PreprocessWrite() looks for.
  return error_handler_.IsDBStopped() || !flush_scheduler_.Empty() ||
         !trim_history_scheduler_.Empty() || write_controller_.IsStopped() ||
         write_controller_.NeedsDelay() ||
         wals_total_size_.LoadRelaxed() > GetMaxTotalWalSize() ||
         (write_buffer_manager_ != nullptr &&
          (write_buffer_manager_->ShouldStall() ||
           write_buffer_manager_->ShouldFlush()));
}

void DBImpl::OfferWriteLeadership(WriteThread::Writer* w, const Status& s,
                                  const WriteContext& context) {
  // Who must not wait does not do so for others, either. What is in the context
  // is freed, and listeners are told, when the write ends.
  if (s.ok() && w->status.ok() && !w->no_slowdown &&
      !context.superversion_context.HaveSomethingToDelete() &&
      context.memtables_to_free_.empty() && !MayHaveMoreToDoThanWrite()) {
    w->leadership.Offer();
  }
}

Status DBImpl::PreprocessLedWrite(WriteThread::Writer* w,
                                  const WriteOptions& write_options,
                                  WalContext* wal_context,
                                  WriteContext* context, bool* handed_back) {
  Status s;
  if (MayHaveMoreToDoThanWrite()) {
    *handed_back = true;
  } else {
    TEST_SYNC_POINT_CALLBACK("DBImpl::PreprocessLedWrite:BeforeRest", w);
    // It may come to that all the same, by what other threads do.
    WriteOptions without_waiting = write_options;
    without_waiting.no_slowdown = true;
    s = PreprocessWrite(without_waiting, wal_context, context);
    *handed_back = (s.IsIncomplete() && !write_options.no_slowdown) ||
                   context->superversion_context.HaveSomethingToDelete() ||
                   !context->memtables_to_free_.empty();
  }
  if (*handed_back) {
    s.PermitUncheckedError();
    write_thread_.HandBackLeadership(w);
  }
  return s;
}

Status DBImpl::InsertLedGroup(WriteThread::WriteGroup* group) {
  Status s;
  for (WriteThread::Writer* const writer : *group) {
    if (!writer->ShouldWriteToMemtable()) {
      continue;
    }
    writer->status = WriteBatchInternal::InsertInto(
        writer, writer->sequence, column_family_memtables_.get(),
        &flush_scheduler_, &trim_history_scheduler_,
        writer->leadership.ignores_missing_column_families(),
        /*log_number=*/0, this, /*concurrent_memtable_writes=*/false,
        seq_per_batch_, writer->batch_cnt, batch_per_txn_);
    s.UpdateIfOk(writer->status);
  }
  // For all of the group.
  group->status = s;
  return s;
}

void DBImpl::LeadKeptWriteGroups(WriteThread::Writer* w) {
  const uint32_t kept = write_thread_.LeadKeptGroups(w);
  if (kept > 0) {
    RecordTick(stats_, WRITE_GROUPS_KEPT, kept);
  }
}

Status ValidateWriteLeadership(const DBOptions& db_options) {
  if (db_options.max_write_groups_per_leader == 0) {
    return Status::InvalidArgument(
        "max_write_groups_per_leader must be at least 1");
  }
  if (db_options.max_write_groups_per_leader > kMaxWriteGroupsPerLeader) {
    return Status::InvalidArgument(
        "max_write_groups_per_leader must be at most " +
        std::to_string(kMaxWriteGroupsPerLeader));
  }
  if (db_options.max_write_groups_per_leader > 1 &&
      (db_options.enable_pipelined_write || db_options.unordered_write)) {
    return Status::InvalidArgument(
        "max_write_groups_per_leader above 1 is incompatible with "
        "enable_pipelined_write and unordered_write, which let others write to "
        "memtables after the leader of a group has left it: set both to false, "
        "or max_write_groups_per_leader to 1");
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
