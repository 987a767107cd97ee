//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Says when the next background job of a kind may run after jobs of that kind
// have failed. The error may be temporary, but each attempt may read and write
// as much as the whole job, so the time until the next attempt doubles. Manual
// jobs do not ask.
//
// Invariant: after OnSuccess() the next job may run at once. After a failure no
// job may run until kFirstRetryMicros have passed, or longer if jobs before it
// have failed, too, but never longer than kLastRetryMicros.
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
  // now_micros: the time, in microseconds.
  void OnFailure(uint64_t now_micros);
  // To be called instead when the job has found damage that picks leave alone
  // from now on. The next attempt reads something else, and need not wait; but
  // if nothing else succeeds any more, there is more wrong than a few buckets.
  void OnDamage(uint64_t now_micros);
  // To be called when a job was successful.
  void OnSuccess() { *this = DeltaJobBackoff(); }
  bool MayRun(uint64_t now_micros) const {
    return now_micros >= retry_at_micros_;
  }

 private:
  // Jobs in succession that have failed.
  uint32_t num_failures_ = 0;
  // Jobs in succession that have found damage.
  uint32_t num_damages_ = 0;
  uint64_t retry_at_micros_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
