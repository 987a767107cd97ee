// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/active_clock.h"

#ifndef OS_WIN
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <atomic>
#include <cerrno>
#include <memory>

#include "env/composite_env_wrapper.h"
#include "util/string_util.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t) &&
              std::atomic<uint64_t>::is_always_lock_free);

const std::atomic<uint64_t> kNeverStopped{0};
const std::atomic<uint64_t>* stopped_nanos = &kNeverStopped;

// Returns the time of `now()`, whose unit is `unit` nanoseconds, minus the
// stopped time.
template <class Now>
uint64_t LessStops(const Now& now, uint64_t unit) {
  // The time and the stopped time are consistent only if there was no stop
  // between reading them.
  uint64_t stopped = stopped_nanos->load(std::memory_order_acquire);
  for (;;) {
    const uint64_t time = now();
    std::atomic_thread_fence(std::memory_order_acquire);
    const uint64_t again = stopped_nanos->load(std::memory_order_acquire);
    if (again == stopped) {
      return time - stopped / unit;
    }
    stopped = again;
  }
}

class NanosClock : public SystemClockWrapper {
 public:
  using SystemClockWrapper::SystemClockWrapper;
  const char* Name() const override { return "ActiveNanosClock"; }
  uint64_t NowNanos() override {
    return LessStops([this] { return SystemClockWrapper::NowNanos(); }, 1);
  }
};

class MicrosClock : public NanosClock {
 public:
  using NanosClock::NanosClock;
  const char* Name() const override { return "ActiveMicrosClock"; }
  uint64_t NowMicros() override {
    return LessStops([this] { return SystemClockWrapper::NowMicros(); }, 1000);
  }
};

bool Follows() { return stopped_nanos != &kNeverStopped; }

}  // namespace

Status ActiveClock::Follow(const std::string& path) {
#ifdef OS_WIN
  return Status::NotSupported("SIGSTOP is not known here", path);
#else
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return Status::IOError(path, errnoStr(errno));
  }
  // Access to a page behind the end of the file would be a SIGBUS later.
  const off_t size = lseek(file, 0, SEEK_END);
  if (size < static_cast<off_t>(sizeof(uint64_t))) {
    close(file);
    return Status::InvalidArgument(path, "has not 8 bytes");
  }
  void* const page =
      mmap(nullptr, sizeof(uint64_t), PROT_READ, MAP_SHARED, file, 0);
  const int error = errno;
  close(file);
  if (page == MAP_FAILED) {
    return Status::IOError(path, errnoStr(error));
  }
  stopped_nanos = static_cast<const std::atomic<uint64_t>*>(page);
  return Status::OK();
#endif
}

ActiveClock::time_point ActiveClock::now() {
  const uint64_t nanos = LessStops(
      [] {
        return static_cast<uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(
                std::chrono::steady_clock::now().time_since_epoch())
                .count());
      },
      1);
  return time_point(std::chrono::nanoseconds(nanos));
}

uint64_t ActiveClock::StoppedNanos() {
  return stopped_nanos->load(std::memory_order_acquire);
}

Env* ActiveClock::Wrap(Env* env) {
  if (!Follows()) {
    return env;
  }
  return new CompositeEnvWrapper(
      env, std::make_shared<NanosClock>(env->GetSystemClock()));
}

uint64_t ActiveClock::NowMicros(Env* env) {
  return LessStops([env] { return env->NowMicros(); }, 1000);
}

SystemClock* ActiveClock::MeasuringClock(Env* env) {
  if (!Follows()) {
    return env->GetSystemClock().get();
  }
  static MicrosClock* const clock = new MicrosClock(env->GetSystemClock());
  return clock;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
