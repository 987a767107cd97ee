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

// What one flush does to the address map of its column family.
//
//   NameOf(), OnEntry() for its output -> Publish() -> the edit -> Settle()
//
// Invariants:
// * A value is named (key, seq, 0): a memtable that is flushed again after a
//   failure gives the same names in other files. If a filter or a merge has
//   made the value, the birth is the number of its file, as it may be another
//   value the next time.
// * Only one flush of a column family is between its first step and the end
//   of Settle(). So the files of `base` are all that is older than the output.
// * The map loses an entry for what the flush wrote over it only after the
//   flush is in a SuperVersion, so a reader that misses it notices that its own
//   SuperVersion is outdated.
// * What the flush wrote over, direct or versioned, leaves the map as soon as
// no
//   reader needs it (BlockedRemovals): it does not wait for the compaction that
//   meets both entries. The name that an SST file still has for it is dead.
//
// Used by the flush's thread.
class FlushMapping : public MappedBlobSink {
 public:
  // nullptr if the column family has no map that new values go into.
  // earliest_reader: no reader is or will be at a smaller sequence number.
  // any_order: sequence numbers do not tell what is visible (write-prepared and
  // write-unprepared transactions): all values are versioned, and nothing is
  // removed.
  // activity: what the thread does.
  // REQUIRES: DB mutex held; the Version is the current one and outlives this.
  static std::unique_ptr<FlushMapping> Begin(
      ColumnFamilyData* cfd, Version* base, SequenceNumber earliest_reader,
      bool any_order, uint64_t sst_number, Env::IOActivity activity);
  // Of a fold of merge operands, which writes values as a flush does, under
  // sequence numbers that have operands before it. All are versioned: a direct
  // one would be found by the key alone, also by a reader that then applies the
  // operands to it once more. And all have the number of their file as birth,
  // since a fold that is repeated may come to another value. The values below
  // them stay in the map for those readers; compactions take them out, see
  // AddressMapStore::BeginFold().
  // REQUIRES: as of Begin(); no flush runs meanwhile.
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

  // A point entry as it goes into the SST file.
  void OnEntry(const ParsedInternalKey& key, const Slice& value);

  void OnRangeDeletion(const RangeTombstone& deletion);

  // REQUIRES: all that was written, and its directories, are synced.
  Status Publish();

  // The edit's fate is known.
  // REQUIRES: DB mutex held.
  void Close() { publication_.Close(); }
  // REQUIRES: as of MapTransaction.
  bool committed() const { return publication_.committed(); }

  // The flush is over, one way or the other.
  // readers: as of BlockedRemovals::Hide(), now.
  // REQUIRES: as MapTransaction::Settle().
  void Settle(const std::vector<SequenceNumber>& readers);

 private:
  // The entry of this key and number hides what is older.
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
  bool values_are_new_ = false;  // of a fold
  DirectModeCheck direct_mode_;
  MapTransaction publication_;
  std::vector<MappedBlobFile> files_;
  uint64_t num_direct_ = 0;
  uint64_t num_versioned_ = 0;
  std::vector<Hiding> hiding_;
  // The last entry that was no merge operand. Entries of a key come newest
  // first.
  Hiding last_;
  std::vector<CommittedRangeDeletion> range_deletions_;
  // The key of the last entry, whose newest version the row cache knows of.
  std::string last_key_;
  bool has_last_key_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
