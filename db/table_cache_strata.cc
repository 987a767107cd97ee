//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <cassert>

#include "db/strata/point_read.h"
#include "db/table_cache.h"
#include "table/get_context.h"

namespace ROCKSDB_NAMESPACE {

// A flush of direct values and a range deletion creates a file without a
// filter, as no key belongs in one. Reads of most keys must open such a file
// for the range deletion, but can skip its point entries.
bool TableCache::SkipsPoints(const FileMetaData& file,
                             const GetContext* get_context) {
  assert(get_context->point_read() != nullptr);
  return get_context->point_read()->SkipsPoints(
      file.blob_refs.mapped.PointCeiling(file.fd.largest_seqno));
}

void TableCache::SkipPoints(const FileMetaData& file,
                            MultiGetContext::Range* range) {
  // All keys of a batch have a PointRead, or none has.
  if (range->empty() || range->begin()->get_context->point_read() == nullptr) {
    return;
  }
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    if (SkipsPoints(file, iter->get_context)) {
      range->SkipKey(iter);
    }
  }
}

bool TableCache::MayHaveNonDirect(
    const ReadOptions& read_options, const Slice& internal_key,
    const FileMetaData& file, const InternalKeyComparator& internal_comparator,
    const MutableCFOptions& mutable_cf_options) {
  TableReader* table = nullptr;
  TypedHandle* handle = nullptr;
  const Status s = FindTable(read_options, file_options_, internal_comparator,
                             file, &handle, mutable_cf_options, &table);
  const bool may_have =
      !s.ok() || table->MayHaveNonDirect(read_options, internal_key);
  if (handle != nullptr) {
    cache_.Release(handle);
  }
  return may_have;
}

}  // namespace ROCKSDB_NAMESPACE
