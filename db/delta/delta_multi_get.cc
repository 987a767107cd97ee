//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_multi_get.h"

#include <cstddef>

#include "util/strata/io_uring_batch.h"

namespace ROCKSDB_NAMESPACE {

DeltaMultiGet::DeltaMultiGet(const DeltaVersion& version,
                             const DeltaStore& store,
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

DeltaMultiGet::~DeltaMultiGet() = default;

}  // namespace ROCKSDB_NAMESPACE
