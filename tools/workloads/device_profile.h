// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The parameters of simulated devices, and their text form, in which the flag
// --path_devices says which directory lies on which device:
//
//   <path>:<device>,...
//
//   device:  <preset>
//            <latency us>:<MB/s>:<IOPS>[:<queue depth>[:<sync us>]]
//
//   /fast/db:nvme,/slow/db:100/24:550/520:98000/90000:32:1000
//
// The first three numbers may be given for reads and writes apart, as
// <read>/<write>. The presets are in device_profile.cc, with their sources. In
// a path "%XX" stands for the byte XX, so any path can be written, even one
// with a comma or colon.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// The parameters of a device. SimulatedDevice defines their meaning for a
// request. The default is a device that takes no time.
struct DeviceProfile {
  static constexpr uint64_t kDefaultQueueDepth = 32;

  // In microseconds: from the start of a request to its end. The time of its
  // transfer is not included.
  uint64_t read_latency_us = 0;
  uint64_t write_latency_us = 0;
  // In 10^6 bytes per second. 0: no limit.
  uint64_t read_mb_per_second = 0;
  uint64_t write_mb_per_second = 0;
  // In requests per second. 0: no limit.
  uint64_t read_iops = 0;
  uint64_t write_iops = 0;
  // How many requests the device serves at the same time, at least 1.
  uint64_t queue_depth = kDefaultQueueDepth;
  // In microseconds: how long the device takes to make the writes that it has
  // acknowledged durable. 0: they are durable when it acknowledges them.
  uint64_t sync_us = 0;

  bool operator==(const DeviceProfile&) const = default;

  // Returns the text form without a preset: all numbers.
  std::string ToString() const;
};

// A directory and the device that its files lie on.
struct PathDevice {
  std::string path;
  DeviceProfile profile;
};

// Parses a list of directories and devices. A blank text is an empty list.
// Returns InvalidArgument if the text is not such a list, or if it has a path
// twice; the message has the item and the reason. On failure *devices is
// unchanged.
Status ParsePathDevices(const std::string& text,
                        std::vector<PathDevice>* devices);

// Returns the names of the presets, separated by ", ".
std::string DevicePresetNames();

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
