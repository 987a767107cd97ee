//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_unsynced_test_util.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "util/mutexlock.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The sector of most devices: the least that is written as a whole.
constexpr uint64_t kBlockSize = 512;

bool Overwrite(int fd, uint64_t begin, uint64_t end) {
  const std::string zeros(static_cast<size_t>(end - begin), '\0');
  return pwrite(fd, zeros.data(), zeros.size(), static_cast<off_t>(begin)) ==
         static_cast<ssize_t>(zeros.size());
}

// Keeps the first `synced` bytes of a file that has `written` ones, and random
// blocks of the others. Returns false if the file cannot be changed.
bool KeepRandomBlocks(int fd, uint64_t synced, uint64_t written, Random* rnd) {
  uint64_t size = synced;
  uint64_t next = synced;
  for (uint64_t begin = synced; begin < written; begin = next) {
    next = std::min(written, (begin / kBlockSize + 1) * kBlockSize);
    if (rnd->OneIn(2)) {
      size = next;
    } else if (!Overwrite(fd, begin, next)) {
      return false;
    }
  }
  return ftruncate(fd, static_cast<off_t>(size)) == 0;
}

}  // namespace

void HistoryUnsynced::Created(const std::string& path) {
  MutexLock l(&mutex_);
  extents_[path] = Extent();
}

void HistoryUnsynced::Reopened(const std::string& path, uint64_t size) {
  MutexLock l(&mutex_);
  extents_.emplace(path, Extent{size, size});
}

void HistoryUnsynced::Written(const std::string& path, uint64_t end) {
  MutexLock l(&mutex_);
  Extent& extent = extents_[path];
  extent.written = end;
  extent.synced = std::min(extent.synced, end);
}

void HistoryUnsynced::Synced(const std::string& path) {
  MutexLock l(&mutex_);
  Extent& extent = extents_[path];
  extent.synced = extent.written;
}

void HistoryUnsynced::Deleted(const std::string& path) {
  MutexLock l(&mutex_);
  extents_.erase(path);
}

void HistoryUnsynced::Renamed(const std::string& from, const std::string& to) {
  MutexLock l(&mutex_);
  extents_.erase(to);
  const auto it = extents_.find(from);
  if (it != extents_.end()) {
    extents_[to] = it->second;
    extents_.erase(it);
  }
}

void HistoryUnsynced::Linked(const std::string& from, const std::string& to) {
  MutexLock l(&mutex_);
  const auto it = extents_.find(from);
  if (it != extents_.end()) {
    extents_[to] = it->second;
  }
}

void HistoryUnsynced::Clear() {
  MutexLock l(&mutex_);
  extents_.clear();
}

IOStatus HistoryUnsynced::Drop(Survivors survivors, uint32_t seed) {
  MutexLock l(&mutex_);
  IOStatus s;
  Random rnd(seed);
  for (const auto& [path, extent] : extents_) {
    if (extent.synced >= extent.written) {
      continue;
    }
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
      // A file that was deleted with its directory may be missing.
      if (errno != ENOENT) {
        s = IOStatus::IOError("cannot open", path);
      }
      continue;
    }
    const bool is_done =
        survivors == Survivors::kRandomBlocks
            ? KeepRandomBlocks(fd, extent.synced, extent.written, &rnd)
            : ftruncate(fd, static_cast<off_t>(extent.synced)) == 0;
    if (!is_done) {
      s = IOStatus::IOError("cannot drop unsynced bytes", path);
    }
    close(fd);
  }
  extents_.clear();
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
