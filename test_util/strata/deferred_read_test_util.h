//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rocksdb/file_system.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// A file system whose asynchronous reads are executed by Poll() or AbortIO(),
// in the thread that began them, like those of io_uring, but on any machine.
//
// `events` records the operations on files that are open for random access:
// "read", "begin", "end" or "abort", with the name of the file without its
// directory.
//
// Files may be read by several threads. The tests read and set the members
// while no other thread does.
class DeferredReadFileSystem final : public FileSystemWrapper {
 public:
  enum class Trouble {
    kNone,
    kNotSupported,  // SupportedOps() does not include asynchronous reads
    kRefused,       // ReadAsync() returns an error
    kAtOnce,        // ReadAsync() completes the read and returns no handle
    kFailed,        // the request's status is an error
    kShort,         // the result is too short
    kOwnMemory,     // the result is not in the caller's memory
    kCorrupt,       // the result has flipped bits
    kPollFails,
    kReadFails,  // Read() fails
  };

  explicit DeferredReadFileSystem(
      const std::shared_ptr<FileSystem>& base = FileSystem::Default())
      : FileSystemWrapper(base) {}

  const char* Name() const override { return "DeferredReadFileSystem"; }

  void SupportedOps(int64_t& supported_ops) override {
    target()->SupportedOps(supported_ops);
    constexpr int64_t kAsync = int64_t{1} << FSSupportedOps::kAsyncIO;
    supported_ops = trouble == Trouble::kNotSupported ? supported_ops & ~kAsync
                                                      : supported_ops | kAsync;
  }

  IOStatus NewRandomAccessFile(const std::string& fname,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    IOStatus s = target()->NewRandomAccessFile(fname, options, result, dbg);
    if (s.ok()) {
      *result = std::make_unique<File>(
          fname.substr(fname.find_last_of('/') + 1), std::move(*result), this);
    }
    return s;
  }

  IOStatus Poll(std::vector<void*>& io_handles,
                size_t /*min_completions*/) override {
    if (trouble == Trouble::kPollFails) {
      return IOStatus::IOError("injected");
    }
    for (void* const io_handle : io_handles) {
      End(static_cast<Handle*>(io_handle), "end");
    }
    return IOStatus::OK();
  }

  IOStatus AbortIO(std::vector<void*>& io_handles) override {
    for (void* const io_handle : io_handles) {
      End(static_cast<Handle*>(io_handle), "abort");
    }
    return IOStatus::OK();
  }

  // Returns the events of files with these endings, without the numbers of the
  // files.
  std::string EventsOf(const std::vector<std::string>& endings) const {
    std::string result;
    for (const std::string& event : events) {
      for (const std::string& ending : endings) {
        if (event.size() > ending.size() &&
            event.compare(event.size() - ending.size(), ending.size(),
                          ending) == 0) {
          result += (result.empty() ? "" : " ") +
                    event.substr(0, event.find(' ')) + ending;
        }
      }
    }
    return result;
  }

  Trouble trouble = Trouble::kNone;
  std::vector<std::string> events;
  // The ids of requests for which reads were begun, once for each read.
  std::vector<std::string> request_ids;
  // Number of synchronous reads of delta files that fail next.
  std::atomic<int> delta_reads_to_fail{0};
  // Number of reads that were begun, and neither ended nor aborted.
  std::atomic<int> under_way{0};
  // Number of handles that were not deleted.
  std::atomic<int> handles{0};

 private:
  class File;

  std::mutex mutex_;  // guards `events` and `request_ids`

  struct Handle {
    const File* file = nullptr;
    std::thread::id thread;
    FSReadRequest request;
    std::function<void(FSReadRequest&, void*)> callback;
    void* argument = nullptr;
    bool has_ended = false;
  };

  class File final : public FSRandomAccessFileOwnerWrapper {
   public:
    File(std::string name, std::unique_ptr<FSRandomAccessFile>&& target,
         DeferredReadFileSystem* _fs)
        : FSRandomAccessFileOwnerWrapper(std::move(target)),
          fs(_fs),
          name_(std::move(name)) {}

    void Note(const char* event) const {
      const std::lock_guard<std::mutex> lock(fs->mutex_);
      fs->events.push_back(event + (" " + name_));
    }

    IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                  Slice* result, char* scratch,
                  IODebugContext* dbg) const override {
      Note("read");
      const bool fails =
          fs->delta_reads_to_fail > 0 && Slice(name_).ends_with(".delta");
      fs->delta_reads_to_fail -= fails ? 1 : 0;
      if (fails || fs->trouble == Trouble::kReadFails) {
        return IOStatus::IOError("injected");
      }
      return target()->Read(offset, n, options, result, scratch, dbg);
    }

    IOStatus MultiRead(FSReadRequest* requests, size_t num_requests,
                       const IOOptions& options, IODebugContext* dbg) override {
      Note("read");
      return target()->MultiRead(requests, num_requests, options, dbg);
    }

    IOStatus ReadAsync(FSReadRequest& request, const IOOptions& /*options*/,
                       std::function<void(FSReadRequest&, void*)> callback,
                       void* argument, void** io_handle,
                       IOHandleDeleter* deleter, IODebugContext* dbg) override {
      if (fs->trouble == Trouble::kRefused) {
        return IOStatus::Busy("injected");
      }
      Note("begin");
      if (dbg != nullptr && dbg->request_id != nullptr) {
        const std::lock_guard<std::mutex> lock(fs->mutex_);
        fs->request_ids.push_back(*dbg->request_id);
      }
      ++fs->under_way;
      ++fs->handles;
      auto handle = std::make_unique<Handle>();
      handle->file = this;
      handle->thread = std::this_thread::get_id();
      handle->request.offset = request.offset;
      handle->request.len = request.len;
      handle->request.scratch = request.scratch;
      handle->callback = std::move(callback);
      handle->argument = argument;
      if (fs->trouble == Trouble::kAtOnce) {
        End(handle.get(), "end");
        --fs->handles;
        return IOStatus::OK();
      }
      *io_handle = handle.release();
      *deleter = [](void* h) {
        auto* const deleted = static_cast<Handle*>(h);
        EXPECT_TRUE(deleted->has_ended);
        --deleted->file->fs->handles;
        delete deleted;
      };
      return IOStatus::OK();
    }

    DeferredReadFileSystem* const fs;

   private:
    const std::string name_;
  };

  static void End(Handle* handle, const char* event) {
    if (std::exchange(handle->has_ended, true)) {
      return;
    }
    EXPECT_EQ(std::this_thread::get_id(), handle->thread);
    handle->file->Note(event);
    --handle->file->fs->under_way;
    FSReadRequest& request = handle->request;
    std::string own;
    request.status = handle->file->target()->Read(
        request.offset, request.len, IOOptions(), &request.result,
        request.scratch, /*dbg=*/nullptr);
    switch (handle->file->fs->trouble) {
      case Trouble::kFailed:
        request.status = IOStatus::IOError("injected");
        break;
      case Trouble::kShort:
        request.result.remove_suffix((request.result.size() + 1) / 2);
        break;
      case Trouble::kOwnMemory:
        own = request.result.ToString();
        request.result = own;
        break;
      case Trouble::kCorrupt:
        for (size_t i = 0; i < request.result.size(); ++i) {
          request.scratch[i] ^= 1;
        }
        break;
      default:
        break;
    }
    if (event == std::string("abort")) {
      request.status = IOStatus::Aborted();
    }
    handle->callback(request, handle->argument);
    request.status.PermitUncheckedError();
  }
};

}  // namespace ROCKSDB_NAMESPACE
