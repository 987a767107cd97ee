//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_stress_test_util.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "rocksdb/iterator.h"
#include "rocksdb/statistics.h"
#include "test_util/strata/overlap_dice_test_util.h"
#include "test_util/strata/overlap_jobs_test_util.h"
#include "test_util/strata/overlap_pauses_test_util.h"
#include "test_util/strata/overlap_point_reads_test_util.h"
#include "test_util/strata/overlap_state_test_util.h"
#include "test_util/strata/overlap_views_test_util.h"
#include "test_util/strata/overlap_walk_test_util.h"
#include "test_util/strata/overlap_writer_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A run: rounds of some seconds, in which all threads work, and between which
// the DB has no jobs, and is opened again.
//
// Not thread-safe.
class OverlapStress {
 public:
  explicit OverlapStress(const OverlapStressOptions& options)
      : options_(options), state_(options), pauses_(options.seed) {}
  OverlapStress(const OverlapStress&) = delete;
  OverlapStress& operator=(const OverlapStress&) = delete;

  // REQUIRES: this is called once
  OverlapStressResult Run();

 private:
  bool Open();
  void RunRound(uint64_t round);
  // Starts all threads, with seeds that follow *seed.
  std::vector<std::thread> StartThreads(uint64_t* seed);
  // Changes what threads do until the round is over.
  void DirectRound(OverlapDice* dice);
  void ReaderThread(uint64_t seed);
  // Creates and checks views of all keys.
  void ViewThread(uint64_t seed);
  // Checks all keys, by all kinds of reads.
  // REQUIRES: no thread writes.
  void CheckAll(const std::string& when);
  OverlapStressResult MakeResult();

  const OverlapStressOptions options_;
  OverlapState state_;
  OverlapPauses pauses_;
};

OverlapStressResult OverlapStress::Run() {
  state_.db().Destroy();
  if (options_.pauses) {
    pauses_.Start();
  }
  for (uint64_t round = 0; !state_.findings().IsRunOver() && Open(); ++round) {
    CheckAll("after open");
    RunRound(round);
    CheckAll("at rest");
    state_.findings().Must(state_.db().Close(), "close");
  }
  if (options_.pauses) {
    pauses_.Stop();
  }
  if (state_.findings().count() == 0) {
    state_.db().Destroy();
  }
  return MakeResult();
}

bool OverlapStress::Open() {
  const Status s = state_.db().Open();
  state_.findings().Must(s, "DB::Open()");
  return s.ok();
}

void OverlapStress::RunRound(uint64_t round) {
  state_.BeginRound();
  pauses_.Resume();
  uint64_t seed = (options_.seed * 1000003 + round) * 64;
  std::vector<std::thread> threads = StartThreads(&seed);
  OverlapDice dice(++seed);
  DirectRound(&dice);
  state_.EndRound();
  for (std::thread& thread : threads) {
    thread.join();
  }
  pauses_.Suspend();
}

std::vector<std::thread> OverlapStress::StartThreads(uint64_t* seed) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < options_.writers; ++i) {
    threads.emplace_back(
        [this, i, s = ++*seed] { OverlapWriter(&state_, i, s).Run(); });
  }
  for (uint32_t i = 0; i < options_.readers; ++i) {
    threads.emplace_back([this, s = ++*seed] { ReaderThread(s); });
  }
  threads.emplace_back([this, s = ++*seed] { ViewThread(s); });
  threads.emplace_back(
      [this, s = ++*seed] { OverlapJobs(&state_).RunCompactions(s); });
  threads.emplace_back([this, s = ++*seed] {
    OverlapJobs(&state_).RunOvertakingCompactions(s);
  });
  threads.emplace_back(
      [this, s = ++*seed] { OverlapJobs(&state_).RunFlushes(s); });
  if (options_.address_map) {
    threads.emplace_back(
        [this, s = ++*seed] { OverlapJobs(&state_).RunGarbageCollections(s); });
  }
  return threads;
}

void OverlapStress::DirectRound(OverlapDice* dice) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::milliseconds(8000 + dice->Below(12000));
  while (std::chrono::steady_clock::now() < end &&
         !state_.findings().IsRunOver()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (dice->OneIn(8)) {
      // Without old readers most values become direct; with them few do. Both
      // cases have to alternate.
      state_.SetMaxViews(dice->OneIn(2) ? dice->Below(2) : dice->Below(6));
      state_.SetHotIndex(dice->Below(options_.keys));
    }
  }
}

void OverlapStress::ReaderThread(uint64_t seed) {
  OverlapDice dice(seed);
  OverlapPointReads point_reads(&state_);
  while (!state_.IsRoundOver()) {
    point_reads.ReadSome(dice.Below(options_.writers), &dice);
    if (dice.OneIn(50)) {
      dice.Rest(2);
    }
  }
}

void OverlapStress::ViewThread(uint64_t seed) {
  OverlapDice dice(seed);
  OverlapViews views;
  while (!state_.IsRoundOver()) {
    if (views.size() < state_.max_views() && dice.OneIn(20)) {
      std::unique_lock<std::shared_mutex> no_write(state_.views_mutex());
      views.Add(
          std::make_unique<OverlapView>(&state_, &dice, 0, options_.writers));
    }
    views.Tend(&dice);
    dice.Rest(20);
  }
  views.EndAll(&dice);
}

void OverlapStress::CheckAll(const std::string& when) {
  OverlapPointReads point_reads(&state_);
  for (size_t f = 0; f < OverlapDb::kNumFamilies; ++f) {
    const std::unique_ptr<Iterator> iterator(
        state_.db()->NewIterator(ReadOptions(), state_.db().family(f)));
    for (size_t w = 0; w < options_.writers; ++w) {
      const std::vector<OverlapKeyHistory::Version> expected =
          state_.Latest(f, w);
      point_reads.ReadAll(f, w, when);
      OverlapWalk(&state_.findings(), f, w, expected)
          .RunAll("iterator " + when, iterator.get(),
                  OverlapWalk::Direction::kForward);
    }
  }
}

OverlapStressResult OverlapStress::MakeResult() {
  OverlapStressResult result;
  result.findings = state_.findings().All();
  result.first_finding_seconds = state_.findings().FirstSeconds();
  result.writes = state_.counts().writes;
  result.reads = state_.counts().reads;
  result.views = state_.counts().views;
  result.jobs = state_.counts().jobs;
  result.pauses = pauses_.count();
  const auto count = [this](Tickers ticker) {
    return state_.db().options().statistics->getTickerCount(ticker);
  };
  result.restarts = count(BLOB_MAP_READ_RESTART);
  result.renamed = count(BLOB_MAP_RENAMED);
  result.swept = count(BLOB_MAP_RANGE_DELETED);
  result.folded = count(DELTA_OPERANDS_FOLDED);
  return result;
}

}  // namespace

OverlapStressResult RunOverlapStress(const OverlapStressOptions& options) {
  return OverlapStress(options).Run();
}

}  // namespace ROCKSDB_NAMESPACE
