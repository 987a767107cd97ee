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

// Lists the records of a blob file of version 2 by going from record to
// record, where the record index cannot serve: it is damaged, or it was made
// with another seed. Reads headers and keys, and skips values unless they are
// short.
//
// Trusts a record's header by its checksum. The checksum that covers the key
// covers the value, too, so a damaged key is not noticed here: whoever needs
// that compares with the checksum of the index (RecordIndexReader) or reads
// the values.
//
// Memory: one buffer of 32 KiB, or of the longest key if that is longer.
//
// Not thread-safe.
class BlobRecordWalker {
 public:
  // REQUIRES: a record starts at offset, and the last one ends at end, in a
  // file that is at least so long; file outlives the walker.
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

  // Reads the next record. After a status that is not OK the walker stays
  // where it is.
  // REQUIRES: !AtEnd().
  Status Next(AddressMap::Record* record);

  // The key of the record that Next found. Valid until the next call.
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
  // What was read last, and where it is in the file.
  Slice window_;
  uint64_t window_offset_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
