//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// System calls of the threads of SeededThreads that are made through syscall():
// futexes, on which std::atomic::wait(), std::future and the initialisation of
// static variables of functions rely. See interposed_real_test_util.h.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <ctime>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/interposed_clock_test_util.h"
#include "test_util/strata/interposed_real_test_util.h"
#include "test_util/strata/seeded_threads_test_util.h"

using ROCKSDB_NAMESPACE::InterposedClock;
using ROCKSDB_NAMESPACE::RealFunction;
using ROCKSDB_NAMESPACE::SeededThreads;

namespace {

constinit RealFunction<long(long, ...)> real_syscall("syscall");

uint64_t DeadlineOf(SeededThreads* threads, long op, const timespec* timeout) {
  if (timeout == nullptr) {
    return SeededThreads::kNever;
  }
  if ((op & FUTEX_CMD_MASK) == FUTEX_WAIT) {
    return InterposedClock::DeadlineAfter(threads,
                                          InterposedClock::ToNanos(*timeout));
  }
  return InterposedClock::Deadline(
      (op & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC,
      *timeout);
}

long Wait(SeededThreads* threads, std::atomic<uint32_t>* word, long op,
          uint32_t value, const timespec* timeout) {
  const uint64_t deadline = DeadlineOf(threads, op, timeout);
  threads->Step("futex wait", word, 0);
  if (word->load() != value) {
    errno = EAGAIN;
    return -1;
  }
  if (!threads->Wait(word, /*lock=*/nullptr, deadline)) {
    errno = ETIMEDOUT;
    return -1;
  }
  return 0;
}

}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  long args[6];
  va_list list;
  va_start(list, number);
  for (long& arg : args) {
    arg = va_arg(list, long);
  }
  va_end(list);
  SeededThreads* const threads = SeededThreads::Current();
  if (threads != nullptr && number == SYS_futex) {
    auto* const word = reinterpret_cast<std::atomic<uint32_t>*>(args[0]);
    // The value is an int in the callers, so its upper half is undefined.
    const uint32_t value = static_cast<uint32_t>(args[2]);
    switch (args[1] & FUTEX_CMD_MASK) {
      case FUTEX_WAIT:
      case FUTEX_WAIT_BITSET:
        return Wait(threads, word, args[1], value,
                    reinterpret_cast<const timespec*>(args[3]));
      case FUTEX_WAKE:
      case FUTEX_WAKE_BITSET:
        return static_cast<long>(threads->Wake(word, value));
      default:
        break;
    }
  }
  return real_syscall(number, args[0], args[1], args[2], args[3], args[4],
                      args[5]);
}
