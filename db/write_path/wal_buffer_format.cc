//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/write_path/wal_buffer_format.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <limits>

#include "util/coding.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kBufferMagic[] = "STRATAWB";
constexpr size_t kBufferMagicSize = sizeof(kBufferMagic) - 1;
constexpr uint32_t kBufferVersion = 1;

constexpr size_t kBufferVersionAt = 8;
constexpr size_t kWalNumberAt = 16;
constexpr size_t kOffsetAt = 24;
constexpr size_t kPreviousSizeAt = 32;
constexpr size_t kPreviousCrcAt = 36;
constexpr size_t kBufferHeaderCrcAt = 40;
constexpr size_t kStateAt = 48;

static_assert(kBufferMagicSize == kBufferVersionAt);
static_assert(kStateAt + sizeof(uint64_t) <= WalBufferFormat::kHeaderSize);
static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));

uint32_t HeaderCrc(const char* header) {
  return crc32c::Value(header, kBufferHeaderCrcAt);
}

// Returns the checksum of the state: it binds the bytes to their header.
uint32_t StateCrc(uint32_t header_crc, uint32_t bytes_crc) {
  return crc32c::Mask(header_crc ^ bytes_crc);
}

}  // namespace

Status WalBufferFormat::Parse(const std::string& fname, const Slice& file,
                              Contents* contents, bool* is_torn) {
  *contents = Contents();
  *is_torn = false;
  const char* const header = file.data();
  if (file.size() < kHeaderSize ||
      std::string(kBufferMagicSize, '\0') == Slice(header, kBufferMagicSize)) {
    return Status::OK();  // the process ended while it created the file
  }
  if (Slice(header, kBufferMagicSize) !=
      Slice(kBufferMagic, kBufferMagicSize)) {
    return Status::Corruption(
        fname, "is not a WAL buffer: bad magic number at offset 0");
  }
  const uint32_t version = DecodeFixed32(header + kBufferVersionAt);
  if (version != kBufferVersion) {
    return Status::NotSupported(
        fname, "is a WAL buffer of format version " + std::to_string(version) +
                   ", at offset " + std::to_string(kBufferVersionAt) +
                   ": open the database with the version that has written it, "
                   "and close it");
  }
  const uint64_t state = DecodeFixed64(header + kStateAt);
  const uint32_t size = static_cast<uint32_t>(state);
  if (size == 0) {
    return Status::OK();
  }
  if (size > file.size() - kHeaderSize) {
    return Status::Corruption(
        fname, "has a size that exceeds its capacity, at offset " +
                   std::to_string(kStateAt));
  }
  const Slice bytes(header + kHeaderSize, size);
  const uint32_t header_crc = HeaderCrc(header);
  if (crc32c::Unmask(DecodeFixed32(header + kBufferHeaderCrcAt)) !=
      header_crc) {
    *is_torn = true;
    return Status::OK();
  }
  contents->is_torn =
      static_cast<uint32_t>(state >> 32) !=
      StateCrc(header_crc, crc32c::Value(bytes.data(), bytes.size()));
  contents->wal_number = DecodeFixed64(header + kWalNumberAt);
  if (contents->wal_number == 0) {
    return Status::Corruption(fname, "has the WAL number 0, at offset " +
                                         std::to_string(kWalNumberAt));
  }
  contents->offset = DecodeFixed64(header + kOffsetAt);
  if (contents->offset > std::numeric_limits<uint64_t>::max() - size) {
    return Status::Corruption(fname,
                              "has an offset that no file has, at "
                              "offset " +
                                  std::to_string(kOffsetAt));
  }
  contents->previous_size = DecodeFixed32(header + kPreviousSizeAt);
  contents->previous_crc =
      crc32c::Unmask(DecodeFixed32(header + kPreviousCrcAt));
  contents->bytes.assign(bytes.data(), bytes.size());
  return Status::OK();
}

WalBufferFormat::WalBufferFormat(char* memory, size_t size)
    : memory_(memory), size_(size) {
  assert(size_ >= kMinSize && size_ <= kMaxSize);
  assert(reinterpret_cast<uintptr_t>(memory) % sizeof(uint64_t) == 0);
  EncodeFixed32(memory_ + kBufferVersionAt, kBufferVersion);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // The magic number is written last: a file without it is not a buffer yet.
  memcpy(memory_, kBufferMagic, kBufferMagicSize);
}

void WalBufferFormat::Start(uint64_t wal_number, uint64_t offset,
                            const Slice& before) {
  assert(before.size() <= offset);
  bytes_size_ = 0;
  WriteState();
  wal_number_ = wal_number;
  offset_ = offset;
  const size_t size = std::min(before.size(), size_);
  WriteHeader(static_cast<uint32_t>(size),
              crc32c::Value(before.data() + (before.size() - size), size));
}

void WalBufferFormat::Advance() {
  const uint32_t previous_size = static_cast<uint32_t>(bytes_size_);
  const uint32_t previous_crc = bytes_crc_;
  bytes_size_ = 0;
  WriteState();
  offset_ += previous_size;
  WriteHeader(previous_size, previous_crc);
}

void WalBufferFormat::Append(const Slice& data) {
  assert(data.size() <= room());
  memcpy(memory_ + kHeaderSize + bytes_size_, data.data(), data.size());
  bytes_size_ += data.size();
  bytes_crc_ = crc32c::Extend(bytes_crc_, data.data(), data.size());
  WriteState();
}

void WalBufferFormat::Cut(size_t size) {
  assert(size <= bytes_size_);
  bytes_size_ = size;
  bytes_crc_ = crc32c::Value(memory_ + kHeaderSize, size);
  WriteState();
}

void WalBufferFormat::WriteHeader(uint32_t previous_size,
                                  uint32_t previous_crc) {
  // The state says that the buffer is empty, so an incomplete header is never
  // used.
  assert(bytes_size_ == 0);
  EncodeFixed64(memory_ + kWalNumberAt, wal_number_);
  EncodeFixed64(memory_ + kOffsetAt, offset_);
  EncodeFixed32(memory_ + kPreviousSizeAt, previous_size);
  EncodeFixed32(memory_ + kPreviousCrcAt, crc32c::Mask(previous_crc));
  header_crc_ = HeaderCrc(memory_);
  EncodeFixed32(memory_ + kBufferHeaderCrcAt, crc32c::Mask(header_crc_));
  bytes_crc_ = 0;
}

void WalBufferFormat::WriteState() {
  uint64_t state = 0;
  if (bytes_size_ != 0) {
    EncodeFixed64(reinterpret_cast<char*>(&state),
                  uint64_t{StateCrc(header_crc_, bytes_crc_)} << 32 |
                      static_cast<uint32_t>(bytes_size_));
  }
  // The stores must only be in program order: when the process ends, all stores
  // that its CPUs have executed are in memory.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  reinterpret_cast<std::atomic<uint64_t>*>(memory_ + kStateAt)
      ->store(state, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace ROCKSDB_NAMESPACE
