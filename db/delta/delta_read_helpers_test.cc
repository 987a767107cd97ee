//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_read_helpers.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "port/port.h"
#include "port/stack_trace.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "util/mutexlock.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Holds up tasks.
class Gate {
 public:
  Gate() : cv_(&mutex_) {}
  void Open() {
    MutexLock lock(&mutex_);
    is_open_ = true;
    cv_.SignalAll();
  }
  void Pass() {
    MutexLock lock(&mutex_);
    while (!is_open_) {
      cv_.Wait();
    }
  }

 private:
  port::Mutex mutex_;
  port::CondVar cv_;
  bool is_open_ = false;
};

class CountingTask final : public DeltaReadHelpers::Task {
 public:
  explicit CountingTask(DeltaReadHelpers* helpers, Gate* gate = nullptr)
      : DeltaReadHelpers::Task(helpers), gate_(gate) {}
  ~CountingTask() override = default;

  bool HasBegun() const { return begun_.load(); }
  void AwaitBegin() const {
    while (!HasBegun()) {
      std::this_thread::yield();
    }
  }
  void Reset() { begun_ = false; }
  int runs = 0;

 private:
  void Run() override {
    begun_ = true;
    if (gate_ != nullptr) {
      gate_->Pass();
    }
    ++runs;
  }

  Gate* const gate_;
  std::atomic<bool> begun_{false};
};

}  // namespace

class DeltaReadHelpersTest : public testing::Test {
 protected:
  DeltaReadHelpersTest() {
    SyncPoint::GetInstance()->SetCallBack("DeltaReadHelpers::Work:End",
                                          [this](void*) { ++ended_; });
    SyncPoint::GetInstance()->EnableProcessing();
    helpers_ = std::make_unique<DeltaReadHelpers>();
  }
  ~DeltaReadHelpersTest() override {
    helpers_.reset();
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }

  std::atomic<size_t> ended_{0};
  std::unique_ptr<DeltaReadHelpers> helpers_;
};

TEST_F(DeltaReadHelpersTest, NoThreads) {
  ASSERT_FALSE(helpers_->HasRoom(0));
  ASSERT_TRUE(helpers_->HasRoom(1));
  CountingTask task(helpers_.get());
  ASSERT_FALSE(helpers_->Give(&task, /*max_threads=*/0, /*may_wait=*/false));
  ASSERT_FALSE(helpers_->Give(&task, /*max_threads=*/0, /*may_wait=*/true));
  ASSERT_FALSE(helpers_->Take(&task));
  ASSERT_FALSE(helpers_->Withdraw(&task));
  ASSERT_EQ(0, helpers_->TEST_NumThreads());
}

TEST_F(DeltaReadHelpersTest, ThreadsStay) {
  for (int i = 0; i < 20; ++i) {
    Gate gate;
    CountingTask task(helpers_.get(), &gate);
    ASSERT_TRUE(helpers_->Give(&task, /*max_threads=*/3, /*may_wait=*/false));
    task.AwaitBegin();
    ASSERT_FALSE(helpers_->Withdraw(&task));
    gate.Open();
    ASSERT_TRUE(helpers_->Take(&task));
    ASSERT_EQ(1, task.runs);
    ASSERT_EQ(1, helpers_->TEST_NumThreads());
  }
  helpers_.reset();
  ASSERT_EQ(1, ended_.load());
}

TEST_F(DeltaReadHelpersTest, TakenAgain) {
  CountingTask task(helpers_.get());
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(helpers_->Give(&task, 1, false));
    task.AwaitBegin();
    ASSERT_TRUE(helpers_->Take(&task));
    ASSERT_FALSE(helpers_->Take(&task));
    ASSERT_EQ(i, task.runs);
    task.Reset();
  }
}

TEST_F(DeltaReadHelpersTest, NoneWaitsUnlessItMay) {
  Gate gate;
  std::vector<std::unique_ptr<CountingTask>> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(std::make_unique<CountingTask>(helpers_.get(), &gate));
    ASSERT_TRUE(helpers_->Give(busy.back().get(), 2, false));
  }
  ASSERT_FALSE(helpers_->HasRoom(2));
  ASSERT_TRUE(helpers_->HasRoom(3));
  CountingTask refused(helpers_.get());
  ASSERT_FALSE(helpers_->Give(&refused, 2, false));
  for (const auto& task : busy) {
    task->AwaitBegin();
  }
  ASSERT_EQ(2, helpers_->TEST_NumThreads());
  ASSERT_FALSE(helpers_->Give(&refused, 2, false));

  CountingTask withdrawn(helpers_.get());
  ASSERT_TRUE(helpers_->Give(&withdrawn, 2, true));
  CountingTask taken(helpers_.get());
  ASSERT_TRUE(helpers_->Give(&taken, 2, true));
  CountingTask run(helpers_.get());
  ASSERT_TRUE(helpers_->Give(&run, 2, true));
  ASSERT_TRUE(helpers_->Withdraw(&withdrawn));
  ASSERT_FALSE(helpers_->Withdraw(&withdrawn));
  ASSERT_FALSE(helpers_->Take(&withdrawn));
  ASSERT_FALSE(helpers_->Take(&taken));
  ASSERT_EQ(2, helpers_->TEST_NumThreads());
  gate.Open();
  run.AwaitBegin();
  ASSERT_TRUE(helpers_->Take(&run));
  for (const auto& task : busy) {
    ASSERT_TRUE(helpers_->Take(task.get()));
    ASSERT_EQ(1, task->runs);
  }
  ASSERT_EQ(0, withdrawn.runs);
  ASSERT_EQ(0, taken.runs);
  ASSERT_EQ(1, run.runs);
  ASSERT_TRUE(helpers_->HasRoom(1));
  helpers_.reset();
  ASSERT_EQ(2, ended_.load());
}

TEST_F(DeltaReadHelpersTest, NotTooManyWait) {
  Gate gate;
  std::vector<std::unique_ptr<CountingTask>> tasks;
  const auto give = [&] {
    tasks.push_back(std::make_unique<CountingTask>(helpers_.get(), &gate));
    return helpers_->Give(tasks.back().get(), 1, true);
  };
  ASSERT_TRUE(give());
  tasks.back()->AwaitBegin();
  for (size_t i = 0; i < DeltaReadHelpers::kMaxWaiting; ++i) {
    ASSERT_TRUE(give());
  }
  ASSERT_FALSE(give());
  gate.Open();
  for (const auto& task : tasks) {
    helpers_->Take(task.get());
  }
}

// The limit is that of the newest caller.
TEST_F(DeltaReadHelpersTest, LimitChanges) {
  Gate gate;
  CountingTask first(helpers_.get(), &gate);
  CountingTask second(helpers_.get(), &gate);
  ASSERT_TRUE(helpers_->Give(&first, 1, false));
  ASSERT_FALSE(helpers_->Give(&second, 1, false));
  ASSERT_TRUE(helpers_->Give(&second, 2, false));
  second.AwaitBegin();
  CountingTask third(helpers_.get());
  ASSERT_FALSE(helpers_->Give(&third, 1, false));
  gate.Open();
  ASSERT_TRUE(helpers_->Take(&second));
  first.AwaitBegin();
  ASSERT_TRUE(helpers_->Take(&first));
  ASSERT_EQ(2, helpers_->TEST_NumThreads());
}

// Tasks live no longer than until they are taken back.
TEST_F(DeltaReadHelpersTest, ManyOwners) {
  constexpr int kOwners = 6;
  constexpr int kRounds = 3000;
  std::atomic<int> runs{0};
  std::atomic<int> expected{0};
  std::vector<port::Thread> owners;
  for (int i = 0; i < kOwners; ++i) {
    owners.emplace_back([&, i] {
      Random rnd(301 + i);
      for (int round = 0; round < kRounds; ++round) {
        auto task = std::make_unique<CountingTask>(helpers_.get());
        if (!helpers_->Give(task.get(), 3, rnd.OneIn(2))) {
          continue;
        }
        if (rnd.OneIn(3)) {
          std::this_thread::yield();
        }
        if (rnd.OneIn(4) && helpers_->Withdraw(task.get())) {
          ASSERT_EQ(0, task->runs);
          continue;
        }
        const bool was_run = helpers_->Take(task.get());
        ASSERT_EQ(was_run ? 1 : 0, task->runs);
        runs += task->runs;
        expected += was_run ? 1 : 0;
      }
    });
  }
  for (port::Thread& owner : owners) {
    owner.join();
  }
  ASSERT_EQ(expected.load(), runs.load());
  ASSERT_LE(helpers_->TEST_NumThreads(), 3);
  ASSERT_TRUE(helpers_->HasRoom(1));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
