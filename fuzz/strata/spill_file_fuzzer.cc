//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Reads a damaged temporary file of spilled names (SpillFile).
//
// The promise: the blocks that are read are those that were written, from the
// first one on, and the status is OK only if all of them were read. Otherwise
// it is Corruption with the name of the file and an offset. With checksums that
// were put right after the damage, the blocks that are read fit into the file.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/spill_file.h"
#include "env/mock_env.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "rocksdb/file_system.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

constexpr size_t kPrefixSize = 8;  // size and checksum of a block
const char kPath[] = "/fuzz/000012.dbtmp";

// A file system whose readers find other bytes than those that were written. A
// SpillFile opens its reader together with the file, so the bytes can only be
// replaced below it.
class ReplacingFileSystem : public FileSystemWrapper {
 public:
  ReplacingFileSystem()
      : FileSystemWrapper(
            std::make_shared<MockFileSystem>(SystemClock::Default())) {}

  const char* Name() const override { return "ReplacingFileSystem"; }

  IOStatus NewRandomAccessFile(const std::string& fname,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    const IOStatus s =
        FileSystemWrapper::NewRandomAccessFile(fname, options, result, dbg);
    if (s.ok()) {
      *result = std::make_unique<Reader>(std::move(*result), &replacement_);
    }
    return s;
  }

  // What all readers find.
  void Replace(const std::string& bytes) { replacement_ = bytes; }

 private:
  class Reader : public FSRandomAccessFileOwnerWrapper {
   public:
    Reader(std::unique_ptr<FSRandomAccessFile> file, const std::string* bytes)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), bytes_(bytes) {}
    IOStatus Read(uint64_t offset, size_t n, const IOOptions& /*options*/,
                  Slice* result, char* scratch,
                  IODebugContext* /*dbg*/) const override {
      const size_t begin =
          static_cast<size_t>(std::min<uint64_t>(offset, bytes_->size()));
      *result = Slice(scratch, bytes_->copy(scratch, n, begin));
      return IOStatus::OK();
    }

   private:
    const std::string* const bytes_;
  };

  std::string replacement_;
};

// Puts the checksums of the blocks right, as far as their sizes make sense.
void Repair(std::string* bytes) {
  for (size_t at = 0; bytes->size() - at >= kPrefixSize;) {
    const size_t size = DecodeFixed32(bytes->data() + at);
    const size_t begin = at + kPrefixSize;
    if (size > bytes->size() - begin) {
      return;
    }
    fuzz::RepairChecksum(begin, begin + size, at + sizeof(uint32_t), bytes);
    at = begin + size;
  }
}

void FuzzSpillFile(FuzzInput* input) {
  static auto* const fs = new ReplacingFileSystem;
  std::unique_ptr<SpillFile> file;
  bool is_deleted = false;
  Require(SpillFile::Create(
              fs, FileOptions(), kPath, [&] { is_deleted = true; }, &file)
              .ok());
  std::vector<std::string> blocks;
  for (int n = input->Byte() % 8; n > 0; --n) {
    blocks.push_back(input->String(100));
    Require(file->Append(blocks.back()).ok());
  }
  std::string intact;
  Require(ReadFileToString(fs->target(), kPath, &intact).ok());
  Require(intact.size() == file->size());

  std::string damaged = intact;
  const bool repaired = input->Byte() % 4 == 0;
  fuzz::Damage(input, /*may_resize=*/true, &damaged);
  // Only this object writes to the file, so it never has more bytes.
  damaged.resize(std::min(damaged.size(), intact.size()));
  if (repaired) {
    Repair(&damaged);
  }
  fs->Replace(damaged);

  size_t num_read = 0;
  size_t bytes_read = 0;
  const Status s = file->ForEach([&](const Slice& block) {
    if (!repaired) {
      Require(num_read < blocks.size());
      Require(block == Slice(blocks[num_read]));
    }
    ++num_read;
    bytes_read += kPrefixSize + block.size();
    Require(bytes_read <= damaged.size());
    return Status::OK();
  });
  if (s.ok()) {
    Require(bytes_read == intact.size());
    Require(repaired || num_read == blocks.size());
  } else {
    Require(damaged != intact);
    Require(s.IsCorruption());
    Require(s.ToString().find(kPath) != std::string::npos);
    Require(s.ToString().find("offset") != std::string::npos);
  }
  // An error of the caller ends the reading.
  fs->Replace(intact);
  const Status refused =
      file->ForEach([](const Slice&) { return Status::Aborted(); });
  Require(blocks.empty() ? refused.ok() : refused.IsAborted());
  file.reset();
  Require(is_deleted);
  Require(fs->FileExists(kPath, IOOptions(), nullptr).IsNotFound());
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(spill_file, ROCKSDB_NAMESPACE::FuzzSpillFile)
