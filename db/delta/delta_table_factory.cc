//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_table_factory.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/db_impl/db_impl.h"
#include "file/file_util.h"
#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "table/block_based/block_based_table_factory.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr double kBloomBitsPerKey = 10;
// The index is in memory while the file is open. Prefix compression of its keys
// saves memory.
constexpr int kIndexRestartInterval = 8;

}  // namespace

DeltaTableFamily::DeltaTableFamily(const ImmutableOptions& _ioptions)
    : ioptions(_ioptions),
      // With buffers of the file system, blocks are not read by Read().
      overlaps_reads(
          !_ioptions.allow_mmap_reads &&
          CheckFSFeatureSupport(_ioptions.fs.get(), FSSupportedOps::kAsyncIO) &&
          !CheckFSFeatureSupport(_ioptions.fs.get(),
                                 FSSupportedOps::kFSBuffer)) {}

DeltaTableFactory::DeltaTableFactory(DeltaTableFamily family,
                                     const MutableCFOptions& options)
    : family_(std::make_shared<const DeltaTableFamily>(std::move(family))) {
  MutexLock lock(&mutex_);
  settings_ = MakeSettings(options);
}

void DeltaTableFactory::Update(const MutableCFOptions& options) {
  MutexLock lock(&mutex_);
  settings_ = MakeSettings(options);
}

std::shared_ptr<const DeltaTableSettings> DeltaTableFactory::settings() const {
  MutexLock lock(&mutex_);
  return settings_;
}

std::shared_ptr<const DeltaTableSettings> DeltaTableFactory::MakeSettings(
    const MutableCFOptions& options) {
  mutex_.AssertHeld();
  auto settings = std::make_shared<DeltaTableSettings>();
  settings->family = family_;
  settings->compression = GetCompressionFlush(family_->ioptions, options);
  settings->options = options;
  settings->options.table_factory =
      std::make_shared<BlockBasedTableFactory>(MakeTableOptions(options));
  // The filter has whole keys only.
  settings->options.prefix_extractor.reset();
  // Files are small, and the size of one that is being written must be exact.
  settings->options.compression_opts.parallel_threads = 1;
  // These two options only concern the SST files of compactions.
  settings->options.sample_for_compression = 0;
  settings->options.target_file_size_is_upper_bound = false;
  return settings;
}

BlockBasedTableOptions DeltaTableFactory::MakeTableOptions(
    const MutableCFOptions& options) {
  mutex_.AssertHeld();
  // Not a modified copy of the column family's options: an unknown option of
  // RocksDB must not change the shape of delta files.
  BlockBasedTableOptions result;
  result.block_size = kBlockSize;
  result.index_block_restart_interval = kIndexRestartInterval;
  result.format_version = std::max(result.format_version, kMinFormatVersion);

  const BlockBasedTableOptions* const of_family =
      options.table_factory != nullptr
          ? options.table_factory->GetOptions<BlockBasedTableOptions>()
          : nullptr;
  if (of_family != nullptr) {
    result.no_block_cache = of_family->no_block_cache;
    result.block_cache = of_family->block_cache;
    result.cache_usage_options = of_family->cache_usage_options;
    result.prepopulate_block_cache = of_family->prepopulate_block_cache;
    result.checksum = of_family->checksum;
    result.format_version =
        std::max(of_family->format_version, kMinFormatVersion);
    result.filter_policy = of_family->filter_policy;
    result.optimize_filters_for_memory = of_family->optimize_filters_for_memory;
    result.detect_filter_construct_corruption =
        of_family->detect_filter_construct_corruption;
    result.verify_compression = of_family->verify_compression;
    // Iterators that pin data can pin keys only without delta encoding.
    result.use_delta_encoding = of_family->use_delta_encoding;
    result.initial_auto_readahead_size = of_family->initial_auto_readahead_size;
    result.max_auto_readahead_size = of_family->max_auto_readahead_size;
    result.num_file_reads_for_auto_readahead =
        of_family->num_file_reads_for_auto_readahead;
  }
  if (result.filter_policy == nullptr) {
    result.filter_policy.reset(NewBloomFilterPolicy(kBloomBitsPerKey));
  }
  if (result.block_cache == nullptr && !result.no_block_cache) {
    if (own_cache_ == nullptr) {
      own_cache_ = LRUCacheOptions(kOwnCacheSize, /*_num_shard_bits=*/-1,
                                   /*_strict_capacity_limit=*/false,
                                   /*_high_pri_pool_ratio=*/0.5)
                       .MakeSharedCache();
    }
    result.block_cache = own_cache_;
  }
  result.cache_index_and_filter_blocks = !result.no_block_cache;
  result.cache_index_and_filter_blocks_with_high_priority = true;
  result.metadata_cache_options.unpartitioned_pinning = PinningTier::kAll;
  return result;
}

}  // namespace ROCKSDB_NAMESPACE
