//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "db/address_map/direct_mode_check.h"
#include "db/address_map/map_transaction.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/address_map/range_deletion_queue.h"
#include "db/dbformat.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/statistics.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class AddressMapStore;
class Version;

// Applies the changes of one flush to the address map of its column family.
//
//   Begin() -> NameOf(), OnEntry() for its output -> Publish() -> the edit ->
//   Close() -> Settle()
//
// docs/architecture.md, section 11, describes these steps for all jobs.
//
// Invariants:
// 1. A value is named (key, seq, 0), so that a memtable that is flushed again
//    after a failure gives the same names in other files. If a filter or a
//    merge has produced the value, the birth is the number of its blob file,
//    because the next attempt may produce another value.
// 2. Only one flush of a column family at a time is between its first step and
//    the end of Settle(). So the files of `base` contain all entries that are
//    older than the output.
// 3. An entry that the flush overwrote leaves the map only after the flush is
//    in a SuperVersion, so a reader that misses the entry notices that its own
//    SuperVersion is outdated.
// 4. Entries that the flush overwrote, direct or versioned, leave the map as
//    soon as no reader needs them (BlockedRemovals), without waiting for the
//    compaction that merges both entries. The name that an SST file still has
//    for such an entry is dead.
//
// Used by the flush thread.
class FlushMapping : public MappedBlobSink {
 public:
  // Returns nullptr if the column family has no map that new values go into.
  // earliest_reader: sequence number; no reader reads or will read at a smaller
  // one.
  // any_order: true if sequence numbers do not determine visibility
  // (write-prepared and write-unprepared transactions). Then all values are
  // versioned, and no entry is removed.
  // activity: the I/O activity of the calling thread.
  // REQUIRES: DB mutex held; base is the current Version and outlives the
  // returned object.
  static std::unique_ptr<FlushMapping> Begin(
      ColumnFamilyData* cfd, Version* base, SequenceNumber earliest_reader,
      bool any_order, uint64_t sst_number, Env::IOActivity activity);
  // Like Begin(), for a fold of merge operands, which writes values as a flush
  // does, but with sequence numbers that operands had before.
  // All values are versioned: a direct value would be found by the key alone,
  // also by a reader that would then apply the operands to it a second time.
  // The birth of all values is the number of their blob file, since a repeated
  // fold may produce another value. The values below them stay in the map for
  // those readers; compactions remove them, see FoldedVersions.
  // REQUIRES: DB mutex held; base is the current Version and outlives the
  // returned object; no flush runs until Settle() has returned.
  static std::unique_ptr<FlushMapping> BeginFold(ColumnFamilyData* cfd,
                                                 Version* base,
                                                 uint64_t sst_number);
  // REQUIRES: DB mutex held.
  ~FlushMapping() override;

  const AddressMapStore* blobs() const { return blobs_; }

  uint64_t hash_seed() const override;
  MappedBlobIndex NameOf(const Slice& user_key, SequenceNumber seq,
                         uint64_t file_number, bool value_changed) override;
  void OnValue(const Slice& user_key, SequenceNumber seq,
               const Slice& blob_index, const Slice& value) override;
  void OnFileClosed(MappedBlobFile&& file) override;

  // Called for each point entry that is written to the SST file.
  void OnEntry(const ParsedInternalKey& key, const Slice& value);

  void OnRangeDeletion(const RangeTombstone& deletion);

  // Inserts the new values into the map. After an error the flush must not
  // commit its edit.
  // REQUIRES: the files that were written and their directories are synced.
  Status Publish();

  // Called when the outcome of the edit is known.
  // REQUIRES: DB mutex held.
  void Close() { publication_.Close(); }
  // REQUIRES: DB mutex held, or Close() was called.
  bool committed() const { return publication_.committed(); }

  // Completes the changes after the edit succeeded, or undoes them after it
  // failed.
  // readers: as for BlockedRemovals::Hide(), at the time of the call.
  // REQUIRES: those of MapTransaction::Settle().
  void Settle(const std::vector<SequenceNumber>& readers);

 private:
  // The entry with this key and sequence number hides older entries.
  struct Hiding {
    MapKeyHash key;
    SequenceNumber seq = 0;
  };

  FlushMapping(ColumnFamilyData* cfd, Version* base,
               SequenceNumber earliest_reader, bool any_order,
               uint64_t sst_number, Env::IOActivity activity);

  AddressMapStore* const blobs_;
  ColumnFamilyData* const cfd_;
  const uint64_t sst_number_;
  const bool any_order_;
  bool values_are_new_ = false;  // true for a fold
  DirectModeCheck direct_mode_;
  MapTransaction publication_;
  std::vector<MappedBlobFile> files_;
  uint64_t num_direct_ = 0;
  uint64_t num_versioned_ = 0;
  std::vector<Hiding> hiding_;
  // The last entry that was not a merge operand. The entries of a key are
  // passed newest first.
  Hiding last_;
  std::vector<CommittedRangeDeletion> range_deletions_;
  // The key of the last entry. The row cache has been informed of the newest
  // version of this key.
  std::string last_key_;
  bool has_last_key_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
