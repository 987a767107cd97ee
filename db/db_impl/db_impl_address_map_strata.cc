//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What DBImpl does for column families with an address map.

#include <algorithm>
#include <set>
#include <unordered_set>
#include <vector>

#include "db/address_map/address_map_checkpoints.h"
#include "db/address_map/address_map_recovery.h"
#include "db/address_map/address_map_store.h"
#include "db/address_map/flush_mapping.h"
#include "db/address_map/map_iterators.h"
#include "db/address_map/map_point_read.h"
#include "db/address_map/mapped_file_removal.h"
#include "db/arena_wrapped_db_iter.h"
#include "db/db_impl/compacted_db_impl.h"
#include "db/db_impl/db_impl.h"
#include "db/flush_job.h"
#include "db/job_context.h"
#include "db/lookup_key.h"
#include "db/merge_context.h"
#include "db/pinned_iterators_manager.h"
#include "db/version_edit.h"
#include "logging/logging.h"
#include "monitoring/iostats_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "options/options_helper.h"
#include "options/strata/address_map_options.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

uint64_t OldestVersionNumber(ColumnFamilyData* cfd) {
  return cfd->dummy_versions()->Next()->GetVersionNumber();
}

}  // namespace

SequenceNumber DBImpl::EarliestSnapshot() {
  mutex_.AssertHeld();
  SequenceNumber earliest = GetLastPublishedSequence();
  if (!snapshots_.empty()) {
    earliest = std::min(earliest, snapshots_.oldest()->number_);
  }
  return earliest;
}

SequenceNumber DBImpl::EarliestReader(const ColumnFamilyData& cfd) {
  // The registries want the others to be read before they are asked.
  const SequenceNumber earliest = EarliestSnapshot();
  return std::min(earliest, ReadBoundsOf(cfd).Min());
}

FamilyImplicitSnapshots DBImpl::ReadBoundsOf(const ColumnFamilyData& cfd) {
  return FamilyImplicitSnapshots(&shared_read_bounds_,
                                 cfd.address_map_store() == nullptr
                                     ? nullptr
                                     : cfd.address_map_store()->read_bounds());
}

void DBImpl::MergeReadBounds(const autovector<ColumnFamilyData*>& cfds,
                             std::vector<SequenceNumber>* snapshots) {
  mutex_.AssertHeld();
  for (ColumnFamilyData* cfd : cfds) {
    ReadBoundsOf(*cfd).MergeInto(snapshots);
  }
}

bool DBImpl::WaitsForBounds(const ColumnFamilyData& cfd, SequenceNumber limit) {
  mutex_.AssertHeld();
  const FamilyImplicitSnapshots::Blocker blocker =
      ReadBoundsOf(cfd).NotifyWhenNoneBelow(limit);
  if (blocker == FamilyImplicitSnapshots::Blocker::kShared) {
    map_work_.WaitForSharedBounds(cfd.GetID());
  }
  return blocker != FamilyImplicitSnapshots::Blocker::kNone;
}

bool DBImpl::MapIsAnyOrder() const {
  // Write-prepared and write-unprepared transactions; and numbers that are
  // published before their entries can be read.
  return use_custom_gc_ || immutable_db_options_.unordered_write;
}

AddressMapCheckpoint::Io DBImpl::MapImageIo(Env::IOActivity activity) const {
  AddressMapCheckpoint::Io io;
  io.io_options.io_activity = activity;
  io.fs = immutable_db_options_.fs.get();
  io.file_options = file_options_;
  io.use_fsync = immutable_db_options_.use_fsync;
  return io;
}

Status DBImpl::RecoverAddressMaps() {
  mutex_.AssertHeld();
  AddressMapCheckpoints images(MapImageIo(Env::IOActivity::kDBOpen), dbname_,
                               immutable_db_options_.info_log.get());
  bool has_mapped = false;
  for (ColumnFamilyData* cfd : *versions_->GetColumnFamilySet()) {
    has_mapped |= AddressMapRecovery::HasMapped(*cfd);
  }
  // Best-efforts recovery may end before the last edit of the MANIFEST.
  if (has_mapped && !immutable_db_options_.best_efforts_recovery) {
    images.Find(versions_->manifest_file_number(),
                versions_->manifest_file_size());
  }
  Status s;
  for (ColumnFamilyData* cfd : *versions_->GetColumnFamilySet()) {
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

FlushMapping* DBImpl::BeginRecoveryMapping(ColumnFamilyData* cfd,
                                           uint64_t sst_number) {
  mutex_.AssertHeld();
  // The files of earlier ones are in no Version yet: with these, nobody knows
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

void DBImpl::SettleRecoveryMappings() {
  mutex_.AssertHeld();
  for (auto& mapping : recovery_mappings_) {
    mapping->Close();
    mutex_.Unlock();
    mapping->Settle(/*readers=*/{});  // none yet
    mutex_.Lock();
    mapping.reset();
  }
  recovery_mappings_.clear();
}

void DBImpl::SaveAddressMaps() {
  mutex_.AssertHeld();
  SettleRecoveryMappings();
  // After an error nobody knows which edits the MANIFEST has.
  if (!opened_successfully_ || read_only_ ||
      !error_handler_.GetBGError().ok() || !versions_->io_status().ok()) {
    return;
  }
  AddressMapCheckpoints images(MapImageIo(Env::IOActivity::kUnknown), dbname_,
                               immutable_db_options_.info_log.get());
  std::vector<uint64_t> tables;
  std::vector<uint64_t> blob_files;
  versions_->AddLiveFiles(&tables, &blob_files);
  std::unordered_set<uint64_t> live(tables.begin(), tables.end());
  live.insert(blob_files.begin(), blob_files.end());
  // Numbers that were given out: new ones would make the next open write an
  // edit, after which no other open could use the images.
  uint64_t next = versions_->current_next_file_number();
  const auto new_number = [&] {
    while (next > 1) {
      if (live.count(--next) == 0) {
        return next;
      }
    }
    return versions_->NewFileNumber();
  };
  uint64_t unfinished = 0;
  for (ColumnFamilyData* cfd : *versions_->GetColumnFamilySet()) {
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
    mutex_.Unlock();
    images.Save(cfd, unfinished, number).PermitUncheckedError();
    mutex_.Lock();
  }
}

Status DBImpl::RecoverAddressMap(ColumnFamilyData* cfd,
                                 AddressMapCheckpoints* images) {
  AddressMapRecovery::Options options;
  options.file_options = file_options_;
  options.num_threads = std::max(
      1, std::min(immutable_db_options_.max_file_opening_threads,
                  static_cast<int>(port::Thread::hardware_concurrency())));
  options.allow_lost_values = !immutable_db_options_.paranoid_checks;
  options.all_versions = use_custom_gc_;
  if (AddressMapRecovery::HasMapped(*cfd)) {
    const Status s = ValidateOptionsOfMappedValues(
        BuildDBOptions(immutable_db_options_, mutable_db_options_),
        cfd->GetLatestCFOptions());
    if (!s.ok()) {
      return s;
    }
    if (MapIsAnyOrder() && !read_only_ &&
        cfd->current()->storage_info()->mapped_stats().num_direct > 0) {
      return Status::NotSupported(
          "Column family " + cfd->GetName() +
          " has values in direct mode (enable_lsm_bypass), which cannot be "
          "combined with write-prepared and write-unprepared transactions and "
          "unordered_write: what is newer than such a value is not told by its "
          "sequence number. Open the database without them, with "
          "enable_lsm_bypass = false, and CompactRange() with kForce first");
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
    AddBlobGcThreads();
    if (MapIsAnyOrder() && !read_only_) {
      // An image may have modes that no SST file has any more.
      cfd->address_map_store()->map()->DemoteAll();
    }
  }
  return s;
}

namespace {

// Undoes what a point read has put into its results.
void ResetResults(DBImpl::GetImplOptions* options) {
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

}  // namespace

Status DBImpl::GetWithMap(const ReadOptions& read_options, const Slice& key,
                          GetImplOptions& get_impl_options) {
  auto* const cfd = static_cast_with_check<ColumnFamilyHandleImpl>(
                        get_impl_options.column_family)
                        ->cfd();
  MapPointRead map_read(cfd, key, read_options,
                        cfd->address_map_store()->read_bounds());
  if (get_impl_options.get_merge_operands_options != nullptr &&
      get_impl_options.get_merge_operands_options->continue_cb != nullptr) {
    map_read.BoundFromTheStart();  // the callback counts operands
  }
  get_impl_options.map_read = &map_read;
  Status s = DBImpl::GetImpl(read_options, key, get_impl_options);
  while (map_read.NeedsRestart()) {
    ResetResults(&get_impl_options);
    s = DBImpl::GetImpl(read_options, key, get_impl_options);
  }
  get_impl_options.map_read = nullptr;
  return s;
}

Status DBImpl::GetLatestMappedSequence(
    SuperVersion* sv, const LookupKey& key, const ReadOptions& read_options,
    SequenceNumber max_covering_tombstone_seq, SequenceNumber* seq,
    bool* found) {
  if (UNLIKELY(sv->cfd->address_map_store()->refuses_reads())) {
    return sv->cfd->address_map_store()->read_refusal();
  }
  SequenceNumber newest = 0;
  MapPointRead read(sv->cfd, key.user_key(), read_options,
                    /*bounds=*/nullptr);
  MergeContext merge_context;
  read.FindNewest(&newest, &max_covering_tombstone_seq, &merge_context);
  Status s;
  PinnedIteratorsManager pinned_iters_mgr;
  sv->current->Get(read_options, key, /*value=*/nullptr, /*columns=*/nullptr,
                   /*timestamp=*/nullptr, &s, &merge_context,
                   &max_covering_tombstone_seq, &pinned_iters_mgr);
  if (!read.stopped()) {
    ROCKS_LOG_ERROR(immutable_db_options_.info_log,
                    "Unexpected status returned from Version::Get: %s\n",
                    s.ToString().c_str());
    return s;
  }
  // It stopped before delta files were asked.
  SequenceNumber delta = 0;
  s = sv->current->NewestDelta(read_options, key, &delta);
  if (!s.ok()) {
    return s;
  }
  newest = std::max(newest, delta);
  // After the SuperVersion was taken: a direct entry of its files that is not
  // in the map now was overwritten by a write that the transaction, which holds
  // the key's lock or checks it at its commit, sees in the memtables.
  SequenceNumber direct = 0;
  if (sv->cfd->address_map_store()->map()->DirectSeq(read.hash(), &direct)) {
    newest = std::max(newest, direct);
  }
  *found = newest > 0;
  if (*found) {
    *seq = std::max(newest, max_covering_tombstone_seq);
  }
  return s;
}

ImplicitSnapshotRegistry::ReadBound DBImpl::RegisterReadBound(
    ColumnFamilyData* cfd, const ReadOptions& read_options) {
  if (cfd->address_map_store() == nullptr) {
    return ImplicitSnapshotRegistry::ReadBound();
  }
  ImplicitSnapshotRegistry* const bounds =
      cfd->address_map_store()->read_bounds();
  ImplicitSnapshotRegistry::ReadBound bound =
      read_options.snapshot != nullptr
          ? bounds->RegisterAt(read_options.snapshot->GetSequenceNumber())
          : bounds->Register([this] { return GetLatestSequenceNumber(); });
  TEST_SYNC_POINT("DBImpl::RegisterReadBound:Registered");
  return bound;
}

ArenaWrappedDBIter* DBImpl::WithReadBound(ColumnFamilyData* cfd,
                                          SequenceNumber sequence,
                                          ArenaWrappedDBIter* iter) {
  if (cfd->address_map_store() != nullptr) {
    iter->SetReadBound(
        cfd->address_map_store()->read_bounds()->RegisterAt(sequence));
  }
  return iter;
}

InternalIterator* DBImpl::WrapTailingIterator(ColumnFamilyData* cfd,
                                              const ReadOptions& read_options,
                                              const SuperVersion* super_version,
                                              InternalIterator* iter) {
  return MapIterators::WrapTailing(
      cfd, read_options, [this] { return GetLatestSequenceNumber(); },
      super_version->mutable_cf_options.prefix_extractor.get(), iter);
}

void DBImpl::SettleFlush(ColumnFamilyData* cfd, FlushJob* job,
                         SuperVersionContext* sv_context) {
  mutex_.AssertHeld();
  if (cfd->address_map_store() == nullptr) {
    return;
  }
  std::vector<SequenceNumber> readers;
  snapshots_.GetAll(&readers);
  const SequenceNumber published = GetLastPublishedSequence();
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

void DBImpl::SettleCompaction(ColumnFamilyData* cfd, CompactionJob* job,
                              SuperVersionContext* sv_context) {
  mutex_.AssertHeld();
  if (cfd->address_map_store() == nullptr) {
    return;
  }
  const Status s = job->SettleMapping();
  // For WaitForSettledMap().
  bg_cv_.SignalAll();
  SetBlobGcDue();
  if (!s.ok()) {
    error_handler_.SetBGError(s, BackgroundErrorReason::kCompaction);
  }
  DropEmptyBlobFiles(cfd, Env::IOActivity::kCompaction, sv_context);
  ScheduleMapRemovals(cfd);
}

Status DBImpl::WaitForSettledMap(ColumnFamilyData* cfd) {
  mutex_.AssertHeld();
  if (cfd->address_map_store() == nullptr) {
    return Status::OK();
  }
  const UnsettledMapJobs& jobs = *cfd->address_map_store()->unsettled_jobs();
  // The caller's Version has no edit of a job that begins from now on.
  const uint64_t begun = jobs.NumBegun();
  while (jobs.HasAnyOfFirst(begun)) {
    TEST_SYNC_POINT("DBImpl::WaitForSettledMap:Waits");
    bg_cv_.Wait();
  }
  return jobs.failure();
}

void DBImpl::OnReadBoundsReleased(uint32_t column_family_id) {
  InstrumentedMutexLock lock(&mutex_);
  map_work_.OnBoundsReleased(column_family_id);
  ScheduleMapRemovals();
}

void DBImpl::OnSharedReadBoundsReleased() {
  InstrumentedMutexLock lock(&mutex_);
  map_work_.OnSharedBoundsReleased();
  ScheduleMapRemovals();
}

void DBImpl::ScheduleMapRemovals(ColumnFamilyData* cfd) {
  mutex_.AssertHeld();
  cfd->address_map_store()->SignalWork();
  ScheduleMapRemovals();
}

void DBImpl::ScheduleMapRemovals() {
  mutex_.AssertHeld();
  if (!opened_successfully_ || read_only_ || bg_work_paused_ > 0 ||
      shutting_down_.load(std::memory_order_acquire) ||
      error_handler_.IsBGWorkStopped()) {
    return;
  }
  const SequenceNumber earliest = EarliestSnapshot();
  if (map_work_.HasNews(earliest)) {
    for (const uint32_t id : map_work_.TakeNews(earliest)) {
      ColumnFamilyData* const cfd =
          versions_->GetColumnFamilySet()->GetColumnFamily(id);
      if (cfd != nullptr) {
        FindMapWork(cfd, /*also_for_drops=*/true);
      }
    }
  }
  ScheduleRangeSweeps();
  if (!map_removals_scheduled_ &&
      (map_work_.HasRemovalsDue() || map_work_.HasMarkingDue())) {
    map_removals_scheduled_ = true;
    ++bg_purge_scheduled_;
    // Like flushes: Close() waits for it, so it must not queue for threads
    // that there are none of.
    const Env::Priority pool =
        env_->GetBackgroundThreads(Env::Priority::HIGH) == 0
            ? Env::Priority::LOW
            : Env::Priority::HIGH;
    env_->Schedule(&DBImpl::BGWorkMapRemovals, this, pool, nullptr);
  }
}

void DBImpl::FindMapWork(ColumnFamilyData* cfd, bool also_for_drops) {
  mutex_.AssertHeld();
  TEST_SYNC_POINT_CALLBACK("DBImpl::FindMapWork", cfd);
  AddressMapStore* const blobs = cfd->address_map_store();
  if (blobs == nullptr || cfd->IsDropped()) {
    return;
  }
  const SequenceNumber earliest = EarliestSnapshot();
  // A release of a snapshot finds what waits for it in the queue. A release of
  // a bound must be asked for.
  SequenceNumber wait = kMaxSequenceNumber;
  bool due = (also_for_drops && blobs->HasDroppableFiles()) ||
             blobs->HasRetired(OldestVersionNumber(cfd));
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
        ranges.BlockedUntil(immutable_db_options_.clock->NowMicros());
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

void DBImpl::BGWorkMapRemovals(void* db) {
  IOSTATS_SET_THREAD_POOL_ID(Env::Priority::HIGH);
  TEST_SYNC_POINT("DBImpl::BGWorkMapRemovals:Start");
  static_cast<DBImpl*>(db)->BackgroundMapRemovals();
}

void DBImpl::BackgroundMapRemovals() {
  JobContext job_context(next_job_id_.fetch_add(1),
                         /*_create_superversion=*/true);
  {
    InstrumentedMutexLock lock(&mutex_);
    const std::set<uint32_t> due = map_work_.TakeRemovalsDue();
    for (const uint32_t id : due) {
      ColumnFamilyData* const cfd =
          versions_->GetColumnFamilySet()->GetColumnFamily(id);
      if (cfd == nullptr) {
        continue;  // dropped
      }
      cfd->Ref();
      AddressMapStore* const blobs = cfd->address_map_store();
      const SequenceNumber earliest = EarliestReader(*cfd);
      const auto retired = blobs->TakeRetired(OldestVersionNumber(cfd));
      mutex_.Unlock();
      blobs->ApplyBlockedRemovals(earliest);
      for (const auto& removals : retired) {
        removals->Remove(blobs->map());
        if (!removals->complete()) {
          blobs->SetInexact();
        }
      }
      mutex_.Lock();
      DropEmptyBlobFiles(cfd, Env::IOActivity::kUnknown,
                         job_context.superversion_contexts.data());
      // For what has become possible meanwhile. A drop that has failed waits
      // for another occasion.
      FindMapWork(cfd, /*also_for_drops=*/false);
      cfd->UnrefAndTryDelete();
    }
    FindObsoleteFiles(&job_context, /*force=*/false);
    SetBlobGcDue();
    ScheduleBlobGc();
    map_removals_scheduled_ = false;
    ScheduleMapRemovals();
  }
  if (job_context.HaveSomethingToDelete()) {
    PurgeObsoleteFiles(job_context);
  }
  job_context.Clean();
  MarkAfterBounds();

  InstrumentedMutexLock lock(&mutex_);
  --bg_purge_scheduled_;
  // The DB may be gone once the mutex is released after this.
  bg_cv_.SignalAll();
}

void DBImpl::FinishMappedRemoval(MappedFileRemoval* removal, bool committed) {
  mutex_.AssertHeld();
  removal->Finish(committed);
  if (!committed) {
    mutex_.Unlock();
    const Status s = removal->Undo();
    mutex_.Lock();
    if (!versions_->io_status().ok()) {
      error_handler_.SetBGError(versions_->io_status(),
                                BackgroundErrorReason::kManifestWrite);
    }
    if (!s.ok()) {
      error_handler_.SetBGError(s, BackgroundErrorReason::kManifestWrite);
    }
  }
  // For WaitForSettledMap().
  bg_cv_.SignalAll();
}

SequenceNumber DBImpl::LimitMarking(ColumnFamilyData* cfd,
                                    SequenceNumber oldest_snapshot) {
  mutex_.AssertHeld();
  if (cfd->address_map_store() == nullptr) {
    return oldest_snapshot;
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

SequenceNumber DBImpl::BottommostMarkThreshold(ColumnFamilyData* cfd) {
  return map_work_.WaitsForMarking(cfd->GetID())
             ? kMaxSequenceNumber
             : cfd->current()
                   ->storage_info()
                   ->bottommost_files_mark_threshold();
}

void DBImpl::WatchMarking(ColumnFamilyData* cfd) {
  mutex_.AssertHeld();
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

void DBImpl::MarkAfterBounds() {
  {
    InstrumentedMutexLock lock(&mutex_);
    const std::set<uint32_t> due = map_work_.TakeMarkingDue();
    if (due.empty() || shutting_down_.load(std::memory_order_acquire)) {
      return;
    }
    for (const uint32_t id : due) {
      ColumnFamilyData* const cfd =
          versions_->GetColumnFamilySet()->GetColumnFamily(id);
      if (cfd != nullptr && !cfd->AllowIngestBehind()) {
        // ReleaseSnapshot() has left the family out of the threshold.
        bottommost_files_mark_threshold_ = std::min(
            bottommost_files_mark_threshold_, BottommostMarkThreshold(cfd));
      }
    }
  }
  // Marks what has become reclaimable, with no other effect.
  ReleaseSnapshot(GetSnapshot());
}

void DBImpl::InstallMissingSuperVersions() {
  mutex_.AssertHeld();
  SuperVersionContext sv_context(/*create_superversion=*/false);
  for (ColumnFamilyData* cfd : *versions_->GetColumnFamilySet()) {
    if (cfd->address_map_store() != nullptr && !cfd->IsDropped() &&
        cfd->GetSuperVersion()->current != cfd->current()) {
      sv_context.NewSuperVersion();
      InstallSuperVersionAndScheduleWork(cfd, &sv_context);
    }
  }
  mutex_.Unlock();
  sv_context.Clean();
  mutex_.Lock();
}

void DBImpl::FinishMapRemovals() {
  mutex_.AssertHeld();
  for (ColumnFamilyData* cfd : *versions_->GetColumnFamilySet()) {
    AddressMapStore* const blobs = cfd->address_map_store();
    if (blobs == nullptr || cfd->IsDropped()) {
      continue;
    }
    while (blobs->HasRetired(UINT64_MAX) ||
           blobs->BlockedUntil() != kMaxSequenceNumber) {
      const auto retired = blobs->TakeRetired(UINT64_MAX);
      mutex_.Unlock();
      blobs->ApplyBlockedRemovals(kMaxSequenceNumber);
      for (const auto& removals : retired) {
        removals->Remove(blobs->map());
        if (!removals->complete()) {
          blobs->SetInexact();
        }
      }
      mutex_.Lock();
    }
    if (blobs->range_deletions()->Count() > 0) {
      // The next open builds the map anew, without what they cover.
      blobs->SetInexact();
    }
  }
}

void DBImpl::DropEmptyBlobFiles(ColumnFamilyData* cfd, Env::IOActivity activity,
                                SuperVersionContext* sv_context) {
  mutex_.AssertHeld();
  AddressMapStore* const blobs = cfd->address_map_store();
  if (!blobs->HasDroppableFiles() || cfd->IsDropped() ||
      shutting_down_.load(std::memory_order_acquire) ||
      error_handler_.IsBGWorkStopped()) {
    return;
  }
  VersionEdit edit;
  edit.SetColumnFamily(cfd->GetID());
  const std::vector<uint64_t> numbers =
      blobs->AddDrops(*cfd->current()->storage_info(), &edit);
  if (numbers.empty()) {
    return;
  }
  TEST_SYNC_POINT("DBImpl::DropEmptyBlobFiles:BeforeEdit");
  // May load tables of other edits of the same group.
  const ReadOptions read_options(activity);
  const WriteOptions write_options(activity);
  const Status s =
      versions_->LogAndApply(cfd, read_options, write_options, &edit, &mutex_,
                             directories_.GetDbDir());
  blobs->FinishDrops(numbers);
  if (s.ok()) {
    if (sv_context->new_superversion == nullptr) {
      sv_context->NewSuperVersion();
    }
    InstallSuperVersionAndScheduleWork(cfd, sv_context);
    RecordTick(stats_, BLOB_MAP_FILES_DROPPED, numbers.size());
    ROCKS_LOG_INFO(immutable_db_options_.info_log,
                   "[%s] Dropped %zu blob files without live values",
                   cfd->GetName().c_str(), numbers.size());
  } else if (!s.IsColumnFamilyDropped() && !s.IsShutdownInProgress()) {
    error_handler_.SetBGError(s, BackgroundErrorReason::kManifestWrite);
  }
}

// Those of column families with a map, and of others beside. To ask the file
// itself whether it is complete could fail, and then it would stay.
std::unordered_set<uint64_t> DBImpl::ObsoleteBlobFiles(
    const JobContext& state) const {
  std::unordered_set<uint64_t> numbers;
  if (UNLIKELY(has_address_maps_)) {
    for (const ObsoleteBlobFileInfo& file : state.blob_delete_files) {
      numbers.insert(file.GetBlobFileNumber());
    }
  }
  return numbers;
}

}  // namespace ROCKSDB_NAMESPACE
