//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_job_backoff.h"

#include <algorithm>

namespace ROCKSDB_NAMESPACE {

void DeltaJobBackoff::OnFailure(uint64_t now_micros) {
  // With more doublings the wait would be longer than the last one.
  constexpr uint32_t kMaxDoublings = 6;
  static_assert(kFirstRetryMicros << kMaxDoublings == kLastRetryMicros);
  retry_at_micros_ = now_micros + (kFirstRetryMicros
                                   << std::min(num_failures_, kMaxDoublings));
  ++num_failures_;
  ++failures_;
}

void DeltaJobBackoff::OnDamage(uint64_t now_micros) {
  if (++num_damages_ >= kMaxDamages) {
    OnFailure(now_micros);
  }
}

void DeltaJobBackoff::OnSuccess(uint64_t failures_at_begin) {
  if (failures_at_begin == failures_) {
    num_failures_ = 0;
    num_damages_ = 0;
    retry_at_micros_ = 0;
  }
}

}  // namespace ROCKSDB_NAMESPACE
