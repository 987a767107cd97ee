//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Threads of tests, and waits that end even if the test has failed.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Longer than any wait of a test takes. It ends a test that has failed.
constexpr std::chrono::seconds kTestPatience{60};

// Waits until the condition is true. Returns false if it does not become true
// within kTestPatience.
inline bool WaitUntil(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// Runs fn, which uses the DB, on another thread: the thread of the caller, a
// callback at a sync point, may be in the middle of a read, and a thread has
// only one SuperVersion at a time.
inline void OnAnotherThread(const std::function<void()>& fn) {
  std::thread thread(fn);
  thread.join();
}

// Counts events of other threads.
class EventCount {
 public:
  void Add() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    changed_.notify_all();
  }

  // Waits until there were `count` events. Returns false if there are fewer
  // within kTestPatience.
  bool WaitFor(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kTestPatience,
                             [this, count] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t count_ = 0;
};

// A function that a callback of the DB, such as a listener, calls on another
// thread and waits for. The callback gives up after kTestPatience, so that the
// test ends if the function waits for the callback.
class BoundedCall {
 public:
  explicit BoundedCall(std::function<void()> fn) : fn_(std::move(fn)) {}
  ~BoundedCall() { Join(); }
  BoundedCall(const BoundedCall&) = delete;
  BoundedCall& operator=(const BoundedCall&) = delete;

  // Calls the function, the first time only, and waits for it.
  void RunOnce() {
    if (was_called_.exchange(true)) {
      return;
    }
    thread_ = std::thread([this] {
      fn_();
      ended_.Add();
    });
    was_waited_for_ = ended_.WaitFor(1);
  }

  // Waits for the function. Returns true if it was called and the callback did
  // not give up.
  // REQUIRES: no callback runs.
  bool Join() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return was_waited_for_;
  }

 private:
  const std::function<void()> fn_;
  std::atomic<bool> was_called_{false};
  EventCount ended_;
  std::thread thread_;
  bool was_waited_for_ = false;
};

// Threads that run until they are told to stop, at the latest at the end of the
// block: a failed ASSERT leaves neither a running thread nor a joinable one.
class StoppableThreads {
 public:
  StoppableThreads() = default;
  ~StoppableThreads() { Stop(); }
  StoppableThreads(const StoppableThreads&) = delete;
  StoppableThreads& operator=(const StoppableThreads&) = delete;

  void Start(std::function<void()> fn) { threads_.emplace_back(std::move(fn)); }

  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  // Thread-safe.
  void RequestStop() { stopped_.store(true, std::memory_order_release); }

  void Join() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

  void Stop() {
    RequestStop();
    Join();
  }

 private:
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> threads_;
};

}  // namespace ROCKSDB_NAMESPACE
