// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/simulated_device_files.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

using Op = SimulatedDevice::Op;

// Waits for a read that has been done.
// arrival: when it began.
void WaitForRead(TimedDevice* device, const IOStatus& s, uint64_t bytes,
                 uint64_t arrival, bool continues = false) {
  if (s.ok() && bytes == 0) {
    return;  // the end of the file, which the file system knows
  }
  DeviceRequest(device, Op::kRead, s.ok() ? bytes : 0, arrival, continues)
      .Wait();
}

// Does a write of a file with direct I/O, or one that goes into the page cache.
template <class Operation>
IOStatus WriteBytes(TimedDevice* device, bool direct, uint64_t bytes,
                    DirtyBytes* dirty, const Operation& operation) {
  DeviceRequest request(direct && bytes > 0 ? device : nullptr, Op::kWrite,
                        bytes);
  IOStatus s = operation();
  request.Wait();
  if (!direct && s.ok()) {
    dirty->Add(bytes);
  }
  return s;
}

// Does an operation after which no byte of the file is in the page cache only.
// durable: whether the bytes are durable then.
template <class Operation>
IOStatus WriteBack(TimedDevice* device, bool durable, DirtyBytes* dirty,
                   const Operation& operation) {
  const uint64_t bytes = dirty->TakeAll();
  DeviceRequest write(bytes > 0 ? device : nullptr, Op::kWrite, bytes);
  IOStatus s = operation();
  write.Wait();
  dirty->WaitForStarted();
  if (durable) {
    DeviceRequest(DeviceForSync(device), Op::kSync, 0).Wait();
  }
  return s;
}

}  // namespace

//======== DirtyBytes

void DirtyBytes::Add(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  bytes_ += bytes;
}

uint64_t DirtyBytes::TakeAll() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(bytes_, 0);
}

void DirtyBytes::Start(uint64_t limit) {
  WaitForStarted();
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t bytes = std::min(bytes_, limit);
  if (bytes > 0) {
    bytes_ -= bytes;
    started_until_ =
        device_->device().Admit(Op::kWrite, bytes, device_->Now()).end;
  }
}

void DirtyBytes::WaitForStarted() {
  uint64_t end;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    end = started_until_;
  }
  device_->WaitUntil(end);
}

//======== SimulatedSequentialFile

IOStatus SimulatedSequentialFile::Read(size_t n, const IOOptions& options,
                                       Slice* result, char* scratch,
                                       IODebugContext* dbg) {
  const uint64_t arrival = device_->Now();
  IOStatus s = target()->Read(n, options, result, scratch, dbg);
  const uint64_t bytes = s.ok() ? result->size() : 0;
  const bool continues = s.ok() && position_ + bytes <= window_end_;
  if (!continues) {
    window_end_ = position_ + std::max(bytes, kReadAhead);
  }
  position_ += bytes;
  WaitForRead(device_, s, bytes, arrival, continues);
  return s;
}

IOStatus SimulatedSequentialFile::Skip(uint64_t n) {
  position_ += n;
  return target()->Skip(n);
}

IOStatus SimulatedSequentialFile::PositionedRead(uint64_t offset, size_t n,
                                                 const IOOptions& options,
                                                 Slice* result, char* scratch,
                                                 IODebugContext* dbg) {
  const uint64_t arrival = device_->Now();
  IOStatus s =
      target()->PositionedRead(offset, n, options, result, scratch, dbg);
  WaitForRead(device_, s, s.ok() ? result->size() : 0, arrival);
  return s;
}

//======== SimulatedRandomAccessFile

uint64_t SimulatedRandomAccessFile::BytesInFile(uint64_t offset,
                                                size_t n) const {
  uint64_t size = known_size_.load(std::memory_order_relaxed);
  if (offset > size || n > size - offset) {
    if (!target()->GetFileSize(&size).ok()) {
      return n;
    }
    known_size_.store(size, std::memory_order_relaxed);
  }
  return offset > size ? 0 : std::min<uint64_t>(n, size - offset);
}

IOStatus SimulatedRandomAccessFile::Read(uint64_t offset, size_t n,
                                         const IOOptions& options,
                                         Slice* result, char* scratch,
                                         IODebugContext* dbg) const {
  const uint64_t bytes = BytesInFile(offset, n);
  DeviceRequest request(DeviceFor(bytes), Op::kRead, bytes);
  IOStatus s = target()->Read(offset, n, options, result, scratch, dbg);
  request.Wait();
  return s;
}

IOStatus SimulatedRandomAccessFile::MultiRead(FSReadRequest* requests,
                                              size_t num_requests,
                                              const IOOptions& options,
                                              IODebugContext* dbg) {
  const uint64_t arrival = device_->Now();
  uint64_t end = 0;
  for (size_t i = 0; i < num_requests; ++i) {
    const uint64_t bytes = BytesInFile(requests[i].offset, requests[i].len);
    if (bytes > 0) {
      end =
          std::max(end, device_->device().Admit(Op::kRead, bytes, arrival).end);
    }
  }
  IOStatus s = target()->MultiRead(requests, num_requests, options, dbg);
  if (end > 0) {
    device_->Finish(device_->Now(), end);
  }
  return s;
}

IOStatus SimulatedRandomAccessFile::Prefetch(uint64_t /*offset*/, size_t /*n*/,
                                             const IOOptions& /*options*/,
                                             IODebugContext* /*dbg*/) {
  return IOStatus::NotSupported("Prefetch: the device is simulated");
}

IOStatus SimulatedRandomAccessFile::ReadAsync(
    FSReadRequest& request, const IOOptions& options,
    std::function<void(FSReadRequest&, void*)> callback, void* arg,
    void** handle, IOHandleDeleter* deleter, IODebugContext* dbg) {
  const uint64_t bytes = BytesInFile(request.offset, request.len);
  return async_reads_->Submit(target(), DeviceFor(bytes), bytes, request,
                              options, std::move(callback), arg, handle,
                              deleter, dbg);
}

bool SimulatedRandomAccessFile::SubmitReadAsync(
    FSReadRequest& request, const IOOptions& options,
    std::function<void(FSReadRequest&)> callback, IODebugContext* dbg) {
  request.status = Read(request.offset, request.len, options, &request.result,
                        request.scratch, dbg);
  callback(request);
  return false;
}

//======== SimulatedWritableFile

IOStatus SimulatedWritableFile::Append(const Slice& data,
                                       const IOOptions& options,
                                       IODebugContext* dbg) {
  return WriteBytes(device_, use_direct_io(), data.size(), &dirty_,
                    [&] { return target()->Append(data, options, dbg); });
}

IOStatus SimulatedWritableFile::Append(
    const Slice& data, const IOOptions& options,
    const DataVerificationInfo& verification_info, IODebugContext* dbg) {
  return WriteBytes(device_, use_direct_io(), data.size(), &dirty_, [&] {
    return target()->Append(data, options, verification_info, dbg);
  });
}

IOStatus SimulatedWritableFile::PositionedAppend(const Slice& data,
                                                 uint64_t offset,
                                                 const IOOptions& options,
                                                 IODebugContext* dbg) {
  return WriteBytes(device_, use_direct_io(), data.size(), &dirty_, [&] {
    return target()->PositionedAppend(data, offset, options, dbg);
  });
}

IOStatus SimulatedWritableFile::PositionedAppend(
    const Slice& data, uint64_t offset, const IOOptions& options,
    const DataVerificationInfo& verification_info, IODebugContext* dbg) {
  return WriteBytes(device_, use_direct_io(), data.size(), &dirty_, [&] {
    return target()->PositionedAppend(data, offset, options, verification_info,
                                      dbg);
  });
}

IOStatus SimulatedWritableFile::Close(const IOOptions& options,
                                      IODebugContext* dbg) {
  return WriteBack(device_, /*durable=*/false, &dirty_,
                   [&] { return target()->Close(options, dbg); });
}

IOStatus SimulatedWritableFile::Sync(const IOOptions& options,
                                     IODebugContext* dbg) {
  return WriteBack(device_, /*durable=*/true, &dirty_,
                   [&] { return target()->Sync(options, dbg); });
}

IOStatus SimulatedWritableFile::Fsync(const IOOptions& options,
                                      IODebugContext* dbg) {
  return WriteBack(device_, /*durable=*/true, &dirty_,
                   [&] { return target()->Fsync(options, dbg); });
}

IOStatus SimulatedWritableFile::RangeSync(uint64_t offset, uint64_t nbytes,
                                          const IOOptions& options,
                                          IODebugContext* dbg) {
  IOStatus s = target()->RangeSync(offset, nbytes, options, dbg);
  dirty_.Start(nbytes);
  return s;
}

//======== SimulatedRandomRWFile

IOStatus SimulatedRandomRWFile::Write(uint64_t offset, const Slice& data,
                                      const IOOptions& options,
                                      IODebugContext* dbg) {
  return WriteBytes(device_, use_direct_io(), data.size(), &dirty_, [&] {
    return target()->Write(offset, data, options, dbg);
  });
}

IOStatus SimulatedRandomRWFile::Read(uint64_t offset, size_t n,
                                     const IOOptions& options, Slice* result,
                                     char* scratch, IODebugContext* dbg) const {
  const uint64_t arrival = device_->Now();
  IOStatus s = target()->Read(offset, n, options, result, scratch, dbg);
  WaitForRead(device_, s, s.ok() ? result->size() : 0, arrival);
  return s;
}

IOStatus SimulatedRandomRWFile::Sync(const IOOptions& options,
                                     IODebugContext* dbg) {
  return WriteBack(device_, /*durable=*/true, &dirty_,
                   [&] { return target()->Sync(options, dbg); });
}

IOStatus SimulatedRandomRWFile::Fsync(const IOOptions& options,
                                      IODebugContext* dbg) {
  return WriteBack(device_, /*durable=*/true, &dirty_,
                   [&] { return target()->Fsync(options, dbg); });
}

IOStatus SimulatedRandomRWFile::Close(const IOOptions& options,
                                      IODebugContext* dbg) {
  return WriteBack(device_, /*durable=*/false, &dirty_,
                   [&] { return target()->Close(options, dbg); });
}

//======== SimulatedDirectory

IOStatus SimulatedDirectory::Fsync(const IOOptions& options,
                                   IODebugContext* dbg) {
  DeviceRequest request(DeviceForSync(device_), Op::kSync, 0);
  IOStatus s = FSDirectoryWrapper::Fsync(options, dbg);
  request.Wait();
  return s;
}

IOStatus SimulatedDirectory::FsyncWithDirOptions(
    const IOOptions& options, IODebugContext* dbg,
    const DirFsyncOptions& dir_fsync_options) {
  DeviceRequest request(DeviceForSync(device_), Op::kSync, 0);
  IOStatus s =
      FSDirectoryWrapper::FsyncWithDirOptions(options, dbg, dir_fsync_options);
  request.Wait();
  return s;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
