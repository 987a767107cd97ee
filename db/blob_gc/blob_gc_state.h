//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "db/blob_gc/blob_gc_picker.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class Logger;
class SystemClock;

// What the garbage collection jobs of a column family with an address map have
// in common: which files they collect, which files they must avoid for a while,
// how much they may copy, and how much space their copies take.
//
// Invariants:
// 1. A file is busy while a job collects it, or until the pause after its last
//    failure has ended. A kept file is always busy.
// 2. copying_ and merge_space_ are sums over the jobs and merges that run.
// 3. 1 <= max_copies() <= kMaxCopies.
//
// Not thread-safe: the DB mutex protects the object.
class BlobGcState {
 public:
  // Slowdowns begin at this multiple of the space amplification limit, with the
  // copies that jobs are writing.
  static constexpr double kStallFactor = 1.01;
  // The same, without the copies.
  static constexpr double kLeastStallFactor = 0.98;

  // REQUIRES: both arguments outlive this object.
  BlobGcState(SystemClock* clock, Logger* logger)
      : clock_(clock), logger_(logger) {}
  BlobGcState(const BlobGcState&) = delete;
  BlobGcState& operator=(const BlobGcState&) = delete;

  // Set to false while jobs must not run. Writes are not slowed down for them
  // then, from the next AddGcDebt() of the store on.
  void SetAllowed(bool allowed) { allowed_ = allowed; }
  bool allowed() const { return allowed_; }

  // ---- Files.

  // Marks the file as being collected by a job that has picked it, or by a
  // merge for several jobs, until each Begin() is matched by an End().
  void Begin(uint64_t number) { collecting_.insert(number); }
  void End(uint64_t number) {
    const auto found = collecting_.find(number);
    assert(found != collecting_.end());
    collecting_.erase(found);
  }
  bool HasJobs() const { return !collecting_.empty(); }

  // Set while a job sorts values for scans. There is one such job at a time.
  void SetSorting(bool sorting) { sorting_ = sorting; }
  bool is_sorting() const { return sorting_; }

  // Keeps a damaged file from all jobs, until Forget().
  void Keep(uint64_t number) { damaged_[number].is_kept = true; }
  // Called when a job could not read the file. Automatic jobs then skip the
  // file, for longer after each failure, and its garbage, which they cannot
  // collect, does not count toward the space amplification limit.
  void OnDamaged(uint64_t number);
  // Makes automatic jobs skip these files for a while.
  void OnFailed(const std::set<uint64_t>& files);
  // Called when the file is gone.
  void Forget(uint64_t number) {
    damaged_.erase(number);
    key_ranges_.erase(number);
  }
  // Returns the files that automatic jobs must avoid now, apart from those that
  // other jobs collect.
  std::set<uint64_t> Avoided() const;
  // Returns the number of files that were passed to Keep() or OnDamaged().
  size_t NumDamaged() const { return damaged_.size(); }

  // Sets is_busy, and live_size if the garbage of the file does not count.
  // files: is_busy is set for the files without live values.
  // also_failed: do not mark files of a job that failed recently.
  void MarkBusy(std::vector<BlobGcPicker::File>* files, bool also_failed) const;

  // Keeps the keys of a file that a job has written, until Forget(). They are
  // not on disk: the next open does not know them.
  void SetKeyRange(uint64_t number, BlobGcPicker::KeyRange&& keys) {
    key_ranges_[number] = std::move(keys);
  }
  // Sets the keys of the files for which they are known. They are valid until
  // Forget().
  void AddKeyRanges(std::vector<BlobGcPicker::File>* files) const;
  size_t TEST_NumKeyRanges() const { return key_ranges_.size(); }

  // Returns the summed size in bytes of the files that flushes have added since
  // the last call, or 0 at the first call.
  uint64_t TakeFlushed(const std::vector<BlobGcPicker::File>& files);

  // ---- Space.

  // Account for copies of `bytes` bytes that a job is writing, until the job
  // has published them.
  void BeginCopies(uint64_t bytes) { copying_ += bytes; }
  void EndCopies(uint64_t bytes) { copying_ -= bytes; }
  bool HasCopies() const { return copying_ > 0; }
  // Exclude `bytes` bytes of copied files, which a merge of sorted runs keeps
  // on disk until it ends, from what AddDebt() counts.
  void AddMergeSpace(uint64_t bytes) { merge_space_ += bytes; }
  void SubMergeSpace(uint64_t bytes) { merge_space_ -= bytes; }

  // Returns the maximum number of bytes that a job may copy. The limit is
  // halved when a job runs out of disk space.
  uint64_t max_copies() const { return max_copies_; }
  // copied: bytes that the job had copied.
  void OnOutOfSpace(uint64_t copied) {
    max_copies_ = std::max(uint64_t{1}, std::min(max_copies_, copied) / 2);
  }
  void OnSucceeded() {
    max_copies_ =
        std::min(kMaxCopies, std::max(max_copies_, uint64_t{1} << 20) * 2);
  }

  // Returns the number of bytes that write slowdowns are computed from:
  // compaction_needed_bytes, or more if the space amplification, including the
  // copies that jobs are writing, exceeds kStallFactor times the limit. The
  // result then exceeds soft_limit by the excess space, so writes are slowed
  // down the more the larger the excess, but are never stopped.
  // Copies alone cause no slowdown, which matters if all values fit into a few
  // files: without the copies, the space amplification must exceed
  // kLeastStallFactor times the limit.
  // The garbage of files that no job may collect now does not count: slow
  // writes would wait for a job that cannot come, and would delay the flush
  // that schedules the next one.
  // LOG says when slowdowns begin and end.
  // files: as by MarkBusy().
  // space_amp_limit: not 0.
  // soft_limit, hard_limit: {soft,hard}_pending_compaction_bytes_limit. The
  // soft one is not 0.
  uint64_t AddDebt(uint64_t compaction_needed_bytes,
                   const std::vector<BlobGcPicker::File>& files,
                   double space_amp_limit, uint64_t soft_limit,
                   uint64_t hard_limit);
  // Called in place of AddDebt() if writes are not to be slowed down.
  void EndSlowdown();
  // True if the last AddDebt() has added some, and EndSlowdown() was not called
  // since.
  bool slows_down() const { return slows_down_; }

 private:
  // Returns true if no job collects the file, and none may collect it now.
  // file: as by MarkBusy().
  bool IsPaused(const BlobGcPicker::File& file) const {
    // Files without live values are dropped, not collected.
    return file.is_busy && file.live_size > 0 &&
           collecting_.count(file.number) == 0;
  }

  static constexpr uint64_t kMaxCopies = uint64_t{1} << 30;
  static constexpr uint64_t kRetryMicros = 600 * 1000 * 1000;
  static constexpr uint64_t kMaxRetryMicros = uint64_t{86400} * 1000 * 1000;

  SystemClock* const clock_;
  Logger* const logger_;

  bool allowed_ = true;
  bool sorting_ = false;
  bool has_newest_file_ = false;
  uint64_t newest_file_ = 0;  // number, when TakeFlushed() was called last
  std::multiset<uint64_t> collecting_;
  // Files of failed jobs, by number, with the time in microseconds from which
  // on jobs may collect them again.
  std::map<uint64_t, uint64_t> retry_at_;
  // Damaged files, by number. The pause doubles with each job that fails.
  struct Damaged {
    bool is_kept = false;   // Keep()
    uint64_t pause = 0;     // microseconds
    uint64_t retry_at = 0;  // time in microseconds
  };
  std::map<uint64_t, Damaged> damaged_;
  std::map<uint64_t, BlobGcPicker::KeyRange> key_ranges_;
  uint64_t max_copies_ = kMaxCopies;
  uint64_t copying_ = 0;
  uint64_t merge_space_ = 0;
  bool slows_down_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
