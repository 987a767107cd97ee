//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Says when the next job of a migration may begin, so that its jobs write no
// more than a number of bytes in a second on average.
//
// Invariant: when a job may begin, all jobs before it have written at most
// rate * (time since the first job began) bytes. Time in which no job ran
// although one might have earns nothing.
//
// Not thread-safe.
class MigrationPacer {
 public:
  static constexpr uint64_t kMicrosPerSecond = 1000000;

  // bytes_per_second: 0 for no limit.
  explicit MigrationPacer(uint64_t bytes_per_second)
      : bytes_per_second_(bytes_per_second) {}

  // Returns true if no job may begin yet.
  // now: us, of a clock that does not go back.
  bool MustWait(uint64_t now) const { return now < next_start_; }

  // To be called at the end of a job.
  // bytes: what it has written.
  // start: us, when it began.
  void Charge(uint64_t bytes, uint64_t start);

 private:
  const uint64_t bytes_per_second_;
  uint64_t next_start_ = 0;  // us
};

}  // namespace ROCKSDB_NAMESPACE
