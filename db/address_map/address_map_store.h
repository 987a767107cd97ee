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

// The separated values of a column family with an address map: the map, the
// files that it points into, and what is between a job's blob files and the
// MANIFEST.
//
// Invariants:
// * Every mapped entry of an SST file of the current Version that a reader
//   could reach has an entry in the map, and that entry's file is on disk.
// * The map names a file only if it is pending (a job is about to commit it)
//   or live (the current Version has it) or, for a reader that was there
//   before, dead and pinned.
// * A file is handed to VersionSet for deletion only by CollectObsoleteFiles(),
//   after it left the current Version and when nobody pins it. Older Versions
//   that have it do not count.
//
// Thread-safe as its parts are; what needs the DB mutex says so.
class AddressMapStore {
 public:
  // REQUIRES: all are the column family's; ioptions and blob_file_cache outlive
  // this
  AddressMapStore(uint32_t column_family_id, const ImmutableOptions& ioptions,
                  const TableFactory& table_factory,
                  BlobFileCache* blob_file_cache);
  ~AddressMapStore();
  AddressMapStore(const AddressMapStore&) = delete;
  AddressMapStore& operator=(const AddressMapStore&) = delete;

  // Has a column family of the DB an address map?
  // REQUIRES: DB mutex held.
  static bool Any(ColumnFamilySet* column_families);

  // Of the scans of this column family.
  ScanLengthHistogram* scan_lengths() const { return &scan_lengths_; }

  // nullptr without DBOptions::row_cache.
  const MappedRowCache* row_cache() const { return row_cache_.get(); }

  AddressMap* map() { return &map_; }
  const AddressMap* map() const { return &map_; }
  BlobFileSlotTable* files() { return &files_; }
  const BlobFileSlotTable& file_table() const { return files_; }

  // enable_blob_address_map: new values go into the map. It exists without,
  // too, while there are old ones.
  bool enabled() const { return ioptions_.enable_blob_address_map; }
  // enable_lsm_bypass: values may be stored in direct mode.
  bool bypass() const { return ioptions_.enable_lsm_bypass; }

  // A random number until recovery finds a file that has another.
  uint64_t hash_seed() const { return hash_seed_; }
  // REQUIRES: no reader, no writer yet.
  void SetHashSeed(uint64_t seed) { hash_seed_ = seed; }
  MapKeyHash HashOf(const Slice& user_key) const {
    return MapKeyHash::Of(user_key, hash_seed_);
  }

  // The ordinary encoded BlobIndex of a record.
  // REQUIRES: found.found, its file is pinned, it is not lost.
  void ToBlobIndex(const AddressMap::Lookup& found, size_t user_key_size,
                   std::string* blob_index) const;

  // Reads the value of (user_key, seq, index.birth). NotFound if it is dead (a
  // newer entry or a tombstone hides it) or lost.
  // source: the column family's.
  Status Fetch(BlobSource* source, const ReadOptions& read_options,
               const Slice& user_key, SequenceNumber seq,
               const MappedBlobIndex& index, PinnableSlice* value,
               uint64_t* bytes_read) const;
  // The same for what was found before.
  // REQUIRES: found.found, and its file is pinned if it is not lost.
  Status FetchFound(BlobSource* source, const ReadOptions& read_options,
                    const Slice& user_key, SequenceNumber seq,
                    const MappedBlobIndex& index,
                    const AddressMap::Lookup& found, PinnableSlice* value,
                    uint64_t* bytes_read) const;

  // Of a blob file of the column family.
  uint32_t PathIdOf(uint64_t file_number) const;

  // ---- Statistics.

  // Of a file of the current Version, beside what its metadata says: what the
  // map does not name. 0 if it is not of the map.
  uint64_t GarbageCount(const BlobFileMetaData& meta) const;
  uint64_t GarbageBytes(const BlobFileMetaData& meta) const;
  uint64_t NumBlockedRemovals() const { return blocked_removals_.Count(); }
  // REQUIRES: DB mutex held.
  uint64_t NumRetired() const;

  // Keeps a file from being deleted.
  class FilePin {
   public:
    // blobs: nullptr pins nothing.
    FilePin(AddressMapStore* blobs, uint64_t number);
    ~FilePin();
    FilePin(const FilePin&) = delete;
    FilePin& operator=(const FilePin&) = delete;

    // False if the file is not of the map, or about to be deleted.
    bool pinned() const { return slot_ != BlobFileSlotTable::kLostSlot; }

   private:
    AddressMapStore* const blobs_;
    uint32_t slot_ = BlobFileSlotTable::kLostSlot;
  };

  // ---- Recovery. REQUIRES: single-threaded.

  // The map is complete. Until then every file is kept.
  void SetReady() { ready_ = true; }
  bool ready() const { return ready_; }

  // The map was loaded with its files, all of the current Version.
  // The map is ready.
  void AdoptLoadedFiles();

  // A file of the current Version is damaged, and values are missing that it
  // may have: it is neither dropped nor collected, and the map is not saved.
  // REQUIRES: AddLiveFile() or AdoptLoadedFiles() has added it.
  void KeepDamagedFile(uint64_t number);

  // Adds a file of the current Version.
  uint32_t AddLiveFile(uint64_t number, uint32_t path_id,
                       CompressionType compression, uint64_t size);

  // ---- Commits.

  // The job is told of all Versions from now on.
  // REQUIRES of the following three: DB mutex held.
  void AddPending(MapCommitObserver* job);
  void RemovePending(MapCommitObserver* job);
  // The Version becomes the current one.
  void OnVersionAppended(const Version& version);
  // The number of the last one. It may not be in a SuperVersion yet.
  uint64_t appended_version() const {
    return appended_version_.load(std::memory_order_acquire);
  }

  // ---- Removals that wait for a reader.

  // How many removals a background job does in one go: they take a good part of
  // a second, and flushes wait for the thread.
  static constexpr size_t kSlice = size_t{1} << 20;

  // What entries of committed flushes hide.
  BlockedRemovals* blocked_removals() { return &blocked_removals_; }
  const BlockedRemovals& blocked_removals() const { return blocked_removals_; }
  // Makes the removals happen for which earliest_reader is high enough, but not
  // many more than kSlice.
  void ApplyBlockedRemovals(SequenceNumber earliest_reader) {
    blocked_removals_.Apply(earliest_reader, kSlice);
  }
  // The smallest sequence number that ApplyBlockedRemovals() waits for;
  // kMaxSequenceNumber if there is none.
  SequenceNumber BlockedUntil() const {
    return blocked_removals_.BlockedUntil();
  }

  // Range deletions that wait for readers, and for a sweep.
  RangeDeletionQueue* range_deletions() { return &range_deletions_; }
  const RangeDeletionQueue& range_deletions() const { return range_deletions_; }

  // What a committed job has taken out, for when no Version older than
  // `version_number` lives.
  // REQUIRES of the following three: DB mutex held.
  void Retire(std::unique_ptr<DeferredRemovals>&& removals,
              uint64_t version_number);
  bool HasRetired(uint64_t oldest_version) const;
  // To be removed from the map now: all lists, or the first ones until they
  // have kSlice names.
  std::vector<std::unique_ptr<DeferredRemovals>> TakeRetired(
      uint64_t oldest_version);
  // Moves a list that is about to be retired to its file if those that wait
  // take much memory. Thread-safe, and best called without the DB mutex.
  void LimitRetired(DeferredRemovals* removals) const;
  // False if the map may have entries that no reader and no job will find.
  // Such a map must not be saved.
  bool IsExact() const { return exact_.load(std::memory_order_relaxed); }
  void SetInexact() { exact_.store(false, std::memory_order_relaxed); }

  // Values that files call direct cannot be found by their keys any more, as a
  // job that has failed could not be undone. All point reads fail with `s` from
  // now on, until the DB is opened again and its map is built from the files:
  // they could take what exists for absent. Iterators, which find values by
  // their names, go on.
  void RefuseReads(const Status& s);
  // Takes no lock.
  bool refuses_reads() const {
    return refuses_reads_.load(std::memory_order_acquire);
  }
  Status read_refusal() const;

  // ---- Work for background jobs.

  // The queue is told from now on when there may be something to do.
  // on_bounds_released: see ImplicitSnapshotRegistry.
  // REQUIRES: single-threaded; queue outlives this.
  void SetWorkQueue(MapWorkQueue* queue,
                    std::function<void()> on_bounds_released);
  void SignalWork();
  // A Version is gone, perhaps the oldest one.
  // REQUIRES: DB mutex held.
  void OnVersionDeleted() {
    if (!retired_.empty()) {
      SignalWork();
    }
  }

  // The bounds of readers of this column family alone.
  ImplicitSnapshotRegistry* read_bounds() { return &read_bounds_; }

  UnsettledMapJobs* unsettled_jobs() { return &unsettled_jobs_; }
  const UnsettledMapJobs& unsettled_jobs() const { return unsettled_jobs_; }

  // A fold is about to commit values over entries that readers of older
  // Versions merge operands with, at whatever sequence number they read. For as
  // long as there may be such readers, a compaction that finds an entry hidden
  // by such a value must not take it out of the map at once, as that is not
  // what hides it from them: it must leave it to DeferredRemovals. And it must
  // not make the value direct, which would do the same.
  //   BeginFold() -> the edit -> EndFold()
  // REQUIRES: DB mutex held.
  void BeginFold() {
    ++num_folds_;
    UpdateFoldedVersion();
  }
  // first_version: a Version that has the values, and so have all later ones; 0
  // if none has.
  // REQUIRES: DB mutex held.
  void EndFold(uint64_t first_version) {
    --num_folds_;
    first_folded_version_ = std::max(first_folded_version_, first_version);
    UpdateFoldedVersion();
  }
  // Is the Version with this number, or may it be, from before a fold that is
  // or will be committed? Needs no mutex. The answer for a Version may change
  // from false to true at any time, but not after a compaction has built on the
  // fold.
  bool IsBeforeFold(uint64_t version_number) const {
    return version_number < folded_version_.load(std::memory_order_acquire);
  }

  // Makes temporary files of the column family, in the DB's directory. The
  // Version is one of it.
  DeferredRemovals::NewSpillFile SpillFiles(Version* version,
                                            const std::string& dbname);

  // ---- Garbage collection. REQUIRES of all: DB mutex held.

  // The files of the current Version, and those that a job is about to add, as
  // the picker wants them. Files of a job that failed lately are to be left
  // alone, unless also_failed.
  std::vector<BlobGcPicker::File> FilesForGc(const VersionStorageInfo& version,
                                             bool also_failed = false) const;
  // False while jobs must not run: then nobody is slowed down for them.
  void SetGcAllowed(bool allowed) { gc_allowed_ = allowed; }
  // What writes are slowed down for: compaction_needed_bytes, or more if the
  // space amplification, with what jobs copy now, is above kStallFactor times
  // the limit. Then it is so much that writes are slowed down
  // (soft_pending_compaction_bytes_limit, if there is one), the more the
  // farther above, but never stopped. Not if it is the copies alone, as where
  // the values take up no more than a few files: without them it must be above
  // kLeastStallFactor times the limit.
  uint64_t AddGcDebt(uint64_t compaction_needed_bytes,
                     const VersionStorageInfo& version,
                     const MutableCFOptions& options) const;
  static constexpr double kStallFactor = 1.01;
  static constexpr double kLeastStallFactor = 0.98;
  // A job writes copies of so many bytes, until it has published them.
  void BeginCopies(uint64_t bytes) { copying_ += bytes; }
  void EndCopies(uint64_t bytes) { copying_ -= bytes; }
  // A job has the file, from when it was picked, or a merge of several jobs:
  // the picker leaves it alone until each BeginGc() had its EndGc().
  void BeginGc(uint64_t number) { collecting_.insert(number); }
  void EndGc(uint64_t number) { collecting_.erase(collecting_.find(number)); }
  // How much a job may copy. Less after there was no space for it.
  uint64_t max_gc_copies() const { return max_gc_copies_; }
  void OnGcOutOfSpace(uint64_t copied) {
    max_gc_copies_ =
        std::max(uint64_t{1}, std::min(max_gc_copies_, copied) / 2);
  }
  // While it merges sorted runs, somebody keeps so much of what was copied.
  // AddGcDebt() does not count it.
  void AddMergeSpace(uint64_t bytes) { merge_space_ += bytes; }
  void SubMergeSpace(uint64_t bytes) { merge_space_ -= bytes; }
  bool HasGcJobs() const { return !collecting_.empty(); }
  // A job could not read the file. Jobs that start by themselves leave it
  // alone, for longer each time, and its garbage, which they cannot collect,
  // does not count for the limit.
  void OnGcDamaged(uint64_t number);
  // Files of which recovery or a job has found that they are damaged.
  size_t NumDamagedFiles() const { return damaged_.size(); }
  void OnGcSucceeded();
  void OnGcFailed(const std::set<uint64_t>& files);

  // ---- Files.

  // Gives a complete file a slot, pending. kLostSlot if there is none left.
  uint32_t AddPendingFile(const MappedBlobFile& file);
  // The same, for copies of values that are committed already.
  uint32_t AddFileOfCopies(const MappedBlobFile& file);
  // Its edit failed and the map does not name it.
  void AbandonFile(uint32_t slot);

  // True if some file may be dropped by an edit. Cheap.
  bool HasDroppableFiles() const { return files_.HasDroppable(); }
  // Adds to the edit the removal of all files without a live record.
  // Returns their numbers, which are not offered again until
  // FinishDrops().
  // own: files, by slot, that the caller has a job's pin of. They are removed
  // if nobody else has one. If the edit fails it may need them again. REQUIRES
  // of the following four: DB mutex held.
  std::vector<uint64_t> AddDrops(const VersionStorageInfo& version,
                                 VersionEdit* edit,
                                 const std::vector<uint32_t>& own = {});
  void FinishDrops(const std::vector<uint64_t>& numbers);
  // Hands the files that nobody needs any more over to `versions`. keep, for a
  // scan of the directories, gets all others; it may be nullptr.
  void CollectObsoleteFiles(VersionSet* versions, UnorderedSet<uint64_t>* keep);
  // Hands all files over: the column family was dropped and nobody uses it.
  void ReleaseAll(VersionSet* versions);
  // False if the file, which a Version has, need not be kept for its sake: it
  // left the current Version, and nobody reads it.
  bool Keeps(uint64_t number) const;

 private:
  void UpdateFoldedVersion() {
    folded_version_.store(num_folds_ > 0 ? UINT64_MAX : first_folded_version_,
                          std::memory_order_release);
  }
  // kLostSlot if there is none left.
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

  // By the DB mutex.
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
  // Folds that are about to commit.
  int num_folds_ = 0;
  uint64_t first_folded_version_ = 0;
  // All Versions from this number on have the values of all folds.
  std::atomic<uint64_t> folded_version_{0};
  // Files of jobs that failed, and when they may be tried again.
  static constexpr uint64_t kGcRetryMicros = 600 * 1000 * 1000;
  std::map<uint64_t, uint64_t> gc_retry_at_;
  // Damaged files. The pause doubles with each job that fails.
  static constexpr uint64_t kMaxGcRetryMicros = uint64_t{86400} * 1000 * 1000;
  struct Damaged {
    bool is_kept = false;  // KeepDamagedFile()
    uint64_t pause = 0;
    uint64_t retry_at = 0;
  };
  std::map<uint64_t, Damaged> damaged_;
};

}  // namespace ROCKSDB_NAMESPACE
