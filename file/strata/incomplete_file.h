//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;
class Logger;

// Deletes what a copy, or a link and its sync, has left when it failed, if it
// has left anything. CopyFile() leaves the file in which it failed, and a scan
// for obsolete files comes late, or never in a directory that only the column
// family of a failed import had.
// path: a name that the caller has chosen for a file of its own.
// log: is told if the file cannot be deleted.
void DeleteIncompleteFile(FileSystem* fs, const std::string& path, Logger* log);

}  // namespace ROCKSDB_NAMESPACE
