//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>

#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {

// Shortens the second that RocksDB waits after a failed job, so that tests of
// many failures are fast.
class ImpatientClock : public SystemClockWrapper {
 public:
  using SystemClockWrapper::SystemClockWrapper;
  const char* Name() const override { return "ImpatientClock"; }
  void SleepForMicroseconds(int micros) override {
    SystemClockWrapper::SleepForMicroseconds(std::min(micros, 1000));
  }
};

}  // namespace ROCKSDB_NAMESPACE
