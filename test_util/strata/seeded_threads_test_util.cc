//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/seeded_threads_test_util.h"

#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace ROCKSDB_NAMESPACE {

namespace {

thread_local SeededThreads* current = nullptr;
thread_local size_t current_number = 0;

// The waits. They are compared by address.
constexpr char kForLock[] = "waits for the lock";
constexpr char kForWake[] = "waits for a signal of";
constexpr char kForEnd[] = "joins";
constexpr char kForTime[] = "sleeps";

// The semaphores are real: a thread without the baton waits for one.
void Await(sem_t* semaphore) {
  while (sem_wait(semaphore) != 0) {
    assert(errno == EINTR);
  }
}

void PrintStack() {
  void* frames[64];
  const int count = backtrace(frames, 64);
  backtrace_symbols_fd(frames, count, STDERR_FILENO);
}

}  // namespace

SeededThreads::SeededThreads(const Options& options)
    : options_(options),
      schedule_(options.schedule),
      trace_(options.trace_path),
      entropy_(~options.schedule.seed) {
  assert(current == nullptr);
  assert(options_.nanos_per_step > 0);
  AddThread();
  threads_[0]->state = Thread::State::kRunnable;
  current = this;
  current_number = 0;
  if (options_.on_thread_start) {
    options_.on_thread_start(0);
  }
}

SeededThreads::~SeededThreads() {
  assert(current == this && current_number == 0);
  current = nullptr;
  for (auto& thread : threads_) {
    assert(thread == threads_[0] || thread->state == Thread::State::kEnded);
    sem_destroy(&thread->gate);
    sem_destroy(&thread->arrival);
  }
}

SeededThreads* SeededThreads::Current() { return current; }

size_t SeededThreads::Self() const { return current_number; }

// Steps and the clock.

void SeededThreads::Step(const char* op, const void* object, uint64_t detail) {
  trace_.Add(now_, running_, op, object, detail);
  now_ += options_.nanos_per_step;
  if (running_ == 0) {
    idle_nanos_ = 0;
  }
  CheckLimits();
  PassBaton();
}

void SeededThreads::Yield() {
  schedule_.Yield(running_);
  Step("yield", nullptr, 0);
}

uint64_t SeededThreads::NowNanos() {
  now_ += options_.nanos_per_step;
  return now_;
}

void SeededThreads::SleepUntil(uint64_t deadline) {
  Step("sleep", nullptr, 0);
  // Nothing wakes it.
  Block(kForTime, threads_[running_].get(), deadline);
}

// Waits.

bool SeededThreads::Block(const char* op, const void* object,
                          uint64_t deadline) {
  Thread* const self = threads_[running_].get();
  self->state = Thread::State::kWaiting;
  self->op = op;
  self->object = object;
  self->deadline = deadline;
  self->since = now_;
  self->is_woken = false;
  PassBaton();
  return self->is_woken;
}

size_t SeededThreads::Rouse(const char* op, const void* object, size_t count) {
  std::vector<size_t> waiting;
  for (size_t i = 0; i < threads_.size(); ++i) {
    const Thread& thread = *threads_[i];
    if (thread.state == Thread::State::kWaiting && thread.object == object &&
        thread.op == op) {
      waiting.push_back(i);
    }
  }
  size_t roused = 0;
  while (roused < count && !waiting.empty()) {
    const bool is_choice = count < waiting.size();
    const size_t position = is_choice ? schedule_.Below(waiting.size()) : 0;
    Thread* const thread = threads_[waiting[position]].get();
    thread->state = Thread::State::kRunnable;
    thread->is_woken = true;
    waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(position));
    ++roused;
  }
  return roused;
}

void SeededThreads::Lock(const void* lock, LockMode mode) {
  Step(mode.is_shared ? "lock shared" : "lock", lock, 0);
  while (!locks_.TryTake(lock, mode, running_)) {
    Block(kForLock, lock, kNever);
  }
}

bool SeededThreads::TryLock(const void* lock, LockMode mode) {
  Step("try to lock", lock, 0);
  return locks_.TryTake(lock, mode, running_);
}

void SeededThreads::Release(const void* lock) {
  switch (locks_.Release(lock, running_)) {
    case SeededLocks::Released::kFree:
      // The seed chooses which of them gets it, or a thread that comes later.
      Rouse(kForLock, lock, kAll);
      break;
    case SeededLocks::Released::kStillHeld:
      break;
    case SeededLocks::Released::kNotHeld:
      Abort("a thread releases a lock that it does not hold");
  }
}

void SeededThreads::Unlock(const void* lock) {
  Release(lock);
  Step("unlock", lock, 0);
}

bool SeededThreads::Wait(const void* object, const void* lock,
                         uint64_t deadline) {
  trace_.Add(now_, running_, "waits", object, 0);
  if (lock != nullptr) {
    Release(lock);
  }
  const bool is_woken = Block(kForWake, object, deadline);
  if (lock != nullptr) {
    Lock(lock, LockMode());
  }
  return is_woken;
}

size_t SeededThreads::Wake(const void* object, size_t count) {
  const size_t woken = Rouse(kForWake, object, count);
  Step("signal", object, woken);
  return woken;
}

// Threads.

size_t SeededThreads::AddThread() {
  threads_.push_back(std::make_unique<Thread>());
  sem_init(&threads_.back()->gate, 0, 0);
  sem_init(&threads_.back()->arrival, 0, 0);
  schedule_.AddThread();
  return threads_.size() - 1;
}

void SeededThreads::AwaitArrival(size_t thread) {
  Await(&threads_[thread]->arrival);
  threads_[thread]->state = Thread::State::kRunnable;
  Step("create thread", nullptr, thread);
}

void SeededThreads::Begin(size_t thread) {
  // The creator waits for the arrival, so threads_ does not change.
  Thread* const self = threads_[thread].get();
  current_number = thread;
  sem_post(&self->arrival);
  AwaitBaton(self);
  current = this;
  if (options_.on_thread_start) {
    options_.on_thread_start(thread);
  }
}

void SeededThreads::End() {
  Thread* const self = threads_[running_].get();
  trace_.Add(now_, running_, "end", nullptr, 0);
  Rouse(kForEnd, self, kAll);
  self->state = Thread::State::kEnded;
  assert(exiting_tid_ == 0);
  exiting_tid_ = static_cast<int>(syscall(SYS_gettid));
  current = nullptr;
  PassBaton();
}

void SeededThreads::Join(size_t thread) {
  Step("join", nullptr, thread);
  const Thread* const joined = threads_[thread].get();
  while (joined->state != Thread::State::kEnded) {
    Block(kForEnd, joined, kNever);
  }
}

// The baton.

void SeededThreads::PassBaton() {
  std::vector<size_t> runnable = Runnable();
  const size_t self = running_;
  running_ = schedule_.Next(runnable, self);
  if (running_ == self) {
    return;
  }
  // Callers of libc's functions do not expect that these change it.
  const int saved_errno = errno;
  // From here on, the next thread may change the members.
  Thread* const thread = threads_[self].get();
  const bool is_end = thread->state == Thread::State::kEnded;
  sem_post(&threads_[running_]->gate);
  if (!is_end) {
    AwaitBaton(thread);
  }
  errno = saved_errno;
}

std::vector<size_t> SeededThreads::Runnable() {
  if (options_.jump_one_in > 0 && schedule_.Below(options_.jump_one_in) == 0) {
    const uint64_t deadline = EarliestDeadline();
    if (deadline != kNever) {
      now_ = std::max(now_, deadline);
    }
  }
  WakeUntil(now_);
  std::vector<size_t> runnable;
  for (;;) {
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (threads_[i]->state == Thread::State::kRunnable) {
        runnable.push_back(i);
      }
    }
    if (!runnable.empty()) {
      return runnable;
    }
    const uint64_t deadline = EarliestDeadline();
    if (deadline == kNever) {
      Abort("deadlock: no thread can run");
    }
    // A deadline that has passed would have made its thread runnable.
    assert(deadline > now_);
    idle_nanos_ += deadline - now_;
    now_ = deadline;
    CheckLimits();
    WakeUntil(now_);
  }
}

void SeededThreads::WakeUntil(uint64_t now) {
  for (auto& thread : threads_) {
    if (thread->state == Thread::State::kWaiting && thread->deadline <= now &&
        thread->deadline != kNever) {
      thread->state = Thread::State::kRunnable;
    }
  }
}

uint64_t SeededThreads::EarliestDeadline() const {
  uint64_t earliest = kNever;
  for (const auto& thread : threads_) {
    if (thread->state == Thread::State::kWaiting) {
      earliest = std::min(earliest, thread->deadline);
    }
  }
  return earliest;
}

void SeededThreads::AwaitBaton(Thread* thread) {
  Await(&thread->gate);
  if (is_aborting_) {
    current = nullptr;
    PrintStack();
    sem_post(&thread->arrival);
    for (;;) {
      Await(&thread->gate);
    }
  }
  AwaitExit();
}

void SeededThreads::AwaitExit() {
  if (exiting_tid_ == 0) {
    return;
  }
  // The thread still gives back its memory, and the next thread may get the
  // same addresses, or other ones if it is too early.
  while (syscall(SYS_tgkill, static_cast<int>(syscall(SYS_getpid)),
                 exiting_tid_, 0) == 0) {
    syscall(SYS_sched_yield);
  }
  exiting_tid_ = 0;
}

void SeededThreads::CheckLimits() {
  if (trace_.steps() > options_.max_steps) {
    Abort("the run has too many steps");
  }
  const Thread& first = *threads_[0];
  if (idle_nanos_ > options_.patience_nanos &&
      first.state == Thread::State::kWaiting && first.deadline == kNever) {
    Abort("deadlock: thread 0 waits for too long");
  }
}

void SeededThreads::PrintState(size_t number) {
  Thread* const thread = threads_[number].get();
  switch (thread->state) {
    case Thread::State::kNew:
    case Thread::State::kEnded:
      return;
    case Thread::State::kRunnable:
      std::fprintf(stderr, "T%zu can run\n", number);
      break;
    case Thread::State::kWaiting:
      std::fprintf(stderr, "T%zu %s", number, thread->op);
      if (thread->op == kForEnd) {
        const auto joined = std::find_if(
            threads_.begin(), threads_.end(),
            [&](const auto& other) { return other.get() == thread->object; });
        std::fprintf(stderr, " T%td", joined - threads_.begin());
      } else if (thread->op != kForTime) {
        std::fprintf(stderr, " #%zu", trace_.NumberOf(thread->object));
      }
      std::fprintf(stderr, " since %" PRIu64 " ns\n", thread->since);
      break;
  }
  if (number == current_number) {
    PrintStack();
  } else {
    // The thread prints its stack itself.
    sem_post(&thread->gate);
    Await(&thread->arrival);
  }
}

void SeededThreads::Abort(const char* reason) {
  // Calls of the functions below must not come back to this.
  current = nullptr;
  is_aborting_ = true;
  std::fprintf(stderr,
               "SeededThreads: %s\nseed %" PRIu64 ", step %" PRIu64
               ", time %" PRIu64 " ns\nThe last steps:\n%s",
               reason, options_.schedule.seed, trace_.steps(), now_,
               trace_.LastSteps().c_str());
  for (size_t i = 0; i < threads_.size(); ++i) {
    PrintState(i);
  }
  std::fputs(locks_.Describe(&trace_).c_str(), stderr);
  std::abort();
}

}  // namespace ROCKSDB_NAMESPACE
