//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <cstddef>
#include <cstdint>
#include <memory>

#include "table/block_based/block_based_table_reader.h"

namespace ROCKSDB_NAMESPACE {

bool BlockBasedTable::FindPartToRead(const ReadOptions& read_options,
                                     const Slice& internal_key,
                                     uint64_t* offset, size_t* size) const {
  ReadOptions without_io = read_options;
  without_io.read_tier = kBlockCacheTier;
  IndexBlockIter on_stack;
  InternalIteratorBase<IndexValue>* const index =
      NewIndexIterator(without_io, /*disable_prefix_seek=*/true, &on_stack,
                       /*get_context=*/nullptr, /*lookup_context=*/nullptr);
  const std::unique_ptr<InternalIteratorBase<IndexValue>> guard(
      index != &on_stack ? index : nullptr);
  index->Seek(internal_key);
  if (!index->Valid()) {
    index->status().PermitUncheckedError();
    return false;
  }
  const BlockHandle block = index->value().handle;
  Cache* const cache = rep_->table_options.block_cache.get();
  if (cache != nullptr) {
    Cache::Handle* const cached =
        cache->Lookup(GetCacheKey(rep_->base_cache_key, block).AsSlice());
    if (cached != nullptr) {
      cache->Release(cached);
      return false;
    }
  }
  *offset = block.offset();
  *size = BlockSizeWithTrailer(block);
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
