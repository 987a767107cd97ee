//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DeltaVersion;
class FileSystem;

// Recovery's check that the delta files that the MANIFEST names are there, where
// their paths are (CheckPathOfFile()), and have the size that it says: they are opened when they are first read, which
// may be long after the DB was. Corruption names a file that is not, the one
// with the smallest number if it is several. Files are not opened.
//
// Asks the file system from up to max_threads threads.
Status CheckDeltaFiles(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                       const DeltaVersion& delta, int max_threads);

}  // namespace ROCKSDB_NAMESPACE
