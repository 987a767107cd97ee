//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "port/port.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_file_op_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Counts the operations on the files of a history, and changes what becomes of
// exactly one of them: the n-th one of chosen kinds. Only a crash has an effect
// on later operations, all of which fail.
//
// Operations on info logs do not count, because they hold no data and are
// written whenever a thread has something to say.
//
// Thread-safe.
class HistoryInjector {
 public:
  using Op = HistoryFileOp;

  enum class Effect {
    kError,             // fails with an I/O error, and nothing is done
    kRetryable,         // the same, with an error that is said to be retryable
    kNoSpace,           // the same: no space is left
    kRetryableNoSpace,  // both
    kShortWrite,        // a write does its first half, and fails
    kLate,              // a write or a rename is done, and fails nevertheless
    kNotDone,           // a sync succeeds, but nothing is done
    kCrash,             // fails, as do all later operations
  };

  struct Fault {
    std::vector<Op> ops;
    Effect effect = Effect::kError;
    // The first operation has the number 1.
    uint64_t n = 0;
  };

  // What an operation must do.
  struct Decision {
    // If this is an error, the operation must return it.
    IOStatus status;
    // The first half of the data must be written nevertheless.
    bool is_short = false;
    // The whole operation must be done nevertheless.
    bool is_late = false;
    // The operation must do nothing and return OK.
    bool is_not_done = false;
  };

  HistoryInjector() = default;
  HistoryInjector(const HistoryInjector&) = delete;
  HistoryInjector& operator=(const HistoryInjector&) = delete;

  // on_crash: called at the operation with which a crash begins. It must not
  // call this object.
  void SetCrashCallback(std::function<void()> on_crash);

  // Begins to count at 0.
  void Arm(Fault fault);
  // Counts on, but nothing happens to operations any more. A crash ends.
  void Disarm();

  // Called for each operation before it is done.
  // path: below the directory of the history.
  Decision OnOperation(Op op, const std::string& path);

  // Returns true if the fault has happened, even if it was disarmed after that.
  bool has_fired() const;
  bool is_crashed() const;
  // Returns the kind and the path of the operation, or an empty text if the
  // fault has not happened.
  std::string fired_at() const;
  // Returns the number of operations of this kind so far.
  uint64_t count(Op op) const;

 private:
  // REQUIRES: mutex_ is held
  bool IsHit(Op op);
  IOStatus MakeError(const std::string& path) const;

  mutable port::Mutex mutex_;
  // The members below are guarded by mutex_.
  std::function<void()> on_crash_;
  Fault fault_;
  bool is_armed_ = false;
  bool is_crashed_ = false;
  uint64_t num_candidates_ = 0;
  uint64_t counts_[kNumHistoryFileOps] = {};
  std::string fired_at_;
};

}  // namespace ROCKSDB_NAMESPACE
