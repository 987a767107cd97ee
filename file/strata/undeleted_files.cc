//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/undeleted_files.h"

namespace ROCKSDB_NAMESPACE {

bool UndeletedFiles::Add(const std::string& directory,
                         const std::string& file_name) {
  Files& files = directories_[directory];
  if (files.tried.count(file_name) > 0) {
    return false;
  }
  files.waiting.insert(file_name);
  return true;
}

void UndeletedFiles::NoteFault(const std::string& directory) {
  const auto it = directories_.find(directory);
  if (it != directories_.end()) {
    it->second.waiting.merge(it->second.tried);
    it->second.tried.clear();
  }
}

std::vector<std::string> UndeletedFiles::Take(const std::string& directory) {
  std::vector<std::string> taken;
  const auto it = directories_.find(directory);
  if (it != directories_.end()) {
    Files& files = it->second;
    taken.assign(files.waiting.begin(), files.waiting.end());
    files.tried.merge(files.waiting);
    files.waiting.clear();
  }
  return taken;
}

std::vector<std::string> UndeletedFiles::Directories() const {
  std::vector<std::string> result;
  for (const auto& [directory, files] : directories_) {
    if (!files.waiting.empty()) {
      result.push_back(directory);
    }
  }
  return result;
}

}  // namespace ROCKSDB_NAMESPACE
