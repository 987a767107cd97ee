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

// The flags --cf_paths, --level_sst_path_ids, --level_blob_path_ids and
// --path_prices of db_stress.

// Applies the flags to *options; ends the process if they are invalid.
void ApplyStressPathFlags(Options* options);

// If there are several paths, adds layouts and prices that SetOptions() tries.
// The layout may be changed under load without restrictions, and even be
// removed.
void AddPathLayoutsToTry(
    std::unordered_map<std::string, std::vector<std::string>>* options_table);

// Removes the paths from *options: a checkpoint and a restored backup are in
// one directory, or have paths of their own (StressCopy), and an open with the
// paths of the DB would delete its files.
void ForgetPaths(ColumnFamilyOptions* options);

// Returns the column families that DestroyDB() needs to clean all paths.
std::vector<ColumnFamilyDescriptor> StressPathsToDestroy();

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
