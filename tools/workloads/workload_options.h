// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The settings of the workloads. db_bench fills them from its flags of the same
// names (tools/strata/db_bench_workloads.cc has their documentation).

#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

enum class Distribution { kUniform, kZipfian, kLatest };
enum class RmwMode { kMerge, kGetPut };

struct WorkloadOptions {
  uint64_t records = 1000000;  // keys that a load writes and others draw from
  int key_size = 24;           // bytes
  uint32_t field_count = 10;
  uint32_t field_length = 100;  // bytes
  bool write_all_fields = false;
  double compression_ratio = 1.0;  // 1.0: incompressible

  // If empty, the workload determines the distribution.
  std::string distribution;
  double zipfian_const = 0.99;
  uint64_t zipfian_items = 0;  // 0: the number of records

  std::string mix;                  // the proportions of "ycsbmix"
  uint32_t ycsb_scan_length = 100;  // the longest scan of ycsbe and ycsbmix
  RmwMode rmw_mode = RmwMode::kMerge;
  int rmw_read_ratio = 10;  // percent

  // randomscan
  uint32_t scan_length = 100;
  uint64_t scan_parts = 100;
  uint64_t scan_stay = 0;  // scans; 0: they begin anywhere
  bool scan_reverse = false;
  bool scan_keys_only = false;
  bool scan_bounded = false;
  bool scan_pin_data = false;
  bool scan_fill_cache = true;

  uint64_t delete_range_width = 100;  // records
  bool verify_reads = false;
  bool allow_missing = false;
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
