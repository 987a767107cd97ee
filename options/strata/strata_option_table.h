//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

// Every option of Strata's that a DB or a column family has, one row each. The
// members, constructors, copies and type information of the structs in
// strata_cf_options.h come from these tables, and so do the names of the lines
// in OPTIONS files (OwnOptionLines). Types and defaults are those of the
// members of rocksdb/strata_options.h.

// Column family options that are set at open and do not change.
#define STRATA_IMMUTABLE_CF_OPTIONS(ROW) \
  ROW(enable_blob_address_map)           \
  ROW(enable_lsm_bypass)                 \
  ROW(enable_merged_value_cache)         \
  ROW(enable_delta_separation)           \
  ROW(delta_bucket_size)

// Column family options that SetOptions() changes.
#define STRATA_MUTABLE_CF_OPTIONS(ROW) \
  ROW(level_sst_path_ids)              \
  ROW(level_blob_path_ids)             \
  ROW(save_blob_address_map)           \
  ROW(blob_gc_space_amp_limit)         \
  ROW(merged_value_cache_size)         \
  ROW(delta_max_buckets)               \
  ROW(delta_bucket_split_ratio)        \
  ROW(delta_cache_size)

// DB options that are set at open and do not change.
#define STRATA_IMMUTABLE_DB_OPTIONS(ROW) \
  ROW(max_write_groups_per_leader)       \
  ROW(wal_mmap_buffer_size)

// Names of column family options that earlier versions had, that SetOptions()
// changed, and that have no effect any more: OPTIONS files may have them.
#define STRATA_REMOVED_MUTABLE_CF_OPTIONS(ROW) ROW(delta_parallel_reads)
