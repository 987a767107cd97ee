//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "db/blob/range_deletion_queue.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Version;

// Takes the values out of the address map that range deletions cover, so that
// their space is free without a compaction. It reads the keys of the SST files
// in the ranges, and no values.
//
// Why a name that is older than a committed range deletion over its key may go:
// nobody reads below the deletion, and nobody will; so no reader wants the value,
// and what a compaction finds missing it takes for dead. It goes by its name,
// which a newer value of the key does not have.
//
// What an older range deletion hides is not looked at: that one had a sweep of
// its own. So the keys of a range that is deleted again and again are read once,
// not each time.
//
// Used by one thread.
class RangeDeletionSweep {
 public:
  // REQUIRES: the Version is one of cfd's, has all files that the deletions were
  // committed with and outlives this.
  // check: asked now and then; what is not OK ends the sweep.
  RangeDeletionSweep(ColumnFamilyData* cfd, Version* version,
                     const FileOptions& file_options,
                     std::function<Status()> check);

  // Stops after about max_removed values. What was not come to stays in
  // `deletions`, after an error as well.
  // REQUIRES: deletions are as from RangeDeletionQueue::Take(), and nobody reads
  // below them.
  Status Run(uint64_t max_removed,
             std::vector<CommittedRangeDeletion>* deletions);

  uint64_t entries_read() const { return entries_read_; }
  uint64_t values_removed() const { return values_removed_; }

 private:
  ColumnFamilyData* const cfd_;
  Version* const version_;
  const FileOptions& file_options_;
  const std::function<Status()> check_;
  uint64_t entries_read_ = 0;
  uint64_t values_removed_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
