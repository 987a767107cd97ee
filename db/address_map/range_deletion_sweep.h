//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "db/address_map/range_deletion_queue.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Version;
template <class TValue>
class InternalIteratorBase;
using InternalIterator = InternalIteratorBase<Slice>;

// Takes the values out of the address map that range deletions cover, so that
// their space is free without a compaction. It reads the keys of the SST files
// in the ranges, and no values.
//
// Why a name that is older than a committed range deletion over its key may go:
// nobody reads below the deletion, and nobody will; so no reader wants the
// value, and what a compaction finds missing it takes for dead. It goes by its
// name, which a newer value of the key does not have.
//
// What a range deletion older than all of these hides is not looked at: that
// one had a sweep of its own. So the keys of a range that is deleted again and
// again are read once, not each time. A compaction that gives a value under it
// another birth while its sweep runs leaves that one to a later compaction.
//
// Used by one thread.
class RangeDeletionSweep {
 public:
  // REQUIRES: the Version is one of cfd's, has all files that the deletions
  // were committed with and outlives this. check: asked now and then; what is
  // not OK ends the sweep.
  RangeDeletionSweep(ColumnFamilyData* cfd, Version* version,
                     const FileOptions& file_options,
                     std::function<Status()> check);

  // Stops after about max_steps entries and ranges. What was not come to stays
  // in `deletions`. So do ranges in which something could not be read: the
  // others have their turn, and the first error is returned. REQUIRES:
  // deletions are as from RangeDeletionQueue::Take(), and nobody reads below
  // them; max_steps is at least 2.
  Status Run(uint64_t max_steps,
             std::vector<CommittedRangeDeletion>* deletions);

  uint64_t entries_read() const { return entries_read_; }
  uint64_t values_removed() const { return values_removed_; }

 private:
  // Could the map name something in the ranges, in this level?
  bool HasMapped(int level,
                 const std::vector<CommittedRangeDeletion>& deletions) const;
  // One range. If it has to stop, its start becomes where the rest begins.
  Status SweepRange(InternalIterator* iter, CommittedRangeDeletion* deletion);
  // Counts an entry or a range. False if it has to stop.
  bool Step();

  ColumnFamilyData* const cfd_;
  Version* const version_;
  const FileOptions file_options_;
  const std::function<Status()> check_;
  uint64_t steps_left_ = 0;
  Status stopped_;  // by the check
  bool must_stop_ = false;
  // The iterator stands at the end of the last range, or behind it.
  bool is_positioned_ = false;
  uint64_t entries_read_ = 0;
  uint64_t values_removed_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
