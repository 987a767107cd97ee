//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// A temporary file for data that a job does not keep in memory: blocks of bytes
// that are appended and then read in the same order. It is never synced, and is
// meaningless to other processes.
//
//    +-----------------+------------------------+-------+
//    | size: 4 bytes   | masked crc32c: 4 bytes | bytes |   for each block
//    +-----------------+------------------------+-------+
//
// Invariant: A file has two descriptors until Finish(), and then one while it
// is read.
//
// An error of Create() or Append() has the code and the flags of the file
// system's, and names the file.
//
// The destructor deletes the file. After a crash, the file is deleted when the
// database is opened, because its name ends in ".dbtmp".
//
// Not thread-safe.
class SpillFile {
 public:
  // on_deleted: called by the destructor after it has deleted the file.
  static Status Create(FileSystem* fs, const FileOptions& file_options,
                       const std::string& path,
                       const std::function<void()>& on_deleted,
                       std::unique_ptr<SpillFile>* file);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // REQUIRES: no Append() or ForEach() has failed; Finish() was not called.
  Status Append(const Slice& block);

  // Closes the file, which may wait for long before it is read. ForEach() opens
  // it then. If the blocks cannot be written, the file stays open and ForEach()
  // returns the error.
  void Finish();

  // Calls fn for each block until fn fails. May be called several times.
  Status ForEach(const std::function<Status(const Slice& block)>& fn);

  uint64_t size() const { return size_; }

 private:
  SpillFile(FileSystem* fs, const FileOptions& file_options,
            const std::string& path, const std::function<void()>& on_deleted);

  FileSystem* const fs_;
  const FileOptions file_options_;
  const std::string path_;
  const std::function<void()> on_deleted_;
  bool exists_ = false;
  std::unique_ptr<FSWritableFile> writer_;  // nullptr after Finish()
  // Opened when the file is created, so that deleting the file by other means
  // does no harm before Finish().
  std::unique_ptr<FSRandomAccessFile> reader_;
  uint64_t size_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
