//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/io_uring_batch.h"

#ifdef ROCKSDB_IOURING_PRESENT
#include <liburing.h>
#endif

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

thread_local IOUringBatch* IOUringBatch::current_ = nullptr;

IOUringBatch::IOUringBatch() {
  if (current_ == nullptr) {
    current_ = this;
  }
}

IOUringBatch::~IOUringBatch() {
  if (current_ == this) {
    SubmitAll();
    current_ = nullptr;
  }
}

#ifdef ROCKSDB_IOURING_PRESENT

void IOUringBatch::SubmitAll() {
  while (ring_ != nullptr && io_uring_sq_ready(ring_) > 0) {
    int result = io_uring_submit(ring_);
    TEST_SYNC_POINT_CALLBACK("IOUringBatch::SubmitAll:Submitted", &result);
    if (result == -EINTR || result == -EAGAIN || result == -EBUSY) {
      // The error is temporary, for example because the kernel has no memory.
      std::this_thread::yield();
    } else if (result < 0) {
      // The callers will wait for these reads, which would never complete. As
      // in FileSystem::Poll(), the error cannot be handled.
      fprintf(stderr, "IOUringBatch: io_uring_submit failed: %d\n", result);
      abort();
    }
  }
  ring_ = nullptr;
}

int IOUringBatch::Submit(struct io_uring* ring) {
  IOUringBatch* const batch = current_;
  if (batch == nullptr || (batch->ring_ != nullptr && batch->ring_ != ring)) {
    return io_uring_submit(ring);
  }
  batch->ring_ = ring;
  return 1;
}

void IOUringBatch::MakeRoom(struct io_uring* ring) {
  IOUringBatch* const batch = current_;
  if (batch != nullptr && batch->ring_ == ring &&
      io_uring_sq_space_left(ring) == 0) {
    batch->SubmitAll();
  }
}

#else

void IOUringBatch::SubmitAll() {}

void IOUringBatch::MakeRoom(struct io_uring* /*ring*/) {}

int IOUringBatch::Submit(struct io_uring* /*ring*/) { return -ENOSYS; }

#endif  // ROCKSDB_IOURING_PRESENT

}  // namespace ROCKSDB_NAMESPACE
