//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What is to be done after a column family was dropped.

#include "db/blob/blob_file_cache.h"
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
// refuses, also records of files that the family does not have any more, such
// as blob files on a path that was given up since the open.
// REQUIRES: DB mutex held
bool MayHaveRefusedRecords(ColumnFamilyData& cfd) {
  return cfd.delta_store() != nullptr || cfd.address_map_store() != nullptr ||
         cfd.blob_file_cache()->paths().has_known_files() ||
         IsRefusedByRocksDB(*cfd.current()->storage_info());
}

}  // namespace

Status DBStrata::RollManifestAndSchedule(Env::IOActivity activity,
                                         JobContext* job_context) {
  TEST_SYNC_POINT("DBStrata::RollManifestAndSchedule:Roll");
  const Status s = RollManifest(activity);
  // The edit may have been written behind that of another thread before the
  // creation of a MANIFEST failed. Reads of an address map do not end while the
  // newest Version has no SuperVersion.
  ColumnFamilyData* const cfd =
      db_->versions_->GetColumnFamilySet()->GetDefault();
  if (s.ok() || cfd->GetSuperVersion()->current != cfd->current()) {
    job_context->superversion_contexts.emplace_back(
        /*create_superversion=*/true);
    db_->InstallSuperVersionAndScheduleWork(
        cfd, &job_context->superversion_contexts.back());
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
    Status s = RollManifestAndSchedule(Env::IOActivity::kUnknown, &job_context);
    if (!s.ok() && !db_->versions_->io_status().ok()) {
      // As long as the VersionSet has this error, failures of other jobs are
      // taken for failures of the MANIFEST, and atomic flushes do not try.
      ROCKS_LOG_WARN(db_->immutable_db_options_.info_log,
                     "[%s] The column family was dropped, but a new MANIFEST "
                     "could not be created: %s. This is tried once more",
                     cfd->GetName().c_str(), s.ToString().c_str());
      s = RollManifestAndSchedule(Env::IOActivity::kUnknown, &job_context);
    }
    if (!s.ok()) {
      // The next edit begins another MANIFEST.
      ROCKS_LOG_WARN(db_->immutable_db_options_.info_log,
                     "[%s] The column family was dropped, but the MANIFEST "
                     "keeps records of its delta files, mapped values or blob "
                     "files on other paths, as a new MANIFEST could not be "
                     "created: %s. RocksDB refuses the DB until the next "
                     "MANIFEST is begun. The recovery from the error, or the "
                     "next open, does that, unless reuse_manifest_on_open is "
                     "set",
                     cfd->GetName().c_str(), s.ToString().c_str());
      // As after any other edit. The MANIFEST is right, and has the drop.
      if (!db_->versions_->io_status().ok()) {
        db_->error_handler_.SetBGError(db_->versions_->io_status(),
                                       BackgroundErrorReason::kManifestWrite);
      }
    }
  }
  job_context.Clean();
}

}  // namespace ROCKSDB_NAMESPACE
