//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The flags --enable_blob_address_map, --enable_lsm_bypass,
// --save_blob_address_map, --blob_gc_space_amp_limit, --max_background_jobs and
// --blob_prefetch_count of db_stress, and those of the merged-value cache and
// of delta separation.

void ApplyStressMapFlags(Options* options);
void ApplyStressMapFlags(ReadOptions* options);

// Adapts the options that SetOptions() tries to each enabled feature: removes
// values that it would refuse, and adds values of the feature's own options.
void AdaptOptionsToMap(
    std::unordered_map<std::string, std::vector<std::string>>* options_table);

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
