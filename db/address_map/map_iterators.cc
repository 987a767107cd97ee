//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_iterators.h"

#include <new>

#include "db/address_map/address_map_store.h"
#include "db/address_map/map_prefetch_iterator.h"
#include "db/address_map/map_tailing_iterator.h"
#include "db/address_map/map_value_iterator.h"
#include "db/column_family.h"
#include "memory/arena.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

InternalIterator* MapIterators::Wrap(ColumnFamilyData* cfd,
                                     const ReadOptions& read_options,
                                     SequenceNumber sequence,
                                     const SliceTransform* prefix_extractor,
                                     InternalIterator* child, Arena* arena) {
  if (cfd->address_map_store() == nullptr) {
    return child;
  }
  InternalIterator* result =
      new (arena->AllocateAligned(sizeof(MapValueIterator)))
          MapValueIterator(cfd, read_options, prefix_extractor, child,
                           /*in_arena=*/true);
  if (MapPrefetchIterator::IsWanted(read_options)) {
    result = new (arena->AllocateAligned(sizeof(MapPrefetchIterator)))
        MapPrefetchIterator(cfd, read_options, sequence, prefix_extractor,
                            result);
  }
  return result;
}

InternalIterator* MapIterators::WrapTailing(
    ColumnFamilyData* cfd, const ReadOptions& read_options,
    const std::function<SequenceNumber()>& last_sequence,
    const SliceTransform* prefix_extractor, InternalIterator* child) {
  if (cfd->address_map_store() == nullptr) {
    return child;
  }
  return new MapValueIterator(
      cfd, read_options, prefix_extractor,
      new MapTailingIterator(cfd, cfd->address_map_store()->read_bounds(),
                             last_sequence, child),
      /*in_arena=*/false);
}

bool MapIterators::IsMappedValue(const Slice& value) {
  return MapValueIterator::IsBound(value) ||
         MapPrefetchIterator::IsPrefetched(value);
}

Status MapIterators::Fetch(const Slice& user_key, const Slice& value,
                           PinnableSlice* result) {
  Slice bound = value;
  if (MapPrefetchIterator::IsPrefetched(value)) {
    Status s;
    if (MapPrefetchIterator::Take(value, result, &s)) {
      return s;
    }
    bound = MapPrefetchIterator::BoundValue(value);
  }
  return MapValueIterator::Fetch(user_key, bound, result);
}

}  // namespace ROCKSDB_NAMESPACE
