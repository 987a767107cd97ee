//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "test_util/strata/history_db_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A byte of a file of a closed DB, of which one bit is to be inverted.
struct HistoryFlip {
  std::string path;
  FileType type = kTempFile;
  uint64_t offset = 0;

  // Returns "path:offset", the path being that below `root`.
  std::string ToString(const std::string& root) const;
};

// Damages the files of a closed DB.
//
// Thread-safe: the class has no state.
class HistoryFlips {
 public:
  // Each byte of a file of at most this size is flipped. Of a larger file every
  // k-th one is, so that there are at most so many.
  static constexpr uint64_t kMaxBytes = 512;

  // Lists the bytes, in the order of the files' types and names. The files are
  // all SST, blob and delta files, images of address maps, MANIFESTs, OPTIONS
  // files and WALs, CURRENT, IDENTITY, and the WAL buffer.
  // REQUIRES: the DB is closed
  static Status List(HistoryDb& db, std::vector<HistoryFlip>* flips);

  // Inverts a bit of the byte: the lowest one of the first byte, the next one
  // of the next byte, and so on.
  static Status Apply(const HistoryFlip& flip);
};

}  // namespace ROCKSDB_NAMESPACE
