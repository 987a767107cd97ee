//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Files that a failed ingestion or import has made. If the write to the
// MANIFEST has failed, the record that names the files may be there or not, and
// the next open would need them. They are in the quarantine of the ErrorHandler
// then, until a new MANIFEST is written, as the files of failed flushes and
// compactions are.

#include <list>
#include <memory>
#include <unordered_set>
#include <vector>

#include "db/external_sst_file_ingestion_job.h"
#include "db/import_column_family_job.h"
#include "db/strata/db_strata.h"

namespace ROCKSDB_NAMESPACE {

std::unordered_set<uint64_t> DBStrata::QuarantinedFiles() const {
  db_->mutex_.AssertHeld();
  const autovector<uint64_t>& numbers =
      db_->error_handler_.GetFilesToQuarantine();
  return {numbers.begin(), numbers.end()};
}

void DBStrata::LeaveQuarantinedFiles(
    std::vector<ExternalSstFileIngestionJob>* jobs,
    std::unique_ptr<std::list<uint64_t>::iterator>* pending_output) {
  InstrumentedMutexLock lock(&db_->mutex_);
  const std::unordered_set<uint64_t> quarantined = QuarantinedFiles();
  bool has_left = false;
  if (!quarantined.empty()) {
    for (ExternalSstFileIngestionJob& job : *jobs) {
      has_left |= job.LeaveFiles(quarantined);
    }
  }
  if (has_left) {
    // The recovery from the error deletes obsolete files, but no pending
    // outputs. It has not come so far, as the files are in quarantine.
    db_->ReleaseFileNumberFromPendingOutputs(*pending_output);
  }
}

void DBStrata::CleanUpFailedImport(ImportColumnFamilyJob* job,
                                   const Status& status) {
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    const std::unordered_set<uint64_t> quarantined = QuarantinedFiles();
    if (!quarantined.empty()) {
      job->LeaveFiles(quarantined);
    }
  }
  job->Cleanup(status);
}

}  // namespace ROCKSDB_NAMESPACE
