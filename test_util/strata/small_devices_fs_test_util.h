//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "port/port.h"
#include "rocksdb/file_system.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

// A file system in which directories are on devices with few free bytes. What
// is appended to a file there uses free bytes up, and a deleted file gives its
// own back. An append that finds too few fails as on a full device: with
// NoSpace and the name of the file. All other directories are as in the file
// system below.
//
// Thread-safe.
class SmallDevicesFS : public FileSystemWrapper {
 public:
  explicit SmallDevicesFS(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}

  static const char* kClassName() { return "SmallDevicesFS"; }
  const char* Name() const override { return kClassName(); }

  // Puts the directories on a device of their own. REQUIRES: they have no
  // files; none of them is inside another one, or ends with a slash.
  void AddDevice(const std::vector<std::string>& directories, uint64_t free) {
    MutexLock lock(&mutex_);
    devices_.push_back({directories, free});
  }
  // Sets the free bytes of the device of the directory.
  void SetFree(const std::string& directory, uint64_t free) {
    MutexLock lock(&mutex_);
    Find(directory)->free = free;
  }
  uint64_t Free(const std::string& directory) {
    MutexLock lock(&mutex_);
    return Find(directory)->free;
  }
  // Returns the number of files that were created on the device, and of appends
  // that have found no space there.
  int NumCreated(const std::string& directory) {
    MutexLock lock(&mutex_);
    return Find(directory)->num_created;
  }
  int NumRefused(const std::string& directory) {
    MutexLock lock(&mutex_);
    return Find(directory)->num_refused;
  }

  IOStatus GetFreeSpace(const std::string& path, const IOOptions& options,
                        uint64_t* disk_free, IODebugContext* dbg) override {
    if (!tells_free_space) {
      return IOStatus::NotSupported("GetFreeSpace");
    }
    {
      MutexLock lock(&mutex_);
      if (const Device* const device = Find(path); device != nullptr) {
        *disk_free = device->free;
        return IOStatus::OK();
      }
    }
    return FileSystemWrapper::GetFreeSpace(path, options, disk_free, dbg);
  }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    IOStatus s = FileSystemWrapper::NewWritableFile(name, options, result, dbg);
    MutexLock lock(&mutex_);
    if (Device* const device = Find(name); s.ok() && device != nullptr) {
      ++device->num_created;
      *result = std::make_unique<File>(std::move(*result), name, this, device);
    }
    return s;
  }

  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override {
    uint64_t size = 0;
    if (!GetFileSize(name, options, &size, dbg).ok()) {
      size = 0;
    }
    IOStatus s = FileSystemWrapper::DeleteFile(name, options, dbg);
    MutexLock lock(&mutex_);
    if (Device* const device = Find(name); s.ok() && device != nullptr) {
      device->free += size;
    }
    return s;
  }

  // If false, GetFreeSpace() is NotSupported.
  std::atomic<bool> tells_free_space{true};

 private:
  struct Device {
    std::vector<std::string> directories;
    uint64_t free;
    int num_created = 0;
    int num_refused = 0;
  };

  class File : public FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSWritableFile>&& file, std::string name,
         SmallDevicesFS* fs, Device* device)
        : FSWritableFileOwnerWrapper(std::move(file)),
          name_(std::move(name)),
          fs_(fs),
          device_(device) {}

    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      IOStatus s = fs_->Take(device_, data.size(), name_);
      return s.ok() ? target()->Append(data, options, dbg) : s;
    }
    IOStatus Append(const Slice& data, const IOOptions& options,
                    const DataVerificationInfo& verification_info,
                    IODebugContext* dbg) override {
      IOStatus s = fs_->Take(device_, data.size(), name_);
      return s.ok() ? target()->Append(data, options, verification_info, dbg)
                    : s;
    }

   private:
    const std::string name_;
    SmallDevicesFS* const fs_;
    Device* const device_;
  };

  IOStatus Take(Device* device, uint64_t bytes, const std::string& name) {
    MutexLock lock(&mutex_);
    if (device->free < bytes) {
      ++device->num_refused;
      return IOStatus::NoSpace("No space left on device: While appending to",
                               name);
    }
    device->free -= bytes;
    return IOStatus::OK();
  }

  // Returns the device of a file or directory; nullptr if it is on none.
  // REQUIRES: mutex_ is held
  Device* Find(const std::string& path) {
    for (Device& device : devices_) {
      for (const std::string& directory : device.directories) {
        if (path == directory || path.starts_with(directory + "/")) {
          return &device;
        }
      }
    }
    return nullptr;
  }

  port::Mutex mutex_;
  std::list<Device> devices_;  // guarded by mutex_
};

}  // namespace ROCKSDB_NAMESPACE
