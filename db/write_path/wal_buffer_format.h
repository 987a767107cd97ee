//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// How the file WALBUFFER says which bytes of which WAL it has: see "WAL buffer"
// in docs/formats.md.
//
// Whoever looks at it, after the process that wrote it has ended at any
// instruction, finds bytes that are complete and go where it says, or none.
// Thread-safety: external.
class WalBufferFormat {
 public:
  static constexpr size_t kHeaderSize = 64;
  // Of the file.
  static constexpr size_t kMinSize = size_t{4} << 10;
  static constexpr size_t kMaxSize = size_t{64} << 20;

  struct Contents {
    uint64_t wal_number = 0;
    // Where in the WAL the bytes belong.
    uint64_t offset = 0;
    // What the WAL has before offset, as far as the buffer had it.
    uint32_t previous_size = 0;
    uint32_t previous_crc = 0;
    // Empty if there is nothing to do.
    std::string bytes;
    // They are not as the process left them, as after a loss of power.
    bool is_torn = false;
  };

  // Of a file with these contents; of one that was never complete nothing.
  // *is_torn: what it says of its bytes is not as the process left it, and they
  // are not in *contents. Corruption or NotSupported name fname.
  static Status Parse(const std::string& fname, const Slice& file,
                      Contents* contents, bool* is_torn);

  // Makes a file of what is in memory, which must be all zero.
  // REQUIRES: kMinSize <= size <= kMaxSize, memory is aligned to 8 bytes
  WalBufferFormat(char* memory, size_t size);
  WalBufferFormat(const WalBufferFormat&) = delete;
  WalBufferFormat& operator=(const WalBufferFormat&) = delete;

  // Nothing is in the buffer from now on, and what comes is for this place.
  // before: what is known of the WAL up to there.
  void Start(uint64_t wal_number, uint64_t offset, const Slice& before = "");
  // The bytes are in the WAL now, and what comes is for the place behind them.
  void Advance();
  // REQUIRES: data.size() <= room(), Start() was called
  void Append(const Slice& data);

  size_t room() const { return size_ - kHeaderSize - bytes_size_; }
  Slice bytes() const { return Slice(memory_ + kHeaderSize, bytes_size_); }
  uint64_t wal_number() const { return wal_number_; }
  uint64_t offset() const { return offset_; }

 private:
  void WriteHeader(uint32_t previous_size, uint32_t previous_crc);
  void WriteState();

  char* const memory_;
  const size_t size_;
  uint64_t wal_number_ = 0;
  uint64_t offset_ = 0;
  size_t bytes_size_ = 0;
  uint32_t bytes_crc_ = 0;
  uint32_t header_crc_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
