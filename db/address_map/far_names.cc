// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/far_names.h"

#include <cassert>

namespace ROCKSDB_NAMESPACE {

void FarNames::Add(const MapName& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  [[maybe_unused]] const bool is_new = names_.insert(name).second;
  assert(is_new);
  count_.store(names_.size(), std::memory_order_relaxed);
}

void FarNames::Remove(const MapName& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  [[maybe_unused]] const size_t removed = names_.erase(name);
  assert(removed == 1);
  count_.store(names_.size(), std::memory_order_relaxed);
}

bool FarNames::Has(const MapName& name) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return names_.count(name) > 0;
}

std::vector<MapName> FarNames::Below(const MapKeyHash& key,
                                     SequenceNumber seq) const {
  std::vector<MapName> result;
  if (Count() > 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto end = names_.lower_bound(MapName{key, seq, 0});
    for (auto it = names_.lower_bound(MapName{key, 0, 0}); it != end; ++it) {
      result.push_back(*it);
    }
  }
  return result;
}

}  // namespace ROCKSDB_NAMESPACE
