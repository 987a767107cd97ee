// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Clocks that exclude the time during which this process was stopped.
//
// A benchmark can run several db_bench processes in turns: it stops all but one
// (SIGSTOP) and switches between them many times a second, so that disturbances
// of the machine affect all of them equally. Before it continues a process
// (SIGCONT) it writes the total time for which that was stopped, in
// nanoseconds, into a file, as an integer of 8 bytes in the byte order of the
// machine. The clocks here subtract that time.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "rocksdb/env.h"
#include "rocksdb/status.h"
#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// If Follow() was not called, all times are those of the underlying clocks.
//
// Thread-safe, except for Follow().
class ActiveClock {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  // Makes the clocks read the stopped time from this file.
  // REQUIRES: the process has only its main thread.
  static Status Follow(const std::string& path);

  // Returns the time of steady_clock minus the stopped time. Never decreases.
  static time_point now();

  // Returns for how many nanoseconds this process has been stopped so far.
  static uint64_t StoppedNanos();

  // Returns an env with a clock whose NowNanos() excludes the stopped time.
  // RocksDB's write controller, rate limiters and perf timers use NowNanos().
  // NowMicros() is not changed, since deadlines of condition variables are
  // computed from it. Returns the env itself if Follow() was not called. The
  // result is never deleted.
  static Env* Wrap(Env* env);

  // Returns the env's NowMicros() minus the stopped time, for measurements.
  static uint64_t NowMicros(Env* env);

  // Returns a clock whose times exclude the stopped time; the env's own if
  // Follow() was not called. It is never deleted.
  static SystemClock* MeasuringClock(Env* env);
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
