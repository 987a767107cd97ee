//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/background_map_removals.h"

#include <cstdint>
#include <set>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/job_context.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

DBStrata::BackgroundMapRemovals::BackgroundMapRemovals(DBStrata* strata)
    : BackgroundJob(Kind::kMapRemovals, /*cfd=*/nullptr), strata_(strata) {
  strata_->db_->mutex_.AssertHeld();
  ++strata_->db_->bg_purge_scheduled_;
  ++strata_->num_map_removals_;
}

Status DBStrata::BackgroundMapRemovals::Run(JobContext* job_context) {
  DBImpl* const db = strata_->db_;
  db->mutex_.AssertHeld();
  const std::set<uint32_t> due = strata_->map_work_.TakeRemovalsDue();
  for (const uint32_t id : due) {
    ColumnFamilyData* const cfd =
        db->versions_->GetColumnFamilySet()->GetColumnFamily(id);
    if (cfd == nullptr) {
      continue;  // dropped
    }
    cfd->Ref();
    RunFor(cfd, job_context);
    cfd->UnrefAndTryDelete();
  }
  db->FindObsoleteFiles(job_context, /*force=*/false);
  strata_->SetBlobGcDue();
  strata_->ScheduleBlobGc();
  return Status::OK();
}

void DBStrata::BackgroundMapRemovals::RunFor(ColumnFamilyData* cfd,
                                             JobContext* job_context) {
  DBImpl* const db = strata_->db_;
  AddressMapStore* const blobs = cfd->address_map_store();
  const SequenceNumber earliest = strata_->EarliestReader(*cfd);
  const auto retired = blobs->retired_removals()->Take(OldestVersionNumber(cfd),
                                                       AddressMapStore::kSlice);
  db->mutex_.Unlock();
  TEST_SYNC_POINT("DBStrata::BackgroundMapRemovals::RunFor:BeforeRemoval");
  blobs->ApplyBlockedRemovals(earliest);
  for (const auto& removals : retired) {
    removals->Remove(blobs->map());
    if (!removals->complete()) {
      blobs->SetInexact();
    }
  }
  db->mutex_.Lock();
  strata_->DropEmptyBlobFiles(cfd, Env::IOActivity::kUnknown,
                              job_context->superversion_contexts.data());
  // More may have become possible meanwhile. A drop that has failed waits for
  // the next event.
  strata_->FindMapWork(cfd, /*also_for_drops=*/false);
}

void DBStrata::BackgroundMapRemovals::AfterRun() {
  strata_->ScheduleMapRemovals();
}

void DBStrata::BackgroundMapRemovals::AfterPurge() {
  strata_->MarkAfterBounds();
}

void DBStrata::BackgroundMapRemovals::OnEnd(const Status& /*s*/) {
  --strata_->num_map_removals_;
  --strata_->db_->bg_purge_scheduled_;
}

}  // namespace ROCKSDB_NAMESPACE
