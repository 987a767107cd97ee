//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_read_group.h"

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/system_clock.h"
#include "test_util/mock_time_env.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class BlobReadGroupTest : public testing::Test {
 protected:
  static BlobReadGroup::Item At(uint64_t file_number, uint64_t offset,
                                uint64_t size) {
    BlobReadGroup::Item item;
    item.file_number = file_number;
    item.offset = offset;
    item.size = size;
    return item;
  }

  // Divides the items, returns the groups as lists of item numbers, and cancels
  // the groups.
  std::vector<std::vector<size_t>> Divide(
      std::vector<BlobReadGroup::Item>&& items) {
    const size_t n = items.size();
    std::vector<size_t> group_of;
    std::vector<size_t> index_of;
    const auto groups =
        BlobReadGroup::Divide(std::move(items), read_options_, ioptions_,
                              /*source=*/nullptr, &group_of, &index_of);
    std::vector<std::vector<size_t>> result(groups.size());
    for (size_t g = 0; g < groups.size(); ++g) {
      result[g].resize(groups[g]->items().size());
    }
    for (size_t i = 0; i < n; ++i) {
      result[group_of[i]][index_of[i]] = i;
    }
    for (size_t i = 0; i < n; ++i) {
      groups[group_of[i]]->LetGo();
    }
    for (const auto& group : groups) {
      EXPECT_TRUE(group->items().empty());
    }
    return result;
  }

  const ReadOptions read_options_;
  const ImmutableOptions ioptions_;
};

TEST_F(BlobReadGroupTest, DividesByDistanceAndSize) {
  using Groups = std::vector<std::vector<size_t>>;
  EXPECT_EQ(Divide({}), Groups());
  std::vector<BlobReadGroup::Item> items;
  // Groups are in the order of their first items, items in a group are in the
  // order of their offsets.
  items.push_back(At(8, 2000, 1000));
  items.push_back(At(7, 5000, 1000));
  items.push_back(At(8, 1000, 1000));
  EXPECT_EQ(Divide(std::move(items)), Groups({{2, 0}, {1}}));

  // The last item is too far from the previous one.
  items.clear();
  items.push_back(At(7, 0, 1000));
  items.push_back(At(7, 1000 + BlobReadGroup::kMaxGap, 1000));
  items.push_back(At(7, 2001 + 2 * BlobReadGroup::kMaxGap, 1000));
  EXPECT_EQ(Divide(std::move(items)), Groups({{0, 1}, {2}}));

  // The three items have too many bytes for one group.
  items.clear();
  items.push_back(At(7, 0, BlobReadGroup::kMaxSpan / 2));
  items.push_back(
      At(7, BlobReadGroup::kMaxSpan / 2, BlobReadGroup::kMaxSpan / 2));
  items.push_back(At(7, BlobReadGroup::kMaxSpan, 1));
  EXPECT_EQ(Divide(std::move(items)), Groups({{0, 1}, {2}}));

  // The group would have too many items.
  items.clear();
  for (uint64_t i = 0; i < 33; ++i) {
    items.push_back(At(7, 100 * i, 100));
  }
  const Groups groups = Divide(std::move(items));
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].size(), 32);
}

class BlobReadPoolTest : public testing::Test {
 protected:
  MockSystemClock clock_{SystemClock::Default()};
};

TEST_F(BlobReadPoolTest, RunAllStaysOnThisThreadWhileReadsAreFast) {
  std::vector<size_t> order;
  const auto here = std::this_thread::get_id();
  BlobReadPool::RunAll(&clock_, 10, [&](size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    order.push_back(i);
  });
  EXPECT_EQ(order, std::vector<size_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(BlobReadPoolTest, RunAllUsesOtherThreadsAfterASlowRead) {
  std::atomic<size_t> running{0};
  std::vector<std::atomic<int>> calls(8);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  BlobReadPool::RunAll(&clock_, calls.size(), [&](size_t i) {
    ++calls[i];
    if (i == 0) {
      clock_.SleepForMicroseconds(BlobReadPool::kCachedMicros + 1);
      return;
    }
    // All other calls wait for each other, so they must run at the same time.
    ++running;
    while (running < calls.size() - 1 &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now(), deadline)
      << "The calls did not run at the same time";
  for (const auto& n : calls) {
    EXPECT_EQ(n, 1);
  }
}

TEST_F(BlobReadPoolTest, ConcurrentRunAllsMakeEachCallOnce) {
  constexpr size_t kThreads = 8;
  constexpr size_t kRounds = 200;
  std::vector<std::thread> threads;
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> expected{0};
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t round = 0; round < kRounds; ++round) {
        const size_t n = (t + round) % 40;
        std::vector<size_t> done(n);
        BlobReadPool::RunAll(SystemClock::Default().get(), n, [&](size_t i) {
          if (i == 0) {
            SystemClock::Default()->SleepForMicroseconds(30);
          }
          done[i] += i + 1;
          ++calls;
        });
        expected += n;
        // A call that ran after the end of RunAll() would write to freed
        // memory.
        for (size_t i = 0; i < n; ++i) {
          EXPECT_EQ(done[i], i + 1);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(calls, expected);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
