// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Files and directories on simulated devices. Each wraps one of the file system
// below, and returns its results. SimulatedDeviceFileSystem says how long each
// operation takes.
//
// Thread safety is that of the classes in rocksdb/file_system.h.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "tools/workloads/simulated_async_reads.h"
#include "tools/workloads/timed_device.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// The bytes of a file that are in the page cache and not on the device yet.
//
// Invariant: bytes that were added are written to the device once, by the first
// TakeAll() or Start() that reaches them. Without such a call they never are.
//
// Thread-safe.
class DirtyBytes {
 public:
  // REQUIRES: the device outlives this.
  explicit DirtyBytes(TimedDevice* device) : device_(device) {}

  void Add(uint64_t bytes);

  // Returns how many bytes there were; the caller writes them.
  uint64_t TakeAll();

  // Waits for the write that was started last, then starts to write at most
  // `limit` bytes, for which it does not wait.
  void Start(uint64_t limit);

  // Waits for the write that was started last.
  void WaitForStarted();

 private:
  TimedDevice* const device_;
  std::mutex mutex_;
  uint64_t bytes_ = 0;
  uint64_t started_until_ = 0;  // the end of the last write of Start()
};

class SimulatedSequentialFile : public FSSequentialFileOwnerWrapper {
 public:
  // In bytes. The window that Linux reads ahead by default (read_ahead_kb).
  static constexpr uint64_t kReadAhead = uint64_t{128} << 10;

  // REQUIRES: the device outlives this.
  SimulatedSequentialFile(std::unique_ptr<FSSequentialFile>&& file,
                          TimedDevice* device)
      : FSSequentialFileOwnerWrapper(std::move(file)), device_(device) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* dbg) override;
  IOStatus Skip(uint64_t n) override;
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions& options,
                          Slice* result, char* scratch,
                          IODebugContext* dbg) override;

 private:
  TimedDevice* const device_;
  uint64_t position_ = 0;
  // The offset up to which the device transfers without another request.
  uint64_t window_end_ = 0;
};

class SimulatedRandomAccessFile : public FSRandomAccessFileOwnerWrapper {
 public:
  // REQUIRES: the device and async_reads outlive this.
  SimulatedRandomAccessFile(std::unique_ptr<FSRandomAccessFile>&& file,
                            TimedDevice* device,
                            SimulatedAsyncReads* async_reads)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        device_(device),
        async_reads_(async_reads) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override;
  // The requests arrive at the device together.
  IOStatus MultiRead(FSReadRequest* requests, size_t num_requests,
                     const IOOptions& options, IODebugContext* dbg) override;
  // Returns NotSupported, because there is no simulated page cache that the
  // bytes could be read into. RocksDB then reads ahead into memory of its own,
  // as it does with direct I/O.
  IOStatus Prefetch(uint64_t offset, size_t n, const IOOptions& options,
                    IODebugContext* dbg) override;
  IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options,
                     std::function<void(FSReadRequest&, void*)> callback,
                     void* arg, void** handle, IOHandleDeleter* deleter,
                     IODebugContext* dbg) override;
  // Reads synchronously: the executor of the file system below would complete
  // the read before its simulated end.
  bool SubmitReadAsync(FSReadRequest& request, const IOOptions& options,
                       std::function<void(FSReadRequest&)> callback,
                       IODebugContext* dbg) override;

 private:
  // Returns how many of these bytes the file has.
  uint64_t BytesInFile(uint64_t offset, size_t n) const;
  // Returns the device, or nullptr for a read of no bytes, of which it does not
  // learn.
  TimedDevice* DeviceFor(uint64_t bytes) const {
    return bytes > 0 ? device_ : nullptr;
  }

  TimedDevice* const device_;
  SimulatedAsyncReads* const async_reads_;
  // A size that the file had; it may have grown.
  mutable std::atomic<uint64_t> known_size_{0};
};

class SimulatedWritableFile : public FSWritableFileOwnerWrapper {
 public:
  // REQUIRES: the device outlives this.
  SimulatedWritableFile(std::unique_ptr<FSWritableFile>&& file,
                        TimedDevice* device)
      : FSWritableFileOwnerWrapper(std::move(file)),
        device_(device),
        dirty_(device) {}

  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override;
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const DataVerificationInfo& verification_info,
                  IODebugContext* dbg) override;
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override;
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const DataVerificationInfo& verification_info,
                            IODebugContext* dbg) override;
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override;
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override;
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override;
  IOStatus RangeSync(uint64_t offset, uint64_t nbytes, const IOOptions& options,
                     IODebugContext* dbg) override;

 private:
  TimedDevice* const device_;
  DirtyBytes dirty_;
};

class SimulatedRandomRWFile : public FSRandomRWFileOwnerWrapper {
 public:
  // REQUIRES: the device outlives this.
  SimulatedRandomRWFile(std::unique_ptr<FSRandomRWFile>&& file,
                        TimedDevice* device)
      : FSRandomRWFileOwnerWrapper(std::move(file)),
        device_(device),
        dirty_(device) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options,
                 IODebugContext* dbg) override;
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override;
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override;
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override;
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override;

 private:
  TimedDevice* const device_;
  DirtyBytes dirty_;
};

class SimulatedDirectory : public FSDirectoryWrapper {
 public:
  // REQUIRES: the device outlives this.
  SimulatedDirectory(std::unique_ptr<FSDirectory>&& directory,
                     TimedDevice* device)
      : FSDirectoryWrapper(std::move(directory)), device_(device) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override;
  IOStatus FsyncWithDirOptions(
      const IOOptions& options, IODebugContext* dbg,
      const DirFsyncOptions& dir_fsync_options) override;

 private:
  TimedDevice* const device_;
};

// Returns the device for a request that makes acknowledged writes durable, or
// nullptr if the device acknowledges only durable writes.
inline TimedDevice* DeviceForSync(TimedDevice* device) {
  return device->device().profile().sync_us > 0 ? device : nullptr;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
