//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What the commit of ingestions does about operands in delta files: see
// DeltaIngestion.

#include <algorithm>
#include <vector>

#include "db/column_family.h"
#include "db/external_sst_file_ingestion_job.h"
#include "db/strata/db_strata.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

Status DBStrata::WriteMissingDeltaAnchors(
    const std::vector<ExternalSstFileIngestionJob*>& jobs, bool all) {
  Status s;
  for (ExternalSstFileIngestionJob* job : jobs) {
    ColumnFamilyData* const cfd = job->GetColumnFamilyData();
    if (cfd->delta_store() == nullptr || cfd->IsDropped()) {
      continue;
    }
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(db_);
    s = job->WriteMissingDeltaAnchors(sv, all);
    db_->CleanupSuperVersion(sv);
    if (!s.ok()) {
      break;
    }
  }
  return s;
}

Status DBStrata::CompleteDeltaAnchors(
    const std::vector<ExternalSstFileIngestionJob*>& jobs) {
  db_->mutex_.AssertHeld();
  if (std::none_of(jobs.begin(), jobs.end(),
                   [](const ExternalSstFileIngestionJob* job) {
                     return job->LacksDeltaAnchors();
                   })) {
    return Status::OK();
  }
  // The first operands have come after the last look. Of all files, so that
  // once is enough, whatever is flushed meanwhile.
  TEST_SYNC_POINT("DBStrata::CompleteDeltaAnchors");
  db_->mutex_.Unlock();
  const Status s = WriteMissingDeltaAnchors(jobs, /*all=*/true);
  db_->mutex_.Lock();
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
