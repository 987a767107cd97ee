//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The functions that interposed_*_test_util.cc stand in front of. A program
// that is linked with these files has functions of the names of libc's, which
// also the shared libraries call. A thread of SeededThreads is then handled by
// these functions; for any other thread, the real functions are called.
//
// This works for calls between shared libraries and the program only. A program
// into which the library is linked statically has two definitions of some of
// the functions.

#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A function of another library whose name the program has, too. It is looked
// up in the first call, which may precede all constructors of the program.
//
// Thread-safe.
template <typename Function>
class RealFunction {
 public:
  explicit constexpr RealFunction(const char* name) : name_(name) {}

  template <typename... Args>
  auto operator()(Args... args) {
    return Get()(args...);
  }

 private:
  Function* Get() {
    void* function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = dlsym(RTLD_NEXT, name_);
      if (function == nullptr) {
        std::abort();
      }
      function_.store(function, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function*>(function);
  }

  const char* const name_;
  std::atomic<void*> function_{nullptr};
};

}  // namespace ROCKSDB_NAMESPACE
