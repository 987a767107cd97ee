//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Tells which values of a scan are at a place of their own on the device: not
// close to one of the last values in a file, before or after it. Scans read
// values that are close to each other together (BlobReadGroup), also if the
// values of other files come between them.
//
// Not thread-safe.
class ScanPlaces {
 public:
  // Number of files of which the last value is remembered.
  static constexpr size_t kStreams = 4;
  // Values with more bytes than this between them are at different places.
  static constexpr uint64_t kMaxGap = uint64_t{16} << 10;

  // Adds the next value of the scan. Returns true if it is at a new place.
  // offset, size: bytes, of the value's record.
  bool Add(uint64_t file_number, uint64_t offset, uint64_t size) {
    for (Value& last : last_) {
      if (last.file_number == file_number && offset <= last.end + kMaxGap &&
          last.offset <= offset + size + kMaxGap) {
        last.offset = offset;
        last.end = offset + size;
        return false;
      }
    }
    last_[next_] = Value{file_number, offset, offset + size};
    next_ = (next_ + 1) % kStreams;
    return true;
  }

  // Forgets all values: a new scan begins.
  void Clear() { last_ = {}; }

 private:
  struct Value {
    uint64_t file_number = 0;  // 0: none
    uint64_t offset = 0;
    uint64_t end = 0;
  };

  std::array<Value, kStreams> last_;
  size_t next_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
