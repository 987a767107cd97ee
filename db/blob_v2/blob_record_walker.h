//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "db/address_map/address_map.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class RandomAccessFileReader;

// Lists the records of a blob file of version 2 by reading one record after the
// other. Used if the record index is damaged or was built with another seed.
// Reads headers and keys, and skips values unless they are short.
//
// Verifies the checksum of a record's header. The checksum of the key covers
// the value, too, so a damaged key is not detected. A caller that needs this
// must compare with the checksum of the index (RecordIndexReader) or read the
// values.
//
// Memory: One buffer of 32 KiB, or of the size of the longest key if that is
// larger.
//
// Not thread-safe.
class BlobRecordWalker {
 public:
  // offset: bytes, start of the first record to read.
  // end: bytes, end of the last record.
  // REQUIRES: the file is at least `end` bytes long and outlives the walker.
  BlobRecordWalker(const RandomAccessFileReader* file, const IOOptions& options,
                   uint64_t hash_seed, uint64_t offset, uint64_t end)
      : file_(file),
        options_(options),
        hash_seed_(hash_seed),
        offset_(offset),
        end_(end) {}
  BlobRecordWalker(const BlobRecordWalker&) = delete;
  BlobRecordWalker& operator=(const BlobRecordWalker&) = delete;

  bool AtEnd() const { return offset_ == end_; }

  // Reads the next record. After a status that is not OK the walker has not
  // moved.
  // REQUIRES: !AtEnd().
  Status Next(AddressMap::Record* record);

  // The user key of the record that Next() has read. Valid until the next call
  // of Next().
  const Slice& key() const { return key_; }

 private:
  Status Fetch(uint64_t offset, size_t n, Slice* result);

  const RandomAccessFileReader* const file_;
  const IOOptions options_;
  const uint64_t hash_seed_;
  uint64_t offset_;
  const uint64_t end_;
  Slice key_;

  std::unique_ptr<char[]> buffer_;
  size_t buffer_size_ = 0;
  // The bytes that were read last, and their position in the file.
  Slice window_;
  uint64_t window_offset_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
