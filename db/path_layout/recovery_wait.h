//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DBStrata;
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

// Finishes the cut of the WAL (DBStrata::FinishWalCut()) before an attempt of
// an automatic recovery. Its flushes would fail without the cut; but they add
// no background error then, and an attempt that fails without one ends the
// recovery. The error that this returns is retryable whatever the file system
// says: the device may be back at the next attempt. A soft error is recovered
// from without a new WAL, so it does not wait for the cut.
//
// bg_error: the error that the DB is to recover from.
Status FinishWalCutBeforeRecovery(DBStrata* strata, const Status& bg_error);

}  // namespace ROCKSDB_NAMESPACE
