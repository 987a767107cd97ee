//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Reads a file WALBUFFER after a crash: as the process left it, or damaged; the
// WAL is as the process left it, without its end, or damaged.
//
// The promise: what is missing at the end of the WAL is found completely if
// only the process ended. After any damage, and after a loss of power, either
// nothing is found, or exactly the bytes that belong at the end of the WAL's
// file, or the file is refused. Recovery makes the WAL of it, and so does the
// reader of a database that must not be written.
//
// With checksums that were put right after the damage, what is found is only
// required to continue the WAL where its file ends.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/write_path/wal_buffer_format.h"
#include "db/write_path/wal_buffer_recovery.h"
#include "env/mock_env.h"
#include "file/filename.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "rocksdb/file_system.h"
#include "util/coding.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;
using Missing = WalBufferRecovery::Missing;

constexpr uint64_t kWalNumber = 3;
constexpr size_t kBufferSize = WalBufferFormat::kMinSize;
const char kWalDir[] = "/fuzz";

// The writes of a process that has a buffer of the smallest size.
class Process {
 public:
  // The first bytes of a WAL are written to its file, so no offset is 0.
  explicit Process(FuzzInput* input)
      : wal_(1 + input->Byte(), 'w'), format_(memory(), kBufferSize) {
    format_.Start(kWalNumber, wal_.size(), wal_);
  }

  void Run(FuzzInput* input) {
    for (int n = input->Byte() % 16; n > 0; --n) {
      const uint8_t how = input->Byte();
      if (how % 4 == 0) {
        wal_ += format_.bytes().ToString();
        format_.Advance();
      } else {
        const std::string data(how * 8, static_cast<char>('a' + n));
        if (data.size() > format_.room()) {
          // Data that the buffer has no room for are written to the file.
          wal_ += format_.bytes().ToString() + data;
          format_.Start(kWalNumber, wal_.size(), wal_);
        } else {
          format_.Append(data);
        }
      }
    }
  }

  // Returns the file of the WAL. The process may have been writing bytes of the
  // buffer to it.
  std::string Wal(FuzzInput* input) const {
    return wal_ + std::string(bytes(), 0, input->Below(kBufferSize));
  }
  // Returns the WAL with everything that was appended to it.
  std::string CompleteWal() const { return wal_ + bytes(); }
  std::string Buffer() { return std::string(memory(), kBufferSize); }

 private:
  char* memory() { return reinterpret_cast<char*>(memory_.data()); }
  std::string bytes() const { return format_.bytes().ToString(); }

  // The buffer needs an alignment of 8 bytes.
  std::vector<uint64_t> memory_ = std::vector<uint64_t>(kBufferSize / 8);
  std::string wal_;
  WalBufferFormat format_;
};

// Puts both checksums of the header right.
void Repair(std::string* buffer) {
  constexpr size_t kHeaderCrcAt = 40;
  constexpr size_t kSizeAt = 48;
  constexpr size_t kCrcAt = 52;
  if (buffer->size() < WalBufferFormat::kHeaderSize) {
    return;
  }
  fuzz::RepairChecksum(0, kHeaderCrcAt, kHeaderCrcAt, buffer);
  const uint32_t size = DecodeFixed32(buffer->data() + kSizeAt);
  if (size <= buffer->size() - WalBufferFormat::kHeaderSize) {
    const uint32_t crc =
        crc32c::Value(buffer->data(), kHeaderCrcAt) ^
        crc32c::Value(buffer->data() + WalBufferFormat::kHeaderSize, size);
    EncodeFixed32(buffer->data() + kCrcAt, crc32c::Mask(crc));
  }
}

class Fuzzer {
 public:
  Fuzzer()
      : fs_(std::make_shared<MockFileSystem>(SystemClock::Default())),
        recovery_(fs_.get(), kWalDir, IOOptions(), /*info_log=*/nullptr) {
    Require(fs_->CreateDir(kWalDir, IOOptions(), nullptr).ok());
  }

  void Run(FuzzInput* input) {
    Process process(input);
    process.Run(input);
    const std::string complete = process.CompleteWal();
    const std::string left = process.Buffer();
    std::string wal = process.Wal(input);
    std::string buffer = left;
    const uint8_t how = input->Byte();
    const bool lost_power = (how & 1) != 0;
    const bool repaired = (how & 6) == 2;
    const bool damages_wal = (how & 8) != 0;
    if (lost_power) {
      wal.resize(wal.size() - input->Below(65536) % (wal.size() + 1));
    }
    if (damages_wal) {
      fuzz::Damage(input, /*may_resize=*/true, &wal);
    }
    if ((how & 16) != 0) {
      fuzz::Damage(input, /*may_resize=*/true, &buffer);
    }
    if (repaired) {
      Repair(&buffer);
    }
    Write(LogFileName(kWalDir, kWalNumber), wal);
    Write(WalBufferFileName(kWalDir), buffer);

    Missing missing;
    const Status s =
        recovery_.Find(WALRecoveryMode::kPointInTimeRecovery, &missing);
    Require(s.ok() || s.IsCorruption() || s.IsNotSupported());
    Require(s.ok() || buffer != left);
    Require(s.ok() || missing.bytes.empty());
    if (!missing.bytes.empty()) {
      Require(missing.wal_number == kWalNumber);
      Require(missing.size == wal.size());
    }
    // Nothing but the process has ended: the file of the WAL has what was
    // written to it.
    if (buffer == left && !lost_power && !damages_wal) {
      Require(wal + missing.bytes == complete);
    }
    // Nothing is found that the process did not write there.
    if (!missing.bytes.empty() && !repaired) {
      Require(missing.bytes == complete.substr(wal.size()));
    }
    CheckStrictMode(missing, s);
    if (s.ok()) {
      CheckReader(input, wal, missing);
      CheckRecovery(wal, missing);
    }
  }

 private:
  void Write(const std::string& name, const std::string& contents) {
    Require(WriteStringToFile(fs_.get(), contents, name).ok());
  }

  // With kAbsoluteConsistency there are more errors, and nothing else is found.
  void CheckStrictMode(const Missing& missing, const Status& s) const {
    Missing strict_missing;
    const Status strict =
        recovery_.Find(WALRecoveryMode::kAbsoluteConsistency, &strict_missing);
    Require(s.ok() || strict.code() == s.code());
    if (strict.ok()) {
      Require(strict_missing.bytes == missing.bytes);
    } else if (s.ok()) {
      Require(strict.IsCorruption());
      Require(missing.bytes.empty());
    }
  }

  // Reads the WAL and what is missing in pieces.
  void CheckReader(FuzzInput* input, const std::string& wal,
                   const Missing& missing) const {
    if (missing.bytes.empty()) {
      return;  // the file is then read without this reader
    }
    std::unique_ptr<FSSequentialFile> file;
    Require(fs_->NewSequentialFile(LogFileName(kWalDir, kWalNumber),
                                   FileOptions(), &file, nullptr)
                .ok());
    file = WalBufferRecovery::Append(std::move(file), missing);
    const std::string expected = wal + missing.bytes;
    std::string scratch(512, '\0');
    size_t position = 0;
    bool at_end = false;
    while (!at_end) {
      const uint8_t how = input->Byte();
      if (how % 8 == 1) {
        Require(file->Skip(how).ok());
        position = std::min(position + how, expected.size());
        continue;
      }
      const size_t n = 1 + how * 2;
      Slice piece;
      Require(file->Read(n, IOOptions(), &piece, scratch.data(), nullptr).ok());
      // A short read is the end.
      at_end = piece.size() < n;
      Require(piece == Slice(expected.substr(position, n)));
      position += piece.size();
    }
    Require(position == expected.size());
  }

  // Writes what is missing to the file of the WAL.
  void CheckRecovery(const std::string& wal, const Missing& missing) const {
    Require(recovery_.Recover(WALRecoveryMode::kPointInTimeRecovery).ok());
    std::string recovered;
    Require(ReadFileToString(fs_.get(), LogFileName(kWalDir, kWalNumber),
                             &recovered)
                .ok());
    Require(recovered == wal + missing.bytes);
    Require(fs_->FileExists(WalBufferFileName(kWalDir), IOOptions(), nullptr)
                .IsNotFound());
  }

  const std::shared_ptr<MockFileSystem> fs_;
  const WalBufferRecovery recovery_;
};

void FuzzWalBuffer(FuzzInput* input) {
  static auto* const fuzzer = new Fuzzer;
  fuzzer->Run(input);
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(wal_buffer, ROCKSDB_NAMESPACE::FuzzWalBuffer)
