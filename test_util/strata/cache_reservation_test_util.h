//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cache/cache_reservation_manager.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Stands for a block cache with room for `room` bytes, in tests of memory that
// is charged to one.
class Room : public CacheReservationManager {
 public:
  explicit Room(size_t _room) : room(_room) {}
  Status UpdateCacheReservation(size_t total) override {
    ++updates;
    if (total > room) {
      return Status::MemoryLimit();
    }
    charged = total;
    return Status::OK();
  }
  Status UpdateCacheReservation(size_t delta, bool increase) override {
    return UpdateCacheReservation(increase ? charged + delta : charged - delta);
  }
  Status MakeCacheReservation(
      size_t /*incremental_memory_used*/,
      std::unique_ptr<CacheReservationHandle>* /*handle*/) override {
    return Status::NotSupported();
  }
  size_t GetTotalReservedCacheSize() override { return charged; }
  size_t GetTotalMemoryUsed() override { return charged; }

  size_t room;
  size_t charged = 0;
  uint64_t updates = 0;
};

}  // namespace ROCKSDB_NAMESPACE
