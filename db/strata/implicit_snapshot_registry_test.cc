//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/implicit_snapshot_registry.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using ReadBound = ImplicitSnapshotRegistry::ReadBound;
using Sequences = std::vector<SequenceNumber>;

class ImplicitSnapshotRegistryTest : public testing::Test {
 protected:
#ifndef NDEBUG
  ~ImplicitSnapshotRegistryTest() override { DisableCallBacks(); }
#endif  // NDEBUG

  static Sequences Merged(const ImplicitSnapshotRegistry& registry,
                          Sequences snapshots = {}) {
    registry.MergeInto(&snapshots);
    return snapshots;
  }
};

TEST_F(ImplicitSnapshotRegistryTest, RegisterMoveAndReleaseKeepTheListExact) {
  ImplicitSnapshotRegistry registry;
  ASSERT_FALSE(registry.HasAny());
  ASSERT_EQ(kMaxSequenceNumber, registry.Min());
  ASSERT_EQ(Sequences(), Merged(registry));

  SequenceNumber last = 7;
  ReadBound a = registry.Register([&] { return last; });
  last = 9;
  ReadBound b = registry.Register([&] { return last; });
  ReadBound old = registry.RegisterAt(0);
  ASSERT_EQ(7u, a.sequence());
  ASSERT_EQ(9u, b.sequence());
  ASSERT_TRUE(registry.HasAny());
  ASSERT_EQ(0u, registry.Min());
  ASSERT_EQ(Sequences({0, 7, 9}), Merged(registry));

  ReadBound moved = std::move(a);
  ASSERT_FALSE(a.registered());
  ASSERT_EQ(7u, moved.sequence());
  ASSERT_EQ(Sequences({0, 7, 9}), Merged(registry));

  // The target of an assignment releases the bound that it had.
  old = std::move(moved);
  ASSERT_EQ(7u, old.sequence());
  ASSERT_EQ(Sequences({7, 9}), Merged(registry));
  ReadBound& same = old;
  old = std::move(same);
  ASSERT_EQ(Sequences({7, 9}), Merged(registry));

  b.Release();
  b.Release();
  ASSERT_FALSE(b.registered());
  ASSERT_EQ(7u, registry.Min());
  b = ReadBound();
  { ReadBound last_one = std::move(old); }
  ASSERT_FALSE(registry.HasAny());
  ASSERT_EQ(kMaxSequenceNumber, registry.Min());
}

TEST_F(ImplicitSnapshotRegistryTest, MergeKeepsTheListAscendingAndUnique) {
  ImplicitSnapshotRegistry registry;
  std::vector<ReadBound> bounds;
  for (SequenceNumber s : {20, 5, 20, 10, 5, 30}) {
    bounds.push_back(registry.RegisterAt(s));
  }
  ASSERT_EQ(Sequences({5, 10, 20, 30}), Merged(registry));
  ASSERT_EQ(Sequences({1, 5, 10, 20, 25, 30, 40}),
            Merged(registry, {1, 10, 25, 40}));
  bounds.clear();
  ASSERT_EQ(Sequences({1, 10}), Merged(registry, {1, 10}));
}

TEST_F(ImplicitSnapshotRegistryTest, RenewChangesInPlace) {
  ImplicitSnapshotRegistry registry;
  SequenceNumber last = 10;
  ReadBound other = registry.RegisterAt(3);
  ReadBound bound = registry.Register([&] { return last; });
  last = 15;
  ASSERT_EQ(15u, bound.Renew([&] { return last; }));
  ASSERT_EQ(15u, bound.sequence());
  ASSERT_EQ(Sequences({3, 15}), Merged(registry));
  ASSERT_EQ(4u, bound.RenewAt(4));
  ASSERT_EQ(Sequences({3, 4}), Merged(registry));
}

// A job waits for a reader that has read its sequence number but is not listed
// yet.
TEST_F(ImplicitSnapshotRegistryTest,
       JobWaitsForAReaderBetweenReadingAndListing) {
  ImplicitSnapshotRegistry registry;
  for (const bool renew : {false, true}) {
    std::atomic<bool> reading{false};
    std::atomic<bool> asking{false};
    std::atomic<bool> answered{false};
    StoppableThreads reader;
    reader.Start([&] {
      ReadBound bound;
      auto read = [&]() -> SequenceNumber {
        reading = true;
        EXPECT_TRUE(WaitUntil([&] { return asking.load(); }));
        // The job has many chances to go on, which it must not take.
        for (int i = 0; i < 1000; ++i) {
          std::this_thread::yield();
        }
        EXPECT_FALSE(answered);
        return 10;
      };
      if (renew) {
        bound = registry.RegisterAt(3);
        bound.Renew(read);
      } else {
        bound = registry.Register(read);
      }
      EXPECT_TRUE(WaitUntil([&] { return reader.stopped(); }));
    });
    EXPECT_TRUE(WaitUntil([&] { return reading.load(); }));
    asking = true;
    const Sequences seen = Merged(registry);
    answered = true;
    EXPECT_EQ(Sequences({10}), seen);
    reader.Stop();
  }
}

// A bound that a job misses is not below the sequence number that was published
// before the job asked. A bound that is listed all the time is seen with its
// exact value.
TEST_F(ImplicitSnapshotRegistryTest, NoBoundBelowThePublishedSequenceIsMissed) {
  struct ALIGN_AS(CACHE_LINE_SIZE) Slot {
    // The generation is odd while `sequence` is listed.
    std::atomic<uint64_t> generation{0};
    std::atomic<SequenceNumber> sequence{0};
  };
  constexpr int kReaders = 3;
  ImplicitSnapshotRegistry registry;
  std::atomic<SequenceNumber> published{1};
  std::atomic<bool> stop{false};
  Slot slots[kReaders];

  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop) {
      published.fetch_add(1);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < kReaders; ++i) {
    threads.emplace_back([&, i] {
      Random rnd(301 + i);
      Slot& slot = slots[i];
      auto read = [&] {
        const SequenceNumber s = published.load();
        if (rnd.OneIn(2)) {
          std::this_thread::yield();
        }
        return s;
      };
      ReadBound bound;
      while (!stop) {
        if (bound.registered() && rnd.OneIn(2)) {
          bound.Renew(read);
        } else {
          bound = registry.Register(read);
        }
        if (rnd.OneIn(4)) {
          ReadBound moved = std::move(bound);
          bound = std::move(moved);
        }
        slot.sequence.store(bound.sequence());
        slot.generation.fetch_add(1);
        std::this_thread::yield();
        slot.generation.fetch_add(1);
      }
    });
  }

  size_t checked = 0;
  for (int round = 0; round < 5000 || checked < 1000; ++round) {
    uint64_t generations[kReaders];
    for (int i = 0; i < kReaders; ++i) {
      generations[i] = slots[i].generation.load();
    }
    const SequenceNumber p = published.load();
    const Sequences seen = Merged(registry);
    for (int i = 0; i < kReaders; ++i) {
      const uint64_t after = slots[i].generation.load();
      const SequenceNumber s = slots[i].sequence.load();
      if (after % 2 == 0 || slots[i].generation.load() != after) {
        continue;
      }
      const bool listed_throughout = generations[i] == after;
      if (listed_throughout || s < p) {
        ++checked;
        EXPECT_TRUE(std::binary_search(seen.begin(), seen.end(), s))
            << "bound " << s << ", published " << p;
      }
    }
    if (HasFailure()) {
      break;
    }
  }
  stop = true;
  for (auto& t : threads) {
    t.join();
  }
}

// A bound that is renewed or moved is listed exactly once at each moment.
// Neighbours in one list do not disturb each other.
TEST_F(ImplicitSnapshotRegistryTest, ABoundIsAlwaysListedExactlyOnce) {
  constexpr int kReaders = 3;
  ImplicitSnapshotRegistry registry;
  std::atomic<bool> stop{false};
  std::vector<ReadBound> bounds(kReaders);
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    bounds[i] = registry.RegisterAt(100 * i);
  }
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&, i] {
      for (SequenceNumber s = 1; !stop; ++s) {
        bounds[i].RenewAt(100 * i + s % 50);
        ReadBound moved = std::move(bounds[i]);
        bounds[i] = std::move(moved);
      }
    });
  }
  for (int round = 0; round < 20000 && !HasFailure(); ++round) {
    const Sequences seen = Merged(registry);
    EXPECT_EQ(static_cast<size_t>(kReaders), seen.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(i, seen[i] / 100);
      EXPECT_LT(seen[i] % 100, 50u);
    }
    EXPECT_LT(registry.Min(), 50u);
  }
  stop = true;
  for (auto& t : readers) {
    t.join();
  }
}

#ifndef NDEBUG
// A reader registers in one shard before it releases its sequence number in
// another. A job that has searched some of the shards meanwhile sees one of the
// two.
TEST_F(ImplicitSnapshotRegistryTest, ReaderThatMovesToAnotherShardIsSeen) {
  constexpr size_t kFirst = 0;
  constexpr size_t kLast = 7;
  ImplicitSnapshotRegistry registry;
  thread_local size_t core = kLast;
  for (int round = 0; round < 20; ++round) {
    EnableCallBack("ImplicitSnapshotRegistry::PickShard:Core",
                   [](void* arg) { *static_cast<size_t*>(arg) = core; });
    core = kLast;
    ReadBound bound = registry.RegisterAt(10);
    StoppableThreads reader;
    std::atomic<bool> moves{false};
    std::atomic<bool> moved{false};
    // The reader begins when the job has searched the first shard.
    int searched = 0;
    EnableCallBack("ImplicitSnapshotRegistry::ForEach:SearchedShard",
                   [&](void*) {
                     if (++searched != 2) {
                       return;
                     }
                     reader.Start([&] {
                       core = kFirst;
                       moves = true;
                       ReadBound next = registry.RegisterAt(10);
                       bound = std::move(next);
                       moved = true;
                     });
                     EXPECT_TRUE(WaitUntil([&] { return moves.load(); }));
                     // The reader has many chances to go on. It waits for the
                     // end of the search.
                     for (int i = 0; i < 1000 && !moved; ++i) {
                       std::this_thread::yield();
                     }
                   });
    EXPECT_EQ(10u, registry.Min());
    EXPECT_GT(searched, 2);
    reader.Stop();
    EXPECT_EQ(Sequences({10}), Merged(registry));
    // The registry's destructor searches the shards, too.
    DisableCallBacks();
  }
}
#endif  // NDEBUG

TEST_F(ImplicitSnapshotRegistryTest, NotifiesOnceWhenTheLastOneBelowIsGone) {
  int calls = 0;
  ImplicitSnapshotRegistry registry([&] { ++calls; });
  ASSERT_FALSE(registry.NotifyWhenNoneBelow(kMaxSequenceNumber));

  ReadBound a = registry.RegisterAt(5);
  ReadBound b = registry.RegisterAt(8);
  ReadBound c = registry.RegisterAt(10);
  ASSERT_FALSE(registry.NotifyWhenNoneBelow(5));
  ASSERT_TRUE(registry.NotifyWhenNoneBelow(10));
  c.Release();
  b.Release();
  ASSERT_EQ(0, calls);
  a.Release();
  ASSERT_EQ(1, calls);

  // There was no request since then.
  a = registry.RegisterAt(1);
  a.Release();
  ASSERT_EQ(1, calls);

  // Sequence number 0 is treated like all others.
  a = registry.RegisterAt(0);
  ASSERT_TRUE(registry.NotifyWhenNoneBelow(1));
  a.Release();
  ASSERT_EQ(2, calls);
}

TEST_F(ImplicitSnapshotRegistryTest, TheLowestOfSeveralRequestsIsAnswered) {
  int calls = 0;
  ImplicitSnapshotRegistry registry([&] { ++calls; });
  ReadBound a = registry.RegisterAt(5);
  ReadBound b = registry.RegisterAt(50);
  ASSERT_TRUE(registry.NotifyWhenNoneBelow(60));
  ASSERT_TRUE(registry.NotifyWhenNoneBelow(10));
  ASSERT_TRUE(registry.NotifyWhenNoneBelow(100));
  // This request is refused, and the others stay.
  ASSERT_FALSE(registry.NotifyWhenNoneBelow(3));
  a.Release();
  ASSERT_EQ(1, calls);
  ASSERT_TRUE(registry.NotifyWhenNoneBelow(60));
  ASSERT_FALSE(registry.NotifyWhenNoneBelow(50));
  b.Release();
  ASSERT_EQ(2, calls);
}

TEST_F(ImplicitSnapshotRegistryTest, RenewAndMoveNotifyAsReleaseDoes) {
  int calls = 0;
  ImplicitSnapshotRegistry registry([&] { ++calls; });
  ReadBound a = registry.RegisterAt(5);
  ASSERT_TRUE(registry.NotifyWhenNoneBelow(10));
  ReadBound b = std::move(a);
  b.RenewAt(3);
  b.RenewAt(9);
  ASSERT_EQ(0, calls);
  b.RenewAt(10);
  ASSERT_EQ(1, calls);
  ASSERT_TRUE(registry.NotifyWhenNoneBelow(11));
  b = registry.RegisterAt(20);
  ASSERT_EQ(2, calls);
}

TEST_F(ImplicitSnapshotRegistryTest, TheCallbackMayUseTheRegistry) {
  std::unique_ptr<ImplicitSnapshotRegistry> registry;
  std::vector<SequenceNumber> limits = {100, 50, 20};
  int calls = 0;
  registry = std::make_unique<ImplicitSnapshotRegistry>([&] {
    ++calls;
    ReadBound mine = registry->RegisterAt(1000);
    Sequences list = {1};
    registry->MergeInto(&list);
    while (!limits.empty() && !registry->NotifyWhenNoneBelow(limits.back())) {
      limits.pop_back();
    }
  });
  ReadBound a = registry->RegisterAt(10);
  ReadBound b = registry->RegisterAt(40);
  ASSERT_TRUE(registry->NotifyWhenNoneBelow(limits.back()));
  a.Release();
  ASSERT_EQ(1, calls);
  ASSERT_EQ(std::vector<SequenceNumber>({100, 50}), limits);
  b.Release();
  ASSERT_EQ(2, calls);
  ASSERT_TRUE(limits.empty());
}

#ifndef NDEBUG
// The last bound is released while a request for it is being made.
TEST_F(ImplicitSnapshotRegistryTest, ReleaseDuringARequestIsNotLost) {
  for (const bool before_search : {true, false}) {
    std::atomic<int> calls{0};
    std::atomic<bool> saw_limit{false};
    ImplicitSnapshotRegistry registry([&] { ++calls; });
    ReadBound bound = registry.RegisterAt(5);
    std::thread releaser;
    SyncPoint::GetInstance()->SetCallBack(
        "ImplicitSnapshotRegistry::NotifyIfClear:BeforeLock",
        [&](void*) { saw_limit = true; });
    SyncPoint::GetInstance()->SetCallBack(
        before_search
            ? "ImplicitSnapshotRegistry::NotifyWhenNoneBelow:BeforeSearch"
            : "ImplicitSnapshotRegistry::NotifyWhenNoneBelow:AfterSearch",
        [&](void*) {
          releaser = std::thread([&] { bound.Release(); });
          EXPECT_TRUE(WaitUntil([&] { return saw_limit.load(); }));
          EXPECT_FALSE(registry.HasAny());
        });
    SyncPoint::GetInstance()->EnableProcessing();
    const bool promised = registry.NotifyWhenNoneBelow(10);
    releaser.join();
    DisableCallBacks();
    EXPECT_EQ(!before_search, promised);
    EXPECT_EQ(before_search ? 0 : 1, calls);
  }
}
#endif  // NDEBUG

// An owner that waits after each promise always gets its notification.
TEST_F(ImplicitSnapshotRegistryTest, NoNotificationIsLost) {
  std::atomic<uint64_t> calls{0};
  ImplicitSnapshotRegistry registry([&] { ++calls; });
  std::atomic<SequenceNumber> published{10};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Random rnd(17 + i);
      ReadBound bound;
      while (!stop) {
        if (bound.registered() && rnd.OneIn(3)) {
          bound.Renew([&] { return published.load(); });
        } else {
          bound = registry.Register([&] { return published.load(); });
        }
        if (rnd.OneIn(3)) {
          bound.Release();
        }
        if (rnd.OneIn(10)) {
          std::this_thread::yield();
        }
      }
    });
  }
  Random rnd(5);
  int promises = 0;
  for (int round = 0; (round < 10000 || promises < 1000) && !HasFailure();
       ++round) {
    const SequenceNumber limit = published.fetch_add(1) + 1;
    // A notification may answer an earlier request with the higher limit below.
    for (;;) {
      const uint64_t calls_before = calls.load();
      if (!registry.NotifyWhenNoneBelow(limit)) {
        break;
      }
      ++promises;
      if (rnd.OneIn(4)) {
        // A higher limit must not hide the lower one.
        registry.NotifyWhenNoneBelow(limit + 1000000);
      }
      // The answer mostly comes at once.
      for (int i = 0; i < 1000 && calls.load() == calls_before; ++i) {
        std::this_thread::yield();
      }
      if (!WaitUntil([&] { return calls.load() != calls_before; })) {
        ADD_FAILURE() << "no answer for " << limit;
        break;
      }
    }
    // Bounds only grow in this test.
    EXPECT_GE(registry.Min(), limit);
    std::this_thread::yield();
  }
  stop = true;
  for (auto& t : threads) {
    t.join();
  }
}

TEST_F(ImplicitSnapshotRegistryTest, RandomOperationsMatchAModel) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random rnd(seed);
#ifndef NDEBUG
    // All shards get bounds, also on machines with few cores.
    EnableCallBack("ImplicitSnapshotRegistry::PickShard:Core", [&](void* core) {
      *static_cast<size_t*>(core) = rnd.Uniform(8);
    });
#endif  // NDEBUG

    int calls = 0;
    ImplicitSnapshotRegistry registry([&] { ++calls; });
    std::vector<ReadBound> bounds(1 + rnd.Uniform(12));
    // The sequence number listed for each bound; kMaxSequenceNumber if there is
    // none.
    Sequences model(bounds.size(), kMaxSequenceNumber);
    SequenceNumber last = 100;
    SequenceNumber asked = 0;
    int expected_calls = 0;

    auto model_min = [&] {
      return *std::min_element(model.begin(), model.end());
    };
    auto removed = [&](SequenceNumber s) {
      if (s < asked && model_min() >= asked) {
        asked = 0;
        ++expected_calls;
      }
    };

    for (int step = 0; step < 2000; ++step) {
      const size_t i = rnd.Uniform(static_cast<int>(bounds.size()));
      const size_t j = rnd.Uniform(static_cast<int>(bounds.size()));
      const SequenceNumber old = model[i];
      const SequenceNumber target = last - rnd.Uniform(100);
      last += rnd.Uniform(3);
      auto read = [&] { return last; };
      switch (rnd.Uniform(6)) {
        case 0:
          // The new bound is listed before the old one is released.
          bounds[i] = rnd.OneIn(2) ? registry.Register(read)
                                   : registry.RegisterAt(last);
          model[i] = last;
          removed(old);
          break;
        case 1:
          bounds[i] = registry.RegisterAt(target);
          model[i] = target;
          removed(old);
          break;
        case 2:
          bounds[i].Release();
          model[i] = kMaxSequenceNumber;
          removed(old);
          break;
        case 3:
          if (bounds[i].registered()) {
            const SequenceNumber to = rnd.OneIn(2) ? last : target;
            ASSERT_EQ(
                to, to == last ? bounds[i].Renew(read) : bounds[i].RenewAt(to));
            model[i] = to;
            removed(old);
          }
          break;
        case 4:
          if (i != j) {
            bounds[i] = std::move(bounds[j]);
            model[i] = kMaxSequenceNumber;
            std::swap(model[i], model[j]);
            removed(old);
          }
          break;
        case 5: {
          const SequenceNumber limit = rnd.OneIn(2) ? last : target;
          const bool blocked = model_min() < limit;
          ASSERT_EQ(blocked, registry.NotifyWhenNoneBelow(limit));
          if (blocked) {
            asked = asked == 0 ? limit : std::min(asked, limit);
          }
          break;
        }
      }
      ASSERT_EQ(expected_calls, calls);
      ASSERT_EQ(model_min(), registry.Min());
      ASSERT_EQ(model_min() != kMaxSequenceNumber, registry.HasAny());
      std::set<SequenceNumber> expected(model.begin(), model.end());
      expected.erase(kMaxSequenceNumber);
      std::set<SequenceNumber> snapshots;
      while (!rnd.OneIn(3)) {
        snapshots.insert(rnd.OneIn(3) ? model_min() - 1
                                      : last - rnd.Uniform(80));
      }
      expected.insert(snapshots.begin(), snapshots.end());
      ASSERT_EQ(
          Sequences(expected.begin(), expected.end()),
          Merged(registry, Sequences(snapshots.begin(), snapshots.end())));
    }
    ASSERT_GT(calls, 0);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
