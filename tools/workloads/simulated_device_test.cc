// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/simulated_device.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "port/port.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

using Op = SimulatedDevice::Op;
using Service = SimulatedDevice::Service;
using Stats = SimulatedDevice::Stats;

constexpr uint64_t kMicro = 1000;
constexpr uint64_t kSecond = 1'000'000'000;

// start_us, end_us: in microseconds.
void ExpectService(const Service& service, uint64_t start_us, uint64_t end_us) {
  EXPECT_EQ(service.start, start_us * kMicro);
  EXPECT_EQ(service.end, end_us * kMicro);
}

// Returns the nanoseconds of a transfer, rounded up.
uint64_t Transfer(uint64_t bytes, uint64_t mb_per_second) {
  return mb_per_second == 0
             ? 0
             : (bytes * kMicro + mb_per_second - 1) / mb_per_second;
}

}  // namespace

TEST(SimulatedDeviceTest, RequestsThatNeedNotWaitTakeTheirLatency) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  profile.write_latency_us = 50;
  profile.sync_us = 30;
  SimulatedDevice device(profile);
  ExpectService(device.Admit(Op::kRead, 4096, 10 * kMicro), 10, 110);
  ExpectService(device.Admit(Op::kWrite, 1 << 30, 10 * kMicro), 10, 60);
  ExpectService(device.Admit(Op::kSync, 0, 20 * kMicro), 20, 50);
  ExpectService(device.Admit(Op::kRead, 0, 1000 * kMicro), 1000, 1100);

  const Stats stats = device.GetStats();
  EXPECT_EQ(stats.reads, 2u);
  EXPECT_EQ(stats.writes, 1u);
  EXPECT_EQ(stats.syncs, 1u);
  EXPECT_EQ(stats.requests(), 4u);
  EXPECT_EQ(stats.read_bytes, 4096u);
  EXPECT_EQ(stats.write_bytes, uint64_t{1} << 30);
  EXPECT_EQ(stats.queued_nanos, 0u);
  EXPECT_EQ(stats.served_nanos, (100 + 50 + 30 + 100) * kMicro);
  // From 10 to 110 and from 1000 to 1100.
  EXPECT_EQ(stats.busy_nanos, 200 * kMicro);
}

TEST(SimulatedDeviceTest, ADeviceWithoutParametersTakesNoTime) {
  SimulatedDevice device{DeviceProfile()};
  for (int i = 0; i < 100; ++i) {
    ExpectService(device.Admit(Op::kRead, uint64_t{1} << 40, 0), 0, 0);
  }
  EXPECT_EQ(device.GetStats().busy_nanos, 0u);
}

TEST(SimulatedDeviceTest, TransfersFollowEachOther) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  profile.write_latency_us = 10;
  profile.read_mb_per_second = 500;
  profile.write_mb_per_second = 250;
  SimulatedDevice device(profile);
  // A megabyte takes 2 ms to read and 4 ms to write.
  ExpectService(device.Admit(Op::kRead, 1'000'000, 0), 0, 2100);
  // Latencies overlap with transfers of others.
  ExpectService(device.Admit(Op::kRead, 1'000'000, 0), 2000, 4100);
  ExpectService(device.Admit(Op::kWrite, 1'000'000, 0), 4000, 8010);
  ExpectService(device.Admit(Op::kRead, 500'000, 7000 * kMicro), 8000, 9100);
  // A request without bytes waits for its turn, too.
  ExpectService(device.Admit(Op::kWrite, 0, 0), 9000, 9010);
  EXPECT_EQ(device.GetStats().queued_nanos,
            (0 + 2000 + 4000 + 1000 + 9000) * kMicro);
  EXPECT_EQ(device.GetStats().busy_nanos, 9100 * kMicro);
}

TEST(SimulatedDeviceTest, BandwidthIsNotExceeded) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  profile.read_mb_per_second = 3;  // a byte takes a third of a microsecond
  SimulatedDevice device(profile);
  uint64_t end = 0;
  for (int i = 0; i < 30; ++i) {
    end = device.Admit(Op::kRead, 1, 0).end;
  }
  // Each transfer is rounded up to 334 ns.
  EXPECT_EQ(end, 29 * 334 + 334 + 100 * kMicro);
  EXPECT_GE((end - 100 * kMicro) * 3, 30 * kMicro);
}

TEST(SimulatedDeviceTest, TokensComeAtTheRateOfIops) {
  DeviceProfile profile;
  profile.read_latency_us = 5;
  profile.read_iops = 1000;
  profile.write_iops = 500;
  SimulatedDevice device(profile);
  for (uint64_t i = 0; i < 5; ++i) {
    ExpectService(device.Admit(Op::kRead, 4096, 0), i * 1000, i * 1000 + 5);
  }
  // The kind of the first one of two requests says how long the second waits.
  ExpectService(device.Admit(Op::kWrite, 4096, 0), 5000, 5000);
  ExpectService(device.Admit(Op::kRead, 4096, 0), 7000, 7005);
  ExpectService(device.Admit(Op::kSync, 0, 0), 8000, 8000);
  ExpectService(device.Admit(Op::kRead, 4096, 0), 10'000, 10'005);
  // Nothing is saved up while the device is idle.
  ExpectService(device.Admit(Op::kRead, 1, 10 * kSecond), 10'000'000,
                10'000'005);
  ExpectService(device.Admit(Op::kRead, 1, 10 * kSecond), 10'001'000,
                10'001'005);
}

TEST(SimulatedDeviceTest, ReadsWithoutALimitWaitForTheTokenOfAWrite) {
  DeviceProfile profile;
  profile.write_iops = 1000;
  SimulatedDevice device(profile);
  ExpectService(device.Admit(Op::kWrite, 1, 0), 0, 0);
  ExpectService(device.Admit(Op::kRead, 1, 0), 1000, 1000);
  ExpectService(device.Admit(Op::kRead, 1, 0), 1000, 1000);
  ExpectService(device.Admit(Op::kWrite, 1, 0), 1000, 1000);
  ExpectService(device.Admit(Op::kWrite, 1, 0), 2000, 2000);
}

TEST(SimulatedDeviceTest, AtMostQueueDepthRequestsAreServedAtATime) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  profile.write_latency_us = 30;
  profile.queue_depth = 2;
  SimulatedDevice device(profile);
  ExpectService(device.Admit(Op::kRead, 1, 0), 0, 100);
  ExpectService(device.Admit(Op::kRead, 1, 0), 0, 100);
  ExpectService(device.Admit(Op::kRead, 1, 0), 100, 200);
  ExpectService(device.Admit(Op::kWrite, 1, 0), 100, 130);
  // The slot of the write is free first.
  ExpectService(device.Admit(Op::kWrite, 1, 110 * kMicro), 130, 160);
  ExpectService(device.Admit(Op::kRead, 1, 300 * kMicro), 300, 400);
  EXPECT_EQ(device.GetStats().busy_nanos, 300 * kMicro);
}

TEST(SimulatedDeviceTest, AllLimitsTogether) {
  DeviceProfile profile;
  profile.read_latency_us = 300;
  profile.read_mb_per_second = 1000;
  profile.read_iops = 10'000;  // one each 100 us
  profile.queue_depth = 2;
  SimulatedDevice device(profile);
  // 50,000 bytes take 50 us.
  ExpectService(device.Admit(Op::kRead, 50'000, 0), 0, 350);
  ExpectService(device.Admit(Op::kRead, 50'000, 0), 100, 450);    // token
  ExpectService(device.Admit(Op::kRead, 50'000, 0), 350, 700);    // slot
  ExpectService(device.Admit(Op::kRead, 250'000, 0), 450, 1000);  // both
  ExpectService(device.Admit(Op::kRead, 0, 0), 700, 1000);  // slot, channel
  ExpectService(device.Admit(Op::kRead, 0, 0), 1000, 1300);
}

TEST(SimulatedDeviceTest, RequestsAreServedInOrderOfAdmission) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  SimulatedDevice device(profile);
  ExpectService(device.Admit(Op::kRead, 1, 500 * kMicro), 500, 600);
  ExpectService(device.Admit(Op::kRead, 1, 100 * kMicro), 500, 600);
  EXPECT_EQ(device.GetStats().queued_nanos, 400 * kMicro);
}

TEST(SimulatedDeviceTest, PartsHaveNoLatencyAndTakeNoToken) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  profile.read_mb_per_second = 1000;
  profile.read_iops = 100;  // one each 10 ms
  profile.queue_depth = 1;
  SimulatedDevice device(profile);
  ExpectService(device.Admit(Op::kRead, 1'000'000, 0), 0, 1100);
  ExpectService(device.Continue(Op::kRead, 500'000, 1100 * kMicro), 1100, 1600);
  ExpectService(device.Admit(Op::kRead, 1000, 0), 10'000, 10'101);
  // The part waits for the slot.
  ExpectService(device.Continue(Op::kRead, 1000, 0), 10'101, 10'102);
  EXPECT_EQ(device.GetStats().reads, 2u);
  EXPECT_EQ(device.GetStats().read_bytes, 1'502'000u);
}

TEST(SimulatedDeviceTest, StatsAreDifferencesOfCounters) {
  DeviceProfile profile;
  profile.read_latency_us = 100;
  profile.write_latency_us = 50;
  SimulatedDevice device(profile);
  device.Admit(Op::kRead, 5, 0);
  const Stats before = device.GetStats();
  device.Admit(Op::kRead, 7, kSecond);
  device.Admit(Op::kWrite, 11, 2 * kSecond);
  device.Admit(Op::kSync, 0, 3 * kSecond);
  const Stats stats = device.GetStats().Since(before);
  EXPECT_EQ(stats.reads, 1u);
  EXPECT_EQ(stats.read_bytes, 7u);
  EXPECT_EQ(stats.writes, 1u);
  EXPECT_EQ(stats.write_bytes, 11u);
  EXPECT_EQ(stats.syncs, 1u);
  EXPECT_EQ(stats.busy_nanos, 150 * kMicro);
  EXPECT_EQ(stats.served_nanos, 150 * kMicro);
  EXPECT_EQ(stats.queued_nanos, 0u);
}

// Compares random sequences with the invariants in the header, each in its
// simplest form.
TEST(SimulatedDeviceTest, InvariantsHoldForRandomSequences) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random rnd(seed);
    DeviceProfile profile;
    profile.read_latency_us = rnd.Uniform(200);
    profile.write_latency_us = rnd.Uniform(200);
    profile.read_mb_per_second = rnd.OneIn(4) ? 0 : rnd.Uniform(1000) + 1;
    profile.write_mb_per_second = rnd.OneIn(4) ? 0 : rnd.Uniform(1000) + 1;
    profile.read_iops = rnd.OneIn(4) ? 0 : rnd.Uniform(100'000) + 1;
    profile.write_iops = rnd.OneIn(4) ? 0 : rnd.Uniform(100'000) + 1;
    profile.queue_depth = rnd.Uniform(8) + 1;
    profile.sync_us = rnd.Uniform(200);
    SimulatedDevice device(profile);
    SimulatedDevice twin(profile);

    uint64_t now = 0;
    uint64_t last_start = 0;
    uint64_t channel_at = 0;
    uint64_t token_at = 0;
    std::vector<Service> all;
    Stats expected;
    for (int i = 0; i < 100; ++i) {
      now += rnd.Uniform(100) * kMicro;
      // Some arrive before others that were admitted.
      const uint64_t arrival =
          now - std::min<uint64_t>(now, rnd.Uniform(200) * kMicro);
      const Op op = static_cast<Op>(rnd.Uniform(3));
      const bool part = op != Op::kSync && rnd.OneIn(5);
      const uint64_t bytes = op == Op::kSync ? 0 : rnd.Uniform(100'000);
      const bool is_read = op == Op::kRead;
      const uint64_t transfer =
          Transfer(bytes, is_read ? profile.read_mb_per_second
                                  : profile.write_mb_per_second);
      const uint64_t latency =
          kMicro * (part               ? 0
                    : is_read          ? profile.read_latency_us
                    : op == Op::kWrite ? profile.write_latency_us
                                       : profile.sync_us);
      const uint64_t iops = is_read ? profile.read_iops : profile.write_iops;

      const Service service = part ? device.Continue(op, bytes, arrival)
                                   : device.Admit(op, bytes, arrival);
      // The same sequence gives the same times.
      const Service again = part ? twin.Continue(op, bytes, arrival)
                                 : twin.Admit(op, bytes, arrival);
      ASSERT_EQ(service.start, again.start);
      ASSERT_EQ(service.end, again.end);

      // A slot is free once all but queue_depth - 1 requests have ended.
      std::vector<uint64_t> ends;
      for (const Service& other : all) {
        ends.push_back(other.end);
      }
      std::sort(ends.begin(), ends.end(), std::greater<>());
      const uint64_t slot_at =
          ends.size() < profile.queue_depth ? 0 : ends[profile.queue_depth - 1];
      ASSERT_EQ(service.start,
                std::max({arrival, last_start, channel_at, slot_at,
                          part ? uint64_t{0} : token_at}));
      ASSERT_EQ(service.end, service.start + latency + transfer);

      all.push_back(service);
      last_start = service.start;
      channel_at = service.start + transfer;
      if (!part) {
        token_at =
            service.start + (iops == 0 ? 0 : (kSecond + iops - 1) / iops);
        ++(is_read            ? expected.reads
           : op == Op::kWrite ? expected.writes
                              : expected.syncs);
      }
      (is_read ? expected.read_bytes : expected.write_bytes) += bytes;
      expected.queued_nanos += service.start - arrival;
      expected.served_nanos += service.end - service.start;
    }

    // The union of all intervals, from the moments at which requests start and
    // end.
    std::vector<std::pair<uint64_t, int>> moments;
    for (const Service& service : all) {
      moments.emplace_back(service.start, 1);
      moments.emplace_back(service.end, -1);
    }
    std::sort(moments.begin(), moments.end());
    int running = 0;
    uint64_t from = 0;
    for (const auto& [at, change] : moments) {
      if (running > 0) {
        expected.busy_nanos += at - from;
      }
      running += change;
      ASSERT_LE(running, static_cast<int>(profile.queue_depth));
      from = at;
    }

    const Stats stats = device.GetStats();
    EXPECT_EQ(stats.reads, expected.reads);
    EXPECT_EQ(stats.writes, expected.writes);
    EXPECT_EQ(stats.syncs, expected.syncs);
    EXPECT_EQ(stats.read_bytes, expected.read_bytes);
    EXPECT_EQ(stats.write_bytes, expected.write_bytes);
    EXPECT_EQ(stats.busy_nanos, expected.busy_nanos);
    EXPECT_EQ(stats.queued_nanos, expected.queued_nanos);
    EXPECT_EQ(stats.served_nanos, expected.served_nanos);
  }
}

TEST(SimulatedDeviceTest, ThreadsShareTheDevice) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kRequests = 1000;
  DeviceProfile profile;
  profile.read_latency_us = 10;
  profile.read_mb_per_second = 1000;
  profile.queue_depth = 1;
  SimulatedDevice device(profile);
  std::vector<port::Thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&device] {
      for (uint64_t i = 0; i < kRequests; ++i) {
        device.Admit(Op::kRead, 1000, 0);
        device.GetStats();
      }
    });
  }
  for (port::Thread& thread : threads) {
    thread.join();
  }
  const Stats stats = device.GetStats();
  EXPECT_EQ(stats.reads, kThreads * kRequests);
  EXPECT_EQ(stats.read_bytes, kThreads * kRequests * 1000);
  // One after the other, without a gap.
  EXPECT_EQ(stats.busy_nanos, kThreads * kRequests * 11 * kMicro);
  EXPECT_EQ(stats.served_nanos, stats.busy_nanos);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
