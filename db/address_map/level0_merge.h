//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class VersionStorageInfo;
struct FileMetaData;
struct MutableCFOptions;

// Decides when the files of level 0 are merged with each other before they are
// compacted into the base level, in a column family with an address map (level
// style compaction).
//
// In such a column family a flush adds only keys, but no values, to level 0.
// Compacting these few entries into the base level would rewrite that level for
// little. So level 0 grows until it is as large as the base level, or half of
// max_bytes_for_level_base. Until then its files are merged in tiers, as in
// universal compaction: the newest files, at least
// level0_file_num_compaction_trigger of them, are merged once they are of about
// the same size. A byte is rewritten once per tier, i.e. once each time that
// level 0 grows by a factor of the trigger, and the number of base level
// entries that are rewritten along with it falls by that factor. RocksDB merges
// all of level 0 with each flush or four, up to a twentieth of the base level.
//
// Level 0 has fewer files than the trigger in each tier. Before there are so
// many files that writes are slowed down or stopped, files are merged
// regardless of their sizes.
//
// When scans have paid for it (Level0Debt), level 0 is compacted into the base
// level whatever its size is.
class Level0Merge {
 public:
  Level0Merge() = delete;

  enum class Action {
    kWait,   // do nothing
    kMerge,  // merge the newest num_files files with each other
    kDown,   // compact all files into the base level
  };
  struct Decision {
    Action action = Action::kWait;
    size_t num_files = 0;
  };

  // Returns the next action.
  // files: the files of level 0, newest first. The first file that is being
  // compacted and all older ones are ignored; if there is such a file, the
  // result is not kDown.
  // base_size: bytes, size of the base level.
  // is_paid: scans have paid for kDown.
  static Decision Decide(const std::vector<FileMetaData*>& files,
                         uint64_t base_size, const MutableCFOptions& options,
                         bool is_paid);

  // Returns true if level 0 needs a compaction, whether or not one is running.
  // If not, the number of files does not count as compaction debt.
  static bool IsDue(const std::vector<FileMetaData*>& files, uint64_t base_size,
                    const MutableCFOptions& options);

  // Returns the number of sorted runs for the score of level 0: 0 if Decide()
  // returns kWait, else num_runs, but at least as many as cause a compaction.
  static int SortedRuns(const std::vector<FileMetaData*>& files, int num_runs,
                        uint64_t base_size, const MutableCFOptions& options,
                        bool is_paid);

  // Returns the price of kDown for Level0Debt, in bytes: keys that are
  // rewritten and values that move to the path of the base level. value_size:
  // bytes, average size of a mapped value.
  static uint64_t PriceOf(const VersionStorageInfo& files,
                          const MutableCFOptions& options, uint64_t value_size);

 private:
  // Decides for the n newest files as if none were being compacted.
  static Decision DecideNewest(const std::vector<FileMetaData*>& files,
                               size_t n, uint64_t base_size,
                               const MutableCFOptions& options);
};

}  // namespace ROCKSDB_NAMESPACE
