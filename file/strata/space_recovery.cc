//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/space_recovery.h"

#include <algorithm>

#include "rocksdb/system_clock.h"
#include "test_util/sync_point.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

std::list<SpaceRecovery::Entry>::iterator SpaceRecovery::Find(
    const Client* client) {
  return std::find_if(
      waiting_.begin(), waiting_.end(),
      [client](const Entry& entry) { return entry.client == client; });
}

void SpaceRecovery::Start(Client* client) {
  MutexLock lock(&mutex_);
  const auto entry = Find(client);
  if (entry != waiting_.end()) {
    entry->is_started = true;
    entry->due_micros = 0;
    changed_.SignalAll();
    return;
  }
  waiting_.push_back({client});
  if (thread_ == nullptr && !is_closed_) {
    thread_ = std::make_unique<port::Thread>(&SpaceRecovery::Run, this);
  }
  changed_.SignalAll();
}

bool SpaceRecovery::Cancel(Client* client) {
  MutexLock lock(&mutex_);
  const auto entry = Find(client);
  const bool was_waiting = entry != waiting_.end();
  if (was_waiting) {
    waiting_.erase(entry);
  }
  while (tried_ == client) {
    TEST_SYNC_POINT("SpaceRecovery::Cancel:Wait");
    changed_.Wait();
  }
  return was_waiting;
}

void SpaceRecovery::Close() {
  std::unique_ptr<port::Thread> thread;
  {
    MutexLock lock(&mutex_);
    is_closed_ = true;
    thread = std::move(thread_);
    changed_.SignalAll();
  }
  if (thread != nullptr) {
    thread->join();
  }
}

void SpaceRecovery::Run() {
  MutexLock lock(&mutex_);
  while (!is_closed_) {
    const auto first = std::min_element(waiting_.begin(), waiting_.end(),
                                        [](const Entry& a, const Entry& b) {
                                          return a.due_micros < b.due_micros;
                                        });
    if (first == waiting_.end()) {
      changed_.Wait();
    } else if (first->due_micros <= clock_->NowMicros()) {
      TryOne(first);
    } else {
      const Client* const client = first->client;
      if (changed_.TimedWait(first->due_micros)) {
        // The clock may differ from that of the wait.
        const auto entry = Find(client);
        if (entry != waiting_.end()) {
          entry->due_micros = 0;
        }
      }
    }
  }
}

void SpaceRecovery::TryOne(std::list<Entry>::iterator entry) {
  Client* const client = entry->client;
  entry->is_started = false;
  tried_ = client;
  mutex_.Unlock();
  const Outcome outcome = client->Try();
  uint64_t retry_micros = kRetryMicros;
  TEST_SYNC_POINT_CALLBACK("SpaceRecovery::TryOne:Tried", &retry_micros);
  mutex_.Lock();
  tried_ = nullptr;
  changed_.SignalAll();
  // It may have been canceled, and another client with the same address may
  // have been added.
  const auto waiting = Find(client);
  if (waiting == waiting_.end()) {
    return;
  }
  if (outcome == Outcome::kDone && !waiting->is_started) {
    waiting_.erase(waiting);
  } else {
    waiting->due_micros = clock_->NowMicros() + retry_micros;
  }
}

}  // namespace ROCKSDB_NAMESPACE
