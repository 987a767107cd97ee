//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_read_helpers.h"

#include <algorithm>
#include <cassert>

#include "test_util/sync_point.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

DeltaReadHelpers::Task::Task(DeltaReadHelpers* helpers)
    : done_(&helpers->mutex_) {}

DeltaReadHelpers::Task::~Task() { assert(state_ == State::kOwn); }

DeltaReadHelpers::DeltaReadHelpers() : work_(&mutex_) {}

DeltaReadHelpers::~DeltaReadHelpers() {
  {
    MutexLock lock(&mutex_);
    assert(waiting_.empty());
    assert(running_ == 0);
    is_closing_ = true;
    work_.SignalAll();
  }
  for (port::Thread& thread : threads_) {
    thread.join();
  }
}

bool DeltaReadHelpers::Give(Task* task, uint32_t max_threads, bool may_wait) {
  if (max_threads == 0) {
    return false;
  }
  {
    MutexLock lock(&mutex_);
    assert(!is_closing_);
    assert(task->state_ == Task::State::kOwn);
    const size_t busy = running_ + waiting_.size();
    if (busy >= max_threads && (!may_wait || waiting_.size() >= kMaxWaiting)) {
      return false;
    }
    task->state_ = Task::State::kWaiting;
    waiting_.push_back(task);
    UpdateBusy();
    if (busy >= threads_.size() && threads_.size() < max_threads) {
      // It finds the task, if none of the others is faster.
      threads_.emplace_back([this] { Work(); });
      return true;
    }
  }
  // Without the mutex, which who wakes up needs at once. No thread ends before
  // the task was taken back.
  work_.Signal();
  return true;
}

bool DeltaReadHelpers::Take(Task* task) {
  MutexLock lock(&mutex_);
  if (RemoveWaiting(task)) {
    return false;
  }
  while (task->state_ == Task::State::kRunning) {
    task->done_.Wait();
  }
  const bool was_run = task->state_ == Task::State::kDone;
  task->state_ = Task::State::kOwn;
  return was_run;
}

bool DeltaReadHelpers::Withdraw(Task* task) {
  MutexLock lock(&mutex_);
  return RemoveWaiting(task);
}

bool DeltaReadHelpers::RemoveWaiting(Task* task) {
  if (task->state_ != Task::State::kWaiting) {
    return false;
  }
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), task));
  UpdateBusy();
  task->state_ = Task::State::kOwn;
  return true;
}

void DeltaReadHelpers::UpdateBusy() {
  busy_.store(running_ + waiting_.size(), std::memory_order_relaxed);
}

void DeltaReadHelpers::Work() {
  mutex_.Lock();
  for (;;) {
    while (waiting_.empty() && !is_closing_) {
      work_.Wait();
    }
    if (waiting_.empty()) {
      break;
    }
    Task* const task = waiting_.front();
    waiting_.pop_front();
    task->state_ = Task::State::kRunning;
    ++running_;
    mutex_.Unlock();
    TEST_SYNC_POINT("DeltaReadHelpers::Work:BeforeRun");
    task->Run();
    TEST_SYNC_POINT("DeltaReadHelpers::Work:AfterRun");
    mutex_.Lock();
    --running_;
    UpdateBusy();
    task->state_ = Task::State::kDone;
    // With the mutex: once it is free the task may be gone.
    task->done_.Signal();
  }
  mutex_.Unlock();
  TEST_SYNC_POINT("DeltaReadHelpers::Work:End");
}

size_t DeltaReadHelpers::TEST_NumThreads() {
  MutexLock lock(&mutex_);
  return threads_.size();
}

}  // namespace ROCKSDB_NAMESPACE
