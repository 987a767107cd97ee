//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Garbage collection of the blob files of column families with an address map:
// when jobs run, and the jobs of CollectBlobGarbage(). BackgroundBlobGc says
// what a job does.

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_job.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_gc/blob_key_bounds.h"
#include "db/blob_gc/blob_run_merger.h"
#include "db/blob_gc/unmapped_blob_gc.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/column_family.h"
#include "db/strata/background_blob_gc.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/random_access_file_reader.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A buffer for each of them (BlobGcJob).
constexpr size_t kMaxMergedRuns = 64;
// Where the limit leaves less for garbage, merges take this share nevertheless.
constexpr double kMinMergeSlack = 0.1;
// How long a merge waits for jobs that run already.
constexpr uint64_t kMaxWaitForJobsMicros = 10 * 1000 * 1000;

}  // namespace

void DBStrata::AddBlobGcThreads() {
  // Jobs, and the sweep of range deletions, run beside compactions, not instead
  // of them.
  const int max_jobs = db_->mutable_db_options_.max_background_jobs;
  db_->env_->IncBackgroundThreadsIfNeeded(
      db_->GetBGJobLimits().max_compactions +
          BackgroundBlobGc::MaxJobs(max_jobs, /*above_limit=*/true) + 1,
      Env::Priority::LOW);
}

void DBStrata::ScheduleBlobGc() {
  db_->mutex_.AssertHeld();
  // What was collected would stay on disk beside its copies.
  const bool allowed = db_->disable_delete_obsolete_files_ == 0;
  if (UNLIKELY(allowed != blob_gc_allowed_)) {
    blob_gc_allowed_ = allowed;
    for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
      if (cfd->address_map_store() != nullptr) {
        cfd->address_map_store()->SetGcAllowed(allowed);
      }
    }
  }
  if (!blob_gc_due_) {
    return;
  }
  ScheduleRangeSweeps();
  if (!allowed || !scheduler_.MayStart(BackgroundJob::Kind::kBlobGc)) {
    return;
  }
  blob_gc_due_ = false;
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->address_map_store() != nullptr && !cfd->IsDropped()) {
      ScheduleBlobGc(cfd);
    }
  }
}

void DBStrata::ScheduleBlobGc(ColumnFamilyData* cfd) {
  AddressMapStore* const blobs = cfd->address_map_store();
  const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
  const double limit = cf_options.blob_gc_space_amp_limit;
  if (!blobs->enabled() || !blobs->ready() || limit == 0) {
    return;
  }
  for (;;) {
    const std::vector<BlobGcPicker::File> files =
        blobs->FilesForGc(*cfd->current()->storage_info());
    BlobGcPicker::Options options;
    options.space_amp_limit = limit;
    options.flush_size = cf_options.write_buffer_size;
    options.max_copied = blobs->max_gc_copies();
    const int max_background_jobs =
        db_->mutable_db_options_.max_background_jobs;
    options.max_jobs = BackgroundBlobGc::MaxJobs(max_background_jobs,
                                                 /*above_limit=*/false);
    options.next_file_number = db_->versions_->current_next_file_number();
    options.file_size = cf_options.blob_file_size;
    const bool above_limit =
        BlobGcPicker::SpaceOf(files, 0).Amplification() > limit;
    if (scheduler_.NumInBackground(BackgroundJob::Kind::kBlobGc) >=
        BackgroundBlobGc::MaxJobs(max_background_jobs, above_limit)) {
      // The end of a job sets blob_gc_due_.
      return;
    }
    BackgroundBlobGc::Plan plan;
    plan.is_urgent = above_limit;
    plan.job = BlobGcPicker::Pick(options, files);
    if (plan.job.files.empty()) {
      plan.job = BlobGcPicker::PickSmall(options, files);
    }
    if (plan.job.files.empty()) {
      return;
    }
    TEST_SYNC_POINT_CALLBACK("DBStrata::ScheduleBlobGc", &plan.job);
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
  uint64_t first_new_number = 0;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    first_new_number = db_->versions_->current_next_file_number();
    scheduler_.BeginManualCall(cfd);
  }
  // Each file once: what could not be copied would be picked again.
  std::set<uint64_t> done_files;
  // A file that cannot be read does not keep the others from being collected.
  // The first such error is what the caller gets.
  std::set<uint64_t> unreadable;
  Status first_damage;
  Status s = UnmappedBlobGc::Collect(db_, cfd, options);
  if (s.ok() && options.max_sorted_runs > 0) {
    s = MergeBlobRuns(options, cfd, &done_files, &unreadable, &first_damage);
  }
  for (bool done = false; s.ok() && !done;) {
    std::vector<uint64_t> picked;
    const auto pick = [&](BackgroundBlobGc::Plan* plan) {
      std::vector<BlobGcPicker::File> files = blobs->FilesForGc(
          *cfd->current()->storage_info(), /*also_failed=*/true);
      for (BlobGcPicker::File& file : files) {
        file.is_busy |= file.number >= first_new_number ||
                        done_files.count(file.number) > 0 ||
                        unreadable.count(file.number) > 0;
      }
      BlobGcPicker::Options picker_options;
      picker_options.space_amp_limit = options.space_amp_limit;
      picker_options.min_copied = picker_options.max_copied =
          std::min(blobs->max_gc_copies(),
                   cfd->GetLatestMutableCFOptions().blob_file_size);
      picker_options.next_file_number =
          db_->versions_->current_next_file_number();
      plan->job = BlobGcPicker::Pick(picker_options, files);
      done = plan->job.files.empty();
      picked = plan->job.files;
    };
    BackgroundBlobGc job(this, cfd, options.canceled, &unreadable, pick);
    const size_t num_unreadable = unreadable.size();
    s = scheduler_.RunManual(&job);
    if (unreadable.size() > num_unreadable) {
      first_damage = first_damage.ok() ? s : first_damage;
      s = Status::OK();  // the next job is without the file
    } else {
      done_files.insert(picked.begin(), picked.end());
    }
  }
  // Small files, and then what was made of them: fewer each time.
  std::set<uint64_t> merged_files;
  std::set<uint64_t> outputs;
  for (bool done = false; s.ok() && !done;) {
    std::vector<uint64_t> picked;
    const auto pick = [&](BackgroundBlobGc::Plan* plan) {
      std::vector<BlobGcPicker::File> files = blobs->FilesForGc(
          *cfd->current()->storage_info(), /*also_failed=*/true);
      for (BlobGcPicker::File& file : files) {
        file.is_busy |= (file.number >= first_new_number &&
                         outputs.count(file.number) == 0) ||
                        merged_files.count(file.number) > 0 ||
                        unreadable.count(file.number) > 0;
      }
      const uint64_t file_size =
          cfd->GetLatestMutableCFOptions().blob_file_size;
      BlobGcPicker::Options picker_options;
      picker_options.min_copied = picker_options.max_copied =
          std::min(blobs->max_gc_copies(), file_size);
      picker_options.file_size = file_size;
      picker_options.merge_all_small = true;
      plan->job = BlobGcPicker::PickSmall(picker_options, files);
      done = plan->job.files.empty();
      picked = plan->job.files;
    };
    BackgroundBlobGc job(this, cfd, options.canceled, &unreadable, pick);
    const size_t num_unreadable = unreadable.size();
    s = scheduler_.RunManual(&job);
    if (unreadable.size() > num_unreadable) {
      first_damage = first_damage.ok() ? s : first_damage;
      s = Status::OK();
      continue;
    }
    merged_files.insert(picked.begin(), picked.end());
    for (const BlobFileAddition& addition : job.additions()) {
      outputs.insert(addition.GetBlobFileNumber());
    }
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  scheduler_.EndManualCall(cfd);
  return s.ok() ? first_damage : s;
}

Status DBStrata::ReadBlobRuns(const BackgroundJob& job, ColumnFamilyData* cfd,
                              std::set<uint64_t>* numbers,
                              std::unique_ptr<BlobRunMerger>* runs) {
  const ImmutableOptions& ioptions = cfd->ioptions();
  AddressMapStore* const blobs = cfd->address_map_store();
  std::vector<BlobGcPicker::File> candidates;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    // Files that a job has would be left out. Where jobs follow each other,
    // some are: that is not worth waiting for.
    const uint64_t until =
        db_->immutable_db_options_.clock->NowMicros() + kMaxWaitForJobsMicros;
    Status s = scheduler_.CheckToStop(job);
    while (s.ok() && blobs->HasGcJobs() &&
           db_->immutable_db_options_.clock->NowMicros() < until) {
      scheduler_.WaitForOthers();
      s = scheduler_.CheckToStop(job);
    }
    if (!s.ok()) {
      return s;
    }
    candidates = blobs->FilesForGc(*cfd->current()->storage_info(),
                                   /*also_failed=*/true);
  }
  const FileOptions file_options = db_->fs_->OptimizeForCompactionTableRead(
      db_->file_options_for_compaction_, db_->immutable_db_options_);
  IOOptions io_options;
  io_options.rate_limiter_priority = Env::IO_LOW;
  io_options.io_activity = Env::IOActivity::kCompaction;
  std::vector<BlobRunMerger::File> files;
  for (const BlobGcPicker::File& candidate : candidates) {
    TEST_SYNC_POINT("DBStrata::ReadBlobRuns:File");
    Status s = scheduler_.CheckToStop(job);
    if (!s.ok()) {
      return s;
    }
    const AddressMapStore::FilePin pin(blobs, candidate.number);
    if (candidate.is_busy || !pin.pinned()) {
      continue;
    }
    std::unique_ptr<RandomAccessFileReader> reader;
    BlobFileLayoutV2 layout;
    s = BlobGcJob::OpenFile(ioptions, file_options, io_options, db_->io_tracer_,
                            candidate.number, candidate.path_id, &reader,
                            &layout);
    BlobRunMerger::File file;
    bool found = false;
    if (s.ok()) {
      s = BlobKeyBounds::Read(reader.get(), io_options, layout, &file.bounds,
                              &found);
    }
    if (s.IsCorruption() || s.IsNotFound() || s.IsPathNotFound()) {
      // Perhaps only of garbage: whoever reads its values checks them.
      ROCKS_LOG_WARN(db_->immutable_db_options_.info_log, "[%s] Not sorted: %s",
                     cfd->GetName().c_str(), s.ToString().c_str());
      continue;
    }
    if (!s.ok()) {
      return s;
    }
    if (found) {
      file.number = candidate.number;
      file.size = candidate.live_size;
      file.size_on_disk = candidate.size;
      file.path_id = candidate.path_id;
      numbers->insert(file.number);
      files.push_back(std::move(file));
    }
  }
  *runs = std::make_unique<BlobRunMerger>(ioptions.user_comparator,
                                          std::move(files));
  return Status::OK();
}

// One merge of sorted runs, in pieces. What was copied in a piece is free soon,
// not only in the end. A piece takes as much of each run as it may copy in all;
// these files, and no others, are kept from other jobs until the next piece was
// picked.
struct DBStrata::BlobRunMerge {
  ColumnFamilyData* cfd = nullptr;
  BlobRunMerger::Merge merge;
  uint64_t max_piece = 0;
  std::vector<uint64_t> outputs;
  uint64_t output_bytes = 0;
  uint64_t max_file_size = 0;
  std::set<uint64_t> marked;
  const std::set<uint64_t>* unreadable = nullptr;

  // Takes what the next piece copies.
  // REQUIRES: DB mutex held.
  void Pick(BackgroundBlobGc::Plan* plan) {
    AddressMapStore* const blobs = cfd->address_map_store();
    std::map<uint64_t, BlobGcPicker::File> files;
    for (const BlobGcPicker::File& file :
         blobs->FilesForGc(*cfd->current()->storage_info(),
                           /*also_failed=*/true)) {
      if (file.live_size > 0 && unreadable->count(file.number) == 0 &&
          (!file.is_busy || marked.count(file.number))) {
        files.emplace(file.number, file);
      }
    }
    plan->job.path_id = merge.path_id;
    plan->max_copied =
        std::max(uint64_t{1}, std::min(max_piece, blobs->max_gc_copies()));
    std::set<uint64_t> now;
    for (const std::vector<uint64_t>& run : merge.runs) {
      std::vector<uint64_t> taken;
      uint64_t live_size = 0;
      bool goes_on = false;
      for (const uint64_t number : run) {
        const auto file = files.find(number);
        if (file == files.end()) {
          continue;  // it is empty, or another job has it
        }
        if (live_size >= plan->max_copied) {
          goes_on = true;
          break;
        }
        live_size += file->second.live_size;
        plan->job.size += file->second.size;
        taken.push_back(number);
      }
      if (taken.empty()) {
        continue;
      }
      plan->job.live_size += live_size;
      plan->job.files.insert(plan->job.files.end(), taken.begin(), taken.end());
      now.insert(taken.begin(), taken.end());
      plan->runs.push_back(std::move(taken));
      plan->goes_on.push_back(goes_on);
    }
    Mark(std::move(now));
  }

  // Keeps other jobs from these files, and no longer from those before.
  // REQUIRES: DB mutex held.
  void Mark(std::set<uint64_t>&& now) {
    AddressMapStore* const blobs = cfd->address_map_store();
    for (const uint64_t number : now) {
      blobs->BeginGc(number);
    }
    for (const uint64_t number : marked) {
      blobs->EndGc(number);
    }
    marked = std::move(now);
  }
};

Status DBStrata::MergeBlobRuns(const CollectBlobGarbageOptions& options,
                               ColumnFamilyData* cfd, std::set<uint64_t>* files,
                               std::set<uint64_t>* unreadable,
                               Status* first_damage) {
  AddressMapStore* const blobs = cfd->address_map_store();
  // Stands for the jobs of this call, and is not run.
  const BackgroundBlobGc check(this, cfd, options.canceled,
                               /*unreadable=*/nullptr, /*pick=*/nullptr);
  std::unique_ptr<BlobRunMerger> runs;
  Status s = ReadBlobRuns(check, cfd, files, &runs);
  while (s.ok()) {
    BlobRunMerge merge;
    merge.cfd = cfd;
    merge.unreadable = unreadable;
    uint64_t max_open_bytes = 0;
    uint64_t blob_file_size = 0;
    {
      InstrumentedMutexLock lock(&db_->mutex_);
      const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
      blob_file_size = std::min(
          std::max(uint64_t{1}, cf_options.blob_file_size), uint64_t{1} << 40);
      // While a merge goes on, of one file of each run a part was copied: that
      // is garbage beyond the limit.
      const double limit = cf_options.blob_gc_space_amp_limit;
      const BlobGcPicker::Space space = BlobGcPicker::SpaceOf(
          blobs->FilesForGc(*cfd->current()->storage_info()), 0);
      max_open_bytes =
          limit == 0
              ? std::numeric_limits<uint64_t>::max() / 2
              : static_cast<uint64_t>(
                    std::min(std::max(limit - 1.0, kMinMergeSlack), 2.0) / 2 *
                    static_cast<double>(space.live));
      BlobRunMerger::Limits limits;
      limits.max_runs = options.max_sorted_runs;
      limits.max_merged = kMaxMergedRuns;
      limits.max_open_bytes = max_open_bytes;
      merge.merge = runs->PickMerge(limits);
      if (merge.merge.runs.empty()) {
        merge.merge = runs->PickGarbage(options.space_amp_limit);
      }
      if (merge.merge.runs.empty()) {
        break;
      }
      blobs->AddMergeSpace(max_open_bytes);
    }
    for (bool again = true; s.ok() && again;) {
      merge.max_piece = std::max(blob_file_size,
                                 std::min(max_open_bytes, 16 * blob_file_size));
      BackgroundBlobGc job(
          this, cfd, options.canceled, unreadable,
          [&](BackgroundBlobGc::Plan* plan) { merge.Pick(plan); });
      const size_t num_unreadable = unreadable->size();
      s = scheduler_.RunManual(&job);
      TEST_SYNC_POINT("DBStrata::MergeBlobRuns:Piece");
      again = job.reached_limit();
      if (unreadable->size() > num_unreadable) {
        *first_damage = first_damage->ok() ? s : *first_damage;
        s = Status::OK();  // the piece again, without the file
        again = true;
        continue;
      }
      if ((s.IsNoSpace() || s.subcode() == Status::kSpaceLimit) &&
          job.plan().max_copied > blob_file_size) {
        s = Status::OK();  // the next one takes less
        again = true;
      }
      for (const BlobFileAddition& addition : job.additions()) {
        files->insert(addition.GetBlobFileNumber());
        merge.outputs.push_back(addition.GetBlobFileNumber());
        merge.output_bytes += addition.GetTotalBlobBytes();
        merge.max_file_size =
            std::max(merge.max_file_size, addition.GetTotalBlobBytes());
      }
    }
    {
      InstrumentedMutexLock lock(&db_->mutex_);
      merge.Mark({});
      blobs->SubMergeSpace(max_open_bytes);
    }
    runs->AddMerged(merge.merge.path_id, std::move(merge.outputs),
                    merge.output_bytes, merge.max_file_size);
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  // Files that were pinned when their last value died.
  ScheduleMapRemovals(cfd);
  return s;
}

Status DBStrata::CompactRangeAndBlobs(const CompactRangeOptions& options,
                                      ColumnFamilyHandle* column_family,
                                      const Slice* begin, const Slice* end,
                                      const std::string& trim_ts) {
  const bool is_all = begin == nullptr && end == nullptr;
  Status s = is_all ? DrainDeltas(options, column_family) : Status::OK();
  if (s.ok()) {
    s = db_->CompactRangeInternal(options, column_family, begin, end, trim_ts);
  }
  if (s.ok() && is_all) {
    s = CompactDeltas(options, column_family);
  }
  const AddressMapStore* const blobs =
      static_cast_with_check<ColumnFamilyHandleImpl>(column_family)
          ->cfd()
          ->address_map_store();
  if (s.ok() && blobs != nullptr && blobs->enabled() && begin == nullptr &&
      end == nullptr &&
      options.blob_garbage_collection_policy ==
          BlobGarbageCollectionPolicy::kForce) {
    CollectBlobGarbageOptions collect;
    collect.max_sorted_runs = 1;
    collect.canceled = options.canceled;
    s = CollectBlobGarbage(collect, column_family);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
