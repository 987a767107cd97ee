//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_stress_options_test_util.h"

namespace ROCKSDB_NAMESPACE {

std::string OverlapStressOptions::Arguments() const {
  return "--seed=" + std::to_string(seed) +
         " --map=" + std::to_string(address_map) +
         " --bypass=" + std::to_string(lsm_bypass) +
         " --delta=" + std::to_string(delta_separation) +
         " --merged_values=" + std::to_string(merged_values) +
         " --filter=" + std::to_string(compaction_filter) +
         " --merges=" + std::to_string(merges) +
         " --range_deletions=" + std::to_string(range_deletions) +
         " --pauses=" + std::to_string(pauses);
}

}  // namespace ROCKSDB_NAMESPACE
