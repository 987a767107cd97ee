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

// Reads the records of a blob file of format version 2 that an address map
// names, in file order, for a job that copies them.
//
// The record index lists the records, and the map tells which of them are live.
// Entries in all modes are live, as a superseded entry may be the only durable
// copy of a key. Only live records are read, neighboring ones in one read. A
// record may die afterwards, which AddressMap::SwapAddress() detects.
//
// A record is returned only if it is intact and has the name that the index
// says.
//
// The map has no hashes that were computed with another seed. If those of the
// index were, the keys of all records are read and hashed again
// (BlobRecordWalker). Then a record with another name than the index says is
// Corruption, also one that is garbage: which of them are live cannot be known,
// and a live record must not be taken for garbage.
//
// Memory: up to two buffers of Options::read_size bytes, or one without
// ReadAhead(), and that of four times 1,024 index records.
//
// Not thread-safe.
class BlobLiveRecords {
 public:
  struct Options {
    IOOptions io_options;
    // Bytes per read; a longer record is read as a whole. Point reads and scans
    // wait behind such a read at the device: with a megabyte, scans concurrent
    // with writes are a fourth slower, and collections not much faster.
    size_t read_size = size_t{256} << 10;
    // Maximum number of bytes of garbage between two live records that are read
    // rather than skipped.
    size_t max_gap = size_t{16} << 10;
  };

  // slot: slot of the file in the map.
  // REQUIRES: layout was read from the file by BlobFileLayoutV2::Read(); the
  // file is pinned for a job; file and map outlive this object.
  BlobLiveRecords(const AddressMap* map, uint64_t hash_seed, uint32_t slot,
                  const RandomAccessFileReader* file,
                  const BlobFileLayoutV2& layout, const Options& options);
  ~BlobLiveRecords() {
    // The job may have ended before it came to a record.
    status_.PermitUncheckedError();
    next_status_.PermitUncheckedError();
  }
  BlobLiveRecords(const BlobLiveRecords&) = delete;
  BlobLiveRecords& operator=(const BlobLiveRecords&) = delete;

  // Moves to the first or next live record. At the end, returns OK and Valid()
  // becomes false. A status that is not OK is final.
  Status Next();
  bool Valid() const { return valid_; }

  // Returns true if Next() reads the file.
  bool NeedsRead() const {
    return MayReadAhead() && position_ == batch_.records.size();
  }
  // Returns true if ReadAhead() reads the file.
  bool MayReadAhead() const { return status_.ok() && !has_next_; }
  // Reads ahead what Next() returns after the records that were read so far,
  // unless that was done already. Next() returns the status. Another thread may
  // call it while no other function is called.
  void ReadAhead();

  // The name of the current record.
  // REQUIRES: Valid().
  const MapName& name() const { return current_.name; }
  // The address of the current record.
  // REQUIRES: Valid().
  MapAddress address() const {
    return MapAddress{slot_, current_.offset, current_.size};
  }
  // True if the record's entry in the map was direct when it was looked up.
  // REQUIRES: Valid().
  bool is_direct() const { return current_.direct; }
  // The user key of the current record. The memory is valid until Next().
  // REQUIRES: Valid().
  const Slice& key() const { return key_; }
  // The value of the current record as it is stored in the file, i.e.
  // compressed. The memory is valid until Next().
  // REQUIRES: Valid().
  const Slice& value() const { return value_; }
  // The checksum that is stored in the current record. It was verified.
  // REQUIRES: Valid().
  uint32_t blob_crc() const { return blob_crc_; }

  // Number of bytes read from the file. For statistics.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  // Neighboring live records, and their bytes.
  struct Batch {
    std::vector<AddressMap::Record> records;
    uint64_t offset = 0;  // in the file
    Slice bytes;
    std::unique_ptr<char[]> buffer;
    size_t buffer_size = 0;
  };

  // Reads the next live records. The batch is empty if there are none.
  Status ReadBatch(Batch* batch);
  // Fills live_ from the index. If it returns OK and live_ is empty, the end
  // was reached.
  Status FetchLive();
  // Replaces *records with the next records of the index, with the hashes of
  // the map.
  Status NextFromIndex(std::vector<AddressMap::Record>* records);
  // Replaces the hash of a record of an index with another seed.
  // REQUIRES: walker_ is set, and is at the record.
  Status Rehash(AddressMap::Record* record);
  Status Corrupt(uint64_t offset, const Slice& what) const;
  Status ParseRecord();

  const AddressMap* const map_;
  const uint64_t hash_seed_;
  const uint32_t slot_;
  const RandomAccessFileReader* const file_;
  const Options options_;
  const uint64_t file_hash_seed_;  // seed of the hashes in the index
  RecordIndexReader index_;
  // Only for an index with another seed than the map's.
  std::unique_ptr<BlobRecordWalker> walker_;

  std::vector<AddressMap::Record> records_;
  std::vector<AddressMap::Record> live_;
  size_t next_live_ = 0;  // index in live_ of the first record to read
  Batch batch_;
  size_t position_ = 0;  // index in batch_.records of the next record
  // The result of ReadAhead().
  bool has_next_ = false;
  Batch next_;
  Status next_status_;

  bool valid_ = false;
  AddressMap::Record current_;
  Slice key_;
  Slice value_;
  uint32_t blob_crc_ = 0;

  uint64_t bytes_read_ = 0;
  Status status_;
};

}  // namespace ROCKSDB_NAMESPACE
