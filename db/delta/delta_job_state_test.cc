//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_job_state.h"

#include <cstdint>
#include <memory>
#include <optional>

#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(DeltaJobStateTest, RangesThatTouchDoNotOverlap) {
  using KeyRange = DeltaJobState::KeyRange;
  const auto overlap = [](const KeyRange& a, const KeyRange& b) {
    const Comparator* const ucmp = BytewiseComparator();
    const bool result = DeltaJobState::Overlap(a, b, ucmp);
    EXPECT_EQ(result, DeltaJobState::Overlap(b, a, ucmp));
    return result;
  };
  const KeyRange all;
  const KeyRange first{"", "c"};
  const KeyRange middle{"c", "f"};
  const KeyRange last{"f", std::nullopt};
  for (const KeyRange& range : {all, first, middle, last}) {
    EXPECT_TRUE(overlap(all, range));
    EXPECT_TRUE(overlap(range, range));
  }
  EXPECT_FALSE(overlap(first, middle));
  EXPECT_FALSE(overlap(first, last));
  EXPECT_FALSE(overlap(middle, last));
  EXPECT_TRUE(overlap({"b", "d"}, first));
  EXPECT_TRUE(overlap({"b", "d"}, middle));
  EXPECT_FALSE(overlap({"b", "d"}, last));
  EXPECT_TRUE(overlap({"d", "e"}, middle));
}

TEST(DeltaJobStateTest, CountsRunningJobs) {
  DeltaJobState jobs;
  EXPECT_TRUE(jobs.IsIdle());
  EXPECT_TRUE(jobs.is_collection_due());
  jobs.BeginPick();
  EXPECT_FALSE(jobs.IsIdle());
  EXPECT_FALSE(jobs.is_collection_due());
  DeltaJobState::Collection collection;
  collection.range = {"a", "b"};
  const auto first = jobs.BeginCollection(collection);
  collection.range = {"b", "c"};
  collection.is_folding = true;
  EXPECT_TRUE(jobs.MayFold());
  const auto second = jobs.BeginCollection(collection);
  jobs.EndPick();
  EXPECT_FALSE(jobs.MayFold());
  EXPECT_EQ(2, jobs.num_collections());
  // The end of a pick alone gives later picks nothing to find.
  EXPECT_EQ(0, jobs.num_ended());
  jobs.EndCollection(first);
  EXPECT_EQ(1, jobs.num_ended());
  ASSERT_EQ(1, jobs.Collections().size());
  EXPECT_EQ("b", jobs.Collections().front().range.begin);
  jobs.BeginMerge();
  jobs.EndCollection(second);
  EXPECT_TRUE(jobs.MayFold());
  EXPECT_FALSE(jobs.IsIdle());
  EXPECT_EQ(2, jobs.num_ended());
  jobs.EndMerge();
  EXPECT_EQ(3, jobs.num_ended());
  EXPECT_TRUE(jobs.IsIdle());
}

TEST(DeltaJobStateTest, MergesAndCollectionsBackOffIndependently) {
  constexpr uint64_t kNow = 5;
  DeltaJobState jobs;
  jobs.collection_backoff().OnFailure(kNow);
  EXPECT_TRUE(jobs.merge_backoff().MayRun(kNow));
  EXPECT_FALSE(jobs.collection_backoff().MayRun(kNow));
  // A success of the one says nothing about the other.
  jobs.merge_backoff().OnSuccess(jobs.merge_backoff().failures());
  jobs.OnSuccess();
  EXPECT_FALSE(jobs.collection_backoff().MayRun(kNow));
  jobs.merge_backoff().OnFailure(kNow);
  jobs.collection_backoff().OnSuccess(jobs.collection_backoff().failures());
  EXPECT_FALSE(jobs.merge_backoff().MayRun(kNow));
  EXPECT_TRUE(jobs.collection_backoff().MayRun(kNow));
}

TEST(DeltaJobStateTest, SkipsFoldsAfterOneWasGivenUp) {
  DeltaJobState jobs;
  jobs.OnFoldGivenUp(/*now_micros=*/0);
  for (uint32_t i = 0; i < DeltaJobState::kFoldsToSkip; ++i) {
    EXPECT_FALSE(jobs.MayFold());
    jobs.OnSuccess();
  }
  EXPECT_TRUE(jobs.MayFold());
}

// Wishes do not wait until jobs have succeeded, but for some time, which grows
// until a fold is committed.
TEST(DeltaJobStateTest, WishesWaitAfterAFoldWasGivenUp) {
  constexpr uint64_t kFirst = DeltaJobBackoff::kFirstRetryMicros;
  DeltaJobState jobs;
  EXPECT_TRUE(jobs.MayFoldWishes(0));
  jobs.OnFoldGivenUp(/*now_micros=*/5);
  for (uint32_t i = 0; i < DeltaJobState::kFoldsToSkip; ++i) {
    jobs.OnSuccess();
  }
  EXPECT_FALSE(jobs.MayFoldWishes(kFirst));
  EXPECT_TRUE(jobs.MayFoldWishes(kFirst + 5));
  jobs.OnFoldGivenUp(/*now_micros=*/5);
  EXPECT_FALSE(jobs.MayFoldWishes(kFirst + 5));
  jobs.OnFoldCommitted();
  EXPECT_TRUE(jobs.MayFoldWishes(5));
  DeltaJobState::Collection collection;
  collection.is_folding = true;
  jobs.BeginCollection(collection);
  EXPECT_FALSE(jobs.MayFoldWishes(5));
}

TEST(DeltaJobStateTest, LeftoversWaitForSnapshotsOrAfterFailures) {
  DeltaJobState jobs;
  EXPECT_FALSE(jobs.HasWaiting(100));
  // This leftover is neither for snapshots nor of a failure, so it does not
  // wait.
  jobs.AddLeftover(1, {});
  EXPECT_FALSE(jobs.HasWaiting(0));
  EXPECT_FALSE(jobs.HasReleased(100));
  DeltaJobState::Leftover leftover;
  leftover.is_for_snapshots = true;
  leftover.earliest_snapshot = 50;
  jobs.AddLeftover(2, leftover);
  EXPECT_TRUE(jobs.HasWaiting(50));
  EXPECT_FALSE(jobs.HasReleased(50));
  EXPECT_FALSE(jobs.HasWaiting(51));
  EXPECT_TRUE(jobs.HasReleased(51));
  jobs.DropLeftovers([](uint64_t file) { return file == 2; });
  EXPECT_FALSE(jobs.HasReleased(51));
  EXPECT_EQ(1, jobs.leftovers().size());
  // A failure does not keep operands of other keys from being tried again.
  leftover.has_failed = true;
  jobs.AddLeftover(3, leftover);
  EXPECT_TRUE(jobs.HasWaitingForSnapshots(50));
  EXPECT_FALSE(jobs.HasReleased(50));
  EXPECT_FALSE(jobs.HasWaiting(51));
  EXPECT_TRUE(jobs.HasReleased(51));
  // It is unknown when the others can be merged.
  leftover.is_for_snapshots = false;
  jobs.AddLeftover(3, leftover);
  EXPECT_TRUE(jobs.HasWaiting(51));
  EXPECT_FALSE(jobs.HasWaitingForSnapshots(50));
  EXPECT_FALSE(jobs.HasReleased(51));
  jobs.ClearLeftovers();
  EXPECT_FALSE(jobs.HasWaiting(0));
}

// A fold fulfils the wishes that it was given, in its range. Wishes that come
// while it runs stay.
TEST(DeltaJobStateTest, FoldFulfilsOnlyTheWishesThatWereTaken) {
  const Comparator* const ucmp = BytewiseComparator();
  const auto wish = [ucmp](const char* key) {
    DeltaFoldWishes wishes;
    wishes.Add(key, ucmp);
    return wishes;
  };
  DeltaJobState jobs;
  jobs.AddWishes(wish("a"), /*below=*/5, ucmp);
  jobs.AddWishes(wish("c"), /*below=*/6, ucmp);
  jobs.AddWishes(wish("x"), /*below=*/6, ucmp);
  jobs.OnWishesTaken();
  jobs.AddWishes(wish("b"), /*below=*/7, ucmp);
  jobs.AddWishes(wish("c"), /*below=*/7, ucmp);
  jobs.FulfilWishes({"", "d"}, ucmp);
  ASSERT_NE(nullptr, jobs.wishes());
  EXPECT_FALSE(jobs.wishes()->Contains("a", ucmp));
  EXPECT_TRUE(jobs.wishes()->Contains("b", ucmp));
  EXPECT_TRUE(jobs.wishes()->Contains("c", ucmp));
  EXPECT_TRUE(jobs.wishes()->Contains("x", ucmp));
  EXPECT_EQ(7, jobs.wishes_below());
  jobs.OnWishesTaken();
  jobs.FulfilWishes({}, ucmp);
  EXPECT_EQ(nullptr, jobs.wishes());
}

// Wishes that were replaced after a pick stay when the pick gives them up.
TEST(DeltaJobStateTest, DropsOnlyTheWishesThatWereGivenUp) {
  const Comparator* const ucmp = BytewiseComparator();
  DeltaFoldWishes wish;
  wish.Add("a", ucmp);
  DeltaJobState jobs;
  jobs.DropWishes(nullptr);
  jobs.AddWishes(wish, /*below=*/5, ucmp);
  const std::shared_ptr<const DeltaFoldWishes> given_up = jobs.wishes();
  ASSERT_NE(nullptr, given_up);
  jobs.DropWishes(nullptr);
  EXPECT_EQ(given_up, jobs.wishes());
  jobs.AddWishes(wish, /*below=*/6, ucmp);
  ASSERT_NE(given_up, jobs.wishes());
  jobs.DropWishes(given_up);
  ASSERT_NE(nullptr, jobs.wishes());
  EXPECT_TRUE(jobs.wishes()->Contains("a", ucmp));
  jobs.DropWishes(jobs.wishes());
  EXPECT_EQ(nullptr, jobs.wishes());
}

TEST(DeltaJobStateTest, CountsCalls) {
  DeltaJobState jobs;
  EXPECT_FALSE(jobs.HasCalls());
  jobs.BeginCall();
  jobs.BeginCall();
  jobs.EndCall();
  EXPECT_TRUE(jobs.HasCalls());
  jobs.EndCall();
  EXPECT_FALSE(jobs.HasCalls());
}

TEST(DeltaJobStateTest, WishesWaitUntilTheNextPick) {
  DeltaJobState jobs;
  EXPECT_FALSE(jobs.wishes_wait());
  jobs.BeginPick();
  jobs.SetWishesWait();
  jobs.EndPick();
  EXPECT_TRUE(jobs.wishes_wait());
  EXPECT_FALSE(jobs.is_collection_due());
  jobs.BeginPick();
  EXPECT_FALSE(jobs.wishes_wait());
}

TEST(DeltaJobStateTest, FoldBytesFollowTheLastFold) {
  DeltaJobState jobs;
  const uint64_t first = jobs.fold_bytes();
  jobs.OnFolded(/*keys=*/1, 25, /*max_bytes=*/100, /*full=*/false);
  EXPECT_EQ(first, jobs.fold_bytes());
  jobs.OnFolded(/*keys=*/1, 100, /*max_bytes=*/100, /*full=*/true);
  EXPECT_EQ(first / 2, jobs.fold_bytes());
  for (int i = 0; i < 20; ++i) {
    jobs.OnFolded(/*keys=*/1, 100, /*max_bytes=*/100, /*full=*/true);
  }
  EXPECT_EQ(DeltaJobState::kMinFoldBytes, jobs.fold_bytes());
  for (int i = 0; i < 20; ++i) {
    jobs.OnFolded(/*keys=*/1, 24, /*max_bytes=*/100, /*full=*/false);
  }
  EXPECT_EQ(DeltaJobState::kMaxFoldBytes, jobs.fold_bytes());
}

TEST(DeltaJobStateTest, MinFoldBytesIsAFractionOfTheLastValues) {
  DeltaJobState jobs;
  EXPECT_EQ(0, jobs.min_fold_bytes());
  jobs.OnFolded(/*keys=*/10, 32000, /*max_bytes=*/100000, /*full=*/false);
  EXPECT_EQ(100, jobs.min_fold_bytes());
  jobs.OnFolded(/*keys=*/10, 310, /*max_bytes=*/100000, /*full=*/false);
  EXPECT_EQ(0, jobs.min_fold_bytes());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
