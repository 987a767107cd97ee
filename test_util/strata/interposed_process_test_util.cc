//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What is random, or differs between processes and machines, for the threads of
// SeededThreads; see interposed_real_test_util.h.

#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/types.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>

#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "test_util/strata/interposed_real_test_util.h"
#include "test_util/strata/seeded_threads_test_util.h"
#include "test_util/sync_point.h"

using ROCKSDB_NAMESPACE::RealFunction;
using ROCKSDB_NAMESPACE::SeededThreads;

namespace {

constinit RealFunction<pid_t()> real_getpid("getpid");
constinit RealFunction<pid_t()> real_gettid("gettid");
constinit RealFunction<int()> real_sched_getcpu("sched_getcpu");
constinit RealFunction<int()> real_get_nprocs("get_nprocs");
constinit RealFunction<int(char*, size_t)> real_gethostname("gethostname");
constinit RealFunction<unsigned(std::random_device*)> real_getval(
    "_ZNSt13random_device9_M_getvalEv");
constinit RealFunction<bool(std::string*)> real_generate_uuid(
    "_ZN7rocksdb4port15GenerateRfcUuidEPNSt7__cxx1112basic_stringIcSt11char_"
    "traitsIcESaIcEEE");
#ifndef NDEBUG
constinit RealFunction<void(void*, const ROCKSDB_NAMESPACE::Slice*, void*)>
    real_process("_ZN7rocksdb9SyncPoint7ProcessERKNS_5SliceEPv");
#endif

// Above all process ids that Linux gives, so that a signal to it hits none.
constexpr pid_t kProcessId = 1 << 30;
constexpr int kProcessors = 4;

}  // namespace

extern "C" {

pid_t getpid() noexcept {
  return SeededThreads::Current() == nullptr ? real_getpid() : kProcessId;
}

pid_t gettid() noexcept {
  const SeededThreads* const threads = SeededThreads::Current();
  return threads == nullptr ? real_gettid()
                            : kProcessId + static_cast<pid_t>(threads->Self());
}

int sched_getcpu() noexcept {
  const SeededThreads* const threads = SeededThreads::Current();
  return threads == nullptr ? real_sched_getcpu()
                            : static_cast<int>(threads->Self() % kProcessors);
}

int get_nprocs() noexcept {
  return SeededThreads::Current() == nullptr ? real_get_nprocs() : kProcessors;
}

int gethostname(char* name, size_t size) noexcept {
  if (SeededThreads::Current() == nullptr) {
    return real_gethostname(name, size);
  }
  std::snprintf(name, size, "seeded");
  return 0;
}

}  // extern "C"

std::random_device::result_type std::random_device::_M_getval() {
  SeededThreads* const threads = SeededThreads::Current();
  return threads == nullptr ? real_getval(this)
                            : static_cast<result_type>(threads->Random64());
}

namespace ROCKSDB_NAMESPACE {

// Read from /proc otherwise.
bool port::GenerateRfcUuid(std::string* output) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_generate_uuid(output);
  }
  const uint64_t a = threads->Random64();
  const uint64_t b = threads->Random64();
  char uuid[40];
  std::snprintf(
      uuid, sizeof(uuid),
      "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-8%03" PRIx64 "-%012" PRIx64,
      a & 0xffffffff, (a >> 32) & 0xffff, a >> 52, b & 0xfff, b >> 16);
  *output = uuid;
  return true;
}

#ifndef NDEBUG
// Another thread may run at each sync point.
void SyncPoint::Process(const Slice& point, void* arg) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads != nullptr) {
    // The name is a literal or a std::string, so it has a zero at its end.
    threads->Step(point.data(), /*object=*/nullptr, 0);
  }
  real_process(this, &point, arg);
}
#endif

}  // namespace ROCKSDB_NAMESPACE
