//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_store.h"

#include <utility>

#include "options/cf_options.h"
#include "options/strata/delta_options.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// There is no cache while delta files are drained, as folds would invalidate
// its entries.
std::unique_ptr<DeltaCache> CreateCache(const ImmutableOptions& ioptions,
                                        const MutableCFOptions& options) {
  return ioptions.enable_delta_separation
             ? DeltaCache::Create(ioptions, options)
             : nullptr;
}

}  // namespace

DeltaStore::DeltaStore(DeltaTableFamily family, const MutableCFOptions& options)
    : async_reads_(std::make_unique<DeltaAsyncReads>(family)),
      tables_(std::move(family), options),
      cache_(CreateCache(tables_.settings()->ioptions(), options)),
      cache_size_option_(options.delta_cache_size) {}

void DeltaStore::Update(const MutableCFOptions& options) {
  tables_.Update(options);
  // The capacity is computed from the block cache's only when the option itself
  // is changed, not when others are.
  if (cache_ != nullptr && options.delta_cache_size != cache_size_option_) {
    cache_size_option_ = options.delta_cache_size;
    cache_->LimitCapacity(
        DeltaCacheSize(tables_.settings()->ioptions(), options));
  }
}

void DeltaStore::TrimCache() {
  if (cache_ != nullptr) {
    cache_->Trim();
  }
}

Status DeltaStore::OpenReader(const ReadOptions& read_options,
                              const DeltaFileMeta& file,
                              DeltaFileReader** reader) const {
  if (read_options.read_tier == kBlockCacheTier) {
    return Status::Incomplete("Delta file is not open, and no I/O allowed");
  }
  // The reader serves all later reads, and flushes, which write no anchor where
  // its filter has no operand. So the options of the read that comes first do
  // not matter for its index and filter.
  ReadOptions open_options = read_options;
  open_options.verify_checksums = true;
  open_options.fill_cache = true;
  TEST_SYNC_POINT_CALLBACK("DeltaStore::OpenReader:Options", &open_options);
  return file.GetReader(
      [&](const DeltaFileDescription& description,
          std::shared_ptr<DeltaFileReader>* opened) {
        std::unique_ptr<DeltaFileReader> result;
        Status s =
            DeltaFileReader::Open(tables_, open_options, description, &result);
        if (s.IsMemoryLimit() || (s.ok() && result->LacksFilter())) {
          // The block cache has no room, or it has room for the index but not
          // for the filter, or the deadline has passed between the two. If the
          // filter is damaged, the second reader lacks it, too.
          open_options.fill_cache = false;
          open_options.deadline = std::chrono::microseconds::zero();
          open_options.io_timeout = std::chrono::microseconds::zero();
          s = DeltaFileReader::Open(tables_, open_options, description,
                                    &result);
        }
        *opened = std::move(result);
        return s;
      },
      reader);
}

}  // namespace ROCKSDB_NAMESPACE
