// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Asynchronous reads (FSRandomAccessFile::ReadAsync()) from simulated devices.
//
// A read arrives at the device when it is submitted. It completes when both the
// real read and the simulated one have ended; the caller learns of it in Poll()
// or AbortIO(), never before.
//
// Invariants:
//
//   1. The callback of a read is called at most once, by Poll() or AbortIO()
//      for its handle, in the thread that calls that.
//   2. Poll() calls it no earlier than the simulated end.
//   3. AbortIO() does not wait for a simulated end. A read whose end has not
//      come is completed with Status::Aborted() and without a result, also if
//      the real read has ended.
//   4. The device serves an aborted read all the same: a request that it has
//      been given cannot be taken back. So later requests wait for it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "tools/workloads/timed_device.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// The handles of the reads that were submitted through one file system. Other
// handles belong to the file system below, and are passed on to it.
//
// Thread-safe, except that one read is polled or aborted by one thread at a
// time.
class SimulatedAsyncReads {
 public:
  using Callback = std::function<void(FSReadRequest&, void*)>;

  SimulatedAsyncReads() = default;
  // REQUIRES: all handles have been deleted.
  ~SimulatedAsyncReads();
  SimulatedAsyncReads(const SimulatedAsyncReads&) = delete;
  SimulatedAsyncReads& operator=(const SimulatedAsyncReads&) = delete;

  // Submits a read; like FSRandomAccessFile::ReadAsync() of `file`, whose
  // errors it returns. A read that is refused takes no time of the device.
  // device_bytes: the size of the request to the device. At the end of a file
  //     it is smaller than the size of the read.
  // device: may be nullptr, for a read that takes no time.
  // REQUIRES: `file` and `device` outlive the handle.
  IOStatus Submit(FSRandomAccessFile* file, TimedDevice* device,
                  uint64_t device_bytes, FSReadRequest& request,
                  const IOOptions& options, Callback callback, void* arg,
                  void** handle, IOHandleDeleter* deleter, IODebugContext* dbg);

  // Waits for all reads, as Poll() of the default file system does. A call that
  // has only handles of the file system below is passed on unchanged.
  // base: the file system below.
  IOStatus Poll(FileSystem* base, std::vector<void*>& handles,
                size_t min_completions);

  // Ends all reads.
  IOStatus AbortIO(FileSystem* base, const std::vector<void*>& handles);

 private:
  struct Read;

  // Returns the reads among the handles that have not called back yet. *others
  // becomes the handles that the file system below has to complete: its own,
  // and the real handles of reads whose real part has not ended.
  std::vector<Read*> Divide(const std::vector<void*>& handles,
                            std::vector<void*>* others) const;
  // Returns the time of the devices, which have one clock; 0 if no read is from
  // a device.
  static uint64_t Now(const std::vector<Read*>& reads);

  mutable std::mutex mutex_;
  std::unordered_set<const void*> handles_;
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
