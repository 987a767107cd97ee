//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapStore;
class VersionStorageInfo;

// The numbers of the property "rocksdb.blob-address-map", whose names
// docs/address-map.md explains.
struct AddressMapStats {
  uint64_t entries = 0;
  uint64_t memory = 0;  // bytes
  uint64_t files = 0;
  uint64_t pinned_files = 0;
  uint64_t live_bytes = 0;
  uint64_t lost_values = 0;
  uint64_t damaged_files = 0;
  uint64_t blocked_removals = 0;
  uint64_t pending_range_deletions = 0;
  uint64_t retired_removals = 0;
  uint64_t scan_debt = 0;         // bytes
  uint64_t level0_scan_debt = 0;  // bytes
  uint64_t scan_ranges = 0;
  uint64_t hot_files = 0;
  uint64_t hot_bytes = 0;
  uint64_t hot_candidates = 0;
  uint64_t hot_threshold = 0;      // reads
  uint64_t hot_sketch_memory = 0;  // bytes

  // Cost: proportional to the number of blob files.
  // version: of the column family's current Version.
  // REQUIRES: DB mutex held
  static AddressMapStats Collect(const AddressMapStore& blobs,
                                 const VersionStorageInfo& version);
};

}  // namespace ROCKSDB_NAMESPACE
