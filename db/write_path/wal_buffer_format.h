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

// Reads and writes the format of the file WALBUFFER, which has bytes of a WAL
// and their place in it: see "WAL buffer" in docs/formats.md.
//
// Invariant: if the process that writes the file ends at any instruction, the
// file has complete bytes that belong at the place it states, or none.
//
// Not thread-safe.
class WalBufferFormat {
 public:
  static constexpr size_t kHeaderSize = 64;
  // Limits of the file size, in bytes.
  static constexpr size_t kMinSize = size_t{4} << 10;
  static constexpr size_t kMaxSize = size_t{64} << 20;

  struct Contents {
    uint64_t wal_number = 0;
    // Offset in the WAL where the bytes belong.
    uint64_t offset = 0;
    // Size and CRC of the bytes of the WAL that end at offset and that the
    // buffer had before.
    uint32_t previous_size = 0;
    uint32_t previous_crc = 0;
    // Empty if nothing is to be recovered.
    std::string bytes;
    // The bytes do not match their checksum, as after a loss of power.
    bool is_torn = false;
  };

  // Parses the contents `file` of a file. The result has no bytes if the file
  // was never complete.
  // *is_torn: set if the header does not match its checksum; *contents is then
  //     empty.
  // Returns Corruption or NotSupported, with fname in the message, if the file
  // is not a WAL buffer of this version.
  static Status Parse(const std::string& fname, const Slice& file,
                      Contents* contents, bool* is_torn);

  // Formats the mapped file at `memory` as an empty buffer.
  // REQUIRES: kMinSize <= size <= kMaxSize, memory is all zero and aligned to 8
  // bytes
  WalBufferFormat(char* memory, size_t size);
  WalBufferFormat(const WalBufferFormat&) = delete;
  WalBufferFormat& operator=(const WalBufferFormat&) = delete;

  // Empties the buffer; later appends belong at `offset` of this WAL.
  // before: bytes of the WAL that end at `offset`, as far as they are known.
  void Start(uint64_t wal_number, uint64_t offset, const Slice& before = "");
  // Empties the buffer, whose bytes are now in the WAL; later appends belong
  // behind them.
  void Advance();
  // Appends to the bytes in the buffer.
  // REQUIRES: data.size() <= room(), Start() was called
  void Append(const Slice& data);
  // Drops the bytes in the buffer behind the first `size`.
  // REQUIRES: size <= bytes().size()
  void Cut(size_t size);

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
