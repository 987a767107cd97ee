//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/compaction_value_mapper.h"
#include "db/address_map/deferred_removals.h"
#include "db/address_map/direct_mode_check.h"
#include "db/address_map/map_transaction.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/address_map/mapped_entry_meter.h"
#include "db/address_map/unsettled_map_jobs.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class BlobIndex;
class ColumnFamilyData;
class Compaction;

// What one compaction job does to the address map of its column family.
//
//   DBImpl::WaitForSettledMap() -> one Part for each subcompaction ->
//   Publish() -> the edit -> Settle() -> Retire()
//
// Five kinds of change:
// * rename, versioned to direct, when the entry is output. Needs no undo: the
//   old SST files then say versioned where the map says direct, and readers
//   find the value by its name.
// * names that are hidden, during the job (MappedEntryMeter), all of them
// before the
//   edit. Need no undo.
// * new values, with the number of the new blob file as birth: before the
//   edit (MapTransaction), undone if that fails.
// * names that a filter or a merge dropped or changed: demoted after the edit,
//   removed when no Version that names them lives (DeferredRemovals). From
//   Publish() until they are demoted the job is unsettled (UnsettledMapJobs).
// * values that move to another path: both of the last two. The value gets a
//   new name, as its birth is the number of its file; readers of the old files
//   find it under the old one until there are none.
//
// Invariant: a new direct entry never takes the place of one with another
// value that must come back if the job fails. Where a value has changed and the
// map has a direct entry of its key, the new one is versioned, and the next
// compaction renames it. (A moved value is the same: whoever reads it by its
// key alone may get either.)
class CompactionMapping {
 public:
  // Used by the thread of one subcompaction.
  class Part : public MappedBlobSink, public CompactionValueMapper {
   public:
    uint64_t hash_seed() const override;
    MappedBlobIndex NameOf(const Slice& user_key, SequenceNumber seq,
                           uint64_t file_number, bool value_changed) override;
    void OnFileClosed(MappedBlobFile&& file) override;

    bool keeps_mapped() const override;
    bool IsLost(const Slice& user_key, const BlobIndex& index) const override;
    bool FindPath(const Slice& user_key, const BlobIndex& index,
                  uint32_t* path_id) override;
    bool HasDirect(const Slice& user_key) const override;
    void OnSequenceZeroed(const Slice& user_key, SequenceNumber seq) override;
    Status Place(const Slice& user_key, SequenceNumber seq, const Slice& value,
                 std::string* index) override;

   private:
    friend class CompactionMapping;

    explicit Part(CompactionMapping* job);

    bool IsDirectModeSafe(const Slice& user_key, SequenceNumber seq);

    CompactionMapping* const job_;
    DirectModeCheck direct_mode_;
    MappedEntryMeter flow_;
    std::vector<MappedBlobFile> files_;
    uint64_t num_renamed_ = 0;
#ifndef NDEBUG
    // The entries whose sequence numbers became zero, with the old ones, or the
    // first ones of them.
    static constexpr size_t kMaxChecked = size_t{1} << 16;
    std::vector<MapName> zeroed_;
#endif  // !NDEBUG
    // The file that FindPath() found last. Values move in batches.
    uint64_t last_file_ = 0;
    uint32_t last_path_id_ = 0;
  };

  // nullptr if the column family has no map.
  // earliest_reader, any_order: as for FlushMapping::Begin().
  // first_new_file_number: all that the job creates have at least this.
  // dbname: where temporary files go.
  // REQUIRES: DB mutex held; compaction outlives this.
  static std::unique_ptr<CompactionMapping> Begin(
      const Compaction* compaction, SequenceNumber earliest_reader,
      bool any_order, uint64_t first_new_file_number,
      const std::string& dbname);
  // REQUIRES: DB mutex held.
  ~CompactionMapping();

  // REQUIRES: called once, before part(); subcompactions have the numbers 0 to
  // n - 1.
  void AddParts(size_t n);
  // Of a subcompaction, which it outlives.
  Part* part(size_t subcompaction) { return parts_[subcompaction].get(); }

  // REQUIRES: all subcompactions succeeded; outputs and their directories are
  // synced.
  Status Publish();

  // The edit's fate is known.
  // REQUIRES: DB mutex held.
  void Close();

  // The job is over, one way or the other. If the status is not OK, values that
  // are gone can still be found by their keys: readers that find them are
  // right, but no other job of the column family may build on this one's edit.
  // So none succeeds until the DB is opened again
  // (UnsettledMapJobs::failure()).
  // REQUIRES: as MapTransaction::Settle(). The caller then wakes the threads
  // that wait in DBImpl::WaitForSettledMap().
  Status Settle();

  // Leaves what is to be removed later to AddressMapStore.
  // REQUIRES: after Settle(); DB mutex held.
  void Retire();

 private:
  CompactionMapping(const Compaction* compaction,
                    SequenceNumber earliest_reader, bool any_order,
                    uint64_t first_new_file_number, const std::string& dbname);

  const Compaction* const compaction_;
  AddressMapStore* const blobs_;
  const SequenceNumber earliest_reader_;
  const bool any_order_;
  const uint64_t first_new_file_number_;
  MapTransaction publication_;
  std::unique_ptr<DeferredRemovals> removals_;
  // From Publish() until they are demoted.
  std::optional<UnsettledMapJobs::Job> unsettled_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace ROCKSDB_NAMESPACE
