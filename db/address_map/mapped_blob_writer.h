//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/blob_heat/hot_mark.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "rocksdb/compression_type.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class BlobLogWriter;

// A blob file of format version 2 that a job has written, with its record
// index.
struct MappedBlobFile {
  uint64_t number = 0;
  uint32_t path_id = 0;
  HotMark hot;
  CompressionType compression = kNoCompression;
  uint64_t size = 0;  // bytes
  BlobFooterV2 footer;
  // Empty if it was dropped to save memory (MapTransaction::LimitIndex()).
  std::string index;

  bool has_index() const { return index.size() == footer.index_size; }
};

// Interface through which a job names the values that it separates and receives
// the blob files. Used by one thread.
class MappedBlobSink {
 public:
  virtual ~MappedBlobSink() = default;

  virtual uint64_t hash_seed() const = 0;

  // Returns the mode and birth of the value of (user_key, seq) that is written
  // to blob file `file_number`.
  // value_changed: true if the entry with this sequence number had another
  // value before this job.
  // REQUIRES: called in the order of the job's output.
  virtual MappedBlobIndex NameOf(const Slice& user_key, SequenceNumber seq,
                                 uint64_t file_number, bool value_changed) = 0;

  // True if the value of the next NameOf() call is passed in the form in which
  // it is stored in the file, i.e. already compressed, copied from a record of
  // the same key.
  virtual bool IsStoredForm() const { return false; }
  // The checksum of that record, which was verified.
  // REQUIRES: IsStoredForm().
  virtual uint32_t StoredBlobCrc() const { return 0; }

  // Called when a record was written, before OnValue().
  // value_size: bytes of the value in the form in which it is stored.
  virtual void OnRecord(uint64_t /*value_size*/) {}

  // Called when the value of (user_key, seq) was written.
  // blob_index: encoded MappedBlobIndex.
  // value: the value as a reader will get it.
  virtual void OnValue(const Slice& /*user_key*/, SequenceNumber /*seq*/,
                       const Slice& /*blob_index*/, const Slice& /*value*/) {}

  // Called when the file is complete and synced. Its directory is not synced
  // yet.
  virtual void OnFileClosed(MappedBlobFile&& file) = 0;
};

// Writes the parts of a blob file that are specific to format version 2, on
// behalf of BlobFileBuilder. There is one object for each file, used by one
// thread.
//
// Invariant: The record index lists the records of the file in order.
class MappedBlobWriter {
 public:
  // REQUIRES: sink outlives this object.
  MappedBlobWriter(MappedBlobSink* sink, uint32_t column_family_id,
                   CompressionType compression);

  BlobLogHeader header() const { return header_.ToLogHeader(); }

  // Appends the record of a value.
  // value: the value in the form in which it is stored.
  // value_offset: receives the offset of the value in the file, in bytes.
  // blob_index: receives the encoded MappedBlobIndex for the SST entry.
  Status Add(const WriteOptions& write_options, const Slice& user_key,
             SequenceNumber seq, bool value_changed, const Slice& value,
             BlobLogWriter* log, uint64_t* value_offset,
             std::string* blob_index);

  // True if the file should get no more records, whatever its size.
  bool ShouldClose() const { return index_.ShouldClose(); }

  // Appends the record index. The caller must append *footer next.
  Status AppendIndex(const WriteOptions& write_options, BlobLogWriter* log,
                     BlobLogFooter* footer);

  // REQUIRES: AppendIndex() succeeded.
  uint64_t index_bytes() const { return footer_.index_size; }

  // Passes the file to the sink.
  // REQUIRES: the footer is synced.
  void Close(uint64_t number, uint32_t path_id);

 private:
  MappedBlobSink* const sink_;
  BlobHeaderV2 header_;
  BlobFooterV2 footer_;
  RecordIndexBuilder index_;
  std::string record_header_;
};

}  // namespace ROCKSDB_NAMESPACE
