// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Records whose keys and values can be checked without knowing which version
// was written last: a key contains its record number, and the bytes of a value
// show whether it was written for that record.
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
  // Returns InvalidArgument, naming --key_size, if keys would not be unique.
  static Status Validate(int key_size);

  // All keys have the same size.
  // REQUIRES: key_size is valid.
  explicit KeyCodec(int key_size);

  // The size of a record's key is sizes.At(record). The number takes 8 bytes at
  // all sizes; otherwise keys of 24 bytes and more would not be in order.
  // REQUIRES: sizes.min() >= 8
  explicit KeyCodec(const NormalSize& sizes);

  uint32_t Size(uint64_t record) const;

  // Sets *key to the key of a record.
  void Encode(uint64_t record, std::string* key) const {
    Write(Mix64(record), Size(record), key);
  }

  // Sets *key to the key of the record with this mixed number. Every number is
  // the mixed number of some record, so a fraction of mixed / 2^64 of all
  // possible keys is before this key.
  void EncodeMixed(uint64_t mixed, std::string* key) const {
    Write(mixed, Size(Unmix64(mixed)), key);
  }

  // Returns the record of a key. Returns Corruption, and leaves *record
  // unchanged, if Encode() makes this key for no record.
  Status Decode(const Slice& key, uint64_t* record) const;

 private:
  void Write(uint64_t mixed, uint32_t size, std::string* key) const;

  const bool decimal_;
  const uint32_t fixed_size_;  // 0 if sizes_ determines the size
  const NormalSize sizes_;
};

// Contents of a field from which it can be checked to what record and field
// they belong:
//
//   bytes 0..5   version, lowest byte first
//   bytes 6..7   checksum of record, field, length and version
//   bytes 8...   pseudo-random, a function of the same four
//
// The writer chooses the version at random, so that a field that is written
// again gets entirely new contents.
//
// The check finds every change of bytes 8 and later, and every change of a
// single bit. It finds other damage of the first 8 bytes, and contents of
// another record, field or length, unless the 16-bit checksum matches by chance
// and so do the pseudo-random bytes, if there are any. It does not find an
// older version.
//
// With a compression ratio r below 1, a fraction r of each kChunk bytes is as
// above and is repeated up to the end of the chunk, so that a compressor with a
// window of that size achieves a ratio of about r. The first 8 bytes of the
// field are always included.
class FieldCodec {
 public:
  static constexpr uint32_t kMinLength = 8;
  static constexpr uint32_t kChunk = 1024;
  static constexpr uint64_t kVersionMask = (uint64_t{1} << 48) - 1;
  // Means that there is no error. Larger than any offset in a field.
  static constexpr uint64_t kIntact = uint64_t{1} << 32;

  // Returns InvalidArgument, naming --ycsb_field_length, if it is too short.
  static Status Validate(uint32_t field_length);

  // compression_ratio: 1 or more for incompressible contents.
  explicit FieldCodec(double compression_ratio);

  // Appends the contents of a field to *out. Only the bits kVersionMask of the
  // version are used.
  // REQUIRES: length is valid.
  void Append(uint64_t record, uint32_t field, uint64_t version,
              uint32_t length, std::string* out) const;

  // Like Append(), but writes to memory.
  // REQUIRES: `out` has room for length bytes.
  void Write(uint64_t record, uint32_t field, uint64_t version, uint32_t length,
             char* out) const;

  // Returns Corruption, naming record, field and offset of the first wrong
  // byte, unless Append() wrote these contents.
  Status Check(uint64_t record, uint32_t field, const Slice& contents) const;

  // Returns the offset of the first wrong byte, or kIntact. Returns 0 if the
  // checksum is wrong, because then any of the first 8 bytes, the record, the
  // field or the length can be wrong.
  uint64_t FirstError(uint64_t record, uint32_t field,
                      const Slice& contents) const;

 private:
  // Returns how many bytes of a chunk are not a repetition.
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

  // Sets *value to a value with versions from *versions.
  // REQUIRES: field_length is valid.
  void MakeValue(uint64_t record, Random64* versions, uint32_t field_count,
                 uint32_t field_length, std::string* value) const;

  // Adds a field to the end of *value.
  // REQUIRES: *value has `field` fields; length is valid.
  void AppendField(uint64_t record, uint32_t field, uint64_t version,
                   uint32_t length, std::string* value) const;

  // Sets *delta to a change of one field.
  // REQUIRES: length is valid.
  void MakeDelta(uint64_t record, uint32_t field, uint64_t version,
                 uint32_t length, std::string* delta) const;

  // Adds a change to *delta.
  // REQUIRES: the fields before it in *delta are lower; length is valid.
  void AppendDelta(uint64_t record, uint32_t field, uint64_t version,
                   uint32_t length, std::string* delta) const;

  // Replaces a field of *value, as a merge of MakeDelta() would. Returns
  // Corruption, and leaves *value unchanged, if it cannot be parsed or lacks
  // the field. The contents of the fields are not checked.
  // REQUIRES: length is valid.
  Status UpdateField(uint64_t record, uint32_t field, uint64_t version,
                     uint32_t length, std::string* value) const;

  // Returns Corruption, naming record, field and offset, unless the value has
  // `field_count` fields, all written for this record.
  Status CheckValue(uint64_t record, uint32_t field_count,
                    const Slice& value) const;

  // Like CheckValue(), for results of merges without a base value: fields can
  // be empty, and the last ones can be missing.
  Status CheckPartialValue(uint64_t record, uint32_t field_count,
                           const Slice& value) const;

 private:
  Status CheckFields(uint64_t record, uint32_t field_count, const Slice& value,
                     bool partial) const;

  const FieldCodec fields_;
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
