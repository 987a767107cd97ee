//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The order of flushes: what the FlushOrderGate needs of DBImpl, which requests
// a flush serves, and what its end lets begin.

#include <cassert>
#include <memory>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/flush_job.h"
#include "db/strata/db_strata.h"
#include "db/strata/flush_order_gate.h"

namespace ROCKSDB_NAMESPACE {

class DBStrata::FlushOrderHost : public FlushOrderGate::Host {
 public:
  explicit FlushOrderHost(DBImpl* db) : db_(db) {}

  bool NeedsOrder(ColumnFamilyData* cfd) const override {
    return cfd->address_map_store() != nullptr || cfd->delta_store() != nullptr;
  }
  bool WouldFlush(ColumnFamilyData* cfd) const override {
    return !cfd->IsDropped() && cfd->imm()->IsFlushPending();
  }
  bool IsBackgroundWorkStopped() const override {
    return db_->error_handler_.IsBGWorkStopped();
  }
  void Enqueue(const FlushOrderGate::Request& request) override {
    // Another flush, which did not take all of them, may have cleared this.
    for (const auto& [cfd, max_memtable_id] : request.families) {
      if (cfd->imm()->NumNotFlushed() > 0) {
        cfd->imm()->FlushRequested();
      }
    }
    db_->EnqueuePendingFlush(ToUpstream(request));
  }
  void EnqueueFront(FlushOrderGate::Request&& request) override {
    ++db_->unscheduled_flushes_;
    db_->flush_queue_.push_front(ToUpstream(std::move(request)));
  }
  void Unref(ColumnFamilyData* cfd) override { cfd->UnrefAndTryDelete(); }

 private:
  static DBImpl::FlushRequest ToUpstream(FlushOrderGate::Request request) {
    DBImpl::FlushRequest result;
    result.flush_reason = request.flush_reason;
    result.atomic_flush = request.atomic_flush;
    result.cfd_to_max_mem_id_to_persist = std::move(request.families);
    return result;
  }

  DBImpl* const db_;
};

std::unique_ptr<FlushOrderGate::Host> DBStrata::NewFlushOrderHost() {
  return std::make_unique<FlushOrderHost>(db_);
}

void DBStrata::PickMemTables(ColumnFamilyData* cfd, uint64_t max_memtable_id,
                             FlushJob* flush_job) {
  db_->mutex_.AssertHeld();
  const bool is_requested = cfd->imm()->HasFlushRequested();
  flush_job->PickMemTable();
  if (is_requested && cfd->imm()->GetLatestMemTableID(
                          /*for_atomic_flush=*/false) > max_memtable_id) {
    cfd->imm()->FlushRequested();
  }
}

void DBStrata::SettleFlush(ColumnFamilyData* cfd, FlushJob* job,
                           SuperVersionContext* sv_context) {
  SettleMapOfFlush(cfd, job, sv_context);
  if (flush_order_gate_.Leave(cfd)) {
    ScheduleAfterFlush();
  }
}

void DBStrata::SettleFlushes(
    const autovector<DBImpl::BGFlushArg>& args,
    const std::vector<std::unique_ptr<FlushJob>>& jobs) {
  assert(args.size() == jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    SettleMapOfFlush(args[i].cfd_, jobs[i].get(),
                     args[i].superversion_context_);
  }
  if (flush_order_gate_.Leave(args)) {
    ScheduleAfterFlush();
  }
}

void DBStrata::ScheduleAfterFlush() {
  db_->mutex_.AssertHeld();
  db_->bg_cv_.SignalAll();
  SetDeltaJobsDue();
  // The parked requests are in the queue again.
  db_->MaybeScheduleFlushOrCompaction();
}

}  // namespace ROCKSDB_NAMESPACE
