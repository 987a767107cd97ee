//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Says when the next background job of a kind may run after jobs of that kind
// have failed. The error may be temporary, but each attempt may read and write
// as much as a job that succeeds, so the time until the next attempt doubles.
// Manual jobs do not ask, but their results count.
//
// Invariant: after OnFailure() MayRun() returns false until kFirstRetryMicros
// have passed, or longer if jobs before have failed, too, but never longer than
// kLastRetryMicros, or until a job has succeeded that began after the failure.
// A job that ran beside the failed one, and succeeds later, does not end the
// wait. OnDamage() begins a wait only as the kMaxDamages-th in succession.
//
// Not thread-safe.
class DeltaJobBackoff {
 public:
  static constexpr uint64_t kFirstRetryMicros = 1000 * 1000;
  static constexpr uint64_t kLastRetryMicros = 64 * kFirstRetryMicros;
  // Number of jobs in succession that may find damage before the next one
  // waits.
  static constexpr uint32_t kMaxDamages = 8;

  // To be called when a job has failed.
  // now_micros: the time, in microseconds, of a clock that is not set back.
  void OnFailure(uint64_t now_micros);
  // To be called instead when the job has found damage that picks leave alone
  // from now on. The next attempt reads something else, and need not wait; but
  // if nothing else succeeds any more, there is more wrong than a few buckets.
  void OnDamage(uint64_t now_micros);
  // To be called when a job was successful.
  // failures_at_begin: the result of failures() when the job began.
  void OnSuccess(uint64_t failures_at_begin);
  // Returns the number of calls of OnFailure(), including those of OnDamage().
  uint64_t failures() const { return failures_; }
  bool MayRun(uint64_t now_micros) const {
    return now_micros >= retry_at_micros_;
  }

 private:
  uint64_t failures_ = 0;
  // Jobs in succession that have failed.
  uint32_t num_failures_ = 0;
  // Jobs in succession that have found damage.
  uint32_t num_damages_ = 0;
  uint64_t retry_at_micros_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
