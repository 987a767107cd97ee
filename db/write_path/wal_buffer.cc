//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/write_path/wal_buffer.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "db/write_path/wal_buffer_recovery.h"
#include "file/filename.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"
#include "util/coding.h"
#include "util/crc32c.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

//======== WalBuffer::File

// The file of a WAL, which passes appends to the buffer.
class WalBuffer::File final : public FSWritableFileOwnerWrapper {
 public:
  File(WalBuffer* buffer, uint64_t wal_number, const std::string& fname,
       std::unique_ptr<FSWritableFile>&& file)
      : FSWritableFileOwnerWrapper(std::move(file)),
        buffer_(buffer),
        wal_number_(wal_number),
        fname_(fname) {}
  ~File() override { buffer_->Forget(this); }

  using FSWritableFileOwnerWrapper::Append;
  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    return buffer_->Append(this, data, options, /*has_checksum=*/false, dbg);
  }
  // The checksum only covers the bytes in the DB's memory. Write() computes a
  // new one for the bytes that it writes.
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const DataVerificationInfo& /*verification_info*/,
                  IODebugContext* dbg) override {
    return buffer_->Append(this, data, options, /*has_checksum=*/true, dbg);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options,
                    IODebugContext* dbg) override {
    if (size <= size_) {
      return buffer_->Cut(this, size, options, dbg);
    }
    // Direct I/O has written bytes that this object has not counted.
    IOStatus s = buffer_->WriteOut(this, options, dbg);
    if (s.ok()) {
      s = target()->Truncate(size, options, dbg);
    }
    if (s.ok()) {
      written_ = size;
      size_ = size;
      buffer_->Forget(this);
    }
    return s;
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = buffer_->WriteOut(this, options, dbg);
    if (!s.ok()) {
      // No byte can be written to the file after it is closed.
      buffer_->Forget(this);
    }
    const IOStatus close_s = target()->Close(options, dbg);
    if (!s.ok()) {
      close_s.PermitUncheckedError();
      return s;
    }
    return close_s;
  }
  // Flushes nothing: that is done when the buffer writes bytes to the file. But
  // a new WAL is begun after a successful call, and bytes that were dropped
  // must be gone by then.
  IOStatus Flush(const IOOptions& options, IODebugContext* dbg) override {
    return buffer_->cut_file_.load(std::memory_order_relaxed) == this
               ? buffer_->FinishCut(this, options, dbg)
               : IOStatus::OK();
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = buffer_->BeginSync(this, options, dbg);
    if (s.ok()) {
      s = target()->Sync(options, dbg);
      buffer_->EndSync(this);
    }
    return s;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = buffer_->BeginSync(this, options, dbg);
    if (s.ok()) {
      s = target()->Fsync(options, dbg);
      buffer_->EndSync(this);
    }
    return s;
  }
  // A cut does not count this as a sync: it promises nothing, and may come
  // before the older WALs are synced.
  IOStatus RangeSync(uint64_t offset, uint64_t nbytes, const IOOptions& options,
                     IODebugContext* dbg) override {
    const IOStatus s = buffer_->WriteOut(this, options, dbg);
    return s.ok() ? target()->RangeSync(offset, nbytes, options, dbg) : s;
  }
  uint64_t GetFileSize(const IOOptions& /*options*/,
                       IODebugContext* /*dbg*/) override {
    return size_.load(std::memory_order_relaxed);
  }

  IOStatus Write(const Slice& data, const IOOptions& options, bool has_checksum,
                 IODebugContext* dbg) {
    IOStatus s;
    if (data.empty()) {
      // A write that failed has written all of the bytes.
    } else if (has_checksum) {
      std::string checksum(sizeof(uint32_t), '\0');
      EncodeFixed32(checksum.data(), crc32c::Value(data.data(), data.size()));
      DataVerificationInfo info;
      info.checksum = Slice(checksum);
      s = target()->Append(data, options, info, dbg);
    } else {
      s = target()->Append(data, options, dbg);
    }
    if (!s.ok()) {
      return s;
    }
    written_ += data.size();
    return target()->Flush(options, dbg);
  }

  // Writes bytes that bypass the buffer.
  IOStatus WriteAlone(const Slice& data, const IOOptions& options,
                      bool has_checksum, IODebugContext* dbg) {
    const IOStatus s = Write(data, options, has_checksum, dbg);
    does_without_ |= !s.ok();
    return s;
  }

  uint64_t wal_number() const { return wal_number_; }
  const std::string& fname() const { return fname_; }

  // Size of the file, in bytes. Written under the buffer's mutex.
  std::atomic<uint64_t> written_{0};
  // Bytes appended so far. Written only by the appending thread; readers take
  // no lock.
  std::atomic<uint64_t> size_{0};
  // Whether the bytes in the buffer were appended with a checksum.
  bool has_checksum_ = false;
  // Set after a failed write that bypassed the buffer: the file's contents are
  // unknown, so all later appends bypass the buffer, until it is truncated.
  bool does_without_ = false;
  // The members below are guarded by the buffer's mutex.
  // Number of syncs that have begun and not ended.
  int num_syncs_ = 0;
  // Syncs that have ended may have made bytes before this offset durable, but
  // none behind it.
  uint64_t durable_to_ = 0;

 private:
  WalBuffer* const buffer_;
  const uint64_t wal_number_;
  const std::string fname_;
};

//======== WalBuffer

Status WalBuffer::Create(const std::shared_ptr<FileSystem>& fs,
                         const std::string& wal_dir, size_t size,
                         const IOOptions& options, Statistics* statistics,
                         Logger* info_log, std::unique_ptr<WalBuffer>* buffer) {
  const std::string fname = WalBufferFileName(wal_dir);
  // Rounded up to whole pages, so that the last page is entirely in the file.
  size =
      (size + WalBufferFormat::kMinSize - 1) & ~(WalBufferFormat::kMinSize - 1);
  // Nonzero bytes at the end show whether the mapping has the file's contents.
  constexpr char kProbe[] = "probe";
  std::string contents(size, '\0');
  memcpy(contents.data() + size - sizeof(kProbe), kProbe, sizeof(kProbe));
  FileOptions file_options;
  file_options.io_options = options;
  std::unique_ptr<FSWritableFile> file;
  IOStatus s = fs->NewWritableFile(fname, file_options, &file, nullptr);
  if (s.ok()) {
    // Allocates all blocks of the file: if the file system had no space when a
    // page is written, the process would be killed.
    s = file->Append(contents, options, nullptr);
  }
  if (s.ok()) {
    s = file->Sync(options, nullptr);
  }
  if (s.ok()) {
    s = file->Close(options, nullptr);
  }
  if (!s.ok()) {
    return s;
  }
  std::unique_ptr<MemoryMappedFileBuffer> mapping;
  s = fs->NewMemoryMappedFileBuffer(fname, &mapping);
  if (!s.ok() || mapping->GetLen() != size ||
      memcmp(mapping->GetBase(), contents.data(), size) != 0) {
    mapping.reset();
    fs->DeleteFile(fname, options, nullptr).PermitUncheckedError();
    return Status::NotSupported(
        "wal_mmap_buffer_size",
        "the file system " + std::string(fs->Name()) +
            " does not map files to memory as they are" +
            (s.ok() ? "" : ": " + s.ToString()));
  }
  memset(static_cast<char*>(mapping->GetBase()) + size - sizeof(kProbe), 0,
         sizeof(kProbe));
  buffer->reset(
      new WalBuffer(fs, wal_dir, std::move(mapping), statistics, info_log));
  ROCKS_LOG_INFO(info_log, "WAL buffer %s has %" ROCKSDB_PRIszt " bytes",
                 fname.c_str(), size);
  return Status::OK();
}

WalBuffer::WalBuffer(const std::shared_ptr<FileSystem>& fs,
                     const std::string& wal_dir,
                     std::unique_ptr<MemoryMappedFileBuffer>&& mapping,
                     Statistics* statistics, Logger* info_log)
    : fs_(fs),
      wal_dir_(wal_dir),
      fname_(WalBufferFileName(wal_dir)),
      statistics_(statistics),
      info_log_(info_log),
      mapping_(std::move(mapping)),
      format_(static_cast<char*>(mapping_->GetBase()), mapping_->GetLen()) {}

WalBuffer::~WalBuffer() { assert(owner_ == nullptr); }

std::unique_ptr<FSWritableFile> WalBuffer::Wrap(
    uint64_t wal_number, const std::string& fname,
    std::unique_ptr<FSWritableFile>&& file) {
  return std::make_unique<File>(this, wal_number, fname, std::move(file));
}

IOStatus WalBuffer::WriteOut(const IOOptions& options) {
  MutexLock lock(&mutex_);
  return WriteOutLocked(options, /*dbg=*/nullptr);
}

bool WalBuffer::Remove() {
  MutexLock lock(&mutex_);
  if (is_stuck_) {
    return false;
  }
  assert(format_.bytes().empty());
  const IOStatus s = fs_->DeleteFile(fname_, IOOptions(), /*dbg=*/nullptr);
  if (!s.ok()) {
    ROCKS_LOG_WARN(info_log_, "WAL buffer %s was not deleted: %s",
                   fname_.c_str(), s.ToString().c_str());
  }
  return s.ok();
}

IOStatus WalBuffer::Append(File* file, const Slice& data,
                           const IOOptions& options, bool has_checksum,
                           IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  const IOStatus s = AppendLocked(file, data, options, has_checksum, dbg);
  if (s.ok()) {
    file->size_.store(file->size_.load(std::memory_order_relaxed) + data.size(),
                      std::memory_order_relaxed);
  }
  return s;
}

IOStatus WalBuffer::AppendLocked(File* file, const Slice& data,
                                 const IOOptions& options, bool has_checksum,
                                 IODebugContext* dbg) {
  mutex_.AssertHeld();
  if (cut_file_.load(std::memory_order_relaxed) != nullptr) {
    const IOStatus s = FinishCutLocked(options, dbg);
    if (!s.ok()) {
      return s;
    }
  }
  if (owner_ != file) {
    // Bytes of an older WAL are written out before anything is appended to a
    // newer one.
    if (file->does_without_ || is_stuck_ ||
        !WriteOutLocked(options, dbg).ok()) {
      return file->WriteAlone(data, options, has_checksum, dbg);
    }
    // After a loss of power, older WALs may lack bytes at their ends. This WAL
    // must not have more bytes then than it would have without a buffer. So its
    // first bytes go to the file: nothing of it is recovered while the file is
    // empty.
    return WriteAndStart(file, data, options, has_checksum, dbg);
  }
  if (data.size() > format_.room() || has_failed_ ||
      has_checksum != file->has_checksum_) {
    const IOStatus s = WriteOutLocked(options, dbg);
    if (!s.ok()) {
      return s;
    }
    file->has_checksum_ = has_checksum;
  }
  if (data.size() > format_.room()) {
    return WriteAndStart(file, data, options, has_checksum, dbg);
  }
  format_.Append(data);
  return IOStatus::OK();
}

IOStatus WalBuffer::WriteAndStart(File* file, const Slice& data,
                                  const IOOptions& options, bool has_checksum,
                                  IODebugContext* dbg) {
  mutex_.AssertHeld();
  assert(!is_stuck_ && !has_failed_ && format_.bytes().empty());
  const IOStatus s = file->WriteAlone(data, options, has_checksum, dbg);
  owner_ = s.ok() ? file : nullptr;
  if (s.ok()) {
    format_.Start(file->wal_number(), file->written_, data);
  }
  return s;
}

IOStatus WalBuffer::WriteOut(File* file, const IOOptions& options,
                             IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  return WriteOutLocked(file, options, dbg);
}

IOStatus WalBuffer::BeginSync(File* file, const IOOptions& options,
                              IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  const IOStatus s = WriteOutLocked(file, options, dbg);
  if (s.ok()) {
    ++file->num_syncs_;
  }
  return s;
}

void WalBuffer::EndSync(File* file) {
  MutexLock lock(&mutex_);
  assert(file->num_syncs_ > 0);
  --file->num_syncs_;
  // A failed write may have written bytes that the file has not counted.
  const bool has_more = file->does_without_ || cut_file_ == file ||
                        (owner_ == file && has_failed_);
  file->durable_to_ =
      has_more ? UINT64_MAX
               : std::max<uint64_t>(file->durable_to_, file->written_);
}

IOStatus WalBuffer::WriteOutLocked(File* file, const IOOptions& options,
                                   IODebugContext* dbg) {
  mutex_.AssertHeld();
  if (owner_ == file) {
    return WriteOutLocked(options, dbg);
  }
  return cut_file_ == file ? FinishCutLocked(options, dbg) : IOStatus::OK();
}

IOStatus WalBuffer::Cut(File* file, uint64_t size, const IOOptions& options,
                        IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  if (cut_file_ != file) {
    // This file has got nothing since that one was to be truncated.
    const IOStatus s = FinishCutLocked(options, dbg);
    if (!s.ok()) {
      return s;
    }
  }
  Drop(file, size);
  return FinishCutLocked(options, dbg);
}

void WalBuffer::Drop(File* file, uint64_t size) {
  mutex_.AssertHeld();
  assert(size <= file->size_);
  const bool is_owner = owner_ == file;
  // A failed write of the buffer may have written any of its bytes.
  const bool is_in_file = file->does_without_ || file->written_ > size ||
                          (is_owner && has_failed_ && file->size_ > size);
  // The buffer keeps all bytes from its offset on that are not dropped, so the
  // file does not need them.
  const bool is_from_buffer = is_owner && format_.offset() <= size;
  if (is_from_buffer) {
    format_.Cut(static_cast<size_t>(size - format_.offset()));
  } else if (is_owner) {
    format_.Cut(0);
    owner_ = nullptr;
    has_failed_ = false;
  }
  file->size_.store(size, std::memory_order_relaxed);
  if (is_in_file) {
    assert(cut_file_ == nullptr || cut_file_ == file);
    cut_file_ = file;
    cut_to_ = is_from_buffer ? format_.offset() : size;
  }
}

IOStatus WalBuffer::FinishCut(const IOOptions& options) {
  if (cut_file_.load(std::memory_order_relaxed) == nullptr) {
    return IOStatus::OK();
  }
  MutexLock lock(&mutex_);
  return FinishCutLocked(options, /*dbg=*/nullptr);
}

IOStatus WalBuffer::FinishCut(File* file, const IOOptions& options,
                              IODebugContext* dbg) {
  MutexLock lock(&mutex_);
  return cut_file_ == file ? FinishCutLocked(options, dbg) : IOStatus::OK();
}

IOStatus WalBuffer::FinishCutLocked(const IOOptions& options,
                                    IODebugContext* dbg) {
  mutex_.AssertHeld();
  File* const file = cut_file_;
  if (file == nullptr) {
    return IOStatus::OK();
  }
  IOStatus s = file->target()->Truncate(cut_to_, options, dbg);
  if (s.ok() && (file->num_syncs_ > 0 || file->durable_to_ > cut_to_)) {
    // Dropped bytes that were synced must not come back after a loss of power.
    // If none were, a sync would do harm: it would make the bytes before them
    // durable, while those of older WALs may not be.
    s = file->target()->Sync(options, dbg);
  }
  if (!s.ok()) {
    ROCKS_LOG_ERROR(info_log_,
                    "WAL buffer %s: %s may have bytes of a failed write behind "
                    "offset %" PRIu64 " and could not be truncated: %s",
                    fname_.c_str(), file->fname().c_str(), cut_to_,
                    s.ToString().c_str());
    return s;
  }
  ROCKS_LOG_INFO(info_log_,
                 "WAL buffer %s: %s was truncated to %" PRIu64
                 " bytes after a failed write",
                 fname_.c_str(), file->fname().c_str(), cut_to_);
  file->written_ = cut_to_;
  file->durable_to_ = std::min(file->durable_to_, cut_to_);
  file->does_without_ = false;
  if (owner_ == file) {
    has_failed_ = false;
  }
  cut_file_ = nullptr;
  return s;
}

void WalBuffer::Forget(File* file) {
  MutexLock lock(&mutex_);
  if (cut_file_ == file) {
    ROCKS_LOG_WARN(info_log_,
                   "WAL buffer %s: %s may keep bytes of a failed write behind "
                   "offset %" PRIu64,
                   fname_.c_str(), file->fname().c_str(), cut_to_);
    cut_file_ = nullptr;
  }
  if (owner_ != file) {
    return;
  }
  if (!format_.bytes().empty()) {
    // Close() has failed or was not called. The next open of the DB recovers
    // the bytes.
    is_stuck_ = true;
    ROCKS_LOG_WARN(info_log_,
                   "WAL buffer %s keeps %" ROCKSDB_PRIszt
                   " bytes of %s, which could not be written",
                   fname_.c_str(), format_.bytes().size(),
                   file->fname().c_str());
  }
  owner_ = nullptr;
  has_failed_ = false;
}

IOStatus WalBuffer::WriteOutLocked(const IOOptions& options,
                                   IODebugContext* dbg) {
  mutex_.AssertHeld();
  IOStatus s = FinishCutLocked(options, dbg);
  if (!s.ok() || format_.bytes().empty()) {
    return s;
  }
  if (is_stuck_) {
    return WriteOutStuck(options);
  }
  assert(owner_ != nullptr);
  size_t written = 0;
  if (has_failed_) {
    s = FindWritten(options, dbg, &written);
    if (s.ok()) {
      // The file object has not counted the bytes of a failed write, and would
      // cut them off when it is closed.
      s = owner_->target()->Truncate(format_.offset() + written, options, dbg);
    }
  }
  Slice rest = format_.bytes();
  rest.remove_prefix(written);
  if (s.ok()) {
    owner_->written_ = format_.offset() + written;
    TEST_SYNC_POINT("WalBuffer::WriteOutLocked:Before");
    s = owner_->Write(rest, options, owner_->has_checksum_, dbg);
  }
  has_failed_ = !s.ok();
  if (has_failed_) {
    ROCKS_LOG_ERROR(info_log_,
                    "WAL buffer %s: %" ROCKSDB_PRIszt
                    " bytes were not written to %s: %s",
                    fname_.c_str(), rest.size(), owner_->fname().c_str(),
                    s.ToString().c_str());
    return s;
  }
  TEST_SYNC_POINT("WalBuffer::WriteOutLocked:Written");
  RecordTick(statistics_, WAL_BUFFER_WRITES);
  format_.Advance();
  return s;
}

IOStatus WalBuffer::WriteOutStuck(const IOOptions& options) {
  WalBufferFormat::Contents contents;
  bool is_torn = false;
  Status s = WalBufferFormat::Parse(
      fname_,
      Slice(static_cast<const char*>(mapping_->GetBase()), mapping_->GetLen()),
      &contents, &is_torn);
  const WalBufferRecovery recovery(fs_.get(), wal_dir_, options, info_log_);
  WalBufferRecovery::Missing missing;
  if (s.ok() && !is_torn) {
    s = recovery.Find(contents, &missing, &is_torn);
  }
  if (s.ok() && is_torn) {
    s = Status::IOError(fname_, "has bytes that do not continue their WAL");
  }
  if (s.ok() && !missing.bytes.empty()) {
    s = recovery.Write(missing);
  }
  if (s.ok()) {
    RecordTick(statistics_, WAL_BUFFER_WRITES);
    is_stuck_ = false;
    format_.Advance();
  }
  return status_to_io_status(std::move(s));
}

IOStatus WalBuffer::FindWritten(const IOOptions& options, IODebugContext* dbg,
                                size_t* written) const {
  uint64_t size = 0;
  IOStatus s = fs_->GetFileSize(owner_->fname(), options, &size, dbg);
  if (s.ok() && (size < format_.offset() ||
                 size - format_.offset() > format_.bytes().size())) {
    s = IOStatus::IOError(owner_->fname(),
                          "has an unexpected size after a failed write");
  }
  if (s.ok()) {
    *written = static_cast<size_t>(size - format_.offset());
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
