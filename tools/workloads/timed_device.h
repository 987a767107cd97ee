// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Makes threads wait for a SimulatedDevice.
//
// A request of the simulated device accompanies one of the real device: it is
// admitted when the caller begins, the caller then does the real I/O, and waits
// for the rest of the simulated time. So the real I/O costs no time as long as
// it is faster than the simulated one. A request that the real device ends
// later is *late*: the simulation cannot be faster than the device that it runs
// on. Many late requests mean that the measurement says nothing about the
// simulated device.
//
// Invariants:
//
//   1. A caller that waited returns no earlier than its request ends.
//   2. No lock is held while a thread waits or does real I/O.
//   3. Time that a thread sleeps too long is not lost for a request that has
//      several parts: each part arrives when the one before it ended, and not
//      when the thread woke up.

#pragma once

#include <atomic>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/system_clock.h"
#include "tools/workloads/simulated_device.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// Thread-safe.
class TimedDevice {
 public:
  // In bytes. A larger request of which the caller waits for the end is
  // transferred in parts of this size, and other requests get their turn
  // between them. Otherwise a sync of a file of 64 MB would stop all reads for
  // its whole duration. Linux splits requests, too, by default at 1,280 KiB or
  // less.
  static constexpr uint64_t kPartBytes = uint64_t{1} << 20;

  struct Delays {
    // Requests whose real I/O ended later than the simulated one, and the sum
    // in nanoseconds by which it did.
    uint64_t late_requests = 0;
    uint64_t late_nanos = 0;
    // Sum of the nanoseconds that threads slept longer than they had to.
    uint64_t overslept_nanos = 0;

    // Returns how much each counter has grown since `before`.
    Delays Since(const Delays& before) const;
  };

  // REQUIRES: the clock outlives this.
  TimedDevice(const DeviceProfile& profile, SystemClock* clock)
      : device_(profile), clock_(clock) {}

  SimulatedDevice& device() { return device_; }
  const SimulatedDevice& device() const { return device_; }

  // Nanoseconds. Arrivals are times of this clock.
  uint64_t Now() const { return clock_->NowNanos(); }

  // Sleeps until this time. Returns at once if it has passed.
  void WaitUntil(uint64_t time);

  // The end of a request whose simulated time has been admitted whole.
  // io_end: when the real I/O ended.
  // end: when the simulated one does; waits until then.
  void Finish(uint64_t io_end, uint64_t end);

  Delays GetDelays() const;

 private:
  SimulatedDevice device_;
  SystemClock* const clock_;
  std::atomic<uint64_t> late_requests_{0};
  std::atomic<uint64_t> late_nanos_{0};
  std::atomic<uint64_t> overslept_nanos_{0};
};

// One request, of which the thread waits for the end: created before the real
// I/O, or after it with the time at which that began.
//
// Used by one thread.
class DeviceRequest {
 public:
  using Op = SimulatedDevice::Op;

  // Admits the request.
  // device: may be nullptr, for a request that takes no time.
  DeviceRequest(TimedDevice* device, Op op, uint64_t bytes)
      : DeviceRequest(device, op, bytes,
                      device == nullptr ? 0 : device->Now()) {}

  // arrival: nanoseconds.
  // continues: whether it is the next part of an earlier request, as in
  //     SimulatedDevice::Continue().
  DeviceRequest(TimedDevice* device, Op op, uint64_t bytes, uint64_t arrival,
                bool continues = false);

  // Waits for the end. Called once, after the real I/O, also if that failed: a
  // request that fails takes as long as another.
  void Wait();

 private:
  TimedDevice* const device_;
  const Op op_;
  uint64_t left_;  // bytes that are not admitted yet
  SimulatedDevice::Service service_{0, 0};
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
