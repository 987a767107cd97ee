//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The locks, condition variables, and creations of threads of SeededThreads;
// see interposed_real_test_util.h. glibc's objects are not touched: their
// addresses name the locks of SeededThreads.

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/interposed_clock_test_util.h"
#include "test_util/strata/interposed_real_test_util.h"
#include "test_util/strata/seeded_threads_test_util.h"

using ROCKSDB_NAMESPACE::InterposedClock;
using ROCKSDB_NAMESPACE::RealFunction;
using ROCKSDB_NAMESPACE::SeededThreads;

namespace {

constinit RealFunction<int(pthread_mutex_t*)> real_mutex_lock(
    "pthread_mutex_lock");
constinit RealFunction<int(pthread_mutex_t*)> real_mutex_trylock(
    "pthread_mutex_trylock");
constinit RealFunction<int(pthread_mutex_t*)> real_mutex_unlock(
    "pthread_mutex_unlock");
constinit RealFunction<int(pthread_rwlock_t*)> real_rdlock(
    "pthread_rwlock_rdlock");
constinit RealFunction<int(pthread_rwlock_t*)> real_tryrdlock(
    "pthread_rwlock_tryrdlock");
constinit RealFunction<int(pthread_rwlock_t*)> real_wrlock(
    "pthread_rwlock_wrlock");
constinit RealFunction<int(pthread_rwlock_t*)> real_trywrlock(
    "pthread_rwlock_trywrlock");
constinit RealFunction<int(pthread_rwlock_t*)> real_rwlock_unlock(
    "pthread_rwlock_unlock");
constinit RealFunction<int(pthread_cond_t*, pthread_mutex_t*)> real_cond_wait(
    "pthread_cond_wait");
constinit RealFunction<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>
    real_cond_timedwait("pthread_cond_timedwait");
constinit RealFunction<int(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                           const timespec*)>
    real_cond_clockwait("pthread_cond_clockwait");
constinit RealFunction<int(pthread_cond_t*)> real_cond_signal(
    "pthread_cond_signal");
constinit RealFunction<int(pthread_cond_t*)> real_cond_broadcast(
    "pthread_cond_broadcast");
constinit RealFunction<int(pthread_once_t*, void (*)())> real_once(
    "pthread_once");
constinit RealFunction<int(pthread_t*, const pthread_attr_t*, void* (*)(void*),
                           void*)>
    real_create("pthread_create");
constinit RealFunction<int(pthread_t, void**)> real_join("pthread_join");
constinit RealFunction<int(pthread_t)> real_detach("pthread_detach");
constinit RealFunction<int()> real_sched_yield("sched_yield");

SeededThreads::LockMode ModeOf(const pthread_mutex_t* mutex) {
  SeededThreads::LockMode mode;
  // The two lowest bits are the type in glibc.
  mode.is_recursive = (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;
  return mode;
}

constexpr SeededThreads::LockMode kShared = {/*is_shared=*/true,
                                             /*is_recursive=*/false};
constexpr SeededThreads::LockMode kExclusive;

int CondWait(SeededThreads* threads, pthread_cond_t* cond,
             pthread_mutex_t* mutex, uint64_t deadline) {
  threads->Step("wait", cond, 0);
  return threads->Wait(cond, mutex, deadline) ? 0 : ETIMEDOUT;
}

// Threads.

// The numbers of the threads that can be joined. Used by the thread that has
// the baton.
std::unordered_map<pthread_t, size_t>& Numbers() {
  static auto* const numbers = new std::unordered_map<pthread_t, size_t>();
  return *numbers;
}

// A thread ends behind the destructors of its thread-local objects, which may
// use locks. Its last destructor is that of this key, in the last of the rounds
// that POSIX prescribes; the value of the key is the number of rounds left.
pthread_key_t end_key;

void EndThread(void* value) {
  const uintptr_t rounds = reinterpret_cast<uintptr_t>(value);
  if (rounds > 1) {
    pthread_setspecific(end_key, reinterpret_cast<void*>(rounds - 1));
  } else {
    SeededThreads::Current()->End();
  }
}

[[maybe_unused]] const int end_key_created =
    pthread_key_create(&end_key, EndThread);

struct NewThread {
  SeededThreads* threads = nullptr;
  size_t number = 0;
  void* (*function)(void*) = nullptr;
  void* arg = nullptr;
};

void* RunThread(void* arg) {
  NewThread* const new_thread = static_cast<NewThread*>(arg);
  new_thread->threads->Begin(new_thread->number);
  const NewThread thread = *new_thread;
  delete new_thread;
  pthread_setspecific(end_key, reinterpret_cast<void*>(static_cast<uintptr_t>(
                                   PTHREAD_DESTRUCTOR_ITERATIONS)));
  return thread.function(thread.arg);
}

}  // namespace

extern "C" {

// Locks.

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_mutex_lock(mutex);
  }
  threads->Lock(mutex, ModeOf(mutex));
  return 0;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_mutex_trylock(mutex);
  }
  return threads->TryLock(mutex, ModeOf(mutex)) ? 0 : EBUSY;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_mutex_unlock(mutex);
  }
  threads->Unlock(mutex);
  return 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_rdlock(lock);
  }
  threads->Lock(lock, kShared);
  return 0;
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_tryrdlock(lock);
  }
  return threads->TryLock(lock, kShared) ? 0 : EBUSY;
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_wrlock(lock);
  }
  threads->Lock(lock, kExclusive);
  return 0;
}

int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_trywrlock(lock);
  }
  return threads->TryLock(lock, kExclusive) ? 0 : EBUSY;
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_rwlock_unlock(lock);
  }
  threads->Unlock(lock);
  return 0;
}

// Condition variables.

int pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_cond_wait(cond, mutex);
  }
  return CondWait(threads, cond, mutex, SeededThreads::kNever);
}

int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex,
                           const timespec* time) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_cond_timedwait(cond, mutex, time);
  }
  // This bit is the clock in glibc.
  const clockid_t clock =
      (cond->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
  return CondWait(threads, cond, mutex,
                  InterposedClock::Deadline(clock, *time));
}

int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex,
                           clockid_t clock, const timespec* time) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_cond_clockwait(cond, mutex, clock, time);
  }
  return CondWait(threads, cond, mutex,
                  InterposedClock::Deadline(clock, *time));
}

int pthread_cond_signal(pthread_cond_t* cond) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_cond_signal(cond);
  }
  threads->Wake(cond, 1);
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* cond) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_cond_broadcast(cond);
  }
  threads->Wake(cond, SeededThreads::kAll);
  return 0;
}

int pthread_once(pthread_once_t* once, void (*function)()) {
  SeededThreads* const threads = SeededThreads::Current();
  // glibc waits by itself for another thread that is in the function. The lock
  // keeps all other threads away.
  if (threads != nullptr) {
    threads->Lock(once, kExclusive);
  }
  const int result = real_once(once, function);
  if (threads != nullptr) {
    threads->Unlock(once);
  }
  return result;
}

// Threads.

int pthread_create(pthread_t* handle, const pthread_attr_t* attributes,
                   void* (*function)(void*), void* arg) noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_create(handle, attributes, function, arg);
  }
  NewThread* const new_thread = new NewThread();
  new_thread->threads = threads;
  new_thread->number = threads->AddThread();
  new_thread->function = function;
  new_thread->arg = arg;
  const size_t number = new_thread->number;
  const int result = real_create(handle, attributes, RunThread, new_thread);
  if (result != 0) {
    // The thread has a number already.
    std::fprintf(stderr, "pthread_create: %d\n", result);
    std::abort();
  }
  Numbers()[*handle] = number;
  threads->AwaitArrival(number);
  return 0;
}

int pthread_join(pthread_t handle, void** result) {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_join(handle, result);
  }
  const auto it = Numbers().find(handle);
  if (it == Numbers().end()) {
    return ESRCH;
  }
  const size_t number = it->second;
  threads->Join(number);
  Numbers().erase(handle);
  return real_join(handle, result);
}

int pthread_detach(pthread_t handle) noexcept {
  if (SeededThreads::Current() == nullptr) {
    return real_detach(handle);
  }
  // The real thread is never joined: when glibc reused its stack would depend
  // on the real time.
  return Numbers().erase(handle) != 0 ? 0 : ESRCH;
}

int sched_yield() noexcept {
  SeededThreads* const threads = SeededThreads::Current();
  if (threads == nullptr) {
    return real_sched_yield();
  }
  threads->Yield();
  return 0;
}

}  // extern "C"
