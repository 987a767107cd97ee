//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/spill_file_numbers.h"

#include "file/filename.h"

namespace ROCKSDB_NAMESPACE {

Status SpillFileNumbers::Create(FileSystem* fs, const std::string& directory,
                                uint64_t number,
                                std::unique_ptr<SpillFile>* file) {
  {
    // Registers the number before the file exists: otherwise a scan for
    // obsolete files would delete the file.
    std::lock_guard<std::mutex> lock(mutex_);
    numbers_.insert(number);
  }
  return SpillFile::Create(
      fs, FileOptions(), TempFileName(directory, number),
      [this, number] {
        std::lock_guard<std::mutex> lock(mutex_);
        numbers_.erase(number);
      },
      file);
}

void SpillFileNumbers::AddTo(UnorderedSet<uint64_t>* numbers) const {
  std::lock_guard<std::mutex> lock(mutex_);
  numbers->insert(numbers_.begin(), numbers_.end());
}

}  // namespace ROCKSDB_NAMESPACE
