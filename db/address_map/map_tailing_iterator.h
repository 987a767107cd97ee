//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "db/dbformat.h"
#include "db/strata/implicit_snapshot_registry.h"
#include "util/strata/pass_through_iterator.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;

// Keeps the values that a tailing iterator may read in the address map.
// ForwardIterator reads the newest data, and takes a new SuperVersion when it
// finds that there is one. Jobs must not remove entries from the map that the
// iterator's SuperVersion still has. So the iterator registers a read bound, at
// a sequence number that was the newest after the SuperVersion was taken.
//
// Invariant: Between two calls, at least one of the following holds:
// 1. No SuperVersion is newer than the one that the bound was taken for.
// 2. The bound protects all entries in the child's SuperVersion that are not
//    newer than the bound.
// 3. The bound protects all remaining entries of the child's current key.
//
// Why this suffices: No entry in the files of the SuperVersion is newer than
// the bound. If a job removed such an entry before the bound was registered,
// then either a newer SuperVersion was installed since, and the child is moved
// again, or the removed entry is hidden by an entry that the SuperVersion
// contains, too.
//
// However, DBIter may be in the middle of a key whose operands it is merging.
// It has passed the hiding entry then, and the entry that it reaches next can
// be dead. So the bound is kept while the iterator stays at the key: all
// entries of the key that are not newer than the bound are kept. Newer ones
// are in memtables, as ForwardIterator keeps to its SuperVersion among operands
// (ForwardIterator::StayAmongOperands()), and need no address.
//
// A new file may have an entry under another internal key: a flush writes the
// value of a kTypeValue entry to a blob file and makes it a kTypeBlobIndex
// entry, which precedes the kTypeValue entry of the same sequence number, and a
// compaction filter may do the reverse. So a position in one SuperVersion is
// found again in another by its user key, and an entry also by its sequence
// number (ForwardIterator::IsAtEntry()), never by the internal key.
//
// Cost: While an iterator does not move, new values of keys that have a direct
// entry are stored as versioned ones, as with a snapshot. The iterator also
// keeps its SuperVersion, as RocksDB's does.
class MapTailingIterator final : public PassThroughIterator {
 public:
  // last_sequence: returns the newest visible sequence number.
  // child: a ForwardIterator on the heap that was just created.
  MapTailingIterator(ColumnFamilyData* cfd, ImplicitSnapshotRegistry* bounds,
                     const std::function<SequenceNumber()>& last_sequence,
                     InternalIterator* child);

  void SeekToFirst() override;
  void Seek(const Slice& target) override;
  void Next() override;
  bool NextAndGetResult(IterateResult* result) override;

 private:
  // Repeats `seek`, which makes the child take the newest SuperVersion, until
  // the bound was taken for that SuperVersion.
  template <typename SeekChild>
  void Follow(const SeekChild& seek);
  // REQUIRES: Valid()
  bool IsAtKey(const Slice& user_key) const;

  ColumnFamilyData* const cfd_;
  const std::function<SequenceNumber()> last_sequence_;
  ImplicitSnapshotRegistry::ReadBound bound_;
  // The SuperVersion that the bound was taken for.
  uint64_t super_version_number_ = 0;
  std::string current_;
  InternalKey target_;
};

}  // namespace ROCKSDB_NAMESPACE
