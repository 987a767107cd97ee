//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What SstFileManagerImpl tells of itself for databases with several paths.

#include <algorithm>

#include "file/sst_file_manager_impl.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

uint64_t SstFileManagerImpl::GetMaxAllowedSpace() {
  MutexLock lock(&mu_);
  return max_allowed_space_;
}

uint64_t SstFileManagerImpl::GetCompactionBufferSize() {
  MutexLock lock(&mu_);
  return compaction_buffer_size_;
}

bool SstFileManagerImpl::IsWaiting(const ErrorHandler* db) {
  MutexLock lock(&mu_);
  return std::find(error_handler_list_.begin(), error_handler_list_.end(),
                   db) != error_handler_list_.end();
}

}  // namespace ROCKSDB_NAMESPACE
