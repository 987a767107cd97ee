// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/timed_device.h"

#ifdef OS_LINUX
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <limits>

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

constexpr uint64_t kNanosPerMicro = 1000;

// Linux lets a thread sleep up to 50 us longer than asked for, so that several
// timers expire together. That is most of the latency of a fast device.
void SleepPrecisely() {
#ifdef OS_LINUX
  static thread_local const int result = prctl(PR_SET_TIMERSLACK, 1UL);
  (void)result;
#endif
}

}  // namespace

TimedDevice::Delays TimedDevice::Delays::Since(const Delays& before) const {
  Delays difference;
  difference.late_requests = late_requests - before.late_requests;
  difference.late_nanos = late_nanos - before.late_nanos;
  difference.overslept_nanos = overslept_nanos - before.overslept_nanos;
  return difference;
}

void TimedDevice::WaitUntil(uint64_t time) {
  uint64_t now = Now();
  if (now >= time) {
    return;
  }
  SleepPrecisely();
  do {
    const uint64_t micros = (time - now + kNanosPerMicro - 1) / kNanosPerMicro;
    clock_->SleepForMicroseconds(static_cast<int>(
        std::min<uint64_t>(micros, std::numeric_limits<int>::max())));
    now = Now();
  } while (now < time);
  overslept_nanos_.fetch_add(now - time, std::memory_order_relaxed);
}

void TimedDevice::Finish(uint64_t io_end, uint64_t end) {
  if (io_end > end) {
    late_requests_.fetch_add(1, std::memory_order_relaxed);
    late_nanos_.fetch_add(io_end - end, std::memory_order_relaxed);
    return;
  }
  WaitUntil(end);
}

TimedDevice::Delays TimedDevice::GetDelays() const {
  Delays delays;
  delays.late_requests = late_requests_.load(std::memory_order_relaxed);
  delays.late_nanos = late_nanos_.load(std::memory_order_relaxed);
  delays.overslept_nanos = overslept_nanos_.load(std::memory_order_relaxed);
  return delays;
}

DeviceRequest::DeviceRequest(TimedDevice* device, Op op, uint64_t bytes,
                             uint64_t arrival, bool continues)
    : device_(device), op_(op), left_(0) {
  if (device_ == nullptr) {
    return;
  }
  const uint64_t part = std::min(bytes, TimedDevice::kPartBytes);
  left_ = bytes - part;
  service_ = continues ? device_->device().Continue(op_, part, arrival)
                       : device_->device().Admit(op_, part, arrival);
}

void DeviceRequest::Wait() {
  if (device_ == nullptr) {
    return;
  }
  const uint64_t io_end = device_->Now();
  while (left_ > 0) {
    device_->WaitUntil(service_.end);
    const uint64_t part = std::min(left_, TimedDevice::kPartBytes);
    service_ = device_->device().Continue(op_, part, service_.end);
    left_ -= part;
  }
  device_->Finish(io_end, service_.end);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
