// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/workload_thread.h"

#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

// These have the members of db_bench's ThreadState, Stats, SharedState and
// Duration that WorkloadThread uses.
struct FakeStats {
  OpRecorder* recorder = nullptr;
  int resets = 0;
  int64_t bytes = 0;
  std::vector<int> ops;

  void SetRecorder(OpRecorder* r) { recorder = r; }
  void ResetLastOpTime() { ++resets; }
  void AddBytes(int64_t n) { bytes += n; }
  void FinishedOps(void*, DB*, int64_t num_ops, int op) {
    ops.insert(ops.end(), static_cast<size_t>(num_ops), op);
  }
};

struct FakeShared {
  struct {
    std::atomic<bool> value{false};
    bool LoadRelaxed() const { return value.load(); }
  } fatal;
  Status status;
  std::string text;
  std::shared_ptr<RateLimiter> write_rate_limiter;
  std::shared_ptr<RateLimiter> read_rate_limiter;

  void SetFatal(const Status& s, const std::string& what) {
    fatal.value = true;
    status = s;
    text = what;
  }
};

struct FakeThread {
  FakeThread(int tid_arg, uint64_t seed, FakeShared* shared_arg)
      : tid(tid_arg), rand(seed), shared(shared_arg) {}
  static int OperationOf(Op op) { return 100 + static_cast<int>(op); }

  int tid;
  Random64 rand;
  FakeStats stats;
  FakeShared* shared;
};

struct FakeDuration {
  int64_t left = 0;
  bool Done(int64_t n) { return (left -= n) < 0; }
};

using TestThread = WorkloadThread<FakeThread, FakeDuration>;

TestThread Make(FakeThread* thread, int64_t ops, int max_seconds = 0,
                OpRecorder* recorder = nullptr) {
  return TestThread(thread, FakeDuration{ops}, max_seconds, /*threads=*/4,
                    /*db=*/nullptr, recorder, ReadOptions(), WriteOptions());
}

// db_bench gives the thread of number i the seed --seed + 1 + i, and goes on
// counting over the benchmarks of a process.
TEST(WorkloadThreadTest, NeighbouringSeedsShareNoStream) {
  FakeShared shared;
  std::set<uint64_t> seeds;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    for (int tid = 0; tid < 8; ++tid) {
      FakeThread thread(tid, seed + 1 + static_cast<uint64_t>(tid), &shared);
      seeds.insert(Make(&thread, 1).seed());
    }
  }
  ASSERT_EQ(400u, seeds.size());
  FakeThread once(3, 7, &shared);
  FakeThread again(3, 7, &shared);
  ASSERT_EQ(Make(&once, 1).seed(), Make(&again, 1).seed());
}

TEST(WorkloadThreadTest, EndsAfterItsOperations) {
  FakeShared shared;
  FakeThread thread(0, 1, &shared);
  TestThread host = Make(&thread, 3);
  ASSERT_FALSE(host.Done());
  ASSERT_FALSE(host.Done());
  ASSERT_FALSE(host.Done());
  ASSERT_TRUE(host.Done());
}

TEST(WorkloadThreadTest, EndsOnTimeHoweverFewTheOperations) {
  FakeShared shared;
  FakeThread thread(0, 1, &shared);
  TestThread host = Make(&thread, 1000000, /*max_seconds=*/1);
  Env::Default()->SleepForMicroseconds(1001000);
  ASSERT_TRUE(host.Done());
}

TEST(WorkloadThreadTest, EndsWhenAnotherThreadFails) {
  FakeShared shared;
  FakeThread thread(0, 1, &shared);
  FakeThread other(1, 2, &shared);
  TestThread host = Make(&thread, 100);
  TestThread failing = Make(&other, 100);
  ASSERT_FALSE(host.Done());
  ASSERT_FALSE(host.Failed());
  failing.Fail(Status::IOError("disk"), "put error");
  ASSERT_TRUE(host.Failed());
  ASSERT_TRUE(host.Done());
  ASSERT_TRUE(shared.status.IsIOError());
  ASSERT_EQ("put error: IO error: disk", shared.text);
}

TEST(WorkloadThreadTest, OperationsAreRecordedOnce) {
  FakeShared shared;
  FakeThread thread(2, 1, &shared);
  OpRecorder recorder;
  thread.stats.SetRecorder(&recorder);
  TestThread host = Make(&thread, 100, 0, &recorder);
  // The thread of the workload records the operations, so the Stats of db_bench
  // must not.
  ASSERT_EQ(nullptr, thread.stats.recorder);
  ASSERT_EQ(2, host.thread());
  ASSERT_EQ(4, host.threads());
  host.Begin();
  Env::Default()->SleepForMicroseconds(2000);
  host.End(Op::kScan, 50);
  Env::Default()->SleepForMicroseconds(100000);  // not part of an operation
  const uint64_t begin = Env::Default()->NowNanos();
  host.Begin();
  host.End(Op::kRead, 7);
  const uint64_t took = Env::Default()->NowNanos() - begin;
  const unsigned scan = static_cast<unsigned>(Op::kScan);
  const unsigned read = static_cast<unsigned>(Op::kRead);
  ASSERT_EQ(2u, recorder.ops());
  ASSERT_EQ("scan", *recorder.name(scan));
  ASSERT_GE(recorder.histogram(scan)->TakeSnapshot()->max(), 2000000u);
  ASSERT_LE(recorder.histogram(read)->TakeSnapshot()->max(), took);
  ASSERT_EQ(57, thread.stats.bytes);
  ASSERT_EQ(2, thread.stats.resets);
  ASSERT_EQ((std::vector<int>{FakeThread::OperationOf(Op::kScan),
                              FakeThread::OperationOf(Op::kRead)}),
            thread.stats.ops);
}

TEST(WorkloadThreadTest, ThrottlesMoreThanABurst) {
  FakeShared shared;
  FakeThread thread(0, 1, &shared);
  TestThread host = Make(&thread, 100);
  host.Throttle(/*write=*/true, 1000);  // no limit
  shared.write_rate_limiter.reset(NewGenericRateLimiter(
      100000000, 10 * 1000, 10, RateLimiter::Mode::kAllIo));
  shared.read_rate_limiter.reset(NewGenericRateLimiter(
      1000, 10 * 1000, 10, RateLimiter::Mode::kReadsOnly));
  const uint64_t burst =
      static_cast<uint64_t>(shared.write_rate_limiter->GetSingleBurstBytes());
  host.Throttle(/*write=*/true, 2 * burst + 1);
  ASSERT_EQ(static_cast<int64_t>(2 * burst + 1),
            shared.write_rate_limiter->GetTotalBytesThrough());
  host.Throttle(/*write=*/false, 3);
  ASSERT_EQ(3, shared.read_rate_limiter->GetTotalBytesThrough());
}

}  // namespace

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
