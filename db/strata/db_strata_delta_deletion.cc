//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What DeleteFilesInRanges() does about operands in delta files.

#include <list>
#include <memory>
#include <vector>

#include "db/address_map/mapped_file_removal.h"
#include "db/column_family.h"
#include "db/delta/delta_file_deletion.h"
#include "db/delta/delta_store.h"
#include "db/path_layout/path_layout.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

std::unique_ptr<DeltaFileDeletion> DBStrata::BeginDeltaFileDeletion(
    ColumnFamilyData* cfd, const autovector<UserKeyRangeOpt>& ranges,
    bool include_end) {
  db_->mutex_.AssertHeld();
  if (cfd->delta_store() == nullptr) {
    return nullptr;
  }
  // Before it takes a number.
  auto pending_output =
      std::make_shared<std::unique_ptr<std::list<uint64_t>::iterator>>(
          std::make_unique<std::list<uint64_t>::iterator>(
              db_->CaptureCurrentFileNumberInPendingOutputs()));
  const auto release = [this, pending_output] {
    db_->ReleaseFileNumberFromPendingOutputs(*pending_output);
    // Its file, and what came meanwhile, may be merged only now.
    SetDeltaJobsDue();
    ScheduleDeltaJobs();
    // Another deletion may wait for this one.
    db_->bg_cv_.SignalAll();
  };
  // A flush that runs now has an epoch before that of the deletion, but
  // operands that are newer than those to be hidden. If it ended later, these
  // could be put together with older ones before the anchors are there. Those
  // that begin from here on come after the deletion in every respect.
  while (cfd->delta_store()->IsFlushedByOthers()) {
    TEST_SYNC_POINT("DBStrata::BeginDeltaFileDeletion:Waits");
    db_->bg_cv_.Wait();
  }
  auto deletion = DeltaFileDeletion::Begin(
      cfd->delta_store(), cfd->current()->storage_info()->delta().get(),
      std::vector<UserKeyRangeOpt>(ranges.begin(), ranges.end()), include_end,
      [this] { return db_->versions_->NewFileNumber(); }, release);
  if (deletion == nullptr) {
    release();
  }
  return deletion;
}

Status DBStrata::PublishFileRemoval(ColumnFamilyData* cfd, int job_id,
                                    MappedFileRemoval* removal,
                                    DeltaFileDeletion* deletion) {
  Status s;
  if (deletion != nullptr) {
    DeltaFileDeletion::Output output;
    output.db_id = db_->db_id_;
    output.job_id = job_id;
    {
      InstrumentedMutexLock lock(&db_->mutex_);
      output.path_id =
          PathLayout::RecentDeltaPathId(cfd->GetLatestMutableCFOptions());
      output.file_options = db_->file_options_for_compaction_;
      output.directory = db_->GetDataDir(cfd, output.path_id);
    }
    s = deletion->Publish(output);
  }
  // The file of anchors may take long or fail, so it comes first.
  if (s.ok() && removal != nullptr) {
    s = removal->Publish();
    if (!s.ok() && deletion != nullptr) {
      deletion->Abandon();
    }
  }
  return s;
}

void DBStrata::SettleDeltaFileDeletion(DeltaFileDeletion* deletion,
                                       const Status& s) {
  db_->mutex_.AssertHeld();
  if (s.ok()) {
    return;
  }
  // With this status alone the edit was certainly not written. After another
  // failure the caller's full scan finds the file, unless it is in quarantine.
  if (s.IsColumnFamilyDropped()) {
    db_->mutex_.Unlock();
    deletion->Abandon();
    db_->mutex_.Lock();
  }
  // The file is no pending output any more.
  deletion->Close();
}

}  // namespace ROCKSDB_NAMESPACE
