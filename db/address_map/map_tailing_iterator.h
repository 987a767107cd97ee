//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "db/strata/implicit_snapshot_registry.h"
#include "util/strata/pass_through_iterator.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;

// Keeps the values that a tailing iterator stands on in the address map.
// ForwardIterator reads what is newest, and takes a new SuperVersion when it
// finds that there is one. Jobs must not remove from the map what its
// SuperVersion still has; so there is a read bound, at a sequence number that
// was the newest after the SuperVersion was taken.
//
// Invariant: between two calls, either no SuperVersion is newer than that of
// the bound, or everything in the child's one that is not newer than the bound
// is kept by it; or at least all that is left of the child's key is.
//
// Why that is enough. Everything in the files of the SuperVersion is at most as
// new as the bound. Had a job removed something of it before the bound was
// listed, then either a newer SuperVersion was installed since, and the child
// is moved again, or what was removed is hidden by an entry that the
// SuperVersion has too.
//
// But DBIter may stand amid a key, whose operands it merges: that entry is then
// one that it has passed already, and what it comes to next can be dead. So
// while it stays at the key the bound stays as well: all of the key that is not
// newer than the bound is kept, whatever SuperVersion the child reads. What is
// newer and comes later, as operand and base were in a memtable when DBIter
// came to the key, it does not get. Nor does it from upstream's iterator: there
// the two are one entry after the flush, which comes before its position.
//
// The price: as long as an iterator stands still, new values of keys that have
// a direct entry are stored as versioned ones, as with a snapshot. It keeps its
// SuperVersion as well, as upstream's does.
class MapTailingIterator final : public PassThroughIterator {
 public:
  // last_sequence: reads the newest sequence number that is visible.
  // child: a ForwardIterator, on the heap, that was just made.
  MapTailingIterator(ColumnFamilyData* cfd, ImplicitSnapshotRegistry* bounds,
                     const std::function<SequenceNumber()>& last_sequence,
                     InternalIterator* child);

  void SeekToFirst() override;
  void Seek(const Slice& target) override;
  void Next() override;
  bool NextAndGetResult(IterateResult* result) override;

 private:
  // Runs `seek`, which makes the child take the newest SuperVersion, until the
  // bound is that of the SuperVersion.
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
};

}  // namespace ROCKSDB_NAMESPACE
