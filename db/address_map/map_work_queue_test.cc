//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_work_queue.h"

#include <set>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Ids = std::vector<uint32_t>;

TEST(MapWorkQueueTest, SignalsAreNewsOnce) {
  MapWorkQueue queue;
  EXPECT_FALSE(queue.HasNews(kMaxSequenceNumber));
  queue.Signal(7);
  queue.Signal(3);
  queue.Signal(7);
  EXPECT_TRUE(queue.HasNews(0));
  EXPECT_EQ(queue.TakeNews(0), (Ids{3, 7}));
  EXPECT_FALSE(queue.HasNews(kMaxSequenceNumber));
  EXPECT_EQ(queue.TakeNews(kMaxSequenceNumber), Ids());
}

TEST(MapWorkQueueTest, SnapshotsThatReachTheSequenceMakeNews) {
  MapWorkQueue queue;
  queue.WaitForSnapshots(1, 100);
  queue.WaitForSnapshots(2, 50);
  queue.WaitForSnapshots(3, 50);
  EXPECT_FALSE(queue.HasNews(49));
  EXPECT_TRUE(queue.HasNews(50));
  EXPECT_EQ(queue.TakeNews(60), (Ids{2, 3}));
  EXPECT_FALSE(queue.HasNews(99));
  // The last number that was given counts, whether it is smaller or larger.
  queue.WaitForSnapshots(1, 70);
  queue.WaitForSnapshots(2, 65);
  queue.WaitForSnapshots(2, 90);
  EXPECT_EQ(queue.TakeNews(70), Ids{1});
  EXPECT_FALSE(queue.HasNews(89));
  EXPECT_EQ(queue.TakeNews(90), Ids{2});
  EXPECT_FALSE(queue.HasNews(kMaxSequenceNumber));
}

TEST(MapWorkQueueTest, SignalsDoNotEndAWait) {
  MapWorkQueue queue;
  queue.WaitForSnapshots(1, 100);
  queue.Signal(1);
  EXPECT_EQ(queue.TakeNews(5), Ids{1});
  EXPECT_EQ(queue.TakeNews(100), Ids{1});
}

TEST(MapWorkQueueTest, SharedBoundsMakeAllThatWaitNews) {
  MapWorkQueue queue;
  queue.WaitForSharedBounds(4);
  queue.WaitForSharedBounds(2);
  EXPECT_FALSE(queue.HasNews(kMaxSequenceNumber));
  queue.OnSharedBoundsReleased();
  EXPECT_EQ(queue.TakeNews(0), (Ids{2, 4}));
  queue.OnSharedBoundsReleased();
  EXPECT_FALSE(queue.HasNews(0));
}

TEST(MapWorkQueueTest, MarkingIsDueWhenTheBoundIsReleased) {
  MapWorkQueue queue;
  queue.OnBoundsReleased(1);
  EXPECT_FALSE(queue.HasMarkingDue());
  EXPECT_EQ(queue.TakeNews(0), Ids{1});

  queue.WaitForMarking(1);
  queue.WaitForMarking(2);
  queue.WaitForMarking(3);
  queue.WaitForSharedBounds(2);
  EXPECT_TRUE(queue.WaitsForMarking(1));
  queue.OnBoundsReleased(1);
  EXPECT_FALSE(queue.WaitsForMarking(1));
  EXPECT_TRUE(queue.HasMarkingDue());
  queue.OnSharedBoundsReleased();
  EXPECT_EQ(queue.TakeMarkingDue(), (std::set<uint32_t>{1, 2}));
  EXPECT_FALSE(queue.HasMarkingDue());
  EXPECT_TRUE(queue.WaitsForMarking(3));
}

TEST(MapWorkQueueTest, DueFamiliesAreTakenOldestDeletionFirst) {
  MapWorkQueue queue;
  EXPECT_FALSE(queue.HasRemovalsDue());
  queue.SetRemovalsDue(5);
  queue.SetRemovalsDue(5);
  queue.SetRemovalsDue(6);
  EXPECT_EQ(queue.TakeRemovalsDue(), (std::set<uint32_t>{5, 6}));
  EXPECT_FALSE(queue.HasRemovalsDue());

  // The family with the oldest range deletion comes first.
  queue.SetSweepDue(1, 30);
  queue.SetSweepDue(2, 10);
  queue.SetSweepDue(3, 20);
  queue.SetSweepDue(2, 25);
  EXPECT_EQ(queue.TakeSweepDue(), 3u);
  EXPECT_EQ(queue.TakeSweepDue(), 2u);
  EXPECT_EQ(queue.TakeSweepDue(), 1u);
  EXPECT_FALSE(queue.HasSweepDue());
}

TEST(MapWorkQueueTest, NoSignalIsLost) {
  // Each thread signals its family once per round and waits until the signal
  // was taken.
  MapWorkQueue queue;
  constexpr uint32_t kThreads = 4;
  constexpr int kRounds = 2000;
  std::atomic<int> seen[kThreads] = {};
  std::atomic<uint32_t> done{0};
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int i = 1; i <= kRounds; ++i) {
        queue.Signal(id);
        while (seen[id].load() < i) {
          std::this_thread::yield();
        }
      }
      ++done;
    });
  }
  while (done.load() < kThreads) {
    if (queue.HasNews(0)) {
      for (const uint32_t id : queue.TakeNews(0)) {
        ++seen[id];
      }
    } else {
      std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& count : seen) {
    EXPECT_EQ(count.load(), kRounds);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
