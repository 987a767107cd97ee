//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/flush_debt.h"

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_state.h"
#include "db/column_family.h"
#include "db/delta/delta_job_state.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "db/path_layout/path_job_stats.h"
#include "db/strata/column_family_strata.h"
#include "db/version_set.h"
#include "monitoring/iostats_context_imp.h"
#include "rocksdb/env.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if the calling thread runs a job, and a listener flushes in it:
// the job for which the flush would wait may be this one, or may wait for this
// thread.
bool IsThreadOfAJob() {
  const uint64_t pool = IOSTATS(thread_pool_id);
  return PathJobScope::Current() != PathJob::kNone ||
         pool == static_cast<uint64_t>(Env::Priority::LOW) ||
         pool == static_cast<uint64_t>(Env::Priority::HIGH);
}

}  // namespace

uint64_t FlushDebt::Of(ColumnFamilyData* cfd) {
  const MutableCFOptions& options = cfd->GetLatestMutableCFOptions();
  AddressMapStore* const blobs = cfd->address_map_store();
  DeltaStore* const deltas = cfd->delta_store();
  if ((blobs == nullptr && deltas == nullptr) ||
      options.disable_auto_compactions || IsThreadOfAJob()) {
    return 0;
  }
  uint64_t debt = 0;
  // How much garbage a flush makes is not known before it has ended.
  if (blobs != nullptr && blobs->gc()->slows_down() && blobs->gc()->HasJobs()) {
    debt = cfd->strata()->LastDebt();
  }
  if (deltas != nullptr && !deltas->jobs().IsIdle()) {
    debt = DeltaPicker::AddDebt(debt,
                                cfd->current()->storage_info()->delta().get(),
                                deltas->jobs(), options, /*more_flushed=*/1);
  }
  return debt;
}

}  // namespace ROCKSDB_NAMESPACE
