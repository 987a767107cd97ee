//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/checked_file_copy.h"

#include <algorithm>
#include <utility>

#include "rocksdb/file_checksum.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rate_limiter.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Bytes that are read at once.
constexpr size_t kPartBytes = 1 << 20;

std::string SizeText(uint64_t size) { return std::to_string(size) + " bytes"; }

}  // namespace

CheckedFileCopy::CheckedFileCopy(
    FileSystem* fs, std::shared_ptr<FileChecksumGenFactory> factory,
    RateLimiter* limiter, bool verifies)
    : fs_(fs),
      factory_(std::move(factory)),
      limiter_(limiter),
      verifies_(verifies) {}

std::unique_ptr<FileChecksumGenerator> CheckedFileCopy::MakeGenerator(
    const std::string& fname, const std::string& func_name) const {
  FileChecksumGenContext context;
  context.file_name = fname;
  context.requested_checksum_func_name = func_name;
  std::unique_ptr<FileChecksumGenerator> generator;
  if (!func_name.empty() && factory_ != nullptr) {
    generator = factory_->CreateFileChecksumGenerator(context);
    // A factory may ignore the name.
    if (generator != nullptr && generator->Name() != func_name) {
      generator.reset();
    }
  }
  if (generator == nullptr) {
    context.requested_checksum_func_name.clear();
    generator =
        GetFileChecksumGenCrc32cFactory()->CreateFileChecksumGenerator(context);
  }
  return generator;
}

void CheckedFileCopy::WaitForLimiter(size_t size) {
  int64_t left = limiter_ == nullptr ? 0 : static_cast<int64_t>(size);
  while (left > 0) {
    const int64_t request = std::min(left, limiter_->GetSingleBurstBytes());
    limiter_->Request(request, Env::IO_LOW, /*stats=*/nullptr,
                      RateLimiter::OpType::kWrite);
    left -= request;
  }
}

Status CheckedFileCopy::Read(const std::string& fname, const OnPart& on_part,
                             FileChecksumGenerator* generator,
                             uint64_t* size) const {
  *size = 0;
  FileOptions options;
  options.use_mmap_reads = false;
  std::unique_ptr<FSSequentialFile> file;
  Status s = fs_->NewSequentialFile(fname, options, &file, nullptr);
  const auto buffer = std::make_unique<char[]>(kPartBytes);
  while (s.ok()) {
    Slice part;
    s = file->Read(kPartBytes, IOOptions(), &part, buffer.get(), nullptr);
    if (!s.ok() || part.empty()) {
      break;
    }
    *size += part.size();
    generator->Update(part.data(), part.size());
    s = on_part(part.data(), part.size());
  }
  generator->Finalize();
  return s;
}

Status CheckedFileCopy::Write(const std::string& from, const std::string& to,
                              const std::function<void(uint64_t)>& on_bytes,
                              FileChecksumGenerator* generator,
                              uint64_t* size) {
  FileOptions options;
  options.use_mmap_writes = false;
  std::unique_ptr<FSWritableFile> copy;
  Status s = fs_->NewWritableFile(to, options, &copy, nullptr);
  if (!s.ok()) {
    return s;
  }
  s = Read(
      from,
      [&](const char* data, size_t part_size) -> Status {
        WaitForLimiter(part_size);
        const IOStatus appended =
            copy->Append(Slice(data, part_size), IOOptions(), nullptr);
        if (appended.ok()) {
          on_bytes(part_size);
        }
        return appended;
      },
      generator, size);
  if (s.ok()) {
    s = copy->Sync(IOOptions(), nullptr);
  }
  const Status closed = copy->Close(IOOptions(), nullptr);
  if (s.ok()) {
    s = closed;
  } else {
    closed.PermitUncheckedError();
  }
  return s;
}

Status CheckedFileCopy::CopyAndCheck(
    const std::string& from, const std::string& to, const Expected& expected,
    const std::function<void(uint64_t)>& on_bytes) {
  const auto generator = MakeGenerator(from, expected.checksum_func_name);
  uint64_t size = 0;
  Status s = Write(from, to, on_bytes, generator.get(), &size);
  if (s.ok() && size != expected.size) {
    s = Status::Corruption(from, "has " + SizeText(size) + " instead of " +
                                     SizeText(expected.size));
  }
  if (!s.ok() || !verifies_) {
    return s;
  }
  const std::string checksum = generator->GetChecksum();
  if (!expected.checksum.empty()) {
    if (expected.checksum_func_name != generator->Name()) {
      ++num_unchecked_;
      unknown_function_ = expected.checksum_func_name;
    } else if (expected.checksum != checksum) {
      return Status::Corruption(from,
                                "does not have the checksum that the "
                                "MANIFEST has of it");
    }
  }
  const auto of_copy = MakeGenerator(to, expected.checksum_func_name);
  uint64_t size_of_copy = 0;
  s = Read(
      to, [](const char*, size_t) { return Status::OK(); }, of_copy.get(),
      &size_of_copy);
  if (s.ok() && (size_of_copy != size || of_copy->GetChecksum() != checksum)) {
    s = Status::Corruption(to, "has other bytes than were written to it");
  }
  return s;
}

Status CheckedFileCopy::Copy(const std::string& from, const std::string& to,
                             const Expected& expected,
                             const std::function<void(uint64_t)>& on_bytes) {
  const Status s = CopyAndCheck(from, to, expected, on_bytes);
  if (!s.ok()) {
    fs_->DeleteFile(to, IOOptions(), nullptr).PermitUncheckedError();
  }
  return s;
}

Status CheckedFileCopy::Compare(const std::string& a, const std::string& b) {
  std::string checksums[2];
  uint64_t sizes[2] = {0, 0};
  const std::string* const names[2] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    const auto generator = MakeGenerator(*names[i], /*func_name=*/"");
    const Status s = Read(
        *names[i], [](const char*, size_t) { return Status::OK(); },
        generator.get(), &sizes[i]);
    if (!s.ok()) {
      return s;
    }
    checksums[i] = generator->GetChecksum();
  }
  return sizes[0] == sizes[1] && checksums[0] == checksums[1]
             ? Status::OK()
             : Status::Corruption(a, "has other bytes than " + b);
}

}  // namespace ROCKSDB_NAMESPACE
