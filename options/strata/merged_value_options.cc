//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/merged_value_options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "options/cf_options.h"
#include "options/strata/distinct_bytes.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/table.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kMergedShareOfBlockCache = 16;
constexpr size_t kMinDefaultSize = size_t{1} << 20;
constexpr size_t kSizeWithoutBlockCache = size_t{8} << 20;

Status RefusedWithMergedValues(const std::string& other,
                               const std::string& why) {
  return Status::NotSupported(
      "enable_merged_value_cache cannot be combined with " + other + ": " +
      why);
}

Status RefuseMergedValuesForAll(
    const std::vector<ColumnFamilyDescriptor>& column_families,
    const std::string& what, const std::string& why) {
  for (const ColumnFamilyDescriptor& cf : column_families) {
    if (cf.options.enable_merged_value_cache) {
      return RefusedWithMergedValues(what,
                                     why + " (column family " + cf.name + ")");
    }
  }
  return Status::OK();
}

}  // namespace

Status ValidateMergedValueOptions(const DBOptions& db_options,
                                  const ColumnFamilyOptions& cf_options) {
  if (!cf_options.enable_merged_value_cache) {
    return Status::OK();
  }
  if (cf_options.merge_operator == nullptr) {
    return Status::InvalidArgument(
        "enable_merged_value_cache needs a merge_operator: it caches the "
        "results of merges");
  }
  if (db_options.unordered_write) {
    return RefusedWithMergedValues(
        "unordered_write",
        "a reader may miss a write that is older than one it sees");
  }
  if (cf_options.inplace_update_support) {
    return RefusedWithMergedValues(
        "inplace_update_support",
        "a value would change under its sequence number");
  }
  if (cf_options.experimental_mempurge_threshold > 0.0) {
    return RefusedWithMergedValues(
        "experimental_mempurge_threshold",
        "a purged memtable holds older entries than memtables "
        "flushed before it");
  }
  const Comparator* const comparator = cf_options.comparator;
  if (comparator->timestamp_size() > 0) {
    return RefusedWithMergedValues("user-defined timestamps",
                                   "a key has a value for each timestamp");
  }
  if (comparator->CanKeysWithDifferentByteContentsBeEqual()) {
    return RefusedWithMergedValues(
        "a comparator for which different bytes can be equal",
        NeedsDistinctBytes("the cache knows a key by its bytes"));
  }
  return Status::OK();
}

Status RefuseMergedValueCacheOfSecondary(
    const std::vector<ColumnFamilyDescriptor>& column_families) {
  return RefuseMergedValuesForAll(
      column_families, "a secondary or follower instance",
      "it installs files without knowing which values they change");
}

Status RefuseMergedValueCacheOfTransactions(
    const std::vector<ColumnFamilyDescriptor>& column_families) {
  return RefuseMergedValuesForAll(
      column_families, "write-prepared or write-unprepared transactions",
      "a write may become visible after newer ones");
}

#ifndef NDEBUG
void ForceMergedValueCacheForTests(const DBOptions& db_options,
                                   ColumnFamilyOptions* cf_options) {
  const char* const size = std::getenv("STRATA_FORCE_MERGED_VALUES");
  if (size == nullptr || cf_options->enable_merged_value_cache) {
    return;
  }
  ColumnFamilyOptions forced = *cf_options;
  forced.enable_merged_value_cache = true;
  forced.merged_value_cache_size = std::strtoull(size, nullptr, 10);
  if (ValidateMergedValueOptions(db_options, forced).ok()) {
    *cf_options = forced;
  }
}
#endif  // !NDEBUG

bool MayFilterChangeValues(const ImmutableCFOptions& options) {
  return options.compaction_filter != nullptr ||
         options.compaction_filter_factory != nullptr;
}

size_t MergedValueCacheSize(const MutableCFOptions& options) {
  // UINT64_MAX means the library's choice in the other options that have one, 0
  // in this option alone, whose default it is.
  const uint64_t size = options.merged_value_cache_size;
  if (size != 0 && size != UINT64_MAX) {
    return static_cast<size_t>(size);
  }
  const auto* const table =
      options.table_factory->GetOptions<BlockBasedTableOptions>();
  return table == nullptr || table->block_cache == nullptr
             ? kSizeWithoutBlockCache
             : std::max(
                   table->block_cache->GetCapacity() / kMergedShareOfBlockCache,
                   kMinDefaultSize);
}

}  // namespace ROCKSDB_NAMESPACE
