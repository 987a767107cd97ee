//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
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

// Applies the changes of one compaction job to the address map of its column
// family.
//
//   DBStrata::WaitForSettledMap() -> one Part for each subcompaction ->
//   Publish() -> BeginCommit() -> the edit -> Close() -> Settle() -> Retire()
//
// docs/architecture.md, section 11, describes these steps for all jobs.
//
// Kinds of changes:
// 1. Renames (versioned to direct) happen when the entry is output. They need
//    no undo: the old SST files then mark the entry as versioned where the map
//    has it as direct, and readers find the value by its name.
// 2. Hidden names are removed during the job (MappedEntryMeter), all of them
//    before the edit. Their removal needs no undo.
// 3. New values, whose birth is the number of the new blob file, are inserted
//    before the edit (MapTransaction), and removed again if the edit fails.
// 4. Names that a filter or a merge dropped or changed are demoted after the
//    edit, and removed when no Version that names them exists
//    (DeferredRemovals). From Publish() until they are demoted the job is
//    unsettled (UnsettledMapJobs), and from BeginCommit() other jobs wait for
//    it. In between, listeners are told of the commit to come, and may do what
//    waits for the jobs before it.
// 5. Values that move to another path are handled as in 3 and 4. The value gets
//    a new name, as its birth is the number of its file. Readers of the old SST
//    files find it under the old name as long as there are such readers.
//
// Invariant: A new direct entry never takes the place of an entry with another
// value that must be restored if the job fails. If a value has changed and the
// map has a direct entry of its key, the new entry is versioned, and the next
// compaction renames it. (A moved value has not changed: a reader that finds it
// by its key alone may get either copy.)
class CompactionMapping {
 public:
  // The changes of one subcompaction. Used by the subcompaction's thread.
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

    // Called for each undecided entry that is written to a bottommost file, see
    // UndecidedFiles.
    // seq: sequence number of the entry, greater than 0.
    void OnUndecided(uint64_t sst_number, SequenceNumber seq);
    // Returns the smallest of these sequence numbers, kMaxSequenceNumber if the
    // file has no such entry.
    SequenceNumber FirstUndecided(uint64_t sst_number) const;

   private:
    friend class CompactionMapping;

    explicit Part(CompactionMapping* job);

    bool IsDirectModeSafe(const Slice& user_key, SequenceNumber seq);

    CompactionMapping* const job_;
    DirectModeCheck direct_mode_;
    MappedEntryMeter flow_;
    std::vector<MappedBlobFile> files_;
    uint64_t num_renamed_ = 0;
    std::map<uint64_t, SequenceNumber> first_undecided_;  // by SST file
#ifndef NDEBUG
    // The names, with their old sequence numbers, of the first kMaxChecked
    // entries whose sequence numbers became zero.
    static constexpr size_t kMaxChecked = size_t{1} << 16;
    std::vector<MapName> zeroed_;
#endif  // !NDEBUG
  };

  // Returns nullptr if the column family has no map.
  // earliest_reader, any_order: as for FlushMapping::Begin().
  // first_new_file_number: lower bound of the numbers of all files that the job
  // creates.
  // dbname: directory for temporary files.
  // REQUIRES: DB mutex held; compaction outlives the returned object.
  static std::unique_ptr<CompactionMapping> Begin(
      const Compaction* compaction, SequenceNumber earliest_reader,
      bool any_order, uint64_t first_new_file_number,
      const std::string& dbname);
  // REQUIRES: DB mutex held.
  ~CompactionMapping();

  // Creates the parts of n subcompactions, which are numbered from 0.
  // REQUIRES: called once, before part().
  void AddParts(size_t n);
  // Returns the part of a subcompaction. It outlives the subcompaction.
  Part* part(size_t subcompaction) { return parts_[subcompaction].get(); }

  // Inserts the new values into the map and marks the job as unsettled if it
  // has names to demote. After an error the job must not commit its edit. An
  // error of the file of names (DeferredRemovals::status()) keeps the flags of
  // the file system's, so that the error handler treats it as one of an output.
  // REQUIRES: all subcompactions succeeded; outputs and their directories are
  // synced.
  Status Publish();

  // Makes other jobs wait for this one, if it has names to demote, and tells
  // the store of the outputs with undecided entries. REQUIRES: Publish() was
  // OK; DB mutex held, and not released before the edit is passed to
  // VersionSet::LogAndApply().
  void BeginCommit();

  // Called when the outcome of the edit is known.
  // REQUIRES: DB mutex held.
  void Close();

  // Completes the changes after the edit succeeded, or undoes them after it
  // failed. If the returned status is not OK, dropped values can still be found
  // by their keys. Readers that find them are correct, but no other job of the
  // column family may build on the edit of this one, so all jobs fail until the
  // DB is reopened (UnsettledMapJobs::failure()).
  // The caller must then wake the threads that wait in
  // DBStrata::WaitForSettledMap().
  // REQUIRES: those of MapTransaction::Settle().
  Status Settle();

  // Passes the names that are to be removed later to AddressMapStore.
  // REQUIRES: Settle() was called; DB mutex held.
  void Retire();

 private:
  CompactionMapping(const Compaction* compaction,
                    SequenceNumber earliest_reader, bool any_order,
                    uint64_t first_new_file_number, const std::string& dbname);

  // Updates the store's list when the outcome of the edit is known.
  void CloseUndecided();

  const Compaction* const compaction_;
  AddressMapStore* const blobs_;
  const SequenceNumber earliest_reader_;
  const bool any_order_;
  const uint64_t first_new_file_number_;
  MapTransaction publication_;
  std::unique_ptr<DeferredRemovals> removals_;
  uint64_t num_renamed_ = 0;  // by all parts, from Publish() on
  // Set from Publish() until the names in removals_ are demoted.
  std::optional<UnsettledMapJobs::Job> unsettled_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace ROCKSDB_NAMESPACE
