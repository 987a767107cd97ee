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

// The flags of db_stress that have the names of Strata's options (but see
// db_stress_path_flags.h), and --max_background_jobs.

void ApplyStressOptionFlags(Options* options);
void ApplyStressOptionFlags(ReadOptions* options);

// Adapts the options that SetOptions() tries to each enabled feature: removes
// values that it would refuse, and adds values of the feature's own options.
void AdaptOptionsToFeatures(
    std::unordered_map<std::string, std::vector<std::string>>* options_table);

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
