//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_db_test_util.h"

#include <utility>

#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_values_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kMinBlobSize = 100;  // Bytes.

// Makes memtables, files and levels small, so that there are many jobs.
void ChooseTree(OverlapDice& dice, Options& o) {
  o.create_if_missing = true;
  o.create_missing_column_families = true;
  o.max_background_jobs = 8;
  o.max_subcompactions = static_cast<uint32_t>(1 + dice.Below(3));
  o.level0_slowdown_writes_trigger = 40;
  o.level0_stop_writes_trigger = 60;
  o.level0_file_num_compaction_trigger = static_cast<int>(2 + dice.Below(3));
  o.write_buffer_size = size_t{16384} << dice.Below(4);
  o.arena_block_size = 4096;
  o.max_write_buffer_number = static_cast<int>(3 + dice.Below(4));
  o.target_file_size_base = uint64_t{8192} << dice.Below(3);
  o.target_file_size_multiplier = 1;
  o.max_bytes_for_level_base = uint64_t{32768} << dice.Below(3);
  o.max_bytes_for_level_multiplier = 4;
  o.level_compaction_dynamic_level_bytes = dice.OneIn(2);
  o.num_levels = static_cast<int>(4 + dice.Below(4));
  if (dice.OneIn(4)) {
    o.compaction_style = kCompactionStyleUniversal;
  }
  o.bottommost_file_compaction_delay = 0;
  o.compression = kNoCompression;
  o.merge_operator = OverlapValues::NewMergeOperator();
  o.atomic_flush = dice.OneIn(4);
  o.enable_pipelined_write = !o.atomic_flush && dice.OneIn(3);
  o.info_log_level = INFO_LEVEL;
  o.statistics = CreateDBStatistics();
  o.max_open_files = dice.OneIn(3) ? 30 : -1;
  o.max_successive_merges = dice.OneIn(6) ? 3 : 0;
}

void ChooseTable(OverlapDice& dice, Options& o) {
  BlockBasedTableOptions table;
  table.block_size = 1024;
  table.block_cache = NewLRUCache(size_t{64 << 10} << (3 * dice.Below(3)));
  if (!dice.OneIn(4)) {
    table.filter_policy.reset(NewBloomFilterPolicy(10));
  }
  table.cache_index_and_filter_blocks = dice.OneIn(2);
  o.table_factory.reset(NewBlockBasedTableFactory(table));
}

// Chooses how values are stored.
void ChooseValues(const OverlapStressOptions& options, OverlapDice& dice,
                  Options& o) {
  o.enable_blob_files = options.address_map || dice.OneIn(2);
  o.min_blob_size = kMinBlobSize;
  o.blob_file_size = uint64_t{16384} << dice.Below(4);
  if (dice.OneIn(3)) {
    o.blob_cache = NewLRUCache(1 << 20);
  }
  o.enable_blob_address_map = options.address_map;
  o.enable_lsm_bypass = options.lsm_bypass;
  if (!options.address_map) {
    o.enable_blob_garbage_collection = o.enable_blob_files && dice.OneIn(2);
    o.blob_garbage_collection_age_cutoff = 0.5;
  } else {
    o.blob_gc_space_amp_limit = dice.OneIn(2) ? 1.1 : dice.OneIn(2) ? 1.4 : 4;
    // With 1000, nearly each scan makes a job put values into key order.
    o.blob_scan_sort_budget = dice.OneIn(2) ? 1000 : 1;
  }
  o.enable_delta_separation = options.delta_separation;
  // Folds only happen in full buckets, when there are no more buckets.
  o.delta_bucket_size = uint64_t{4096} << dice.Below(2);
  o.delta_max_buckets = dice.OneIn(4) ? 64 : 4;
  o.enable_merged_value_cache = options.merged_values;
  o.merged_value_cache_size = dice.OneIn(2) ? (1 << 20) : (4 << 20);
}

}  // namespace

OverlapDb::OverlapDb(const OverlapStressOptions& options)
    : path_(options.path) {
  OverlapDice dice(options.seed * 7919 + 1);
  ChooseTree(dice, options_);
  if (options.compaction_filter) {
    filter_ = OverlapValues::NewCompactionFilter();
    options_.compaction_filter = filter_.get();
  }
  ChooseTable(dice, options_);
  ChooseValues(options, dice, options_);
}

std::vector<ColumnFamilyDescriptor> OverlapDb::Descriptors() const {
  return {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options_),
          ColumnFamilyDescriptor("second", options_)};
}

Status OverlapDb::Open() {
  std::vector<ColumnFamilyHandle*> handles;
  const Status s = DB::Open(options_, path_, Descriptors(), &handles, &db_);
  for (size_t i = 0; s.ok() && i < kNumFamilies; ++i) {
    families_[i] = handles[i];
  }
  return s;
}

Status OverlapDb::Close() {
  Status s;
  for (ColumnFamilyHandle* handle : families_) {
    s.UpdateIfOk(db_->DestroyColumnFamilyHandle(handle));
  }
  s.UpdateIfOk(db_->Close());
  db_.reset();
  return s;
}

void OverlapDb::Destroy() {
  DestroyDB(path_, options_, Descriptors()).PermitUncheckedError();
}

}  // namespace ROCKSDB_NAMESPACE
