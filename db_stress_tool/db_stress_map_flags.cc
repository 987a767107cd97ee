//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/db_stress_map_flags.h"

#include "util/gflags_compat.h"

DEFINE_bool(enable_blob_address_map, false,
            "Keep the addresses of values in blob files in a map in memory");

DEFINE_bool(enable_lsm_bypass, true,
            "With --enable_blob_address_map: filters hold only what the map "
            "cannot answer");

DEFINE_double(blob_gc_space_amp_limit, 1.2,
              "With --enable_blob_address_map: collect garbage before blob files "
              "take up this many times what is live; 0: never");

DEFINE_int64(blob_prefetch_count, -1,
             "With --enable_blob_address_map: how many values a scan reads "
             "ahead; -1 leaves it to the library");

namespace ROCKSDB_NAMESPACE {

void ApplyStressMapFlags(Options* options) {
  options->enable_blob_address_map = FLAGS_enable_blob_address_map;
  options->enable_lsm_bypass = FLAGS_enable_lsm_bypass;
  options->blob_gc_space_amp_limit = FLAGS_blob_gc_space_amp_limit;
}

void ApplyStressMapFlags(ReadOptions* options) {
  if (FLAGS_blob_prefetch_count >= 0) {
    options->blob_prefetch_count =
        static_cast<size_t>(FLAGS_blob_prefetch_count);
  }
}

void RemoveOptionsOfMap(
    std::unordered_map<std::string, std::vector<std::string>>* options_table) {
  if (FLAGS_enable_blob_address_map) {
    options_table->erase("enable_blob_files");
    options_table->erase("enable_blob_garbage_collection");
  }
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
