//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Threads that do a part of a reader's work while it does the rest.
//
// A reader gives away a task only if a thread is free for it at once: to wait
// for one would take longer than to do it. Only tasks of a reader who has given
// away another one already may wait. Whoever gives a task away takes it back in
// the end; if nobody has begun it by then, it is his own again.
//
// A thread is made when there is none for a task and the one who gives it
// allows one more; it stays until this object is destroyed. A process that
// never reads in that way has none.
//
// Invariants:
// * A task is here from the Give() that has returned true to the next Take()
//   or a successful Withdraw(), and so no longer than its owner lets it live.
// * Threads hold nothing of a task that is done, so that it may be destroyed
//   by the one who takes it back.
//
// Thread-safe.
class DeltaReadHelpers {
 public:
  // Used by its owner, but for Run().
  class Task {
   public:
    // REQUIRES: helpers outlive it.
    explicit Task(DeltaReadHelpers* helpers);
    // REQUIRES: it was not given away, or was taken back.
    virtual ~Task();
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

   private:
    friend class DeltaReadHelpers;
    enum class State : uint8_t { kOwn, kWaiting, kRunning, kDone };

    // On another thread.
    virtual void Run() = 0;

    // Guarded by the mutex of the helpers.
    State state_ = State::kOwn;
    port::CondVar done_;
  };

  // How many tasks may wait, of all readers.
  static constexpr size_t kMaxWaiting = 128;

  DeltaReadHelpers();
  // Ends the threads. It may take as long as they need to wake up.
  // REQUIRES: there are no tasks.
  ~DeltaReadHelpers();
  DeltaReadHelpers(const DeltaReadHelpers&) = delete;
  DeltaReadHelpers& operator=(const DeltaReadHelpers&) = delete;

  // Might Give() take a task that may not wait? Cheap, and perhaps out of date.
  bool HasRoom(uint32_t max_threads) const {
    return busy_.load(std::memory_order_relaxed) < max_threads;
  }

  // Has a thread run the task. False: nobody does, as that many tasks are under
  // way, or wait. may_wait: it is taken even so, unless too many wait, and is
  // done when a thread is free, if its owner has not taken it back before.
  // REQUIRES: the task is its owner's.
  bool Give(Task* task, uint32_t max_threads, bool may_wait);

  // True if it was run; waits if it is running. False if not: nobody will.
  bool Take(Task* task);

  // Takes it back, unless somebody runs it or has.
  bool Withdraw(Task* task);

  size_t TEST_NumThreads();

 private:
  void Work();
  // REQUIRES of these: mutex_ held
  bool RemoveWaiting(Task* task);
  void UpdateBusy();

  port::Mutex mutex_;
  port::CondVar work_;
  std::vector<port::Thread> threads_;
  std::deque<Task*> waiting_;
  size_t running_ = 0;
  bool is_closing_ = false;
  // How many run or wait. Written with the mutex held.
  std::atomic<size_t> busy_{0};
};

}  // namespace ROCKSDB_NAMESPACE
