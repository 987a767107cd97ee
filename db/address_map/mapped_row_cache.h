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
// RocksDB's row cache stores the entries of a key in one SST file. This one
// stores values, one for each user key (KV-Tandem, 4.2.3).
//
// Invariant: An entry contains the sequence number and birth of its value's
// name, and the value of a name never changes. A reader uses an entry only if
// it has the name that the map has just returned. So an outdated entry wastes
// space but never yields a wrong value, and entries need not be invalidated.
//
// Thread-safe.
class MappedRowCache {
 public:
  // statistics: may be nullptr.
  // REQUIRES: cache != nullptr.
  MappedRowCache(const std::shared_ptr<RowCache>& cache,
                 Statistics* statistics);

  // Returns true and sets *value if the cache has the value with this name.
  // Records a hit or a miss.
  bool Lookup(const Slice& user_key, SequenceNumber seq, uint64_t birth,
              PinnableSlice* value) const;
  void Insert(const Slice& user_key, SequenceNumber seq, uint64_t birth,
              const Slice& value) const;

  // Called when a newer value of the key is being written to a file. Replaces
  // the value of the key if the cache has one.
  void Update(const Slice& user_key, SequenceNumber seq, uint64_t birth,
              const Slice& value) const;
  // Called when a tombstone of the key is being written to a file. Removes the
  // value of the key.
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
