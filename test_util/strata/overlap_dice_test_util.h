//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The random decisions of one thread of OverlapStress.
//
// Not thread-safe.
class OverlapDice {
 public:
  explicit OverlapDice(uint64_t seed) : engine_(seed) {}

  // Returns a number from 0 to n - 1.
  // REQUIRES: n > 0
  uint64_t Below(uint64_t n) { return engine_() % n; }
  // REQUIRES: n > 0
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  bool Percent(uint64_t p) { return Below(100) < p; }

  // Sleeps for a random time.
  void Rest(uint64_t max_millis) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(Below(max_millis * 1000 + 1)));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace ROCKSDB_NAMESPACE
