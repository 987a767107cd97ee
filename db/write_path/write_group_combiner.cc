//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The functions of WriteThread for leaders that write more than one group.

#include "db/write_path/write_group_combiner.h"

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
      // Writer::FinalStatus() returns callback_status.
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
  // A write that needs fsync, a rate limiter, validation by itself, or a batch
  // that becomes a memtable is not led by another thread.
  return !w.sync && w.rate_limiter_priority == Env::IO_TOTAL &&
         !w.ingest_wbwi &&
         (w.callback == nullptr || w.callback->AllowWriteBatching());
}

Status ValidateWriteLeadership(const DBOptions& db_options) {
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
