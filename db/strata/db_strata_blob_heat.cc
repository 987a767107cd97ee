//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The hot values of column families with an address map: when jobs run that
// move values to the hot path, or from there. BackgroundBlobGc says what a job
// does.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_gc/blob_gc_state.h"
#include "db/blob_heat/blob_heat.h"
#include "db/blob_heat/blob_heat_picker.h"
#include "db/column_family.h"
#include "db/path_layout/path_layout.h"
#include "db/strata/background_blob_gc.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Below this part of the budget, values are admitted as if it were unused.
constexpr uint64_t kFreePart = 8;

// Returns small hot files to merge. Each job that promotes leaves at least one.
// files: all files of the column family.
BlobGcPicker::Job PickSmallHotFiles(const MutableCFOptions& cf_options,
                                    const BlobGcState& gc,
                                    std::vector<BlobGcPicker::File> files) {
  std::erase_if(
      files, [](const BlobGcPicker::File& file) { return !file.hot.is_hot(); });
  BlobGcPicker::Options options;
  // Their garbage is that of the column family: there is no limit for it.
  options.space_amp_limit = BlobGcPicker::kMaxLimit;
  options.flush_size = cf_options.write_buffer_size;
  options.max_copied = gc.max_copies();
  options.file_size = cf_options.blob_file_size;
  return BlobGcPicker::PickSmall(options, files);
}

// Sets what the job is about.
void SetPlan(const BlobHeatPicker::Job& job,
             const BlobHeatPicker::Options& options, BlobGcPicker::Job* plan) {
  if (job.kind == BlobHeatPicker::Kind::kPromote) {
    plan->size = plan->live_size = std::min(options.wanted, job.room);
    plan->path_id = options.path_id;
    return;
  }
  plan->files = {job.file.number};
  plan->size = job.file.size;
  plan->live_size = job.file.live_size;
  plan->path_id = job.file.path_id;
  plan->hot = job.file.hot;
}

}  // namespace

void DBStrata::OnBlobHeatDue() {
  TEST_SYNC_POINT("DBStrata::OnBlobHeatDue");
  InstrumentedMutexLock lock(&db_->mutex_);
  SetBlobGcDue();
  ScheduleBlobGc();
}

BlobHeatPicker::Options DBStrata::HeatOptions(ColumnFamilyData* cfd) {
  const BlobHeat& heat = *cfd->address_map_store()->heat();
  BlobHeatPicker::Options options;
  options.budget = heat.budget();
  options.path_id = static_cast<uint32_t>(
      PathLayout::IndexOf(heat.path_id(), cfd->ioptions().cf_paths.size()));
  return options;
}

void DBStrata::ScheduleBlobHeat(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  AddressMapStore* const blobs = cfd->address_map_store();
  BlobHeat* const heat = blobs->heat();
  if (!blobs->enabled() || !blobs->ready()) {
    return;
  }
  const auto& metas = cfd->current()->storage_info()->GetBlobFiles();
  if (!heat->IsOn() &&
      std::none_of(metas.begin(), metas.end(),
                   [](const auto& meta) { return meta->hot().is_hot(); })) {
    return;
  }
  const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
  for (bool has_scheduled = false;; has_scheduled = true) {
    const std::vector<BlobGcPicker::File> files =
        blobs->FilesForGc(*cfd->current()->storage_info());
    BlobHeatPicker::Options options = HeatOptions(cfd);
    if (heat->queue()->IsDue() && !heat->is_busy()) {
      options.wanted = heat->queue()->Bytes();
      options.hand = heat->hand();
      options.lacks_room = heat->lacks_room();
    }
    if (BlobHeatPicker::HotBytes(files) <
        options.budget - options.budget / kFreePart) {
      heat->SetThreshold(BlobHeat::kMinReads);
    }
    const BlobHeatPicker::Job job = BlobHeatPicker::Pick(options, files);
    if (job.kind == BlobHeatPicker::Kind::kGiveUp) {
      heat->GiveUpWaiting();
    }
    BackgroundBlobGc::Plan plan;
    const bool moves_values = job.kind != BlobHeatPicker::Kind::kNone &&
                              job.kind != BlobHeatPicker::Kind::kGiveUp;
    if (moves_values) {
      SetPlan(job, options, &plan.job);
      plan.heat = job.kind;
      plan.hot_room = job.room;
    } else if (heat->IsOn() && cf_options.blob_gc_space_amp_limit == 0) {
      // With a limit, ScheduleBlobGc() merges small files of all kinds.
      plan.job = PickSmallHotFiles(cf_options, *blobs->gc(), files);
    }
    if (!moves_values && plan.job.files.empty()) {
      if (options.wanted > 0 && job.kind == BlobHeatPicker::Kind::kNone &&
          !blobs->gc()->Avoided().empty()) {
        // The end of the pause of a file is no event. Without writes only
        // reads can ask for the job again.
        heat->queue()->AskAgain();
      }
      return;
    }
    if (scheduler_.NumInBackground(BackgroundJob::Kind::kBlobGc) >=
        BackgroundBlobGc::MaxJobs(db_->mutable_db_options_.max_background_jobs,
                                  /*above_limit=*/false)) {
      // The end of a job sets blob_gc_due_. After jobs of this call there need
      // not be more to do.
      blob_gc_refused_ |= !has_scheduled;
      return;
    }
    TEST_SYNC_POINT_CALLBACK("DBStrata::ScheduleBlobHeat", &plan.job);
    last_gc_family_ = cfd->GetID();
    heat->SetHadTurn(true);
    scheduler_.Schedule(
        std::make_unique<BackgroundBlobGc>(this, cfd, std::move(plan)));
  }
}

Status DBStrata::DrainHotFile(ColumnFamilyData* cfd,
                              const std::atomic<bool>* canceled,
                              uint64_t* bytes_written, bool* is_busy,
                              Status* stuck) {
  BackgroundBlobGc job(
      this, cfd, canceled, /*unreadable=*/nullptr,
      [cfd](BackgroundBlobGc::Plan* plan) {
        const BlobHeatPicker::Options options = HeatOptions(cfd);
        for (const BlobGcPicker::File& file :
             cfd->address_map_store()->FilesForGc(
                 *cfd->current()->storage_info(), /*also_failed=*/true)) {
          if (BlobHeatPicker::MustDrain(options, file) && !file.is_busy) {
            BlobHeatPicker::Job drain;
            drain.kind = plan->heat = BlobHeatPicker::Kind::kDrain;
            drain.file = file;
            SetPlan(drain, options, &plan->job);
            return;
          }
        }
      });
  const Status s = scheduler_.RunManual(&job);
  *is_busy = s.ok() && job.plan().job.files.empty();
  *bytes_written = 0;
  for (const BlobFileAddition& file : job.additions()) {
    *bytes_written += file.GetTotalBlobBytes();
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  const BlobGcState& gc = *cfd->address_map_store()->gc();
  if (*is_busy && !gc.HasJobs() && gc.NumDamaged() > 0) {
    *stuck = Status::Incomplete(
        "hot blob files cannot be moved, as values in them are damaged");
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
