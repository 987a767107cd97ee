//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"

struct io_uring;

namespace ROCKSDB_NAMESPACE {

// While one lives, asynchronous reads that its thread begins, on files of the
// default file system (FSRandomAccessFile::ReadAsync()), are only noted down;
// when it ends the kernel gets them all by one system call, and the device
// hears of them once. That is most of what a short read costs a processor.
//
// Within another one it does nothing. Without io_uring, neither.
//
// Whoever waits for such a read or gives it up in between (a file system that
// wraps the default one, a listener) has all handed over that was noted down
// until then. If there is more than the ring has room for, or there are rings
// of several file systems, there are more system calls.
class IOUringBatch {
 public:
  IOUringBatch();
  ~IOUringBatch();
  IOUringBatch(const IOUringBatch&) = delete;
  IOUringBatch& operator=(const IOUringBatch&) = delete;

  // For PosixRandomAccessFile::ReadAsync(): io_uring_submit(), which gives the
  // number of requests that were submitted or what went wrong, or 1 if the
  // thread has a batch that does it later.
  static int Submit(struct io_uring* ring);
  // Before it takes a place in the ring. Else it would have to refuse a read
  // because the ones before it were not submitted.
  static void MakeRoom(struct io_uring* ring);
  // For FileSystem::Poll() and AbortIO() of the default file system.
  static void SubmitNow() {
    if (current_ != nullptr) {
      current_->SubmitAll();
    }
  }

 private:
  void SubmitAll();

  static thread_local IOUringBatch* current_;

  // The thread's. nullptr: nothing was noted down.
  struct io_uring* ring_ = nullptr;
};

}  // namespace ROCKSDB_NAMESPACE
