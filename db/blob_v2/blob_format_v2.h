//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "db/blob/blob_log_format.h"
#include "rocksdb/compression_type.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class RandomAccessFileReader;

// The fixed parts of a blob file of format version 2, which files of a column
// family with an address map have:
//
//   header | record* | record index | footer
//
// docs/formats.md describes every byte; the record index has its own file,
// db/blob_v2/blob_record_index.h.
//
// Invariants:
// * Header, record header and footer are as long as those of version 1, for
//   much code computes with these sizes.
// * Header and footer are a BlobLogHeader and a BlobLogFooter whose fields for
//   time to live have another meaning, so that BlobLogWriter writes them and
//   code that only asks "is there a footer?" needs no change.
// * A record starts below 4 GiB and is shorter than 4 GiB: an address in the
//   map has 32 bits for each.
//
// Thread-safety: const methods of one object may run at the same time.

constexpr uint32_t kBlobFileVersion2 = 2;

constexpr uint64_t kMaxBlobRecordOffset = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMaxBlobRecordSize = std::numeric_limits<uint32_t>::max();

// Larger values stay in the SST file. The distance to 4 GiB is for the key and
// for data that grows when it is compressed.
constexpr uint64_t kMaxSeparableValueSize =
    (uint64_t{1} << 32) - (uint64_t{64} << 20);

struct BlobHeaderV2 {
  static constexpr size_t kSize = BlobLogHeader::kSize;
  // Of the record index. A reader refuses any other.
  static constexpr uint32_t kIndexFormat = 1;

  uint32_t column_family_id = 0;
  CompressionType compression = kNoCompression;
  // Of the hashes in the record index: MapKeyHash::Of(user key, hash_seed).
  // A random number that a column family draws once and puts into all of its
  // files. It is random so that nobody can choose keys that collide (one of
  // them would lose its value), and it is the same everywhere so that the
  // hashes of an index can go into the address map without reading the keys.
  // The keys of a file with another seed must be hashed anew
  // (BlobRecordWalker).
  uint64_t hash_seed = 0;

  // Replaces dst.
  void EncodeTo(std::string* dst) const;
  Status DecodeFrom(const Slice& src);
  // For BlobLogWriter::WriteHeader.
  BlobLogHeader ToLogHeader() const;
};

// True if a file that starts with these bytes is a blob file of version 2, be
// the rest of its header intact or not.
bool IsBlobFileV2(const Slice& start);

struct BlobRecordV2 {
  static constexpr size_t kHeaderSize = BlobLogRecord::kHeaderSize;

  uint32_t key_size = 0;
  uint32_t value_size = 0;  // as it is in the file: compressed
  SequenceNumber seq = 0;
  uint64_t birth = 0;
  // Whether the writer took it for the newest direct entry of its key. Repeats
  // what the record index says, so that the index can be rebuilt.
  bool direct = false;
  uint32_t blob_crc = 0;

  uint64_t record_size() const {
    return kHeaderSize + uint64_t{key_size} + value_size;
  }

  // Replaces dst; sets the sizes and blob_crc. For
  // BlobLogWriter::EmitPhysicalRecord.
  // known_blob_crc: of a record with this key and value, if there is one.
  // REQUIRES: the record is at most kMaxBlobRecordSize bytes long;
  // seq <= kMaxSequenceNumber.
  void EncodeHeaderTo(const Slice& key, const Slice& value, std::string* dst,
                      const uint32_t* known_blob_crc = nullptr);
  Status DecodeHeaderFrom(const Slice& src);
  Status CheckBlob(const Slice& key, const Slice& value) const;
};

struct BlobFooterV2 {
  static constexpr size_t kSize = BlobLogFooter::kSize;

  uint64_t blob_count = 0;
  uint64_t index_size = 0;
  uint32_t index_checksum = 0;

  // Replaces dst.
  void EncodeTo(std::string* dst) const;
  Status DecodeFrom(const Slice& src);
  // For BlobLogWriter::AppendFooter.
  BlobLogFooter ToLogFooter() const;
};

// What header and footer of a file say about it.
struct BlobFileLayoutV2 {
  BlobHeaderV2 header;
  BlobFooterV2 footer;
  uint64_t index_offset = 0;  // the end of the records

  // Reads and checks both, without trusting one of their numbers. Does not
  // read the index.
  static Status Read(const RandomAccessFileReader* file,
                     const IOOptions& options, uint64_t file_size,
                     BlobFileLayoutV2* layout);
};

// Custom field 193 of BlobFileAddition in the MANIFEST: the size of the record
// index in bytes. A file is of version 2 if and only if it has the field.
constexpr uint32_t kBlobIndexSizeField = 193;

// Appends tag and value.
void PutBlobIndexSizeField(std::string* dst, uint64_t index_size);
Status DecodeBlobIndexSizeField(Slice value, uint64_t* index_size);

// Corruption that names file and offset.
Status CorruptBlobFile(const std::string& file_name, uint64_t offset,
                       const Slice& what);

// Reads n bytes; fewer are Corruption. result is in scratch or in memory of
// the file.
Status ReadBlobFile(const RandomAccessFileReader* file,
                    const IOOptions& options, uint64_t offset, size_t n,
                    char* scratch, Slice* result);

}  // namespace ROCKSDB_NAMESPACE
