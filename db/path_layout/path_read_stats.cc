//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_read_stats.h"

namespace ROCKSDB_NAMESPACE {

PathReadStats::Counts PathReadStats::Get(FileKind kind,
                                         uint32_t path_id) const {
  const uint32_t slot = Slot(kind, path_id);
  Counts total;
  for (size_t core = 0; core < shards_.Size(); ++core) {
    const Counter& counter = (*shards_.AccessAtCore(core))[slot];
    total.reads += counter.reads.load(std::memory_order_relaxed);
    total.bytes += counter.bytes.load(std::memory_order_relaxed);
    total.timed_reads += counter.timed_reads.load(std::memory_order_relaxed);
    total.nanos += counter.nanos.load(std::memory_order_relaxed);
  }
  return total;
}

}  // namespace ROCKSDB_NAMESPACE
