//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

// Every option of Strata's that a DB or a column family has, one row each:
//
//   ROW(kind, name, feature, range, help, bench_help)
//
// kind: bool, int32, uint32, uint64, size (size_t) or double; or path_ids or
//     prices, a list of numbers (std::vector<uint32_t> or std::vector<double>),
//     which has no flag of its kind.
// name: of the member in rocksdb/strata_options.h, which has the type and the
//     default.
// feature: the option without which this one has no effect; itself if there is
//     none. LOG shows a column family's options whose feature is on.
// range: the valid values, an OptionRange (options/strata/option_range.h).
// help: the text of the flag of db_bench and db_stress.
// bench_help: what db_bench's text says in addition.
//
// From these tables come: the members, constructors, copies and type
// information of the structs in strata_cf_options.h, the lines in LOG, and the
// check of ranges; the names of the lines in OPTIONS files (OwnOptionLines);
// the setters and getters of the C API (db/c_strata.cc.inc); the flags of
// db_bench and db_stress (tools/strata/option_flags.h). Tests go through the
// rows, too. docs/adding-an-option.md says what a new option needs beside its
// row.

// Column family options that are set at open and do not change.
#define STRATA_IMMUTABLE_CF_OPTIONS(ROW)                                    \
  ROW(bool, enable_blob_address_map, enable_blob_address_map,               \
      OptionRange::Any(),                                                   \
      "Keep the addresses of values in blob files in a map in memory", "")  \
  ROW(bool, enable_lsm_bypass, enable_blob_address_map, OptionRange::Any(), \
      "With --enable_blob_address_map: filters hold only what the map "     \
      "cannot answer",                                                      \
      "")                                                                   \
  ROW(bool, enable_merged_value_cache, enable_merged_value_cache,           \
      OptionRange::Any(),                                                   \
      "Cache the values that reads compute from merge operands", "")        \
  ROW(bool, enable_delta_separation, enable_delta_separation,               \
      OptionRange::Any(),                                                   \
      "Keep merge operands in delta files instead of the LSM-tree",         \
      "; needs a merge operator")                                           \
  ROW(uint64, delta_bucket_size, enable_delta_separation,                   \
      OptionRange::From(option_bounds::kMinDeltaBucketSize,                 \
                        option_bounds::kMaxDeltaBucketSize),                \
      "With --enable_delta_separation: target size of a bucket, in "        \
      "bytes of operands",                                                  \
      "")

// Column family options that SetOptions() changes.
#define STRATA_MUTABLE_CF_OPTIONS(ROW)                                        \
  ROW(path_ids, level_sst_path_ids, level_sst_path_ids, OptionRange::Any(),   \
      "", "")                                                                 \
  ROW(path_ids, level_blob_path_ids, level_blob_path_ids, OptionRange::Any(), \
      "", "")                                                                 \
  ROW(prices, path_prices, path_prices, OptionRange::Any(), "", "")           \
  ROW(bool, save_blob_address_map, enable_blob_address_map,                   \
      OptionRange::Any(),                                                     \
      "With --enable_blob_address_map: save the map when the DB is closed",   \
      "")                                                                     \
  ROW(double, blob_gc_space_amp_limit, enable_blob_address_map,               \
      OptionRange::ZeroOrFrom(1.01, 1000),                                    \
      "With --enable_blob_address_map: collect garbage before the size "      \
      "of blob files exceeds that of live values by this factor; 0: never",   \
      "")                                                                     \
  ROW(double, blob_scan_sort_budget, enable_blob_address_map,                 \
      OptionRange::From(0, 1000),                                             \
      "With --enable_blob_address_map: bytes that sorting the values of a "   \
      "range may read and write for each byte that scans of it have lost; "   \
      "0: never",                                                             \
      "")                                                                     \
  ROW(uint64, blob_hot_bytes, enable_blob_address_map, OptionRange::Any(),    \
      "With --enable_blob_address_map and several --cf_paths: bytes that "    \
      "blob files with values that are read often may take up on the path "   \
      "--blob_hot_path_id; 0: none",                                          \
      "")                                                                     \
  ROW(uint32, blob_hot_path_id, enable_blob_address_map,                      \
      OptionRange::From(0, option_bounds::kMaxPathId),                        \
      "With --blob_hot_bytes: which of --cf_paths values that are read "      \
      "often go to",                                                          \
      "")                                                                     \
  ROW(uint64, merged_value_cache_size, enable_merged_value_cache,             \
      OptionRange::Any(),                                                     \
      "With --enable_merged_value_cache: its size in bytes; 0: a share "      \
      "of the block cache",                                                   \
      "")                                                                     \
  ROW(uint32, delta_max_buckets, enable_delta_separation,                     \
      OptionRange::From(option_bounds::kMinDeltaMaxBuckets,                   \
                        option_bounds::kMaxDeltaMaxBuckets),                  \
      "With --enable_delta_separation: maximum number of buckets", "")        \
  ROW(int32, delta_sorted_path_id, enable_delta_separation,                   \
      OptionRange::From(-1, option_bounds::kMaxPathId),                       \
      "With --enable_delta_separation: which of --cf_paths sorted delta "     \
      "files go to; -1: that of the SST files of the last level",             \
      "")                                                                     \
  ROW(double, delta_bucket_split_ratio, enable_delta_separation,              \
      OptionRange::From(0.1, 1),                                              \
      "With --enable_delta_separation: a bucket that is fuller than "         \
      "this share of its size after garbage collection is split",             \
      "")                                                                     \
  ROW(uint64, delta_cache_size, enable_delta_separation, OptionRange::Any(),  \
      "With --enable_delta_separation: bytes of the cache of operands "       \
      "that reads have found in delta files; 0: none; the default is a "      \
      "share of the block cache",                                             \
      "")

// DB options that are set at open and do not change. LOG shows all of them.
#define STRATA_IMMUTABLE_DB_OPTIONS(ROW)                                \
  ROW(uint32, max_write_groups_per_leader, max_write_groups_per_leader, \
      OptionRange::From(1, option_bounds::kMaxWriteGroupsPerLeader),    \
      "Maximum number of consecutive write groups of one thread",       \
      ". More than 1 disables --enable_pipelined_write if that is not " \
      "given")                                                          \
  ROW(size, wal_mmap_buffer_size, wal_mmap_buffer_size,                 \
      OptionRange::ZeroOrFrom(option_bounds::kMinWalBufferSize,         \
                              option_bounds::kMaxWalBufferSize),        \
      "Size in bytes of the memory-mapped file that buffers writes to " \
      "WALs; 0: none",                                                  \
      "")

// Names of column family options that earlier versions had, that SetOptions()
// changed, and that have no effect any more: OPTIONS files may have them.
#define STRATA_REMOVED_MUTABLE_CF_OPTIONS(ROW) ROW(delta_parallel_reads)

namespace ROCKSDB_NAMESPACE {

// Bounds in the tables that need a reason.
namespace option_bounds {

// The size of a block of a delta file, which is the smallest unit that is read.
inline constexpr uint64_t kMinDeltaBucketSize = uint64_t{4} << 10;
inline constexpr uint64_t kMaxDeltaBucketSize = uint64_t{1} << 30;
// Two buckets are reserved for a split.
inline constexpr uint32_t kMinDeltaMaxBuckets = 4;
// All buckets are kept in memory, and written in one snapshot of the MANIFEST.
inline constexpr uint32_t kMaxDeltaMaxBuckets = uint32_t{1} << 20;
// A path id is one of PathLayout::kMaxPaths.
inline constexpr int32_t kMaxPathId = 3;
// A larger maximum increases the latency of the slowest writes and improves
// nothing.
inline constexpr uint32_t kMaxWriteGroupsPerLeader = 1024;
// The format of the file WALBUFFER has these bounds (WalBufferFormat).
inline constexpr uint64_t kMinWalBufferSize = uint64_t{4} << 10;
inline constexpr uint64_t kMaxWalBufferSize = uint64_t{64} << 20;

}  // namespace option_bounds

}  // namespace ROCKSDB_NAMESPACE
