//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "port/port.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Knows which bytes of files a loss of power may take, and takes them: those
// behind the last sync of a file. The bytes are in the files until then, so
// that readers of a file that is being written find them.
//
// Thread-safe.
class HistoryUnsynced {
 public:
  enum class Survivors {
    kNone,
    // Each block survives or not, at random, as devices write in any order. A
    // lost block ahead of one that survives has zeros.
    kRandomBlocks,
  };

  HistoryUnsynced() = default;
  HistoryUnsynced(const HistoryUnsynced&) = delete;
  HistoryUnsynced& operator=(const HistoryUnsynced&) = delete;

  void Created(const std::string& path);
  // An existing file of this size is opened for writing. Its bytes count as
  // synced unless this object knows better.
  void Reopened(const std::string& path, uint64_t size);
  // The file was written up to offset `end`, or truncated there.
  void Written(const std::string& path, uint64_t end);
  // A concurrent append may be counted as synced. Histories sync and write in
  // one thread.
  void Synced(const std::string& path);
  void Deleted(const std::string& path);
  void Renamed(const std::string& from, const std::string& to);
  void Linked(const std::string& from, const std::string& to);

  // Whatever the files have counts as synced.
  void Clear();

  // Takes unsynced bytes of all files. Whatever is left counts as synced.
  // seed: for the choice of random blocks.
  IOStatus Drop(Survivors survivors, uint32_t seed);

 private:
  struct Extent {
    uint64_t written = 0;
    uint64_t synced = 0;
  };

  port::Mutex mutex_;
  std::map<std::string, Extent> extents_;  // guarded by mutex_
};

}  // namespace ROCKSDB_NAMESPACE
