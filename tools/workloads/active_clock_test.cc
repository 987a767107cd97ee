// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/active_clock.h"

#ifndef OS_WIN

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "port/port.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// All checks are in one test, because a file that is followed is followed until
// the process ends.
TEST(ActiveClockTest, StopsAreTakenOffTheTime) {
  Env* const env = Env::Default();
  const std::string path = test::PerThreadDBPath("active_clock_test");
  ASSERT_TRUE(ActiveClock::Follow(path + ".missing").IsIOError());
  const auto write = [&](uint64_t nanos, size_t size) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT, 0644);
    ASSERT_GE(file, 0);
    ASSERT_EQ(pwrite(file, &nanos, size, 0), static_cast<ssize_t>(size));
    ASSERT_EQ(close(file), 0);
  };
  write(0, 7);
  ASSERT_TRUE(ActiveClock::Follow(path).IsInvalidArgument());

  // Without a file the times are those of the clocks.
  EXPECT_EQ(ActiveClock::Wrap(env), env);
  EXPECT_EQ(ActiveClock::MeasuringClock(env), env->GetSystemClock().get());
  EXPECT_EQ(ActiveClock::StoppedNanos(), 0);

  write(0, 8);
  ASSERT_OK(ActiveClock::Follow(path));
  const auto before = std::chrono::steady_clock::now();
  const auto mine = ActiveClock::now();
  EXPECT_GE(mine, before);
  EXPECT_LE(mine, std::chrono::steady_clock::now());

  // The stop is shorter than the uptime of a machine that was started a minute
  // ago.
  constexpr uint64_t kStop = 10ull * 1000 * 1000 * 1000;
  std::unique_ptr<Env> wrapped(ActiveClock::Wrap(env));
  SystemClock* const clock = ActiveClock::MeasuringClock(env);
  const uint64_t nanos = wrapped->NowNanos();
  const uint64_t deadline_micros = wrapped->NowMicros();
  const uint64_t micros = clock->NowMicros();
  const uint64_t clock_nanos = clock->NowNanos();
  const uint64_t env_micros = ActiveClock::NowMicros(env);
  write(kStop, 8);
  EXPECT_EQ(ActiveClock::StoppedNanos(), kStop);
  // The clocks show ten seconds less.
  EXPECT_LT(ActiveClock::now(), mine);
  EXPECT_GT(ActiveClock::now(), mine - std::chrono::nanoseconds(kStop));
  EXPECT_LT(wrapped->NowNanos(), nanos);
  EXPECT_LT(nanos - wrapped->NowNanos(), kStop);
  EXPECT_LT(clock->NowNanos(), clock_nanos);
  EXPECT_LT(clock->NowMicros(), micros);
  EXPECT_LT(micros - clock->NowMicros(), kStop / 1000);
  EXPECT_LT(ActiveClock::NowMicros(env), env_micros);
  // Threads wait for times of this clock, so it does not go back.
  EXPECT_GE(wrapped->NowMicros(), deadline_micros);

  // While stops are written in the middle of readings, each time and the stops
  // that are taken off it belong together.
  std::atomic<bool> stop{false};
  std::atomic<bool> was_read{false};
  std::thread stopper([&] {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 300 || !was_read; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      // The stops are half of the elapsed time. They are reported late, unlike
      // those of a bench, so they never exceed the time that has passed.
      const auto passed = std::chrono::steady_clock::now() - began;
      write(kStop + static_cast<uint64_t>(
                        std::chrono::nanoseconds(passed).count() / 2),
            8);
    }
    stop = true;
  });
  uint64_t last_stopped = 0;
  ActiveClock::time_point last;
  while (!stop) {
    const uint64_t stopped = ActiveClock::StoppedNanos();
    const auto now = ActiveClock::now();
    if (ActiveClock::StoppedNanos() != stopped) {
      continue;  // it is unknown which of the two `now` has
    }
    // This thread was not stopped, so its time goes back by the stops that are
    // written.
    EXPECT_GE(now + std::chrono::nanoseconds(stopped - last_stopped), last);
    last = now;
    last_stopped = stopped;
    was_read = true;
  }
  stopper.join();
  EXPECT_EQ(unlink(path.c_str()), 0);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

#endif

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
