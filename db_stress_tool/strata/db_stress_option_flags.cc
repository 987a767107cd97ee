//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_option_flags.h"

#include "options/strata/option_text.h"
#include "tools/strata/option_flags.h"
#include "util/gflags_compat.h"

DECLARE_uint64(blob_file_size);
DECLARE_bool(use_optimistic_txn);
DECLARE_uint32(min_tombstones_for_range_conversion);

#define STRATA_FLAG_HELP(help, bench_help) help
STRATA_DEFINE_OPTION_FLAGS
#undef STRATA_FLAG_HELP

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

namespace {

using OptionsTable = std::unordered_map<std::string, std::vector<std::string>>;

// Lets SetOptions() try the value of the flag and the default for each mutable
// option that has no values in the table yet and whose feature is on.
void AddRemainingOptions(OptionsTable* options_table) {
  const StrataColumnFamilyOptions defaults;
#define STRATA_TRY(kind, name, feature, ...) STRATA_TRY_##kind(name, feature)
#define STRATA_TRY_VALUES(name, feature)                             \
  if (TurnsOn(FLAGS_##feature)) {                                    \
    options_table->emplace(                                          \
        #name, std::vector<std::string>{OptionText(FLAGS_##name),    \
                                        OptionText(defaults.name)}); \
  }
#define STRATA_TRY_bool STRATA_TRY_VALUES
#define STRATA_TRY_int32 STRATA_TRY_VALUES
#define STRATA_TRY_uint32 STRATA_TRY_VALUES
#define STRATA_TRY_uint64 STRATA_TRY_VALUES
#define STRATA_TRY_size STRATA_TRY_VALUES
#define STRATA_TRY_double STRATA_TRY_VALUES
// Layouts and prices come from AddPathLayoutsToTry().
#define STRATA_TRY_path_ids(name, feature)
#define STRATA_TRY_prices(name, feature)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_TRY)
#undef STRATA_TRY
#undef STRATA_TRY_VALUES
#undef STRATA_TRY_bool
#undef STRATA_TRY_int32
#undef STRATA_TRY_uint32
#undef STRATA_TRY_uint64
#undef STRATA_TRY_size
#undef STRATA_TRY_double
#undef STRATA_TRY_path_ids
#undef STRATA_TRY_prices
}

}  // namespace

void ApplyStressOptionFlags(Options* options) {
  STRATA_APPLY_OPTION_FLAGS
  ApplyOptionFlag("max_background_jobs", &FLAGS_max_background_jobs,
                  &options->max_background_jobs);
}

void ApplyStressOptionFlags(ReadOptions* options) {
  if (FLAGS_blob_prefetch_count >= 0) {
    options->blob_prefetch_count =
        static_cast<size_t>(FLAGS_blob_prefetch_count);
  }
}

bool MayConflictAlone(const Status& s) {
  return s.IsBusy() && FLAGS_use_optimistic_txn &&
         FLAGS_min_tombstones_for_range_conversion > 0;
}

bool MayFindFailedWrites() { return FLAGS_wal_mmap_buffer_size > 0; }

void AdaptOptionsToFeatures(OptionsTable* options_table) {
  if (FLAGS_enable_merged_value_cache) {
    options_table->emplace(
        "merged_value_cache_size",
        std::vector<std::string>{std::to_string(FLAGS_merged_value_cache_size),
                                 "0", "100000", "4000000",
                                 std::to_string(UINT64_MAX)});
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
  if (FLAGS_enable_blob_address_map) {
    options_table->erase("enable_blob_files");
    const std::string limit = std::to_string(FLAGS_blob_gc_space_amp_limit);
    options_table->emplace("blob_gc_space_amp_limit",
                           std::vector<std::string>{limit, limit, "0", "1.01",
                                                    "1.05", "1.2", "3"});
    const std::string budget = std::to_string(FLAGS_blob_scan_sort_budget);
    options_table->emplace(
        "blob_scan_sort_budget",
        std::vector<std::string>{budget, budget, "0", "1", "1000"});
    if (FLAGS_blob_hot_bytes > 0) {
      // Another budget has jobs move values there and back.
      const std::string hot = std::to_string(FLAGS_blob_hot_bytes);
      options_table->emplace(
          "blob_hot_bytes",
          std::vector<std::string>{hot, hot, "0", "20000", "1000000"});
    }
    const auto file_size = options_table->find("blob_file_size");
    if (file_size != options_table->end() && FLAGS_blob_file_size < (1 << 20)) {
      // The flags request small files.
      file_size->second = {std::to_string(FLAGS_blob_file_size),
                           std::to_string(2 * FLAGS_blob_file_size),
                           std::to_string(4 * FLAGS_blob_file_size)};
    }
  }
  AddRemainingOptions(options_table);
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
