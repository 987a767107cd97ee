//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/version_mapped_stats.h"

#include <algorithm>

#include "db/version_edit.h"

namespace ROCKSDB_NAMESPACE {

VersionMappedStats::VersionMappedStats(
    const autovector<LevelFilesBrief>& levels)
    : lsm_ceiling(0) {
  for (const LevelFilesBrief& level : levels) {
    for (size_t i = 0; i < level.num_files; ++i) {
      const FdWithKeyRange& file = level.files[i];
      lsm_ceiling = std::max(lsm_ceiling, file.lsm_ceiling);
      const MappedEntryStats& mapped = file.file_metadata->blob_refs.mapped;
      num_mapped += mapped.direct + mapped.versioned;
      num_direct += mapped.direct;
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
