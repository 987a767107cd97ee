//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <memory>

#include "cache/cache_reservation_manager.h"
#include "db/address_map/address_map.h"
#include "rocksdb/cache.h"
#include "rocksdb/table.h"

namespace ROCKSDB_NAMESPACE {

class Logger;

// Charges the memory of an address map to a block cache, in the role
// CacheEntryRole::kBlobAddressMap. The map cannot work with less memory: if the
// cache is full and has a strict capacity limit, the map grows nevertheless and
// the excess is not charged. A warning is logged once.
class MapMemoryReservation : public MapMemoryCharge {
 public:
  // Returns nullptr if the table factory has no block cache, or if its
  // cache_usage_options disable charging of the role.
  static std::unique_ptr<MapMemoryReservation> Create(
      const TableFactory* table_factory, Logger* logger);

  MapMemoryReservation(const std::shared_ptr<Cache>& cache, Logger* logger);

  // Always returns OK.
  Status SetCharged(size_t total) override;

  size_t GetCharged() const { return manager_->GetTotalReservedCacheSize(); }

 private:
  Logger* const logger_;
  const std::shared_ptr<
      CacheReservationManagerImpl<CacheEntryRole::kBlobAddressMap>>
      manager_;
  bool has_warned_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
