//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "port/port.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rocksdb_namespace.h"
#include "util/coding.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

// A file system in which the device below a directory can fail as a whole, and
// come back, as the same mount or as another one. The errors and their messages
// are those of RocksDB's file system for the errors of Linux; they are not
// retryable. Open files fail, too.
//
// A sync that fails leaves the data as it is.
//
// Thread-safe.
class FailingDevicesFS : public FileSystemWrapper {
 public:
  enum class Fault {
    kNone,
    kReadOnly,  // All changes fail with EROFS.
    kLost,      // All operations fail with EIO.
    kMissing,   // The same with ENOENT, and the directory does not exist.
    kFull,      // Writes to files fail with ENOSPC, and no bytes are free.
  };
  // What handles from before MountAnother() do from then on, as those of a
  // mount that is gone.
  enum class Earlier {
    kLost,      // All operations fail with EIO.
    kReadOnly,  // Reads work. Changes of files fail with EROFS, while syncs of
                // directories do nothing, and return OK.
  };

  // note: stands in all messages, in brackets, unless it is empty.
  explicit FailingDevicesFS(const std::shared_ptr<FileSystem>& base,
                            const std::string& note = "")
      : FileSystemWrapper(base), note_(note.empty() ? "" : " (" + note + ")") {}

  static const char* kClassName() { return "FailingDevicesFS"; }
  const char* Name() const override { return kClassName(); }

  // Makes the device of the directory fail from now on, or, with kNone, work
  // again. REQUIRES: the name does not end with a slash. Devices inside each
  // other may have different faults, and the inner one counts.
  void SetFault(const std::string& directory, Fault fault) {
    MutexLock lock(&mutex_);
    devices_[directory].fault = fault;
  }
  // Makes the device of the directory work from now on, but as another mount,
  // with the same files. REQUIRES: as for SetFault()
  void MountAnother(const std::string& directory, Earlier earlier) {
    MutexLock lock(&mutex_);
    Device& device = devices_[directory];
    device.fault = Fault::kNone;
    device.earlier = earlier;
    ++device.generation;
  }
  // Lets FSDirectory::GetUniqueId() of handles return an id, as it does at
  // first, or none.
  void SetKnowsIds(bool knows_ids) {
    MutexLock lock(&mutex_);
    knows_ids_ = knows_ids;
  }
  // Makes all devices work.
  void ClearFaults() {
    MutexLock lock(&mutex_);
    for (auto& [directory, device] : devices_) {
      device.fault = Fault::kNone;
    }
  }
  // Returns true if a device does not work.
  bool HasFaults() {
    MutexLock lock(&mutex_);
    return std::any_of(devices_.begin(), devices_.end(), [](const auto& item) {
      return item.second.fault != Fault::kNone;
    });
  }
  // Returns the number of operations of the device that have failed.
  // REQUIRES: SetFault() was called for the directory
  uint64_t NumFailed(const std::string& directory) {
    MutexLock lock(&mutex_);
    return devices_.at(directory).num_failed;
  }

  // Returns what the operation on the file or directory must return instead of
  // being done.
  // what: what it does, as messages say it.
  // generation: GenerationOf() at the time when the handle was opened; none:
  //     the operation has no handle.
  IOStatus CheckRead(const std::string& name, const char* what,
                     std::optional<uint64_t> generation = std::nullopt) {
    return Check(name, what, Access::kRead, generation);
  }
  IOStatus CheckChange(const std::string& name, const char* what,
                       std::optional<uint64_t> generation = std::nullopt) {
    return Check(name, what, Access::kChange, generation);
  }
  IOStatus CheckAppend(const std::string& name,
                       std::optional<uint64_t> generation = std::nullopt) {
    return Check(name, "While appending to file", Access::kAppend, generation);
  }

  // Returns how often MountAnother() was called for the device of the file or
  // directory.
  uint64_t GenerationOf(const std::string& name) {
    MutexLock lock(&mutex_);
    const Device* const device = Find(name);
    return device == nullptr ? 0 : device->generation;
  }

  IOStatus NewSequentialFile(const std::string& name,
                             const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* result,
                             IODebugContext* dbg) override {
    IOStatus s = CheckRead(name, "While opening a file for sequentially read");
    if (s.ok()) {
      s = target()->NewSequentialFile(name, options, result, dbg);
    }
    if (s.ok()) {
      *result =
          std::make_unique<SequentialFile>(std::move(*result), name, this);
    }
    return s;
  }

  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    IOStatus s = CheckRead(name, "While open a file for random read");
    if (s.ok()) {
      s = target()->NewRandomAccessFile(name, options, result, dbg);
    }
    if (s.ok()) {
      *result =
          std::make_unique<RandomAccessFile>(std::move(*result), name, this);
    }
    return s;
  }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    IOStatus s = CheckChange(name, "While open a file for appending");
    if (s.ok()) {
      s = target()->NewWritableFile(name, options, result, dbg);
    }
    if (s.ok()) {
      *result = std::make_unique<WritableFile>(std::move(*result), name, this);
    }
    return s;
  }

  IOStatus ReopenWritableFile(const std::string& name,
                              const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result,
                              IODebugContext* dbg) override {
    IOStatus s = CheckChange(name, "While open a file for appending");
    if (s.ok()) {
      s = target()->ReopenWritableFile(name, options, result, dbg);
    }
    if (s.ok()) {
      *result = std::make_unique<WritableFile>(std::move(*result), name, this);
    }
    return s;
  }

  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override {
    IOStatus s = CheckRead(name, "While open directory");
    if (s.ok()) {
      s = target()->NewDirectory(name, options, result, dbg);
    }
    if (s.ok()) {
      *result = std::make_unique<Directory>(std::move(*result), name, this);
    }
    return s;
  }

  IOStatus FileExists(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override {
    const IOStatus s = CheckRead(name, "While access");
    return s.ok()               ? target()->FileExists(name, options, dbg)
           : s.IsPathNotFound() ? IOStatus::NotFound()
                                : s;
  }

  IOStatus GetChildren(const std::string& name, const IOOptions& options,
                       std::vector<std::string>* result,
                       IODebugContext* dbg) override {
    const IOStatus s = CheckRead(name, "While opendir");
    return s.ok() ? target()->GetChildren(name, options, result, dbg) : s;
  }

  IOStatus GetFileSize(const std::string& name, const IOOptions& options,
                       uint64_t* size, IODebugContext* dbg) override {
    const IOStatus s = CheckRead(name, "while stat a file for size");
    return s.ok() ? target()->GetFileSize(name, options, size, dbg) : s;
  }

  IOStatus GetFileModificationTime(const std::string& name,
                                   const IOOptions& options, uint64_t* time,
                                   IODebugContext* dbg) override {
    const IOStatus s = CheckRead(name, "while stat a file for mod time");
    return s.ok() ? target()->GetFileModificationTime(name, options, time, dbg)
                  : s;
  }

  IOStatus CreateDirIfMissing(const std::string& name, const IOOptions& options,
                              IODebugContext* dbg) override {
    // mkdir() of a directory that exists is no change.
    const IOStatus s = CheckRead(name, "While mkdir if missing");
    return s.ok() ? target()->CreateDirIfMissing(name, options, dbg) : s;
  }

  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override {
    const IOStatus s = CheckChange(name, "while unlink() file");
    return s.ok() ? target()->DeleteFile(name, options, dbg) : s;
  }

  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = CheckChange(from, "While renaming a file");
    if (s.ok()) {
      s = CheckChange(to, "While renaming a file");
    }
    return s.ok() ? target()->RenameFile(from, to, options, dbg) : s;
  }

  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = CheckChange(from, "while link file");
    if (s.ok()) {
      s = CheckChange(to, "while link file");
    }
    return s.ok() ? target()->LinkFile(from, to, options, dbg) : s;
  }

  IOStatus GetFreeSpace(const std::string& name, const IOOptions& options,
                        uint64_t* free_bytes, IODebugContext* dbg) override {
    const IOStatus s = target()->GetFreeSpace(name, options, free_bytes, dbg);
    MutexLock lock(&mutex_);
    const Device* const device = Find(name);
    if (s.ok() && device != nullptr && device->fault == Fault::kFull) {
      *free_bytes = 0;
    }
    return s;
  }

  IOStatus SyncFile(const std::string& name, const FileOptions& file_options,
                    const IOOptions& options, bool use_fsync,
                    IODebugContext* dbg) override {
    const IOStatus s = CheckChange(name, "While fsync");
    return s.ok()
               ? target()->SyncFile(name, file_options, options, use_fsync, dbg)
               : s;
  }

 private:
  // kAppend is a change, too.
  enum class Access { kRead, kChange, kAppend };

  struct Device {
    Fault fault = Fault::kNone;
    uint64_t num_failed = 0;
    uint64_t generation = 0;
    Earlier earlier = Earlier::kLost;
  };

  class SequentialFile : public FSSequentialFileOwnerWrapper {
   public:
    SequentialFile(std::unique_ptr<FSSequentialFile>&& file, std::string name,
                   FailingDevicesFS* fs)
        : FSSequentialFileOwnerWrapper(std::move(file)),
          name_(std::move(name)),
          fs_(fs),
          generation_(fs->GenerationOf(name_)) {}

    IOStatus Read(size_t n, const IOOptions& options, Slice* result,
                  char* scratch, IODebugContext* dbg) override {
      const IOStatus s =
          fs_->CheckRead(name_, "While reading file sequentially", generation_);
      return s.ok() ? target()->Read(n, options, result, scratch, dbg) : s;
    }

   private:
    const std::string name_;
    FailingDevicesFS* const fs_;
    const uint64_t generation_;
  };

  class RandomAccessFile : public FSRandomAccessFileOwnerWrapper {
   public:
    RandomAccessFile(std::unique_ptr<FSRandomAccessFile>&& file,
                     std::string name, FailingDevicesFS* fs)
        : FSRandomAccessFileOwnerWrapper(std::move(file)),
          name_(std::move(name)),
          fs_(fs),
          generation_(fs->GenerationOf(name_)) {}

    IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                  Slice* result, char* scratch,
                  IODebugContext* dbg) const override {
      const IOStatus s = fs_->CheckRead(name_, "While pread", generation_);
      return s.ok() ? target()->Read(offset, n, options, result, scratch, dbg)
                    : s;
    }
    IOStatus MultiRead(FSReadRequest* requests, size_t num_requests,
                       const IOOptions& options, IODebugContext* dbg) override {
      const IOStatus s = fs_->CheckRead(name_, "While pread", generation_);
      return s.ok() ? target()->MultiRead(requests, num_requests, options, dbg)
                    : s;
    }
    IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options,
                       std::function<void(FSReadRequest&, void*)> callback,
                       void* argument, void** io_handle,
                       IOHandleDeleter* deleter, IODebugContext* dbg) override {
      const IOStatus s = fs_->CheckRead(name_, "While pread", generation_);
      return s.ok() ? target()->ReadAsync(request, options, std::move(callback),
                                          argument, io_handle, deleter, dbg)
                    : s;
    }

   private:
    const std::string name_;
    FailingDevicesFS* const fs_;
    const uint64_t generation_;
  };

  class WritableFile : public FSWritableFileOwnerWrapper {
   public:
    WritableFile(std::unique_ptr<FSWritableFile>&& file, std::string name,
                 FailingDevicesFS* fs)
        : FSWritableFileOwnerWrapper(std::move(file)),
          name_(std::move(name)),
          fs_(fs),
          generation_(fs->GenerationOf(name_)) {}

    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      const IOStatus s = fs_->CheckAppend(name_, generation_);
      return s.ok() ? target()->Append(data, options, dbg) : s;
    }
    IOStatus Append(const Slice& data, const IOOptions& options,
                    const DataVerificationInfo& verification_info,
                    IODebugContext* dbg) override {
      const IOStatus s = fs_->CheckAppend(name_, generation_);
      return s.ok() ? target()->Append(data, options, verification_info, dbg)
                    : s;
    }
    IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                              const IOOptions& options,
                              IODebugContext* dbg) override {
      const IOStatus s = fs_->CheckAppend(name_, generation_);
      return s.ok() ? target()->PositionedAppend(data, offset, options, dbg)
                    : s;
    }
    IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                              const IOOptions& options,
                              const DataVerificationInfo& verification_info,
                              IODebugContext* dbg) override {
      const IOStatus s = fs_->CheckAppend(name_, generation_);
      return s.ok() ? target()->PositionedAppend(data, offset, options,
                                                 verification_info, dbg)
                    : s;
    }
    IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
      const IOStatus s =
          fs_->CheckChange(name_, "While fdatasync", generation_);
      return s.ok() ? target()->Sync(options, dbg) : s;
    }
    IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
      const IOStatus s = fs_->CheckChange(name_, "While fsync", generation_);
      return s.ok() ? target()->Fsync(options, dbg) : s;
    }

   private:
    const std::string name_;
    FailingDevicesFS* const fs_;
    const uint64_t generation_;
  };

  class Directory : public FSDirectoryWrapper {
   public:
    Directory(std::unique_ptr<FSDirectory>&& directory, std::string name,
              FailingDevicesFS* fs)
        : FSDirectoryWrapper(std::move(directory)),
          name_(std::move(name)),
          fs_(fs),
          generation_(fs->GenerationOf(name_)) {}

    IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
      if (fs_->DoesNothing(name_, generation_)) {
        return IOStatus::OK();
      }
      const IOStatus s = fs_->CheckChange(name_, "While fsync", generation_);
      return s.ok() ? FSDirectoryWrapper::Fsync(options, dbg) : s;
    }
    IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                                 const DirFsyncOptions& dir_options) override {
      if (fs_->DoesNothing(name_, generation_)) {
        return IOStatus::OK();
      }
      const IOStatus s = fs_->CheckChange(name_, "While fsync", generation_);
      return s.ok() ? FSDirectoryWrapper::FsyncWithDirOptions(options, dbg,
                                                              dir_options)
                    : s;
    }
    size_t GetUniqueId(char* id, size_t max_size) const override {
      if (!fs_->KnowsIds()) {
        return 0;
      }
      // It is unique among the mounts of one directory in any case.
      const size_t size = FSDirectoryWrapper::GetUniqueId(id, max_size);
      if (max_size - size < sizeof(generation_)) {
        return 0;
      }
      EncodeFixed64(id + size, generation_);
      return size + sizeof(generation_);
    }

   private:
    const std::string name_;
    FailingDevicesFS* const fs_;
    const uint64_t generation_;
  };

  static bool Fails(Fault fault, Access access) {
    switch (fault) {
      case Fault::kNone:
        return false;
      case Fault::kReadOnly:
        return access != Access::kRead;
      case Fault::kFull:
        return access == Access::kAppend;
      default:
        return true;
    }
  }

  // Returns what fails at the device for a handle of the generation.
  static Fault FaultOf(const Device& device,
                       std::optional<uint64_t> generation) {
    if (!generation.has_value() || *generation == device.generation) {
      return device.fault;
    }
    return device.earlier == Earlier::kLost ? Fault::kLost : Fault::kReadOnly;
  }

  // Returns true for a directory of a mount that is gone, and was read-only.
  bool DoesNothing(const std::string& name, uint64_t generation) {
    MutexLock lock(&mutex_);
    const Device* const device = Find(name);
    return device != nullptr && generation != device->generation &&
           device->earlier == Earlier::kReadOnly;
  }
  bool KnowsIds() {
    MutexLock lock(&mutex_);
    return knows_ids_;
  }

  IOStatus Check(const std::string& name, const char* what, Access access,
                 std::optional<uint64_t> generation) {
    MutexLock lock(&mutex_);
    Device* const device = Find(name);
    if (device == nullptr) {
      return IOStatus::OK();
    }
    const Fault fault = FaultOf(*device, generation);
    if (!Fails(fault, access)) {
      return IOStatus::OK();
    }
    ++device->num_failed;
    const std::string message = std::string(what) + ": " + name;
    switch (fault) {
      case Fault::kReadOnly:
        return IOStatus::IOError(message, "Read-only file system" + note_);
      case Fault::kMissing:
        return IOStatus::PathNotFound(message,
                                      "No such file or directory" + note_);
      case Fault::kFull:
        return IOStatus::NoSpace(message, "No space left on device" + note_);
      default:
        return IOStatus::IOError(message, "Input/output error" + note_);
    }
  }

  // Returns the device of a file or directory; nullptr if it is on none.
  // REQUIRES: mutex_ is held
  Device* Find(const std::string& name) {
    Device* found = nullptr;
    size_t length = 0;
    for (auto& [directory, device] : devices_) {
      if (directory.size() > length &&
          (name == directory || name.starts_with(directory + "/"))) {
        found = &device;
        length = directory.size();
      }
    }
    return found;
  }

  const std::string note_;
  port::Mutex mutex_;
  std::map<std::string, Device> devices_;  // guarded by mutex_
  bool knows_ids_ = true;                  // guarded by mutex_
};

}  // namespace ROCKSDB_NAMESPACE
