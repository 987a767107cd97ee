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
  // The numbers of the type of file to which path belongs.
  std::set<uint64_t>* Find(const std::string& path, uint64_t* number) {
    FileType type = kTempFile;
    return ParseFileName(path.substr(path.rfind('/') + 1), number, &type)
               ? &numbers_[type]
               : nullptr;
  }
  void OnCreated(const Status& status, const std::string& path) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t number = 0;
    std::set<uint64_t>* const numbers = Find(path, &number);
    if (status.ok() && numbers != nullptr) {
      numbers->insert(number);
      ++num_created_;
    }
  }
  void OnDeleted(const Status& status, const std::string& path) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t number = 0;
    std::set<uint64_t>* const numbers = Find(path, &number);
    if (status.ok() && numbers != nullptr) {
      numbers->erase(number);
    }
  }

  mutable std::mutex mutex_;
  std::map<FileType, std::set<uint64_t>> numbers_;
  size_t num_created_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
