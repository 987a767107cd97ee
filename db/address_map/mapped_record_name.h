//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/types.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

// The name of a record in a blob file of format version 2 as one string: the
// user key, the sequence number and the birth. The name is the key of such a
// record, as the user key is the key of a record of version 1. So it is what
// BlobSource and BlobFileReader take as the key of the record to read; they
// compare it with the record (BlobRecordReader), and nothing else uses it.
class MappedRecordName {
 public:
  static void Encode(const Slice& user_key, SequenceNumber seq, uint64_t birth,
                     std::string* name) {
    name->resize(Size(user_key));
    Encode(user_key, seq, birth, name->data());
  }
  // name: receives Size(user_key) bytes.
  static void Encode(const Slice& user_key, SequenceNumber seq, uint64_t birth,
                     char* name) {
    std::copy(user_key.data(), user_key.data() + user_key.size(), name);
    EncodeFixed64(name + user_key.size(), seq);
    EncodeFixed64(name + user_key.size() + sizeof(uint64_t), birth);
  }
  // Returns the size in bytes of a name.
  static size_t Size(const Slice& user_key) {
    return user_key.size() + kSuffix;
  }

  // Returns false if the string is too short to be a name.
  static bool IsName(const Slice& name) { return name.size() >= kSuffix; }

  // REQUIRES: IsName(name).
  static Slice UserKey(const Slice& name) {
    assert(IsName(name));
    return Slice(name.data(), name.size() - kSuffix);
  }
  // REQUIRES: IsName(name).
  static SequenceNumber Seq(const Slice& name) {
    return DecodeFixed64(name.data() + name.size() - kSuffix);
  }
  // REQUIRES: IsName(name).
  static uint64_t Birth(const Slice& name) {
    return DecodeFixed64(name.data() + name.size() - sizeof(uint64_t));
  }

 private:
  static constexpr size_t kSuffix = 2 * sizeof(uint64_t);
};

}  // namespace ROCKSDB_NAMESPACE
