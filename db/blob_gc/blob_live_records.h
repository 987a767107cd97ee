//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/blob_v2/blob_record_walker.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class RandomAccessFileReader;

// Reads those records of a blob file of version 2 that an address map names, in
// the order of the file, for a job that copies them.
//
// The record index says what there is, the map what of it is alive: in whatever
// mode, for a superseded entry may be the only durable copy of a key. Only
// live records are read, neighbours in one go. A record may die afterwards:
// AddressMap::SwapAddress() notices.
//
// A record is given out only if it is intact and has the name that the index
// says; a file whose hashes were made with another seed is read from record to
// record (BlobRecordWalker).
//
// Not thread-safe.
class BlobLiveRecords {
 public:
  struct Options {
    IOOptions io_options;
    // How much is read in one go; a longer record is read whole. Point reads
    // and scans wait behind it at the device: with a megabyte, scans beside
    // writes are a fourth slower, and collections not much faster.
    size_t read_size = size_t{256} << 10;
    // Garbage between two live records that is read rather than skipped.
    size_t max_gap = size_t{16} << 10;
  };

  // REQUIRES: layout is what BlobFileLayoutV2::Read() said of the file, which
  // has the slot in the map; the file is pinned for a job; file and map outlive
  // this.
  BlobLiveRecords(const AddressMap* map, uint64_t hash_seed, uint32_t slot,
                  const RandomAccessFileReader* file,
                  const BlobFileLayoutV2& layout, const Options& options);
  BlobLiveRecords(const BlobLiveRecords&) = delete;
  BlobLiveRecords& operator=(const BlobLiveRecords&) = delete;

  // Goes to the first, later to the next live record. OK and !Valid() is the
  // end. A status that is not OK is final.
  Status Next();
  bool Valid() const { return valid_; }

  // Of the current record. REQUIRES: Valid().
  const MapName& name() const { return current_.name; }
  MapAddress address() const {
    return MapAddress{slot_, current_.offset, current_.size};
  }
  // Whether its entry was direct when it was looked up.
  bool is_direct() const { return current_.direct; }
  // Valid until Next(). The value is as it is in the file: compressed.
  const Slice& key() const { return key_; }
  const Slice& value() const { return value_; }
  // Its checksum there, which is right.
  uint32_t blob_crc() const { return blob_crc_; }

  // Of the file. For statistics.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  // Fills live_ from the index. OK and empty is the end.
  Status FetchLive();
  Status NextFromIndex(std::vector<AddressMap::Record>* records);
  // Makes the record at live_[position_] part of window_.
  Status FetchRecord();
  Status ParseRecord();

  const AddressMap* const map_;
  const uint64_t hash_seed_;
  const uint32_t slot_;
  const RandomAccessFileReader* const file_;
  const Options options_;
  // One of the two.
  std::unique_ptr<RecordIndexReader> index_;
  std::unique_ptr<BlobRecordWalker> walker_;

  std::vector<AddressMap::Record> records_;
  std::vector<AddressMap::Record> live_;
  size_t position_ = 0;  // in live_, of what comes next
  bool valid_ = false;
  AddressMap::Record current_;
  Slice key_;
  Slice value_;
  uint32_t blob_crc_ = 0;

  std::unique_ptr<char[]> buffer_;
  size_t buffer_size_ = 0;
  Slice window_;
  uint64_t window_offset_ = 0;
  uint64_t bytes_read_ = 0;
  Status status_;
};

}  // namespace ROCKSDB_NAMESPACE
