//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Applies the flags --max_write_groups_per_leader and --wal_mmap_buffer_size of
// db_stress to *options.
void ApplyStressWriteFlags(Options* options);

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
