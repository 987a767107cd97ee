//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_gc_state.h"

#include <cstdarg>
#include <set>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/mock_time_env.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Counts messages about slowdowns.
class SlowdownLogger : public Logger {
 public:
  SlowdownLogger() : Logger(InfoLogLevel::INFO_LEVEL) {}
  using Logger::Logv;
  void Logv(const char* format, va_list /*args*/) override {
    const std::string text(format);
    begins += text.find("Slowing down writes") != std::string::npos ? 1 : 0;
    ends += text.find("slows down writes no more") != std::string::npos ? 1 : 0;
  }

  int begins = 0;
  int ends = 0;
};

}  // namespace

class BlobGcStateTest : public testing::Test {
 protected:
  BlobGcStateTest() { clock_.SetCurrentTime(1600000000); }

  // Returns the file as the picker gets it. Half of it is garbage.
  BlobGcPicker::File Marked(uint64_t number, bool also_failed = false) const {
    std::vector<BlobGcPicker::File> files(1);
    files[0].number = number;
    files[0].size = 1000;
    files[0].live_size = 500;
    state_.MarkBusy(&files, also_failed);
    return files[0];
  }
  bool IsBusy(uint64_t number, bool also_failed = false) const {
    return Marked(number, also_failed).is_busy;
  }
  void Wait(uint64_t minutes) {
    clock_.SetCurrentTime(clock_.NowSeconds() + minutes * 60);
  }

  // Returns the debt of files of this size in total, half of which is garbage.
  uint64_t DebtOf(uint64_t size, double limit, uint64_t hard_limit = 0) {
    std::vector<BlobGcPicker::File> files(1);
    files[0].size = size;
    files[0].live_size = size / 2;
    return state_.AddDebt(/*compaction_needed_bytes=*/10, files, limit,
                          /*soft_limit=*/1000, hard_limit);
  }

  MockSystemClock clock_{SystemClock::Default()};
  SlowdownLogger log_;
  BlobGcState state_{&clock_, &log_};
};

// The debt is computed at each flush and compaction.
TEST_F(BlobGcStateTest, LogTellsWhenSlowdownsBeginAndEnd) {
  for (int round = 1; round <= 2; ++round) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_LT(1000u, DebtOf(1000000, /*limit=*/1.5));
      ASSERT_EQ(round, log_.begins);
      ASSERT_EQ(round - 1, log_.ends);
      ASSERT_TRUE(state_.slows_down());
    }
    for (int i = 0; i < 3; ++i) {
      if (round == 1) {
        ASSERT_EQ(10u, DebtOf(1000000, /*limit=*/2.0));
      } else {
        state_.EndSlowdown();
      }
      ASSERT_EQ(round, log_.begins);
      ASSERT_EQ(round, log_.ends);
    }
  }
}

TEST_F(BlobGcStateTest, BytesOfFlushesAreCountedOnce) {
  std::vector<BlobGcPicker::File> files;
  const auto add = [&files](uint64_t number, uint64_t size) {
    files.emplace_back().number = number;
    files.back().size = size;
  };
  add(3, 100);
  ASSERT_EQ(0u, state_.TakeFlushed(files));
  ASSERT_EQ(0u, state_.TakeFlushed(files));
  add(5, 200);
  add(4, 50);
  add(6, 1000);
  files.back().is_survivor = true;
  ASSERT_EQ(250u, state_.TakeFlushed(files));
  ASSERT_EQ(0u, state_.TakeFlushed(files));
  files.clear();
  ASSERT_EQ(0u, state_.TakeFlushed(files));
  add(7, 10);
  ASSERT_EQ(10u, state_.TakeFlushed(files));
}

TEST_F(BlobGcStateTest, KeysAreKnownUntilTheFileIsGone) {
  std::vector<BlobGcPicker::File> files(3);
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].number = i + 1;
  }
  state_.SetKeyRange(1, {"a", "b"});
  state_.SetKeyRange(3, {"c", "d"});
  state_.AddKeyRanges(&files);
  ASSERT_NE(files[0].keys, nullptr);
  EXPECT_EQ(files[0].keys->smallest, "a");
  EXPECT_EQ(files[0].keys->largest, "b");
  EXPECT_EQ(files[1].keys, nullptr);
  ASSERT_NE(files[2].keys, nullptr);
  EXPECT_EQ(files[2].keys->smallest, "c");
  state_.Forget(1);
  state_.Forget(2);
  state_.AddKeyRanges(&files);
  EXPECT_EQ(files[0].keys, nullptr);
  EXPECT_NE(files[2].keys, nullptr);
  EXPECT_EQ(state_.TEST_NumKeyRanges(), 1u);
}

TEST_F(BlobGcStateTest, AvoidedFilesAreKeptDamagedOrFailed) {
  state_.Begin(1);
  state_.Keep(2);
  state_.OnDamaged(3);
  state_.OnFailed({4});
  ASSERT_EQ(std::set<uint64_t>({2, 3, 4}), state_.Avoided());
  Wait(11);
  ASSERT_EQ(std::set<uint64_t>({2}), state_.Avoided());
  state_.Forget(2);
  ASSERT_TRUE(state_.Avoided().empty());
  state_.End(1);
}

TEST_F(BlobGcStateTest, FileIsBusyUntilTheLastJobEnds) {
  ASSERT_FALSE(IsBusy(7));
  state_.Begin(7);
  state_.Begin(7);
  ASSERT_TRUE(IsBusy(7));
  ASSERT_FALSE(IsBusy(8));
  state_.End(7);
  ASSERT_TRUE(IsBusy(7));
  ASSERT_TRUE(state_.HasJobs());
  state_.End(7);
  ASSERT_FALSE(IsBusy(7));
  ASSERT_FALSE(state_.HasJobs());
}

TEST_F(BlobGcStateTest, FileOfAFailedJobIsBusyForAWhile) {
  state_.OnFailed({7});
  ASSERT_TRUE(IsBusy(7));
  ASSERT_FALSE(IsBusy(7, /*also_failed=*/true));
  ASSERT_FALSE(IsBusy(8));
  ASSERT_EQ(500u, Marked(7).live_size);
  Wait(11);
  ASSERT_FALSE(IsBusy(7));
}

TEST_F(BlobGcStateTest, PauseOfADamagedFileDoubles) {
  state_.OnDamaged(7);
  ASSERT_TRUE(IsBusy(7));
  ASSERT_EQ(1000u, Marked(7).live_size);
  ASSERT_FALSE(IsBusy(7, /*also_failed=*/true));
  Wait(11);
  ASSERT_FALSE(IsBusy(7));
  state_.OnDamaged(7);
  Wait(11);
  ASSERT_TRUE(IsBusy(7));
  Wait(10);
  ASSERT_FALSE(IsBusy(7));
  ASSERT_EQ(1u, state_.NumDamaged());
  state_.Forget(7);
  ASSERT_EQ(0u, state_.NumDamaged());
}

TEST_F(BlobGcStateTest, KeptFileIsAlwaysBusy) {
  state_.Keep(7);
  Wait(100000);
  ASSERT_TRUE(IsBusy(7, /*also_failed=*/true));
  ASSERT_EQ(1000u, Marked(7).live_size);
}

TEST_F(BlobGcStateTest, LimitOfCopiesFollowsTheSpace) {
  const uint64_t most = state_.max_copies();
  state_.OnOutOfSpace(/*copied=*/100 << 20);
  ASSERT_EQ(50u << 20, state_.max_copies());
  state_.OnOutOfSpace(/*copied=*/0);
  ASSERT_EQ(1u, state_.max_copies());
  state_.OnSucceeded();
  ASSERT_EQ(2u << 20, state_.max_copies());
  for (int i = 0; i < 20; ++i) {
    state_.OnSucceeded();
  }
  ASSERT_EQ(most, state_.max_copies());
}

TEST_F(BlobGcStateTest, DebtIsTheExcessOverTheLimit) {
  constexpr uint64_t kSize = 1000000;
  ASSERT_EQ(10u, DebtOf(kSize, /*limit=*/2.0));
  // 1,000,000 - 1.01 * 1.5 * 500,000
  ASSERT_EQ(1000u + 242500, DebtOf(kSize, /*limit=*/1.5));
  ASSERT_EQ(4999u, DebtOf(kSize, /*limit=*/1.5, /*hard_limit=*/5000));
  ASSERT_EQ(10u, DebtOf(0, /*limit=*/1.5));
}

// Writes are not slow for garbage that no job may collect now.
TEST_F(BlobGcStateTest, GarbageOfPausedFilesIsNoDebt) {
  const auto debt = [&] {
    std::vector<BlobGcPicker::File> files(3);
    for (size_t i = 0; i < files.size(); ++i) {
      files[i].number = i + 1;
      files[i].size = 1000000;
      files[i].live_size = 1000000;
    }
    files[0].live_size = 400000;
    // It has no live values, and waits to be dropped.
    files[2].size = 100000;
    files[2].live_size = 0;
    files[2].is_busy = true;
    state_.MarkBusy(&files, /*also_failed=*/false);
    return state_.AddDebt(/*compaction_needed_bytes=*/10, files,
                          /*space_amp_limit=*/1.2, /*soft_limit=*/1000,
                          /*hard_limit=*/0);
  };
  // 2,100,000 - 1.01 * 1.2 * 1,400,000
  const uint64_t expected = 1000 + 403200;
  ASSERT_EQ(expected, debt());
  // A job has the file.
  state_.Begin(1);
  ASSERT_EQ(expected, debt());
  state_.OnFailed({1});
  ASSERT_EQ(expected, debt());
  state_.End(1);
  ASSERT_EQ(10u, debt());
  ASSERT_FALSE(state_.slows_down());
  Wait(11);
  ASSERT_EQ(expected, debt());
  // The garbage of other files counts.
  state_.OnFailed({2});
  ASSERT_EQ(expected, debt());
}

TEST_F(BlobGcStateTest, CopiesCountButAreNoReasonAlone) {
  constexpr uint64_t kSize = 1000000;
  state_.BeginCopies(100000);
  ASSERT_EQ(1000u + 20000, DebtOf(kSize, /*limit=*/2.0));
  ASSERT_EQ(10u, DebtOf(kSize, /*limit=*/2.1));
  state_.EndCopies(100000);
  ASSERT_EQ(10u, DebtOf(kSize, /*limit=*/2.0));
  state_.AddMergeSpace(300000);
  ASSERT_EQ(10u, DebtOf(kSize, /*limit=*/1.5));
  state_.SubMergeSpace(300000);
  ASSERT_LT(1000u, DebtOf(kSize, /*limit=*/1.5));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
