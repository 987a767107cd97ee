//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/manual_blob_gc.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_gc_job.h"
#include "db/blob_gc/blob_key_bounds.h"
#include "db/blob_gc/blob_run_merger.h"
#include "db/blob_gc/unmapped_blob_gc.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "file/random_access_file_reader.h"
#include "logging/logging.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A merge has a buffer for each of its runs (BlobGcJob).
constexpr size_t kMaxMergedRuns = 64;
// Where the limit leaves less for garbage, merges take this share nevertheless.
constexpr double kMinMergeSlack = 0.1;
// How long a merge waits for jobs that run already.
constexpr uint64_t kMaxWaitForJobsMicros = 10 * 1000 * 1000;
// A piece of a merge copies this many output files at most.
constexpr uint64_t kMaxFilesOfPiece = 16;
constexpr uint64_t kMaxBlobFileSize = uint64_t{1} << 40;

}  // namespace

// One merge of sorted runs, in pieces. The space of what a piece has copied is
// free soon, and not only at the end of the merge. A piece takes as much of
// each run as it may copy in all; these files, and no others, are kept from
// other jobs until the next piece was picked.
class DBStrata::ManualBlobGc::RunMerge {
 public:
  RunMerge(ColumnFamilyData* cfd, const std::set<uint64_t>* unreadable)
      : cfd_(cfd), unreadable_(unreadable) {}

  // Sets what is merged.
  // max_open_bytes: see BlobRunMerger::Limits.
  // blob_file_size: bytes, that of the outputs.
  void Begin(BlobRunMerger::Merge merge, uint64_t max_open_bytes,
             uint64_t blob_file_size) {
    merge_ = std::move(merge);
    max_open_bytes_ = max_open_bytes;
    blob_file_size_ = blob_file_size;
  }

  // Takes what the next piece copies.
  // REQUIRES: DB mutex held.
  void Pick(Plan* plan);
  // Keeps other jobs from these files, and no longer from those before.
  // REQUIRES: DB mutex held.
  void Mark(std::set<uint64_t>&& now);
  // Notes the outputs of a piece.
  void AddOutputs(const std::vector<BlobFileAddition>& additions);
  // Adds the run that the merge has made.
  void AddTo(BlobRunMerger* runs) {
    runs->AddMerged(merge_.path_id, std::move(outputs_), output_bytes_,
                    max_file_size_);
  }

  bool has_inputs() const { return !merge_.runs.empty(); }
  uint64_t max_open_bytes() const { return max_open_bytes_; }
  uint64_t blob_file_size() const { return blob_file_size_; }

 private:
  // Takes files of one run. Returns false if there are none.
  bool PickFrom(const std::vector<uint64_t>& run,
                const std::map<uint64_t, BlobGcPicker::File>& files,
                Plan* plan) const;

  ColumnFamilyData* const cfd_;
  const std::set<uint64_t>* const unreadable_;
  BlobRunMerger::Merge merge_;
  uint64_t max_open_bytes_ = 0;
  uint64_t blob_file_size_ = 0;
  std::set<uint64_t> marked_;
  std::vector<uint64_t> outputs_;
  uint64_t output_bytes_ = 0;
  uint64_t max_file_size_ = 0;
};

void DBStrata::ManualBlobGc::RunMerge::Pick(Plan* plan) {
  AddressMapStore* const blobs = cfd_->address_map_store();
  std::map<uint64_t, BlobGcPicker::File> files;
  for (const BlobGcPicker::File& file :
       blobs->FilesForGc(*cfd_->current()->storage_info(),
                         /*also_failed=*/true)) {
    if (file.live_size > 0 && unreadable_->count(file.number) == 0 &&
        (!file.is_busy || marked_.count(file.number) > 0)) {
      files.emplace(file.number, file);
    }
  }
  const uint64_t max_piece =
      std::max(blob_file_size_,
               std::min(max_open_bytes_, kMaxFilesOfPiece * blob_file_size_));
  plan->job.path_id = merge_.path_id;
  plan->max_copied =
      std::max(uint64_t{1}, std::min(max_piece, blobs->gc()->max_copies()));
  std::set<uint64_t> now;
  for (const std::vector<uint64_t>& run : merge_.runs) {
    if (PickFrom(run, files, plan)) {
      now.insert(plan->runs.back().begin(), plan->runs.back().end());
    }
  }
  Mark(std::move(now));
}

bool DBStrata::ManualBlobGc::RunMerge::PickFrom(
    const std::vector<uint64_t>& run,
    const std::map<uint64_t, BlobGcPicker::File>& files, Plan* plan) const {
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
    return false;
  }
  plan->job.live_size += live_size;
  plan->job.files.insert(plan->job.files.end(), taken.begin(), taken.end());
  plan->runs.push_back(std::move(taken));
  plan->goes_on.push_back(goes_on);
  return true;
}

void DBStrata::ManualBlobGc::RunMerge::Mark(std::set<uint64_t>&& now) {
  AddressMapStore* const blobs = cfd_->address_map_store();
  for (const uint64_t number : now) {
    blobs->gc()->Begin(number);
  }
  for (const uint64_t number : marked_) {
    blobs->gc()->End(number);
  }
  marked_ = std::move(now);
}

void DBStrata::ManualBlobGc::RunMerge::AddOutputs(
    const std::vector<BlobFileAddition>& additions) {
  for (const BlobFileAddition& addition : additions) {
    outputs_.push_back(addition.GetBlobFileNumber());
    output_bytes_ += addition.GetTotalBlobBytes();
    max_file_size_ = std::max(max_file_size_, addition.GetTotalBlobBytes());
  }
}

DBStrata::ManualBlobGc::ManualBlobGc(DBStrata* strata, ColumnFamilyData* cfd,
                                     const CollectBlobGarbageOptions& options)
    : strata_(strata),
      db_(strata->db_),
      cfd_(cfd),
      blobs_(cfd->address_map_store()),
      options_(options) {
  InstrumentedMutexLock lock(&db_->mutex_);
  first_new_number_ = db_->versions_->current_next_file_number();
}

Status DBStrata::ManualBlobGc::Run() {
  Status s = UnmappedBlobGc::Collect(db_, cfd_, options_);
  if (s.ok() && options_.max_sorted_runs > 0) {
    s = MergeRuns();
  }
  if (s.ok()) {
    s = CollectGarbage();
  }
  if (s.ok()) {
    s = MergeSmallFiles();
  }
  return s.ok() ? first_damage_ : s;
}

Status DBStrata::ManualBlobGc::RunJob(BackgroundBlobGc* job, bool* is_damaged) {
  const size_t num_unreadable = unreadable_.size();
  Status s = strata_->scheduler_.RunManual(job);
  *is_damaged = unreadable_.size() > num_unreadable;
  if (*is_damaged) {
    first_damage_ = first_damage_.ok() ? s : first_damage_;
    s = Status::OK();
  }
  return s;
}

Status DBStrata::ManualBlobGc::RunJobs(
    const std::function<
        BlobGcPicker::Job(const std::vector<BlobGcPicker::File>& files)>& pick,
    bool takes_outputs, std::set<uint64_t>* done) {
  Status s;
  std::set<uint64_t> outputs;
  for (bool is_over = false; s.ok() && !is_over;) {
    std::vector<uint64_t> picked;
    BackgroundBlobGc job(
        strata_, cfd_, options_.canceled, &unreadable_, [&](Plan* plan) {
          std::vector<BlobGcPicker::File> files = blobs_->FilesForGc(
              *cfd_->current()->storage_info(), /*also_failed=*/true);
          for (BlobGcPicker::File& file : files) {
            file.is_busy |= (file.number >= first_new_number_ &&
                             outputs.count(file.number) == 0) ||
                            done->count(file.number) > 0 ||
                            unreadable_.count(file.number) > 0;
          }
          plan->job = pick(files);
          is_over = plan->job.files.empty();
          picked = plan->job.files;
        });
    bool is_damaged = false;
    s = RunJob(&job, &is_damaged);
    if (is_damaged) {
      continue;  // the next job is without the file
    }
    if (job.lacked_hot_room()) {
      s = Status::OK();  // the files stay as they are
    }
    done->insert(picked.begin(), picked.end());
    if (takes_outputs) {
      for (const BlobFileAddition& addition : job.additions()) {
        outputs.insert(addition.GetBlobFileNumber());
      }
    }
  }
  return s;
}

Status DBStrata::ManualBlobGc::CollectGarbage() {
  const auto pick = [this](const std::vector<BlobGcPicker::File>& files) {
    BlobGcPicker::Options picker_options;
    picker_options.space_amp_limit = options_.space_amp_limit;
    picker_options.min_copied = picker_options.max_copied =
        std::min(blobs_->gc()->max_copies(),
                 cfd_->GetLatestMutableCFOptions().blob_file_size);
    picker_options.next_file_number =
        db_->versions_->current_next_file_number();
    return BlobGcPicker::Pick(picker_options, files);
  };
  return RunJobs(pick, /*takes_outputs=*/false, &collected_);
}

Status DBStrata::ManualBlobGc::MergeSmallFiles() {
  const auto pick = [this](const std::vector<BlobGcPicker::File>& files) {
    const uint64_t file_size = cfd_->GetLatestMutableCFOptions().blob_file_size;
    BlobGcPicker::Options picker_options;
    picker_options.min_copied = picker_options.max_copied =
        std::min(blobs_->gc()->max_copies(), file_size);
    picker_options.file_size = file_size;
    picker_options.merge_all_small = true;
    return BlobGcPicker::PickSmall(picker_options, files);
  };
  // Outputs are merged, too: there are fewer each time.
  std::set<uint64_t> merged;
  return RunJobs(pick, /*takes_outputs=*/true, &merged);
}

Status DBStrata::ManualBlobGc::MergeRuns() {
  const BackgroundBlobGc job(strata_, cfd_, options_.canceled,
                             /*unreadable=*/nullptr, /*pick=*/nullptr);
  std::unique_ptr<BlobRunMerger> runs;
  Status s = WaitForJobs(job);
  if (s.ok()) {
    s = ReadRuns(job, &runs);
  }
  while (s.ok()) {
    RunMerge merge(cfd_, &unreadable_);
    if (!PickMerge(runs.get(), &merge)) {
      break;
    }
    s = RunPieces(&merge);
    {
      InstrumentedMutexLock lock(&db_->mutex_);
      merge.Mark({});
      blobs_->gc()->SubMergeSpace(merge.max_open_bytes());
    }
    merge.AddTo(runs.get());
  }
  InstrumentedMutexLock lock(&db_->mutex_);
  // Files that were pinned when their last value died may be free now.
  strata_->ScheduleMapRemovals(cfd_);
  return s;
}

Status DBStrata::ManualBlobGc::WaitForJobs(const BackgroundJob& job) {
  // Files that a job has would be left out. If jobs follow each other, there is
  // always one: that is not worth waiting for.
  InstrumentedMutexLock lock(&db_->mutex_);
  SystemClock* const clock = db_->immutable_db_options_.clock;
  const uint64_t until = clock->NowMicros() + kMaxWaitForJobsMicros;
  Status s = strata_->scheduler_.CheckToStop(job);
  while (s.ok() && blobs_->gc()->HasJobs() && clock->NowMicros() < until) {
    strata_->scheduler_.WaitForOthers();
    s = strata_->scheduler_.CheckToStop(job);
  }
  return s;
}

Status DBStrata::ManualBlobGc::ReadRuns(const BackgroundJob& job,
                                        std::unique_ptr<BlobRunMerger>* runs) {
  std::vector<BlobGcPicker::File> candidates;
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    candidates = blobs_->FilesForGc(*cfd_->current()->storage_info(),
                                    /*also_failed=*/true);
  }
  std::vector<BlobRunMerger::File> files;
  for (const BlobGcPicker::File& candidate : candidates) {
    TEST_SYNC_POINT("DBStrata::ManualBlobGc::ReadRuns:File");
    const Status s = strata_->scheduler_.CheckToStop(job);
    if (!s.ok()) {
      return s;
    }
    BlobRunMerger::File file;
    // Hot values stay apart from the sorted runs of the others.
    if (!candidate.is_busy && !candidate.hot.is_hot() &&
        ReadBounds(candidate, &file.bounds)) {
      file.number = candidate.number;
      file.size = candidate.live_size;
      file.size_on_disk = candidate.size;
      file.path_id = candidate.path_id;
      collected_.insert(file.number);
      files.push_back(std::move(file));
    }
  }
  *runs = std::make_unique<BlobRunMerger>(cfd_->ioptions().user_comparator,
                                          std::move(files));
  return Status::OK();
}

bool DBStrata::ManualBlobGc::ReadBounds(const BlobGcPicker::File& candidate,
                                        BlobKeyBounds* bounds) {
  const AddressMapStore::FilePin pin(blobs_, candidate.number);
  if (!pin.pinned()) {
    return false;
  }
  FileOptions file_options;
  {
    // SetDBOptions() may change them.
    InstrumentedMutexLock lock(&db_->mutex_);
    file_options = db_->fs_->OptimizeForCompactionTableRead(
        db_->file_options_for_compaction_, db_->immutable_db_options_);
  }
  IOOptions io_options;
  io_options.rate_limiter_priority = Env::IO_LOW;
  io_options.io_activity = Env::IOActivity::kCompaction;
  std::unique_ptr<RandomAccessFileReader> reader;
  BlobFileLayoutV2 layout;
  Status s = BlobGcJob::OpenFile(cfd_->ioptions(), file_options, io_options,
                                 db_->io_tracer_, candidate.number,
                                 candidate.path_id, &reader, &layout);
  bool found = false;
  if (s.ok()) {
    s = BlobKeyBounds::Read(reader.get(), io_options, layout, bounds, &found);
  }
  if (s.ok()) {
    return found;
  }
  ROCKS_LOG_WARN(db_->immutable_db_options_.info_log, "[%s] Not sorted: %s",
                 cfd_->GetName().c_str(), s.ToString().c_str());
  // Perhaps only garbage is damaged: reads of the values check them. An I/O
  // error is told in any case, and the jobs of this call do without the file.
  if (!s.IsCorruption() && !s.IsNotFound() && !s.IsPathNotFound()) {
    unreadable_.insert(candidate.number);
    first_damage_ = first_damage_.ok() ? s : first_damage_;
  }
  return false;
}

bool DBStrata::ManualBlobGc::PickMerge(BlobRunMerger* runs, RunMerge* merge) {
  InstrumentedMutexLock lock(&db_->mutex_);
  const MutableCFOptions& cf_options = cfd_->GetLatestMutableCFOptions();
  const uint64_t blob_file_size = std::min(
      std::max(uint64_t{1}, cf_options.blob_file_size), kMaxBlobFileSize);
  // While a merge goes on, a part of one file of each run was copied: that part
  // is garbage beyond the limit.
  const double limit = cf_options.blob_gc_space_amp_limit;
  const BlobGcPicker::Space space = BlobGcPicker::SpaceOf(
      blobs_->FilesForGc(*cfd_->current()->storage_info()), 0);
  BlobRunMerger::Limits limits;
  limits.max_runs = options_.max_sorted_runs;
  limits.max_merged = kMaxMergedRuns;
  limits.max_open_bytes =
      limit == 0 ? std::numeric_limits<uint64_t>::max() / 2
                 : static_cast<uint64_t>(
                       std::min(std::max(limit - 1.0, kMinMergeSlack), 2.0) /
                       2 * static_cast<double>(space.live));
  BlobRunMerger::Merge picked = runs->PickMerge(limits);
  if (picked.runs.empty()) {
    picked = runs->PickGarbage(options_.space_amp_limit);
  }
  merge->Begin(std::move(picked), limits.max_open_bytes, blob_file_size);
  if (!merge->has_inputs()) {
    return false;
  }
  blobs_->gc()->AddMergeSpace(limits.max_open_bytes);
  return true;
}

Status DBStrata::ManualBlobGc::RunPieces(RunMerge* merge) {
  Status s;
  for (bool again = true; s.ok() && again;) {
    BackgroundBlobGc job(strata_, cfd_, options_.canceled, &unreadable_,
                         [merge](Plan* plan) { merge->Pick(plan); });
    bool is_damaged = false;
    s = RunJob(&job, &is_damaged);
    TEST_SYNC_POINT("DBStrata::ManualBlobGc::RunPieces:Piece");
    if (is_damaged) {
      continue;  // the piece again, without the file
    }
    again = job.reached_limit();
    if ((s.IsNoSpace() || s.subcode() == Status::kSpaceLimit) &&
        job.plan().max_copied > merge->blob_file_size()) {
      s = Status::OK();  // the next piece takes less
      again = true;
    }
    merge->AddOutputs(job.additions());
    for (const BlobFileAddition& addition : job.additions()) {
      collected_.insert(addition.GetBlobFileNumber());
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
