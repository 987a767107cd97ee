//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "db/path_layout/manifest_files.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Returns the first of the files, with its directory, that is not where these
// paths and its path id say; empty: all are there. A file of which the file
// system cannot tell whether it exists counts as missing.
// REQUIRES: !paths.empty()
std::string FirstMissingFile(FileSystem* fs,
                             const std::vector<ManifestFamily::File>& files,
                             const std::vector<DbPath>& paths);

}  // namespace ROCKSDB_NAMESPACE
