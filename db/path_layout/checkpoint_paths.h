//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DB;
struct ColumnFamilyMetaData;
struct LiveFileStorageInfo;

// Returns OK if `files`, the live files of `db`, can be copied into one
// directory: all of them, except for WALs, are in one directory. Otherwise
// returns NotSupported, and the message names a column family that has files
// elsewhere. See also CopyIntoOneDirectory.
Status CheckOneDirectory(DB* db, const std::vector<LiveFileStorageInfo>& files);

// Returns OK if a column family with these files can be exported by its SST
// files alone, as ExportColumnFamily() does it. Returns NotSupported if there
// are delta files.
Status CheckExportable(const ColumnFamilyMetaData& family);

}  // namespace ROCKSDB_NAMESPACE
