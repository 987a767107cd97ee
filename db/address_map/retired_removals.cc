//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/retired_removals.h"

#include <algorithm>
#include <utility>

namespace ROCKSDB_NAMESPACE {

void RetiredRemovals::Add(std::unique_ptr<DeferredRemovals>&& removals,
                          uint64_t version_number) {
  const size_t memory = removals->MemoryUsage();
  memory_.fetch_add(memory, std::memory_order_relaxed);
  lists_.push_back(List{version_number, memory, std::move(removals)});
}

bool RetiredRemovals::Has(uint64_t oldest_version) const {
  return std::any_of(lists_.begin(), lists_.end(), [&](const List& list) {
    return list.version_number <= oldest_version;
  });
}

std::vector<std::unique_ptr<DeferredRemovals>> RetiredRemovals::Take(
    uint64_t oldest_version, size_t max_names) {
  std::vector<std::unique_ptr<DeferredRemovals>> result;
  uint64_t names = 0;
  for (auto it = lists_.begin(); it != lists_.end() && names < max_names;) {
    if (it->version_number <= oldest_version) {
      names += it->removals->Count();
      memory_.fetch_sub(it->memory, std::memory_order_relaxed);
      result.push_back(std::move(it->removals));
      it = lists_.erase(it);
    } else {
      ++it;
    }
  }
  return result;
}

void RetiredRemovals::Limit(DeferredRemovals* removals) const {
  if (memory_.load(std::memory_order_relaxed) + removals->MemoryUsage() >
      max_memory_) {
    removals->MoveToFile();
  }
  removals->CloseFile();
}

uint64_t RetiredRemovals::NumNames() const {
  uint64_t result = 0;
  for (const List& list : lists_) {
    result += list.removals->Count();
  }
  return result;
}

}  // namespace ROCKSDB_NAMESPACE
