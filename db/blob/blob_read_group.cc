//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob/blob_read_group.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "db/blob/blob_read_request.h"
#include "db/blob/blob_source.h"
#include "rocksdb/system_clock.h"
#include "rocksdb/threadpool.h"
#include "table/multiget_context.h"
#include "test_util/sync_point.h"
#include "util/autovector.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

std::vector<std::shared_ptr<BlobReadGroup>> BlobReadGroup::Divide(
    std::vector<Item>&& items, const ReadOptions& read_options,
    BlobSource* source, std::vector<size_t>* group_of,
    std::vector<size_t>* index_of) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return items[a].file_number != items[b].file_number
               ? items[a].file_number < items[b].file_number
               : items[a].offset < items[b].offset;
  });
  group_of->resize(items.size());
  index_of->resize(items.size());
  std::vector<std::shared_ptr<BlobReadGroup>> groups;
  uint64_t file_number = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  for (size_t i : order) {
    Item& item = items[i];
    if (groups.empty() || item.file_number != file_number ||
        item.offset > end + kMaxGap ||
        item.offset + item.size > begin + kMaxSpan ||
        groups.back()->items_.size() == MultiGetContext::MAX_BATCH_SIZE) {
      groups.push_back(std::make_shared<BlobReadGroup>(read_options, source));
      file_number = item.file_number;
      begin = item.offset;
    }
    end = item.offset + item.size;
    (*group_of)[i] = groups.size() - 1;
    ++groups.back()->needed_;
    (*index_of)[i] = groups.back()->items_.size();
    groups.back()->items_.push_back(std::move(item));
  }
  return groups;
}

bool BlobReadGroup::Claim() {
  MutexLock lock(&mutex_);
  if (state_ != State::kQueued) {
    return false;
  }
  state_ = State::kRunning;
  return true;
}

void BlobReadGroup::Run() {
  if (!Claim()) {
    return;
  }
  Read();
  MutexLock lock(&mutex_);
  state_ = State::kDone;
  cv_.SignalAll();
}

void BlobReadGroup::RunAndWait() {
  Run();
  MutexLock lock(&mutex_);
  while (state_ != State::kDone) {
    cv_.Wait();
  }
}

void BlobReadGroup::Cancel() {
  {
    MutexLock lock(&mutex_);
    while (state_ == State::kRunning) {
      cv_.Wait();
    }
    state_ = State::kDone;
  }
  for (Item& item : items_) {
    item.status.PermitUncheckedError();
  }
  items_.clear();
}

void BlobReadGroup::Read() {
  TEST_SYNC_POINT("BlobReadGroup::Read");
  // Requests point to the names.
  std::vector<Slice> names(items_.size());
  autovector<BlobReadRequest> requests;
  for (size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    names[i] = item.record_name;
    requests.emplace_back(names[i], item.offset, item.size, item.compression,
                          &item.value, &item.status);
  }
  source_->MultiGetBlobFromOneFile(read_options_, items_.front().file_number,
                                   /*file_size=*/0, requests,
                                   /*bytes_read=*/nullptr);
}

ThreadPool* BlobReadPool::Threads() {
  static ThreadPool* const pool = NewThreadPool(kMaxThreads);
  return pool;
}

void BlobReadPool::Submit(const std::shared_ptr<BlobReadGroup>& group) {
  Threads()->SubmitJob([group] { group->Run(); });
}

void BlobReadPool::RunAll(SystemClock* clock, size_t n,
                          const std::function<void(size_t)>& fn) {
  size_t first = 0;
  while (first < n) {
    const uint64_t began = clock->NowMicros();
    fn(first++);
    uint64_t micros = clock->NowMicros() - began;
    TEST_SYNC_POINT_CALLBACK("BlobReadPool::RunAll:Micros", &micros);
    if (micros > kCachedMicros) {
      break;
    }
  }
  const size_t rest = n - first;
  if (rest < 2) {
    if (rest == 1) {
      fn(first);
    }
    return;
  }
  // A job of the pool may begin after the end: it finds nothing to do, and does
  // not touch fn.
  struct State {
    explicit State(size_t next_index) : next(next_index), cv(&mutex) {}
    std::atomic<size_t> next;
    port::Mutex mutex;
    port::CondVar cv;
    size_t done = 0;
  };
  const auto state = std::make_shared<State>(first);
  const auto work = [state, n, &fn] {
    size_t done = 0;
    for (size_t i = state->next++; i < n; i = state->next++) {
      fn(i);
      ++done;
    }
    if (done > 0) {
      MutexLock lock(&state->mutex);
      state->done += done;
      state->cv.SignalAll();
    }
  };
  const size_t helpers = std::min(rest - 1, static_cast<size_t>(kMaxThreads));
  for (size_t i = 0; i < helpers; ++i) {
    Threads()->SubmitJob(work);
  }
  work();
  MutexLock lock(&state->mutex);
  while (state->done < rest) {
    state->cv.Wait();
  }
}

}  // namespace ROCKSDB_NAMESPACE
