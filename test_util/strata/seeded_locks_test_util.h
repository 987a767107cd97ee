//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/seeded_trace_test_util.h"

namespace ROCKSDB_NAMESPACE {

// The locks that the threads of SeededThreads hold: mutexes, recursive ones,
// and locks of readers and writers. They are known by their addresses.
//
// Invariant: only locks with a holder take memory here, so an address can be
// used again once its lock is free.
//
// Not thread-safe.
class SeededLocks {
 public:
  struct Mode {
    bool is_shared = false;
    bool is_recursive = false;
  };
  enum class Released { kFree, kStillHeld, kNotHeld };

  // Takes the lock if it can be had. Returns false if not.
  bool TryTake(const void* lock, Mode mode, size_t thread);

  // Releases the lock once. kNotHeld: the thread does not hold it, and nothing
  // has changed.
  Released Release(const void* lock, size_t thread);

  // Returns a line for each lock that is held.
  // *trace: knows the numbers of the locks.
  std::string Describe(SeededTrace* trace) const;

 private:
  struct State {
    size_t owner = SIZE_MAX;
    size_t depth = 0;    // how often the owner has locked it
    size_t readers = 0;  // holders in shared mode
  };

  std::unordered_map<const void*, State> held_;
};

}  // namespace ROCKSDB_NAMESPACE
