//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "db/delta/delta_overlap_policy.h"
#include "db/delta/delta_read_helpers.h"
#include "monitoring/borrowed_counts.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DeltaReadAhead;
class FileSystem;
class Statistics;
class SystemClock;
struct DeltaTableFamily;
struct ReadOptions;

// What point reads of a column family need in order to have their delta files
// read while they look for the value: by the device alone (OverlappedReads), if
// the file system reads asynchronously, or else by other threads
// (delta_parallel_reads).
//
// Thread-safe.
class DeltaParallelReads {
 public:
  // REQUIRES: what the options point to outlives it.
  explicit DeltaParallelReads(const DeltaTableFamily& family);
  DeltaParallelReads(const DeltaParallelReads&) = delete;
  DeltaParallelReads& operator=(const DeltaParallelReads&) = delete;

  // Should a point read with these options begin overlapped reads? Then it has
  // no use for threads.
  bool Overlaps(const ReadOptions& read_options) const;
  // It has begun some.
  void OnOverlap();
  // It has tried. Whatever the file system says it can do, if it reads at once
  // or not at all kMaxNotAsync times in a row it is not asked again.
  static constexpr int kMaxNotAsync = 16;
  void OnTried(bool is_async);
  FileSystem* fs() const { return fs_; }

  // Should a point read with these options see whether it has something to hand
  // over? Cheap.
  bool IsWanted(const ReadOptions& read_options, uint32_t max_threads,
                bool may_wait) const;
  // It has nothing: all is in memory.
  void OnInMemory() { policy_.OnInMemory(); }

  // read: what the caller would do itself, and will if this is nullptr.
  // max_threads, may_wait: see DeltaReadHelpers.
  // REQUIRES: what `read` uses is left alone until the result was finished or
  // withdrawn, or is gone, which must be before this is.
  std::unique_ptr<DeltaReadAhead> Start(std::function<Status()> read,
                                        uint32_t max_threads, bool may_wait);

  DeltaReadHelpers* helpers() { return &helpers_; }
  const DeltaOverlapPolicy& policy() const { return policy_; }

 private:
  friend class DeltaReadAhead;

  FileSystem* const fs_;
  SystemClock* const clock_;
  Statistics* const statistics_;  // may be nullptr
  std::atomic<bool> overlaps_;
  std::atomic<int> not_async_{0};
  DeltaReadHelpers helpers_;
  DeltaOverlapPolicy policy_;
};

// A read of delta files on its way to another thread and back. What it has
// counted there is added to the counts of the owner's thread when it comes
// back.
//
// Used by its owner's thread.
class DeltaReadAhead final : private DeltaReadHelpers::Task {
 public:
  // For DeltaParallelReads.
  DeltaReadAhead(DeltaParallelReads* parallel, std::function<Status()> read)
      : DeltaReadHelpers::Task(&parallel->helpers_),
        parallel_(parallel),
        read_(std::move(read)) {}
  // Waits if the read is under way.
  ~DeltaReadAhead() override;

  // Waits for the read. False: it was not begun, and will not be; else *status
  // is what it says. Once.
  bool Finish(Status* status);

  // As Finish() that returns false, if the read was not begun. Else false: it
  // goes on, or is over.
  bool Withdraw();

 private:
  friend class DeltaParallelReads;

  void Run() override;
  bool Take();

  DeltaParallelReads* const parallel_;
  const std::function<Status()> read_;
  bool is_away_ = false;

  // Of the thread that runs it.
  BorrowedCounts counts_;
  Status status_;
  uint64_t begun_at_ = 0;
  uint64_t done_at_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
