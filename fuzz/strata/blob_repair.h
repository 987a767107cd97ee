//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "db/blob_v2/blob_format_v2.h"
#include "fuzz/strata/fuzz_input.h"
#include "rocksdb/rocksdb_namespace.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {
namespace fuzz {

// Puts the checksums of the record at an offset of a damaged blob file right,
// as far as its sizes make sense.
inline void RepairBlobRecord(size_t offset, std::string* file) {
  constexpr size_t kHeaderCrcAt = 24;
  constexpr size_t kBlobCrcAt = 28;
  RepairChecksum(offset, offset + kHeaderCrcAt, offset + kHeaderCrcAt, file);
  const size_t begin = offset + BlobRecordV2::kHeaderSize;
  if (begin > file->size()) {
    return;
  }
  const uint64_t size = uint64_t{DecodeFixed32(file->data() + offset)} +
                        DecodeFixed32(file->data() + offset + 4);
  if (size <= file->size() - begin) {
    RepairChecksum(begin, begin + static_cast<size_t>(size),
                   offset + kBlobCrcAt, file);
  }
}

// Puts the checksums of header and footer of a damaged blob file right.
inline void RepairBlobFileEnds(std::string* file) {
  constexpr size_t kCrcSize = sizeof(uint32_t);
  RepairChecksum(0, BlobHeaderV2::kSize - kCrcSize,
                 BlobHeaderV2::kSize - kCrcSize, file);
  const size_t size = file->size();
  if (size >= BlobFooterV2::kSize) {
    RepairChecksum(size - BlobFooterV2::kSize, size - kCrcSize, size - kCrcSize,
                   file);
  }
}

}  // namespace fuzz
}  // namespace ROCKSDB_NAMESPACE
