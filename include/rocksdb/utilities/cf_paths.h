//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// For a DB whose directories have moved. The OPTIONS file of a DB with
// level_sst_path_ids, level_blob_path_ids, delta_sorted_path_id, path_prices or
// blob_hot_bytes keeps cf_paths as they were when it was last open, and
// LoadLatestOptions() returns them. Replaces them by `cf_paths` in every column
// family that has such an option, before the descriptors go to DB::Open();
// other column families are left alone. path_prices become empty if they are
// for another number of paths, and blob_hot_bytes becomes 0 if blob_hot_path_id
// is not one of the paths, or if there is only one.
//
// Never open a *copy* of such a DB with the directories of the original: it
// would delete files there that it does not know.
//
// InvalidArgument, without any change, if an option names a path that is not in
// `cf_paths`.
Status OverrideCfPaths(const std::vector<DbPath>& cf_paths,
                       std::vector<ColumnFamilyDescriptor>* cf_descs);

}  // namespace ROCKSDB_NAMESPACE
