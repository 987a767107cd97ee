//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Decides whether point reads should have their delta files read by another
// thread. To hand a read over takes some microseconds of two processors: it
// pays where a device needs longer than that, and where processors are free.
//
// Both are measured rather than guessed:
// * What a read that was handed over has saved: the part of it that was over
//   when its result was asked for. It is small if blocks come from the page
//   cache of the operating system, if the rest of the lookup needs no I/O, or
//   if the other thread was slow to begin, as on a busy machine.
// * What of all processors the process uses. Above kMaxCpuPercent reads are not
//   handed over at all: then time of processors is what limits how many reads
//   there can be.
// * Whether reads of delta files need I/O. If for long none has, to find out
//   before the LSM-tree is asked would be in vain.
//
// While one of these speaks against it, one of kSampling reads finds out
// whether it still does.
//
// Thread-safe. Counts may get lost when threads write at the same time, as
// nothing depends on a single one.
class DeltaOverlapPolicy {
 public:
  // Microseconds of processor time of the process since some point in time.
  using CpuClock = uint64_t (*)();

  static constexpr int64_t kWorthMicros = 10;
  static constexpr int64_t kFirstGuessMicros = 50;
  static constexpr uint32_t kMaxInMemory = 256;
  static constexpr int kSampling = 16;
  static constexpr uint64_t kCpuPeriodMicros = 100 * 1000;
  static constexpr uint64_t kMaxCpuPercent = 75;

  DeltaOverlapPolicy() : DeltaOverlapPolicy(&ProcessCpuMicros, NumCpus()) {}
  DeltaOverlapPolicy(CpuClock cpu_clock, uint32_t num_cpus);
  DeltaOverlapPolicy(const DeltaOverlapPolicy&) = delete;
  DeltaOverlapPolicy& operator=(const DeltaOverlapPolicy&) = delete;

  // Should a read look, before it asks the LSM-tree, whether it has anything to
  // hand over? Cheap. True for one of kSampling if it should rather not.
  bool Tries() const {
    return LooksGood() || IsSample();
  }

  // One that has tried needs no I/O for delta files.
  void OnInMemory();
  // Or it needs some. now_micros: of a clock of one's choice, always the same.
  // False: processors are busy, do not hand it over.
  bool OnIO(uint64_t now_micros);

  // How much earlier it was done because it was handed over; 0 if in vain.
  void OnGain(int64_t micros);

  int64_t AverageGain() const {
    return gain_.load(std::memory_order_relaxed) / kScale;
  }

  static uint64_t ProcessCpuMicros();
  static uint32_t NumCpus();

 private:
  static constexpr int64_t kScale = 16;
  // Of the newest one in the average.
  static constexpr int64_t kWeight = 8;

  bool LooksGood() const {
    return in_memory_.load(std::memory_order_relaxed) < kMaxInMemory &&
           gain_.load(std::memory_order_relaxed) >= kWorthMicros * kScale &&
           !is_busy_.load(std::memory_order_relaxed);
  }
  static bool IsSample();
  void Measure(uint64_t now_micros);

  const CpuClock cpu_clock_;
  const uint64_t num_cpus_;

  // In a row.
  std::atomic<uint32_t> in_memory_{0};
  // Average, in parts of a microsecond.
  std::atomic<int64_t> gain_{kFirstGuessMicros * kScale};

  std::atomic<bool> is_busy_{false};
  // When it was measured last, and the processor time then; 0: never.
  std::atomic<uint64_t> measured_at_{0};
  std::atomic<uint64_t> cpu_micros_{0};
};

}  // namespace ROCKSDB_NAMESPACE
