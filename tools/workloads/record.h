// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Records whose keys and values can be checked without knowing what was written
// last: a key tells its record number, and a value tells whether it was written
// for that record.
//
// Thread safety: all classes are immutable and can be shared.

#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "tools/workloads/generators.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// Keys of records 0, 1, 2... A key is made of the mixed number Mix64(record),
// so that the order of keys has nothing to do with the order of numbers, and no
// two records have the same key:
//
//   size >= 24:  "user", 20 decimal digits, '0' up to the size
//   size 8..23:  8 bytes, highest first, '0' up to the size
//
// Keys are in the order of their mixed numbers under BytewiseComparator.
class KeyCodec {
 public:
  // InvalidArgument, naming --key_size, if the keys would not be unique.
  static Status Validate(int key_size);

  // All keys have the same size.
  // REQUIRES: key_size is valid.
  explicit KeyCodec(int key_size);

  // The size of a record's key is sizes.At(record). Has 8 bytes for the number
  // at all sizes; else keys of 24 bytes and more would not be in order.
  // REQUIRES: sizes.min() >= 8
  explicit KeyCodec(const NormalSize& sizes);

  uint32_t Size(uint64_t record) const;

  // Makes *key the key of a record.
  void Encode(uint64_t record, std::string* key) const {
    Write(Mix64(record), Size(record), key);
  }

  // Makes *key the key of the record with this mixed number. As all numbers are
  // mixed numbers of some record, this is also the place in key order that has
  // mixed / 2^64 of the possible keys before it.
  void EncodeMixed(uint64_t mixed, std::string* key) const {
    Write(mixed, Size(Unmix64(mixed)), key);
  }

  // Corruption if it is not exactly the key that Encode makes for some record;
  // then *record is unchanged.
  Status Decode(const Slice& key, uint64_t* record) const;

 private:
  void Write(uint64_t mixed, uint32_t size, std::string* key) const;

  const bool decimal_;
  const uint32_t fixed_size_;  // 0: as sizes_ says
  const NormalSize sizes_;
};

// Contents of a field that prove where they belong:
//
//   bytes 0..5   version, lowest byte first
//   bytes 6..7   checksum of record, field, length and version
//   bytes 8...   pseudo-random, a function of the same four
//
// The writer chooses the version at random; then a field that is written again
// gets all new contents.
//
// What is found: every change of the bytes 8 and on; every change of a single
// bit; any other damage of the first 8 bytes, and contents of another record,
// field or length, unless the 16-bit checksum matches by chance and so do the
// pseudo-random bytes, if there are any. What is not found: an older version.
//
// With a compression ratio r below 1, each kChunk bytes start with r of them as
// above and repeat these up to their end, so a compressor with a window of that
// size gets to about r. The first 8 bytes of the field are never left out.
class FieldCodec {
 public:
  static constexpr uint32_t kMinLength = 8;
  static constexpr uint32_t kChunk = 1024;
  static constexpr uint64_t kVersionMask = (uint64_t{1} << 48) - 1;
  // Not an offset: longer than any field.
  static constexpr uint64_t kIntact = uint64_t{1} << 32;

  // InvalidArgument, naming --ycsb_field_length, if it is too short.
  static Status Validate(uint32_t field_length);

  // 1 and more: incompressible.
  explicit FieldCodec(double compression_ratio);

  // Of the version only kVersionMask counts.
  // REQUIRES: length is valid.
  void Append(uint64_t record, uint32_t field, uint64_t version,
              uint32_t length, std::string* out) const;

  // The same to memory. REQUIRES: `out` has room for length bytes.
  void Write(uint64_t record, uint32_t field, uint64_t version, uint32_t length,
             char* out) const;

  // Corruption, naming record, field and offset of the first wrong byte, unless
  // Append wrote these contents.
  Status Check(uint64_t record, uint32_t field, const Slice& contents) const;

  // The offset of the first wrong byte or kIntact. 0 if the checksum is wrong,
  // as then any of the first 8 bytes, record, field or length can be.
  uint64_t FirstError(uint64_t record, uint32_t field,
                      const Slice& contents) const;

 private:
  // How many bytes of a chunk are not a repetition.
  size_t Period(size_t chunk_size, size_t header_size) const;

  const double compression_ratio_;
};

// Values of one or more fields, and changes of single fields, in the format of
// the FieldUpdate merge operator:
//
//   value:  (length: varint32, contents)*                   fields 0, 1, 2...
//   delta:  (field: varint32, length: varint32, contents)*
//
// Fields of a value can differ in length.
class RecordCodec {
 public:
  explicit RecordCodec(double compression_ratio) : fields_(compression_ratio) {}

  const FieldCodec& fields() const { return fields_; }

  // Makes *value a value with versions from *versions.
  // REQUIRES: field_length is valid.
  void MakeValue(uint64_t record, Random64* versions, uint32_t field_count,
                 uint32_t field_length, std::string* value) const;

  // Adds a field to the end of *value.
  // REQUIRES: *value has `field` fields; length is valid.
  void AppendField(uint64_t record, uint32_t field, uint64_t version,
                   uint32_t length, std::string* value) const;

  // Makes *delta a change of one field.
  // REQUIRES: length is valid.
  void MakeDelta(uint64_t record, uint32_t field, uint64_t version,
                 uint32_t length, std::string* delta) const;

  // Adds a change to *delta.
  // REQUIRES: the fields before it in *delta are lower; length is valid.
  void AppendDelta(uint64_t record, uint32_t field, uint64_t version,
                   uint32_t length, std::string* delta) const;

  // Replaces a field of *value, as a merge of MakeDelta would. Corruption if
  // *value does not parse or lacks the field; then it is unchanged. The
  // contents of the fields are not checked.
  // REQUIRES: length is valid.
  Status UpdateField(uint64_t record, uint32_t field, uint64_t version,
                     uint32_t length, std::string* value) const;

  // Corruption, naming record, field and offset, unless the value has
  // `field_count` fields, all written for this record.
  Status CheckValue(uint64_t record, uint32_t field_count,
                    const Slice& value) const;

  // The same for what merges without a base leave: fields can be empty, and the
  // last ones can be missing.
  Status CheckPartialValue(uint64_t record, uint32_t field_count,
                           const Slice& value) const;

 private:
  Status CheckFields(uint64_t record, uint32_t field_count, const Slice& value,
                     bool partial) const;

  const FieldCodec fields_;
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
