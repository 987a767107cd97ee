// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Time without that in which this process was stopped.
//
// A bench can let several db_bench take turns on a machine: it stops all but
// one (SIGSTOP) and changes over many times a second, so that what disturbs the
// machine meanwhile disturbs all of them alike. Before it lets one go on
// (SIGCONT) it writes into a file of 8 bytes, as an integer of the machine, for
// how many nanoseconds that one was stopped in all. What is measured with these
// clocks then leaves them out.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "rocksdb/env.h"
#include "rocksdb/status.h"
#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// Thread safety: Follow() before any thread but the main one is there; the
// others by any thread. As long as Follow() was not called, times are those of
// the clocks below.
class ActiveClock {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  // Takes the times of stops from this file from now on.
  static Status Follow(const std::string& path);

  // steady_clock's, less the stops. Never goes back.
  static time_point now();

  // In which this process was stopped until now.
  static uint64_t StoppedNanos();

  // The env with a clock whose NowNanos() leaves the stops out: RocksDB's write
  // controller and rate limiters count with it what they let pass, and its
  // perf timers. NowMicros(), from which deadlines of condition variables are
  // computed, stays. The env itself if Follow() was not called. What is
  // returned is never deleted.
  static Env* Wrap(Env* env);

  // The env's NowMicros() less the stops, to measure with.
  static uint64_t NowMicros(Env* env);

  // A clock like that, never deleted; the env's own if Follow() was not called.
  static SystemClock* MeasuringClock(Env* env);
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
