//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <semaphore.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/seeded_locks_test_util.h"
#include "test_util/strata/seeded_schedule_test_util.h"
#include "test_util/strata/seeded_trace_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Threads of this process whose interleaving a seed chooses.
//
// Invariant: exactly one of the threads runs at any moment, the one that has
// the baton. It can lose the baton only in a call of this class. So, if all
// that is random or a time comes from here, too, the same seed gives the same
// run, step for step.
//
// The class is a model of locks, condition variables, futexes, joins, and the
// clock: who holds what, and who waits for what. No thread ever waits for a
// real lock. A thread that waits is not runnable; if none is runnable, the
// clock jumps to the earliest deadline of a wait; if there is none, that is a
// deadlock: the state and the stack of each thread are printed and the process
// aborts.
//
// Locks and other objects are known by their addresses. An object without a
// holder and without waiters is forgotten, so that its memory can be reused.
//
// Programs do not call most functions themselves. A program that is linked with
// interposed_*_test_util.cc calls them through pthread_mutex_lock() and others.
//
// What a thread does between two calls is one step: races of atomic variables
// alone, without any call between them, are not explored.
//
// Not thread-safe: all functions but those that say otherwise are called by the
// thread that has the baton.
class SeededThreads {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;
  static constexpr size_t kAll = SIZE_MAX;

  struct Options {
    SeededSchedule::Options schedule;
    // The clock advances by this at each step, and whenever it is read.
    // REQUIRES: > 0
    uint64_t nanos_per_step = 1000;
    // One in how many steps the clock jumps to the earliest deadline although
    // threads are runnable, as if these were slow; 0: it never does.
    uint64_t jump_one_in = 0;
    // The process aborts after so many steps.
    uint64_t max_steps = 3 * 1000 * 1000;
    // The process aborts if thread 0 waits without a deadline and the clock
    // jumps so far because no thread can run. Without this, a thread that wakes
    // up periodically would hide a deadlock of others.
    uint64_t patience_nanos = uint64_t{3600} * 1000 * 1000 * 1000;
    // Called by each thread, thread 0 included, before all else that it does.
    std::function<void(size_t thread)> on_thread_start;
    // A file that gets the text of all steps; nullptr if there is none.
    const char* trace_path = nullptr;
  };

  // The calling thread becomes thread 0 and has the baton.
  // REQUIRES: the process has no other thread, and the thread holds no lock
  explicit SeededThreads(const Options& options);
  // REQUIRES: the calling thread is thread 0, and all others have ended
  ~SeededThreads();
  SeededThreads(const SeededThreads&) = delete;
  SeededThreads& operator=(const SeededThreads&) = delete;

  // Returns the object that the calling thread belongs to; nullptr if there is
  // none. Thread-safe.
  static SeededThreads* Current();

  // A step that other threads may notice; another thread may go first. The
  // function returns when the calling thread has the baton again.
  // op: a string of C.
  // object: an address, or nullptr.
  void Step(const char* op, const void* object, uint64_t detail);
  // A step of a thread that waits for others actively.
  void Yield();

  // The clock. Deadlines are times of this clock, or kNever.
  uint64_t NowNanos();
  void SleepUntil(uint64_t deadline);

  // A random number.
  uint64_t Random64() { return entropy_(); }
  size_t Self() const;
  const SeededTrace& trace() const { return trace_; }

  // Locks of all kinds.
  using LockMode = SeededLocks::Mode;
  void Lock(const void* lock, LockMode mode);
  bool TryLock(const void* lock, LockMode mode);
  // REQUIRES: the calling thread holds it
  void Unlock(const void* lock);

  // Waits for Wake(). A thread that holds the lock gives it up at the same
  // moment and has it again at the end. Returns false if the deadline has
  // passed first. No other thread runs before the wait, so the caller can check
  // a condition ahead of it.
  // lock: an exclusive lock that the thread holds once, or nullptr.
  bool Wait(const void* object, const void* lock, uint64_t deadline = kNever);
  // Wakes up to `count` threads that wait. The seed chooses them. Returns their
  // number.
  size_t Wake(const void* object, size_t count);

  // Threads. AddThread() returns the number of a new one. The real thread calls
  // Begin() first and End() last, and its creator calls AwaitArrival() in
  // between, after which the new thread is runnable.
  size_t AddThread();
  void AwaitArrival(size_t thread);
  // Returns when the calling thread, `thread`, has the baton for the first
  // time. Called without the baton.
  void Begin(size_t thread);
  // The calling thread has the baton no longer and does not belong to this any
  // more.
  void End();
  // Waits until the thread has ended. Its real thread is gone then, too.
  void Join(size_t thread);

 private:
  struct Thread {
    sem_t gate;     // posted when the thread gets the baton
    sem_t arrival;  // posted when the thread waits for its gate
    enum class State { kNew, kRunnable, kWaiting, kEnded } state = State::kNew;
    // While it waits.
    const char* op = "";
    const void* object = nullptr;
    uint64_t deadline = kNever;
    uint64_t since = 0;  // by the clock
    bool is_woken = false;
  };

  // Waits until Rouse() wakes it, or until the deadline. Returns false in the
  // second case.
  bool Block(const char* op, const void* object, uint64_t deadline);
  // Makes threads runnable that wait in this way.
  size_t Rouse(const char* op, const void* object, size_t count);
  // Chooses the next thread and gives it the baton. Returns when the calling
  // thread has it again; at once if the calling thread has ended.
  void PassBaton();
  std::vector<size_t> Runnable();
  void WakeUntil(uint64_t now);
  uint64_t EarliestDeadline() const;
  void AwaitBaton(Thread* thread);
  void AwaitExit();
  void Release(const void* lock);
  void CheckLimits();
  void PrintState(size_t number);
  [[noreturn]] void Abort(const char* reason);

  const Options options_;
  SeededSchedule schedule_;
  SeededTrace trace_;
  std::mt19937_64 entropy_;
  uint64_t now_ = 0;
  uint64_t idle_nanos_ = 0;  // see patience_nanos
  std::vector<std::unique_ptr<Thread>> threads_;
  size_t running_ = 0;
  SeededLocks locks_;
  int exiting_tid_ = 0;  // kernel's id of a thread that has ended; 0: none
  bool is_aborting_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
