//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "rocksdb/compression_type.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class BlobLogWriter;

// A blob file of version 2 that a job has written, and its record index.
struct MappedBlobFile {
  uint64_t number = 0;
  uint32_t path_id = 0;
  CompressionType compression = kNoCompression;
  uint64_t size = 0;
  BlobFooterV2 footer;
  std::string index;
};

// What a job decides about the values that it separates. Used by one thread.
class MappedBlobSink {
 public:
  virtual ~MappedBlobSink() = default;

  virtual uint64_t hash_seed() const = 0;

  // The mode and birth of the value of (user_key, seq) that is written to blob
  // file `file_number`. value_changed: the entry of this sequence number had
  // another value before this job.
  // REQUIRES: called in the order of the job's output.
  virtual MappedBlobIndex NameOf(const Slice& user_key, SequenceNumber seq,
                                 uint64_t file_number, bool value_changed) = 0;

  // True if the value that NameOf() will be asked for next is given as it is to
  // be in the file: compressed already, from a record of the same key.
  virtual bool IsStoredForm() const { return false; }
  // The checksum of that record, which was found right.
  // REQUIRES: IsStoredForm()
  virtual uint32_t StoredBlobCrc() const { return 0; }

  // The value of (user_key, seq), as a reader will get it, was written.
  virtual void OnValue(const Slice& /*user_key*/, SequenceNumber /*seq*/,
                       const Slice& /*blob_index*/, const Slice& /*value*/) {}

  // The file is complete and synced, but its directory is not.
  virtual void OnFileClosed(MappedBlobFile&& file) = 0;
};

// What is particular to a blob file of version 2 while BlobFileBuilder writes
// it. One object for each file, used by one thread.
//
// Invariant: the record index lists the records of the file, in order.
class MappedBlobWriter {
 public:
  // REQUIRES: sink outlives this
  MappedBlobWriter(MappedBlobSink* sink, uint32_t column_family_id,
                   CompressionType compression);

  BlobLogHeader header() const { return header_.ToLogHeader(); }

  // Appends the record of a value, as it is to be in the file, and sets
  // blob_index to what the SST entry holds of it. value_offset: of the value
  // in the file.
  Status Add(const WriteOptions& write_options, const Slice& user_key,
             SequenceNumber seq, bool value_changed, const Slice& value,
             BlobLogWriter* log, uint64_t* value_offset,
             std::string* blob_index);

  // True if the file should get no more records, whatever its size.
  bool ShouldClose() const { return index_.ShouldClose(); }

  // Appends the record index. `footer` is to be appended next.
  Status AppendIndex(const WriteOptions& write_options, BlobLogWriter* log,
                     BlobLogFooter* footer);

  // REQUIRES: AppendIndex() succeeded
  uint64_t index_bytes() const { return footer_.index_size; }

  // Hands the file over to the sink.
  // REQUIRES: the footer is synced
  void Close(uint64_t number, uint32_t path_id);

 private:
  MappedBlobSink* const sink_;
  BlobHeaderV2 header_;
  BlobFooterV2 footer_;
  RecordIndexBuilder index_;
  std::string record_header_;
};

}  // namespace ROCKSDB_NAMESPACE
