//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_iterators.h"

#include <new>

#include "db/address_map/address_map_store.h"
#include "db/address_map/map_prefetch_iterator.h"
#include "db/address_map/map_tailing_iterator.h"
#include "db/address_map/map_value_iterator.h"
#include "db/address_map/mapped_value_reader.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "memory/arena.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

ScanMeter::Runs RunsOf(const VersionStorageInfo& files) {
  ScanMeter::Runs runs;
  if (files.strata().delta() != nullptr) {
    return runs;  // a seek reads blocks of delta files, too
  }
  runs.level0_files = files.LevelFiles(0).size();
  for (int level = 1; level < files.num_non_empty_levels(); ++level) {
    runs.levels += files.LevelFiles(level).empty() ? 0 : 1;
  }
  return runs;
}

}  // namespace

InternalIterator* MapIterators::Wrap(ColumnFamilyData* cfd,
                                     const ReadOptions& read_options,
                                     SequenceNumber sequence,
                                     const SuperVersion& sv,
                                     InternalIterator* child, Arena* arena) {
  if (cfd->address_map_store() == nullptr) {
    return child;
  }
  const SliceTransform* const prefix_extractor =
      sv.mutable_cf_options.prefix_extractor.get();
  MapValueIterator* const values =
      new (arena->AllocateAligned(sizeof(MapValueIterator))) MapValueIterator(
          cfd, read_options, RunsOf(*sv.current->storage_info()),
          prefix_extractor, child, /*in_arena=*/true);
  if (!MapPrefetchIterator::IsWanted(read_options)) {
    return values;
  }
  return new (arena->AllocateAligned(sizeof(MapPrefetchIterator)))
      MapPrefetchIterator(
          cfd, read_options, sequence, prefix_extractor,
          sv.mutable_cf_options.max_sequential_skip_in_iterations, values);
}

InternalIterator* MapIterators::WrapTailing(
    ColumnFamilyData* cfd, const ReadOptions& read_options,
    const std::function<SequenceNumber()>& last_sequence,
    InternalIterator* child) {
  if (cfd->address_map_store() == nullptr) {
    return child;
  }
  return new MapValueIterator(
      cfd, read_options, ScanMeter::Runs(), /*prefix_extractor=*/nullptr,
      new MapTailingIterator(cfd, cfd->address_map_store()->read_bounds(),
                             last_sequence, child),
      /*in_arena=*/false);
}

Status MapIterators::Fetch(InternalIterator* iter, const Slice& user_key,
                           const Slice& value, PinnableSlice* result) {
  MappedValueReader* const reader = iter->mapped_value_reader();
  if (reader == nullptr) {
    return Status::Corruption(
        "Bound blob index of an iterator without an address map");
  }
  return reader->FetchMappedValue(user_key, value, result);
}

}  // namespace ROCKSDB_NAMESPACE
