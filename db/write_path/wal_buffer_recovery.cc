//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/write_path/wal_buffer_recovery.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "file/filename.h"
#include "logging/logging.h"
#include "rocksdb/env.h"
#include "test_util/sync_point.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Reads a WAL followed by the bytes that are missing at its end.
class WithMissing final : public FSSequentialFileOwnerWrapper {
 public:
  WithMissing(std::unique_ptr<FSSequentialFile>&& wal,
              const WalBufferRecovery::Missing& missing)
      : FSSequentialFileOwnerWrapper(std::move(wal)), missing_(missing) {}

  // Reads n bytes unless the end comes first: readers of WALs take a short read
  // for the end.
  IOStatus Read(size_t n, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* dbg) override {
    size_t done = 0;
    while (done < n && position_ < missing_.size) {
      const size_t wanted = static_cast<size_t>(
          std::min(uint64_t{n - done}, missing_.size - position_));
      Slice part;
      const IOStatus s =
          target()->Read(wanted, options, &part, scratch + done, dbg);
      if (!s.ok()) {
        return s;
      }
      if (part.empty()) {
        return IOStatus::IOError("The WAL has become shorter");
      }
      if (part.data() != scratch + done) {
        memcpy(scratch + done, part.data(), part.size());
      }
      done += part.size();
      position_ += part.size();
    }
    if (done < n) {
      const size_t from = static_cast<size_t>(position_ - missing_.size);
      const size_t rest = std::min(n - done, missing_.bytes.size() - from);
      memcpy(scratch + done, missing_.bytes.data() + from, rest);
      done += rest;
      position_ += rest;
    }
    *result = Slice(scratch, done);
    return IOStatus::OK();
  }
  IOStatus Skip(uint64_t n) override {
    const uint64_t left_in_file =
        missing_.size - std::min(position_, missing_.size);
    const uint64_t in_file = std::min(n, left_in_file);
    if (in_file > 0) {
      const IOStatus s = target()->Skip(in_file);
      if (!s.ok()) {
        return s;
      }
    }
    position_ = std::min(position_ + n, missing_.size + missing_.bytes.size());
    return IOStatus::OK();
  }
  // Only used with direct I/O, with which WALs are not read.
  IOStatus PositionedRead(uint64_t /*offset*/, size_t /*n*/,
                          const IOOptions& /*options*/, Slice* /*result*/,
                          char* /*scratch*/, IODebugContext* /*dbg*/) override {
    return IOStatus::NotSupported("A WAL is read in sequence");
  }

 private:
  const WalBufferRecovery::Missing missing_;
  uint64_t position_ = 0;
};

}  // namespace

bool WalBufferRecovery::IsAmong(const std::vector<std::string>& names) {
  // An Env may give names with a slash before them.
  const std::string with_slash = WalBufferFileName(/*wal_dir=*/"");
  const Slice plain(with_slash.data() + 1, with_slash.size() - 1);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return Slice(name) == plain || name == with_slash;
  });
}

Status WalBufferRecovery::Find(WALRecoveryMode mode, Missing* missing) const {
  *missing = Missing();
  const std::string fname = WalBufferFileName(wal_dir_);
  uint64_t size = 0;
  Status s = fs_->GetFileSize(fname, options_, &size, /*dbg=*/nullptr);
  if (s.IsNotFound() || s.IsPathNotFound()) {
    return Status::OK();
  }
  if (!s.ok()) {
    // Not every file system returns NotFound from GetFileSize().
    const IOStatus exists = fs_->FileExists(fname, options_, /*dbg=*/nullptr);
    return exists.IsNotFound() ? Status::OK() : s;
  }
  if (size > WalBufferFormat::kMaxSize) {
    return Status::Corruption(fname, "is larger than any WAL buffer");
  }
  std::string file(static_cast<size_t>(size), '\0');
  s = ReadAt(fname, /*offset=*/0, &file);
  WalBufferFormat::Contents contents;
  bool is_torn = false;
  if (s.ok()) {
    s = WalBufferFormat::Parse(fname, file, &contents, &is_torn);
  }
  if (s.ok() && !is_torn && !contents.bytes.empty()) {
    s = Find(contents, missing, &is_torn);
  }
  if (s.ok() && is_torn) {
    if (mode == WALRecoveryMode::kAbsoluteConsistency) {
      return Status::Corruption(
          fname, "is damaged or does not continue its WAL, at offset " +
                     std::to_string(WalBufferFormat::kHeaderSize));
    }
    ROCKS_LOG_WARN(info_log_,
                   "WAL buffer %s is damaged or does not continue WAL #%" PRIu64
                   ": none of its bytes is recovered",
                   fname.c_str(), contents.wal_number);
  }
  if (s.ok() && !missing->bytes.empty()) {
    ROCKS_LOG_INFO(info_log_,
                   "WAL buffer %s has the last %" ROCKSDB_PRIszt
                   " bytes of WAL #%" PRIu64 ", from offset %" PRIu64,
                   fname.c_str(), missing->bytes.size(), missing->wal_number,
                   missing->size);
  }
  return s;
}

Status WalBufferRecovery::Find(const WalBufferFormat::Contents& contents,
                               Missing* missing, bool* is_torn) const {
  *missing = Missing();
  *is_torn = false;
  const std::string fname = LogFileName(wal_dir_, contents.wal_number);
  IOStatus s = fs_->FileExists(fname, options_, /*dbg=*/nullptr);
  if (s.IsNotFound()) {
    return Status::OK();  // all entries of the WAL are in table files
  }
  uint64_t size = 0;
  if (s.ok()) {
    s = fs_->GetFileSize(fname, options_, &size, /*dbg=*/nullptr);
  }
  if (!s.ok()) {
    return s;
  }
  const uint64_t end = contents.offset + contents.bytes.size();
  if (size >= end) {
    return Status::OK();
  }
  if (contents.is_torn) {
    *is_torn = true;
    return Status::OK();
  }
  if (size < contents.offset || contents.previous_size > contents.offset) {
    *is_torn = true;  // bytes at the end of the WAL were lost
    return Status::OK();
  }
  std::string bytes(
      static_cast<size_t>(size - contents.offset) + contents.previous_size,
      '\0');
  s = ReadAt(fname, contents.offset - contents.previous_size, &bytes);
  if (!s.ok()) {
    return s;
  }
  const Slice written(bytes.data() + contents.previous_size,
                      bytes.size() - contents.previous_size);
  if (crc32c::Value(bytes.data(), contents.previous_size) !=
          contents.previous_crc ||
      !Slice(contents.bytes).starts_with(written)) {
    *is_torn = true;
    return Status::OK();
  }
  missing->wal_number = contents.wal_number;
  missing->size = size;
  missing->bytes = contents.bytes.substr(written.size());
  return Status::OK();
}

Status WalBufferRecovery::Recover(WALRecoveryMode mode) const {
  Missing missing;
  Status s = Find(mode, &missing);
  if (s.ok() && !missing.bytes.empty()) {
    s = Write(missing);
  }
  return s.ok() ? Remove() : s;
}

Status WalBufferRecovery::RecoverForRepair(
    const std::function<void(const std::string&)>& set_aside) const {
  Status s = Recover(WALRecoveryMode::kPointInTimeRecovery);
  if (s.IsCorruption()) {
    ROCKS_LOG_WARN(info_log_, "%s", s.ToString().c_str());
    set_aside(WalBufferFileName(wal_dir_));
    s = Status::OK();
  }
  return s;
}

Status WalBufferRecovery::Write(const Missing& missing) const {
  FileOptions file_options;
  file_options.io_options = options_;
  std::unique_ptr<FSWritableFile> file;
  IOStatus s =
      fs_->ReopenWritableFile(LogFileName(wal_dir_, missing.wal_number),
                              file_options, &file, /*dbg=*/nullptr);
  TEST_SYNC_POINT_CALLBACK("WalBufferRecovery::Write:Opened", &s);
  if (s.ok()) {
    s = file->Append(missing.bytes, options_, /*dbg=*/nullptr);
  }
  if (s.ok()) {
    s = file->Sync(options_, /*dbg=*/nullptr);
  }
  if (s.ok()) {
    s = file->Close(options_, /*dbg=*/nullptr);
  }
  return s;
}

Status WalBufferRecovery::Remove() const {
  const std::string fname = WalBufferFileName(wal_dir_);
  if (fs_->FileExists(fname, options_, /*dbg=*/nullptr).IsNotFound()) {
    return Status::OK();
  }
  return fs_->DeleteFile(fname, options_, /*dbg=*/nullptr);
}

IOStatus WalBufferRecovery::ReadAt(const std::string& fname, uint64_t offset,
                                   std::string* bytes) const {
  FileOptions file_options;
  file_options.io_options = options_;
  std::unique_ptr<FSRandomAccessFile> file;
  IOStatus s =
      fs_->NewRandomAccessFile(fname, file_options, &file, /*dbg=*/nullptr);
  size_t done = 0;
  while (s.ok() && done < bytes->size()) {
    Slice result;
    char* const scratch = bytes->data() + done;
    s = file->Read(offset + done, bytes->size() - done, options_, &result,
                   scratch, /*dbg=*/nullptr);
    if (s.ok() && result.empty()) {
      return IOStatus::IOError(fname, "is shorter than its size");
    }
    if (s.ok() && result.data() != scratch) {
      memcpy(scratch, result.data(), result.size());
    }
    done += result.size();
  }
  return s;
}

std::unique_ptr<FSSequentialFile> WalBufferRecovery::Append(
    std::unique_ptr<FSSequentialFile>&& wal, const Missing& missing) {
  return std::make_unique<WithMissing>(std::move(wal), missing);
}

}  // namespace ROCKSDB_NAMESPACE
