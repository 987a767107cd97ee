//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_record_walker.h"

#include <algorithm>
#include <cassert>

#include "db/blob_v2/blob_format_v2.h"
#include "file/random_access_file_reader.h"

namespace ROCKSDB_NAMESPACE {

Status BlobRecordWalker::Next(AddressMap::Record* record) {
  assert(!AtEnd());
  // Each number is checked against the remaining size of the file before
  // anything is computed from it or allocated according to it.
  if (offset_ > end_ || end_ - offset_ < BlobRecordV2::kHeaderSize) {
    return CorruptBlobFile(file_->file_name(), offset_, "no room for a record");
  }
  if (offset_ > kMaxBlobRecordOffset) {
    return CorruptBlobFile(file_->file_name(), offset_,
                           "record starts above 4 GiB");
  }
  Slice header;
  Status s = Fetch(offset_, BlobRecordV2::kHeaderSize, &header);
  if (!s.ok()) {
    return s;
  }
  BlobRecordV2 decoded;
  s = decoded.DecodeHeaderFrom(header);
  if (!s.ok()) {
    return CorruptBlobFile(file_->file_name(), offset_, s.getState());
  }
  if (decoded.record_size() > end_ - offset_) {
    return CorruptBlobFile(file_->file_name(), offset_,
                           "record exceeds the records of the file");
  }
  s = Fetch(offset_ + BlobRecordV2::kHeaderSize, decoded.key_size, &key_);
  if (!s.ok()) {
    return s;
  }

  record->name.key = MapKeyHash::Of(key_, hash_seed_);
  record->name.seq = decoded.seq;
  record->name.birth = decoded.birth;
  record->offset = static_cast<uint32_t>(offset_);
  record->size = static_cast<uint32_t>(decoded.record_size());
  record->direct = decoded.direct;
  offset_ += decoded.record_size();
  return Status::OK();
}

Status BlobRecordWalker::Fetch(uint64_t offset, size_t n, Slice* result) {
  if (offset < window_offset_ || offset - window_offset_ > window_.size() ||
      window_.size() - (offset - window_offset_) < n) {
    constexpr uint64_t kReadSize = 32 << 10;
    const size_t read_size =
        std::max(n, static_cast<size_t>(std::min(kReadSize, end_ - offset)));
    if (buffer_size_ < read_size) {
      buffer_.reset(new char[read_size]);
      buffer_size_ = read_size;
    }
    // The read overwrites the buffer of the window even if it fails.
    window_.clear();
    Slice read;
    const Status s =
        ReadBlobFile(file_, options_, offset, read_size, buffer_.get(), &read);
    if (!s.ok()) {
      return s;
    }
    window_ = read;
    window_offset_ = offset;
  }
  *result = Slice(window_.data() + (offset - window_offset_), n);
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
