//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/file_checksum.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Removes the delta files that the last version of no column family has from
// the list, which has all files that the MANIFEST has added. No record removes
// a delta file by its number: the removal follows from the state, see
// DeltaEdit.
//
// If the delta files of a column family cannot be made out, as its comparator
// is not known to the ObjectRegistry, all of them stay in the list.
//
// fname: the MANIFEST.
Status RemoveObsoleteDeltaFiles(FileSystem* fs, const std::string& fname,
                                FileChecksumList* list);

}  // namespace ROCKSDB_NAMESPACE
