//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

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
// The files of level 0 are few, as ever: what makes them worth the way is that
// they are merged with each other until they are big enough.
//
// How big? Let b be what comes to level 0 between two compactions, l the size of
// level 0 when it goes down, B that of the base level. A byte is rewritten
// l / 2b times on level 0, and takes B / l others along on its way down; the sum
// is least at l * l = 2b * B. RocksDB's own rule (l * 20 = B) knows nothing of b,
// and lets level 0 go while it is too small.
class Level0Merge {
 public:
  Level0Merge() = delete;

  // The files, all of level 0, are merged with each other if the base level is
  // more than so many times as large: at least 1. What the last compaction has
  // left is the largest of them.
  //
  // They are not (kNever) if the result would be picked again at once to go down:
  // for its size, which is compared with max_bytes_for_level_base, or because the
  // trigger is a single file; nor if it is more than one compaction may do.
  static double BaseRatio(const std::vector<FileMetaData*>& files,
                          const MutableCFOptions& options);
  static constexpr double kNever = 1e6;
};

}  // namespace ROCKSDB_NAMESPACE
