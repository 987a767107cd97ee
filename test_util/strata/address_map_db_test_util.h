//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/version_mapped_stats.h"
#include "db/strata/version_storage_strata.h"
#include "db/version_set.h"
#include "rocksdb/metadata.h"
#include "test_util/strata/address_map_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

// The base of the fixtures of databases with enable_blob_address_map.
class AddressMapDBTestBase : public StrataDBTestBase {
 public:
  using StrataDBTestBase::StrataDBTestBase;

 protected:
  // Returns options with which no compaction, garbage collection or sort for
  // scans runs unless the test asks for it.
  Options MapOptions(
      uint64_t min_blob_size = 0,
      const anon::OptionsOverride& overrides = anon::OptionsOverride()) const {
    Options options = CurrentOptions(overrides);
    options.enable_blob_files = true;
    options.min_blob_size = min_blob_size;
    options.enable_blob_address_map = true;
    options.blob_gc_space_amp_limit = 0;
    options.blob_scan_sort_budget = 0;
    options.disable_auto_compactions = true;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.statistics = CreateDBStatistics();
    return options;
  }

  static AddressMapStore* BlobsOf(ColumnFamilyHandle* handle) {
    return FamilyOf(handle)->address_map_store();
  }
  AddressMapStore* Blobs(int cf = 0) { return BlobsOf(Handle(cf)); }

  // True if the newest value of the key is in the map in direct mode.
  static bool IsDirect(ColumnFamilyHandle* handle, const std::string& key) {
    AddressMapStore* const blobs = BlobsOf(handle);
    SequenceNumber seq = 0;
    return blobs->map()->DirectSeq(blobs->HashOf(key), &seq);
  }
  bool IsDirect(const std::string& key) { return IsDirect(Handle(), key); }

  // Checks that the map is consistent and has the given number of entries.
  static void CheckMap(ColumnFamilyHandle* handle, uint64_t entries) {
    const AddressMapStore* const blobs = BlobsOf(handle);
    ASSERT_NE(blobs, nullptr);
    EXPECT_OK(blobs->map()->TEST_Check());
    EXPECT_EQ(blobs->map()->NumEntries(), entries);
  }
  void CheckMap(uint64_t entries, int cf = 0) { CheckMap(Handle(cf), entries); }

  // Returns the statistics of the current Version's mapped entries.
  const VersionMappedStats& MappedStats() {
    return Family()->current()->storage_info()->strata()->mapped_stats();
  }

  // Returns the blob files of the current Version.
  std::vector<BlobMetaData> BlobFiles(int cf = 0) {
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(Handle(cf), &metadata);
    return metadata.blob_files;
  }

  // See WaitForMapJobs(). Flush() returns before the job has counted its output
  // and before the map has removed entries.
  static void WaitForJobs(DB* db) { ASSERT_OK(WaitForMapJobs(db)); }
  void WaitForJobs() { WaitForJobs(db_.get()); }

  // Returns the paths of the SST files of a level.
  std::vector<std::string> FilesOf(int level) {
    ColumnFamilyMetaData meta;
    db_->GetColumnFamilyMetaData(&meta);
    std::vector<std::string> files;
    for (const SstFileMetaData& file : meta.levels[level].files) {
      files.push_back(file.db_path + file.name);
    }
    return files;
  }
  // Compacts all files of a level into a level.
  Status CompactInto(int from, int to) {
    return db_->CompactFiles(CompactionOptions(), FilesOf(from), to);
  }

  // Rewrites all files and waits until the map has removed entries.
  static void Compact(DB* db, ColumnFamilyHandle* handle) {
    ASSERT_OK(ForceCompaction(db, handle));
    WaitForJobs(db);
  }
  void Compact(int cf = 0) { Compact(db_.get(), Handle(cf)); }

  static std::string Value(int i) {
    return "value " + std::to_string(i) + std::string(100, 'x');
  }
};

}  // namespace ROCKSDB_NAMESPACE
