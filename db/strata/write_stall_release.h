//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Ends write stalls that an error recovery would wait for.
//
// A stalled writer (DBImpl::DelayWrite()) leads the write thread, and while a
// recovery is in progress it waits for the recovery to end the stall. The
// recovery's flush has to enter the write thread, where it waits for the
// stalled writer. RocksDB 11.8.1 hangs in this case: no writer, no flush and no
// Close() of the DB returns.
//
// Invariant: while a recovery waits for the write thread, or for a device that
// has failed, no writer is stalled in DelayWrite(). A writer that gives up
// returns Status::Incomplete with the background error, which no path of a
// write takes for a new background error.
//
// Stalls by a WriteBufferManager are not covered: a recovery can still hang
// behind one, as in RocksDB.
//
// Not thread-safe. REQUIRES: the DB mutex is held during every call.

#pragma once

#include <cassert>

#include "monitoring/instrumented_mutex.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class WriteStallRelease {
 public:
  WriteStallRelease() = default;
  WriteStallRelease(const WriteStallRelease&) = delete;
  WriteStallRelease& operator=(const WriteStallRelease&) = delete;

  // Returns true if a stalled writer has to give up now.
  bool IsRequested() const { return requests_ > 0; }

  // A recovery's wait for the write thread or for a device. The constructor
  // wakes the stalled writers; writers that come while the object lives do not
  // stall.
  class Request {
   public:
    // release: must outlive this object.
    // is_recovery: if false, the object does nothing.
    // stalled: the condition variable on which stalled writers wait.
    Request(WriteStallRelease* release, bool is_recovery,
            InstrumentedCondVar* stalled)
        : release_(is_recovery ? release : nullptr) {
      if (release_ != nullptr) {
        ++release_->requests_;
        stalled->SignalAll();
      }
    }
    ~Request() {
      if (release_ != nullptr) {
        assert(release_->requests_ > 0);
        --release_->requests_;
      }
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    WriteStallRelease* const release_;
  };

 private:
  int requests_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
