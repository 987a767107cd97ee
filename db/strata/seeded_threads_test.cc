//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "test_util/strata/seeded_fork_test_util.h"
#include "test_util/strata/seeded_schedule_test_util.h"
#include "test_util/strata/seeded_threads_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Policy = SeededSchedule::Policy;

SeededThreads::Options OptionsOf(uint64_t seed, Policy policy) {
  SeededThreads::Options options;
  options.schedule.seed = seed;
  options.schedule.policy = policy;
  return options;
}

// Runs fn as thread 0. *hash: of the trace.
void RunSeeded(const SeededThreads::Options& options,
               const std::function<void()>& fn, uint64_t* hash = nullptr) {
  SeededThreads threads(options);
  fn();
  if (hash != nullptr) {
    *hash = threads.trace().hash();
  }
}

uint64_t HashOf(const SeededThreads::Options& options,
                const std::function<void()>& fn) {
  uint64_t hash = 0;
  RunSeeded(options, fn, &hash);
  return hash;
}

// Two threads that increment a counter without being atomic. Returns the
// counter.
int LoseUpdates() {
  std::mutex mutex;
  int counter = 0;
  const auto increment = [&] {
    int read = 0;
    {
      std::lock_guard<std::mutex> lock(mutex);
      read = counter;
    }
    std::lock_guard<std::mutex> lock(mutex);
    counter = read + 1;
  };
  std::thread a(increment);
  std::thread b(increment);
  a.join();
  b.join();
  return counter;
}

// Two threads that lock two mutexes in different orders.
void LockInBothOrders() {
  std::mutex first;
  std::mutex second;
  std::thread a([&] {
    std::lock_guard<std::mutex> lock(first);
    std::lock_guard<std::mutex> inner(second);
  });
  std::thread b([&] {
    std::lock_guard<std::mutex> lock(second);
    std::lock_guard<std::mutex> inner(first);
  });
  a.join();
  b.join();
}

}  // namespace

class SeededThreadsTest : public testing::TestWithParam<Policy> {};

INSTANTIATE_TEST_CASE_P(Policies, SeededThreadsTest,
                        testing::Values(Policy::kUniform, Policy::kPriorities));

TEST_P(SeededThreadsTest, SeedDeterminesTheTrace) {
  std::set<uint64_t> hashes;
  constexpr uint64_t kSeeds = 30;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SeededThreads::Options options = OptionsOf(seed, GetParam());
    options.schedule.expected_steps = 20;
    const auto fn = [] { LoseUpdates(); };
    const uint64_t hash = HashOf(options, fn);
    ASSERT_EQ(hash, HashOf(options, fn)) << seed;
    hashes.insert(hash);
  }
  // Some seeds may have the same interleaving.
  ASSERT_GT(hashes.size(), kSeeds / 4);
}

TEST_P(SeededThreadsTest, LostUpdateIsFound) {
  std::set<int> counters;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SeededThreads::Options options = OptionsOf(seed, GetParam());
    options.schedule.expected_steps = 20;
    RunSeeded(options, [&] { counters.insert(LoseUpdates()); });
  }
  ASSERT_EQ(counters, (std::set<int>{1, 2}));
}

TEST_P(SeededThreadsTest, DeadlockIsFoundAndReported) {
  size_t deadlocks = 0;
  size_t others = 0;
  std::string report;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const ForkedRun run = RunForked([&] {
      SeededThreads::Options options = OptionsOf(seed, GetParam());
      options.schedule.expected_steps = 20;
      RunSeeded(options, LockInBothOrders);
      return std::string("done");
    });
    if (run.is_complete) {
      ASSERT_EQ(run.result, "done");
      ++others;
    } else {
      ASSERT_EQ(run.signal, SIGABRT) << run.output;
      report = run.output;
      ++deadlocks;
    }
  }
  ASSERT_GT(deadlocks, 0);
  ASSERT_GT(others, 0);
  for (const char* part :
       {"deadlock: no thread can run", "seed ", "T0 joins T1 since",
        "T1 waits for the lock", "T2 waits for the lock", "T1 holds the lock",
        "T2 holds the lock"}) {
    ASSERT_NE(report.find(part), std::string::npos) << part << "\n" << report;
  }
}

// A wait with a deadline ends at this time by the clock, without taking any.
TEST_P(SeededThreadsTest, TimedWaitsEndInTheOrderOfTheirDeadlines) {
  RunSeeded(OptionsOf(1, GetParam()), [] {
    const auto begin = std::chrono::steady_clock::now();
    std::mutex mutex;
    std::condition_variable never;
    std::vector<int> order;
    std::vector<std::thread> threads;
    for (const int hours : {3, 1, 2}) {
      threads.emplace_back([&, hours] {
        std::unique_lock<std::mutex> lock(mutex);
        const auto until = begin + std::chrono::hours(hours);
        ASSERT_EQ(never.wait_until(lock, until), std::cv_status::timeout);
        ASSERT_GE(std::chrono::steady_clock::now(), until);
        order.push_back(hours);
      });
    }
    std::this_thread::sleep_until(begin + std::chrono::hours(4));
    ASSERT_EQ(order, (std::vector<int>{1, 2, 3}));
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
}

TEST_P(SeededThreadsTest, SignalsComeBeforeDeadlines) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RunSeeded(OptionsOf(seed, GetParam()), [] {
      std::mutex mutex;
      std::condition_variable changed;
      bool is_set = false;
      std::thread setter([&] {
        std::lock_guard<std::mutex> lock(mutex);
        is_set = true;
        changed.notify_one();
      });
      {
        std::unique_lock<std::mutex> lock(mutex);
        ASSERT_TRUE(changed.wait_for(lock, std::chrono::hours(1),
                                     [&] { return is_set; }));
      }
      setter.join();
    });
  }
}

// A clock that jumps while threads can run lets a wait end although a signal is
// on its way.
TEST_P(SeededThreadsTest, ClockJumpsExpireWaitsEarly) {
  std::set<bool> results;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SeededThreads::Options options = OptionsOf(seed, GetParam());
    options.jump_one_in = 3;
    RunSeeded(options, [&] {
      std::mutex mutex;
      std::condition_variable changed;
      bool is_set = false;
      std::thread setter([&] {
        std::lock_guard<std::mutex> lock(mutex);
        is_set = true;
        changed.notify_one();
      });
      {
        std::unique_lock<std::mutex> lock(mutex);
        results.insert(changed.wait_for(lock, std::chrono::seconds(1),
                                        [&] { return is_set; }));
      }
      setter.join();
    });
  }
  ASSERT_EQ(results, (std::set<bool>{false, true}));
}

// A thread that waits for an atomic variable lets other threads run.
TEST_P(SeededThreadsTest, SpinningThreadsEnd) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RunSeeded(OptionsOf(seed, GetParam()), [] {
      std::atomic<bool> is_set{false};
      std::thread spinner([&] {
        while (!is_set.load()) {
          std::this_thread::yield();
        }
      });
      std::thread setter([&] { is_set.store(true); });
      spinner.join();
      setter.join();
    });
  }
}

TEST_P(SeededThreadsTest, AtomicsWaitForNotification) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RunSeeded(OptionsOf(seed, GetParam()), [] {
      std::atomic<int> value{0};
      std::thread waiter([&] {
        value.wait(0);
        ASSERT_EQ(value.load(), 1);
      });
      std::thread setter([&] {
        value.store(1);
        value.notify_all();
      });
      waiter.join();
      setter.join();
    });
  }
}

namespace {

// The initialisation of the variable takes steps, in which other threads reach
// the variable, too.
int SlowStatic() {
  static const int value = [] {
    std::this_thread::yield();
    return 1;
  }();
  return value;
}

struct SlowEnd {
  ~SlowEnd() {
    std::lock_guard<std::mutex> lock(*mutex);
    *has_ended = true;
  }
  std::mutex* mutex = nullptr;
  bool* has_ended = nullptr;
};

}  // namespace

TEST_P(SeededThreadsTest, InitialisationsAreWaitedFor) {
  const ForkedRun run = RunForked([this] {
    RunSeeded(OptionsOf(1, GetParam()), [] {
      std::once_flag once;
      int calls = 0;
      std::vector<std::thread> threads;
      for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
          std::call_once(once, [&] {
            std::this_thread::yield();
            calls += SlowStatic();
          });
          SlowStatic();
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      if (calls != 1) {
        std::abort();
      }
    });
    return std::string();
  });
  ASSERT_TRUE(run.is_complete) << run.output;
}

// Destructors of thread-local objects are part of the thread.
TEST_P(SeededThreadsTest, JoinWaitsForThreadLocalDestructors) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RunSeeded(OptionsOf(seed, GetParam()), [] {
      std::mutex mutex;
      bool has_ended = false;
      std::thread thread([&] {
        static thread_local SlowEnd slow_end;
        slow_end.mutex = &mutex;
        slow_end.has_ended = &has_ended;
      });
      thread.join();
      ASSERT_TRUE(has_ended);
    });
  }
}

// Readers share a lock, in some interleavings at the same time; a writer has it
// alone.
TEST_P(SeededThreadsTest, ReadersShareALock) {
  size_t max_readers = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RunSeeded(OptionsOf(seed, GetParam()), [&] {
      std::shared_mutex mutex;
      size_t readers = 0;
      bool is_written = false;
      const auto read = [&] {
        std::shared_lock<std::shared_mutex> lock(mutex);
        ASSERT_FALSE(is_written);
        max_readers = std::max(max_readers, ++readers);
        std::this_thread::yield();
        --readers;
      };
      std::thread a(read);
      std::thread b(read);
      std::thread writer([&] {
        std::lock_guard<std::shared_mutex> lock(mutex);
        ASSERT_EQ(readers, 0);
        is_written = true;
        std::this_thread::yield();
        ASSERT_EQ(readers, 0);
        is_written = false;
      });
      a.join();
      b.join();
      writer.join();
    });
  }
  ASSERT_EQ(max_readers, 2);
}

TEST_P(SeededThreadsTest, RecursiveLocksAreHeldUntilTheLastRelease) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RunSeeded(OptionsOf(seed, GetParam()), [] {
      std::recursive_mutex mutex;
      int holders = 0;
      const auto hold = [&] {
        std::lock_guard<std::recursive_mutex> lock(mutex);
        ++holders;
        {
          std::lock_guard<std::recursive_mutex> inner(mutex);
          std::this_thread::yield();
        }
        std::this_thread::yield();
        ASSERT_EQ(holders, 1);
        --holders;
      };
      std::thread a(hold);
      std::thread b(hold);
      a.join();
      b.join();
    });
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
