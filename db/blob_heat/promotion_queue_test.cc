//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/promotion_queue.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class PromotionQueueTest : public testing::Test {
 protected:
  static constexpr uint64_t kBatch = 1000;

  PromotionQueueTest() { queue_.SetBatch(kBatch); }

  static MapName NameOf(const std::string& key, SequenceNumber seq = 1) {
    return MapName{MapKeyHash::Of(key, /*seed=*/301), seq, /*birth=*/0};
  }
  bool Push(const std::string& key, uint64_t size, SequenceNumber seq = 1) {
    return queue_.Push(key, NameOf(key, seq), size);
  }

  PromotionQueue queue_;
};

TEST_F(PromotionQueueTest, IsDueWithABatchOfBytes) {
  EXPECT_FALSE(Push("a", 400));
  EXPECT_FALSE(Push("b", 400));
  EXPECT_FALSE(queue_.IsDue());
  EXPECT_TRUE(Push("c", 200));
  EXPECT_TRUE(queue_.IsDue());
  // That was reported.
  EXPECT_FALSE(Push("d", 400));
  EXPECT_EQ(queue_.Count(), 4);
  EXPECT_EQ(queue_.Bytes(), 1400);

  std::vector<PromotionQueue::Candidate> taken = queue_.Take();
  EXPECT_FALSE(queue_.IsDue());
  EXPECT_EQ(queue_.Count(), 0);
  EXPECT_EQ(queue_.Bytes(), 0);
  ASSERT_EQ(taken.size(), 4);
  std::set<std::string> keys;
  for (const PromotionQueue::Candidate& candidate : taken) {
    keys.insert(candidate.key);
    EXPECT_TRUE(candidate.name == NameOf(candidate.key));
  }
  EXPECT_EQ(keys, (std::set<std::string>{"a", "b", "c", "d"}));
  EXPECT_TRUE(Push("e", kBatch));
}

TEST_F(PromotionQueueTest, AKeyIsInItOnceWithItsLastName) {
  EXPECT_FALSE(Push("a", 400, 1));
  EXPECT_FALSE(Push("a", 300, 1));
  EXPECT_FALSE(Push("a", 500, 7));
  EXPECT_EQ(queue_.Count(), 1);
  EXPECT_EQ(queue_.Bytes(), 500);
  const std::vector<PromotionQueue::Candidate> taken = queue_.Take();
  ASSERT_EQ(taken.size(), 1);
  EXPECT_EQ(taken[0].name.seq, 7);
  EXPECT_EQ(taken[0].size, 500);
}

TEST_F(PromotionQueueTest, IsDueAfterManyReadsOfWhatWaits) {
  EXPECT_FALSE(Push("a", 1));
  for (uint64_t i = 1; i < PromotionQueue::kMinRepeats; ++i) {
    EXPECT_FALSE(Push("a", 1));
  }
  EXPECT_TRUE(Push("a", 1));
  EXPECT_TRUE(queue_.IsDue());
  EXPECT_EQ(queue_.Count(), 1);
  queue_.Clear();
  // The more values wait, the more reads it takes.
  constexpr uint64_t kValues = 100;
  for (uint64_t i = 0; i < kValues; ++i) {
    EXPECT_FALSE(Push(std::to_string(i), 1));
  }
  for (uint64_t i = 1; i < PromotionQueue::kRepeatsPerValue * kValues; ++i) {
    EXPECT_FALSE(Push("0", 1));
  }
  EXPECT_TRUE(Push("0", 1));
  EXPECT_EQ(queue_.Count(), kValues);
}

TEST_F(PromotionQueueTest, IsReportedAgainIfNoJobCame) {
  EXPECT_TRUE(Push("a", kBatch));
  EXPECT_FALSE(Push("a", kBatch));
  queue_.ForgetDue();
  EXPECT_FALSE(queue_.IsDue());
  EXPECT_EQ(queue_.Count(), 1);
  EXPECT_TRUE(Push("a", kBatch));
}

TEST_F(PromotionQueueTest, IsReportedAgainAfterAPause) {
  // The queue is full in the second case.
  for (const uint64_t size : {kBatch, PromotionQueue::kMaxBatches * kBatch}) {
    EXPECT_TRUE(Push("a", size));
    EXPECT_FALSE(Push("b", 1));
    for (int round = 0; round < 2; ++round) {
      queue_.AskAgain();
      for (uint64_t i = 1; i < PromotionQueue::kMinPause; ++i) {
        EXPECT_FALSE(Push("b", 1));
      }
      EXPECT_TRUE(Push("b", 1));
      EXPECT_TRUE(queue_.IsDue());
      EXPECT_FALSE(Push("b", 1));
    }
    queue_.AskAgain();
    queue_.Clear();
    for (uint64_t i = 0; i < PromotionQueue::kMinRepeats; ++i) {
      EXPECT_FALSE(Push("b", 1));
    }
    EXPECT_TRUE(Push("b", 1));
    queue_.Clear();
  }
}

TEST_F(PromotionQueueTest, DropsWhatDoesNotFit) {
  const uint64_t room = PromotionQueue::kMaxBatches * kBatch;
  EXPECT_TRUE(Push("a", room));
  EXPECT_FALSE(Push("b", 1));
  EXPECT_EQ(queue_.Count(), 1);
  EXPECT_EQ(queue_.Bytes(), room);
  // A full queue is reported again, too.
  queue_.ForgetDue();
  EXPECT_TRUE(Push("b", 1));
  EXPECT_EQ(queue_.Count(), 1);
  queue_.Clear();
  EXPECT_FALSE(Push("b", 1));
  EXPECT_EQ(queue_.Count(), 1);
}

// Otherwise they would never be taken.
TEST_F(PromotionQueueTest, TakesLargeValuesWhileNoBatchWaits) {
  const uint64_t large = 10 * PromotionQueue::kMaxBatches * kBatch;
  EXPECT_TRUE(Push("large", large));
  EXPECT_FALSE(Push("small", 1));
  EXPECT_EQ(queue_.Count(), 1);
  EXPECT_EQ(queue_.Bytes(), large);
  queue_.Clear();
  EXPECT_FALSE(Push("small", kBatch - 1));
  EXPECT_TRUE(Push("large", large));
  EXPECT_EQ(queue_.Count(), 2);
  queue_.Clear();
  EXPECT_TRUE(Push("batch", kBatch));
  EXPECT_FALSE(Push("large", large));
  EXPECT_EQ(queue_.Count(), 1);
}

TEST_F(PromotionQueueTest, RefusedValuesWaitLongerEachTime) {
  uint64_t pause = PromotionQueue::kMinPause;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Push("a", kBatch));
    queue_.Clear();
    queue_.Refuse({NameOf("a").key});
    for (uint64_t n = 1; n < pause; ++n) {
      ASSERT_FALSE(Push("a", kBatch));
    }
    EXPECT_EQ(queue_.Count(), 0);
    // Others are taken, and their job ends no pause.
    EXPECT_TRUE(Push("b", kBatch));
    queue_.Clear();
    queue_.Refuse({});
    pause *= 2;
  }
  // A job that has copied all values ends them.
  EXPECT_TRUE(Push("a", kBatch));
  queue_.Clear();
  queue_.Refuse({});
  queue_.Refuse({NameOf("a").key});
  for (uint64_t n = 1; n < PromotionQueue::kMinPause; ++n) {
    ASSERT_FALSE(Push("a", kBatch));
  }
  EXPECT_TRUE(Push("a", kBatch));
  queue_.Clear();
  queue_.Refuse({NameOf("a").key});
  EXPECT_FALSE(Push("a", kBatch));
  queue_.ForgetRefused();
  EXPECT_TRUE(Push("a", kBatch));
}

TEST_F(PromotionQueueTest, ConcurrentPushesReportOnce) {
  constexpr int kThreads = 4;
  std::atomic<int> reports{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        const std::string key = std::to_string(t) + "." + std::to_string(i);
        reports += queue_.Push(key, NameOf(key), 10) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(reports.load(), queue_.IsDue() ? 1 : 0);
  EXPECT_LE(queue_.Bytes(), PromotionQueue::kMaxBatches * kBatch);
  std::vector<PromotionQueue::Candidate> taken = queue_.Take();
  std::set<std::string> keys;
  for (const PromotionQueue::Candidate& candidate : taken) {
    EXPECT_TRUE(keys.insert(candidate.key).second);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
