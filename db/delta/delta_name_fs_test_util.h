//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {
namespace delta_test {

// Records what happens to the names of delta files, and when they are durable.
// Can inject errors.
class DeltaNameFS : public FileSystemWrapper {
 public:
  explicit DeltaNameFS(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}
  const char* Name() const override { return "DeltaNameFS"; }

  // While true, delta files cannot be deleted.
  std::atomic<bool> keeps_delta_files{false};
  // While true, temporary files cannot be deleted.
  std::atomic<bool> keeps_temporary_files{false};
  // While true, files are renamed to delta files, but the caller gets an error.
  std::atomic<bool> denies_renames{false};

  // Returns the events since the last call, without names of directories:
  // "rename <delta file>"; "sync renamed <file>", "sync new", "sync deleted"
  // and "sync all" for a directory; "delete <file>", even if there is no such
  // file; "write MANIFEST".
  std::vector<std::string> TakeEvents() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(events_, {});
  }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    IOStatus s = FileSystemWrapper::NewWritableFile(name, options, result, dbg);
    if (s.ok() && Slice(BaseOf(name)).starts_with("MANIFEST-")) {
      *result = std::make_unique<Manifest>(std::move(*result), this);
    }
    return s;
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override {
    IOStatus s = FileSystemWrapper::NewDirectory(name, options, result, dbg);
    if (s.ok()) {
      *result = std::make_unique<Directory>(std::move(*result), this);
    }
    return s;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = FileSystemWrapper::RenameFile(from, to, options, dbg);
    if (s.ok() && IsDeltaFile(to)) {
      Note("rename " + BaseOf(to));
      if (denies_renames) {
        return IOStatus::IOError("Injected", to);
      }
    }
    return s;
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override {
    Note("delete " + BaseOf(name));
    if ((keeps_delta_files && IsDeltaFile(name)) ||
        (keeps_temporary_files && Slice(name).ends_with(".dbtmp"))) {
      return IOStatus::IOError("Injected", name);
    }
    return FileSystemWrapper::DeleteFile(name, options, dbg);
  }

 private:
  class Manifest : public FSWritableFileOwnerWrapper {
   public:
    Manifest(std::unique_ptr<FSWritableFile>&& file, DeltaNameFS* fs)
        : FSWritableFileOwnerWrapper(std::move(file)), fs_(fs) {}

    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      fs_->Note("write MANIFEST");
      return FSWritableFileOwnerWrapper::Append(data, options, dbg);
    }
    IOStatus Append(const Slice& data, const IOOptions& options,
                    const DataVerificationInfo& info,
                    IODebugContext* dbg) override {
      fs_->Note("write MANIFEST");
      return FSWritableFileOwnerWrapper::Append(data, options, info, dbg);
    }

   private:
    DeltaNameFS* const fs_;
  };

  class Directory : public FSDirectoryWrapper {
   public:
    Directory(std::unique_ptr<FSDirectory>&& directory, DeltaNameFS* fs)
        : FSDirectoryWrapper(std::move(directory)), fs_(fs) {}

    IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
      IOStatus s = FSDirectoryWrapper::Fsync(options, dbg);
      fs_->Note("sync all");
      return s;
    }
    IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                                 const DirFsyncOptions& reason) override {
      IOStatus s =
          FSDirectoryWrapper::FsyncWithDirOptions(options, dbg, reason);
      switch (reason.reason) {
        case DirFsyncOptions::kNewFileSynced:
          fs_->Note("sync new");
          break;
        case DirFsyncOptions::kFileRenamed:
          fs_->Note("sync renamed " + BaseOf(reason.renamed_new_name));
          break;
        case DirFsyncOptions::kFileDeleted:
          fs_->Note("sync deleted");
          break;
        case DirFsyncOptions::kDirRenamed:
        case DirFsyncOptions::kDefault:
          fs_->Note("sync all");
          break;
      }
      return s;
    }

   private:
    DeltaNameFS* const fs_;
  };

  static std::string BaseOf(const std::string& name) {
    return name.substr(name.rfind('/') + 1);
  }
  static bool IsDeltaFile(const std::string& name) {
    return Slice(name).ends_with(".delta");
  }
  void Note(std::string event) {
    std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(std::move(event));
  }

  std::mutex mutex_;
  std::vector<std::string> events_;
};

}  // namespace delta_test
}  // namespace ROCKSDB_NAMESPACE
