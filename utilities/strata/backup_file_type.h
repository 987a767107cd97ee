//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Returns true if a backup treats a file of this type like an SST file. Delta
// files are block-based tables, and have the table properties by which shared
// files of backups are named and recognized.
inline bool IsTableInBackup(FileType type) {
  return type == kTableFile || type == kDeltaFile;
}

}  // namespace ROCKSDB_NAMESPACE
