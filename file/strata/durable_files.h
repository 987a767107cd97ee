//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Makes the files durable that were created, renamed or deleted in a directory.
Status SyncDirectory(FileSystem* fs, const std::string& directory);

// Creates a file, or replaces it in one step, and makes it durable: a crash
// leaves the old file, or the new one. No temporary file is left after an
// error, unless there was a crash.
// temporary, name: without the directory, which is the same one.
Status ReplaceFile(FileSystem* fs, const std::string& directory,
                   const std::string& temporary, const std::string& name,
                   const Slice& contents);

}  // namespace ROCKSDB_NAMESPACE
