//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Is it a table, whatever it is for? Delta files are block-based tables with
// the properties of such, by which shared files are named and recognised: to a
// backup they are what SST files are.
inline bool IsTableInBackup(FileType type) {
  return type == kTableFile || type == kDeltaFile;
}

}  // namespace ROCKSDB_NAMESPACE
