//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/range_deletion_queue.h"

#include <string>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Deletions = std::vector<CommittedRangeDeletion>;

Deletions One(const char* start, const char* end, SequenceNumber seq) {
  return Deletions{CommittedRangeDeletion{start, end, seq, seq}};
}

}  // namespace

TEST(RangeDeletionQueueTest, DeletionsWaitForOlderReaders) {
  RangeDeletionQueue queue(BytewiseComparator());
  ASSERT_EQ(kMaxSequenceNumber, queue.BlockedUntil(0));
  ASSERT_TRUE(queue.Take(100).empty());
  ASSERT_EQ(0u, queue.Add(One("a", "c", 10)));
  ASSERT_EQ(0u, queue.Add(One("x", "z", 7)));
  ASSERT_EQ(0u, queue.Add(One("d", "f", 20)));
  ASSERT_EQ(3u, queue.Count());
  ASSERT_EQ(7u, queue.BlockedUntil(0));
  ASSERT_TRUE(queue.Take(6).empty());
  ASSERT_EQ(3u, queue.Count());
  ASSERT_EQ((Deletions{{"a", "c", 10, 10}, {"x", "z", 7, 7}}), queue.Take(10));
  ASSERT_EQ(1u, queue.Count());
  ASSERT_EQ(20u, queue.BlockedUntil(0));
  ASSERT_EQ(One("d", "f", 20), queue.Take(kMaxSequenceNumber));
  ASSERT_EQ(0u, queue.Count());
  ASSERT_EQ(kMaxSequenceNumber, queue.BlockedUntil(0));
}

// The ranges that Take() returns are disjoint, and each has the newest and the
// oldest deletion of its keys.
TEST(RangeDeletionQueueTest, TakenRangesAreDisjoint) {
  RangeDeletionQueue queue(BytewiseComparator());
  queue.Add({{"c", "g", 10, 10},
             {"a", "e", 5, 5},
             {"k", "m", 8, 8},
             {"k", "m", 3, 3},
             {"y", "y", 9, 9},
             {"z", "x", 9, 9}});
  queue.Add({{"f", "h", 12, 12}});
  ASSERT_EQ((Deletions{{"a", "c", 5, 5},
                       {"c", "e", 10, 5},
                       {"e", "f", 10, 10},
                       {"f", "g", 12, 10},
                       {"g", "h", 12, 12},
                       {"k", "m", 8, 3}}),
            queue.Take(20));
  // Adjacent ranges with the same newest and oldest deletion are joined.
  queue.Add({{"b", "c", 5, 5}, {"a", "b", 5, 5}, {"c", "d", 6, 6}});
  ASSERT_EQ((Deletions{{"a", "c", 5, 5}, {"c", "d", 6, 6}}), queue.Take(20));
  queue.Add({{"b", "c", 5, 5}, {"a", "b", 5, 4}});
  ASSERT_EQ((Deletions{{"a", "b", 5, 4}, {"b", "c", 5, 5}}), queue.Take(20));
  // An older deletion that may be taken does not wait for a newer one.
  queue.Add({{"a", "z", 30, 30}, {"a", "z", 20, 20}});
  ASSERT_EQ(One("a", "z", 20), queue.Take(25));
  ASSERT_EQ(One("a", "z", 30), queue.Take(30));
  // One range lies inside another one, and it was put back.
  queue.Add({{"a", "z", 30, 30}});
  queue.PutBack({{"c", "e", 20, 11}}, 0);
  ASSERT_EQ(
      (Deletions{{"a", "c", 30, 30}, {"c", "e", 30, 11}, {"e", "z", 30, 30}}),
      queue.Take(30));
  queue.Add({{"a", "z", 30, 30}, {"c", "e", 40, 40}});
  ASSERT_EQ(
      (Deletions{{"a", "c", 30, 30}, {"c", "e", 40, 30}, {"e", "z", 30, 30}}),
      queue.Take(40));
}

// What a sweep has left is not joined with what was deleted since, and is the
// first.
TEST(RangeDeletionQueueTest, OldestDeletionsAreTaken) {
  RangeDeletionQueue queue(BytewiseComparator());
  queue.Add({{"a", "z", 30, 30}, {"a", "z", 20, 20}, {"h", "i", 7, 7}});
  queue.PutBack({{"k", "n", 10, 7}}, 0);
  Deletions deletions = queue.Take(30);
  ASSERT_EQ((Deletions{{"a", "h", 30, 20},
                       {"h", "i", 30, 7},
                       {"i", "k", 30, 20},
                       {"k", "n", 30, 7},
                       {"n", "z", 30, 20}}),
            deletions);
  ASSERT_EQ((Deletions{{"h", "i", 30, 7}, {"k", "n", 30, 7}}),
            RangeDeletionQueue::TakeOldest(&deletions));
  ASSERT_EQ(
      (Deletions{{"a", "h", 30, 20}, {"i", "k", 30, 20}, {"n", "z", 30, 20}}),
      deletions);
  ASSERT_EQ(3u, RangeDeletionQueue::TakeOldest(&deletions).size());
  ASSERT_TRUE(deletions.empty());
  ASSERT_TRUE(RangeDeletionQueue::TakeOldest(&deletions).empty());
}

// A range has the limit of births of the deletion whose sequence number it has.
// An older deletion does not hide what was born between them.
TEST(RangeDeletionQueueTest, RangesHaveTheLimitsOfTheirNewestDeletions) {
  RangeDeletionQueue queue(BytewiseComparator());
  queue.Add({{"a", "e", 5, 5, 30}, {"c", "g", 10, 10, 40}});
  ASSERT_EQ(
      (Deletions{
          {"a", "c", 5, 5, 30}, {"c", "e", 10, 5, 40}, {"e", "g", 10, 10, 40}}),
      queue.Take(20));
  // The order in which they were added does not matter.
  queue.Add({{"c", "g", 10, 10, 40}, {"a", "e", 5, 5, 30}});
  ASSERT_EQ(
      (Deletions{
          {"a", "c", 5, 5, 30}, {"c", "e", 10, 5, 40}, {"e", "g", 10, 10, 40}}),
      queue.Take(20));
  // Adjacent ranges are joined only if their limits are equal.
  queue.Add({{"a", "b", 5, 5, 30}, {"b", "c", 5, 5, 30}, {"c", "d", 5, 5, 31}});
  ASSERT_EQ((Deletions{{"a", "c", 5, 5, 30}, {"c", "d", 5, 5, 31}}),
            queue.Take(20));
  // If two deletions have the same sequence number, the lower limit is kept,
  // as it never removes a newer value.
  queue.Add({{"a", "d", 5, 5, 31}, {"b", "c", 5, 5, 30}});
  ASSERT_EQ(
      (Deletions{
          {"a", "b", 5, 5, 31}, {"b", "c", 5, 5, 30}, {"c", "d", 5, 5, 31}}),
      queue.Take(20));
  // A range that is put back keeps its limit.
  queue.PutBack({{"a", "d", 5, 5, 31}}, 0);
  ASSERT_EQ((Deletions{{"a", "d", 5, 5, 31}}), queue.Take(20));
}

TEST(RangeDeletionQueueTest, RangesHaveTheOrderOfTheComparator) {
  RangeDeletionQueue queue(ReverseBytewiseComparator());
  queue.Add({{"m", "k", 5, 5}, {"z", "x", 6, 6}});
  ASSERT_EQ((Deletions{{"z", "x", 6, 6}, {"m", "k", 5, 5}}), queue.Take(20));
}

TEST(RangeDeletionQueueTest, RangesPutBackWaitUntilTheGivenTime) {
  RangeDeletionQueue queue(BytewiseComparator());
  queue.PutBack(One("a", "c", 10), /*not_before=*/1000);
  queue.Add(One("d", "e", 5));
  ASSERT_EQ(2u, queue.Count());
  ASSERT_EQ(kMaxSequenceNumber, queue.BlockedUntil(999));
  ASSERT_EQ(5u, queue.BlockedUntil(1000));
  queue.PutBack(One("f", "g", 3), /*not_before=*/0);
  ASSERT_EQ(3u, queue.BlockedUntil(0));
  ASSERT_EQ((Deletions{{"a", "c", 10, 10}, {"d", "e", 5, 5}, {"f", "g", 3, 3}}),
            queue.Take(10));
}

TEST(RangeDeletionQueueTest, BytesAreLimitedExceptForRangesPutBack) {
  const std::string key(100, 'k');
  const size_t size = sizeof(CommittedRangeDeletion) + 2 * key.size() + 2;
  RangeDeletionQueue queue(BytewiseComparator(), /*max_bytes=*/3 * size);
  Deletions deletions;
  for (char c = 'a'; c < 'f'; ++c) {
    deletions.push_back(
        CommittedRangeDeletion{key + c, key + char(c + 1), 4, 4});
  }
  ASSERT_EQ(2u, queue.Add(std::move(deletions)));
  ASSERT_EQ(1u, queue.Add(One("x", "y", 4)));
  ASSERT_EQ(3u, queue.Count());
  // A range that is put back always has room.
  queue.PutBack(One((key + "x").c_str(), (key + "y").c_str(), 4), 0);
  ASSERT_EQ(4u, queue.Count());
  ASSERT_EQ(1u, queue.Add(One("x", "y", 4)));
  // After Take() there is room again.
  ASSERT_EQ(
      (Deletions{{key + "a", key + "d", 4, 4}, {key + "x", key + "y", 4, 4}}),
      queue.Take(4));
  ASSERT_EQ(0u, queue.Add(One("x", "y", 4)));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
