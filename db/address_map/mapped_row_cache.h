//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cache/typed_cache.h"
#include "rocksdb/cache.h"
#include "rocksdb/slice.h"
#include "rocksdb/statistics.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class PinnableSlice;

// The row cache (DBOptions::row_cache) of a column family with an address map.
// RocksDB's own keeps what one SST file has of a key; this one keeps values,
// one for each user key (KV-Tandem, 4.2.3).
//
// Invariant: an entry carries the rest of its value's name, and the value of a
// name never changes. A reader uses an entry only if it has the name that the
// map has just told. So an entry may be outdated, which costs its space, but
// never gives a wrong value, and nobody needs to invalidate anything.
//
// Thread-safe.
class MappedRowCache {
 public:
  // REQUIRES: cache != nullptr; statistics may be nullptr
  MappedRowCache(const std::shared_ptr<RowCache>& cache,
                 Statistics* statistics);

  // Counts a hit or a miss.
  bool Lookup(const Slice& user_key, SequenceNumber seq, uint64_t birth,
              PinnableSlice* value) const;
  void Insert(const Slice& user_key, SequenceNumber seq, uint64_t birth,
              const Slice& value) const;

  // A newer value, or a tombstone, is on its way to a file: takes the place of
  // what is there of the key, or removes it.
  void Update(const Slice& user_key, SequenceNumber seq, uint64_t birth,
              const Slice& value) const;
  void Erase(const Slice& user_key) const;

 private:
  // Sequence number and birth, 8 bytes each, then the value.
  using Interface =
      BasicTypedCacheInterface<std::string, CacheEntryRole::kMisc>;
  static constexpr size_t kNameSize = 2 * sizeof(uint64_t);

  std::string KeyOf(const Slice& user_key) const;

  const std::shared_ptr<RowCache> cache_;
  Statistics* const statistics_;
  std::string prefix_;
};

}  // namespace ROCKSDB_NAMESPACE
