// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/timed_device.h"

#include <functional>
#include <memory>

#include "port/stack_trace.h"
#include "test_util/mock_time_env.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

using Op = SimulatedDevice::Op;

constexpr uint64_t kMicro = 1000;

// Calls a function before each sleep, which may shorten it.
class HookedClock : public MockSystemClock {
 public:
  HookedClock() : MockSystemClock(SystemClock::Default()) {}

  void SleepForMicroseconds(int micros) override {
    ++sleeps;
    MockSystemClock::SleepForMicroseconds(hook ? hook(micros) : micros);
  }

  std::function<int(int)> hook;
  int sleeps = 0;
};

class TimedDeviceTest : public testing::Test {
 protected:
  TimedDevice* Make(const DeviceProfile& profile) {
    device_ = std::make_unique<TimedDevice>(profile, &clock_);
    return device_.get();
  }

  HookedClock clock_;
  std::unique_ptr<TimedDevice> device_;
};

}  // namespace

TEST_F(TimedDeviceTest, CallersWaitForTheEnd) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  TimedDevice* const device = Make(profile);
  DeviceRequest request(device, Op::kRead, 0);
  EXPECT_EQ(clock_.NowMicros(), 0u);
  request.Wait();
  EXPECT_EQ(clock_.NowMicros(), 100u);
  EXPECT_EQ(device->GetDelays().overslept_nanos, 0u);
}

TEST_F(TimedDeviceTest, TheRealTimeIsPartOfTheSimulatedOne) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  TimedDevice* const device = Make(profile);
  DeviceRequest request(device, Op::kRead, 0);
  clock_.SleepForMicroseconds(40);
  request.Wait();
  EXPECT_EQ(clock_.NowMicros(), 100u);
  EXPECT_EQ(device->GetDelays().late_requests, 0u);
}

TEST_F(TimedDeviceTest, ASlowRealDeviceIsCounted) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  TimedDevice* const device = Make(profile);
  DeviceRequest request(device, Op::kRead, 0);
  clock_.SleepForMicroseconds(130);
  request.Wait();
  EXPECT_EQ(clock_.NowMicros(), 130u);
  TimedDevice::Delays delays = device->GetDelays();
  EXPECT_EQ(delays.late_requests, 1u);
  EXPECT_EQ(delays.late_nanos, 30 * kMicro);
  EXPECT_EQ(delays.overslept_nanos, 0u);

  const TimedDevice::Delays before = delays;
  DeviceRequest other(device, Op::kRead, 0);
  clock_.SleepForMicroseconds(101);
  other.Wait();
  delays = device->GetDelays().Since(before);
  EXPECT_EQ(delays.late_requests, 1u);
  EXPECT_EQ(delays.late_nanos, 1 * kMicro);
}

TEST_F(TimedDeviceTest, NoDeviceTakesNoTime) {
  DeviceRequest request(nullptr, Op::kWrite, 1 << 30);
  request.Wait();
  EXPECT_EQ(clock_.NowMicros(), 0u);
  EXPECT_EQ(clock_.sleeps, 0);
}

TEST_F(TimedDeviceTest, AnEarlierArrivalCanBeGiven) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  TimedDevice* const device = Make(profile);
  clock_.SleepForMicroseconds(70);
  DeviceRequest(device, Op::kRead, 1, /*arrival=*/20 * kMicro).Wait();
  EXPECT_EQ(clock_.NowMicros(), 120u);
}

TEST_F(TimedDeviceTest, SleepsThatEndEarlyAreRepeated) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  TimedDevice* const device = Make(profile);
  clock_.hook = [](int micros) { return micros / 2 + 1; };
  DeviceRequest(device, Op::kRead, 1).Wait();
  EXPECT_GE(clock_.NowMicros(), 100u);
  EXPECT_LE(clock_.NowMicros(), 101u);
  EXPECT_GT(clock_.sleeps, 3);
}

TEST_F(TimedDeviceTest, LongSleepsAreCounted) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  TimedDevice* const device = Make(profile);
  clock_.hook = [](int micros) { return micros + 60; };
  DeviceRequest(device, Op::kRead, 1).Wait();
  EXPECT_EQ(clock_.NowMicros(), 160u);
  EXPECT_EQ(device->GetDelays().overslept_nanos, 60 * kMicro);
  EXPECT_EQ(device->GetDelays().late_requests, 0u);
}

// A request of several parts takes latency + size / bandwidth as a whole, even
// if the device serves one request at a time and threads sleep too long.
TEST_F(TimedDeviceTest, PartsLoseNoTime) {
  DeviceProfile profile;
  profile.write_latency_us = 10;
  profile.write_mb_per_second = 1000;
  profile.write_iops = 100;
  profile.queue_depth = 1;
  for (const int too_long : {0, 60}) {
    const uint64_t begin = clock_.NowNanos();
    TimedDevice* const device = Make(profile);
    clock_.hook = [too_long](int micros) { return micros + too_long; };
    const uint64_t bytes = 2 * TimedDevice::kPartBytes + 500'000;
    DeviceRequest(device, Op::kWrite, bytes).Wait();
    clock_.hook = nullptr;
    const SimulatedDevice::Stats stats = device->device().GetStats();
    EXPECT_EQ(stats.writes, 1u);
    EXPECT_EQ(stats.write_bytes, bytes);
    EXPECT_EQ(stats.queued_nanos, 0u);
    // A byte takes a nanosecond.
    EXPECT_EQ(stats.served_nanos, 10 * kMicro + bytes);
    EXPECT_EQ(stats.busy_nanos, stats.served_nanos);
    // Sleeps are whole microseconds.
    const uint64_t end = begin + 10 * kMicro + bytes;
    EXPECT_EQ(clock_.NowMicros(), (end + kMicro - 1) / kMicro + too_long);
  }
}

TEST_F(TimedDeviceTest, OtherRequestsGetTheirTurnBetweenParts) {
  DeviceProfile profile;
  profile.read_latency_us = 5;
  profile.read_mb_per_second = 1000;
  profile.write_mb_per_second = 1000;
  TimedDevice* const device = Make(profile);
  SimulatedDevice::Service read{0, 0};
  clock_.hook = [&](int micros) {
    if (clock_.sleeps == 1) {
      read = device->device().Admit(Op::kRead, 4000, device->Now());
    }
    return micros;
  };
  DeviceRequest(device, Op::kWrite, 2 * TimedDevice::kPartBytes).Wait();
  // It waits for one part, and the next part waits for it.
  EXPECT_EQ(read.start, TimedDevice::kPartBytes);
  EXPECT_EQ(read.end, TimedDevice::kPartBytes + 4000 + 5 * kMicro);
  EXPECT_EQ(clock_.NowMicros(),
            (2 * TimedDevice::kPartBytes + 4000 + kMicro - 1) / kMicro);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
