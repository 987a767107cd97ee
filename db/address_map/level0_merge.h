//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

struct FileMetaData;
struct MutableCFOptions;

// When the files of level 0 are merged with each other before they go to the
// base level, in a column family with an address map (level style).
//
// A flush leaves little in level 0 there: keys, and none of the values. A
// compaction of it into the base level rewrites that level for a few entries.
// So level 0 grows until it is as large as the base level, or half of
// max_bytes_for_level_base. Until then its files are merged in tiers, as in
// universal compaction: the newest ones, as many as
// level0_file_num_compaction_trigger at least, once they are of about the same
// size. A byte is rewritten once a tier, so for each factor of the trigger by
// which level 0 grows; the entries of the base level that it takes along become
// fewer by that factor. RocksDB merges all of level 0 with each flush or four,
// up to a twentieth of the base level.
//
// Files in level 0: below the trigger in each tier. Before they are so many
// that writes are slowed down, they are merged whatever their sizes.
class Level0Merge {
 public:
  Level0Merge() = delete;

  enum class Action {
    kWait,   // nothing is to be done
    kMerge,  // the newest num_files files with each other
    kDown,   // all go to the base level
  };
  struct Decision {
    Action action = Action::kWait;
    size_t num_files = 0;
  };

  // files: of level 0, newest first. Those from the first one on that is being
  // compacted do not count; with one there is no kDown.
  // base_size: of the base level.
  static Decision Decide(const std::vector<FileMetaData*>& files,
                         uint64_t base_size, const MutableCFOptions& options);

  // Is there something to be done, or has somebody begun with it? If not, the
  // number of files is no debt of compactions.
  static bool IsDue(const std::vector<FileMetaData*>& files, uint64_t base_size,
                    const MutableCFOptions& options);

  // How many sorted runs the score of level 0 is to count: none of num_runs if
  // there is nothing to be done.
  static int SortedRuns(const std::vector<FileMetaData*>& files, int num_runs,
                        uint64_t base_size, const MutableCFOptions& options);

 private:
  // Of the n newest ones, none of which is being compacted, or so it is to be.
  static Decision DecideNewest(const std::vector<FileMetaData*>& files,
                               size_t n, uint64_t base_size,
                               const MutableCFOptions& options);
};

}  // namespace ROCKSDB_NAMESPACE
