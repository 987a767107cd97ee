//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Called by recovery: checks that the options have the path of a file that is
// in the MANIFEST.
//
// A path id beyond the list means the last path, as in RocksDB, so that a
// database whose files were all moved there can be opened with fewer paths. If
// the file is not on the last path either, the list is wrong, and this returns
// InvalidArgument. Otherwise a later read would fail to find the file. If it is
// on another path of the list, the message names that one.
//
// family: the name of the column family, for the message.
// REQUIRES: type is kTableFile, kBlobFile or kDeltaFile
Status CheckPathOfFile(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                       const std::string& family, FileType type,
                       uint64_t number, uint32_t path_id);

}  // namespace ROCKSDB_NAMESPACE
