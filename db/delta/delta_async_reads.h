//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;
class Statistics;
struct DeltaTableFamily;
struct ReadOptions;

// Decides whether point reads of a column family begin to read their delta
// files before they look for the value (OverlappedReads): they do if the file
// system reads asynchronously.
//
// A file system may claim FSSupportedOps::kAsyncIO and yet read synchronously,
// or refuse. After kMaxNotAsync such reads in a row, no more reads are begun.
//
// Thread-safe.
class DeltaAsyncReads {
 public:
  static constexpr int kMaxNotAsync = 16;

  // REQUIRES: the file system and the statistics of `family` outlive this
  // object.
  explicit DeltaAsyncReads(const DeltaTableFamily& family);
  DeltaAsyncReads(const DeltaAsyncReads&) = delete;
  DeltaAsyncReads& operator=(const DeltaAsyncReads&) = delete;

  // Returns true if a point read with these options should begin reads. A read
  // that a rate limiter delays should not: beginning it early saves nothing.
  bool IsWanted(const ReadOptions& read_options) const;

  // Counts a point read that has begun reads.
  void OnBegun();

  // Records how the file system has executed the reads that a point read began.
  // is_async: at least one read goes on in the background.
  void OnTried(bool is_async);

  FileSystem* fs() const { return fs_; }

 private:
  FileSystem* const fs_;
  Statistics* const statistics_;  // may be nullptr
  std::atomic<bool> is_on_;
  std::atomic<int> not_async_{0};  // in a row
};

}  // namespace ROCKSDB_NAMESPACE
