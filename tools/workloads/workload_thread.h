// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The WorkloadHost of a thread of db_bench.

#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "rocksdb/env.h"
#include "rocksdb/rate_limiter.h"
#include "tools/workloads/generators.h"
#include "tools/workloads/report.h"
#include "tools/workloads/workload.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// In an OpRecorder, the kinds of db_bench's own operations follow those of
// workloads.
constexpr unsigned kFirstUpstreamKind = 16;
static_assert(kNumOps <= kFirstUpstreamKind);

// `Thread` and `Duration` are db_bench's ThreadState and Duration.
template <class Thread, class Duration>
class WorkloadThread : public WorkloadHost {
 public:
  // Takes over the recorder from the thread's Stats. max_seconds: the limit of
  // `duration`, in seconds; 0 if there is none.
  WorkloadThread(Thread* thread, Duration&& duration, int max_seconds,
                 int threads, DB* db, OpRecorder* recorder,
                 const ReadOptions& read_options,
                 const WriteOptions& write_options)
      : thread_(thread),
        duration_(std::move(duration)),
        threads_(threads),
        db_(db),
        recorder_(recorder),
        read_options_(read_options),
        write_options_(write_options),
        // db_bench's seeds are --seed plus the thread's number, so those of
        // two runs with consecutive --seed are mostly the same.
        seed_(Mix64(thread->rand.Next() ^
                    Mix64(static_cast<uint64_t>(thread->tid)))),
        has_deadline_(max_seconds > 0),
        deadline_(Clock::now() + std::chrono::seconds(max_seconds)) {
    thread_->stats.SetRecorder(nullptr);
  }

  DB* db() override { return db_; }
  ColumnFamilyHandle* column_family() override {
    return db_->DefaultColumnFamily();
  }
  const ReadOptions& read_options() const override { return read_options_; }
  const WriteOptions& write_options() const override { return write_options_; }
  int thread() const override { return thread_->tid; }
  int threads() const override { return threads_; }
  uint64_t seed() const override { return seed_; }
  // A Duration reads the clock only about every thousand operations, which is
  // too rarely for scans.
  bool Done() override {
    return duration_.Done(1) || Failed() ||
           (has_deadline_ && Clock::now() >= deadline_);
  }
  bool Failed() override { return thread_->shared->fatal.LoadRelaxed(); }

  void Throttle(bool write, uint64_t amount) override {
    RateLimiter* const limiter = write
                                     ? thread_->shared->write_rate_limiter.get()
                                     : thread_->shared->read_rate_limiter.get();
    if (limiter == nullptr) {
      return;
    }
    const uint64_t most = static_cast<uint64_t>(limiter->GetSingleBurstBytes());
    while (amount > 0) {
      const uint64_t part = std::min(amount, most);
      limiter->Request(
          static_cast<int64_t>(part), Env::IO_HIGH, /*stats=*/nullptr,
          write ? RateLimiter::OpType::kWrite : RateLimiter::OpType::kRead);
      amount -= part;
    }
  }

  void Begin() override {
    thread_->stats.ResetLastOpTime();
    if (recorder_ != nullptr) {
      recorder_->Start();
    }
  }

  void End(Op op, uint64_t bytes) override {
    if (recorder_ != nullptr) {
      recorder_->Finish(static_cast<unsigned>(op), OpName(op));
    }
    thread_->stats.AddBytes(static_cast<int64_t>(bytes));
    thread_->stats.FinishedOps(/*db_with_cfh=*/nullptr, db_, 1,
                               Thread::OperationOf(op));
  }

  void Fail(const Status& status, const std::string& what) override {
    thread_->shared->SetFatal(status, what + ": " + status.ToString());
  }

 private:
  using Clock = ActiveClock;

  Thread* const thread_;
  Duration duration_;
  const int threads_;
  DB* const db_;
  OpRecorder* const recorder_;
  const ReadOptions read_options_;
  const WriteOptions write_options_;
  const uint64_t seed_;
  const bool has_deadline_;
  const Clock::time_point deadline_;
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
