//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Returns InvalidArgument if wal_mmap_buffer_size is incompatible with other
// options.
Status ValidateWalBuffer(const DBOptions& db_options);

}  // namespace ROCKSDB_NAMESPACE
