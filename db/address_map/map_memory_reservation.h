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

// Charges an address map to a block cache, under
// CacheEntryRole::kBlobAddressMap. The map has no smaller form to fall back to:
// if the cache is full and does not let its capacity be exceeded, the map grows
// without being charged for the rest, which the LOG says once.
class MapMemoryReservation : public MapMemoryCharge {
 public:
  // nullptr if the table factory has no block cache, or its
  // cache_usage_options say that the role is not charged.
  static std::unique_ptr<MapMemoryReservation> Create(
      const TableFactory* table_factory, Logger* logger);

  MapMemoryReservation(const std::shared_ptr<Cache>& cache, Logger* logger);

  // Always OK.
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
