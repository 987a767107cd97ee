//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/strata_options.h"

namespace ROCKSDB_NAMESPACE {

// A set of Strata's features: what `ldb disable_features` can take out of a
// database, one by one or all.
//
// Invariants:
// 1. Each option in strata_option_table.h belongs to a feature. An option that
//    two features need, such as the path of hot values, belongs to both.
// 2. With the options of all features at their defaults, a database writes
//    nothing that RocksDB does not write.
//
// A value. Not thread-safe.
class FeatureSet {
 public:
  enum Feature : uint32_t {
    // enable_blob_address_map: names of values in SST files, blob files of
    // format version 2 (sorted and hot ones, too), images of the map.
    kMap = 1 << 0,
    // enable_delta_separation: delta files.
    kDeltas = 1 << 1,
    // level_sst_path_ids, level_blob_path_ids, path_prices: blob files on other
    // paths than the first one, cf_paths in OPTIONS files.
    kLayouts = 1 << 2,
    // wal_mmap_buffer_size: the file WALBUFFER.
    kWalBuffer = 1 << 3,
    // enable_merged_value_cache: nothing on disk but its options.
    kMergedValues = 1 << 4,
    // max_write_groups_per_leader: the same.
    kWriteGroups = 1 << 5,
  };

  FeatureSet() = default;
  // Not explicit: a feature stands for the set that has it alone.
  FeatureSet(Feature feature) : bits_(feature) {}

  static FeatureSet All();

  // Parses names that are separated by commas ("map,deltas"). Returns
  // InvalidArgument, with the names that there are, if one is unknown or the
  // text has none. On failure *features is unchanged.
  static Status Parse(const std::string& text, FeatureSet* features);

  // Returns the names with commas and blanks in between, in the order of the
  // enumeration.
  std::string ToString() const;

  bool IsEmpty() const { return bits_ == 0; }
  bool Has(Feature feature) const { return (bits_ & feature) != 0; }
  bool Intersects(const FeatureSet& other) const {
    return (bits_ & other.bits_) != 0;
  }
  void Add(const FeatureSet& other) { bits_ |= other.bits_; }
  FeatureSet Intersection(const FeatureSet& other) const {
    FeatureSet result;
    result.bits_ = bits_ & other.bits_;
    return result;
  }
  bool operator==(const FeatureSet& other) const = default;

  // Returns the features to which the option of an OPTIONS file belongs; none
  // if it is no option of Strata's. cf_paths, which RocksDB does not write to
  // OPTIONS files, belong to kLayouts.
  static FeatureSet OfOption(const std::string& name);

  // Gives the options that belong to a feature of the set their defaults. The
  // member cf_paths, which is RocksDB's, does not change.
  void ResetOptions(StrataColumnFamilyOptions* options) const;
  void ResetOptions(StrataDBOptions* options) const;

  // Returns the name of an option that belongs to a feature of the set and has
  // different values in the two; empty if there is none. cf_paths do not count.
  std::string DifferentOption(const StrataColumnFamilyOptions& a,
                              const StrataColumnFamilyOptions& b) const;
  std::string DifferentOption(const StrataDBOptions& a,
                              const StrataDBOptions& b) const;

 private:
  uint32_t bits_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
