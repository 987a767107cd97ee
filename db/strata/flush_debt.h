//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;

// FlushOptions::allow_write_stall and CompactRangeOptions::allow_write_stall
// are false by default: a flush waits until it would slow down no writes.
// RocksDB looks at memtables, level 0 and compactions. This is the part about
// garbage in the blob files of an address map and about delta files.
//
// The wait must have an end. The condition variable on which a flush waits is
// signalled at the end of each job. So only those slowdowns count for which a
// job of the column family runs or waits for a thread. Where no job may run
// (after a failure, for example, or during a pause), a flush does not wait.
class FlushDebt {
 public:
  // Returns the number to be compared with soft_pending_compaction_bytes_limit
  // before a flush; 0 if the flush need not wait for jobs of Strata.
  // cfd: the column family that is to be flushed.
  // REQUIRES: DB mutex held.
  static uint64_t Of(ColumnFamilyData* cfd);
};

}  // namespace ROCKSDB_NAMESPACE
