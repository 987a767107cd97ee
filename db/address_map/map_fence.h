// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Memory fences of the protocol between the writers and the lock-free readers
// of an address map.
//
// ThreadSanitizer does not support fences (and GCC warns about them). It orders
// atomic operations by itself, so it is correct without them.
struct MapFence {
  static void Acquire() {
#ifndef __SANITIZE_THREAD__
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
  }
  static void Release() {
#ifndef __SANITIZE_THREAD__
    std::atomic_thread_fence(std::memory_order_release);
#endif
  }
};

}  // namespace ROCKSDB_NAMESPACE
