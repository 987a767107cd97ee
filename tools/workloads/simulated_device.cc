// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/simulated_device.h"

#include <algorithm>
#include <cassert>

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

constexpr uint64_t kNanosPerMicro = 1000;
constexpr uint64_t kNanosPerSecond = 1'000'000'000;

// Returns the time of a transfer in nanoseconds, rounded up, so that no limit
// is exceeded.
uint64_t TransferNanos(uint64_t bytes, uint64_t mb_per_second) {
  if (mb_per_second == 0) {
    return 0;
  }
  // A megabyte per second is a byte per microsecond. The parts avoid an
  // overflow for sizes that no file has.
  const uint64_t whole = bytes / mb_per_second;
  const uint64_t rest = bytes % mb_per_second;
  return whole * kNanosPerMicro +
         (rest * kNanosPerMicro + mb_per_second - 1) / mb_per_second;
}

uint64_t SpacingNanos(uint64_t iops) {
  return iops == 0 ? 0 : (kNanosPerSecond + iops - 1) / iops;
}

}  // namespace

SimulatedDevice::Stats SimulatedDevice::Stats::Since(
    const Stats& before) const {
  Stats difference;
  difference.reads = reads - before.reads;
  difference.writes = writes - before.writes;
  difference.syncs = syncs - before.syncs;
  difference.read_bytes = read_bytes - before.read_bytes;
  difference.write_bytes = write_bytes - before.write_bytes;
  difference.busy_nanos = busy_nanos - before.busy_nanos;
  difference.queued_nanos = queued_nanos - before.queued_nanos;
  difference.served_nanos = served_nanos - before.served_nanos;
  return difference;
}

SimulatedDevice::SimulatedDevice(const DeviceProfile& profile)
    : profile_(profile) {
  assert(profile.queue_depth > 0);
}

SimulatedDevice::Service SimulatedDevice::Admit(Op op, uint64_t bytes,
                                                uint64_t arrival) {
  assert(op != Op::kSync || bytes == 0);
  const bool is_read = op == Op::kRead;
  const uint64_t latency_us = is_read            ? profile_.read_latency_us
                              : op == Op::kWrite ? profile_.write_latency_us
                                                 : profile_.sync_us;
  const uint64_t iops = is_read ? profile_.read_iops : profile_.write_iops;
  std::lock_guard<std::mutex> lock(mutex_);
  ++(is_read ? stats_.reads : op == Op::kWrite ? stats_.writes : stats_.syncs);
  const Service service =
      Serve(op, bytes, arrival, token_at_, latency_us * kNanosPerMicro);
  token_at_ = service.start + SpacingNanos(iops);
  return service;
}

SimulatedDevice::Service SimulatedDevice::Continue(Op op, uint64_t bytes,
                                                   uint64_t arrival) {
  assert(op != Op::kSync);
  std::lock_guard<std::mutex> lock(mutex_);
  return Serve(op, bytes, arrival, /*not_before=*/0, /*latency=*/0);
}

SimulatedDevice::Service SimulatedDevice::Serve(Op op, uint64_t bytes,
                                                uint64_t arrival,
                                                uint64_t not_before,
                                                uint64_t latency) {
  const bool is_read = op == Op::kRead;
  const uint64_t transfer =
      TransferNanos(bytes, is_read ? profile_.read_mb_per_second
                                   : profile_.write_mb_per_second);

  uint64_t start = std::max({arrival, not_before, last_start_, channel_at_});
  if (slots_.size() == profile_.queue_depth) {
    start = std::max(start, slots_.top());
    slots_.pop();
  }
  const uint64_t end = start + latency + transfer;

  slots_.push(end);
  last_start_ = start;
  channel_at_ = start + transfer;

  (is_read ? stats_.read_bytes : stats_.write_bytes) += bytes;
  stats_.queued_nanos += start - arrival;
  stats_.served_nanos += end - start;
  // Starts do not decrease, so a request adds at most one interval to the
  // union.
  if (end > busy_until_) {
    stats_.busy_nanos += end - std::max(start, busy_until_);
    busy_until_ = end;
  }
  return {start, end};
}

SimulatedDevice::Stats SimulatedDevice::GetStats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
