//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/mapped_blob_record.h"

namespace ROCKSDB_NAMESPACE {

Status MappedBlobRecord::Parse(const Slice& bytes, const MapName& name) {
  if (bytes.size() < BlobRecordV2::kHeaderSize) {
    return Status::Corruption("record is shorter than its header");
  }
  Status s =
      header.DecodeHeaderFrom(Slice(bytes.data(), BlobRecordV2::kHeaderSize));
  if (!s.ok()) {
    return s;
  }
  if (header.record_size() != bytes.size() || header.seq != name.seq ||
      header.birth != name.birth) {
    return Status::Corruption("record does not match the record index");
  }
  key = Slice(bytes.data() + BlobRecordV2::kHeaderSize, header.key_size);
  value = Slice(key.data() + key.size(), header.value_size);
  return header.CheckBlob(key, value);
}

}  // namespace ROCKSDB_NAMESPACE
