//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/table_cache.h"

namespace ROCKSDB_NAMESPACE {

bool TableCache::MayHaveNonDirect(
    const ReadOptions& read_options, const Slice& internal_key,
    const FileMetaData& file, const InternalKeyComparator& internal_comparator,
    const MutableCFOptions& mutable_cf_options) {
  TableReader* table = nullptr;
  TypedHandle* handle = nullptr;
  const Status s =
      FindTable(read_options, file_options_, internal_comparator, file, &handle,
                mutable_cf_options, &table);
  const bool may_have =
      !s.ok() || table->MayHaveNonDirect(read_options, internal_key);
  if (handle != nullptr) {
    cache_.Release(handle);
  }
  return may_have;
}

}  // namespace ROCKSDB_NAMESPACE
