//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/address_map/blocked_removals.h"
#include "db/address_map/deferred_removals.h"
#include "db/address_map/folded_versions.h"
#include "db/address_map/map_memory_reservation.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/address_map/mapped_row_cache.h"
#include "db/address_map/range_deletion_queue.h"
#include "db/address_map/retired_removals.h"
#include "db/address_map/scan_length_histogram.h"
#include "db/address_map/spill_file_numbers.h"
#include "db/address_map/undecided_files.h"
#include "db/address_map/unsettled_map_jobs.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_gc/blob_gc_state.h"
#include "db/blob_v2/read_ahead_gauge.h"
#include "db/dbformat.h"
#include "db/strata/implicit_snapshot_registry.h"
#include "options/cf_options.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "util/hash_containers.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileCache;
class BlobFileMetaData;
class BlobHeat;
class BlobSource;
class ColumnFamilySet;
class MapCommitObserver;
class MapWorkQueue;
class ScanDebts;
class Version;
class VersionEdit;
class VersionSet;
class VersionStorageInfo;

// Owns the separated values of a column family that has an address map: the
// map, the table of the blob files that the map points into, and the state of
// jobs whose blob files are not in the MANIFEST yet.
//
// Invariants:
// 1. Every mapped entry of an SST file of the current Version that a reader
//    could reach has an entry in the map, and the blob file of that map entry
//    is on disk.
// 2. The map names a blob file only if the file is pending (a job is about to
//    commit it), live (in the current Version) or, for readers that started
//    earlier, dead and pinned.
// 3. Only CollectObsoleteFiles() hands a file to VersionSet for deletion, after
//    the file has left the current Version and when no pin on it remains.
//    Older Versions that contain the file do not prevent this.
//
// Thread-safety: that of the parts. Functions that need the DB mutex say so.
class AddressMapStore {
 public:
  // REQUIRES: all arguments belong to the same column family; ioptions and
  // blob_file_cache outlive this object.
  AddressMapStore(uint32_t column_family_id, const ImmutableOptions& ioptions,
                  const TableFactory& table_factory,
                  BlobFileCache* blob_file_cache);
  ~AddressMapStore();
  AddressMapStore(const AddressMapStore&) = delete;
  AddressMapStore& operator=(const AddressMapStore&) = delete;

  // Returns true if any of the column families has an address map.
  // REQUIRES: DB mutex held.
  static bool Any(ColumnFamilySet* column_families);

  const ImmutableOptions& ioptions() const { return ioptions_; }

  // Histogram of the lengths of this column family's scans.
  ScanLengthHistogram* scan_lengths() const { return &scan_lengths_; }

  // Decides whether reads for this column family's scans are handed to other
  // threads.
  ReadAheadGauge* read_ahead_gauge() const { return &read_ahead_gauge_; }

  // Accounts of the cost of scans of values that are not in key order.
  ScanDebts* scan_debts() const { return scan_debts_.get(); }

  // The values that are read often, which have a place on the hot path.
  BlobHeat* heat() const { return heat_.get(); }

  // Returns nullptr if DBOptions::row_cache is not set.
  const MappedRowCache* row_cache() const { return row_cache_.get(); }

  AddressMap* map() { return &map_; }
  const AddressMap* map() const { return &map_; }
  BlobFileSlotTable* files() { return &files_; }
  const BlobFileSlotTable& file_table() const { return files_; }

  // True if new values go into the map (option enable_blob_address_map). A map
  // also exists while this is false, as long as old mapped values remain.
  bool enabled() const { return ioptions_.enable_blob_address_map; }
  // True if values may be stored in direct mode (option enable_lsm_bypass).
  bool bypass() const { return ioptions_.enable_lsm_bypass; }

  // True if the map has no direct entry and never gets one, because sequence
  // numbers do not determine what a reader sees. Then no job removes a name in
  // an SST file of any Version: flushes and sweeps remove none, and
  // compactions leave all of theirs to retired_removals().
  bool versioned_only() const { return versioned_only_; }
  // Makes versioned_only() true. Demotes all entries: an image of the map may
  // have modes that no SST file has any more.
  // REQUIRES: there are no readers or writers yet; no SST file has a direct
  // entry; all jobs of the column family are told that the order of sequence
  // numbers means nothing (any_order of FlushMapping and CompactionMapping).
  void SetVersionedOnly() {
    map_.DemoteAll();
    versioned_only_ = true;
  }

  // Seed of MapKeyHash. It is random unless recovery finds a file that was
  // written with another seed.
  uint64_t hash_seed() const { return hash_seed_; }
  // REQUIRES: there are no readers or writers yet.
  void SetHashSeed(uint64_t seed) { hash_seed_ = seed; }
  MapKeyHash HashOf(const Slice& user_key) const {
    return MapKeyHash::Of(user_key, hash_seed_);
  }

  // Encodes the address of a record as an ordinary BlobIndex.
  // user_key_size: bytes.
  // REQUIRES: found.found; the record is not lost and its file is pinned.
  void ToBlobIndex(const AddressMap::Lookup& found, size_t user_key_size,
                   std::string* blob_index) const;

  // Reads the value named (user_key, seq, index.birth). Returns NotFound if the
  // value is dead (a newer entry or a tombstone hides it) or lost.
  // source: the blob source of the column family.
  Status Fetch(BlobSource* source, const ReadOptions& read_options,
               const Slice& user_key, SequenceNumber seq,
               const MappedBlobIndex& index, PinnableSlice* value,
               uint64_t* bytes_read) const;
  // Like Fetch(), for a name that was looked up already.
  // found: the result of that lookup.
  // REQUIRES: found.found; the file is pinned unless the value is lost.
  Status FetchFound(BlobSource* source, const ReadOptions& read_options,
                    const Slice& user_key, SequenceNumber seq,
                    const MappedBlobIndex& index,
                    const AddressMap::Lookup& found, PinnableSlice* value,
                    uint64_t* bytes_read) const;

  // ---- Statistics.

  // Return the number and the total size in bytes of those records of a file of
  // the current Version that the map does not name and that the file's metadata
  // does not count as garbage already. 0 if the file is not in the map's table.
  uint64_t GarbageCount(const BlobFileMetaData& meta) const;
  uint64_t GarbageBytes(const BlobFileMetaData& meta) const;
  uint64_t NumBlockedRemovals() const { return blocked_removals_.Count(); }

  // Keeps a blob file from being deleted.
  class FilePin {
   public:
    // blobs: may be nullptr; then no file is pinned.
    // number: number of the file to pin.
    FilePin(AddressMapStore* blobs, uint64_t number);
    ~FilePin();
    FilePin(const FilePin&) = delete;
    FilePin& operator=(const FilePin&) = delete;

    // False if the file is not in the map's table or is about to be deleted.
    bool pinned() const { return slot_ != BlobFileSlotTable::kLostSlot; }

   private:
    AddressMapStore* const blobs_;
    uint32_t slot_ = BlobFileSlotTable::kLostSlot;
  };

  // ---- Recovery.

  // Marks the map as complete. Until then no file is deleted.
  // REQUIRES: single-threaded.
  void SetReady() { ready_ = true; }
  bool ready() const { return ready_; }

  // Registers the files that a checkpoint has loaded along with the map, which
  // are all files of the current Version. Marks the map as ready.
  // REQUIRES: single-threaded.
  void AdoptLoadedFiles();

  // Marks the hot files of the Version, which are in the table already.
  // REQUIRES: single-threaded.
  void MarkHotFiles(const VersionStorageInfo& version);

  // Keeps a damaged file of the current Version that may hold values which are
  // missing in the map: the file is neither dropped nor garbage collected, and
  // the map is not saved.
  // REQUIRES: single-threaded; AddLiveFile() or AdoptLoadedFiles() has added
  // the file.
  void KeepDamagedFile(uint64_t number);

  // Adds a file of the current Version and returns its slot.
  // size: bytes.
  // REQUIRES: single-threaded.
  uint32_t AddLiveFile(uint64_t number, uint32_t path_id,
                       CompressionType compression, uint64_t size);

  // ---- Commits.

  // Notifies the job of each Version that is appended, until RemovePending().
  // REQUIRES: DB mutex held.
  void AddPending(MapCommitObserver* job);
  // REQUIRES: DB mutex held; AddPending(job) was called.
  void RemovePending(MapCommitObserver* job);
  // Called when the Version becomes the current one.
  // REQUIRES: DB mutex held.
  void OnVersionAppended(Version& version);
  // Returns the number that the next new file had when the last Version was
  // appended.
  // REQUIRES: DB mutex held.
  uint64_t next_file_number() const { return next_file_number_; }
  // Returns the number of the Version that was appended last. The Version may
  // not be in a SuperVersion yet.
  uint64_t appended_version() const {
    return appended_version_.load(std::memory_order_acquire);
  }

  // ---- Removals that wait for a reader.

  // Maximum number of removals that a background job does in one step. They
  // take a good part of a second, and flushes wait for the thread meanwhile.
  static constexpr size_t kSlice = size_t{1} << 20;

  // Removals of the entries that committed flushes hide.
  BlockedRemovals* blocked_removals() { return &blocked_removals_; }
  const BlockedRemovals& blocked_removals() const { return blocked_removals_; }
  // Carries out the removals that no reader prevents, but not many more than
  // kSlice of them.
  // earliest_reader: the smallest sequence number that a reader may read at.
  void ApplyBlockedRemovals(SequenceNumber earliest_reader) {
    blocked_removals_.Apply(earliest_reader, kSlice);
  }
  // Returns the smallest sequence number that ApplyBlockedRemovals() waits for,
  // or kMaxSequenceNumber if no removal waits.
  SequenceNumber BlockedUntil() const {
    return blocked_removals_.BlockedUntil();
  }

  // Range deletions that wait for readers to end and then for a sweep.
  RangeDeletionQueue* range_deletions() { return &range_deletions_; }
  const RangeDeletionQueue& range_deletions() const { return range_deletions_; }

  // Schedules the names that a committed job has dropped for removal from the
  // map once no Version older than `version_number` exists.
  // REQUIRES: DB mutex held.
  void Retire(std::unique_ptr<DeferredRemovals>&& removals,
              uint64_t version_number);
  // The names that are scheduled for removal.
  RetiredRemovals* retired_removals() { return &retired_removals_; }
  const RetiredRemovals& retired_removals() const { return retired_removals_; }
  // False if the map may have entries that no reader and no job will find.
  // Such a map must not be saved.
  bool IsExact() const { return exact_.load(std::memory_order_relaxed); }
  void SetInexact() { exact_.store(false, std::memory_order_relaxed); }

  // Makes all point reads fail with `s` until the DB is reopened and its map is
  // rebuilt from the files. Called when a failed job could not be undone, so
  // that values which SST files mark as direct cannot be found by their keys: a
  // point read could take an existing value for absent. Iterators find values
  // by their names and continue to work.
  void RefuseReads(const Status& s);
  // Lock-free.
  bool refuses_reads() const {
    return refuses_reads_.load(std::memory_order_acquire);
  }
  Status read_refusal() const;

  // ---- Work for background jobs.

  // Sets the queue to be signaled whenever there may be work to do.
  // on_bounds_released: see ImplicitSnapshotRegistry.
  // REQUIRES: single-threaded; queue outlives this object.
  void SetWorkQueue(MapWorkQueue* queue,
                    std::function<void()> on_bounds_released);
  void SignalWork();
  // Called when a Version, possibly the oldest one, was deleted.
  // REQUIRES: DB mutex held.
  void OnVersionDeleted() {
    if (!retired_removals_.empty()) {
      SignalWork();
    }
  }

  // The sequence numbers that readers of this column family alone protect.
  ImplicitSnapshotRegistry* read_bounds() { return &read_bounds_; }

  UnsettledMapJobs* unsettled_jobs() { return &unsettled_jobs_; }
  const UnsettledMapJobs& unsettled_jobs() const { return unsettled_jobs_; }

  // The bottommost files that have an undecided entry.
  // REQUIRES: DB mutex held while the result is used.
  UndecidedFiles* undecided_files() { return &undecided_files_; }

  // The Versions that are older than a fold of values of the column family.
  FoldedVersions* folded_versions() { return &folded_versions_; }
  const FoldedVersions& folded_versions() const { return folded_versions_; }

  // Called before a committed job demotes names whose values readers of older
  // Versions may see: the job has merged or changed the values, and the new
  // ones may not be direct.
  // first_version: number of a Version that has the new values, as all later
  // ones have.
  // REQUIRES: DB mutex held.
  void OnValuesReplaced(uint64_t first_version) {
    replaced_version_.store(
        std::max(first_version,
                 replaced_version_.load(std::memory_order_relaxed)),
        std::memory_order_release);
  }
  // Returns true if the Version with this number may have a file with an entry
  // that was direct when the file was written and is demoted now, although
  // readers of the Version see the entry. Lock-free.
  bool HasReplacedSince(uint64_t version_number) const {
    return version_number < replaced_version_.load(std::memory_order_acquire);
  }

  // Returns a function that creates temporary files of the column family in the
  // DB's directory.
  // version: any Version of the column family.
  DeferredRemovals::NewSpillFile SpillFiles(Version* version,
                                            const std::string& dbname);

  // ---- Garbage collection.

  // Returns the files of the current Version, and the files of copies that jobs
  // are about to add, as input of the picker. Files of a job that failed
  // recently are marked busy unless also_failed.
  // REQUIRES: DB mutex held.
  std::vector<BlobGcPicker::File> FilesForGc(const VersionStorageInfo& version,
                                             bool also_failed = false) const;
  // Returns the number of bytes that write slowdowns are computed from:
  // compaction_needed_bytes, or more if the map is in use and there is too much
  // garbage (BlobGcState::AddDebt()).
  // REQUIRES: DB mutex held.
  uint64_t AddGcDebt(uint64_t compaction_needed_bytes,
                     const VersionStorageInfo& version,
                     const MutableCFOptions& options);
  // Returns what the garbage collection jobs have in common.
  // REQUIRES: DB mutex held while the result is used.
  BlobGcState* gc() { return &gc_; }
  const BlobGcState* gc() const { return &gc_; }

  // ---- Files.

  // Assigns a slot, in state pending, to a complete file. Returns kLostSlot if
  // no slot is left.
  uint32_t AddPendingFile(const MappedBlobFile& file);
  // Like AddPendingFile(), for a file with copies of committed values.
  uint32_t AddFileOfCopies(const MappedBlobFile& file);
  // Gives up a file whose edit failed.
  // REQUIRES: the map does not name the file.
  void AbandonFile(uint32_t slot);

  // True if an edit may drop some file. Cheap.
  bool HasDroppableFiles() const { return files_.HasDroppable(); }
  // True if CollectObsoleteFiles() may find a file that a reader has held.
  // Cheap.
  bool HasReleasedFiles() const { return files_.HasReleasedDead(); }
  // Adds the removal of all files without a live record to the edit. Returns
  // the numbers of these files, which are not added to another edit until
  // FinishDrops().
  // own: slots of files on which the caller holds a job pin, because it may
  // need them again if the edit fails. They are removed if no other job has
  // pinned them.
  // REQUIRES: DB mutex held.
  std::vector<uint64_t> AddDrops(const VersionStorageInfo& version,
                                 VersionEdit* edit,
                                 const std::vector<uint32_t>& own = {});
  // Called when the outcome of the edit is known.
  // numbers: the result of AddDrops().
  // REQUIRES: DB mutex held.
  void FinishDrops(const std::vector<uint64_t>& numbers);
  // Hands files that are dead and not pinned over to `versions` for deletion.
  // keep: receives the numbers of all other files, for a scan of the
  // directories; may be nullptr.
  // REQUIRES: DB mutex held.
  void CollectObsoleteFiles(VersionSet* versions, UnorderedSet<uint64_t>* keep);
  // Hands all files over to `versions` for deletion.
  // REQUIRES: DB mutex held; the column family was dropped and is not in use.
  void ReleaseAll(VersionSet* versions);
  // Returns false if a file that some Version contains may be deleted
  // nevertheless: it has left the current Version and has no readers.
  bool Keeps(uint64_t number) const;

 private:
  // Returns kLostSlot if no slot is left.
  uint32_t AddBuildingFile(const MappedBlobFile& file);
  void Forget(const BlobFileSlotTable::Info& file);
  // Forgets the file, and leaves its deletion to VersionSet.
  void HandOver(const BlobFileSlotTable::Info& file, VersionSet* versions);

  const uint32_t column_family_id_;
  const ImmutableOptions& ioptions_;
  BlobFileCache* const blob_file_cache_;
  const std::unique_ptr<MappedRowCache> row_cache_;
  mutable ScanLengthHistogram scan_lengths_;
  mutable ReadAheadGauge read_ahead_gauge_;
  const std::unique_ptr<ScanDebts> scan_debts_;
  const std::unique_ptr<BlobHeat> heat_;
  uint64_t hash_seed_;
  bool ready_ = false;
  bool versioned_only_ = false;
  BlobFileSlotTable files_;
  const std::unique_ptr<MapMemoryReservation> charge_;
  AddressMap map_;

  const std::unique_ptr<MapMemoryReservation> blocked_charge_;
  BlockedRemovals blocked_removals_;

  RangeDeletionQueue range_deletions_;

  SpillFileNumbers spill_files_;  // outlives retired_removals_
  RetiredRemovals retired_removals_;
  FoldedVersions folded_versions_;

  std::atomic<bool> exact_{true};
  std::atomic<uint64_t> appended_version_{0};
  UnsettledMapJobs unsettled_jobs_;
  ImplicitSnapshotRegistry read_bounds_;
  MapWorkQueue* work_queue_ = nullptr;
  std::atomic<bool> refuses_reads_{false};
  mutable std::mutex read_refusal_mutex_;
  Status read_refusal_;

  // The members from here on are protected by the DB mutex.
  uint64_t next_file_number_ = 0;
  std::vector<MapCommitObserver*> pending_;
  std::set<uint64_t> dropping_;
  UndecidedFiles undecided_files_;
  BlobGcState gc_;
  // The largest argument of OnValuesReplaced().
  std::atomic<uint64_t> replaced_version_{0};
};

}  // namespace ROCKSDB_NAMESPACE
