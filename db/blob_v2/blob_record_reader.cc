//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_record_reader.h"

#include "db/address_map/mapped_record_name.h"
#include "db/blob_v2/blob_format_v2.h"

namespace ROCKSDB_NAMESPACE {

Status BlobRecordReader::ReadHeader(const Slice& encoded,
                                    uint32_t column_family_id,
                                    CompressionType* compression) {
  BlobHeaderV2 header;
  Status s = header.DecodeFrom(encoded);
  if (s.ok() && header.column_family_id != column_family_id) {
    s = Status::Corruption("Column family ID mismatch");
  }
  if (s.ok()) {
    *compression = header.compression;
  }
  return s;
}

Status BlobRecordReader::ReadFooter(const Slice& encoded, uint64_t* file_size) {
  BlobFooterV2 footer;
  const Status s = footer.DecodeFrom(encoded);
  if (!s.ok()) {
    return s;
  }
  if (footer.index_size >
      *file_size - BlobHeaderV2::kSize - BlobFooterV2::kSize) {
    return Status::Corruption("Blob file footer",
                              "the record index is larger than the file");
  }
  *file_size -= footer.index_size;
  return s;
}

uint64_t BlobRecordReader::KeySize(const Slice& name) {
  return MappedRecordName::IsName(name) ? MappedRecordName::UserKey(name).size()
                                        : 0;
}

Status BlobRecordReader::Verify(const Slice& encoded, const Slice& name,
                                uint64_t value_size, bool verify_value) {
  if (!MappedRecordName::IsName(name)) {
    return Status::Corruption("the name of the requested record is missing");
  }
  const Slice user_key = MappedRecordName::UserKey(name);
  // The file may be one without records: the bytes are those of a value then.
  if (encoded.size() < BlobRecordV2::kHeaderSize) {
    return Status::Corruption("the record is too short");
  }
  BlobRecordV2 record;
  Status s =
      record.DecodeHeaderFrom(Slice(encoded.data(), BlobRecordV2::kHeaderSize));
  if (!s.ok()) {
    return s;
  }
  const Slice key(encoded.data() + BlobRecordV2::kHeaderSize, user_key.size());
  if (record.key_size != user_key.size() || record.value_size != value_size ||
      record.seq != MappedRecordName::Seq(name) ||
      record.birth != MappedRecordName::Birth(name) ||
      encoded.size() < BlobRecordV2::kHeaderSize + key.size() + value_size ||
      key != user_key) {
    return Status::Corruption("the record is not the requested one");
  }
  if (verify_value) {
    s = record.CheckBlob(key, Slice(key.data() + key.size(), value_size));
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
