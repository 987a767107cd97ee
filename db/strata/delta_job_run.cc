//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/delta_job_run.h"

#include "db/column_family.h"
#include "db/delta/delta_store.h"
#include "db/job_context.h"
#include "db/strata/background_delta_job.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

DBStrata::DeltaJobRun::DeltaJobRun(DBStrata* strata,
                                   const BackgroundDeltaJob* job,
                                   JobContext* job_context)
    : strata_(strata),
      db_(strata->db_),
      job_(job),
      job_context_(job_context),
      cfd_(job->cfd()),
      moptions_(cfd_->GetLatestMutableCFOptions()),
      read_options_(MakeReadOptions(db_)),
      version_(cfd_->current()),
      deltas_(version_->storage_info()->delta()),
      started_(db_->immutable_db_options_.clock->NowMicros()) {
  db_->mutex_.AssertHeld();
  version_->Ref();
}

DBStrata::DeltaJobRun::~DeltaJobRun() {
  db_->mutex_.AssertHeld();
  deltas_.reset();
  version_->Unref();
}

ReadOptions DBStrata::DeltaJobRun::MakeReadOptions(DBImpl* db) {
  ReadOptions read_options(Env::IOActivity::kCompaction);
  read_options.verify_checksums = true;
  read_options.fill_cache = false;
  // Reads have the priority of those of compactions.
  read_options.rate_limiter_priority =
      db->write_controller_.NeedsDelay() || db->write_controller_.IsStopped()
          ? Env::IO_USER
          : Env::IO_LOW;
  read_options.readahead_size =
      db->mutable_db_options_.compaction_readahead_size;
  return read_options;
}

const ImmutableOptions& DBStrata::DeltaJobRun::ioptions() const {
  return cfd_->ioptions();
}

DeltaStore* DBStrata::DeltaJobRun::store() const { return cfd_->delta_store(); }

const char* DBStrata::DeltaJobRun::cf_name() const {
  return cfd_->GetName().c_str();
}

int DBStrata::DeltaJobRun::job_id() const { return job_context_->job_id; }

uint64_t DBStrata::DeltaJobRun::micros() const {
  return db_->immutable_db_options_.clock->NowMicros() - started_;
}

void DBStrata::DeltaJobRun::MakePassContext(DeltaMergePass::Context* context) {
  db_->mutex_.AssertHeld();
  db_->InitSnapshotContext(job_context_, cfd_);
  context->store = store();
  context->ioptions = &ioptions();
  context->moptions = &moptions_;
  context->snapshots = job_context_->snapshot_seqs;
  context->earliest_snapshot = job_context_->GetEarliestSnapshotSequence();
  context->earliest_write_conflict_snapshot =
      job_context_->earliest_write_conflict_snapshot;
  context->job_snapshot = job_context_->GetJobSnapshotSequence();
  context->latest_listed_snapshot = job_context_->latest_listed_snapshot;
  context->snapshot_checker = job_context_->snapshot_checker;
  context->check = [this] { return strata_->scheduler_.CheckToStop(*job_); };
  context->shutting_down = &db_->shutting_down_;
  context->read_options = read_options_;
  context->env = db_->env_;
  context->info_log = db_->immutable_db_options_.info_log.get();
}

DeltaFileBuilder::Options DBStrata::DeltaJobRun::OutputOptions(
    uint32_t path_id) {
  db_->mutex_.AssertHeld();
  DeltaFileBuilder::Options options;
  options.path_id = path_id;
  options.db_id = db_->db_id_;
  options.job_id = job_id();
  options.reason = TableFileCreationReason::kCompaction;
  options.file_options = db_->file_options_for_compaction_;
  options.file_options.temperature = moptions_.default_write_temperature;
  options.write_options = WriteOptions(Env::IOActivity::kCompaction);
  options.write_options.rate_limiter_priority =
      read_options_.rate_limiter_priority;
  options.write_hint = version_->storage_info()->CalculateSSTWriteHint(
      /*level=*/0,
      db_->immutable_db_options_.calculate_sst_write_lifetime_hint_set);
  directory_ = db_->GetDataDir(cfd_, options.path_id);
  return options;
}

std::function<uint64_t()> DBStrata::DeltaJobRun::NewFileNumber() const {
  return [db = db_] { return db->versions_->NewFileNumber(); };
}

Status DBStrata::DeltaJobRun::MakeFilter(DeltaMergePass::Context* pass) {
  const CompactionFilter* filter = ioptions().compaction_filter;
  CompactionFilterFactory* const factory =
      ioptions().compaction_filter_factory.get();
  if (filter == nullptr && factory != nullptr &&
      factory->ShouldFilterTableFileCreation(
          TableFileCreationReason::kCompaction)) {
    CompactionFilter::Context context;
    context.is_full_compaction = false;
    context.is_manual_compaction = job_->is_manual();
    context.column_family_id = cfd_->GetID();
    context.reason = TableFileCreationReason::kCompaction;
    own_filter_ = factory->CreateCompactionFilter(context);
    filter = own_filter_.get();
  }
  pass->filter = filter;
  return filter == nullptr || filter->IgnoreSnapshots()
             ? Status::OK()
             : Status::NotSupported(
                   "CompactionFilter::IgnoreSnapshots() = false is not "
                   "supported anymore.");
}

}  // namespace ROCKSDB_NAMESPACE
