//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

struct ImmutableDBOptions;

// Returns true if an automatic recovery that has failed for want of space is to
// be tried again, as it is after retryable errors. RocksDB ends it, because an
// SstFileManager waits for space; but that one recovers only from an error that
// was a lack of space itself. A device of a DB with several paths that comes
// back may be full, so a DB whose device has failed waits.
//
// db: the owner of its faults, see PathFaults.
// error: that of the recovery.
bool IsRecoveryToWaitForSpace(const ImmutableDBOptions& options, const void* db,
                              const IOStatus& error);

}  // namespace ROCKSDB_NAMESPACE
