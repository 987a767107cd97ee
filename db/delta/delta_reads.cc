//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_reads.h"

#include <cstddef>

namespace ROCKSDB_NAMESPACE {

DeltaReads::DeltaReads(const DeltaVersion& version, const DeltaStore& store,
                       const ReadOptions& read_options,
                       const MultiGetContext::Range& range,
                       uint64_t generation)
    : reads_(std::make_unique<std::optional<DeltaRead>[]>(
          static_cast<size_t>(range.KeysLeft()))) {
  size_t i = 0;
  for (auto iter = range.begin(); iter != range.end(); ++iter) {
    reads_[i++].emplace(version, store, read_options, *iter->lkey,
                        &iter->merge_context, generation);
  }
}

DeltaReads::~DeltaReads() = default;

}  // namespace ROCKSDB_NAMESPACE
