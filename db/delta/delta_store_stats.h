//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

#include "db/delta/delta_picker.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class DeltaStore;
class DeltaVersion;
struct DeltaFileDescription;

// The numbers of the property "rocksdb.delta-store" that are sums over delta
// files. docs/delta-separation.md explains their names.
struct DeltaStoreStats {
  struct Sum {
    uint64_t files = 0;
    uint64_t bytes = 0;

    void Add(const DeltaFileDescription& file);
  };

  // By tier.
  Sum flushed;
  Sum merged;
  Sum sorted;
  // All tiers have these.
  Sum anchors;
  Sum misplaced;
  uint64_t num_operands = 0;
  uint64_t num_anchors = 0;
  // Files that are not sorted have these; UINT64_MAX and 0 if there are none.
  uint64_t oldest_epoch = UINT64_MAX;
  uint64_t newest_epoch = 0;
  uint64_t num_buckets = 0;
  uint64_t open_files = 0;
  uint64_t reader_memory = 0;   // bytes
  uint64_t version_memory = 0;  // bytes

  // Cost: proportional to the number of delta files and buckets. The DB mutex
  // is not needed.
  static DeltaStoreStats Collect(const DeltaVersion& delta,
                                 const DeltaPicker::Paths& paths);
  // Returns the number of files of a drain that wait for snapshots to be
  // released, or have operands that cannot be merged.
  // REQUIRES: DB mutex held
  static size_t NumWaitingForDrain(const DeltaStore& store);
};

}  // namespace ROCKSDB_NAMESPACE
