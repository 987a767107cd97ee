//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/address_map_options.h"

#include <cstddef>
#include <cstdlib>

#include "logging/logging.h"
#include "options/cf_options.h"
#include "options/strata/distinct_bytes.h"
#include "rocksdb/comparator.h"
#include "rocksdb/table.h"

namespace ROCKSDB_NAMESPACE {

namespace {

Status RefusedWithMap(const char* other, const std::string& why) {
  return Status::NotSupported(
      std::string("enable_blob_address_map cannot be combined with ") + other +
      ": " + why);
}

}  // namespace

Status ValidateOptionsOfMappedValues(const DBOptions& db_options,
                                     const ColumnFamilyOptions& cf_options) {
  if (cf_options.experimental_mempurge_threshold > 0.0) {
    return RefusedWithMap(
        "experimental_mempurge_threshold",
        "a purged memtable holds older entries than memtables "
        "flushed before it");
  }
  if (cf_options.compaction_style == kCompactionStyleFIFO) {
    return RefusedWithMap(
        "FIFO compaction",
        "it drops whole files without looking at their entries");
  }
  if (db_options.allow_ingest_behind || cf_options.cf_allow_ingest_behind) {
    return RefusedWithMap(
        "ingest behind",
        "ingested files would hold newer sequence numbers below "
        "older ones");
  }
  // RocksDB lets timestamps that are not persisted begin in an old database.
  if (cf_options.comparator->timestamp_size() > 0) {
    return RefusedWithMap("user-defined timestamps",
                          "the map knows a key by its bytes");
  }
  return Status::OK();
}

Status ValidateAddressMapOptions(const DBOptions& db_options,
                                 const ColumnFamilyOptions& cf_options) {
  if (!cf_options.enable_blob_address_map) {
    return Status::OK();
  }
  if (!cf_options.enable_blob_files) {
    return Status::InvalidArgument(
        "enable_blob_address_map needs enable_blob_files: the map holds the "
        "addresses of values in blob files");
  }
  if (cf_options.enable_blob_direct_write) {
    return RefusedWithMap(
        "enable_blob_direct_write",
        "the map takes addresses when a flush has written them");
  }
  if (cf_options.inplace_update_support) {
    return RefusedWithMap("inplace_update_support",
                          "a value would change under its sequence number");
  }
  const Status s = ValidateOptionsOfMappedValues(db_options, cf_options);
  if (!s.ok()) {
    return s;
  }
  const Comparator* const comparator = cf_options.comparator;
  if (comparator->CanKeysWithDifferentByteContentsBeEqual()) {
    return RefusedWithMap(
        "a comparator for which different bytes can be equal",
        NeedsDistinctBytes("the map knows a key by its bytes"));
  }
  if (cf_options.table_factory != nullptr &&
      !cf_options.table_factory->IsInstanceOf(
          TableFactory::kBlockBasedTableName())) {
    return RefusedWithMap("a table format other than the block-based one",
                          "other formats do not hold mapped entries");
  }
  return Status::OK();
}

Status ValidateAddressMapOptionsOfSecondary(
    const std::vector<ColumnFamilyDescriptor>& column_families) {
  for (const ColumnFamilyDescriptor& cf : column_families) {
    if (cf.options.enable_blob_address_map) {
      return RefusedWithMap(
          "a secondary or follower instance",
          "it cannot know which values the primary still needs "
          "(column family " +
              cf.name + ")");
    }
  }
  return Status::OK();
}

bool CompactionsCollectBlobGarbage(const ImmutableCFOptions& ioptions,
                                   const MutableCFOptions& options) {
  return options.enable_blob_garbage_collection &&
         !ioptions.enable_blob_address_map;
}

void ReportOptionsWithoutEffect(Logger* log, const std::string& cf_name,
                                const MutableCFOptions& options) {
  if (!options.enable_blob_garbage_collection) {
    return;
  }
  if (options.blob_gc_space_amp_limit == 0) {
    ROCKS_LOG_WARN(log,
                   "[%s] With enable_blob_address_map, "
                   "enable_blob_garbage_collection has no effect, and "
                   "blob_gc_space_amp_limit = 0 turns the collection of blob "
                   "garbage off",
                   cf_name.c_str());
    return;
  }
  ROCKS_LOG_INFO(log,
                 "[%s] With enable_blob_address_map, blob garbage is collected "
                 "by jobs of its own, within blob_gc_space_amp_limit = %g. "
                 "enable_blob_garbage_collection, "
                 "blob_garbage_collection_age_cutoff and "
                 "blob_garbage_collection_force_threshold have no effect",
                 cf_name.c_str(), options.blob_gc_space_amp_limit);
}

#ifndef NDEBUG
void ForceAddressMapForTests(const DBOptions& db_options,
                             ColumnFamilyOptions* cf_options) {
  const char* const with_map = std::getenv("STRATA_FORCE_ADDRESS_MAP");
  const char* const min_blob_size =
      with_map != nullptr ? with_map : std::getenv("STRATA_FORCE_BLOB_FILES");
  if (min_blob_size == nullptr || cf_options->enable_blob_files) {
    return;
  }
  ColumnFamilyOptions forced = *cf_options;
  forced.enable_blob_files = true;
  forced.min_blob_size = std::strtoull(min_blob_size, nullptr, 10);
  forced.enable_blob_address_map = true;
  if (ValidateAddressMapOptions(db_options, forced).ok()) {
    forced.enable_blob_address_map = with_map != nullptr;
    *cf_options = forced;
  }
}
#endif  // !NDEBUG

}  // namespace ROCKSDB_NAMESPACE
