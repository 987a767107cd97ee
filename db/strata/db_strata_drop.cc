//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What is to be done after a column family was dropped.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "db/column_family.h"
#include "db/job_context.h"
#include "db/strata/db_strata.h"
#include "db/strata/refused_records.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if the MANIFEST may have records of the family that RocksDB
// refuses, also records of files that the family does not have any more.
// REQUIRES: DB mutex held
bool MayHaveRefusedRecords(ColumnFamilyData& cfd) {
  const std::vector<uint32_t>& blob_paths =
      cfd.GetLatestMutableCFOptions().level_blob_path_ids;
  return cfd.delta_store() != nullptr || cfd.address_map_store() != nullptr ||
         std::any_of(blob_paths.begin(), blob_paths.end(),
                     [](uint32_t id) { return id != 0; }) ||
         IsRefusedByRocksDB(*cfd.current()->storage_info());
}

}  // namespace

Status DBStrata::RollManifestAndSchedule(Env::IOActivity activity,
                                         JobContext* job_context) {
  TEST_SYNC_POINT("DBStrata::RollManifestAndSchedule:Roll");
  const Status s = RollManifest(activity);
  if (s.ok()) {
    job_context->superversion_contexts.emplace_back(
        /*create_superversion=*/true);
    db_->InstallSuperVersionAndScheduleWork(
        db_->versions_->GetColumnFamilySet()->GetDefault(),
        &job_context->superversion_contexts.back());
  }
  return s;
}

void DBStrata::RollManifestAfterDrop(ColumnFamilyData* cfd) {
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    if (!MayHaveRefusedRecords(*cfd)) {
      return;
    }
    for (ColumnFamilyData* other : *db_->versions_->GetColumnFamilySet()) {
      if (!other->IsDropped() &&
          IsRefusedByRocksDB(*other->current()->storage_info())) {
        return;
      }
    }
  }
  JobContext job_context(db_->next_job_id_.fetch_add(1));
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    const Status s =
        RollManifestAndSchedule(Env::IOActivity::kUnknown, &job_context);
    if (!s.ok()) {
      // Nothing is lost: the next edit begins another MANIFEST.
      ROCKS_LOG_WARN(db_->immutable_db_options_.info_log,
                     "[%s] The MANIFEST keeps records of delta files, mapped "
                     "values or blob files on other paths after the drop, as "
                     "the creation of a new MANIFEST failed: %s. RocksDB "
                     "refuses the DB until another one was begun, as each open "
                     "does",
                     cfd->GetName().c_str(), s.ToString().c_str());
    }
  }
  job_context.Clean();
}

}  // namespace ROCKSDB_NAMESPACE
