// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/simulated_async_reads.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <memory>
#include <utility>

namespace ROCKSDB_NAMESPACE {
namespace bench {

struct SimulatedAsyncReads::Read {
  TimedDevice* device = nullptr;
  SimulatedDevice::Service service{0, 0};
  Callback callback;
  void* arg = nullptr;

  void* base_handle = nullptr;
  IOHandleDeleter delete_base_handle;

  // The request as it was submitted, with the result of the real read. The
  // latter may be written by another thread, which sets has_ended last.
  FSReadRequest result;
  std::atomic<bool> has_ended{false};
  bool has_called_back = false;

  ~Read() {
    if (base_handle != nullptr && delete_base_handle) {
      delete_base_handle(base_handle);
    }
    result.status.PermitUncheckedError();
  }

  // Called by the file system below.
  void OnEnd(FSReadRequest& done) {
    result.result = done.result;
    result.status = done.status;
    result.fs_scratch = std::move(done.fs_scratch);
    has_ended.store(true, std::memory_order_release);
  }

  bool HasEnded() const { return has_ended.load(std::memory_order_acquire); }

  void CallBack() {
    has_called_back = true;
    callback(result, arg);
  }
};

SimulatedAsyncReads::~SimulatedAsyncReads() { assert(handles_.empty()); }

IOStatus SimulatedAsyncReads::Submit(
    FSRandomAccessFile* file, TimedDevice* device, uint64_t device_bytes,
    FSReadRequest& request, const IOOptions& options, Callback callback,
    void* arg, void** handle, IOHandleDeleter* deleter, IODebugContext* dbg) {
  auto read = std::make_unique<Read>();
  read->device = device;
  read->callback = std::move(callback);
  read->arg = arg;
  read->result.offset = request.offset;
  read->result.len = request.len;
  read->result.scratch = request.scratch;
  const uint64_t arrival = device == nullptr ? 0 : device->Now();
  IOStatus s = file->ReadAsync(
      request, options,
      [](FSReadRequest& done, void* ended) {
        static_cast<Read*>(ended)->OnEnd(done);
      },
      read.get(), &read->base_handle, &read->delete_base_handle, dbg);
  if (!s.ok()) {
    return s;
  }
  if (device != nullptr) {
    read->service = device->device().Admit(SimulatedDevice::Op::kRead,
                                           device_bytes, arrival);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    handles_.insert(read.get());
  }
  *deleter = [this](void* deleted) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      handles_.erase(deleted);
    }
    delete static_cast<Read*>(deleted);
  };
  *handle = read.release();
  return s;
}

std::vector<SimulatedAsyncReads::Read*> SimulatedAsyncReads::Divide(
    const std::vector<void*>& handles, std::vector<void*>* others) const {
  std::vector<Read*> reads;
  std::lock_guard<std::mutex> lock(mutex_);
  for (void* const handle : handles) {
    if (handles_.count(handle) == 0) {
      others->push_back(handle);
      continue;
    }
    Read* const read = static_cast<Read*>(handle);
    if (read->has_called_back ||
        std::find(reads.begin(), reads.end(), read) != reads.end()) {
      continue;
    }
    reads.push_back(read);
    if (!read->HasEnded() && read->base_handle != nullptr) {
      others->push_back(read->base_handle);
    }
  }
  return reads;
}

uint64_t SimulatedAsyncReads::Now(const std::vector<Read*>& reads) {
  for (const Read* const read : reads) {
    if (read->device != nullptr) {
      return read->device->Now();
    }
  }
  return 0;
}

IOStatus SimulatedAsyncReads::Poll(FileSystem* base,
                                   std::vector<void*>& handles,
                                   size_t min_completions) {
  std::vector<void*> others;
  std::vector<Read*> reads = Divide(handles, &others);
  if (others.size() == handles.size() && reads.empty()) {
    return base->Poll(handles, min_completions);
  }
  const uint64_t polled_at = Now(reads);
  IOStatus s;
  if (!others.empty()) {
    s = base->Poll(others, others.size());
  }
  const uint64_t io_end = Now(reads);
  // In the order in which they end, so that each callback is called then.
  std::sort(reads.begin(), reads.end(), [](const Read* a, const Read* b) {
    return a->service.end < b->service.end;
  });
  for (Read* const read : reads) {
    if (!read->HasEnded()) {
      continue;  // the file system below could not complete it: s is an error
    }
    if (read->device != nullptr) {
      // When a read ended whose caller polls after the simulated end, is not
      // known. It does not count as late.
      const uint64_t end = read->service.end;
      read->device->Finish(polled_at < end ? io_end : end, end);
    }
    read->CallBack();
  }
  return s;
}

IOStatus SimulatedAsyncReads::AbortIO(FileSystem* base,
                                      const std::vector<void*>& handles) {
  std::vector<void*> others;
  const std::vector<Read*> reads = Divide(handles, &others);
  IOStatus s;
  if (!others.empty()) {
    s = base->AbortIO(others);
  }
  for (Read* const read : reads) {
    if (!read->HasEnded()) {
      continue;  // the file system below could not abort it: s is an error
    }
    if (read->result.status.ok() && read->device != nullptr &&
        read->device->Now() < read->service.end) {
      read->result.status = IOStatus::Aborted("simulated read");
      read->result.result = Slice();
      read->result.fs_scratch.reset();
    }
    read->CallBack();
  }
  return s;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
