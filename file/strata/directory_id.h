//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FSDirectory;

// Ids of open directories, see FSDirectory::GetUniqueId(). A name can lead to
// another directory than before, for example after another file system was
// mounted there. A sync of a handle from before does not reach the files that
// the name leads to then.

// Returns the id of the directory of a handle: device and inode. As long as the
// handle is open, no other directory has the same ones, also if the device
// fails. Empty: unknown.
std::string DirectoryIdOfFd(int fd);

// Copies an id as GetUniqueId() must. Returns its size; 0: it is unknown, or
// max_size is too small.
size_t CopyDirectoryId(const std::string& from, char* id, size_t max_size);

// Returns GetUniqueId() of the handle; empty: unknown.
std::string DirectoryIdOf(const FSDirectory& directory);

// Returns an error about the directory if both ids are known and differ.
// name: leads to the directory.
// opened: the id of the handle that jobs sync.
// now: the id of a handle that was opened by the name just now.
IOStatus CheckDirectoryId(const std::string& name, const std::string& opened,
                          const std::string& now);

}  // namespace ROCKSDB_NAMESPACE
