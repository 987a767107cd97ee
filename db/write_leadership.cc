//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What WriteLeadership needs of WriteThread and DBImpl.

#include "db/write_leadership.h"

#include "db/db_impl/db_impl.h"
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
    const Status s = next->leadership.Lead();
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

bool WriteThread::MayBeLed(const Writer& w) {
  // No fsync, rate limiter, validation, or batch that becomes a memtable.
  return !w.sync && w.rate_limiter_priority == Env::IO_TOTAL &&
         !w.ingest_wbwi &&
         (w.callback == nullptr || w.callback->AllowWriteBatching());
}

void DBImpl::OfferWriteLeadership(WriteThread::Writer* w, const Status& s) {
  // Who is likely to wait for room, has a memtable to switch, or an error to
  // deal with, does that in its own thread. It may come to that all the same,
  // for which a writer that must not wait does not lead others.
  if (s.ok() && w->status.ok() && !w->no_slowdown && flush_scheduler_.Empty() &&
      trim_history_scheduler_.Empty() && !write_controller_.IsStopped() &&
      !write_controller_.NeedsDelay() &&
      !(write_buffer_manager_ != nullptr &&
        (write_buffer_manager_->ShouldStall() ||
         write_buffer_manager_->ShouldFlush()))) {
    w->leadership.Offer();
  }
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
  if (db_options.max_write_groups_per_leader > 1 &&
      (db_options.enable_pipelined_write || db_options.unordered_write)) {
    return Status::InvalidArgument(
        "max_write_groups_per_leader above 1 is incompatible with "
        "enable_pipelined_write and unordered_write, which let others write to "
        "memtables after the leader of a group has left it");
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
