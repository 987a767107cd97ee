//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>

#include "db/path_layout/path_migration_state.h"
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
  // True if there is one of the three. The answer is a member of its own, so
  // that a lookup in a column family without features costs a single load.
  bool needs_point_read() const { return needs_point_read_; }
  // REQUIRES: DB mutex held
  PathMigrationState* path_migration() { return &path_migration_; }

  // Returns the number that RocksDB's write slowdowns compare with
  // soft_pending_compaction_bytes_limit: the bytes that compactions still have
  // to rewrite, increased if garbage collections of blob files or jobs of delta
  // files are behind.
  // compaction_bytes: the first part, RocksDB's
  //     VersionStorageInfo::estimated_compaction_needed_bytes().
  // version: of the column family's current Version.
  uint64_t AddDebt(uint64_t compaction_bytes, const VersionStorageInfo& version,
                   const MutableCFOptions& options);
  // Returns what the last AddDebt() returned if it increased the number, and if
  // writes are slowed down by it; otherwise 0. Unlike AddDebt(), the call
  // changes nothing and logs nothing.
  uint64_t LastDebt() const { return last_debt_; }
  // Returns an error if the column family cannot change to `cf_options`: it has
  // values in the address map or operands in delta files, perhaps from a time
  // when an option had the feature enabled, and would lose some of them.
  // REQUIRES: the DB mutex is held, and ValidateOptions() has returned OK.
  Status CheckNewOptions(const DBOptions& db_options,
                         const ColumnFamilyOptions& cf_options) const;
  // To be called after SetOptions(). TrimCaches() must be called later.
  // REQUIRES: the DB mutex is held.
  void UpdateOptions(const MutableCFOptions& options);
  // Evicts what UpdateOptions() has left no room for. That may take seconds.
  // REQUIRES: the DB mutex is not held, and the column family is referenced.
  void TrimCaches();
  // Hands the blob files that the address map keeps over to `versions` for
  // deletion. To be called before a column family that was dropped is
  // destroyed.
  void ReleaseDropped(VersionSet* versions);

 private:
  ColumnFamilyData* const cfd_;
  std::unique_ptr<AddressMapStore> address_map_store_;
  std::unique_ptr<MergedValueCache> merged_values_;
  std::unique_ptr<DeltaStore> delta_store_;
  bool needs_point_read_ = false;
  PathMigrationState path_migration_;
  uint64_t last_debt_ = 0;  // see LastDebt()
  // The option that merged_values_ was made or resized with.
  uint64_t merged_value_cache_size_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
