//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Property handlers of column families with a merged-value cache.
// REQUIRES: the DB mutex is held.

#include <map>
#include <string>

#include "db/column_family.h"
#include "db/internal_stats.h"
#include "db/merged_value/merged_value_cache.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

bool InternalStats::HandleMergedValuesMap(
    std::map<std::string, std::string>* values, Slice /*suffix*/) {
  const MergedValueCache* const cache = cfd_->merged_values();
  if (cache == nullptr) {
    return false;
  }
  const MergedValueCache::Stats stats = cache->GetStats();
  (*values)["capacity"] = std::to_string(cache->capacity());
  (*values)["entries"] = std::to_string(stats.entries);
  (*values)["bytes"] = std::to_string(stats.bytes);
  (*values)["charged-bytes"] = std::to_string(stats.charged);
  (*values)["evicted"] = std::to_string(stats.evicted);
  (*values)["carried"] = std::to_string(stats.carried);
  (*values)["large-entries"] = std::to_string(stats.large);
  (*values)["too-large"] = std::to_string(stats.too_large);
  (*values)["generation"] =
      std::to_string(cfd_->current()->strata()->merged_values().number());
  return true;
}

bool InternalStats::HandleMergedValues(std::string* value, Slice suffix) {
  std::map<std::string, std::string> values;
  if (!HandleMergedValuesMap(&values, suffix)) {
    return false;
  }
  for (const auto& [name, number] : values) {
    value->append(name).append(": ").append(number).append("\n");
  }
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
