//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Garbage collection of the blob files of column families with an address map:
// when jobs run. BackgroundBlobGc says what a job does, and ManualBlobGc which
// jobs CollectBlobGarbage() runs.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/address_map_store.h"
#include "db/address_map/level0_merge.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_gc/blob_gc_state.h"
#include "db/blob_heat/blob_heat.h"
#include "db/column_family.h"
#include "db/strata/background_blob_gc.h"
#include "db/strata/db_strata.h"
#include "db/strata/manual_blob_gc.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the number of ranges that the outputs of jobs are divided into: so
// many that the room below the limit is enough to sort one of them.
size_t NumPieces(double space_amp_limit) {
  return static_cast<size_t>(
      std::clamp(2 / (space_amp_limit - 1.0), 8.0, 64.0));
}

}  // namespace

void DBStrata::OnFileDeletionsSwitched() {
  db_->mutex_.AssertHeld();
  std::vector<WriteStallInfo> changes;
  // What was collected would stay on disk beside its copies.
  const bool allowed = db_->disable_delete_obsolete_files_ == 0;
  if (allowed != blob_gc_allowed_) {
    blob_gc_allowed_ = allowed;
    for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
      if (cfd->address_map_store() != nullptr) {
        cfd->address_map_store()->gc()->SetAllowed(allowed);
        if (auto change = BackgroundBlobGc::UpdateSlowdown(cfd);
            change.has_value()) {
          changes.push_back(*std::move(change));
        }
      }
    }
  }
  ScheduleBlobGc();
  if (changes.empty()) {
    return;
  }
  db_->mutex_.Unlock();
  for (const WriteStallInfo& change : changes) {
    for (const auto& listener : db_->immutable_db_options_.listeners) {
      listener->OnStallConditionsChanged(change);
    }
  }
  db_->mutex_.Lock();
  db_->NotifyOnBackgroundJobPressureChanged();
}

void DBStrata::ScheduleBlobGc() {
  db_->mutex_.AssertHeld();
  if (!blob_gc_due_) {
    return;
  }
  ScheduleRangeSweeps();
  if (!blob_gc_allowed_ || !scheduler_.MayStart(BackgroundJob::Kind::kBlobGc)) {
    return;
  }
  blob_gc_due_ = false;
  // The families take turns: otherwise the first ones would take all jobs as
  // long as they have work.
  std::vector<ColumnFamilyData*> families;
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->address_map_store() != nullptr && !cfd->IsDropped()) {
      families.push_back(cfd);
    }
  }
  const auto next = std::find_if(families.begin(), families.end(),
                                 [this](const ColumnFamilyData* cfd) {
                                   return cfd->GetID() > last_gc_family_;
                                 });
  std::rotate(families.begin(), next, families.end());
  for (ColumnFamilyData* cfd : families) {
    // Jobs that make values hot and jobs that collect garbage take turns, too.
    const bool heat_is_last = cfd->address_map_store()->heat()->had_turn();
    if (!heat_is_last) {
      ScheduleBlobHeat(cfd);
    }
    ScheduleBlobGc(cfd);
    if (heat_is_last) {
      ScheduleBlobHeat(cfd);
    }
  }
}

void DBStrata::OnScanDebtDue() {
  TEST_SYNC_POINT("DBStrata::OnScanDebtDue");
  InstrumentedMutexLock lock(&db_->mutex_);
  SetBlobGcDue();
  ScheduleBlobGc();
}

void DBStrata::ForgetDueJobs() {
  db_->mutex_.AssertHeld();
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->address_map_store() != nullptr) {
      cfd->address_map_store()->scan_debts()->ForgetDue();
      cfd->address_map_store()->heat()->queue()->ForgetDue();
    }
  }
}

void DBStrata::OnLevel0DebtDue(ColumnFamilyData* cfd) {
  InstrumentedMutexLock lock(&db_->mutex_);
  AddressMapStore* const blobs = cfd->address_map_store();
  Level0Debt* const debt = blobs->scan_debts()->level0();
  VersionStorageInfo* const files = cfd->current()->storage_info();
  const std::vector<FileMetaData*>& level0 = files->LevelFiles(0);
  const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
  if (level0.empty() || cfd->IsDropped() || !blobs->enabled() ||
      cf_options.disable_auto_compactions ||
      cf_options.level0_file_num_compaction_trigger <= 0 ||
      cfd->ioptions().compaction_style != kCompactionStyleLevel) {
    debt->Clear();
    return;
  }
  if (files->strata()->level0_is_paid() ||
      std::any_of(level0.begin(), level0.end(), [](const FileMetaData* file) {
        return file->being_compacted;
      })) {
    debt->Postpone();
    return;
  }
  const uint64_t live =
      BlobGcPicker::SpaceOf(blobs->FilesForGc(*files), /*copies=*/0).live;
  const uint64_t value_size =
      live / std::max(blobs->map()->NumEntries(), uint64_t{1});
  if (!debt->Pay(Level0Merge::PriceOf(*files, cf_options, value_size))) {
    return;
  }
  ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                 "[%s] Scans have paid for a compaction of level 0: %zu files",
                 cfd->GetName().c_str(), level0.size());
  files->strata()->SetLevel0Paid(*files);
  files->ComputeCompactionScore(cfd->ioptions(), cf_options,
                                cfd->GetFullHistoryTsLow());
  db_->EnqueuePendingCompaction(cfd);
  db_->MaybeScheduleFlushOrCompaction();
}

void DBStrata::ScheduleBlobGc(ColumnFamilyData* cfd) {
  AddressMapStore* const blobs = cfd->address_map_store();
  const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
  const double limit = cf_options.blob_gc_space_amp_limit;
  if (!blobs->enabled() || !blobs->ready()) {
    return;
  }
  ScanDebts* const debts = blobs->scan_debts();
  if (cfd->current()->storage_info()->LevelFiles(0).empty()) {
    debts->level0()->Clear();
  }
  if (limit == 0 && !debts->IsDue()) {
    if (cf_options.blob_scan_sort_budget > 0) {
      // Writes let the debts decay.
      const std::vector<BlobGcPicker::File> files =
          blobs->FilesForGc(*cfd->current()->storage_info());
      debts->OnWritten(blobs->gc()->TakeFlushed(files),
                       BlobGcPicker::SpaceOf(files, 0).live);
    }
    return;
  }
  for (bool has_scheduled = false;; has_scheduled = true) {
    std::vector<BlobGcPicker::File> files =
        blobs->FilesForGc(*cfd->current()->storage_info());
    debts->OnWritten(blobs->gc()->TakeFlushed(files),
                     BlobGcPicker::SpaceOf(files, 0).live);
    BlobGcPicker::Options options;
    options.space_amp_limit = limit == 0 ? BlobGcPicker::kMaxLimit : limit;
    options.flush_size = cf_options.write_buffer_size;
    options.max_copied = blobs->gc()->max_copies();
    const int max_background_jobs =
        db_->mutable_db_options_.max_background_jobs;
    options.max_jobs = BackgroundBlobGc::MaxJobs(max_background_jobs,
                                                 /*above_limit=*/false);
    options.next_file_number = db_->versions_->current_next_file_number();
    options.file_size = cf_options.blob_file_size;
    options.comparator = cfd->user_comparator();
    const bool above_limit = BlobGcPicker::SpaceOf(files, 0).Amplification() >
                             options.space_amp_limit;
    const bool wants_sort = debts->IsDue() && !blobs->gc()->is_sorting();
    if (debts->IsDue()) {
      options.wanted_room = BlobGcPicker::WantedSortRoom(options, files);
    }
    if (scheduler_.NumInBackground(BackgroundJob::Kind::kBlobGc) >=
        BackgroundBlobGc::MaxJobs(max_background_jobs, above_limit)) {
      // The end of a job sets blob_gc_due_. After jobs of this call there need
      // not be more to do.
      blob_gc_refused_ |= !has_scheduled;
      return;
    }
    // The room that jobs which scans have paid for are taking up stays free.
    BlobGcPicker::Options collection = options;
    collection.wanted_room = std::max(options.wanted_room, debts->job_bytes());
    BackgroundBlobGc::Plan plan;
    plan.is_urgent = above_limit;
    if (limit != 0) {
      blobs->gc()->AddKeyRanges(&files);
      TEST_SYNC_POINT_CALLBACK("DBStrata::ScheduleBlobGc:KeyRanges", &files);
      plan.job = BlobGcPicker::Pick(collection, files);
    }
    bool is_small = false;
    if (limit != 0 && plan.job.files.empty()) {
      plan.job = BlobGcPicker::PickSmall(collection, files);
      is_small = !plan.job.files.empty();
    }
    if (plan.job.files.empty() && wants_sort) {
      BackgroundBlobGc::PickForScans(options, files, *debts, &plan);
    }
    if (plan.job.files.empty() && !plan.is_scan_sort) {
      if (wants_sort && !blobs->gc()->Avoided().empty()) {
        // The end of the pause of a file is no event. Without writes only
        // scans can ask for the job again.
        debts->AskAgain();
      }
      return;
    }
    // Small files are merged to have fewer of them.
    if (limit != 0 && !plan.is_scan_sort && !is_small) {
      plan.bounds = debts->Bounds(NumPieces(limit));
      plan.min_piece = cf_options.blob_file_size / BlobGcPicker::kSmallPart;
      if (plan.bounds.empty()) {
        plan.num_pieces = BlobGcPicker::NumPieces(plan.job.live_size,
                                                  cf_options.blob_file_size);
      }
    }
    TEST_SYNC_POINT_CALLBACK("DBStrata::ScheduleBlobGc", &plan.job);
    last_gc_family_ = cfd->GetID();
    blobs->heat()->SetHadTurn(false);
    scheduler_.Schedule(
        std::make_unique<BackgroundBlobGc>(this, cfd, std::move(plan)));
  }
}

Status DBStrata::CollectBlobGarbage(const CollectBlobGarbageOptions& options,
                                    ColumnFamilyHandle* column_family) {
  if (db_->read_only_) {
    return Status::NotSupported("Not supported operation in read only mode.");
  }
  if (!(options.space_amp_limit >= 1.0 &&
        options.space_amp_limit <= BlobGcPicker::kMaxLimit)) {
    return Status::InvalidArgument(
        "CollectBlobGarbageOptions::space_amp_limit must be from 1 to 1000");
  }
  ColumnFamilyData* const cfd =
      static_cast_with_check<ColumnFamilyHandleImpl>(column_family)->cfd();
  AddressMapStore* const blobs = cfd->address_map_store();
  if (blobs == nullptr || !blobs->enabled()) {
    return Status::NotSupported(
        "CollectBlobGarbage needs enable_blob_address_map: compactions collect "
        "other blob files");
  }
  return CollectBlobs(options, cfd);
}

Status DBStrata::CollectBlobs(const CollectBlobGarbageOptions& options,
                              ColumnFamilyData* cfd) {
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    const Status s = BeginManualCall(cfd);
    if (!s.ok()) {
      return s;
    }
  }
  Status s = ManualBlobGc(this, cfd, options).Run();
  InstrumentedMutexLock lock(&db_->mutex_);
  scheduler_.EndManualCall(cfd);
  return s;
}

Status DBStrata::CompactRangeAndBlobs(const CompactRangeOptions& options,
                                      ColumnFamilyHandle* column_family,
                                      const Slice* begin, const Slice* end,
                                      const std::string& trim_ts) {
  ColumnFamilyData* const cfd =
      static_cast_with_check<ColumnFamilyHandleImpl>(column_family)->cfd();
  const AddressMapStore* const blobs = cfd->address_map_store();
  const bool is_all = begin == nullptr && end == nullptr;
  const bool has_deltas = is_all && cfd->delta_store() != nullptr;
  const bool collects = is_all && blobs != nullptr && blobs->enabled() &&
                        options.blob_garbage_collection_policy ==
                            BlobGarbageCollectionPolicy::kForce;
  if (!has_deltas && !collects) {
    return db_->CompactRangeInternal(options, column_family, begin, end,
                                     trim_ts);
  }
  // The compaction is no manual call, as one with change_level would wait for
  // the end of its own call. So Close() may end before the compaction returns:
  // each step asks whether the DB is being closed before it touches the column
  // family, and the handle is not used after the compaction has begun.
  Status s;
  if (has_deltas) {
    s = DrainDeltas(options, cfd);
    InstrumentedMutexLock lock(&db_->mutex_);
    s.UpdateIfOk(CheckNotClosing());
  }
  if (s.ok()) {
    s = db_->CompactRangeInternal(options, column_family, begin, end, trim_ts);
  }
  if (s.ok() && has_deltas) {
    s = CompactDeltas(options, cfd);
  }
  if (s.ok() && collects) {
    CollectBlobGarbageOptions collect;
    collect.max_sorted_runs = 1;
    collect.canceled = options.canceled;
    s = CollectBlobs(collect, cfd);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
