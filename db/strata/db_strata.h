//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "db/address_map/address_map_checkpoint.h"
#include "db/address_map/map_work_queue.h"
#include "db/blob_heat/blob_heat_picker.h"
#include "db/db_impl/db_impl.h"
#include "db/strata/background_job_scheduler.h"
#include "db/strata/family_implicit_snapshots.h"
#include "db/strata/flush_order_gate.h"
#include "db/strata/implicit_snapshot_registry.h"
#include "db/strata/write_stall_release.h"
#include "db/write_path/wal_buffer.h"
#include "db/write_path/wal_buffer_recovery.h"
#include "file/strata/path_probe.h"
#include "file/strata/space_recovery.h"
#include "file/strata/space_reservations.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapCheckpoints;
class Compaction;
class DeltaFileDeletion;
class DeltaFlush;
class DeltaFoldCommit;
class DeltaGcJob;
class DeltaValueFolder;
class ImportColumnFamilyJob;
class MappedFileRemoval;
class OpenPaths;
class OptionsConfig;
class PointRead;
class PrometheusText;
class SpaceNeeds;
class SstFileManagerImpl;
struct DeltaFoldJob;
struct MigratePathsOptions;
struct MigratePathsProgress;

// Everything that Strata adds to a DBImpl: the wiring of address maps, blob
// garbage collection, delta files, implicit snapshots, the WAL buffer and
// combined write groups. DBImpl has one, and calls it at its seams; the rooms
// beside this folder do the work, and most of them do not know DBImpl.
//
// The parts are in files of their own: db_strata_address_map.cc,
// db_strata_blob_gc.cc, db_strata_blob_heat.cc, db_strata_range_deletions.cc,
// db_strata_deltas.cc, db_strata_delta_jobs.cc, db_strata_delta_drain.cc,
// db_strata_delta_fold.cc, db_strata_delta_deletion.cc,
// db_strata_delta_ingestion.cc,
// db_strata_blob_checksums.cc, db_strata_delta_checksums.cc,
// db_strata_wal_buffer.cc, db_strata_recovered_wals.cc, db_strata_wal_use.cc,
// db_strata_resume.cc, db_strata_quarantine.cc, db_strata_flush_order.cc,
// db_strata_paths.cc, db_strata_path_migration.cc, db_strata_space.cc,
// db_strata_path_faults.cc, db_strata_dropped_family.cc,
// db_strata_metrics.cc, db_strata_background_jobs.cc and
// db_strata_write_groups.cc. The background jobs are classes of their own:
// background_*.h.
//
// Thread-safety. "mutex" is DBImpl's. A declaration says whether its function
// is called with the mutex held, and whether it may release it meanwhile:
//   held       REQUIRES: the mutex is held; it stays held.
//   released   REQUIRES: the mutex is held; it may be released and taken again.
//   not held   REQUIRES: the mutex is not held.
//   any        The mutex may be held or not.
class DBStrata {
 public:
  // Validates the DB options that Strata adds, and their combinations with
  // others. Any.
  static Status ValidateOptions(const DBOptions& db_options);

  // Validates the options as DB::Open() does before it looks at the database.
  // Any.
  static Status ValidateOpen(
      const DBOptions& db_options,
      const std::vector<ColumnFamilyDescriptor>& column_families);

  // REQUIRES: db outlives this object, which is a member of it.
  explicit DBStrata(DBImpl* db);
  ~DBStrata();
  DBStrata(const DBStrata&) = delete;
  DBStrata& operator=(const DBStrata&) = delete;

  // ---- The file of STRATA_CONFIG, for column families that are created later.
  // REQUIRES: DBImpl::options_mutex_ is held; it stays held.

  // To be called at the end of an open. config: nullptr: there is none.
  void KeepOptionsConfig(std::shared_ptr<OptionsConfig> config) {
    options_config_ = std::move(config);
  }
  const std::shared_ptr<OptionsConfig>& options_config() const {
    return options_config_;
  }

  // ---- Paths. Held.

  // Creates the directories of an open with several paths, and those of WALs;
  // does nothing with one path, for which DBImpl::Open() creates them. If the
  // database exists, the open calls it when MissingPathCheck has found the
  // MANIFEST's files: an empty directory in place of a missing device would
  // hide that the device is missing.
  Status CreatePaths(const OpenPaths& paths);
  // Returns s, the error of an attempt to list the directory, with its path.
  // REQUIRES: the MANIFEST has been read
  Status AddPathToListingError(const std::string& directory,
                               const Status& s) const;

  // ---- The migration of a column family to other paths.

  // MigratePaths(), see rocksdb/utilities/path_migration.h. Not held.
  Status MigratePaths(ColumnFamilyHandle* column_family,
                      const MigratePathsOptions& options,
                      MigratePathsProgress* progress);
  // Counts what the compaction has written if it has moved misplaced files.
  // status: of its commit. Held.
  void CountMoved(Compaction* compaction, const Status& status);

  // ---- Address maps: opening and closing.

  // Completes the address maps of all column families when the DB is opened.
  // Held.
  Status RecoverAddressMaps();
  // The same for one column family; also called when one is created. Held.
  // checkpoints: what the last Close() has left; may be nullptr.
  Status RecoverAddressMap(ColumnFamilyData* cfd,
                           AddressMapCheckpoints* checkpoints = nullptr);
  // Begins the mapping of a memtable that is flushed while the DB is opened.
  // Returns nullptr if the column family has no map. Held.
  FlushMapping* BeginRecoveryMapping(ColumnFamilyData* cfd,
                                     uint64_t sst_number);
  // Ends these mappings: their edits are committed, or the DB is closed. Held.
  void SettleRecoveryMappings();
  // Writes the checkpoints that the next RecoverAddressMaps() finds. Held.
  // REQUIRES: the MANIFEST is closed.
  void SaveAddressMaps();

  // ---- Address maps: commits of jobs.

  // Ends the job's part in the map, after its edit was committed and a
  // SuperVersion installed, or after it failed. Released.
  // A flush also lets the next one of the column family begin
  // (FlushOrderGate). To be called before its listeners: they may wait for it.
  void SettleFlush(ColumnFamilyData* cfd, FlushJob* job,
                   SuperVersionContext* sv_context);
  // The same for an atomic flush. args, jobs: of the same column families.
  void SettleFlushes(const autovector<DBImpl::BGFlushArg>& args,
                     const std::vector<std::unique_ptr<FlushJob>>& jobs);
  void SettleCompaction(ColumnFamilyData* cfd, CompactionJob* job,
                        SuperVersionContext* sv_context);
  // committed: the edit of DeleteFilesInRanges() was committed. Released.
  void SettleFileRemoval(MappedFileRemoval* removal, bool committed);
  // Waits until all jobs are settled that have changed, or are about to change,
  // what the map finds by keys alone (UnsettledMapJobs). To be called before a
  // job that builds on their edits. Returns an error if one of them could not
  // be settled. Released.
  Status WaitForSettledMap(ColumnFamilyData* cfd);
  // Waits until no such job of any of the families is unsettled. To be called
  // before a job that builds on the Versions that are current after the call.
  // Released.
  Status WaitForSettledMaps(const std::vector<ColumnFamilyData*>& families);
  // Has removals from address maps, and sweeps of range deletions, that have
  // become possible done in the background. Costs the same for any number of
  // column families if none of them has to be examined. Held.
  void ScheduleMapRemovals();
  // The same after an event of the column family that may have made work. Held.
  void ScheduleMapRemovals(ColumnFamilyData* cfd);
  // Does what is left when the DB is closed and there is no reader. Released.
  void FinishMapRemovals();
  // Installs SuperVersions for Versions that were appended without one: a
  // reader of a map takes the difference for a commit that is under way, and
  // waits for it. Held.
  void InstallMissingSuperVersions();
  // True once a column family has, or has had, a map.
  bool has_address_maps() const {
    return has_address_maps_.load(std::memory_order_relaxed);
  }

  // Returns the numbers of the blob files that the job is to delete and that a
  // Version has had, if these are deleted without a look at their footers: if a
  // column family has a map, or several paths, of which one's device may be
  // lost. RocksDB reads the footer of each, and keeps, and forgets, a file
  // whose footer it cannot read. Not held.
  std::unordered_set<uint64_t> ObsoleteBlobFiles(const JobContext& state) const;

  // ---- Reads. Not held.

  // Makes the PointRead of a GetImpl(), before its first attempt.
  static void MakePointRead(const ReadOptions& read_options, const Slice& key,
                            const DBImpl::GetImplOptions& options,
                            std::optional<PointRead>* point_read);
  // Undoes what an attempt of GetImpl() has put into its results.
  static void ResetResults(DBImpl::GetImplOptions* options);
  // Finds the newest sequence number of a key in the files and in the map.
  Status GetLatestMappedSequence(SuperVersion* sv, const LookupKey& key,
                                 const ReadOptions& read_options,
                                 SequenceNumber max_covering_tombstone_seq,
                                 SequenceNumber* seq, bool* found);
  InternalIterator* WrapTailingIterator(ColumnFamilyData* cfd,
                                        const ReadOptions& read_options,
                                        InternalIterator* iter);

  // ---- Implicit snapshots: readers without a snapshot of their own.

  // Registers an iterator that is about to be made: at the snapshot, or at the
  // newest sequence number. Registers nothing if the column family has no map.
  // To be called before the SuperVersion is taken. Not held.
  ImplicitSnapshotRegistry::ReadBound RegisterReadBound(
      ColumnFamilyData* cfd, const ReadOptions& read_options);
  // Gives the iterator an implicit snapshot of its own, if the column family
  // has a map. Any. REQUIRES: a snapshot or another implicit one protects the
  // sequence number.
  ArenaWrappedDBIter* WithReadBound(ColumnFamilyData* cfd,
                                    SequenceNumber sequence,
                                    ArenaWrappedDBIter* iter);
  // Adds the implicit snapshots to those that a job has to respect. Held.
  void MergeReadBounds(const autovector<ColumnFamilyData*>& cfds,
                       std::vector<SequenceNumber>* snapshots);
  // Those of readers of several column families; those of one column family are
  // in AddressMapStore::read_bounds().
  ImplicitSnapshotRegistry* shared_read_bounds() {
    return &shared_read_bounds_;
  }
  // Compactions keep what an implicit snapshot protects, so a file that has it
  // must not be marked for compaction before the snapshot is released. These
  // two limit UpdateOldestSnapshot(). Held.
  SequenceNumber LimitMarking(ColumnFamilyData* cfd,
                              SequenceNumber oldest_snapshot);
  // The column family's part of bottommost_files_mark_threshold_:
  // kMaxSequenceNumber while it waits for an implicit snapshot. Held.
  SequenceNumber BottommostMarkThreshold(ColumnFamilyData* cfd);
  // To be called after the column family's Version has changed. Held.
  void WatchMarking(ColumnFamilyData* cfd);

  // ---- Blob garbage collection.

  // DB::CollectBlobGarbage(). Not held.
  Status CollectBlobGarbage(const CollectBlobGarbageOptions& options,
                            ColumnFamilyHandle* column_family);
  // DBImpl::CompactRangeInternal(), and the delta files and blobs of the range.
  // Close() may end during the compaction, as in RocksDB; the call then does no
  // more, and returns ShutdownInProgress. Not held.
  Status CompactRangeAndBlobs(const CompactRangeOptions& options,
                              ColumnFamilyHandle* column_family,
                              const Slice* begin, const Slice* end,
                              const std::string& trim_ts);
  // Notes that there may be garbage to collect, or room for another job. Held.
  void SetBlobGcDue() { blob_gc_due_ = true; }
  // Returns true if a job was due, but not started because there were too many
  // jobs, since the last call. Held.
  bool TakeBlobGcRefused() { return std::exchange(blob_gc_refused_, false); }
  // Starts jobs where they are due. Held.
  void ScheduleBlobGc();
  // Notes that file deletions were disabled or enabled. While they are
  // disabled, garbage is not collected and does not slow writes down. Held;
  // released while listeners are called.
  void OnFileDeletionsSwitched();
  // Starts jobs that sort values for which scans have paid. Not held.
  void OnScanDebtDue();
  // Starts jobs for values that wait for a place on the hot path. Not held.
  void OnBlobHeatDue();
  // Has the next scan of a range that is due call OnScanDebtDue() again, and
  // the next read of a value that waits call OnBlobHeatDue(). Held.
  void ForgetDueJobs();
  // Compacts level 0 if scans have paid for it (Level0Debt). Not held.
  void OnLevel0DebtDue(ColumnFamilyData* cfd);
  // Returns ShutdownInProgress if the DB is being closed: whatever begins now,
  // Close() does not wait for it, and deletes the column families and the
  // handle of the default one. Held.
  Status CheckNotClosing() const;
  // Begins a call of the application that runs manual jobs, or more than one
  // manual compaction. Returns ShutdownInProgress, and begins none, if the DB
  // is being closed: the column family may be gone. Otherwise Close() waits for
  // EndManualCall(). Held.
  Status BeginManualCall(ColumnFamilyData* cfd);
  // The column family may be gone afterwards; then this releases the mutex.
  // REQUIRES: BeginManualCall() returned OK. Held.
  void EndManualCall(ColumnFamilyData* cfd) { scheduler_.EndManualCall(cfd); }
  // Runs a job that moves the values of a hot file which must not stay to their
  // home path, for MigratePaths(). Not held. REQUIRES: BeginManualCall() was
  // called.
  // is_busy: set to true if other jobs have all such files.
  // stuck: set to an error if no job can move them for now.
  Status DrainHotFile(ColumnFamilyData* cfd, const std::atomic<bool>* canceled,
                      uint64_t* bytes_written, bool* is_busy, Status* stuck);
  // True while calls of CollectBlobGarbage(), or of CompactRange() for delta
  // files, wait or run. Held.
  bool HasManualBlobGc() const { return scheduler_.HasManualCalls(); }

  // ---- Delta files: opening, flushes, other jobs that add or delete files.

  // Gives all column families that have delta files a DeltaStore. Held.
  Status RecoverDeltaStores();
  // The same for one column family; also called when one is created. Held.
  Status RecoverDeltaStore(ColumnFamilyData* cfd);
  bool has_delta_stores() const { return has_delta_stores_; }  // held
  // Closes the flush's delta files after its commit and before its listeners
  // are called, so that jobs that wait for it can go on. Held.
  void CloseDeltaFlush(const FlushJob& job);
  // Deletes the delta files of an atomic flush whose memtables are going to be
  // rolled back before an edit is written. All of them are in progress still:
  // held, but may release the mutex.
  void AbandonDeltaFlushes(const std::vector<std::unique_ptr<FlushJob>>& jobs);
  // Begins the delta files of a memtable that is flushed while the DB is
  // opened. The result lives until the edits of all of them are committed, or
  // the DB is closed. Held.
  // first_seq: the first sequence number in the memtable.
  DeltaFlush* BeginRecoveryDeltas(ColumnFamilyData* cfd,
                                  const FileDescriptor& sst_file,
                                  SequenceNumber first_seq);
  // Makes its files durable and puts them into the edit. Held.
  Status AddRecoveryDeltas(ColumnFamilyData* cfd, const DeltaFlush& flush,
                           const FileDescriptor& sst_file, VersionEdit* edit,
                           InternalStats::CompactionStats* stats);
  void EndRecoveryDeltas();  // held
  // To be called when the edits of a recovery have been written, or have
  // failed. Held.
  void EndRecovery();
  // DeleteFilesInRanges(): returns nullptr if the ranges have no operands.
  // Held.
  std::unique_ptr<DeltaFileDeletion> BeginDeltaFileDeletion(
      ColumnFamilyData* cfd, const autovector<UserKeyRangeOpt>& ranges,
      bool include_end);
  // The steps of a deletion of files before its edit. From the end on, readers
  // do not find the names of the files' values. After a failure nothing is
  // left of them but what SettleFileRemoval() leads back.
  // removal, deletion: nullptr for a column family without the feature.
  // Not held.
  Status PublishFileRemoval(ColumnFamilyData* cfd, int job_id,
                            MappedFileRemoval* removal,
                            DeltaFileDeletion* deletion);
  // Ends the deletion if its edit has failed, so that a full scan finds its
  // file; deletes the file if the edit was certainly not written.
  // s: the result of writing the edit.
  // Held; may release the mutex.
  void SettleDeltaFileDeletion(DeltaFileDeletion* deletion, const Status& s);
  // Returns NotSupported if the column family has delta files: the operands in
  // them are not in the SST files that another column family is to ingest.
  // file: path of such an SST file, for the message. Held.
  static Status CheckIngestibleElsewhere(ColumnFamilyData* cfd,
                                         const std::string& file);
  // Ingestions: before writes are stopped. Not held.
  Status WriteMissingDeltaAnchors(
      const std::vector<ExternalSstFileIngestionJob*>& jobs, bool all);
  // The same after writes were stopped: when it returns, no anchors are missing
  // and the maps are settled, until the mutex is released. Released.
  Status PrepareIngestionCommit(
      const std::vector<ExternalSstFileIngestionJob*>& jobs);

  // ---- Delta files: merges, bucket GC, folds, drains.

  // Notes that there may be something to do, or room for another job. Held.
  void SetDeltaJobsDue() { delta_jobs_due_ = true; }
  void SetDeltaOptionsChanged(ColumnFamilyData* cfd);  // held
  // Starts jobs where they are due. Held.
  void ScheduleDeltaJobs();
  void ResumeDrains();  // held
  // To be called after a column family was dropped. If it was the last one with
  // records that RocksDB refuses (IsRefusedByRocksDB()), begins a MANIFEST
  // without them, and tries that twice. A failure is none of the drop, which is
  // in the old MANIFEST: LOG tells of it, and it becomes the background error,
  // as a failed write of any other edit. Not held.
  void RollManifestAfterDrop(ColumnFamilyData* cfd);
  // Waits until no fold is between its beginning and its end. Folds do not wait
  // for the caller. Released.
  void WaitForDeltaFolds();
  // The same, and no fold begins while the object lives. Released.
  class DeltaFoldBlock {
   public:
    explicit DeltaFoldBlock(DBStrata* strata);
    ~DeltaFoldBlock();
    DeltaFoldBlock(const DeltaFoldBlock&) = delete;
    DeltaFoldBlock& operator=(const DeltaFoldBlock&) = delete;

   private:
    DBStrata* const strata_;
  };

  // ---- The parts of DB::VerifyChecksum() that are about blob files of address
  // maps and about delta files. Not held.

  Status VerifyAddressMapBlobs(const ReadOptions& read_options,
                               const SuperVersion& sv);
  Status VerifyDeltaChecksums(const ReadOptions& read_options,
                              const SuperVersion& sv, bool use_file_checksum);

  // ---- The WAL buffer (wal_mmap_buffer_size).

  // Gives WALs what the buffer of the last process has, or, with read_only,
  // keeps it for AppendWalBuffer(). Held.
  Status RecoverWalBuffer(const std::vector<std::string>& wal_dir_files,
                          bool read_only);
  // The number of bytes that a WAL lacks without AppendWalBuffer(). Held.
  uint64_t WalBufferBytes(uint64_t wal_number) const;
  void AppendWalBuffer(uint64_t wal_number,
                       std::unique_ptr<FSSequentialFile>* file);  // held
  Status CreateWalBuffer();                                       // held
  // While the WAL buffer may have bytes that no WAL has, the MANIFEST has a
  // mark that makes RocksDB refuse the DB. Adds the mark if there is a buffer,
  // and removes it if there is none. The DB accepts writes only after this.
  // Released.
  // REQUIRES: no other thread writes to the MANIFEST.
  Status MarkWalBuffer();
  // Deletes the buffer, unless a WAL still needs it, and then the mark.
  // Released.
  // REQUIRES: no other thread writes to the MANIFEST.
  void RemoveWalBuffer();
  Status WriteOutWalBuffer(const WriteOptions& write_options);  // not held
  // Reads the sizes of listed WALs again, except that of the last one. A WAL
  // can get bytes from the buffer until a newer one gets its first, also during
  // the listing: with the size from before, the list would have writes of the
  // newer WAL, but not all that were made before them. Does nothing without a
  // buffer. Not held. files: WALs in the order of their numbers. REQUIRES: file
  // deletions are disabled.
  Status CompleteWalSizes(VectorWalPtr* files);
  WalBuffer* wal_buffer() const { return wal_buffer_.get(); }

  // ---- Write groups that fail. What they have added to the WAL is taken back
  // if there is a WAL buffer: the recovery from the error would write the
  // buffer to the WAL, and complete them. Without a buffer, these functions do
  // nothing, except for two-phase commit: there a WAL can outlive the recovery.

  // Returns where a group that is about to be written to the WAL will begin.
  // REQUIRES: no other thread can append to the WAL. Any.
  WalPosition WalPositionOf(const log::Writer& wal) const {
    return takes_back_groups_ ? wal.GetPosition() : WalPosition();
  }
  // Takes a group back from the newest WAL, before others can append to that.
  // Without a buffer, only a part of a group is taken back. An open would stop
  // at the part, unless the next WAL begins with the group's sequence number.
  // If the file is not truncated, and a later write could make an open fail,
  // the error is made fatal. is_recorded: the WAL has the whole group, and the
  // error came later. Not held.
  void TakeBackGroup(const WalPosition& begin, bool is_recorded);
  // Called by the leader of a group that has failed. Returns true if the group
  // is in the WAL as a whole. Then no other group may have its sequence
  // numbers: an open refuses a record whose number is not behind that of the
  // one before. Any. REQUIRES: allow_2pc
  bool EndFailedGroup() { return std::exchange(failed_group_stays_, false); }
  // Takes a group back from the newest WAL if it could not be written, or notes
  // in *group where it ends. Its sequence numbers are not used again, so an
  // open stops at a part of it. Any. REQUIRES: DBImpl::wal_write_mutex_ is held
  void EndGroup(const IOStatus& s, WalExtent* group) {
    if (takes_back_groups_) {
      EndTrackedGroup(s, group);
    }
  }
  // Makes the error fatal if EndGroup() could not take the group back. Not
  // held.
  void StopIfGroupStays(const WalExtent& group) {
    if (UNLIKELY(group.stays)) {
      StopAtUncutGroup(group.wal_number, group.begin.offset);
    }
  }
  // Takes a group back whose sync has failed. With two write queues, others may
  // have appended behind it meanwhile. Then it has to stay, and the error is
  // made fatal: no newer WAL may follow it. If the WAL was synced, and only the
  // MANIFEST was not written, the group stays as well. Not held.
  // REQUIRES: the group's leader is still at the head of its queue
  void TakeBackUnsyncedGroup(WalExtent* group);
  // Keeps DBImpl::cached_recoverable_state_ for TakeBackUnsyncedGroup(), before
  // the group replaces it. Without a buffer, a group whose sync has failed
  // stays in the WAL, and so does its state, as in RocksDB. Any.
  // REQUIRES: DBImpl::wal_write_mutex_ is held
  void KeepRecoverableState(WalExtent* group) {
    if (wal_buffer_ != nullptr) {
      KeepBufferedState(group);
    }
  }
  // Tries again to take back what could not be taken back from the file of the
  // WAL. Called before memtables are switched: the switch would fail, with a
  // fatal error. Any.
  Status FinishWalCut() {
    return wal_buffer_ == nullptr ? Status::OK() : FinishBufferCut();
  }
  // DB::GetUpdatesSince(). The iterator ends with TryAgain when a group is
  // taken back, as it may have read that. Not held.
  Status GetUpdatesSince(SequenceNumber seq,
                         const TransactionLogIterator::ReadOptions& options,
                         std::unique_ptr<TransactionLogIterator>* iter);

  // ---- Recovered WALs.

  // Makes WALs durable that the open has read and that the next open needs, as
  // their data is not flushed: DBImpl::logs_ does not have them, so no later
  // SyncWAL() would. Held.
  // wal_numbers: of the WALs, sorted.
  // have_unflushed: memtables have data of them.
  Status SyncRecoveredWals(const std::vector<uint64_t>& wal_numbers,
                           bool have_unflushed);

  // ---- WALs that a replay would read.

  // Returns true if a replay of the WAL would insert entries into a column
  // family. The others skip it: their log numbers say that they have flushed
  // what it has. (A column family without entries skips it as soon as there is
  // a newer WAL; the MANIFEST may say so later.) Not held.
  bool IsWalOfAFamily(uint64_t wal_number);

  // ---- Combined write groups (WriteGroupCombiner).

  void OfferWriteLeadership(WriteThread::Writer* w, const Status& s,
                            const DBImpl::WriteContext& context);
  // PreprocessWrite() by a thread that is not the writer's.
  Status PreprocessLedWrite(WriteThread::Writer* w,
                            const WriteOptions& write_options,
                            DBImpl::WalContext* wal_context,
                            DBImpl::WriteContext* context, bool* handed_back);
  Status InsertLedGroup(WriteThread::WriteGroup* group);
  void LeadKeptWriteGroups(WriteThread::Writer* w);

  // ---- Full devices of a DB with several paths.

  // Lets the DB recover by itself from a full device, unless the application
  // has given no SstFileManager, or the file system does not tell free bytes.
  // REQUIRES: the directories exist. Held.
  // paths: the several directories of db_paths, and of cf_paths of all column
  // families.
  void EnableSpaceRecovery(const std::vector<std::string>& paths);
  // True if recoveries and compactions look for room on each path. False for a
  // DB with one path, for which the SstFileManager looks. Held.
  bool has_several_paths() const { return has_several_paths_; }
  // Returns true if the DB may recover from the background error by itself.
  // Held. REQUIRES: has_several_paths()
  bool CanRecoverFrom(const Status& error);
  // Returns true if the DB is being closed, and does not begin to recover from
  // the background error: Close() has ended what there was to end. It waits for
  // the end of each later recovery, and none ends then. Returns false if the DB
  // has one path. Held. REQUIRES: the DB could recover by itself otherwise
  bool IsTooLateToRecoverFrom(const Status& error);
  // Has the recovery from the background error done when there is room.
  // Returns false if the DB has one path. Held.
  bool StartSpaceRecovery(const Status& error);
  // Lets the DB recover from the error of a compaction although the paths of
  // its outputs may lack room, and compactions begin again: what Resume() does
  // beside a recovery that has not stopped background work. Does not wait.
  // Held.
  void ForgetFailedOutputs();
  // Ends that, and waits for a recovery that is under way. Returns true if the
  // DB was to recover. The same for what NotePathFault() has begun, which is no
  // recovery. Not held.
  bool CancelSpaceRecovery();
  // Reserves what the compaction writes until it is destroyed. Returns false,
  // and reserves nothing, if the DB has had no space (bg_error) and the output
  // paths lack room. Held. REQUIRES: has_several_paths()
  bool ReserveSpace(Compaction* compaction, const Status& bg_error,
                    LogBuffer* log_buffer);

  // ---- Devices of a DB with several paths that are lost or read-only.

  // Called for each background error, before its severity is decided. If the
  // error is about a file of one of several paths, of the MANIFEST or of a WAL,
  // adds the path to its message. If it may be that of a device that can come
  // back, makes it retryable, and has the directory watched: automatic
  // compactions to it wait. Returns true if the error was not retryable
  // before: it is a hard error then, unless it is that of a compaction, which
  // is tried again. Held.
  // is_wal: the error may have lost bytes of a WAL.
  bool NotePathFault(BackgroundErrorReason reason, bool is_wal,
                     IOStatus* error);
  // Adds the path to the message of a job's I/O error, for its caller. Held.
  // REQUIRES: !s->ok()
  void AddPathToJobError(Status* s) const;
  // Returns the background error if a directory that flushes, MANIFEST or WALs
  // need is watched, and does not work yet. A recovery would fail, after much
  // more work. If the name of the directory leads to another one than the DB
  // has opened, the error becomes a fatal one, which says so. Released.
  Status ProbePathsBeforeRecovery();
  // Notes that an obsolete file could not be deleted. Its directory is probed:
  // if no file can be made there, the device has failed, and all obsolete files
  // are looked for again when it is back. Not held.
  // s: of the deletion.
  void NoteDeletion(const std::string& file_name, const Status& s);

  // ---- Metrics.

  // Writes DB::Properties::kStrataPrometheus. Takes the mutex once for the DB
  // and once for each column family. Not held.
  void WriteMetrics(std::string* result);

  // ---- The rest.

  // Adds threads for the jobs of Strata's that the DB may have. They are beside
  // those for as many compactions as may ever run, as the jobs would otherwise
  // take these. Held.
  void AddThreads();
  // Number of those jobs of bg_purge_scheduled_ that remove values from address
  // maps. A list of WALs does not wait for them: they end late under load, the
  // thread they need may be the one of the caller, and what they delete counts
  // in pending_purge_obsolete_files_. Held.
  int NumMapRemovals() const { return num_map_removals_; }
  // True while jobs of Strata's run or wait for a thread: whatever waits for
  // DBImpl's flushes and compactions waits for these, too. Held.
  bool HasBackgroundWork() const { return scheduler_.HasJobs(); }
  // The same for PauseBackgroundWork(), which also waits for removals from
  // address maps: they write to the MANIFEST. Held.
  bool HasUnpausedWork() const;
  // True while there are jobs that AbortAllCompactions() ends: those of delta
  // files, which ask compaction filters. It waits for them. Held.
  bool HasAbortedJobs() const;
  // Picks the memtables of a flush, up to max_memtable_id. RocksDB takes any
  // flush request as served by that. The request for a memtable that the pick
  // leaves stays: without it, a background thread would discard the queued
  // flush as not pending, and Flush() would wait forever. Held.
  void PickMemTables(ColumnFamilyData* cfd, uint64_t max_memtable_id,
                     FlushJob* flush_job);
  // Waits for the end of all jobs, with which a recovery begins. Drops what is
  // queued (DropQueuedFlushes()). Released.
  // REQUIRES: a recovery is under way.
  void WaitForJobsBeforeRecovery();
  // True while WaitForJobsBeforeRecovery() waits. A job that waits for
  // something that only the recovery will do has to give up. Held.
  bool recovery_waits_for_jobs() const { return num_waiting_recoveries_ > 0; }
  // A flush was requested of a column family that has a request in the queue.
  // If a recovery waits for it, the queued request becomes one of the recovery:
  // a background thread would refuse any other, and the recovery would wait
  // forever. Held.
  void RaiseQueuedFlush(const DBImpl::FlushRequest& request);
  // Schedules the flushes, compactions and other background jobs that were not
  // scheduled, or were given up, because of a background error. Held.
  // REQUIRES: the background error was cleared.
  void ScheduleAfterRecovery();
  // Makes failed ingestions leave the files that a record of the MANIFEST may
  // name although its write has failed: they are deleted as obsolete files when
  // it is known that no record does. To be called before
  // ExternalSstFileIngestionJob::Cleanup(). Not held.
  // pending_output: of the ingestions; released if they leave files, so that
  // these can be deleted.
  void LeaveQuarantinedFiles(
      std::vector<ExternalSstFileIngestionJob>* jobs,
      std::unique_ptr<std::list<uint64_t>::iterator>* pending_output);
  // Calls ImportColumnFamilyJob::Cleanup() with the failure, and leaves such
  // files. To be called after the column family was dropped, or could not be:
  // the drop writes a new MANIFEST. Not held.
  void CleanUpFailedImport(ImportColumnFamilyJob* job, const Status& status);
  // Has LOG name the directories that only this column family has. To be called
  // before the drop is committed: if the process ends between the commit and
  // the deletion of the files, no later open knows the directories. Not held.
  // REQUIRES: no column family is created meanwhile.
  void LogDirectoriesToDrop(const ColumnFamilyData& cfd);
  // The order of flushes of one column family.
  FlushOrderGate* flush_order_gate() { return &flush_order_gate_; }
  WriteStallRelease* write_stall_release() { return &write_stall_release_; }

 private:
  class DeltaJobRun;
  class FlushOrderHost;
  class BackgroundJobHost;

  // The jobs of the scheduler.
  class BackgroundBlobGc;
  class BackgroundRangeSweep;
  class BackgroundMapRemovals;
  class BackgroundDeltaJob;
  class BackgroundDeltaMerge;
  class BackgroundDeltaCollection;
  class ManualDeltaJob;

  class ManualBlobGc;
  class PathMigrationHost;
  class SpaceRecoveryClient;
  class PathProbeClient;

  std::unique_ptr<FlushOrderGate::Host> NewFlushOrderHost();
  std::unique_ptr<BackgroundJobScheduler::Host> NewBackgroundJobHost();

  // Returns a sequence number below which no reader of the column family is, or
  // will be. Held.
  SequenceNumber EarliestReader(const ColumnFamilyData& cfd);
  // The same without iterators and restarted point reads. Held.
  SequenceNumber EarliestSnapshot();
  // True if sequence numbers do not tell which entry of a key a reader sees.
  bool MapIsAnyOrder() const;
  AddressMapCheckpoint::Io MapImageIo(Env::IOActivity activity) const;
  // The part of SettleFlush() that is about the map. Released.
  void SettleMapOfFlush(ColumnFamilyData* cfd, FlushJob* job,
                        SuperVersionContext* sv_context);
  // Schedules what has waited for a flush: flushes, folds, delta jobs. Held.
  void ScheduleAfterFlush();
  // activity: of the calling thread. Released.
  void DropEmptyBlobFiles(ColumnFamilyData* cfd, Env::IOActivity activity,
                          SuperVersionContext* sv_context);
  void OnSharedReadBoundsReleased();                     // not held
  void OnReadBoundsReleased(uint32_t column_family_id);  // not held
  FamilyImplicitSnapshots ReadBoundsOf(const ColumnFamilyData& cfd);
  // True if an implicit snapshot that the column family's jobs respect is below
  // `limit`. The release of the last one is then reported to map_work_. Held.
  bool WaitsForBounds(const ColumnFamilyData& cfd, SequenceNumber limit);
  // also_for_drops: looks for blob files without live values, too. Held.
  void FindMapWork(ColumnFamilyData* cfd, bool also_for_drops);
  // Returns the number of the oldest Version that lives. Held.
  static uint64_t OldestVersionNumber(ColumnFamilyData* cfd);
  void MarkAfterBounds();  // not held

  // The part of CollectBlobGarbage() that follows the checks of its arguments.
  // Not held. REQUIRES: the column family has an enabled address map, or the DB
  // is being closed.
  Status CollectBlobs(const CollectBlobGarbageOptions& options,
                      ColumnFamilyData* cfd);
  void ScheduleBlobGc(ColumnFamilyData* cfd);  // held
  // The jobs for hot values (BlobHeat). Held.
  void ScheduleBlobHeat(ColumnFamilyData* cfd);
  static BlobHeatPicker::Options HeatOptions(ColumnFamilyData* cfd);  // held
  void ScheduleRangeSweeps();                                         // held

  // Writes what the folder has and adds it to the job's edit. Waits for flushes
  // and ingestions, up to a limit. TryAgain, or a failure, gives the fold up,
  // and the job with it, as the job has dropped the operands. *fold stays
  // nullptr if there is nothing to write. Until EndDeltaFold() no flush of the
  // column family begins. Released.
  Status BeginDeltaFold(ColumnFamilyData* cfd, int job_id,
                        DeltaValueFolder* folder, const DeltaFoldJob& job,
                        VersionEdit* edit,
                        std::unique_ptr<DeltaFoldCommit>* fold);
  // To be called after the commit of the edit and, if that succeeded, after the
  // installation of a SuperVersion. status: of the commit. Released.
  void EndDeltaFold(std::unique_ptr<DeltaFoldCommit>* fold,
                    const Status& status, SuperVersionContext* sv_context);
  // Calls TryEnterDeltaFold() until it succeeds or fails, up to a limit of
  // time. Released.
  Status EnterDeltaFold(ColumnFamilyData* cfd, const DeltaFoldJob& job);
  std::unique_ptr<DeltaFoldCommit> NewDeltaFoldCommit(
      ColumnFamilyData* cfd, int job_id, DeltaValueFolder* folder,
      const DeltaFoldJob& job);                     // held
  Status TryEnterDeltaFold(ColumnFamilyData* cfd);  // released
  void LeaveDeltaFold(ColumnFamilyData* cfd);       // held

  void ScheduleDeltaJobs(ColumnFamilyData* cfd);  // held
  void StartDeltaJob(std::unique_ptr<BackgroundDeltaJob> job,
                     bool is_merge);  // held
  // CompactRange() of all keys. Not held. REQUIRES: the column family has a
  // delta store, or the DB is being closed.
  Status CompactDeltas(const CompactRangeOptions& options,
                       ColumnFamilyData* cfd);
  // Returns true if the column family has a delta store and does not separate
  // deltas: what is in delta files becomes values.
  static bool DrainsDeltas(const ColumnFamilyData& cfd);
  // Returns true if the drain has left operands because of readers. The release
  // of the earliest of them then calls ResumeDrains(). The function also makes
  // a collection due if readers have gone. Held.
  bool DrainWaitsForReaders(ColumnFamilyData* cfd);
  // Notes what a job of the drain has left. Held.
  void FinishDrainJob(ColumnFamilyData* cfd, SequenceNumber earliest_snapshot,
                      const DeltaGcJob& job, const DeltaValueFolder* folder);
  // Makes a MANIFEST that does not name delta files, if no column family has
  // any: RocksDB opens the DB after it was closed. Released.
  // activity: for the I/O of the calling thread.
  Status RollManifestWithoutDeltas(Env::IOActivity activity,
                                   JobContext* job_context);
  // The part of CompactRange() of all keys before its compaction. So values of
  // folds go down with the others, and a compaction filter sees values with all
  // operands that were written before the call, also to memtables; except those
  // that snapshots need or whose merge fails. Not held. REQUIRES: the column
  // family has a delta store.
  Status DrainDeltas(const CompactRangeOptions& options, ColumnFamilyData* cfd);
  // Returns true if the column family has delta files or buckets. Held.
  static bool HasDeltas(ColumnFamilyData* cfd);
  // Returns true if there are entries that a flush would write. Held.
  bool HasUnflushedEntries(ColumnFamilyData* cfd) const;
  // Flushes the memtables, also without operands: CompactRange() would flush
  // next anyway, and entries that hide operands make their folds unnecessary.
  // Not held.
  Status FlushForDrain(const CompactRangeOptions& options,
                       ColumnFamilyData* cfd);

  // Removes the flush requests that were queued before a recovery: background
  // threads would refuse them one by one, a second for each. The recovery
  // flushes, or requests the flush of, all immutable memtables. Held.
  // REQUIRES: a recovery is under way.
  void DropQueuedFlushes();
  // Returns the numbers of files that no job may delete, as it is not known
  // whether the MANIFEST names them. Held.
  std::unordered_set<uint64_t> QuarantinedFiles() const;
  // Cuts the newest WAL back. Returns false if the bytes stay: in a file
  // without a buffer, or with direct I/O, where no byte goes through the
  // buffer. Then the writer goes on behind them.
  // REQUIRES: DBImpl::wal_write_mutex_ is held
  bool CutWalBack(const WalPosition& position);
  // Without a buffer: truncates the file of the newest WAL, and finds out
  // whether it was done: FSWritableFile::Truncate() may do nothing. size:
  // bytes. REQUIRES: DBImpl::wal_write_mutex_ is held
  IOStatus TruncateWal(uint64_t size);
  // size: set to that of the file, in bytes. Any.
  IOStatus GetWalFileSize(uint64_t number, uint64_t* size);
  void EndTrackedGroup(const IOStatus& s, WalExtent* group);
  // Makes the error of a write group fatal. offset: where the group begins.
  // what: completes the message. Not held.
  void StopAtFailedGroup(uint64_t wal_number, uint64_t offset,
                         const std::string& what);
  void StopAtUncutGroup(uint64_t wal_number, uint64_t offset);
  void KeepBufferedState(WalExtent* group);
  Status FinishBufferCut();

  // Makes the current state the beginning of a new MANIFEST. Released.
  Status RollManifest(Env::IOActivity activity);
  // The same, and schedules the jobs that waited for the edit. Released.
  Status RollManifestAndSchedule(Env::IOActivity activity,
                                 JobContext* job_context);
  // REQUIRES: called by the thread that leads the write thread.
  bool MayHaveMoreToDoThanWrite();

  // Returns why the column family cannot be migrated, or OK. Held.
  Status CheckMigration(const MigratePathsOptions& options,
                        ColumnFamilyData* cfd) const;
  // Sets the layout of the options. Not held.
  Status SetLayout(const MigratePathsOptions& options,
                   ColumnFamilyHandle* column_family);
  // Has automatic compactions and jobs of delta files leave misplaced files to
  // a migration of the column family, or move them again. Held.
  void LeaveMisplacedFiles(ColumnFamilyData* cfd, bool leave);

  // Returns true if a column family has another path than the first one of the
  // DB: it was created after an open with one path. Held.
  bool HasFamilyOnOtherPath();
  // Looks at the paths of later column families, too, before it returns
  // has_several_paths(). Held. REQUIRES: there is an SstFileManager
  bool FindSeveralPaths();
  // Adds what the flush of all memtables, WAL and MANIFEST need. Returns the
  // bytes of the memtables. Held.
  uint64_t AddFlushNeeds(bool are_required, SpaceNeeds* needs);
  // The same, and what else the recovery from the background error needs. Held.
  uint64_t AddRecoveryNeeds(const Status& error, SpaceNeeds* needs);
  // Adds those of failed_outputs_ that compactions still write: their column
  // families exist, and have layouts with the directories. Held.
  void AddFailedOutputs(SpaceNeeds* needs);
  // Returns NoSpace if the outputs of a compaction have no room. Held.
  Status CheckOutputRoom(const SpaceReservations::Bytes& outputs);
  // Returns the SstFileManager of the options; nullptr: there is none.
  SstFileManagerImpl* FileManager() const;

  // Returns the directories of all column families, and, if these are several,
  // the directories that MANIFEST and WALs are in. Held.
  OpenPaths AllDirectories() const;
  // Returns the directory in whose device the cause of the error may be; empty:
  // none. Held.
  std::string FaultyDirectory(const OpenPaths& paths, const Status& error);
  // Has the directory watched until files can be made there. Held.
  void WatchPath(const std::string& directory, const Status& error);
  // Tries to make files in those directories that are watched, and stops
  // watching those in which this works. Returns the first error. Not held.
  // replaced: is set to the first error about a directory that is another one
  //     than the DB has opened.
  Status ProbePaths(const std::vector<std::string>& directories,
                    Status* replaced);
  // Returns the handles of the directory that jobs sync. Held.
  std::vector<std::shared_ptr<FSDirectory>> HandlesOf(
      const std::string& directory) const;
  // Writes an error to LOG that does not end by itself, but once only. Not
  // held.
  void LogProbe(const std::string& directory, PathProbe::Problem problem,
                const Status& s);
  // Goes on with what has waited for a directory. Not held.
  void ContinueAfterPathFault();

  // Defines and adds the metrics of the whole DB. Not held.
  void AddDbMetrics(size_t num_faults, PrometheusText* text);

  DBImpl* const db_;

  // Guarded by DBImpl::options_mutex_.
  std::shared_ptr<OptionsConfig> options_config_;

  ImplicitSnapshotRegistry shared_read_bounds_{
      [this] { OnSharedReadBoundsReleased(); }};
  MapWorkQueue map_work_;
  int num_map_removals_ = 0;  // guarded by the DB mutex
  std::atomic<bool> has_address_maps_{false};

  // Guarded by the mutex.
  std::vector<std::unique_ptr<FlushMapping>> recovery_mappings_;
  bool blob_gc_due_ = true;
  bool blob_gc_refused_ = false;
  // The column family of the last background job; the next one begins with
  // another family.
  uint32_t last_gc_family_ = 0;
  bool blob_gc_allowed_ = true;
  std::vector<std::unique_ptr<DeltaFlush>> recovery_delta_flushes_;
  bool has_delta_stores_ = false;
  int num_running_delta_folds_ = 0;
  int num_delta_fold_blocks_ = 0;
  bool delta_jobs_due_ = true;
  bool drains_wait_for_readers_ = false;
  int num_waiting_recoveries_ = 0;

  std::unique_ptr<FlushOrderGate::Host> flush_order_host_ = NewFlushOrderHost();
  FlushOrderGate flush_order_gate_{flush_order_host_.get()};
  std::unique_ptr<BackgroundJobScheduler::Host> background_job_host_ =
      NewBackgroundJobHost();
  BackgroundJobScheduler scheduler_{background_job_host_.get()};
  WriteStallRelease write_stall_release_;
  bool has_several_paths_ = false;
  // What the compactions of each column family, by its id, had reserved when
  // one of them found no space.
  std::map<uint32_t, SpaceReservations::Bytes> failed_outputs_;
  std::unique_ptr<SpaceRecovery::Client> space_recovery_client_;
  std::unique_ptr<SpaceRecovery::Client> path_probe_client_;
  // Files of NoteDeletion() wait for their directory.
  bool has_undeleted_files_ = false;
  // What LogProbe() has written of each directory that does not work yet.
  std::map<std::string, PathProbe::Problem> logged_probes_;

  // Outlives the files of DBImpl::logs_.
  std::unique_ptr<WalBuffer> wal_buffer_;
  // There is a buffer, or DBOptions::allow_2pc. Set by CreateWalBuffer(): the
  // options of DBImpl are constructed after this object.
  bool takes_back_groups_ = false;
  // Only the leader of a write group uses this.
  bool failed_group_stays_ = false;
  // Number of groups that were taken back.
  std::atomic<uint64_t> num_wal_cuts_{0};
  WalBufferRecovery::Missing wal_buffer_missing_;
};

}  // namespace ROCKSDB_NAMESPACE
