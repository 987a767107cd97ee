//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/metamorphic_option_sets_test_util.h"

#include <initializer_list>
#include <utility>

#include "test_util/strata/history_options_test_util.h"
#include "test_util/strata/metamorphic_state_test_util.h"
#include "test_util/strata/overlap_dice_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Makes one random list of options.
class RandomList {
 public:
  RandomList(OverlapDice* dice, std::string kind)
      : dice_(*dice), kind_(std::move(kind)) {}

  // style: options that all lists of a sequence have.
  // num_paths: likewise; a layout may name all of these paths.
  HistoryOptionList Make(const HistoryOptionList& style, uint64_t num_paths) {
    list_ = style;
    if (num_paths > 1) {
      list_.emplace_back("paths", std::to_string(num_paths));
      AddLayout(num_paths);
    }
    AddBlobs(num_paths);
    AddDeltasAndMergedValues(num_paths);
    AddTree();
    AddTable();
    AddMemtable();
    AddWritePath();
    AddReadPath();
    return std::move(list_);
  }

  // Options that stay the same in a sequence: RocksDB does not convert between
  // styles of compaction, or to fewer levels.
  HistoryOptionList Style() {
    Set("compaction_style", {"", "", "", "kCompactionStyleUniversal"});
    Set("num_levels", {"", "", "4"});
    return std::move(list_);
  }

 private:
  using Values = std::initializer_list<const char*>;

  // Sets the option to one of the values; an empty one leaves the default.
  void Set(const char* name, Values values) {
    const char* const value = values.begin()[dice_.Below(values.size())];
    if (*value != '\0') {
      list_.emplace_back(name, value);
    }
  }

  // With write-prepared transactions a sequence number is no order of commits.
  bool HasCommitOrder() const {
    return kind_ != "write-prepared" && kind_ != "write-unprepared";
  }

  void AddLayout(uint64_t num_paths) {
    if (num_paths == 2) {
      Set("layout", {"none", "vertical", "horizontal", "selective"});
      return;
    }
    Set("level_sst_path_ids", {"", "0", "0:1", "0:1:2:3", "3:2"});
    Set("level_blob_path_ids", {"", "1", "3:2:1:0", "0:0:1:2", "2:3"});
  }

  void AddBlobs(uint64_t num_paths) {
    if (dice_.OneIn(4)) {
      return;
    }
    Set("blobs", {"0", "0", "50", "500"});
    Set("blob_file_size", {"", "256", "2000", "20000"});
    Set("blob_file_starting_level", {"", "", "1", "2"});
    Set("blob_compression_type", {"", "", "kLZ4Compression", "kZSTD"});
    if (dice_.OneIn(3)) {
      // RocksDB's blob files.
      Set("enable_blob_garbage_collection", {"true", "false"});
      Set("blob_garbage_collection_age_cutoff", {"", "0.5", "1"});
      return;
    }
    list_.emplace_back("enable_blob_address_map", "true");
    Set("enable_blob_garbage_collection", {"true", "false", "false"});
    Set("blob_gc_space_amp_limit", {"0", "1.01", "1.01", "1.2", "2", "4"});
    Set("blob_scan_sort_budget", {"", "0", "1000", "1000"});
    Set("save_blob_address_map", {"", "false"});
    if (num_paths > 1) {
      Set("blob_hot_bytes", {"", "2000", "20000", "1000000"});
      Set("blob_hot_path_id", {"", "1"});
    }
    if (!HasCommitOrder()) {
      list_.emplace_back("enable_lsm_bypass", "false");
    } else {
      Set("enable_lsm_bypass", {"", "", "false"});
    }
  }

  void AddDeltasAndMergedValues(uint64_t num_paths) {
    if (!HasCommitOrder()) {
      return;
    }
    if (dice_.OneIn(2)) {
      list_.emplace_back("enable_delta_separation", "true");
      Set("delta_bucket_size", {"", "4096", "4096", "20000"});
      Set("delta_max_buckets", {"", "4", "64"});
      Set("delta_bucket_split_ratio", {"", "0.1", "1"});
      Set("delta_cache_size", {"", "0", "1000000"});
      if (num_paths > 1) {
        Set("delta_sorted_path_id", {"", "0", "1"});
      }
    }
    if (dice_.OneIn(3)) {
      list_.emplace_back("enable_merged_value_cache", "true");
      Set("merged_value_cache_size", {"", "2000", "2000000"});
    }
  }

  void AddTree() {
    if (dice_.OneIn(2)) {
      list_.emplace_back("disable_auto_compactions", "false");
      Set("level0_file_num_compaction_trigger", {"1", "2", "4"});
      Set("max_bytes_for_level_base", {"", "2000", "4096", "50000"});
    }
    Set("target_file_size_base", {"", "1024", "1024", "10000"});
    Set("max_subcompactions", {"", "", "4"});
    Set("level_compaction_dynamic_level_bytes", {"", "", "true"});
    Set("compression", {"", "", "kLZ4Compression", "kZSTD"});
    Set("optimize_filters_for_hits", {"", "", "true"});
    Set("paranoid_file_checks", {"", "", "true"});
    Set("max_background_jobs", {"", "1", "8"});
  }

  void AddTable() {
    Set("block_based_table_factory",
        {"", "", "{block_size=128;filter_policy=bloomfilter:10:false;}",
         "{filter_policy=ribbonfilter:8;optimize_filters_for_memory=true;}",
         "{no_block_cache=true;}",
         "{format_version=2;block_restart_interval=1;}",
         "{index_type=kTwoLevelIndexSearch;partition_filters=true;"
         "filter_policy=bloomfilter:10:false;metadata_block_size=128;"
         "block_size=256;cache_index_and_filter_blocks=true;}",
         "{index_type=kBinarySearchWithFirstKey;block_size=64;}",
         "{data_block_index_type=kDataBlockBinaryAndHash;block_size=512;"
         "whole_key_filtering=true;filter_policy=bloomfilter:4:false;}"});
  }

  void AddMemtable() {
    // A DB checks conflicts of optimistic transactions in memtables: a flush
    // that the history does not have could change the result of a commit.
    if (kind_ != "optimistic") {
      Set("write_buffer_size", {"", "", "", "66000"});
      Set("min_write_buffer_number_to_merge", {"", "", "2"});
      Set("max_write_buffer_number", {"", "4"});
      Set("max_write_buffer_size_to_maintain", {"", "", "100000"});
    }
    Set("memtable_prefix_bloom_size_ratio", {"", "", "0.1"});
    Set("memtable_whole_key_filtering", {"", "true"});
    Set("max_successive_merges", {"", "", "2"});
    Set("memtable_protection_bytes_per_key", {"", "", "8"});
  }

  // avoid_flush_during_recovery is not among them yet: one more option changes
  // the sets of all seeds.
  void AddWritePath() {
    Set("max_write_groups_per_leader", {"", "", "4"});
    Set("two_write_queues", {"", "", "true"});
    Set("atomic_flush", {"", "", "true"});
    Set("avoid_flush_during_shutdown", {"", "", "true"});
    Set("track_and_verify_wals_in_manifest", {"", "", "true"});
    Set("wal_bytes_per_sync", {"", "", "1000"});
    Set("recycle_log_file_num", {"", "", "2"});
  }

  void AddReadPath() {
    Set("max_open_files", {"", "", "10"});
    Set("use_direct_reads", {"", "", "true"});
    Set("use_direct_io_for_flush_and_compaction", {"", "", "true"});
  }

  OverlapDice& dice_;
  const std::string kind_;
  HistoryOptionList list_;
};

bool Has(const HistoryOptionList& list, const char* name, const char* value) {
  const std::string* const found = HistoryOptions::Find(list, name);
  return found != nullptr && *found == value;
}

// The variants of history scripts that this kind of DB allows.
std::vector<HistoryVariant> AllowedVariants(const std::string& kind) {
  std::vector<HistoryVariant> sets;
  for (const HistoryVariant& variant : HistoryVariants()) {
    HistoryOptionList list = variant.lists[0];
    if (kind == "write-prepared" || kind == "write-unprepared") {
      if (Has(list, "enable_delta_separation", "true") ||
          Has(list, "enable_merged_value_cache", "true")) {
        continue;
      }
      HistoryOptions::Set("enable_lsm_bypass", "false", &list);
    }
    sets.push_back({variant.name, {std::move(list)}});
  }
  return sets;
}

}  // namespace

std::vector<HistoryVariant> MetamorphicOptionSets::Choose(
    uint64_t seed, const std::vector<HistoryWords>& steps, size_t count) {
  MetamorphicState state;
  state.Apply(steps[0]);
  const std::string kind = state.kind();
  OverlapDice dice(seed);
  const std::vector<HistoryVariant> variants = AllowedVariants(kind);
  std::vector<HistoryVariant> sets;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    RandomList random(&dice, kind);
    const uint64_t num_paths = dice.OneIn(2) ? 1 : dice.OneIn(2) ? 2 : 4;
    switch (dice.Below(4)) {
      case 0:
        sets.push_back(variants[dice.Below(variants.size())]);
        break;
      case 1: {
        HistoryVariant sequence{"sequence " + number, {}};
        const HistoryOptionList style = random.Style();
        const uint64_t length = 2 + dice.Below(3);
        for (uint64_t j = 0; j < length; ++j) {
          sequence.lists.push_back(random.Make(style, num_paths));
        }
        sets.push_back(std::move(sequence));
        break;
      }
      default:
        sets.push_back(
            {"random " + number, {random.Make(random.Style(), num_paths)}});
        break;
    }
  }
  return sets;
}

}  // namespace ROCKSDB_NAMESPACE
