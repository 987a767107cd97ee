//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Operations on files by the threads of SeededThreads; see
// interposed_real_test_util.h. Each is a step, and what is written is part of
// the trace. The files of a directory are listed in the order of their names.

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/interposed_real_test_util.h"
#include "test_util/strata/seeded_threads_test_util.h"
#include "util/hash.h"

using ROCKSDB_NAMESPACE::RealFunction;
using ROCKSDB_NAMESPACE::SeededThreads;

namespace {

constinit RealFunction<int(const char*, int, ...)> real_open("open");
constinit RealFunction<ssize_t(int, const void*, size_t)> real_write("write");
constinit RealFunction<ssize_t(int, const void*, size_t, off_t)> real_pwrite(
    "pwrite");
constinit RealFunction<ssize_t(int, void*, size_t, off_t)> real_pread("pread");
constinit RealFunction<int(int)> real_fsync("fsync");
constinit RealFunction<int(int)> real_fdatasync("fdatasync");
constinit RealFunction<int(const char*, const char*)> real_rename("rename");
constinit RealFunction<int(const char*)> real_unlink("unlink");
constinit RealFunction<dirent*(DIR*)> real_readdir("readdir");
constinit RealFunction<int(DIR*)> real_closedir("closedir");

void Step(const char* op, uint64_t detail) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads != nullptr) {
    threads->Step(op, /*object=*/nullptr, detail);
  }
}

void StepWithBytes(const char* op, const void* bytes, size_t size) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads != nullptr) {
    threads->Step(op, /*object=*/nullptr,
                  ROCKSDB_NAMESPACE::Hash64(static_cast<const char*>(bytes),
                                            size, /*seed=*/0));
  }
}

void StepWithPath(const char* op, const char* path) {
  StepWithBytes(op, path, std::strlen(path));
}

// Entries of a directory, sorted, and the number of those that were returned.
struct Listing {
  std::vector<dirent> entries;
  size_t returned = 0;
};

// Used by the thread that has the baton.
std::unordered_map<DIR*, Listing>& Listings() {
  static auto* const listings = new std::unordered_map<DIR*, Listing>();
  return *listings;
}

dirent* NextEntry(DIR* directory) {
  const auto [it, is_new] = Listings().try_emplace(directory);
  Listing* const listing = &it->second;
  if (is_new) {
    while (const dirent* const entry = real_readdir(directory)) {
      listing->entries.push_back(*entry);
    }
    std::sort(listing->entries.begin(), listing->entries.end(),
              [](const dirent& a, const dirent& b) {
                return std::strcmp(a.d_name, b.d_name) < 0;
              });
  }
  return listing->returned < listing->entries.size()
             ? &listing->entries[listing->returned++]
             : nullptr;
}

mode_t ModeOf(int flags, va_list list) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0
             ? static_cast<mode_t>(va_arg(list, unsigned))
             : 0;
}

}  // namespace

// Programs that are compiled with 64-bit offsets call the second ones. On the
// platforms of this test, both do the same.
static_assert(sizeof(off_t) == sizeof(off64_t));

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = ModeOf(flags, list);
  va_end(list);
  StepWithPath("open", path);
  return real_open(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = ModeOf(flags, list);
  va_end(list);
  return open(path, flags, mode);
}

ssize_t write(int file, const void* bytes, size_t size) {
  StepWithBytes("write", bytes, size);
  return real_write(file, bytes, size);
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  StepWithBytes("pwrite", bytes, size);
  return real_pwrite(file, bytes, size, offset);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) {
  return pwrite(file, bytes, size, offset);
}

ssize_t pread(int file, void* bytes, size_t size, off_t offset) {
  Step("pread", static_cast<uint64_t>(offset));
  return real_pread(file, bytes, size, offset);
}

ssize_t pread64(int file, void* bytes, size_t size, off64_t offset) {
  return pread(file, bytes, size, offset);
}

int fsync(int file) {
  Step("fsync", static_cast<uint64_t>(file));
  return real_fsync(file);
}

int fdatasync(int file) {
  Step("fdatasync", static_cast<uint64_t>(file));
  return real_fdatasync(file);
}

int rename(const char* from, const char* to) noexcept {
  StepWithPath("rename", to);
  return real_rename(from, to);
}

int unlink(const char* path) noexcept {
  StepWithPath("unlink", path);
  return real_unlink(path);
}

dirent* readdir(DIR* directory) {
  return SeededThreads::Current() == nullptr ? real_readdir(directory)
                                             : NextEntry(directory);
}

int closedir(DIR* directory) {
  if (SeededThreads::Current() != nullptr) {
    Listings().erase(directory);
  }
  return real_closedir(directory);
}

}  // extern "C"
