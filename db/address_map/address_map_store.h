//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/address_map/blocked_removals.h"
#include "db/address_map/deferred_removals.h"
#include "db/address_map/map_memory_reservation.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/address_map/mapped_row_cache.h"
#include "db/address_map/range_deletion_queue.h"
#include "db/address_map/scan_length_histogram.h"
#include "db/address_map/unsettled_map_jobs.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/dbformat.h"
#include "db/strata/implicit_snapshot_registry.h"
#include "options/cf_options.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "util/hash_containers.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileCache;
class BlobFileMetaData;
class BlobSource;
class ColumnFamilySet;
class MapCommitObserver;
class MapWorkQueue;
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

  // Histogram of the lengths of this column family's scans.
  ScanLengthHistogram* scan_lengths() const { return &scan_lengths_; }

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

  // Returns the path id of a blob file of the column family.
  uint32_t PathIdOf(uint64_t file_number) const;

  // ---- Statistics.

  // Return the number and the total size in bytes of those records of a file of
  // the current Version that the map does not name and that the file's metadata
  // does not count as garbage already. 0 if the file is not in the map's table.
  uint64_t GarbageCount(const BlobFileMetaData& meta) const;
  uint64_t GarbageBytes(const BlobFileMetaData& meta) const;
  uint64_t NumBlockedRemovals() const { return blocked_removals_.Count(); }
  // REQUIRES: DB mutex held.
  uint64_t NumRetired() const;

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
  void OnVersionAppended(const Version& version);
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
  // Returns true if TakeRetired(oldest_version) would return a list.
  // REQUIRES: DB mutex held.
  bool HasRetired(uint64_t oldest_version) const;
  // Returns lists of names that are to be removed from the map at once: all
  // that no longer wait for a Version, or the first of them up to and including
  // the one that brings the total to kSlice names.
  // oldest_version: number of the oldest Version that exists.
  // REQUIRES: DB mutex held.
  std::vector<std::unique_ptr<DeferredRemovals>> TakeRetired(
      uint64_t oldest_version);
  // Moves a list that is about to be retired to its spill file if the waiting
  // lists take much memory. Thread-safe; best called without the DB mutex.
  void LimitRetired(DeferredRemovals* removals) const;
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
    if (!retired_.empty()) {
      SignalWork();
    }
  }

  // The sequence numbers that readers of this column family alone protect.
  ImplicitSnapshotRegistry* read_bounds() { return &read_bounds_; }

  UnsettledMapJobs* unsettled_jobs() { return &unsettled_jobs_; }
  const UnsettledMapJobs& unsettled_jobs() const { return unsettled_jobs_; }

  // Announces a fold that is about to commit values over entries with which
  // readers of older Versions merge operands, at whatever sequence number they
  // read. The folded value does not hide those entries from such readers. While
  // there may be such readers, a compaction that finds an entry hidden by a
  // folded value must leave its removal from the map to DeferredRemovals, and
  // must not make the folded value direct, which would have the same effect as
  // an immediate removal.
  //   BeginFold() -> the edit -> EndFold()
  // REQUIRES: DB mutex held.
  void BeginFold() {
    ++num_folds_;
    UpdateFoldedVersion();
  }
  // Ends what BeginFold() began.
  // first_version: number of a Version such that it and all later ones have the
  // folded values; 0 if no Version has them.
  // REQUIRES: DB mutex held.
  void EndFold(uint64_t first_version) {
    --num_folds_;
    first_folded_version_ = std::max(first_folded_version_, first_version);
    UpdateFoldedVersion();
  }
  // Returns true if the Version with this number is, or may be, older than a
  // fold that is or will be committed. Lock-free. The answer for a Version may
  // change from false to true at any time, but not after a compaction has built
  // on the fold.
  bool IsBeforeFold(uint64_t version_number) const {
    return version_number < folded_version_.load(std::memory_order_acquire);
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
  // Set to false while garbage collection jobs must not run. Writes are not
  // slowed down for them then.
  // REQUIRES: DB mutex held.
  void SetGcAllowed(bool allowed) { gc_allowed_ = allowed; }
  // Returns the number of bytes that write slowdowns are computed from:
  // compaction_needed_bytes, or more if the space amplification, including the
  // copies that jobs are writing, exceeds kStallFactor times the limit. The
  // result then exceeds soft_pending_compaction_bytes_limit (if that is set) by
  // the excess space, so writes are slowed down the more the larger the excess,
  // but are never stopped.
  // Copies alone cause no slowdown, which matters if all values fit into a few
  // files: without the copies, the space amplification must exceed
  // kLeastStallFactor times the limit.
  // REQUIRES: DB mutex held.
  uint64_t AddGcDebt(uint64_t compaction_needed_bytes,
                     const VersionStorageInfo& version,
                     const MutableCFOptions& options) const;
  static constexpr double kStallFactor = 1.01;
  static constexpr double kLeastStallFactor = 0.98;
  // Accounts for copies of `bytes` bytes that a job is writing, from
  // BeginCopies() until the job has published them and calls EndCopies().
  // REQUIRES: DB mutex held.
  void BeginCopies(uint64_t bytes) { copying_ += bytes; }
  // REQUIRES: DB mutex held.
  void EndCopies(uint64_t bytes) { copying_ -= bytes; }
  // Marks the file as being collected by a job that has picked it, or by a
  // merge for several jobs. The picker ignores the file until each BeginGc() is
  // matched by an EndGc().
  // REQUIRES: DB mutex held.
  void BeginGc(uint64_t number) { collecting_.insert(number); }
  // REQUIRES: DB mutex held.
  void EndGc(uint64_t number) { collecting_.erase(collecting_.find(number)); }
  // Returns the maximum number of bytes that a job may copy. The limit is
  // halved when a job runs out of disk space.
  // REQUIRES: DB mutex held.
  uint64_t max_gc_copies() const { return max_gc_copies_; }
  // copied: bytes that the job had copied.
  // REQUIRES: DB mutex held.
  void OnGcOutOfSpace(uint64_t copied) {
    max_gc_copies_ =
        std::max(uint64_t{1}, std::min(max_gc_copies_, copied) / 2);
  }
  // Excludes `bytes` bytes of copied files, which a merge of sorted runs keeps
  // on disk until it ends, from what AddGcDebt() counts.
  // REQUIRES: DB mutex held.
  void AddMergeSpace(uint64_t bytes) { merge_space_ += bytes; }
  // REQUIRES: DB mutex held.
  void SubMergeSpace(uint64_t bytes) { merge_space_ -= bytes; }
  // REQUIRES: DB mutex held.
  bool HasGcJobs() const { return !collecting_.empty(); }
  // Called when a job could not read the file. Automatic jobs then skip the
  // file, for longer after each failure, and its garbage, which they cannot
  // collect, does not count toward the space amplification limit.
  // REQUIRES: DB mutex held.
  void OnGcDamaged(uint64_t number);
  // Returns the number of files that recovery or a job found damaged.
  // REQUIRES: DB mutex held.
  size_t NumDamagedFiles() const { return damaged_.size(); }
  // REQUIRES: DB mutex held.
  void OnGcSucceeded();
  // Makes automatic jobs skip these files for a while.
  // REQUIRES: DB mutex held.
  void OnGcFailed(const std::set<uint64_t>& files);

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
  void UpdateFoldedVersion() {
    folded_version_.store(num_folds_ > 0 ? UINT64_MAX : first_folded_version_,
                          std::memory_order_release);
  }
  // Returns kLostSlot if no slot is left.
  uint32_t AddBuildingFile(const MappedBlobFile& file);
  void Forget(const BlobFileSlotTable::Info& file);

  const uint32_t column_family_id_;
  const ImmutableOptions& ioptions_;
  BlobFileCache* const blob_file_cache_;
  const std::unique_ptr<MappedRowCache> row_cache_;
  mutable ScanLengthHistogram scan_lengths_;
  uint64_t hash_seed_;
  bool ready_ = false;
  BlobFileSlotTable files_;
  const std::unique_ptr<MapMemoryReservation> charge_;
  AddressMap map_;

  const std::unique_ptr<MapMemoryReservation> blocked_charge_;
  BlockedRemovals blocked_removals_;

  RangeDeletionQueue range_deletions_;

  std::mutex spill_mutex_;
  std::set<uint64_t> spill_files_;

  static constexpr size_t kMaxRetiredMemory = size_t{64} << 20;
  std::atomic<size_t> retired_memory_{0};
  std::atomic<bool> exact_{true};
  std::atomic<uint64_t> appended_version_{0};
  UnsettledMapJobs unsettled_jobs_;
  ImplicitSnapshotRegistry read_bounds_;
  MapWorkQueue* work_queue_ = nullptr;
  std::atomic<bool> refuses_reads_{false};
  mutable std::mutex read_refusal_mutex_;
  Status read_refusal_;

  // The members from here on are protected by the DB mutex, except
  // folded_version_, which is also read without it.
  struct Retired {
    uint64_t version_number;
    size_t memory;
    std::unique_ptr<DeferredRemovals> removals;
  };
  std::vector<Retired> retired_;
  std::vector<MapCommitObserver*> pending_;
  std::set<uint64_t> dropping_;
  std::multiset<uint64_t> collecting_;
  static constexpr uint64_t kMaxGcCopies = uint64_t{1} << 30;
  uint64_t max_gc_copies_ = kMaxGcCopies;
  uint64_t copying_ = 0;
  uint64_t merge_space_ = 0;
  bool gc_allowed_ = true;
  // Number of folds that are about to commit.
  int num_folds_ = 0;
  uint64_t first_folded_version_ = 0;
  // All Versions with this number or a larger one have the values of all folds.
  std::atomic<uint64_t> folded_version_{0};
  // Files of failed jobs, by number, with the time in microseconds from which
  // on jobs may collect them again.
  static constexpr uint64_t kGcRetryMicros = 600 * 1000 * 1000;
  std::map<uint64_t, uint64_t> gc_retry_at_;
  // Damaged files, by number. The pause doubles with each job that fails.
  static constexpr uint64_t kMaxGcRetryMicros = uint64_t{86400} * 1000 * 1000;
  struct Damaged {
    bool is_kept = false;   // KeepDamagedFile()
    uint64_t pause = 0;     // microseconds
    uint64_t retry_at = 0;  // time in microseconds
  };
  std::map<uint64_t, Damaged> damaged_;
};

}  // namespace ROCKSDB_NAMESPACE
