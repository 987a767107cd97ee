//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "db/blob/blob_index.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

// A mapped blob index together with the sequence number of its entry. DBIter
// does not keep the sequence number with a value, and the value's record cannot
// be found without it, so the iterators below DBIter replace each mapped index
// by a bound one. Bound indices exist in memory only:
//
//    +------+-------------+-------------------------------------+
//    | 0x12 | sequence: 8 | the mapped index (MappedBlobIndex)  |
//    +------+-------------+-------------------------------------+
//
// BlobIndex and MappedBlobIndex do not use the type 0x12, so other readers
// report a bound index as corrupt.
class BoundBlobIndex {
 public:
  BoundBlobIndex() = delete;

  static constexpr unsigned char kType = 0x12;
  static constexpr size_t kPrefix = 1 + sizeof(uint64_t);
  // Maximum size: the prefix, a type, a birth and one more byte. A longer index
  // is corrupt, and must not become a valid one by truncation.
  static constexpr size_t kMaxSize = kPrefix + 1 + 10 + 1;

  static bool IsBound(const Slice& value) {
    return value.size() > kPrefix &&
           static_cast<unsigned char>(value[0]) == kType;
  }

  // Writes the bound index to `buffer` and returns its size.
  // mapped: the value of a kTypeBlobIndex entry. It may be corrupt: Decode()
  // fails then.
  // buffer: kMaxSize bytes.
  static size_t Encode(SequenceNumber sequence, const Slice& mapped,
                       char* buffer) {
    buffer[0] = static_cast<char>(kType);
    EncodeFixed64(buffer + 1, sequence);
    const size_t size = std::min(mapped.size(), kMaxSize - kPrefix);
    memcpy(buffer + kPrefix, mapped.data(), size);
    return kPrefix + size;
  }

  // Decodes a bound index, including its sequence number.
  // REQUIRES: IsBound(value).
  static Status Decode(const Slice& value, BlobIndex* blob_index) {
    assert(IsBound(value));
    Slice mapped = value;
    mapped.remove_prefix(kPrefix);
    const Status s = blob_index->DecodeFrom(mapped);
    blob_index->BindSequence(DecodeFixed64(value.data() + 1));
    return s;
  }
};

}  // namespace ROCKSDB_NAMESPACE
