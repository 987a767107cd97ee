//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_overlap_policy.h"

#include <algorithm>
#include <ctime>
#include <thread>

#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

DeltaOverlapPolicy::DeltaOverlapPolicy(CpuClock cpu_clock, uint32_t num_cpus)
    : cpu_clock_(cpu_clock), num_cpus_(std::max(num_cpus, uint32_t{1})) {}

bool DeltaOverlapPolicy::IsSample() {
  return Random::GetTLSInstance()->OneIn(kSampling);
}

void DeltaOverlapPolicy::OnInMemory() {
  const uint32_t in_memory = in_memory_.load(std::memory_order_relaxed);
  // Not written to for ever: all readers have it in their caches.
  if (in_memory < kMaxInMemory) {
    in_memory_.store(in_memory + 1, std::memory_order_relaxed);
  }
}

bool DeltaOverlapPolicy::OnIO(uint64_t now_micros) {
  if (in_memory_.load(std::memory_order_relaxed) != 0) {
    in_memory_.store(0, std::memory_order_relaxed);
  }
  Measure(now_micros);
  return !is_busy_.load(std::memory_order_relaxed);
}

void DeltaOverlapPolicy::Measure(uint64_t now_micros) {
  uint64_t measured_at = measured_at_.load(std::memory_order_relaxed);
  if (measured_at != 0 && now_micros < measured_at + kCpuPeriodMicros) {
    return;
  }
  if (!measured_at_.compare_exchange_strong(measured_at, now_micros,
                                            std::memory_order_relaxed)) {
    return;  // somebody else does it
  }
  const uint64_t cpu = cpu_clock_();
  const uint64_t last_cpu =
      cpu_micros_.exchange(cpu, std::memory_order_relaxed);
  const uint64_t micros = now_micros - measured_at;
  // If it was long ago, the time in between says nothing about now. The clock
  // of processor time may not go on (or wrap), where it is not supported.
  const bool is_known = measured_at != 0 && micros < 10 * kCpuPeriodMicros &&
                        cpu >= last_cpu;
  is_busy_.store(is_known && (cpu - last_cpu) * 100 >
                                 micros * num_cpus_ * kMaxCpuPercent,
                 std::memory_order_relaxed);
}

void DeltaOverlapPolicy::OnGain(int64_t micros) {
  // A single read that a device has kept for long must not decide for many.
  constexpr int64_t kMaxMicros = 1000;
  const int64_t gain =
      std::clamp(micros, int64_t{0}, kMaxMicros) * kScale;
  const int64_t average = gain_.load(std::memory_order_relaxed);
  gain_.store(average + (gain - average) / kWeight, std::memory_order_relaxed);
}

uint64_t DeltaOverlapPolicy::ProcessCpuMicros() {
  const std::clock_t clock = std::clock();
  return clock < 0 ? 0
                   : static_cast<uint64_t>(static_cast<double>(clock) *
                                           (1e6 / CLOCKS_PER_SEC));
}

uint32_t DeltaOverlapPolicy::NumCpus() {
  return std::thread::hardware_concurrency();
}

}  // namespace ROCKSDB_NAMESPACE
