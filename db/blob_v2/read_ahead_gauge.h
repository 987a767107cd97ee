//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Decides whether scans hand reads to the threads of BlobReadPool. That costs
// two switches between threads for each read, which is more than a read from
// the page cache takes.
//
// The gauge knows how long reads take from those that the scanning threads do
// themselves. While reads are handed over, one of kProbeEvery is not, in order
// to be measured. After kFastProbes fast ones in a row, no reads are handed
// over until half of the last kWindow reads were slow.
//
// Thread-safe and lock-free. The decision is an estimate: threads may overwrite
// each other's results.
class ReadAheadGauge {
 public:
  static constexpr uint32_t kProbeEvery = 1024;
  static constexpr uint32_t kFastProbes = 3;
  static constexpr uint32_t kWindow = 8;
  // Microseconds. A read of a few bytes that takes longer than this did not
  // come from a cache.
  static constexpr uint64_t kCachedMicros = 20;
  // A cache gives at least this many bytes in a microsecond, with checksums.
  static constexpr uint64_t kCachedBytesPerMicro = 4096;

  ReadAheadGauge() = default;
  ReadAheadGauge(const ReadAheadGauge&) = delete;
  ReadAheadGauge& operator=(const ReadAheadGauge&) = delete;

  // Returns true if the next read should be handed over. Otherwise the scanning
  // thread does it when it needs the value, and passes its time to OnRead().
  bool HandsOver() {
    return hands_over_.load(std::memory_order_relaxed) &&
           asked_.fetch_add(1, std::memory_order_relaxed) % kProbeEvery !=
               kProbeEvery - 1;
  }

  // Adds a read that a scanning thread has done.
  // bytes: bytes, size of the read.
  // micros: microseconds, how long it took.
  void OnRead(uint64_t bytes, uint64_t micros);

 private:
  std::atomic<bool> hands_over_{true};
  std::atomic<uint32_t> asked_{0};
  // A bit for each of the last reads, the newest one lowest: 1 if it was slow.
  std::atomic<uint32_t> slow_reads_{(1u << kWindow) - 1};
};

}  // namespace ROCKSDB_NAMESPACE
