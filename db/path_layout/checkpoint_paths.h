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

// May `files`, the live files of `db`, be copied into one directory? They may
// if they come from one, WALs aside; else NotSupported, naming a column family
// that has files elsewhere. See also CopyIntoOneDirectory.
Status CheckOneDirectory(DB* db, const std::vector<LiveFileStorageInfo>& files);

// May a column family with these files be exported, as ExportColumnFamily()
// does, by its SST files alone? NotSupported if there are delta files.
Status CheckExportable(const ColumnFamilyMetaData& family);

}  // namespace ROCKSDB_NAMESPACE
