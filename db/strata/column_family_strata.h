//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapStore;
class ColumnFamilyData;
class DeltaStore;
class MergedValueCache;
class VersionSet;
class VersionStorageInfo;
struct ColumnFamilyOptions;
struct DBOptions;
struct ImmutableDBOptions;
struct MutableCFOptions;

// Everything that Strata adds to a ColumnFamilyData, which has one as a member
// and calls it at its seams.
//
// Thread-safety: the accessors may be called by all threads, all else with the
// DB mutex held.
class ColumnFamilyStrata {
 public:
  // Validates the options that Strata adds, and their combinations with others.
  static Status ValidateOptions(const DBOptions& db_options,
                                const ColumnFamilyOptions& cf_options);
#ifndef NDEBUG
  // Turns features on that environment variables ask for, in test runs.
  static void ForceFeaturesForTests(const ImmutableDBOptions& db_options,
                                    ColumnFamilyOptions* cf_options);
#endif  // !NDEBUG

  // REQUIRES: cfd outlives this object, which is a member of it.
  explicit ColumnFamilyStrata(ColumnFamilyData* cfd);
  ~ColumnFamilyStrata();
  ColumnFamilyStrata(const ColumnFamilyStrata&) = delete;
  ColumnFamilyStrata& operator=(const ColumnFamilyStrata&) = delete;

  // Creates what the options ask for.
  // REQUIRES: the column family's caches of tables and blob files exist.
  void CreateFeatures();
  // Creates one of the features although the options do not ask for it, or
  // replaces it.
  // REQUIRES: the DB is being opened; no thread uses the one that there was.
  void CreateAddressMapStore();
  void CreateDeltaStore();

  // nullptr without an address map.
  AddressMapStore* address_map_store() const {
    return address_map_store_.get();
  }
  // nullptr without enable_merged_value_cache.
  MergedValueCache* merged_values() const { return merged_values_.get(); }
  // nullptr without enable_delta_separation, unless there were delta files when
  // the DB was opened.
  DeltaStore* delta_store() const { return delta_store_.get(); }

  // Returns the number of bytes that write stalls are computed with.
  // compaction_bytes: what compactions are behind.
  // version: of the column family's current Version.
  uint64_t AddDebt(uint64_t compaction_bytes, const VersionStorageInfo& version,
                   const MutableCFOptions& options) const;
  // To be called after SetOptions().
  void UpdateOptions(const MutableCFOptions& options);
  // To be called before a column family that was dropped is destroyed.
  void OnDestroyed(VersionSet* versions);

 private:
  ColumnFamilyData* const cfd_;
  std::unique_ptr<AddressMapStore> address_map_store_;
  std::unique_ptr<MergedValueCache> merged_values_;
  std::unique_ptr<DeltaStore> delta_store_;
  // The option that merged_values_ was made or resized with.
  uint64_t merged_value_cache_size_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
