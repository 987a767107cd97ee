//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "db/address_map/address_map.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/dbformat.h"
#include "db/strata/implicit_snapshot_registry.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class AddressMapStore;
class MergeContext;
class ReadCallback;
struct FdWithKeyRange;
struct SuperVersion;

// The lookup of one key in a column family with an address map: the read rule.
//
//   for (;;) {
//     Begin()                      reads D, the number of the direct entry
//     ... take the SuperVersion, then the sequence number s ...
//     Attach()
//     ... memtables ...
//     ... files: Skips() before one is opened, OnEntry() for what is found,
//         TakeDirect() or ConfirmAbsence() at the end ...
//     if (!NeedsRestart()) break;
//   }
//
// Why it is right.
// * D is read before the SuperVersion. So the SuperVersion has the entry of
//   the key at D, or what has replaced it, and nothing that is visible at s
//   and older than D matters. All that is newer than D and not direct is in
//   files that are not skipped, and in their filters.
// * What the search can miss is a direct entry that was inserted after D was
//   read. Each way to end looks at the map again: the direct entry must be the
//   one at D still; a name, and an entry that is used as it is (an inline
//   value, a tombstone, what a range deletion covers), must not have a visible
//   direct entry above it; and absence must be seen in the map and then, unless
//   the read is protected, in a SuperVersion that is still current, as entries
//   leave the map for good only after the SuperVersion that does without them
//   was installed. Else the search starts again.
// * From the fourth attempt on the read has a fixed sequence number that is
//   listed as a reader's bound, so that jobs keep what it needs.
//
// The value's file is pinned from OnEntry() or TakeDirect() on until the next
// Begin() or the destructor.
//
// Used by one thread at a time.
class MapPointRead {
 public:
  static constexpr int kMaxPlainAttempts = 3;

  enum class Action {
    kAsIs,      // the entry is used as it is
    kReplaced,  // key() and blob_index() take its place
    kStop,      // the search ends here, see NeedsRestart() and status()
  };

  // REQUIRES: the column family has a map
  // bounds: outlives this. Without it (nullptr) no attempt is bounded.
  MapPointRead(ColumnFamilyData* cfd, const Slice& user_key,
               const ReadOptions& read_options,
               ImplicitSnapshotRegistry* bounds);
  MapPointRead(const MapPointRead&) = delete;
  MapPointRead& operator=(const MapPointRead&) = delete;

  // `last_sequence` reads the newest sequence number that is visible.
  template <typename LastSequence>
  void Begin(const LastSequence& last_sequence) {
    if (++attempts_ > kMaxPlainAttempts && bounds_ != nullptr &&
        !bound_.registered()) {
      bound_ = bounds_->Register(last_sequence);
    }
    Start();
  }
  // The same if somebody else counts the attempts. is_bounded: and has listed
  // what Attach() will be given as a reader's bound.
  void Begin(bool is_bounded = false) {
    is_bounded_ = is_bounded;
    Start();
  }

  // In place of Begin() and Attach(): the search stops at the first entry of
  // the key, whose sequence number, or that of a tombstone above it, goes to
  // *newest. That of the map is the caller's business.
  void FindNewest(SequenceNumber* newest,
                  const SequenceNumber* max_covering_tombstone_seq,
                  MergeContext* merge_context);

  const MapKeyHash& hash() const { return hash_; }

  // The first attempt is bounded already, for a caller whom starting again
  // would harm. It still may, but hardly ever does. REQUIRES: before Begin()
  void BoundFromTheStart() { attempts_ = kMaxPlainAttempts; }

  // The sequence number to read at, in place of one without a snapshot.
  bool HasFixedSequence() const { return bound_.registered(); }
  SequenceNumber fixed_sequence() const { return bound_.sequence(); }

  // sequence: what the read is at, that of the LookupKey. callback: may be
  // nullptr.
  void Attach(const SuperVersion* super_version, SequenceNumber sequence,
              ReadCallback* callback, MergeContext* merge_context,
              const SequenceNumber* max_covering_tombstone_seq);

  // One more than D if it is visible, else 0. What lies below is not needed.
  uint64_t floor() const { return floor_; }
  // To be called of each file that the search would come to.
  bool Skips(const FdWithKeyRange& file);
  // The file is not skipped, but only for its range deletions: no point entry
  // below point_ceiling, MappedEntryStats::PointCeiling(), is needed.
  bool SkipsPoints(uint64_t point_ceiling) const {
    return point_ceiling <= floor_;
  }

  // A visible entry of the key that the search has come to.
  Action OnEntry(const ParsedInternalKey& entry, const Slice& value);
  // The search has come to its end, and floor() > 0.
  Action TakeDirect();
  // The search has come to its end, and floor() == 0. False if it must stop.
  bool ConfirmAbsence();

  bool stopped() const { return stopped_; }
  bool NeedsRestart() const { return stopped_ && status_.ok(); }
  const Status& status() const { return status_; }
  // What the caller gets, or TryAgain, for which the read starts again.
  Status StoppedStatus() const {
    return NeedsRestart() ? Status::TryAgain() : status_;
  }

  // REQUIRES of the following: the last action was kReplaced.
  bool replaced() const { return replaced_; }
  const ParsedInternalKey& key() const { return key_; }
  // The value itself, from the row cache, or an ordinary BlobIndex, with an
  // address, as key() says.
  Slice value() const {
    return is_cached_ ? Slice(cached_value_) : Slice(blob_index_);
  }
  // Of the value from the row cache; else nullptr.
  Cleanable* value_pinner() { return is_cached_ ? &cached_value_ : nullptr; }
  // What BlobFileReader compares the record with: an encoded
  // MappedRecordName.
  const Slice& record_name() const { return record_name_slice_; }
  // The value was read: keeps it in the row cache, if there is one.
  void FillRowCache(const Slice& value) const;

 private:
  void Start();
  bool FindDirectSeq(SequenceNumber* seq) const;
  bool HasVisibleDirectAbove(SequenceNumber seq) const;
  bool IsVisible(SequenceNumber seq) const;
  bool IsCurrent() const;
  bool IsProtected() const;
  // The search ends with an entry that is no concern of the map. seq: its
  // sequence number, or that of the range deletion over it.
  Action EndAsIs(SequenceNumber seq);
  Action TakeNamed(SequenceNumber seq, const Slice& value);
  Action Replace(AddressMap::Lookup&& found);
  Action Stop(Status s);
  Action Restart();

  ColumnFamilyData* const cfd_;
  AddressMapStore* const blobs_;
  ImplicitSnapshotRegistry* const bounds_;
  const Slice user_key_;
  const ReadOptions& read_options_;
  // kPersistedTier skips memtables: then only what is committed counts.
  bool durable_ = false;

  MapKeyHash hash_;
  int attempts_ = 0;
  ImplicitSnapshotRegistry::ReadBound bound_;
  bool is_bounded_ = false;

  // Only a sequence number is wanted; else nullptr.
  SequenceNumber* newest_ = nullptr;

  // Of one attempt.
  bool has_direct_ = false;
  SequenceNumber direct_seq_ = 0;  // D
  uint64_t floor_ = 0;
  bool asked_ = false;  // an SST file
  const SuperVersion* super_version_ = nullptr;
  SequenceNumber sequence_ = 0;
  // No job removes what is visible at sequence_. It was protected before D was
  // read and the SuperVersion was taken. So what is not in the files of that
  // SuperVersion, nor direct in the map, is absent, be the SuperVersion current
  // or not: its newest entry at sequence_ is in the SuperVersion, since jobs
  // keep it; and if it is direct, no newer direct entry has taken its place.
  // (But for what filters and DeleteFilesInRanges remove, whose absence is
  // right.) A SuperVersion from before a fold is no such one, see
  // IsProtected(): what the fold's value hides may have been demoted, though
  // operands in this SuperVersion still want it as their base.
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
