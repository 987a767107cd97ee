//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <memory>

#include "cache/cache_helpers.h"
#include "db/blob/blob_contents.h"
#include "db/blob/blob_file_reader.h"
#include "db/blob/blob_source.h"

namespace ROCKSDB_NAMESPACE {

bool BlobSource::IsCached(uint64_t file_number, uint64_t offset) const {
  if (!blob_cache_) {
    return false;
  }
  const CacheKey cache_key = GetCacheKey(file_number, /*file_size=*/0, offset);
  TypedHandle* const handle = GetEntryFromCache(cache_key.AsSlice());
  if (handle == nullptr) {
    return false;
  }
  blob_cache_.Release(handle);
  return true;
}

bool BlobSource::IsInMemory(uint64_t file_number, uint64_t offset) const {
  if (!blob_cache_) {
    return false;
  }
  const CacheKey cache_key = GetCacheKey(file_number, /*file_size=*/0, offset);
  // Without a helper, the secondary cache is not asked.
  Cache* const cache = blob_cache_.get();
  Cache::Handle* const handle = cache->Lookup(cache_key.AsSlice());
  if (handle == nullptr) {
    return false;
  }
  cache->Release(handle);
  return true;
}

bool BlobSource::MoveCached(uint64_t from_file, uint64_t from_offset,
                            uint64_t to_file, uint64_t to_offset) const {
  if (!blob_cache_) {
    return false;
  }
  const CacheKey from = GetCacheKey(from_file, /*file_size=*/0, from_offset);
  TypedHandle* const handle = GetEntryFromCache(from.AsSlice());
  if (handle == nullptr) {
    return false;
  }
  // Inserts a copy, as a reader may hold the original.
  const CacheHandleGuard<BlobContents> old(blob_cache_.get(), handle);
  std::unique_ptr<BlobContents> contents;
  BlobContentsCreator::Create(&contents, /*out_charge=*/nullptr,
                              old.GetValue()->data(), kNoCompression,
                              blob_cache_.get()->memory_allocator());
  const CacheKey to = GetCacheKey(to_file, /*file_size=*/0, to_offset);
  CacheHandleGuard<BlobContents> moved;
  const Status s = PutBlobIntoCache(to.AsSlice(), &contents, &moved);
  blob_cache_.get()->Erase(from.AsSlice());
  return s.ok();
}

Status BlobSource::FinishGetBlob(const ReadOptions& read_options,
                                 const BlobFileReader& reader,
                                 const Slice& user_key, uint64_t file_number,
                                 uint64_t offset, uint64_t value_size,
                                 const Slice& record, PinnableSlice* value) {
  const CacheKey cache_key =
      blob_cache_ ? GetCacheKey(file_number, /*file_size=*/0, offset)
                  : CacheKey();
  CacheHandleGuard<BlobContents> cached;
  if (blob_cache_ && GetBlobFromCache(cache_key.AsSlice(), &cached).ok()) {
    PinCachedBlob(&cached, value);
    return Status::OK();
  }
  const bool fills_cache = blob_cache_ && read_options.fill_cache;
  const uint64_t header_size = record.size() - value_size;
  std::unique_ptr<BlobContents> contents;
  Status s = reader.FinishGetBlob(
      read_options, user_key, value_size, reader.GetCompressionType(),
      fills_cache ? blob_cache_.get()->memory_allocator() : nullptr,
      offset - header_size, header_size, record, &contents,
      /*bytes_read=*/nullptr);
  if (s.ok() && fills_cache) {
    s = PutBlobIntoCache(cache_key.AsSlice(), &contents, &cached);
    if (s.ok()) {
      PinCachedBlob(&cached, value);
    }
  } else if (s.ok()) {
    PinOwnedBlob(&contents, value);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
