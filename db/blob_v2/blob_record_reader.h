//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "rocksdb/compression_type.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// What is particular to files of version 2 in BlobFileReader.
//
// Invariant: a value is given out only if the record's header is intact and
// the record has the name that was asked for.
class BlobRecordReader {
 public:
  // The encoded header of a file.
  static Status ReadHeader(const Slice& header, uint32_t column_family_id,
                           CompressionType* compression);

  // The encoded footer of a file. Takes the record index off *file_size, so
  // that offsets are valid only where there are records.
  static Status ReadFooter(const Slice& footer, uint64_t* file_size);

  // The size of the user key in an encoded MappedRecordName; 0 if it is none.
  static uint64_t KeySize(const Slice& name);

  // Is `record` the one with this name and value size? The value's checksum is
  // compared only if verify_value.
  static Status Verify(const Slice& record, const Slice& name,
                       uint64_t value_size, bool verify_value);
};

}  // namespace ROCKSDB_NAMESPACE
