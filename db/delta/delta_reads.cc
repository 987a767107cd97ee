//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_reads.h"

#include <cstddef>

#include "env/io_uring_batch.h"

namespace ROCKSDB_NAMESPACE {

DeltaReads::DeltaReads(const DeltaVersion& version, const DeltaStore& store,
                       const ReadOptions& read_options,
                       const MultiGetContext::Range& range,
                       uint64_t generation)
    : reads_(std::make_unique<std::optional<DeltaRead>[]>(
          static_cast<size_t>(range.KeysLeft()))) {
  size_t i = 0;
  IOUringBatch batch;
  for (auto iter = range.begin(); iter != range.end(); ++iter) {
    DeltaRead& read =
        reads_[i++].emplace(version, store, read_options, *iter->lkey,
                            &iter->merge_context, generation);
    read.ReadAhead(iter->max_covering_tombstone_seq);
  }
}

DeltaReads::~DeltaReads() = default;

}  // namespace ROCKSDB_NAMESPACE
