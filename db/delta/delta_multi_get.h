//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "db/delta/delta_read.h"
#include "rocksdb/rocksdb_namespace.h"
#include "table/multiget_context.h"

namespace ROCKSDB_NAMESPACE {

class DeltaStore;
class DeltaVersion;
struct ReadOptions;

// The DeltaReads of a batch of keys of one column family.
//
// Every key gets a DeltaRead, whether it has operands or not: TableCache asks
// the first key of a batch whether it may use the row cache for all of them.
//
// Each DeltaRead reads its files when GetContext needs them. Asynchronous reads
// are begun for all keys first: see DeltaRead::ReadAhead().
class DeltaMultiGet {
 public:
  // generation: see DeltaRead.
  // REQUIRES: all arguments outlive this object.
  DeltaMultiGet(const DeltaVersion& version, const DeltaStore& store,
                const ReadOptions& read_options,
                const MultiGetContext::Range& range, uint64_t generation);
  ~DeltaMultiGet();
  DeltaMultiGet(const DeltaMultiGet&) = delete;
  DeltaMultiGet& operator=(const DeltaMultiGet&) = delete;

 private:
  std::unique_ptr<std::optional<DeltaRead>[]> reads_;
};

}  // namespace ROCKSDB_NAMESPACE
