//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileChecksumGenerator;
class FileChecksumGenFactory;
class FileSystem;
class RateLimiter;

// Copies files that must not be damaged on the way, such as files of a database
// whose originals are deleted afterwards.
//
// Not thread-safe.
class CheckedFileCopy {
 public:
  // The size and the checksum that the source should have.
  struct Expected {
    uint64_t size = 0;  // bytes
    // Empty: unknown.
    std::string checksum;
    std::string checksum_func_name;
  };

  // fs: of both files.
  // factory: makes the functions of checksums; nullptr, and functions that it
  //     does not know, stand for RocksDB's crc32c.
  // limiter: limits the bytes that Copy() writes; nullptr: there is no limit.
  // verifies: whether Copy() reads the copy once more.
  // REQUIRES: *fs, *limiter live longer.
  CheckedFileCopy(FileSystem* fs,
                  std::shared_ptr<FileChecksumGenFactory> factory,
                  RateLimiter* limiter, bool verifies);

  // Copies a file to one that does not exist, or is overwritten, and syncs the
  // copy, but not its directory. Returns Corruption, which names the file, if
  // the source has another size or another checksum than expected, or, with
  // `verifies`, if the copy has other bytes. After an error there is no copy.
  // Without `verifies` only the size is compared.
  // on_bytes: is called for each part that was copied, with its bytes.
  Status Copy(const std::string& from, const std::string& to,
              const Expected& expected,
              const std::function<void(uint64_t)>& on_bytes);

  // Returns how many copied files have a checksum that Copy() should have
  // compared, but whose function the factory does not know.
  uint64_t num_unchecked() const { return num_unchecked_; }
  // Returns the name of such a function.
  const std::string& unknown_function() const { return unknown_function_; }

  // Returns Corruption, which names both files, if they have different bytes.
  Status Compare(const std::string& a, const std::string& b);

 private:
  using OnPart = std::function<Status(const char* data, size_t size)>;

  // Calls on_part for all parts of the file, and computes its checksum.
  Status Read(const std::string& fname, const OnPart& on_part,
              FileChecksumGenerator* generator, uint64_t* size) const;
  Status Write(const std::string& from, const std::string& to,
               const std::function<void(uint64_t)>& on_bytes,
               FileChecksumGenerator* generator, uint64_t* size);
  Status CopyAndCheck(const std::string& from, const std::string& to,
                      const Expected& expected,
                      const std::function<void(uint64_t)>& on_bytes);
  std::unique_ptr<FileChecksumGenerator> MakeGenerator(
      const std::string& fname, const std::string& func_name) const;
  void WaitForLimiter(size_t size);

  FileSystem* const fs_;
  const std::shared_ptr<FileChecksumGenFactory> factory_;
  RateLimiter* const limiter_;
  const bool verifies_;
  uint64_t num_unchecked_ = 0;
  std::string unknown_function_;
};

}  // namespace ROCKSDB_NAMESPACE
