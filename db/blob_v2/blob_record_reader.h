//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "rocksdb/compression_type.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Implements the parts of BlobFileReader that are specific to blob files of
// format version 2.
//
// Invariant: A value is returned only if the header of the record is intact and
// the record has the requested name.
class BlobRecordReader {
 public:
  // Decodes and checks the header of a file.
  // header: encoded BlobHeaderV2.
  static Status ReadHeader(const Slice& header, uint32_t column_family_id,
                           CompressionType* compression);

  // Decodes and checks the footer of a file. Subtracts the size of the record
  // index from *file_size (in bytes), so that only offsets of records are
  // valid.
  // footer: encoded BlobFooterV2.
  static Status ReadFooter(const Slice& footer, uint64_t* file_size);

  // Returns the size in bytes of the user key in an encoded MappedRecordName, 0
  // if `name` is not a name.
  static uint64_t KeySize(const Slice& name);

  // Returns OK if `record` has this name and value size. Verifies the checksum
  // of the value only if verify_value.
  static Status Verify(const Slice& record, const Slice& name,
                       uint64_t value_size, bool verify_value);
};

}  // namespace ROCKSDB_NAMESPACE
