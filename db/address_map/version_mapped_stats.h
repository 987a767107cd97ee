//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

struct LevelFilesBrief;

// Aggregated MappedEntryStats of all SST files of a Version.
struct VersionMappedStats {
  // The largest MappedEntryStats::LsmCeiling(). With the default value no
  // reader skips the files.
  uint64_t lsm_ceiling = UINT64_MAX;
  // Number of direct and versioned entries, including hidden ones.
  uint64_t num_mapped = 0;
  // Number of direct entries according to the files. The mode in the map may
  // differ.
  uint64_t num_direct = 0;

  VersionMappedStats() = default;
  explicit VersionMappedStats(const autovector<LevelFilesBrief>& levels);
};

}  // namespace ROCKSDB_NAMESPACE
