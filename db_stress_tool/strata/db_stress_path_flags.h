//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The flags --cf_paths, --level_sst_path_ids and --level_blob_path_ids of
// db_stress.

// Gives *options what the flags say; ends the process if they make no sense.
void ApplyStressPathFlags(Options* options);

// With several paths: the values that SetOptions() tries for the layout. The
// layout may change under load as one likes, down to none at all.
void AddPathLayoutsToTry(
    std::unordered_map<std::string, std::vector<std::string>>* options_table);

// What DestroyDB() is to know to clean all the paths.
std::vector<ColumnFamilyDescriptor> StressPathsToDestroy();

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
