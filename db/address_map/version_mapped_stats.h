//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

struct LevelFilesBrief;

// What MappedEntryStats of all SST files of a Version say together.
struct VersionMappedStats {
  // The largest MappedEntryStats::LsmCeiling(). By default no reader skips the
  // files.
  uint64_t lsm_ceiling = UINT64_MAX;
  // Direct and versioned entries, those that are hidden included.
  uint64_t num_mapped = 0;
  // Of these, as the files have them: the map may know better.
  uint64_t num_direct = 0;

  VersionMappedStats() = default;
  explicit VersionMappedStats(const autovector<LevelFilesBrief>& levels);
};

}  // namespace ROCKSDB_NAMESPACE
