//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "file/filename.h"
#include "rocksdb/listener.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Lists the files of which listeners were told that they were created, and not
// that they were deleted.
//
// Thread-safe.
class ListedFiles : public EventListener {
 public:
  void OnTableFileCreated(const TableFileCreationInfo& info) override {
    OnCreated(info.status, info.file_path);
  }
  void OnTableFileDeleted(const TableFileDeletionInfo& info) override {
    OnDeleted(info.status, info.file_path);
  }
  void OnBlobFileCreated(const BlobFileCreationInfo& info) override {
    OnCreated(info.status, info.file_path);
  }
  void OnBlobFileDeleted(const BlobFileDeletionInfo& info) override {
    OnDeleted(info.status, info.file_path);
  }

  std::set<uint64_t> Numbers(FileType type) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = numbers_.find(type);
    return it == numbers_.end() ? std::set<uint64_t>() : it->second;
  }
  // Returns how many files were created so far.
  size_t num_created() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return num_created_;
  }

 private:
  void OnCreated(const Status& status, const std::string& path) {
    Change(status, path, [this](std::set<uint64_t>* numbers, uint64_t number) {
      numbers->insert(number);
      ++num_created_;
    });
  }
  void OnDeleted(const Status& status, const std::string& path) {
    Change(status, path, [](std::set<uint64_t>* numbers, uint64_t number) {
      numbers->erase(number);
    });
  }
  // Calls fn with the list of the type of file to which path belongs.
  template <typename Fn>
  void Change(const Status& status, const std::string& path, Fn fn) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (status.ok() &&
        ParseFileName(path.substr(path.rfind('/') + 1), &number, &type)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      fn(&numbers_[type], number);
    }
  }

  mutable std::mutex mutex_;
  std::map<FileType, std::set<uint64_t>> numbers_;
  size_t num_created_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
