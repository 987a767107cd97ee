// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// A storage device that exists only as arithmetic: it says when a request that
// arrives at a given time would have ended. SimulatedDeviceFileSystem makes
// callers wait until then.
//
// The model is one queue in order of admission, in front of
//
//   slots      queue_depth of them; a request holds one from its start to its
//              end
//   tokens     a request takes one at its start, and the next one is there
//              1 / IOPS of its kind later
//   a channel  over which one request at a time transfers its bytes; it is
//              held for size / bandwidth from the start of the request
//
// So a request that needs not wait ends `latency + size / bandwidth` after its
// arrival, and latencies of several requests overlap, but transfers do not.
// The most that a device does is, for requests of one kind and size n, the
// least of IOPS, bandwidth / n and queue_depth / (latency + n / bandwidth)
// requests per second.
//
// Invariants:
//
//   1. A request starts no earlier than it arrives, and no earlier than there
//      are a slot, a token and the channel; it starts at the first moment at
//      which all of this holds, and
//   2. no request starts before one that was admitted earlier.
//   3. At any moment at most queue_depth requests are between their start and
//      their end.
//   4. Between the starts of two requests there are at least 1 / IOPS of the
//      kind of the first one.
//   5. Transfers do not overlap. So the transfers in any interval have no more
//      bytes than the bandwidth allows.
//   6. All times follow from the sequence of (kind, size, arrival) alone.
//
// Reads and writes have limits of their own, but share slots, tokens and the
// channel: while the device transfers a write, it transfers no read. A disk, a
// SATA link and the volumes of cloud providers are like that. The link of an
// NVMe device is not, but a die of its flash serves either a read or a program
// operation. Two independent channels would promise the sum of both bandwidths
// under mixed load, which no device has.
//
// Tokens and the channel are not saved up: a device that was idle for a second
// is no faster in the next one.

#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "tools/workloads/device_profile.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// Thread-safe. The lock is held for the arithmetic of one request.
class SimulatedDevice {
 public:
  enum class Op : unsigned char {
    kRead,
    kWrite,
    // Makes acknowledged writes durable. It has the latency sync_us and no
    // bytes; otherwise it is like a write.
    kSync,
  };

  // Nanoseconds of the clock that the arrival is a time of.
  struct Service {
    uint64_t start;
    uint64_t end;
  };

  struct Stats {
    // Number of requests.
    uint64_t reads = 0;
    uint64_t writes = 0;
    uint64_t syncs = 0;
    uint64_t read_bytes = 0;
    uint64_t write_bytes = 0;
    // Nanoseconds in which there was at least one request between its start
    // and its end.
    uint64_t busy_nanos = 0;
    // Sum of the nanoseconds from arrival to start of all requests.
    uint64_t queued_nanos = 0;
    // Sum of the nanoseconds from start to end of all requests.
    uint64_t served_nanos = 0;

    uint64_t requests() const { return reads + writes + syncs; }
    // Returns how much each counter has grown since `before`.
    Stats Since(const Stats& before) const;
  };

  // REQUIRES: profile.queue_depth > 0
  explicit SimulatedDevice(const DeviceProfile& profile);
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  // Admits a request and returns when it is served.
  // bytes: its size; 0 is allowed, for example for a change of a directory.
  // arrival: nanoseconds. A request may arrive earlier than one that was
  //     admitted before it, but is served after that one.
  // REQUIRES: for kSync, bytes == 0
  Service Admit(Op op, uint64_t bytes, uint64_t arrival);

  // Admits the next part of a request that is transferred in parts, so that
  // other requests get their turn between them. It needs a slot and the
  // channel, but no token, and has no latency; it is not counted as a request.
  // REQUIRES: op is kRead or kWrite
  Service Continue(Op op, uint64_t bytes, uint64_t arrival);

  const DeviceProfile& profile() const { return profile_; }

  Stats GetStats() const;

 private:
  // not_before: nanoseconds, an earliest start besides the others.
  // latency: in nanoseconds.
  // REQUIRES: mutex_ held.
  Service Serve(Op op, uint64_t bytes, uint64_t arrival, uint64_t not_before,
                uint64_t latency);

  const DeviceProfile profile_;
  mutable std::mutex mutex_;
  // The ends of the requests that hold slots, or held them last.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> slots_;
  uint64_t last_start_ = 0;
  // Nanoseconds, from which on there is a token or the channel.
  uint64_t token_at_ = 0;
  uint64_t channel_at_ = 0;
  // The latest end of all requests.
  uint64_t busy_until_ = 0;
  Stats stats_;
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
