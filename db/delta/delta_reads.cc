//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_reads.h"

#include <cstddef>

#include "env/io_uring_batch.h"

namespace ROCKSDB_NAMESPACE {

DeltaReads::DeltaReads(const DeltaVersion& version, const DeltaStore& store,
                       const ReadOptions& read_options,
                       const MultiGetContext::Range& range,
                       uint64_t generation, uint32_t max_threads)
    : reads_(std::make_unique<std::optional<DeltaRead>[]>(
          static_cast<size_t>(range.KeysLeft()))) {
  size_t i = 0;
  bool has_thread = false;
  IOUringBatch batch;
  for (auto iter = range.begin(); iter != range.end(); ++iter) {
    DeltaRead& read =
        reads_[i++].emplace(version, store, read_options, *iter->lkey,
                            &iter->merge_context, generation);
    has_thread |= read.ReadAhead(max_threads, iter->max_covering_tombstone_seq,
                                 /*may_wait=*/has_thread);
  }
}

DeltaReads::~DeltaReads() = default;

}  // namespace ROCKSDB_NAMESPACE
