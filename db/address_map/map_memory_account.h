// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <mutex>

#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Charges the map's memory, for example to a CacheReservationManager. Called
// with a mutex of the map held.
class MapMemoryCharge {
 public:
  virtual ~MapMemoryCharge() = default;
  // Sets the charged memory.
  // total: bytes, a multiple of 256 KiB.
  // If the status is not OK, the map calls again with the old total and does
  // without the memory. Operations that must not fail (undo, moving of
  // addresses) use the memory in spite of the error.
  virtual Status SetCharged(size_t total) = 0;
};

// Counts the memory that an address map uses, and charges it.
//
// Invariant: The charged memory is the used memory, rounded up to kStep bytes,
// so that most changes cause no charge. It is 0 after the account is destroyed.
//
// Thread-safe. The mutex is taken after all other mutexes of the map.
class MapMemoryAccount {
 public:
  static constexpr size_t kStep = 256 << 10;

  // charge: may be nullptr; then the memory is only counted. Must outlive the
  // account.
  explicit MapMemoryAccount(MapMemoryCharge* charge) : charge_(charge) {}
  ~MapMemoryAccount();
  MapMemoryAccount(const MapMemoryAccount&) = delete;
  MapMemoryAccount& operator=(const MapMemoryAccount&) = delete;

  // Adds to the used memory. If the status is not OK, the charge was refused,
  // and nothing has changed.
  Status Add(size_t bytes) { return Add(bytes, /*force=*/false); }
  // Like Add(), for memory that is used in spite of a refused charge.
  void AddAlways(size_t bytes) {
    Add(bytes, /*force=*/true).PermitUncheckedError();
  }
  // REQUIRES: the bytes were added.
  void Sub(size_t bytes);

  // Returns the used memory in bytes.
  size_t Used() const;

 private:
  Status Add(size_t bytes, bool force);

  MapMemoryCharge* const charge_;

  mutable std::mutex mutex_;
  size_t used_ = 0;
  size_t charged_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
