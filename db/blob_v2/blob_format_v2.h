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

// The fixed parts of blob files of format version 2, which is the format of the
// blob files of column families with an address map:
//
//   header | record* | record index | footer
//
// docs/formats.md describes every byte. The record index is implemented in
// db/blob_v2/blob_record_index.h.
//
// Invariants:
// 1. Header, record header and footer have the same lengths as in version 1,
//    because much code computes with these sizes.
// 2. Header and footer are a BlobLogHeader and a BlobLogFooter whose
//    time-to-live fields have another meaning. So BlobLogWriter can write them,
//    and code that only checks for the presence of a footer needs no change.
// 3. A record starts below 4 GiB and is shorter than 4 GiB, as an address in
//    the map has 32 bits for each.
//
// Thread-safety: const methods of one object may be called concurrently.

constexpr uint32_t kBlobFileVersion2 = 2;

constexpr uint64_t kMaxBlobRecordOffset = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMaxBlobRecordSize = std::numeric_limits<uint32_t>::max();

// In bytes, of a key and its value together. The distance to 4 GiB leaves room
// for the header of the record and for data that grow when they are compressed.
constexpr uint64_t kMaxSeparableSize =
    (uint64_t{1} << 32) - (uint64_t{64} << 20);

// Returns false if the record of a value that is not compressed yet may become
// too large. The value then stays in the SST file.
bool IsSeparable(const Slice& user_key, const Slice& value);

struct BlobHeaderV2 {
  static constexpr size_t kSize = BlobLogHeader::kSize;
  // Format of the record index. Readers refuse any other one.
  static constexpr uint32_t kIndexFormat = 1;

  uint32_t column_family_id = 0;
  CompressionType compression = kNoCompression;
  // Seed of the hashes in the record index: MapKeyHash::Of(user key,
  // hash_seed). A random number that is generated once for a column family and
  // stored in all of its files. It is random so that keys cannot be chosen to
  // collide (one of them would lose its value). It is the same in all files so
  // that the hashes of an index can be added to the address map without reading
  // the keys. The keys of a file with another seed must be rehashed
  // (BlobRecordWalker).
  uint64_t hash_seed = 0;

  // Replaces the contents of *dst.
  void EncodeTo(std::string* dst) const;
  Status DecodeFrom(const Slice& src);
  // Returns the argument for BlobLogWriter::WriteHeader().
  BlobLogHeader ToLogHeader() const;
};

// Returns true if a file that starts with these bytes is a blob file of
// version 2, whether or not the rest of its header is intact.
bool IsBlobFileV2(const Slice& start);

// Returns true if the file can be read and starts as a blob file of version 2.
// It may be shorter than a header.
bool StartsAsBlobFileV2(FileSystem* fs, const std::string& fname,
                        const FileOptions& file_options,
                        const IOOptions& io_options);

// Returns true if the file can be read and does not start as a blob file of any
// version, so that no reader accepts it.
bool StartsAsNoBlobFile(FileSystem* fs, const std::string& fname,
                        const FileOptions& file_options,
                        const IOOptions& io_options);

struct BlobRecordV2 {
  static constexpr size_t kHeaderSize = BlobLogRecord::kHeaderSize;

  // Returns the number of bytes of a record before its value.
  static uint64_t ValueOffset(uint64_t user_key_size) {
    return kHeaderSize + user_key_size;
  }

  uint32_t key_size = 0;
  uint32_t value_size = 0;  // bytes in the file, i.e. compressed
  SequenceNumber seq = 0;
  uint64_t birth = 0;
  // True if the record was the newest direct entry of its key when it was
  // written. Also stored in the record index; repeated here so that the index
  // can be rebuilt.
  bool direct = false;
  uint32_t blob_crc = 0;

  uint64_t record_size() const { return ValueOffset(key_size) + value_size; }

  // Replaces the contents of *dst. Sets the sizes and blob_crc. For
  // BlobLogWriter::EmitPhysicalRecord().
  // known_blob_crc: blob_crc of a record with the same key and value; may be
  // nullptr.
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

  // Replaces the contents of *dst.
  void EncodeTo(std::string* dst) const;
  Status DecodeFrom(const Slice& src);
  // Returns the argument for BlobLogWriter::AppendFooter().
  BlobLogFooter ToLogFooter() const;
};

// The header and the footer of a file.
struct BlobFileLayoutV2 {
  BlobHeaderV2 header;
  BlobFooterV2 footer;
  uint64_t index_offset = 0;  // bytes; also the end of the records

  // Reads and checks header and footer, without trusting any of their numbers.
  // Does not read the index.
  // file_size: bytes.
  static Status Read(const RandomAccessFileReader* file,
                     const IOOptions& options, uint64_t file_size,
                     BlobFileLayoutV2* layout);
};

// Custom field 193 of BlobFileAddition in the MANIFEST: the size of the record
// index in bytes. A file is of version 2 if and only if it has the field.
constexpr uint32_t kBlobIndexSizeField = 193;

// Appends the tag and the value of the field.
void PutBlobIndexSizeField(std::string* dst, uint64_t index_size);
Status DecodeBlobIndexSizeField(Slice value, uint64_t* index_size);

// Returns a Corruption status whose message names the file and the offset in
// bytes.
Status CorruptBlobFile(const std::string& file_name, uint64_t offset,
                       const Slice& what);

// Returns the status of decoding a part of a file, such as its header: with the
// name of the file if it is NotSupported, and also with the offset of the part
// if it is Corruption.
// offset: bytes.
Status NameBlobFile(const Status& s, const std::string& file_name,
                    uint64_t offset);

// Reads n bytes. Returns Corruption if there are fewer.
// result: refers to scratch or to memory of the file.
Status ReadBlobFile(const RandomAccessFileReader* file,
                    const IOOptions& options, uint64_t offset, size_t n,
                    char* scratch, Slice* result);

}  // namespace ROCKSDB_NAMESPACE
