// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "db/address_map/map_entries.h"
#include "db/address_map/map_name.h"
#include "db/address_map/map_shard.h"
#include "db/address_map/map_table.h"
#include "db/address_map/map_tables.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Checks the invariants of an address map's data structure, for tests.
//
// Invariant: The check changes nothing. It holds the mutex of one shard at a
// time, so the sums over all shards are exact only without concurrent writers.
class MapInvariantCheck {
 public:
  // REQUIRES: both arguments belong to the same map and outlive this object.
  MapInvariantCheck(const MapTables& tables, const MapEntries& entries)
      : tables_(tables), entries_(entries) {}
  MapInvariantCheck(const MapInvariantCheck&) = delete;
  MapInvariantCheck& operator=(const MapInvariantCheck&) = delete;

  // Returns Corruption if an invariant does not hold. May be called once.
  Status Run();

 private:
  Status CheckShard(const MapTable* table, MapShard* shard);
  // over: for each bucket, the number of entries that went past it; the entry
  // is added.
  // REQUIRES: the shard's mutex is held.
  Status CheckEntry(const MapTable* table, const MapShard* shard,
                    uint32_t bucket, uint32_t index,
                    std::vector<uint32_t>* over);
  // Checks the order of the key's chain, and that it has the entry if and only
  // if the entry is not versioned.
  // REQUIRES: the shard's mutex is held.
  Status CheckChain(const MapShardView& view, const MapKeyHash& key,
                    const PlacedEntry& entry) const;

  const MapTables& tables_;
  const MapEntries& entries_;
  uint64_t total_ = 0;
  size_t cells_ = 0;
  size_t far_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
