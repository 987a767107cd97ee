//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What the commit of ingestions does about operands in delta files (see
// DeltaIngestion), and the check of the SST files that others ingest.

#include <algorithm>
#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/delta/delta_version.h"
#include "db/external_sst_file_ingestion_job.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

Status DBStrata::CheckIngestibleElsewhere(ColumnFamilyData* cfd,
                                          const std::string& file) {
  const DeltaVersion* const deltas =
      cfd->current()->storage_info()->delta().get();
  // Buckets may be left when all operands have become values.
  if (deltas == nullptr || deltas->GetTotals().num_files == 0) {
    return Status::OK();
  }
  return Status::NotSupported(
      "SST file " + file + " cannot be ingested elsewhere: column family \"" +
      cfd->GetName() + "\" has " +
      std::to_string(deltas->GetTotals().num_files) +
      " delta files (enable_delta_separation), and the merge operands in them "
      "are not in its SST files. CompactRange() of all keys, with the database "
      "open with enable_delta_separation = false, drains them");
}

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

Status DBStrata::PrepareIngestionCommit(
    const std::vector<ExternalSstFileIngestionJob*>& jobs) {
  db_->mutex_.AssertHeld();
  std::vector<ColumnFamilyData*> families;
  families.reserve(jobs.size());
  for (const ExternalSstFileIngestionJob* const job : jobs) {
    families.push_back(job->GetColumnFamilyData());
  }
  const auto lacks_anchors = [](const ExternalSstFileIngestionJob* job) {
    return job->LacksDeltaAnchors();
  };
  // Each of the two waits lets flushes and compactions commit.
  Status s = WaitForSettledMaps(families);
  while (s.ok() && std::any_of(jobs.begin(), jobs.end(), lacks_anchors)) {
    // The first operands have come after the last look. Anchors of all files
    // are written, so that once is enough, whatever is flushed later.
    TEST_SYNC_POINT("DBStrata::PrepareIngestionCommit:LacksAnchors");
    db_->mutex_.Unlock();
    s = WriteMissingDeltaAnchors(jobs, /*all=*/true);
    db_->mutex_.Lock();
    if (s.ok()) {
      s = WaitForSettledMaps(families);
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
