//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The clocks and the sleep of the threads of SeededThreads; see
// interposed_real_test_util.h.

#include "test_util/strata/interposed_clock_test_util.h"

#include <sys/time.h>
#include <unistd.h>

#include <ctime>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/interposed_real_test_util.h"
#include "test_util/strata/seeded_threads_test_util.h"

using ROCKSDB_NAMESPACE::InterposedClock;
using ROCKSDB_NAMESPACE::RealFunction;
using ROCKSDB_NAMESPACE::SeededThreads;

namespace {

constinit RealFunction<int(clockid_t, timespec*)> real_clock_gettime(
    "clock_gettime");
constinit RealFunction<int(timeval*, void*)> real_gettimeofday("gettimeofday");
constinit RealFunction<time_t(time_t*)> real_time("time");
constinit RealFunction<int(const timespec*, timespec*)> real_nanosleep(
    "nanosleep");
constinit RealFunction<int(clockid_t, int, const timespec*, timespec*)>
    real_clock_nanosleep("clock_nanosleep");
constinit RealFunction<int(useconds_t)> real_usleep("usleep");

uint64_t Now(SeededThreads* threads, clockid_t clock) {
  return InterposedClock::Base(clock) + threads->NowNanos();
}

void SleepFor(SeededThreads* threads, uint64_t nanos) {
  threads->SleepUntil(InterposedClock::DeadlineAfter(threads, nanos));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_clock_gettime(clock, time);
  }
  *time = InterposedClock::FromNanos(Now(threads, clock));
  return 0;
}

int gettimeofday(timeval* time, void* zone) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_gettimeofday(time, zone);
  }
  const timespec now = InterposedClock::FromNanos(Now(threads, CLOCK_REALTIME));
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_time(result);
  }
  const time_t now =
      InterposedClock::FromNanos(Now(threads, CLOCK_REALTIME)).tv_sec;
  if (result != nullptr) {
    *result = now;
  }
  return now;
}

int nanosleep(const timespec* duration, timespec* rest) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_nanosleep(duration, rest);
  }
  SleepFor(threads, InterposedClock::ToNanos(*duration));
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time,
                    timespec* rest) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_clock_nanosleep(clock, flags, time, rest);
  }
  if ((flags & TIMER_ABSTIME) != 0) {
    threads->SleepUntil(InterposedClock::Deadline(clock, *time));
  } else {
    SleepFor(threads, InterposedClock::ToNanos(*time));
  }
  return 0;
}

int usleep(useconds_t micros) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_usleep(micros);
  }
  SleepFor(threads, uint64_t{micros} * 1000);
  return 0;
}

}  // extern "C"
