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

// Removes the values that range deletions cover from the address map, so that
// their space can be reclaimed without a compaction. It reads the keys of the
// SST files in the ranges, but no values.
//
// Why a name that is older than a committed range deletion over its key may be
// removed: No reader reads or will read below the deletion, so no reader needs
// the value, and a compaction takes a value that is missing for dead. The entry
// is removed by its name, which no newer value of the key has.
//
// Invariant: A name is removed only if it is older than the deletion by its
// sequence number, and was born before the deletion was committed. When the
// sweep runs, the deletion and all that it hid may have left the tree long ago.
// Values that were ingested since then, or that a compaction has given another
// sequence number, have smaller numbers than the deletion; but they were born
// later (MapTransaction::born_before()).
//
// Entries that are hidden by a range deletion older than all of the given ones
// are skipped, because that deletion had a sweep of its own. So the keys of a
// range that is deleted repeatedly are read once, not each time. If a
// compaction gives a covered value another birth after the deletion was
// committed, that value is left to a later compaction.
//
// Used by one thread.
class RangeDeletionSweep {
 public:
  // check: called from time to time; a status that is not OK ends the sweep.
  // REQUIRES: the Version belongs to cfd, contains all files that the deletions
  // were committed with, and outlives this object.
  RangeDeletionSweep(ColumnFamilyData* cfd, Version* version,
                     const FileOptions& file_options,
                     std::function<Status()> check);

  // Sweeps the ranges, and stops after about max_steps entries and ranges, at
  // the end of a user key: so each call gets further, whatever the number of
  // entries of a key. The ranges that were not processed stay in `deletions`.
  // So do ranges with a read error: the sweep continues with the next range,
  // and the first error is returned.
  // REQUIRES: deletions are in the form that RangeDeletionQueue::Take()
  // returns; there are no readers below them; max_steps is at least 1.
  Status Run(uint64_t max_steps,
             std::vector<CommittedRangeDeletion>* deletions);

  uint64_t entries_read() const { return entries_read_; }
  uint64_t values_removed() const { return values_removed_; }

 private:
  // Returns true if the level may have mapped entries in the ranges.
  bool HasMapped(int level,
                 const std::vector<CommittedRangeDeletion>& deletions) const;
  // Sweeps one range. If it has to stop, sets the start of the range to where
  // the rest begins.
  Status SweepRange(InternalIterator* iter, CommittedRangeDeletion* deletion);
  // Counts an entry or a range. Returns false if the sweep has to stop because
  // check_ says so.
  bool Step();

  ColumnFamilyData* const cfd_;
  Version* const version_;
  const FileOptions file_options_;
  const std::function<Status()> check_;
  uint64_t steps_left_ = 0;
  uint64_t steps_ = 0;  // since the call of Run()
  Status stopped_;      // the last result of check_
  bool must_stop_ = false;
  // True if the iterator is at or after the end of the last range.
  bool is_positioned_ = false;
  uint64_t entries_read_ = 0;
  uint64_t values_removed_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
