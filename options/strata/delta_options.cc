//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/delta_options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "options/cf_options.h"
#include "options/strata/distinct_bytes.h"
#include "options/strata/strata_cf_options.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/comparator.h"
#include "rocksdb/table.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The default of delta_cache_size means a share of the block cache.
constexpr uint64_t kDefaultCacheSize = UINT64_MAX;
constexpr size_t kShareOfBlockCache = 32;
// The block cache is charged in steps of this size, so a smaller cache would
// use as much of it.
constexpr size_t kMinCacheShare = size_t{256} << 10;
constexpr size_t kCacheSizeWithoutBlockCache = size_t{4} << 20;

Status RefusedWithDeltas(const std::string& other, const std::string& why) {
  return Status::NotSupported(
      "enable_delta_separation cannot be combined with " + other + ": " + why);
}

Status RefuseDeltasForAll(
    const std::vector<ColumnFamilyDescriptor>& column_families,
    const std::string& what, const std::string& why) {
  for (const ColumnFamilyDescriptor& cf : column_families) {
    if (cf.options.enable_delta_separation) {
      return RefusedWithDeltas(what, why + " (column family " + cf.name + ")");
    }
  }
  return Status::OK();
}

const char* const kTransactions =
    "write-prepared or write-unprepared transactions";
const char* const kWhyNotTransactions =
    "sequence numbers do not tell which operands belong to a value";
const char* const kTimestamps = "user-defined timestamps";
const char* const kWhyNotTimestamps = "a key has operands for each timestamp";

}  // namespace

Status ValidateOptionsOfDeltas(const DBOptions& db_options,
                               const ColumnFamilyOptions& cf_options) {
  if (cf_options.experimental_mempurge_threshold > 0.0) {
    return RefusedWithDeltas(
        "experimental_mempurge_threshold",
        "a purged memtable holds older entries than memtables "
        "flushed before it");
  }
  if (cf_options.compaction_style == kCompactionStyleFIFO) {
    return RefusedWithDeltas(
        "FIFO compaction",
        "it drops whole files, and the operands of their keys would "
        "remain without base values");
  }
  if (db_options.allow_ingest_behind || cf_options.cf_allow_ingest_behind) {
    return RefusedWithDeltas(
        "ingest behind",
        "an ingested value would be older than operands that a "
        "newer value has hidden");
  }
  if (cf_options.table_factory != nullptr &&
      !cf_options.table_factory->IsInstanceOf(
          TableFactory::kBlockBasedTableName())) {
    return RefusedWithDeltas(
        "a table format other than the block-based one",
        "readers of other formats do not return the sequence numbers of "
        "entries");
  }
  return Status::OK();
}

Status ValidateDeltaOptions(const DBOptions& db_options,
                            const ColumnFamilyOptions& cf_options) {
  if (!cf_options.enable_delta_separation) {
    return Status::OK();
  }
  if (cf_options.merge_operator == nullptr) {
    return Status::InvalidArgument(
        "enable_delta_separation needs a merge_operator: it separates merge "
        "operands");
  }
  if (cf_options.inplace_update_support) {
    return RefusedWithDeltas(
        "inplace_update_support",
        "a value would change under its sequence number, which "
        "determines the operands that belong to it");
  }
  const Status s = ValidateOptionsOfDeltas(db_options, cf_options);
  if (!s.ok()) {
    return s;
  }
  const Comparator* const comparator = cf_options.comparator;
  if (comparator->timestamp_size() > 0) {
    return RefusedWithDeltas(kTimestamps, kWhyNotTimestamps);
  }
  if (comparator->CanKeysWithDifferentByteContentsBeEqual()) {
    return RefusedWithDeltas(
        "a comparator for which different bytes can be equal",
        NeedsDistinctBytes("filters of delta files know a key by its bytes"));
  }
  return s;
}

Status RefuseDeltaSeparationOfSecondary(
    const std::vector<ColumnFamilyDescriptor>& column_families) {
  return RefuseDeltasForAll(column_families, "a secondary or follower instance",
                            "it does not read delta files");
}

Status RefuseDeltaSeparationOfTransactions(
    const std::vector<ColumnFamilyDescriptor>& column_families) {
  return RefuseDeltasForAll(column_families, kTransactions,
                            kWhyNotTransactions);
}

Status DeltasOfTransactions(const std::string& column_family) {
  return Status::NotSupported(
      "Column family " + column_family +
      " has merge operands in delta files (enable_delta_separation), which "
      "cannot be combined with " +
      kTransactions + ": " + kWhyNotTransactions);
}

Status DeltasOfTimestamps() {
  return Status::NotSupported(
      std::string("Merge operands in delta files (enable_delta_separation) "
                  "cannot be combined with ") +
      kTimestamps + ": " + kWhyNotTimestamps);
}

size_t DeltaCacheSize(const ImmutableCFOptions& ioptions,
                      const MutableCFOptions& options) {
  if (options.delta_cache_size != kDefaultCacheSize) {
    constexpr uint64_t kMaxSize = std::numeric_limits<size_t>::max();
    return static_cast<size_t>(std::min(options.delta_cache_size, kMaxSize));
  }
  if (ioptions.enable_merged_value_cache) {
    return 0;
  }
  const auto* const table =
      options.table_factory->GetOptions<BlockBasedTableOptions>();
  if (table == nullptr || table->block_cache == nullptr) {
    return kCacheSizeWithoutBlockCache;
  }
  const size_t share = table->block_cache->GetCapacity() / kShareOfBlockCache;
  return share < kMinCacheShare ? 0 : share;
}

#ifndef NDEBUG
void ForceDeltaSeparationForTests(const DBOptions& db_options,
                                  ColumnFamilyOptions* cf_options) {
  const char* const bucket_size = std::getenv("STRATA_FORCE_DELTA_SEPARATION");
  if (bucket_size == nullptr || cf_options->enable_delta_separation) {
    return;
  }
  ColumnFamilyOptions forced = *cf_options;
  forced.enable_delta_separation = true;
  const uint64_t size = std::strtoull(bucket_size, nullptr, 10);
  if (size > 0) {
    forced.delta_bucket_size = size;
  }
  if (ValidateStrataRanges(forced).ok() &&
      ValidateDeltaOptions(db_options, forced).ok()) {
    *cf_options = forced;
  }
}
#endif  // !NDEBUG

}  // namespace ROCKSDB_NAMESPACE
