//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class HistoryFaultFS;

// Makes the files and directories of a HistoryFaultFS: each of their operations
// does what the file system decides.
//
// Thread-safe: the class has no state. The files are as thread-safe as those
// that they wrap.
class HistoryFaultFiles {
 public:
  // REQUIRES: *fs outlives the result. This holds for all functions.
  static std::unique_ptr<FSSequentialFile> Wrap(
      std::unique_ptr<FSSequentialFile>&& file, HistoryFaultFS* fs,
      const std::string& path);
  static std::unique_ptr<FSRandomAccessFile> Wrap(
      std::unique_ptr<FSRandomAccessFile>&& file, HistoryFaultFS* fs,
      const std::string& path);
  // size: size of the existing file, in bytes.
  static std::unique_ptr<FSWritableFile> Wrap(
      std::unique_ptr<FSWritableFile>&& file, HistoryFaultFS* fs,
      const std::string& path, uint64_t size);
  static std::unique_ptr<FSDirectory> Wrap(
      std::unique_ptr<FSDirectory>&& directory, HistoryFaultFS* fs,
      const std::string& path);
};

}  // namespace ROCKSDB_NAMESPACE
