//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <ctime>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/seeded_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Converts between times of libc's clocks and those of SeededThreads.
//
// Invariant: all clocks have the same pace. Times do not depend on the real
// time.
//
// Thread-safe: the class has no state.
class InterposedClock {
 public:
  static constexpr uint64_t kNanosPerSecond = 1000 * 1000 * 1000;

  static uint64_t ToNanos(const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * kNanosPerSecond +
           static_cast<uint64_t>(time.tv_nsec);
  }
  static timespec FromNanos(uint64_t nanos) {
    timespec time;
    time.tv_sec = static_cast<time_t>(nanos / kNanosPerSecond);
    time.tv_nsec = static_cast<long>(nanos % kNanosPerSecond);
    return time;
  }

  // Returns what the clock shows at the start of SeededThreads: the Unix time
  // of a day in 2026, or a machine that was started a while ago.
  static uint64_t Base(clockid_t clock) {
    return (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE
                ? uint64_t{1780000000}
                : uint64_t{100000}) *
           kNanosPerSecond;
  }

  // Returns the deadline of a wait until the clock shows this time.
  static uint64_t Deadline(clockid_t clock, const timespec& time) {
    const uint64_t nanos = ToNanos(time);
    return nanos > Base(clock) ? nanos - Base(clock) : 0;
  }
  static uint64_t DeadlineAfter(SeededThreads* threads, uint64_t nanos) {
    const uint64_t now = threads->NowNanos();
    return nanos < SeededThreads::kNever - now ? now + nanos
                                               : SeededThreads::kNever;
  }
};

}  // namespace ROCKSDB_NAMESPACE
