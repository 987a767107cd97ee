//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "db/path_layout/manifest_files.h"
#include "options/strata/feature_set.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;
class FileSystem;

// The features of Strata that a MANIFEST needs: by its records, and by the
// files that the column families have in the end. No other file is read, and
// nothing is changed.
//
// RocksDB reads all records, so it refuses a MANIFEST with a record of a file
// that is long gone. A new MANIFEST has the records of the last state alone.
//
// Not thread-safe.
class ManifestFeatures {
 public:
  struct Count {
    uint64_t files = 0;
    uint64_t bytes = 0;
    // ManifestFamily::File::entries.
    uint64_t entries = 0;

    void Add(const ManifestFamily::File& file) {
      ++files;
      bytes += file.size;
      entries += file.entries;
    }
  };

  // A column family that is not dropped.
  struct Family {
    std::string name;
    // Those of the last version.
    std::vector<ManifestFamily::File> files;
    Count tables;
    Count blobs;
    // SST files with mapped entries, and blob files of format version 2.
    Count mapped_tables;
    Count mapped_blobs;
    // Those of mapped_blobs that have hot values.
    Count hot_blobs;
    // There may be buckets without a delta file.
    Count deltas;
    // Blob files on another path than the first one, and the SST files that
    // refer to them.
    Count distant_blobs;
    Count tables_of_distant_blobs;
    // SST files on another path than the first one, which RocksDB reads.
    Count distant_tables;
    // Delta files on another path than the first one.
    Count distant_deltas;
    // Those without which RocksDB cannot read the files.
    FeatureSet features;
  };

  // Reads the records of the MANIFEST that CURRENT names.
  // REQUIRES: no database is appending records to the MANIFEST, or records()
  // and families() may lack what was appended last.
  Status ReadRecords(FileSystem* fs, const std::string& dbname);

  // The features with a record that RocksDB refuses.
  const FeatureSet& records() const { return records_; }
  // Column family that is not dropped -> name of its comparator. A family for
  // which the MANIFEST names none is missing.
  const std::map<std::string, std::string>& comparators() const {
    return comparators_;
  }

  // Returns the smallest number of a WAL that an open replays: those before it
  // are obsolete.
  // allow_2pc: DBOptions::allow_2pc. Older WALs may have prepared transactions.
  // REQUIRES: ReadRecords() returned OK.
  uint64_t MinWalNumber(bool allow_2pc) const;

  // Reads the files of the column families.
  // comparator_of: see ReadManifestFiles(). Without the comparator of a family
  //     that has delta files their number is unknown.
  // REQUIRES: ReadRecords() returned OK.
  Status ReadFamilies(
      FileSystem* fs,
      const std::function<const Comparator*(const std::string& family)>&
          comparator_of);

  // In the order of the ids of the families.
  const std::vector<Family>& families() const { return families_; }

 private:
  static Family Describe(ManifestFamily in_manifest);

  std::string manifest_;
  FeatureSet records_;
  std::map<std::string, std::string> comparators_;
  // Id of a column family that is not dropped -> the smallest number of a WAL
  // with data that its files lack.
  std::map<uint32_t, uint64_t> log_numbers_;
  // The same for the database; 0: no record has it.
  uint64_t min_log_number_to_keep_ = 0;
  std::vector<Family> families_;
};

}  // namespace ROCKSDB_NAMESPACE
