//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_memory_reservation.h"

#include "logging/logging.h"

namespace ROCKSDB_NAMESPACE {

std::unique_ptr<MapMemoryReservation> MapMemoryReservation::Create(
    const TableFactory* table_factory, Logger* logger) {
  const auto* const options =
      table_factory->GetOptions<BlockBasedTableOptions>();
  if (options == nullptr || options->block_cache == nullptr ||
      options->cache_usage_options.options_overrides
              .at(CacheEntryRole::kBlobAddressMap)
              .charged == CacheEntryRoleOptions::Decision::kDisabled) {
    return nullptr;
  }
  return std::make_unique<MapMemoryReservation>(options->block_cache, logger);
}

MapMemoryReservation::MapMemoryReservation(const std::shared_ptr<Cache>& cache,
                                           Logger* logger)
    : logger_(logger),
      manager_(std::make_shared<
               CacheReservationManagerImpl<CacheEntryRole::kBlobAddressMap>>(
          cache)) {}

Status MapMemoryReservation::SetCharged(size_t total) {
  const Status s = manager_->UpdateCacheReservation(total);
  if (!s.ok() && !has_warned_) {
    has_warned_ = true;
    ROCKS_LOG_WARN(logger_,
                   "The block cache has no room for the %zu bytes of the "
                   "address map, %zu of which are charged: %s",
                   total, GetCharged(), s.ToString().c_str());
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
