//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <cassert>
#include <string>

#include "db/version_edit.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kWalBufferMarkVersion = 1;

}  // namespace

void VersionEdit::EncodeWalBuffer(std::string* dst) const {
  assert(has_wal_buffer_);
  PutVarint32(dst, kWalBuffer);
  PutLengthPrefixedSlice(dst, Slice(&kWalBufferMarkVersion, 1));
}

Status VersionEdit::DecodeWalBuffer(Slice* input) {
  Slice field;
  if (!GetLengthPrefixedSlice(input, &field) || field.empty()) {
    return Status::Corruption("VersionEdit", "WAL buffer mark");
  }
  if (field.size() != 1 || field[0] != kWalBufferMarkVersion) {
    return Status::NotSupported(
        "VersionEdit", "WAL buffer mark of a later version of this library");
  }
  has_wal_buffer_ = true;
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
