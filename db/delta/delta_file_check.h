//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DeltaVersion;
class FileSystem;

// Checks, for recovery, that the delta files of the MANIFEST exist in their
// paths (CheckPathOfFile()) with the size that the MANIFEST records, as they
// are opened only by their first read, which may be long after the DB was
// opened. Returns Corruption with the name of a file for which this is not so,
// the one with the smallest number if there are several. Does not open files.
// family: the name of the column family, for messages.
// max_threads: maximum number of threads that ask the file system.
Status CheckDeltaFiles(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                       const std::string& family, const DeltaVersion& delta,
                       int max_threads);

}  // namespace ROCKSDB_NAMESPACE
