//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/blob/map_file_table.h"
#include "port/port.h"
#include "rocksdb/compression_type.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobSource;
class SystemClock;
class ThreadPool;

// The reads of some neighbouring records of one blob file of an address map,
// done together: in the background, or by the one who wants a value, if nobody
// has begun.
//
// Thread-safe, but items() while it is not done.
class BlobReadGroup {
 public:
  struct Item {
    std::string record_name;  // encoded MappedRecordName
    uint64_t file_number = 0;
    uint64_t offset = 0;  // of the value
    uint64_t size = 0;
    CompressionType compression = kNoCompression;
    MapFilePin pin;  // keeps the file

    // The result.
    PinnableSlice value;
    Status status;
  };

  // Neighbours are read together if they are not farther apart than this, and
  // not more bytes than that.
  static constexpr uint64_t kMaxGap = 16 << 10;
  static constexpr uint64_t kMaxSpan = 256 << 10;

  // Divides the items into groups. group_of[i] and index_of[i] say where the
  // i-th went.
  // REQUIRES: read_options and source live until each group is cancelled, which
  // LetGo() for all items does.
  static std::vector<std::shared_ptr<BlobReadGroup>> Divide(
      std::vector<Item>&& items, const ReadOptions& read_options,
      BlobSource* source, std::vector<size_t>* group_of,
      std::vector<size_t>* index_of);

  BlobReadGroup(const ReadOptions& read_options, BlobSource* source)
      : read_options_(read_options), source_(source), cv_(&mutex_) {}
  BlobReadGroup(const BlobReadGroup&) = delete;
  BlobReadGroup& operator=(const BlobReadGroup&) = delete;

  // Reads, unless somebody has begun.
  void Run();
  // Reads, or waits for the one who does.
  void RunAndWait();
  // Nobody will begin; waits for one who has. The items are gone then: the pool
  // may hold the group for longer than the database lives.
  void Cancel();

  std::vector<Item>& items() { return items_; }

  // For the one who owns the group: how many of its items he still needs. The
  // last one to be let go ends it.
  void LetGo() {
    if (--needed_ == 0) {
      Cancel();
    }
  }

 private:
  enum class State : uint8_t { kQueued, kRunning, kDone };

  bool Claim();
  void Read();

  const ReadOptions& read_options_;
  BlobSource* const source_;
  std::vector<Item> items_;  // of one file, in the order of their offsets
  size_t needed_ = 0;

  port::Mutex mutex_;
  port::CondVar cv_;
  State state_ = State::kQueued;
};

// The threads for the background. They are shared by all databases of the
// process, made when first needed, and never more than kMaxThreads.
class BlobReadPool {
 public:
  static constexpr int kMaxThreads = 32;

  static void Submit(const std::shared_ptr<BlobReadGroup>& group);

  // Below this a read came from a cache, and calling another thread for the
  // next one would take longer than to do it.
  static constexpr uint64_t kCachedMicros = 20;

  // Calls fn(0) ... fn(n - 1), each once, and returns when all have returned.
  // They run on this thread, in order, until one has taken longer than
  // kCachedMicros; then on the pool's threads, too.
  static void RunAll(SystemClock* clock, size_t n,
                     const std::function<void(size_t)>& fn);

 private:
  // Never destroyed: an iterator may be used while the process ends.
  static ThreadPool* Threads();
};

}  // namespace ROCKSDB_NAMESPACE
