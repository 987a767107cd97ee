//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_async_reads.h"

#include "db/delta/delta_table_factory.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

DeltaAsyncReads::DeltaAsyncReads(const DeltaTableFamily& family)
    : fs_(family.ioptions.fs.get()),
      statistics_(family.ioptions.stats),
      is_on_(family.overlaps_reads) {}

bool DeltaAsyncReads::IsWanted(const ReadOptions& read_options) const {
  return is_on_.load(std::memory_order_relaxed) &&
         read_options.read_tier != kBlockCacheTier &&
         read_options.rate_limiter_priority == Env::IO_TOTAL;
}

void DeltaAsyncReads::OnBegun() {
  RecordTick(statistics_, DELTA_PARALLEL_READS);
}

void DeltaAsyncReads::OnTried(bool is_async) {
  if (!is_async) {
    if (not_async_.fetch_add(1, std::memory_order_relaxed) + 1 >=
        kMaxNotAsync) {
      is_on_.store(false, std::memory_order_relaxed);
    }
  } else if (not_async_.load(std::memory_order_relaxed) != 0) {
    not_async_.store(0, std::memory_order_relaxed);
  }
}

}  // namespace ROCKSDB_NAMESPACE
