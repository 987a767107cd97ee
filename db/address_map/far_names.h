// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <vector>

#include "db/address_map/map_name.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// The names of the far entries of some keys of an address map (see MapEntries).
// The place of a far entry in the table depends on its sequence number, so that
// it cannot be found there by its key; the set gives the sequence numbers.
//
// Invariant: A name is in the set exactly while its far entry is in the table,
// outside of the write section that adds or removes both.
//
// Thread-safe. The mutex is taken after a shard's mutex.
class FarNames {
 public:
  // Approximate memory of a name, in bytes.
  static constexpr size_t kNameBytes = 80;

  // REQUIRES: the name is not in the set.
  void Add(const MapName& name);
  // REQUIRES: the name is in the set.
  void Remove(const MapName& name);
  bool Has(const MapName& name) const;
  // Returns the names of the key that are older than seq.
  std::vector<MapName> Below(const MapKeyHash& key, SequenceNumber seq) const;
  // Lock-free.
  size_t Count() const { return count_.load(std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  std::set<MapName, MapNameLess> names_;
  std::atomic<size_t> count_{0};  // names_.size(), read without the mutex
};

}  // namespace ROCKSDB_NAMESPACE
