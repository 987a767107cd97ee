//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// Notes the options with which files of one type are created.
//
// Thread-safe.
class CreatedFilesFS : public FileSystemWrapper {
 public:
  // suffix: that of the names of the files, such as ".blob".
  CreatedFilesFS(const std::shared_ptr<FileSystem>& base, std::string suffix)
      : FileSystemWrapper(base), suffix_(std::move(suffix)) {}

  static const char* kClassName() { return "CreatedFilesFS"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    if (Slice(name).ends_with(suffix_)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      created_.push_back(options);
    }
    return FileSystemWrapper::NewWritableFile(name, options, result, dbg);
  }

  // Returns the options of the files that were created since the last call.
  std::vector<FileOptions> TakeCreated() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(created_, {});
  }

 private:
  const std::string suffix_;
  std::mutex mutex_;
  std::vector<FileOptions> created_;
};

}  // namespace ROCKSDB_NAMESPACE
