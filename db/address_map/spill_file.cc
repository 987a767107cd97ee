//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/spill_file.h"

#include <cassert>

#include "util/coding.h"
#include "util/crc32c.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kBlockPrefix = 2 * sizeof(uint32_t);

FileOptions Buffered(FileOptions options) {
  options.use_direct_reads = false;
  options.use_direct_writes = false;
  options.use_mmap_reads = false;
  options.use_mmap_writes = false;
  return options;
}

// Compactions write and read these files. They are also read by other users,
// from threads that do nothing else.
IOOptions SpillIoOptions() {
  IOOptions options;
  options.io_activity = Env::IOActivity::kCompaction;
  return options;
}

// Returns s, which must be an error, with the name of the file. The messages of
// most file systems have it already.
Status WithPath(const Status& s, const std::string& path) {
  const std::string message = MessageOf(s);
  if (message.find(path) != std::string::npos) {
    return s;
  }
  return WithMessage(s, message.empty() ? path : path + ": " + message);
}

// Reads exactly n bytes.
Status ReadFully(const FSRandomAccessFile& file, size_t n,
                 const std::string& path, uint64_t offset,
                 std::string* buffer) {
  buffer->resize(n);
  Slice data;
  const IOStatus s =
      file.Read(offset, n, SpillIoOptions(), &data, buffer->data(), nullptr);
  if (!s.ok()) {
    return s;
  }
  if (data.size() != n) {
    return Status::Corruption(path + " ends at offset " +
                              std::to_string(offset + data.size()));
  }
  if (data.data() != buffer->data()) {
    buffer->assign(data.data(), n);
  }
  return Status::OK();
}

}  // namespace

Status SpillFile::Create(FileSystem* fs, const FileOptions& file_options,
                         const std::string& path,
                         const std::function<void()>& on_deleted,
                         std::unique_ptr<SpillFile>* file) {
  file->reset(new SpillFile(fs, file_options, path, on_deleted));
  Status s = fs->NewWritableFile(path, (*file)->file_options_,
                                 &(*file)->writer_, nullptr);
  if (s.ok()) {
    (*file)->exists_ = true;
    s = fs->NewRandomAccessFile(path, (*file)->file_options_, &(*file)->reader_,
                                nullptr);
  }
  if (!s.ok()) {
    file->reset();
    return WithPath(s, path);
  }
  return s;
}

SpillFile::SpillFile(FileSystem* fs, const FileOptions& file_options,
                     const std::string& path,
                     const std::function<void()>& on_deleted)
    : fs_(fs),
      file_options_(Buffered(file_options)),
      path_(path),
      on_deleted_(on_deleted) {}

SpillFile::~SpillFile() {
  if (writer_ != nullptr) {
    writer_->Close(SpillIoOptions(), nullptr).PermitUncheckedError();
  }
  if (exists_) {
    fs_->DeleteFile(path_, SpillIoOptions(), nullptr).PermitUncheckedError();
  }
  on_deleted_();
}

Status SpillFile::Append(const Slice& block) {
  char prefix[kBlockPrefix];
  EncodeFixed32(prefix, static_cast<uint32_t>(block.size()));
  EncodeFixed32(prefix + sizeof(uint32_t),
                crc32c::Mask(crc32c::Value(block.data(), block.size())));
  Status s =
      writer_->Append(Slice(prefix, kBlockPrefix), SpillIoOptions(), nullptr);
  if (s.ok()) {
    s = writer_->Append(block, SpillIoOptions(), nullptr);
  }
  if (!s.ok()) {
    return WithPath(s, path_);
  }
  size_ += kBlockPrefix + block.size();
  return s;
}

void SpillFile::Finish() {
  if (writer_ != nullptr && writer_->Flush(SpillIoOptions(), nullptr).ok()) {
    // If this fails, so does the next ForEach().
    writer_->Close(SpillIoOptions(), nullptr).PermitUncheckedError();
    writer_.reset();
    reader_.reset();
  }
}

Status SpillFile::ForEach(const std::function<Status(const Slice& block)>& fn) {
  Status s;
  std::unique_ptr<FSRandomAccessFile> reopened;
  if (writer_ != nullptr) {
    s = writer_->Flush(SpillIoOptions(), nullptr);
  } else {
    s = fs_->NewRandomAccessFile(path_, file_options_, &reopened, nullptr);
  }
  const FSRandomAccessFile* const reader =
      writer_ != nullptr ? reader_.get() : reopened.get();
  std::string prefix;
  std::string block;
  for (uint64_t offset = 0; s.ok() && offset < size_;) {
    s = ReadFully(*reader, kBlockPrefix, path_, offset, &prefix);
    if (!s.ok()) {
      break;
    }
    const uint32_t size = DecodeFixed32(prefix.data());
    if (size > size_ - offset - kBlockPrefix) {
      return Status::Corruption(path_ + " has a bad block at offset " +
                                std::to_string(offset));
    }
    block.clear();
    if (size > 0) {
      s = ReadFully(*reader, size, path_, offset + kBlockPrefix, &block);
    }
    if (!s.ok()) {
      break;
    }
    if (crc32c::Unmask(DecodeFixed32(prefix.data() + sizeof(uint32_t))) !=
        crc32c::Value(block.data(), block.size())) {
      return Status::Corruption(path_ + " has a bad block at offset " +
                                std::to_string(offset));
    }
    offset += kBlockPrefix + size;
    s = fn(block);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
