//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The kinds of operations on files that can fail in a history.
enum class HistoryFileOp {
  kOpen,     // opening a file for reading
  kRead,     // read of a file opened for random or sequential reads
  kWrite,    // append
  kSync,     // sync of a file's data
  kDirSync,  // sync of a directory; the file's name is that of the directory
  kCreate,   // creation of a file for writing
  kDelete,
  kRename,
  kLink,
};

constexpr size_t kNumHistoryFileOps = 9;

// Returns the name of the kind in scripts, such as "READ". Thread-safe.
inline const char* HistoryFileOpName(HistoryFileOp op) {
  static constexpr const char* kNames[kNumHistoryFileOps] = {
      "OPEN",   "READ",   "WRITE",  "SYNC", "DIRSYNC",
      "CREATE", "DELETE", "RENAME", "LINK"};
  return kNames[static_cast<size_t>(op)];
}

// Returns false if there is no kind of that name. Thread-safe.
inline bool ParseHistoryFileOp(const std::string& name, HistoryFileOp* op) {
  for (size_t i = 0; i < kNumHistoryFileOps; ++i) {
    const HistoryFileOp candidate = static_cast<HistoryFileOp>(i);
    if (name == HistoryFileOpName(candidate)) {
      *op = candidate;
      return true;
    }
  }
  return false;
}

}  // namespace ROCKSDB_NAMESPACE
