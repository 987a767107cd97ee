//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_map_flags.h"

#include "util/gflags_compat.h"

DECLARE_uint64(blob_file_size);

DEFINE_bool(enable_blob_address_map, false,
            "Keep the addresses of values in blob files in a map in memory");

DEFINE_bool(enable_lsm_bypass, true,
            "With --enable_blob_address_map: filters hold only what the map "
            "cannot answer");

DEFINE_bool(
    save_blob_address_map, true,
    "With --enable_blob_address_map: save the map when the DB is closed");

DEFINE_double(
    blob_gc_space_amp_limit, 1.2,
    "With --enable_blob_address_map: collect garbage before the size of blob "
    "files exceeds that of live values by this factor; 0: never");

DEFINE_bool(enable_merged_value_cache, false,
            "Cache the values that reads compute from merge operands");

DEFINE_uint64(merged_value_cache_size, 0,
              "With --enable_merged_value_cache: its size in bytes; 0: a share "
              "of the block cache");

DEFINE_bool(enable_delta_separation, false,
            "Keep merge operands in delta files instead of the LSM-tree");

DEFINE_uint64(delta_bucket_size, 262144,
              "With --enable_delta_separation: target size of a bucket, in "
              "bytes of operands");

DEFINE_uint32(delta_max_buckets, 32768,
              "With --enable_delta_separation: maximum number of buckets");

DEFINE_double(delta_bucket_split_ratio, 0.8,
              "With --enable_delta_separation: a bucket that is fuller than "
              "this share of its size after garbage collection is split");

DEFINE_uint64(delta_cache_size, UINT64_MAX,
              "With --enable_delta_separation: bytes of the cache of operands "
              "that reads have found in delta files; 0: none; the default is a "
              "share of the block cache");

DEFINE_int32(
    max_background_jobs, ROCKSDB_NAMESPACE::Options().max_background_jobs,
    "With --enable_blob_address_map or --enable_delta_separation: "
    "half of it is how many garbage collections of blob files, or jobs "
    "of delta files, may run; --max_background_compactions and "
    "--max_background_flushes are for the others");

DEFINE_int64(blob_prefetch_count, -1,
             "With --enable_blob_address_map: how many values a scan reads "
             "ahead; -1 leaves it to the library");

namespace ROCKSDB_NAMESPACE {

void ApplyStressMapFlags(Options* options) {
  options->enable_blob_address_map = FLAGS_enable_blob_address_map;
  options->enable_lsm_bypass = FLAGS_enable_lsm_bypass;
  options->save_blob_address_map = FLAGS_save_blob_address_map;
  options->blob_gc_space_amp_limit = FLAGS_blob_gc_space_amp_limit;
  options->enable_merged_value_cache = FLAGS_enable_merged_value_cache;
  options->merged_value_cache_size = FLAGS_merged_value_cache_size;
  options->enable_delta_separation = FLAGS_enable_delta_separation;
  options->delta_bucket_size = FLAGS_delta_bucket_size;
  options->delta_max_buckets = FLAGS_delta_max_buckets;
  options->delta_bucket_split_ratio = FLAGS_delta_bucket_split_ratio;
  options->delta_cache_size = FLAGS_delta_cache_size;
  options->max_background_jobs = FLAGS_max_background_jobs;
}

void ApplyStressMapFlags(ReadOptions* options) {
  if (FLAGS_blob_prefetch_count >= 0) {
    options->blob_prefetch_count =
        static_cast<size_t>(FLAGS_blob_prefetch_count);
  }
}

void AdaptOptionsToMap(
    std::unordered_map<std::string, std::vector<std::string>>* options_table) {
  if (FLAGS_enable_merged_value_cache) {
    options_table->emplace(
        "merged_value_cache_size",
        std::vector<std::string>{std::to_string(FLAGS_merged_value_cache_size),
                                 "0", "100000", "4000000"});
    // Refused together with it.
    options_table->erase("experimental_mempurge_threshold");
  }
  if (FLAGS_enable_delta_separation) {
    options_table->emplace(
        "delta_max_buckets",
        std::vector<std::string>{std::to_string(FLAGS_delta_max_buckets), "4",
                                 "16", "1024", "32768"});
    options_table->emplace("delta_bucket_split_ratio",
                           std::vector<std::string>{"0.8", "0.1", "0.5", "1"});
    options_table->emplace(
        "delta_cache_size",
        std::vector<std::string>{std::to_string(FLAGS_delta_cache_size), "0",
                                 "100000", "4000000",
                                 std::to_string(UINT64_MAX)});
    // Refused together with it.
    options_table->erase("experimental_mempurge_threshold");
  }
  if (!FLAGS_enable_blob_address_map) {
    return;
  }
  options_table->erase("enable_blob_files");
  options_table->erase("enable_blob_garbage_collection");
  const std::string limit = std::to_string(FLAGS_blob_gc_space_amp_limit);
  options_table->emplace(
      "blob_gc_space_amp_limit",
      std::vector<std::string>{limit, limit, "0", "1.01", "1.05", "1.2", "3"});
  const auto file_size = options_table->find("blob_file_size");
  if (file_size != options_table->end() && FLAGS_blob_file_size < (1 << 20)) {
    // The flags request small files.
    file_size->second = {std::to_string(FLAGS_blob_file_size),
                         std::to_string(2 * FLAGS_blob_file_size),
                         std::to_string(4 * FLAGS_blob_file_size)};
  }
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
