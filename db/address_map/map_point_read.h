//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "db/address_map/address_map.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/dbformat.h"
#include "db/strata/implicit_snapshot.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class AddressMapStore;
class ImplicitSnapshotRegistry;
class ReadCallback;
struct FdWithKeyRange;
struct SuperVersion;

// Looks up one key in a column family with an address map.
//
//   for (;;) {
//     Begin()                      reads D, the sequence number of the key's
//                                  direct entry
//     ... take the SuperVersion, then the read sequence number s ...
//     Attach()
//     ... search memtables ...
//     ... search files: Skips() before a file is opened, OnEntry() for each
//         entry found, TakeDirect() or ConfirmAbsence() at the end ...
//     if (!NeedsRestart()) break;
//   }
//
// Why the result is correct:
// 1. D is read before the SuperVersion is taken. So the SuperVersion contains
//    the entry of the key at D, or the entry that has replaced it, and entries
//    that are visible at s and older than D do not matter. All entries that are
//    newer than D and not direct are in files that are not skipped, and in the
//    filters of these files.
// 2. The search can miss only a direct entry that was inserted after D was
//    read. So each way to end the search looks at the map again:
//    * a direct value: the direct entry must still be the one at D;
//    * a value found by its name, or an entry that is used as it is (an inline
//      value, a tombstone, an entry that a range deletion covers): there must
//      be no visible direct entry above it. An ingested file can have a value
//      and a range deletion with one sequence number. The value is above the
//      range deletion then, but an inline value and a direct entry with one
//      sequence number are the same value;
//    * absence: the map must have no visible direct entry, and then, unless
//      the read is protected, the SuperVersion must still be current, because
//      entries leave the map for good only after a SuperVersion that does not
//      need them was installed. If the map has versioned entries only
//      (AddressMapStore::versioned_only()), no search can miss a direct entry:
//      no file is skipped, all keys are in the filters, and what is absent in
//      the memtables and files of the SuperVersion is absent. So absence needs
//      no second look at the map, however many SuperVersions follow.
//    Otherwise the search starts again.
// 3. From the fourth attempt on, the read has a fixed sequence number that is
//    registered in ImplicitSnapshotRegistry, so that jobs keep the entries that
//    it needs. Jobs with a snapshot checker (of write-prepared and
//    write-unprepared transactions) do not look at the registry. Their maps
//    have versioned entries only.
//
// The file of the value is pinned from OnEntry() or TakeDirect() until the next
// Begin() or the destructor.
//
// Used by one thread at a time.
class MapPointRead {
 public:
  static constexpr int kMaxPlainAttempts = 3;

  enum class Action {
    kAsIs,      // the entry is used as it is
    kReplaced,  // key() and value() take the place of the entry
    kStop,      // the search ends here, see NeedsRestart() and status()
  };

  // bounds: registry for the fixed sequence number. If it is nullptr, no
  // attempt has a fixed sequence number.
  // REQUIRES: the column family has a map; the arguments outlive this object.
  MapPointRead(ColumnFamilyData* cfd, const Slice& user_key,
               const ReadOptions& read_options,
               ImplicitSnapshotRegistry* bounds);
  MapPointRead(const MapPointRead&) = delete;
  MapPointRead& operator=(const MapPointRead&) = delete;

  // Starts an attempt and counts it.
  // last_sequence: returns the newest visible sequence number.
  template <typename LastSequence>
  void Begin(const LastSequence& last_sequence) {
    if (++attempts_ > kMaxPlainAttempts && can_register_) {
      implicit_snapshot_.Take(last_sequence);
    }
    Start();
  }
  // Starts an attempt; for callers that count the attempts themselves.
  // is_bounded: the caller has registered the sequence number that it will pass
  // to Attach() in an ImplicitSnapshotRegistry.
  void Begin(bool is_bounded = false) {
    is_bounded_ = is_bounded;
    Start();
  }

  // Called in place of Begin() and Attach() to find only a sequence number: the
  // search stops at the first entry of the key and stores its sequence number,
  // or that of a range deletion above it, in *newest. The caller must look up
  // the sequence number in the map itself.
  void FindNewest(SequenceNumber* newest,
                  const SequenceNumber* max_covering_tombstone_seq);

  const MapKeyHash& hash() const { return hash_; }

  // Makes even the first attempt use a fixed sequence number, for callers to
  // which a restart is expensive, or which need the same entries again after
  // one. Restarts are still possible, but rare: only an entry that comes into
  // the map after D was read can cause one.
  // REQUIRES: Begin() was not called yet.
  void BoundFromTheStart() { attempts_ = kMaxPlainAttempts; }

  // True if the caller must read at fixed_sequence() in place of the sequence
  // number that it would use without a snapshot. It must search the files with
  // fixed_options() then: range deletions of SST files are read by the options'
  // snapshot, and a newer one must not hide an entry.
  bool HasFixedSequence() const { return implicit_snapshot_.taken(); }
  SequenceNumber fixed_sequence() const {
    return implicit_snapshot_.options().snapshot->GetSequenceNumber();
  }
  const ReadOptions& fixed_options() const {
    return implicit_snapshot_.options();
  }

  // Sets the state that this attempt reads.
  // sequence: sequence number to read at, that of the LookupKey.
  // callback: may be nullptr.
  void Attach(const SuperVersion* super_version, SequenceNumber sequence,
              ReadCallback* callback,
              const SequenceNumber* max_covering_tombstone_seq);

  // D + 1 if D is visible, else 0. Entries with smaller sequence numbers are
  // not needed.
  uint64_t floor() const { return floor_; }
  // Returns true if the search need not open the file. Must be called for each
  // file that the search reaches.
  bool Skips(const FdWithKeyRange& file);
  // Returns true if the point entries of a file that is not skipped are not
  // needed, but only its range deletions.
  // point_ceiling: MappedEntryStats::PointCeiling() of the file.
  bool SkipsPoints(uint64_t point_ceiling) const {
    return point_ceiling <= floor_;
  }

  // Called for each visible entry of the key that the search finds.
  Action OnEntry(const ParsedInternalKey& entry, const Slice& value);
  // Called at the end of a search that found no final entry.
  // REQUIRES: floor() > 0.
  Action TakeDirect();
  // Called at the end of a search that found no final entry. Returns false if
  // the search must stop, see NeedsRestart() and status().
  // REQUIRES: floor() == 0.
  bool ConfirmAbsence();

  bool stopped() const { return stopped_; }
  bool NeedsRestart() const { return stopped_ && status_.ok(); }
  const Status& status() const { return status_; }
  // Returns status(), or TryAgain if the read must start again.
  Status StoppedStatus() const {
    return NeedsRestart() ? Status::TryAgain() : status_;
  }

  // True if an entry was replaced in this attempt (Action::kReplaced): the
  // search is over.
  bool replaced() const { return replaced_; }
  // The key of the entry that takes the place of the one found. Its type tells
  // what value() is.
  // REQUIRES: replaced().
  const ParsedInternalKey& key() const { return key_; }
  // The value itself, from the row cache, if the type of key() is kTypeValue;
  // empty if the type is kTypeDeletion; otherwise an ordinary BlobIndex with
  // the address of the value. REQUIRES: replaced().
  Slice value() const {
    return is_cached_ ? Slice(cached_value_) : Slice(blob_index_);
  }
  // Keeps a value from the row cache alive; nullptr for a BlobIndex.
  // REQUIRES: replaced().
  Cleanable* value_pinner() { return is_cached_ ? &cached_value_ : nullptr; }
  // The encoded MappedRecordName that BlobFileReader compares with the record.
  // REQUIRES: replaced().
  const Slice& record_name() const { return record_name_slice_; }
  // Inserts the value that was read into the row cache, if there is one.
  void FillRowCache(const Slice& value) const;

 private:
  void Start();
  bool FindDirectSeq(SequenceNumber* seq) const;
  // Returns true if the newest direct entry is visible, and its sequence number
  // is `seq` or a greater one.
  bool HasVisibleDirectFrom(SequenceNumber seq) const;
  bool IsVisible(SequenceNumber seq) const;
  bool IsCurrent() const;
  bool IsProtected() const;
  // Ends the search with an entry that does not refer to the map.
  // first_above: the smallest sequence number of a direct entry that would take
  // its place.
  Action EndAsIs(SequenceNumber first_above);
  Action TakeNamed(SequenceNumber seq, const Slice& value);
  Action Replace(AddressMap::Lookup&& found);
  // The entry with this sequence number has no value any more.
  Action ReplaceByDeletion(SequenceNumber seq);
  // Counts the read of the value for BlobHeat, unless it needs no blob file.
  void CountRead(const AddressMap::Lookup& found) const;
  // Ends the search because the value cannot be read although the key exists,
  // or may exist. Without I/O that is Incomplete, as for all values that are
  // not in memory: KeyMayExist() takes any other error for an absent key.
  Action StopWithoutValue(Status s);
  // Returns the key for the message of a Status.
  std::string KeyText() const;
  Action Stop(Status s);
  Action Restart();

  ColumnFamilyData* const cfd_;
  AddressMapStore* const blobs_;
  const Slice user_key_;
  const ReadOptions& read_options_;
  // True for kPersistedTier, which skips memtables: only committed entries of
  // the map are used then.
  bool durable_ = false;

  MapKeyHash hash_;
  int attempts_ = 0;
  const bool can_register_;
  ImplicitSnapshot implicit_snapshot_;
  bool is_bounded_ = false;

  // Result of FindNewest(); nullptr if that was not called.
  SequenceNumber* newest_ = nullptr;

  // State of one attempt, down to pin_.
  bool has_direct_ = false;
  SequenceNumber direct_seq_ = 0;  // D
  uint64_t floor_ = 0;
  bool asked_ = false;  // an SST file was not skipped
  const SuperVersion* super_version_ = nullptr;
  SequenceNumber sequence_ = 0;
  // True if no job removes entries that are visible at sequence_, and this has
  // been so since before D was read and the SuperVersion was taken. Then a key
  // that is neither in the files of the SuperVersion nor direct in the map is
  // absent, even if the SuperVersion is not current: the newest entry of the
  // key at sequence_ would be in the SuperVersion, since jobs keep it; and if
  // that entry is direct, no newer direct entry has taken its place. (Entries
  // that compaction filters and DeleteFilesInRanges remove are an exception,
  // but reporting them as absent is correct.)
  // This does not hold for an older SuperVersion, see IsProtected(), if an
  // entry that its readers see may have been demoted:
  // * by a compaction that has merged or changed the value, because the new
  //   value may not be direct;
  // * under a folded value, although operands in the SuperVersion still need
  //   the entry as their base.
  bool protected_ = false;
  ReadCallback* callback_ = nullptr;
  const SequenceNumber* max_covering_tombstone_seq_ = nullptr;
  bool stopped_ = false;
  Status status_;
  bool replaced_ = false;
  ParsedInternalKey key_;
  std::string blob_index_;
  PinnableSlice cached_value_;
  bool is_cached_ = false;
  std::string record_name_;
  Slice record_name_slice_;
  MapFilePin pin_;
};

}  // namespace ROCKSDB_NAMESPACE
