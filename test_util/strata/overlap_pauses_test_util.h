//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Makes threads sleep randomly at sync points, so that jobs and reads overtake
// each other. This has no effect in release builds.
//
// Thread-safe. REQUIRES: there is no other user of SyncPoint in the process
// from Start() to Stop().
class OverlapPauses {
 public:
  explicit OverlapPauses(uint64_t seed) : seed_(seed) {}
  OverlapPauses(const OverlapPauses&) = delete;
  OverlapPauses& operator=(const OverlapPauses&) = delete;

  // Prepares pauses, which begin with Resume().
  // REQUIRES: this outlives Stop()
  void Start();
  void Stop();

  void Resume() { is_suspended_ = false; }
  void Suspend() { is_suspended_ = true; }

  // The number of sleeps.
  uint64_t count() const { return count_; }

 private:
  const uint64_t seed_;
  std::atomic<bool> is_suspended_{true};
  std::atomic<uint64_t> count_{0};
};

}  // namespace ROCKSDB_NAMESPACE
