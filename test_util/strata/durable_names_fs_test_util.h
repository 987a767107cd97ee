//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "file/filename.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Notes SST, blob and delta files whose names were not durable when the
// MANIFEST was written: since the name was made, its directory was not synced.
// After a power failure the file may be missing, and so no edit may name it.
//
// Also notes SST and blob files whose names were not durable when a delta file
// got its name: the delta file may lack operands whose values these files have,
// and a repair uses all delta files that exist.
//
// Thread-safe.
class DurableNamesFS : public FileSystemWrapper {
 public:
  explicit DurableNamesFS(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}
  const char* Name() const override { return "DurableNamesFS"; }

  // Returns the names of these files since the last call. A file of a job that
  // runs beside the writer of the MANIFEST is among them although no edit names
  // it.
  std::set<std::string> TakeEarly() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(early_, {});
  }
  // Returns how many names have become durable since the last call.
  int TakeNumDurable() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(num_durable_, 0);
  }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    IOStatus s = target()->NewWritableFile(name, options, result, dbg);
    if (s.ok()) {
      Add(name);
      if (TypeOf(name) == kDescriptorFile) {
        *result = std::make_unique<Manifest>(std::move(*result), this);
      }
    }
    return s;
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override {
    IOStatus s = target()->NewDirectory(name, options, result, dbg);
    if (s.ok()) {
      *result = std::make_unique<Directory>(std::move(*result), this, name);
    }
    return s;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = target()->RenameFile(from, to, options, dbg);
    if (s.ok()) {
      if (TypeOf(to) == kDeltaFile) {
        OnDeltaName();
      }
      Remove(from);
      Add(to);
    }
    return s;
  }
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = target()->LinkFile(from, to, options, dbg);
    if (s.ok()) {
      Add(to);
    }
    return s;
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override {
    IOStatus s = target()->DeleteFile(name, options, dbg);
    if (s.ok()) {
      Remove(name);
    }
    return s;
  }

 private:
  class Manifest : public FSWritableFileOwnerWrapper {
   public:
    Manifest(std::unique_ptr<FSWritableFile>&& file, DurableNamesFS* fs)
        : FSWritableFileOwnerWrapper(std::move(file)), fs_(fs) {}

    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      fs_->OnEdit();
      return target()->Append(data, options, dbg);
    }
    IOStatus Append(const Slice& data, const IOOptions& options,
                    const DataVerificationInfo& info,
                    IODebugContext* dbg) override {
      fs_->OnEdit();
      return target()->Append(data, options, info, dbg);
    }

   private:
    DurableNamesFS* const fs_;
  };

  class Directory : public FSDirectoryWrapper {
   public:
    Directory(std::unique_ptr<FSDirectory>&& directory, DurableNamesFS* fs,
              const std::string& name)
        : FSDirectoryWrapper(std::move(directory)), fs_(fs), name_(name) {}

    IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
      IOStatus s = FSDirectoryWrapper::Fsync(options, dbg);
      fs_->OnSync(name_);
      return s;
    }
    IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                                 const DirFsyncOptions& reason) override {
      IOStatus s =
          FSDirectoryWrapper::FsyncWithDirOptions(options, dbg, reason);
      fs_->OnSync(name_);
      return s;
    }

   private:
    DurableNamesFS* const fs_;
    const std::string name_;
  };

  static FileType TypeOf(const std::string& name) {
    uint64_t number = 0;
    FileType type = kInfoLogFile;
    return ParseFileName(name.substr(name.rfind('/') + 1), &number, &type)
               ? type
               : kInfoLogFile;
  }

  void Add(const std::string& name) {
    const FileType type = TypeOf(name);
    if (type == kTableFile || type == kBlobFile || type == kDeltaFile) {
      const std::lock_guard<std::mutex> lock(mutex_);
      not_durable_.insert(NormalizePath(name));
    }
  }
  void Remove(const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    not_durable_.erase(NormalizePath(name));
  }
  void OnSync(const std::string& directory) {
    const std::string prefix = NormalizePath(directory + "/");
    const std::lock_guard<std::mutex> lock(mutex_);
    num_durable_ += static_cast<int>(
        std::erase_if(not_durable_, [&prefix](const std::string& name) {
          return name.rfind('/') + 1 == prefix.size() &&
                 name.starts_with(prefix);
        }));
  }
  void OnEdit() {
    const std::lock_guard<std::mutex> lock(mutex_);
    early_.insert(not_durable_.begin(), not_durable_.end());
  }

  void OnDeltaName() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& name : not_durable_) {
      if (TypeOf(name) != kDeltaFile) {
        early_.insert(name);
      }
    }
  }

  std::mutex mutex_;
  // The members below are guarded by mutex_. They have whole paths.
  std::set<std::string> not_durable_;
  std::set<std::string> early_;
  int num_durable_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
