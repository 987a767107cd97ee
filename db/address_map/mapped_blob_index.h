//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The value of an SST entry whose separated value is found through the address
// map: how to look it up, and the birth of its name. The rest of the name, the
// user key and the sequence number, is the internal key of the SST entry. The
// index contains no address.
//
//    +------+----------+
//    | type | birth    |
//    +------+----------+
//    | char | varint64 |
//    +------+----------+
//
// The types are values that BlobIndex::Type does not use, so RocksDB reports
// such an index as corrupt.
//
// Invariant: An index has exactly one encoding, and no other one is decoded.
struct MappedBlobIndex {
  enum class Mode : unsigned char {
    kDirect = 0x10,
    kVersioned = 0x11,
  };

  static bool IsMappedType(unsigned char type) {
    return type == static_cast<unsigned char>(Mode::kDirect) ||
           type == static_cast<unsigned char>(Mode::kVersioned);
  }
  // Returns true if the value of a kTypeBlobIndex entry is a mapped index.
  // Checks only the type.
  static bool IsMapped(const Slice& value) {
    return !value.empty() && IsMappedType(static_cast<unsigned char>(value[0]));
  }

  // REQUIRES: IsMapped(value).
  static bool IsDirect(const Slice& value) {
    return static_cast<unsigned char>(value[0]) ==
           static_cast<unsigned char>(Mode::kDirect);
  }

  // On failure the index is unchanged.
  Status DecodeFrom(const Slice& value);
  // Replaces the contents of *dst.
  void EncodeTo(std::string* dst) const;
  std::string DebugString() const;

  Mode mode = Mode::kDirect;
  uint64_t birth = 0;
};

}  // namespace ROCKSDB_NAMESPACE
