//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What DBImpl does for column families with an address map.

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_set>
#include <vector>

#include "db/address_map/address_map_checkpoints.h"
#include "db/address_map/address_map_recovery.h"
#include "db/address_map/address_map_store.h"
#include "db/address_map/flush_mapping.h"
#include "db/address_map/map_iterators.h"
#include "db/address_map/mapped_file_removal.h"
#include "db/arena_wrapped_db_iter.h"
#include "db/blob_heat/blob_heat.h"
#include "db/db_impl/compacted_db_impl.h"
#include "db/external_sst_file_ingestion_job.h"
#include "db/flush_job.h"
#include "db/job_context.h"
#include "db/lookup_key.h"
#include "db/merge_context.h"
#include "db/path_layout/open_paths.h"
#include "db/pinned_iterators_manager.h"
#include "db/scan_sort/scan_debts.h"
#include "db/snapshot_checker.h"
#include "db/strata/background_map_removals.h"
#include "db/strata/db_strata.h"
#include "db/strata/point_read.h"
#include "db/version_edit.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "options/options_helper.h"
#include "options/strata/address_map_options.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

SequenceNumber FirstUndecided(const ColumnFamilyData& cfd) {
  return cfd.address_map_store() == nullptr
             ? kMaxSequenceNumber
             : cfd.address_map_store()->undecided_files()->First();
}

}  // namespace

uint64_t DBStrata::OldestVersionNumber(ColumnFamilyData* cfd) {
  return cfd->dummy_versions()->Next()->GetVersionNumber();
}

SequenceNumber DBStrata::EarliestSnapshot() {
  db_->mutex_.AssertHeld();
  SequenceNumber earliest = db_->GetLastPublishedSequence();
  if (!db_->snapshots_.empty()) {
    earliest = std::min(earliest, db_->snapshots_.oldest()->number_);
  }
  return earliest;
}

SequenceNumber DBStrata::EarliestReader(const ColumnFamilyData& cfd) {
  // The registries want the others to be read before they are asked.
  const SequenceNumber earliest = EarliestSnapshot();
  TEST_SYNC_POINT("DBStrata::EarliestReader:BetweenReads");
  return std::min(earliest, ReadBoundsOf(cfd).Min());
}

FamilyImplicitSnapshots DBStrata::ReadBoundsOf(const ColumnFamilyData& cfd) {
  return FamilyImplicitSnapshots(&shared_read_bounds_,
                                 cfd.address_map_store() == nullptr
                                     ? nullptr
                                     : cfd.address_map_store()->read_bounds());
}

void DBStrata::MergeReadBounds(const autovector<ColumnFamilyData*>& cfds,
                               std::vector<SequenceNumber>* snapshots) {
  db_->mutex_.AssertHeld();
  for (ColumnFamilyData* cfd : cfds) {
    ReadBoundsOf(*cfd).MergeInto(snapshots);
  }
}

bool DBStrata::WaitsForBounds(const ColumnFamilyData& cfd,
                              SequenceNumber limit) {
  db_->mutex_.AssertHeld();
  const FamilyImplicitSnapshots::Blocker blocker =
      ReadBoundsOf(cfd).NotifyWhenNoneBelow(limit);
  if (blocker == FamilyImplicitSnapshots::Blocker::kShared) {
    map_work_.WaitForSharedBounds(cfd.GetID());
  }
  return blocker != FamilyImplicitSnapshots::Blocker::kNone;
}

bool DBStrata::MapIsAnyOrder() const {
  // Write-prepared and write-unprepared transactions; and numbers that are
  // published before their entries can be read.
  return db_->use_custom_gc_ || db_->immutable_db_options_.unordered_write;
}

AddressMapCheckpoint::Io DBStrata::MapImageIo(Env::IOActivity activity) const {
  AddressMapCheckpoint::Io io;
  io.io_options.io_activity = activity;
  io.fs = db_->immutable_db_options_.fs.get();
  io.file_options = db_->file_options_;
  io.use_fsync = db_->immutable_db_options_.use_fsync;
  return io;
}

Status DBStrata::RecoverAddressMaps() {
  db_->mutex_.AssertHeld();
  AddressMapCheckpoints images(MapImageIo(Env::IOActivity::kDBOpen),
                               db_->dbname_,
                               db_->immutable_db_options_.info_log.get());
  bool has_mapped = false;
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    has_mapped |= AddressMapRecovery::HasMapped(*cfd);
  }
  // Best-efforts recovery may end before the last edit of the MANIFEST.
  if (has_mapped && !db_->immutable_db_options_.best_efforts_recovery) {
    images.Find(db_->versions_->manifest_file_number(),
                db_->versions_->manifest_file_size());
  }
  Status s;
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    s = RecoverAddressMap(cfd, &images);
    if (!s.ok()) {
      break;
    }
  }
  return s;
}

Status CompactedDBImpl::RecoverAddressMaps() {
  for (ColumnFamilyData* cfd : *versions_->GetColumnFamilySet()) {
    if (AddressMapRecovery::HasMapped(*cfd)) {
      return Status::NotSupported("there are values in an address map");
    }
  }
  return Status::OK();
}

FlushMapping* DBStrata::BeginRecoveryMapping(ColumnFamilyData* cfd,
                                             uint64_t sst_number) {
  db_->mutex_.AssertHeld();
  // The files of earlier ones are in no Version yet: with these, no job knows
  // whether a key has other versions.
  const bool is_first =
      std::none_of(recovery_mappings_.begin(), recovery_mappings_.end(),
                   [cfd](const auto& other) {
                     return other->blobs() == cfd->address_map_store();
                   });
  auto mapping = FlushMapping::Begin(
      cfd, cfd->current(), is_first ? kMaxSequenceNumber : 0, MapIsAnyOrder(),
      sst_number, Env::IOActivity::kDBOpen);
  if (mapping == nullptr) {
    return nullptr;
  }
  recovery_mappings_.push_back(std::move(mapping));
  return recovery_mappings_.back().get();
}

void DBStrata::SettleRecoveryMappings() {
  db_->mutex_.AssertHeld();
  for (auto& mapping : recovery_mappings_) {
    mapping->Close();
    db_->mutex_.Unlock();
    mapping->Settle(/*readers=*/{});  // none yet
    db_->mutex_.Lock();
    mapping.reset();
  }
  recovery_mappings_.clear();
}

void DBStrata::SaveAddressMaps() {
  db_->mutex_.AssertHeld();
  SettleRecoveryMappings();
  // After an error it is not known which edits the MANIFEST has.
  if (!db_->opened_successfully_ || db_->read_only_ ||
      !db_->error_handler_.GetBGError().ok() ||
      !db_->versions_->io_status().ok()) {
    return;
  }
  AddressMapCheckpoints images(MapImageIo(Env::IOActivity::kUnknown),
                               db_->dbname_,
                               db_->immutable_db_options_.info_log.get());
  std::vector<uint64_t> tables;
  std::vector<uint64_t> blob_files;
  db_->versions_->AddLiveFiles(&tables, &blob_files);
  std::unordered_set<uint64_t> live(tables.begin(), tables.end());
  live.insert(blob_files.begin(), blob_files.end());
  // Numbers that were given out: new ones would make the next open write an
  // edit, after which no other open could use the images.
  uint64_t next = db_->versions_->current_next_file_number();
  const auto new_number = [&] {
    while (next > 1) {
      if (live.count(--next) == 0) {
        return next;
      }
    }
    return db_->versions_->NewFileNumber();
  };
  uint64_t unfinished = 0;
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    if (cfd->address_map_store() == nullptr || cfd->IsDropped() ||
        !cfd->GetLatestMutableCFOptions().save_blob_address_map ||
        !images.IsWorthSaving(*cfd)) {
      continue;
    }
    if (unfinished == 0) {
      unfinished = new_number();
    }
    const uint64_t number = new_number();
    // Nothing changes any more, but readers of properties and of statistics may
    // still want the mutex.
    db_->mutex_.Unlock();
    images.Save(cfd, unfinished, number).PermitUncheckedError();
    db_->mutex_.Lock();
  }
}

Status DBStrata::RecoverAddressMap(ColumnFamilyData* cfd,
                                   AddressMapCheckpoints* images) {
  AddressMapRecovery::Options options;
  options.file_options = db_->file_options_;
  options.num_threads = std::max(
      1, std::min(db_->immutable_db_options_.max_file_opening_threads,
                  static_cast<int>(port::Thread::hardware_concurrency())));
  options.allow_lost_values = !db_->immutable_db_options_.paranoid_checks;
  options.all_versions = db_->use_custom_gc_;
  if (AddressMapRecovery::HasMapped(*cfd)) {
    const Status s = ValidateOptionsOfMappedValues(
        BuildDBOptions(db_->immutable_db_options_, db_->mutable_db_options_),
        cfd->GetLatestCFOptions());
    if (!s.ok()) {
      return s;
    }
    if (MapIsAnyOrder() && !db_->read_only_ &&
        cfd->current()->storage_info()->strata()->mapped_stats().num_direct >
            0) {
      return Status::NotSupported(
          "Column family " + cfd->GetName() +
          " has values in direct mode (enable_lsm_bypass), which cannot be "
          "combined with write-prepared and write-unprepared transactions and "
          "unordered_write: what is newer than such a value is not told by its "
          "sequence number. Open the database without them, with "
          "enable_lsm_bypass = false, and CompactRange() with kForce "
          "first");
    }
  }
  AddressMapRecovery::Stats stats;
  Status s;
  if (images == nullptr || !AddressMapRecovery::HasMapped(*cfd) ||
      !images->Load(cfd, options.num_threads)) {
    s = AddressMapRecovery::Recover(cfd, options, &stats);
  }
  if (cfd->address_map_store() != nullptr) {
    has_address_maps_ = true;
    cfd->address_map_store()->SetWorkQueue(
        &map_work_, [this, id = cfd->GetID()] { OnReadBoundsReleased(id); });
    cfd->address_map_store()->SignalWork();
    ScanDebts* const debts = cfd->address_map_store()->scan_debts();
    debts->SetOnDue([this] { OnScanDebtDue(); });
    debts->level0()->SetOnDue([this, cfd] { OnLevel0DebtDue(cfd); });
    if (!db_->read_only_) {
      debts->SetBudget(cfd->GetLatestMutableCFOptions().blob_scan_sort_budget);
    }
    cfd->address_map_store()->MarkHotFiles(*cfd->current()->storage_info());
    BlobHeat* const heat = cfd->address_map_store()->heat();
    heat->SetOnDue([this] { OnBlobHeatDue(); });
    if (!db_->read_only_ && cfd->address_map_store()->enabled()) {
      const MutableCFOptions& cf_options = cfd->GetLatestMutableCFOptions();
      heat->Configure(cf_options.blob_hot_bytes, cf_options.blob_hot_path_id);
    }
    cfd->address_map_store()->gc()->SetAllowed(blob_gc_allowed_);
    AddThreads();
    if (MapIsAnyOrder() && !db_->read_only_) {
      cfd->address_map_store()->SetVersionedOnly();
    }
  }
  return s;
}

void DBStrata::MakePointRead(const ReadOptions& read_options, const Slice& key,
                             const DBImpl::GetImplOptions& options,
                             std::optional<PointRead>* point_read) {
  point_read->emplace(
      static_cast_with_check<ColumnFamilyHandleImpl>(options.column_family)
          ->cfd(),
      key, read_options, /*registers=*/true);
  if (options.get_merge_operands_options != nullptr &&
      options.get_merge_operands_options->continue_cb != nullptr) {
    (*point_read)->AskOncePerOperand(options.get_merge_operands_options);
  }
}

void DBStrata::ResetResults(DBImpl::GetImplOptions* options) {
  if (options->value != nullptr) {
    options->value->Reset();
  }
  if (options->columns != nullptr) {
    options->columns->Reset();
  }
  if (options->timestamp != nullptr) {
    options->timestamp->clear();
  }
  if (options->value_found != nullptr) {
    *options->value_found = true;
  }
  if (options->is_blob_index != nullptr) {
    *options->is_blob_index = false;
  }
}

Status DBStrata::GetLatestMappedSequence(
    SuperVersion* sv, const LookupKey& key, const ReadOptions& read_options,
    SequenceNumber max_covering_tombstone_seq, SequenceNumber* seq,
    bool* found) {
  if (UNLIKELY(sv->cfd->address_map_store()->refuses_reads())) {
    return sv->cfd->address_map_store()->read_refusal();
  }
  SequenceNumber newest = 0;
  PointRead read(sv->cfd, key.user_key(), read_options, /*registers=*/false);
  MergeContext merge_context;
  read.FindNewest(&newest, &merge_context, &max_covering_tombstone_seq);
  Status s;
  PinnedIteratorsManager pinned_iters_mgr;
  sv->current->Get(read_options, key, /*value=*/nullptr, /*columns=*/nullptr,
                   /*timestamp=*/nullptr, &s, &merge_context,
                   &max_covering_tombstone_seq, &pinned_iters_mgr);
  if (!read.stopped()) {
    ROCKS_LOG_ERROR(db_->immutable_db_options_.info_log,
                    "Unexpected status returned from Version::Get: %s\n",
                    s.ToString().c_str());
    return s;
  }
  // It stopped before delta files were asked.
  SequenceNumber delta = 0;
  s = sv->current->strata()->NewestDelta(read_options, key, &delta);
  if (!s.ok()) {
    return s;
  }
  newest = std::max(newest, delta);
  // After the SuperVersion was taken: a direct entry of its files that is not
  // in the map now was overwritten by a write that the transaction, which holds
  // the key's lock or checks it at its commit, sees in the memtables.
  SequenceNumber direct = 0;
  if (sv->cfd->address_map_store()->map()->DirectSeq(read.map()->hash(),
                                                     &direct)) {
    newest = std::max(newest, direct);
  }
  *found = newest > 0;
  if (*found) {
    *seq = std::max(newest, max_covering_tombstone_seq);
  }
  return s;
}

ImplicitSnapshotRegistry::ReadBound DBStrata::RegisterReadBound(
    ColumnFamilyData* cfd, const ReadOptions& read_options) {
  if (cfd->address_map_store() == nullptr) {
    return ImplicitSnapshotRegistry::ReadBound();
  }
  ImplicitSnapshotRegistry* const bounds =
      cfd->address_map_store()->read_bounds();
  ImplicitSnapshotRegistry::ReadBound bound =
      read_options.snapshot != nullptr
          ? bounds->RegisterAt(read_options.snapshot->GetSequenceNumber())
          : bounds->Register([this] { return db_->GetLatestSequenceNumber(); });
  TEST_SYNC_POINT("DBStrata::RegisterReadBound:Registered");
  return bound;
}

ArenaWrappedDBIter* DBStrata::WithReadBound(ColumnFamilyData* cfd,
                                            SequenceNumber sequence,
                                            ArenaWrappedDBIter* iter) {
  if (cfd->address_map_store() != nullptr) {
    iter->SetReadBound(
        cfd->address_map_store()->read_bounds()->RegisterAt(sequence));
  }
  return iter;
}

InternalIterator* DBStrata::WrapTailingIterator(ColumnFamilyData* cfd,
                                                const ReadOptions& read_options,
                                                InternalIterator* iter) {
  return MapIterators::WrapTailing(
      cfd, read_options, [this] { return db_->GetLatestSequenceNumber(); },
      iter);
}

void DBStrata::SettleMapOfFlush(ColumnFamilyData* cfd, FlushJob* job,
                                SuperVersionContext* sv_context) {
  db_->mutex_.AssertHeld();
  if (cfd->address_map_store() == nullptr) {
    return;
  }
  std::vector<SequenceNumber> readers;
  db_->snapshots_.GetAll(&readers);
  const SequenceNumber published = db_->GetLastPublishedSequence();
  if (readers.empty() || readers.back() < published) {
    readers.push_back(published);
  }
  // The registries want the others to be read before they are asked.
  ReadBoundsOf(*cfd).MergeInto(&readers);
  job->SettleMapping(readers);
  SetBlobGcDue();
  DropEmptyBlobFiles(cfd, Env::IOActivity::kFlush, sv_context);
  ScheduleMapRemovals(cfd);
}

void DBStrata::SettleCompaction(ColumnFamilyData* cfd, CompactionJob* job,
                                SuperVersionContext* sv_context) {
  db_->mutex_.AssertHeld();
  if (cfd->address_map_store() == nullptr) {
    return;
  }
  const Status s = job->SettleMapping();
  // For WaitForSettledMap().
  db_->bg_cv_.SignalAll();
  SetBlobGcDue();
  if (!s.ok()) {
    // Another attempt of the compaction would not mend the map.
    db_->error_handler_.SetBGError(Status(s, Status::Severity::kFatalError),
                                   BackgroundErrorReason::kCompaction);
  }
  DropEmptyBlobFiles(cfd, Env::IOActivity::kCompaction, sv_context);
  ScheduleMapRemovals(cfd);
}

Status DBStrata::WaitForSettledMap(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  if (cfd->address_map_store() == nullptr) {
    return Status::OK();
  }
  const UnsettledMapJobs& jobs = *cfd->address_map_store()->unsettled_jobs();
  // The caller's Version has no edit of a job that begins from now on.
  const uint64_t begun = jobs.NumBegun();
  while (jobs.HasAnyOfFirst(begun)) {
    TEST_SYNC_POINT("DBStrata::WaitForSettledMap:Waits");
    db_->bg_cv_.Wait();
  }
  return jobs.failure();
}

Status DBStrata::WaitForSettledMaps(
    const std::vector<ColumnFamilyData*>& families) {
  db_->mutex_.AssertHeld();
  // While the mutex was released to wait for one job, others may have committed
  // edits, of this family or of another.
  const auto is_unsettled = [](const ColumnFamilyData* cfd) {
    const AddressMapStore* const blobs = cfd->address_map_store();
    return blobs != nullptr && blobs->unsettled_jobs().HasAnyOfFirst(
                                   blobs->unsettled_jobs().NumBegun());
  };
  bool waited = true;
  while (waited) {
    waited = false;
    for (ColumnFamilyData* const cfd : families) {
      waited |= is_unsettled(cfd);
      const Status s = WaitForSettledMap(cfd);
      if (!s.ok()) {
        return s;
      }
    }
  }
  return Status::OK();
}

void DBStrata::OnReadBoundsReleased(uint32_t column_family_id) {
  InstrumentedMutexLock lock(&db_->mutex_);
  map_work_.OnBoundsReleased(column_family_id);
  ScheduleMapRemovals();
  ResumeDrains();
}

void DBStrata::OnSharedReadBoundsReleased() {
  InstrumentedMutexLock lock(&db_->mutex_);
  map_work_.OnSharedBoundsReleased();
  ScheduleMapRemovals();
  ResumeDrains();
}

void DBStrata::ScheduleMapRemovals(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  cfd->address_map_store()->SignalWork();
  ScheduleMapRemovals();
}

void DBStrata::ScheduleMapRemovals() {
  db_->mutex_.AssertHeld();
  if (!scheduler_.MayStart(BackgroundJob::Kind::kMapRemovals)) {
    return;
  }
  const SequenceNumber earliest = EarliestSnapshot();
  if (map_work_.HasNews(earliest)) {
    for (const uint32_t id : map_work_.TakeNews(earliest)) {
      ColumnFamilyData* const cfd =
          db_->versions_->GetColumnFamilySet()->GetColumnFamily(id);
      if (cfd != nullptr) {
        FindMapWork(cfd, /*also_for_drops=*/true);
      }
    }
  }
  ScheduleRangeSweeps();
  if (scheduler_.NumJobs(BackgroundJob::Kind::kMapRemovals) == 0 &&
      (map_work_.HasRemovalsDue() || map_work_.HasMarkingDue())) {
    // Like flushes: Close() waits for it, so it must not queue for threads
    // that there are none of.
    const Env::Priority pool =
        db_->env_->GetBackgroundThreads(Env::Priority::HIGH) == 0
            ? Env::Priority::LOW
            : Env::Priority::HIGH;
    scheduler_.Schedule(std::make_unique<BackgroundMapRemovals>(this), pool);
  }
}

void DBStrata::FindMapWork(ColumnFamilyData* cfd, bool also_for_drops) {
  db_->mutex_.AssertHeld();
  TEST_SYNC_POINT_CALLBACK("DBStrata::FindMapWork", cfd);
  AddressMapStore* const blobs = cfd->address_map_store();
  if (blobs == nullptr || cfd->IsDropped()) {
    return;
  }
  const SequenceNumber earliest = EarliestSnapshot();
  // A release of a snapshot finds what waits for it in the queue. A release of
  // a bound must be asked for.
  SequenceNumber wait = kMaxSequenceNumber;
  bool due = (also_for_drops &&
              (blobs->HasDroppableFiles() || blobs->HasReleasedFiles())) ||
             blobs->retired_removals()->Has(OldestVersionNumber(cfd));
  const SequenceNumber blocked_until = blobs->BlockedUntil();
  if (blocked_until > earliest) {
    wait = blocked_until;
  } else {
    due |= !WaitsForBounds(*cfd, blocked_until);
  }
  if (due) {
    map_work_.SetRemovalsDue(cfd->GetID());
  }
  const RangeDeletionQueue& ranges = *blobs->range_deletions();
  if (ranges.Count() > 0) {
    const SequenceNumber until =
        ranges.BlockedUntil(db_->immutable_db_options_.clock->NowMicros());
    if (until > earliest) {
      // After a failure it is later than the readers want: the next event looks
      // at the clock.
      wait = std::min(wait, ranges.Smallest());
    } else if (!WaitsForBounds(*cfd, until)) {
      map_work_.SetSweepDue(cfd->GetID(), until);
    }
  }
  if (wait != kMaxSequenceNumber) {
    map_work_.WaitForSnapshots(cfd->GetID(), wait);
  }
}

void DBStrata::SettleFileRemoval(MappedFileRemoval* removal, bool committed) {
  db_->mutex_.AssertHeld();
  removal->Close(committed);
  if (removal->committed()) {
    removal->Retire();
    // For WaitForSettledMap().
    db_->bg_cv_.SignalAll();
  } else {
    db_->mutex_.Unlock();
    const Status s = removal->Settle();
    db_->mutex_.Lock();
    // Also before listeners are told of an error: they may write, and an
    // ingestion that stops writes may wait for this job.
    db_->bg_cv_.SignalAll();
    if (!db_->versions_->io_status().ok()) {
      db_->error_handler_.SetBGError(db_->versions_->io_status(),
                                     BackgroundErrorReason::kManifestWrite);
    }
    if (!s.ok()) {
      // A recovery would not mend the map.
      db_->error_handler_.SetBGError(Status(s, Status::Severity::kFatalError),
                                     BackgroundErrorReason::kManifestWrite);
    }
  }
}

SequenceNumber DBStrata::LimitMarking(ColumnFamilyData* cfd,
                                      SequenceNumber oldest_snapshot) {
  db_->mutex_.AssertHeld();
  if (cfd->address_map_store() == nullptr) {
    return oldest_snapshot;
  }
  UndecidedFiles* const undecided = cfd->address_map_store()->undecided_files();
  if (UNLIKELY(!undecided->empty()) && db_->snapshot_checker_ != nullptr &&
      // A TransactionDB, which the checker asks, shuts the DB down first.
      !db_->shutting_down_.load(std::memory_order_acquire) &&
      undecided->RemoveDecided([&](SequenceNumber seq) {
        return db_->snapshot_checker_->CheckInSnapshot(seq, oldest_snapshot) ==
               SnapshotCheckerResult::kInSnapshot;
      })) {
    cfd->current()->storage_info()->ComputeBottommostFilesMarkedForCompaction(
        /*allow_ingest_behind=*/false, cfd->user_comparator(),
        cfd->GetFullHistoryTsLow());
  }
  const SequenceNumber oldest_bound = ReadBoundsOf(*cfd).Min();
  if (oldest_bound >= oldest_snapshot) {
    return oldest_snapshot;
  }
  const VersionStorageInfo& version = *cfd->current()->storage_info();
  const bool would_mark =
      version.bottommost_files_mark_threshold() < oldest_snapshot ||
      version.standalone_range_tombstone_files_mark_threshold() <=
          oldest_snapshot;
  if (would_mark) {
    if (!WaitsForBounds(*cfd, oldest_snapshot)) {
      return oldest_snapshot;  // released meanwhile
    }
    map_work_.WaitForMarking(cfd->GetID());
  }
  return oldest_bound;
}

SequenceNumber DBStrata::BottommostMarkThreshold(ColumnFamilyData* cfd) {
  const SequenceNumber threshold =
      map_work_.WaitsForMarking(cfd->GetID())
          ? kMaxSequenceNumber
          : cfd->current()->storage_info()->bottommost_files_mark_threshold();
  return std::min(threshold, FirstUndecided(*cfd));
}

void DBStrata::WatchMarking(ColumnFamilyData* cfd) {
  db_->mutex_.AssertHeld();
  for (ColumnFamilyData* family : *db_->versions_->GetColumnFamilySet()) {
    db_->bottommost_files_mark_threshold_ = std::min(
        db_->bottommost_files_mark_threshold_, FirstUndecided(*family));
  }
  // What a bound keeps from being marked is when it is given up. Where nothing
  // would be, the release need not be told: bounds come and go with every scan.
  const VersionStorageInfo& version = *cfd->current()->storage_info();
  const SequenceNumber threshold =
      std::min(version.bottommost_files_mark_threshold(),
               version.standalone_range_tombstone_files_mark_threshold());
  if (cfd->address_map_store() != nullptr && threshold != kMaxSequenceNumber &&
      WaitsForBounds(*cfd, threshold + 1)) {
    map_work_.WaitForMarking(cfd->GetID());
  }
}

void DBStrata::MarkAfterBounds() {
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    const std::set<uint32_t> due = map_work_.TakeMarkingDue();
    if (due.empty() || db_->shutting_down_.load(std::memory_order_acquire)) {
      return;
    }
    for (const uint32_t id : due) {
      ColumnFamilyData* const cfd =
          db_->versions_->GetColumnFamilySet()->GetColumnFamily(id);
      if (cfd != nullptr && !cfd->AllowIngestBehind()) {
        // ReleaseSnapshot() has left the family out of the threshold.
        db_->bottommost_files_mark_threshold_ =
            std::min(db_->bottommost_files_mark_threshold_,
                     BottommostMarkThreshold(cfd));
      }
    }
  }
  // Marks what has become reclaimable, with no other effect.
  db_->ReleaseSnapshot(db_->GetSnapshot());
}

void DBStrata::InstallMissingSuperVersions() {
  db_->mutex_.AssertHeld();
  SuperVersionContext sv_context(/*create_superversion=*/false);
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    // A family whose creation has failed half-way has no SuperVersion.
    if (cfd->address_map_store() != nullptr && !cfd->IsDropped() &&
        cfd->initialized() &&
        cfd->GetSuperVersion()->current != cfd->current()) {
      sv_context.NewSuperVersion();
      db_->InstallSuperVersionAndScheduleWork(cfd, &sv_context);
    }
  }
  db_->mutex_.Unlock();
  sv_context.Clean();
  db_->mutex_.Lock();
}

void DBStrata::FinishMapRemovals() {
  db_->mutex_.AssertHeld();
  for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    AddressMapStore* const blobs = cfd->address_map_store();
    if (blobs == nullptr || cfd->IsDropped()) {
      continue;
    }
    while (blobs->retired_removals()->Has(UINT64_MAX) ||
           blobs->BlockedUntil() != kMaxSequenceNumber) {
      const auto retired =
          blobs->retired_removals()->Take(UINT64_MAX, AddressMapStore::kSlice);
      db_->mutex_.Unlock();
      blobs->ApplyBlockedRemovals(kMaxSequenceNumber);
      for (const auto& removals : retired) {
        removals->Remove(blobs->map());
        if (!removals->complete()) {
          blobs->SetInexact();
        }
      }
      db_->mutex_.Lock();
    }
    if (blobs->range_deletions()->Count() > 0) {
      // The next open builds the map anew, without what they cover.
      blobs->SetInexact();
    }
  }
}

void DBStrata::DropEmptyBlobFiles(ColumnFamilyData* cfd,
                                  Env::IOActivity activity,
                                  SuperVersionContext* sv_context) {
  db_->mutex_.AssertHeld();
  AddressMapStore* const blobs = cfd->address_map_store();
  if (!blobs->HasDroppableFiles() || cfd->IsDropped() ||
      db_->shutting_down_.load(std::memory_order_acquire) ||
      db_->error_handler_.IsBGWorkStopped()) {
    return;
  }
  VersionEdit edit;
  edit.SetColumnFamily(cfd->GetID());
  const std::vector<uint64_t> numbers =
      blobs->AddDrops(*cfd->current()->storage_info(), &edit);
  if (numbers.empty()) {
    return;
  }
  TEST_SYNC_POINT("DBStrata::DropEmptyBlobFiles:BeforeEdit");
  // May load tables of other edits of the same group.
  const ReadOptions read_options(activity);
  const WriteOptions write_options(activity);
  const Status s =
      db_->versions_->LogAndApply(cfd, read_options, write_options, &edit,
                                  &db_->mutex_, db_->directories_.GetDbDir());
  blobs->FinishDrops(numbers);
  if (s.ok()) {
    if (sv_context->new_superversion == nullptr) {
      sv_context->NewSuperVersion();
    }
    db_->InstallSuperVersionAndScheduleWork(cfd, sv_context);
    RecordTick(db_->stats_, BLOB_MAP_FILES_DROPPED, numbers.size());
    ROCKS_LOG_INFO(db_->immutable_db_options_.info_log,
                   "[%s] Dropped %zu blob files without live values",
                   cfd->GetName().c_str(), numbers.size());
  } else if (!s.IsColumnFamilyDropped() && !s.IsShutdownInProgress()) {
    db_->error_handler_.SetBGError(s, BackgroundErrorReason::kManifestWrite);
  }
}

// Those of column families with a map, and of others beside. To ask the file
// itself whether it is complete could fail, and then it would stay.
std::unordered_set<uint64_t> DBStrata::ObsoleteBlobFiles(
    const JobContext& state) const {
  std::unordered_set<uint64_t> numbers;
  const auto has_several_paths = [this] {
    InstrumentedMutexLock lock(&db_->mutex_);
    return AllDirectories().AreSeveral();
  };
  if (!state.blob_delete_files.empty() &&
      (has_address_maps_ || has_several_paths())) {
    for (const ObsoleteBlobFileInfo& file : state.blob_delete_files) {
      numbers.insert(file.GetBlobFileNumber());
    }
  }
  return numbers;
}

}  // namespace ROCKSDB_NAMESPACE
