//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "env/io_uring_batch.h"

#ifdef ROCKSDB_IOURING_PRESENT
#include <liburing.h>
#endif

#include <cassert>
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

#ifdef ROCKSDB_IOURING_PRESENT

IOUringBatch::~IOUringBatch() {
  if (current_ != this) {
    return;
  }
  current_ = nullptr;
  while (ring_ != nullptr && io_uring_sq_ready(ring_) > 0) {
    int result = io_uring_submit(ring_);
    TEST_SYNC_POINT_CALLBACK("IOUringBatch::Submitted", &result);
    if (result == -EINTR || result == -EAGAIN || result == -EBUSY) {
      // The kernel has no memory at the moment.
      std::this_thread::yield();
    } else if (result < 0) {
      // Who has begun these reads will wait for their end, which would not come:
      // as in FileSystem::Poll(), there is nothing that could be done.
      fprintf(stderr, "IOUringBatch: io_uring_submit failed: %d\n", result);
      abort();
    }
  }
}

int IOUringBatch::Submit(struct io_uring* ring) {
  IOUringBatch* const batch = current_;
  if (batch == nullptr) {
    return io_uring_submit(ring);
  }
  assert(batch->ring_ == nullptr || batch->ring_ == ring);
  batch->ring_ = ring;
  return 1;
}

#else

IOUringBatch::~IOUringBatch() {
  if (current_ == this) {
    current_ = nullptr;
  }
}

int IOUringBatch::Submit(struct io_uring* /*ring*/) { return -ENOSYS; }

#endif  // ROCKSDB_IOURING_PRESENT

}  // namespace ROCKSDB_NAMESPACE
