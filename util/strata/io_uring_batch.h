//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"

struct io_uring;

namespace ROCKSDB_NAMESPACE {

// Batches the asynchronous reads (FSRandomAccessFile::ReadAsync()) that a
// thread begins on files of the default file system. While the object exists
// the reads are only queued; the destructor submits all of them to the kernel
// by one system call. Submission is most of the CPU cost of a short read.
//
// The object does nothing inside the lifetime of another one of the same
// thread, or without io_uring.
//
// If the thread waits for one of the reads, or aborts it, before the batch ends
// (for example in a file system that wraps the default one, or in a listener),
// all reads queued so far are submitted. There are also more system calls if
// the ring has no room for all reads, or if several file systems have rings.
//
// Used by one thread.
class IOUringBatch {
 public:
  IOUringBatch();
  ~IOUringBatch();
  IOUringBatch(const IOUringBatch&) = delete;
  IOUringBatch& operator=(const IOUringBatch&) = delete;

  // Called by PosixRandomAccessFile::ReadAsync(). If the thread has a batch,
  // leaves the submission to it and returns 1. Otherwise returns the result of
  // io_uring_submit(): the number of submitted requests or a negative error.
  static int Submit(struct io_uring* ring);
  // Called by PosixRandomAccessFile::ReadAsync() before it takes an entry of
  // the ring. Submits the queued reads if the ring is full, since the read
  // would otherwise be refused.
  static void MakeRoom(struct io_uring* ring);
  // Submits the queued reads. Called by FileSystem::Poll() and AbortIO() of the
  // default file system.
  static void SubmitNow() {
    if (current_ != nullptr) {
      current_->SubmitAll();
    }
  }

 private:
  void SubmitAll();

  static thread_local IOUringBatch* current_;

  // The ring of the queued reads. nullptr if no read is queued.
  struct io_uring* ring_ = nullptr;
};

}  // namespace ROCKSDB_NAMESPACE
