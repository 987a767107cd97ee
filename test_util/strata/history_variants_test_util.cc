//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_variants_test_util.h"

#include <initializer_list>

namespace ROCKSDB_NAMESPACE {

namespace {

// A variant with one list of options.
struct Variant {
  std::string name;
  HistoryOptionList options;
};
using Variants = std::vector<Variant>;

// An index and filters that consist of partitions.
constexpr char kPartitionedTable[] =
    "{index_type=kTwoLevelIndexSearch;partition_filters=true;"
    "filter_policy=bloomfilter:10:false;metadata_block_size=128;"
    "block_size=256;cache_index_and_filter_blocks=true;}";

// Returns the options of an address map for all values of min_size bytes or
// more, and `others` behind these.
HistoryOptionList WithMap(const char* min_size,
                          const HistoryOptionList& others) {
  HistoryOptionList options = {{"blobs", min_size},
                               {"enable_blob_address_map", "true"}};
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

// Variants of the places of values and files.
Variants PlaceVariants() {
  return {
      {"no-layout", {{"layout", "none"}}},
      {"no-blobs", {{"blobs", "off"}}},
      {"blobs", {{"blobs", "0"}, {"paths", "2"}, {"layout", "vertical"}}},
      {"blob-gc",
       {{"blobs", "0"},
        {"paths", "2"},
        {"layout", "horizontal"},
        {"enable_blob_garbage_collection", "true"},
        {"blob_garbage_collection_age_cutoff", "1"},
        {"blob_file_size", "256"}}},
      {"four-paths",
       {{"blobs", "0"},
        {"paths", "4"},
        {"level_sst_path_ids", "0:1:2:3"},
        {"level_blob_path_ids", "3:2:1:0"}}},
  };
}

// Variants of the compactions and the files of the LSM tree.
Variants TreeVariants() {
  return {
      {"universal", {{"compaction_style", "kCompactionStyleUniversal"}}},
      {"dynamic-levels", {{"level_compaction_dynamic_level_bytes", "true"}}},
      {"subcompactions",
       {{"max_subcompactions", "4"}, {"target_file_size_base", "1024"}}},
      {"auto-compaction",
       {{"disable_auto_compactions", "false"},
        {"level0_file_num_compaction_trigger", "2"},
        {"target_file_size_base", "1024"},
        {"max_bytes_for_level_base", "4096"}}},
      {"partitioned", {{"block_based_table_factory", kPartitionedTable}}},
      {"compressed",
       {{"compression", "kLZ4Compression"},
        {"blob_compression_type", "kLZ4Compression"},
        {"block_based_table_factory", "{no_block_cache=true;}"}}},
      {"few-open-files", {{"max_open_files", "10"}}},
  };
}

Variants MapVariants() {
  return {
      {"no-map", {{"enable_blob_address_map", "false"}}},
      {"map", WithMap("0", {})},
      {"map-no-bypass", WithMap("0", {{"enable_lsm_bypass", "false"},
                                      {"blob_file_starting_level", "1"}})},
      {"map-collected", WithMap("0", {{"blob_gc_space_amp_limit", "1.01"},
                                      {"blob_file_size", "512"}})},
      // A scan of values that lie apart makes a job put them into key order.
      {"map-sorted", WithMap("0", {{"blob_gc_space_amp_limit", "4"},
                                   {"blob_scan_sort_budget", "1000"},
                                   {"blob_file_size", "256"}})},
      {"map-tiers", WithMap("0", {{"paths", "2"},
                                  {"layout", "horizontal"},
                                  {"blob_gc_space_amp_limit", "1.01"},
                                  {"blob_file_size", "256"}})},
      // Values that were read twice lately move to the other path, where there
      // is room for few.
      {"map-hot", WithMap("0", {{"paths", "2"},
                                {"layout", "vertical"},
                                {"blob_hot_bytes", "4000"},
                                {"blob_gc_space_amp_limit", "1.01"},
                                {"blob_file_size", "256"}})},
      {"map-small-files",
       WithMap("50", {{"blob_file_size", "256"},
                      {"blob_gc_space_amp_limit", "1.01"},
                      {"disable_auto_compactions", "false"},
                      {"level0_file_num_compaction_trigger", "2"},
                      {"target_file_size_base", "1024"},
                      {"max_bytes_for_level_base", "4096"},
                      {"max_subcompactions", "4"},
                      {"block_based_table_factory", kPartitionedTable}})},
      {"map-universal",
       WithMap("0", {{"compaction_style", "kCompactionStyleUniversal"},
                     {"block_based_table_factory",
                      "{filter_policy=ribbonfilter:10;"
                      "optimize_filters_for_memory=true;}"}})},
  };
}

Variants MergedValueVariants() {
  return {
      {"merged-values",
       {{"enable_merged_value_cache", "true"},
        {"merged_value_cache_size", "2000000"}}},
      {"map-merged-values",
       WithMap("0", {{"blob_gc_space_amp_limit", "1.01"},
                     {"blob_file_size", "512"},
                     {"enable_merged_value_cache", "true"},
                     {"merged_value_cache_size", "2000000"}})},
  };
}

Variants DeltaVariants() {
  return {
      {"deltas", {{"enable_delta_separation", "true"}}},
      {"deltas-small-buckets",
       {{"enable_delta_separation", "true"},
        {"delta_bucket_size", "4096"},
        {"delta_max_buckets", "64"},
        {"delta_bucket_split_ratio", "0.1"},
        {"enable_merged_value_cache", "true"},
        {"merged_value_cache_size", "2000000"}}},
      {"deltas-paths",
       {{"paths", "2"},
        {"layout", "horizontal"},
        {"disable_auto_compactions", "false"},
        {"enable_delta_separation", "true"},
        {"delta_bucket_size", "4096"},
        {"delta_max_buckets", "64"}}},
      {"map-deltas", WithMap("0", {{"blob_gc_space_amp_limit", "1.01"},
                                   {"blob_file_size", "512"},
                                   {"enable_delta_separation", "true"},
                                   {"delta_bucket_size", "4096"},
                                   {"delta_max_buckets", "4"},
                                   {"delta_bucket_split_ratio", "0.1"}})},
  };
}

Variants IoVariants() {
  return {
      {"direct-io",
       {{"use_direct_reads", "true"},
        {"use_direct_io_for_flush_and_compaction", "true"}}},
  };
}

}  // namespace

const std::vector<HistoryVariant>& HistoryVariants() {
  static const std::vector<HistoryVariant> kVariants = [] {
    std::vector<HistoryVariant> all;
    for (const Variants& some :
         {PlaceVariants(), TreeVariants(), MapVariants(), MergedValueVariants(),
          DeltaVariants(), IoVariants()}) {
      for (const Variant& variant : some) {
        all.push_back({variant.name, {variant.options}});
      }
    }
    return all;
  }();
  return kVariants;
}

}  // namespace ROCKSDB_NAMESPACE
