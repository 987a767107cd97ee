//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/address_map/address_map_stats.h"
#include "db/delta/delta_store_stats.h"
#include "db/merged_value/merged_value_cache.h"
#include "db/path_layout/path_stats.h"
#include "monitoring/strata/prometheus_text.h"
#include "rocksdb/rocksdb_namespace.h"
#include "util/strata/sieve_table.h"

namespace ROCKSDB_NAMESPACE {

// An integer property of RocksDB as a metric.
struct IntPropertyMetric {
  // One of DB::Properties.
  const std::string* property;
  const char* name;
  PrometheusText::Type type;
  const char* help;
};

// The parts of FamilyNumbers. They are no members of it, because Clang does
// not take a nested class with initializers for constructible before the
// outer class is complete, so that a std::optional there could not emplace it.
struct LevelNumbers {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

struct AddressMapNumbers {
  AddressMapStats stats;
  // True while writes are slowed down until garbage is collected.
  bool slows_writes = false;
  uint64_t hot_budget = 0;  // bytes
};

struct MergedValueNumbers {
  uint64_t capacity = 0;  // bytes
  MergedValueCache::Stats stats;
};

struct DeltaNumbers {
  DeltaStoreStats stats;
  uint64_t debt = 0;  // bytes
  bool is_draining = false;
  uint64_t drain_waiting_files = 0;
  uint64_t cache_capacity = 0;  // bytes
  SieveTable::Stats cache;
};

struct PathNumbers {
  PathStats stats;
  uint64_t obsolete_bytes = 0;
  // Jobs have failed there as they do if a device is lost or read-only.
  bool has_fault = false;
};

// What FamilyMetrics says of one column family.
struct FamilyNumbers {
  std::string name;
  // The integer properties that the column family has.
  std::map<const IntPropertyMetric*, uint64_t> properties;
  std::vector<LevelNumbers> levels;
  double space_amp_limit = 0;
  // These are missing without the feature.
  std::optional<AddressMapNumbers> map;
  std::optional<MergedValueNumbers> merged_values;
  std::optional<DeltaNumbers> deltas;
  std::vector<PathNumbers> paths;

  uint64_t SstBytes() const;
  uint64_t BlobBytes() const;
  uint64_t BlobGarbageBytes() const;
  // Returns the bytes of the blob files divided by those without garbage: 1
  // without blob files, infinity if there is nothing but garbage.
  double BlobSpaceAmp() const;
};

// Writes the metrics of column families. All names begin with "rocksdb_cf_",
// and all samples have the label cf, the name of the column family.
class FamilyMetrics {
 public:
  // The integer properties that FamilyNumbers::properties should have.
  static const std::vector<IntPropertyMetric>& Properties();

  // Defines the metrics, the same ones in the same order whatever is added.
  // REQUIRES: text outlives this object.
  explicit FamilyMetrics(PrometheusText* text);

  void Add(const FamilyNumbers& numbers);

 private:
  // Metrics that come together, from the same numbers.
  enum Group : size_t {
    kProperties,
    kFamily,
    kLevels,
    kMap,
    kMergedValues,
    kDeltas,
    kDeltaTiers,
    kPaths,
    kPathReads,
    kPathJobs,
    kNumGroups,
  };

  template <typename Rows>
  void Define(Group group, const Rows& rows);
  // Adds a sample of each metric of the group.
  template <typename Rows, typename Source>
  void AddGroup(Group group, const Rows& rows,
                const PrometheusText::Labels& labels, const Source& source);
  void AddPath(const PrometheusText::Labels& family, size_t id,
               const PathNumbers& path);

  PrometheusText* const text_;
  // The first metric of each group.
  std::array<size_t, kNumGroups> first_{};
};

}  // namespace ROCKSDB_NAMESPACE
