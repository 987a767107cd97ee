//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/background_delta_merge.h"

#include <cinttypes>
#include <utility>

#include "db/column_family.h"
#include "db/delta/delta_job_state.h"
#include "db/job_context.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

void DBStrata::BackgroundDeltaMerge::GiveUp() { jobs().EndMerge(); }

bool DBStrata::BackgroundDeltaMerge::NoteDamage() {
  jobs().SetMergeDamaged(true);
  return false;
}

DeltaJobBackoff& DBStrata::BackgroundDeltaMerge::Backoff() const {
  return jobs().merge_backoff();
}

Status DBStrata::BackgroundDeltaMerge::RunMarked(JobContext* job_context) {
  db_->mutex_.AssertHeld();
  run_.emplace(strata_, this, job_context);
  // Files are written to the path for which they are picked.
  const DeltaPicker::Options options = PickerOptions();
  if (run_->deltas() != nullptr) {
    pick_ = DeltaPicker::PickMerge(options, *run_->deltas());
  }
  if (pick_.inputs.empty()) {
    jobs().EndMerge();
    run_.reset();
    return Status::OK();
  }
  found_ = true;
  num_inputs_ = pick_.inputs.size();
  DeltaMergeJob::Context context;
  run_->MakePassContext(&context.pass);
  context.output = run_->OutputOptions(options.paths->recent);
  context.new_file_number = run_->NewFileNumber();
  context.checks = DeltaOutputChecks::OfJobs(run_->moptions());
  db_->mutex_.Unlock();

  Status s = Write(std::move(context));
  TEST_SYNC_POINT_CALLBACK(
      "DBStrata::BackgroundDeltaMerge::RunMarked:BeforeEdit", &s);

  db_->mutex_.Lock();
  s = CommitMerge(s, job_context);
  db_->mutex_.Unlock();

  TEST_SYNC_POINT("DBStrata::BackgroundDeltaMerge::RunMarked:AfterEdit");
  Report(s);

  db_->mutex_.Lock();
  job_.reset();
  run_.reset();
  NoteResult(s);
  return s;
}

Status DBStrata::BackgroundDeltaMerge::Write(DeltaMergeJob::Context context) {
  Status s = run_->MakeFilter(&context.pass);
  job_ = std::make_unique<DeltaMergeJob>(std::move(context),
                                         std::move(pick_.inputs));
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] [JOB %d] Merging %zu delta files, %" PRIu64
                 " bytes, up to epoch %" PRIu64 "%s",
                 run_->cf_name(), run_->job_id(), num_inputs_, pick_.bytes,
                 pick_.last_epoch,
                 pick_.moves_files ? "; for files on other paths" : "");
  TEST_SYNC_POINT("DBStrata::BackgroundDeltaMerge::Write:Begin");
  if (s.ok()) {
    s = job_->Run();
  }
  if (s.ok()) {
    s = job_->Publish(run_->directory());
  }
  run_->DropFilter();
  return s;
}

Status DBStrata::BackgroundDeltaMerge::CommitMerge(Status s,
                                                   JobContext* job_context) {
  if (s.ok()) {
    s = strata_->scheduler_.CheckToStop(*this);
  }
  if (s.ok()) {
    VersionEdit edit;
    DeltaEdit delta_edit;
    job_->AddTo(&delta_edit);
    MakeEdit(std::move(delta_edit), job_->stats().filter_changed, &edit);
    s = Commit(&edit);
  }
  jobs().EndMerge();
  if (s.ok()) {
    jobs().SetMergeDamaged(false);
    // Buckets may take the merged files in now.
    jobs().SetCollectionDue();
    db_->InstallSuperVersionAndScheduleWork(
        cfd(), job_context->superversion_contexts.data());
  }
  return s;
}

void DBStrata::BackgroundDeltaMerge::Report(const Status& s) {
  const DeltaMergePass::Stats stats = job_->stats();
  const uint64_t bytes_written = job_->bytes_written();
  const size_t num_outputs = job_->files().size();
  if (!s.ok() && !tried_to_commit_) {
    job_->Abandon();
  }
  if (s.ok()) {
    RecordTick(db_->stats_, DELTA_MERGES);
  }
  Count(stats, job_->bytes_read(), bytes_written);
  ROCKS_LOG_INFO(
      db_->immutable_db_options_.info_log,
      "[%s] [JOB %d] Merged %zu delta files into %zu: %" PRIu64
      " bytes into %" PRIu64 ", %" PRIu64 " operands into %" PRIu64 " (%" PRIu64
      " hidden, %" PRIu64 " combined, %" PRIu64 " filtered), %" PRIu64
      " anchors into %" PRIu64 ", %" PRIu64 " ms: %s",
      run_->cf_name(), run_->job_id(), num_inputs_, num_outputs, pick_.bytes,
      bytes_written, stats.operands_read, stats.operands_kept,
      stats.operands_hidden, stats.operands_combined, stats.operands_filtered,
      stats.anchors_read, stats.anchors_kept, run_->micros() / 1000,
      s.ToString().c_str());
}

}  // namespace ROCKSDB_NAMESPACE
