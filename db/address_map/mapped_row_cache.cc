//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_row_cache.h"

#include <utility>

#include "monitoring/statistics_impl.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

MappedRowCache::MappedRowCache(const std::shared_ptr<RowCache>& cache,
                               Statistics* statistics)
    : cache_(cache), statistics_(statistics) {
  PutVarint64(&prefix_, cache_->NewId());
}

std::string MappedRowCache::KeyOf(const Slice& user_key) const {
  std::string key;
  key.reserve(prefix_.size() + user_key.size());
  key.append(prefix_);
  key.append(user_key.data(), user_key.size());
  return key;
}

bool MappedRowCache::Lookup(const Slice& user_key, SequenceNumber seq,
                            uint64_t birth, PinnableSlice* value) const {
  Interface cache{cache_.get()};
  auto* const handle = cache.Lookup(KeyOf(user_key));
  if (handle != nullptr) {
    const std::string& entry = *cache.Value(handle);
    if (DecodeFixed64(entry.data()) == seq &&
        DecodeFixed64(entry.data() + sizeof(uint64_t)) == birth) {
      Cleanable cleanable;
      cache.RegisterReleaseAsCleanup(handle, cleanable);
      value->PinSlice(Slice(entry.data() + kNameSize, entry.size() - kNameSize),
                      &cleanable);
      RecordTick(statistics_, ROW_CACHE_HIT);
      return true;
    }
    cache.Release(handle);
  }
  RecordTick(statistics_, ROW_CACHE_MISS);
  return false;
}

void MappedRowCache::Insert(const Slice& user_key, SequenceNumber seq,
                            uint64_t birth, const Slice& value) const {
  auto entry = std::make_unique<std::string>();
  entry->reserve(kNameSize + value.size());
  PutFixed64(entry.get(), seq);
  PutFixed64(entry.get(), birth);
  entry->append(value.data(), value.size());
  const std::string key = KeyOf(user_key);
  const size_t charge = key.size() + entry->capacity() + sizeof(std::string);
  Interface cache{cache_.get()};
  // A full cache is not an error.
  if (cache.Insert(key, entry.get(), charge).ok()) {
    entry.release();
  }
}

void MappedRowCache::Update(const Slice& user_key, SequenceNumber seq,
                            uint64_t birth, const Slice& value) const {
  Interface cache{cache_.get()};
  auto* const handle = cache.Lookup(KeyOf(user_key));
  if (handle == nullptr) {
    return;
  }
  const bool newer = DecodeFixed64(cache.Value(handle)->data()) < seq;
  cache.Release(handle);
  if (newer) {
    Insert(user_key, seq, birth, value);
  }
}

void MappedRowCache::Erase(const Slice& user_key) const {
  cache_->Erase(KeyOf(user_key));
}

}  // namespace ROCKSDB_NAMESPACE
