//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/merged_value_generation.h"

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(MergedValueGenerationTest, VersionWithoutAChangeGoesOn) {
  MergedValueGeneration first;
  EXPECT_EQ(0, first.number());
  EXPECT_EQ(0, first.as_of());
  first.OnChange(/*largest_seq=*/7);
  MergedValueGeneration next;
  next.Follow(first);
  EXPECT_EQ(1, next.number());
  EXPECT_EQ(7, next.as_of());
}

// A Version may have the edits of several threads.
TEST(MergedValueGenerationTest, EachChangeOfAVersionCounts) {
  MergedValueGeneration first;
  first.OnChange(/*largest_seq=*/7);
  MergedValueGeneration next;
  next.OnChange(/*largest_seq=*/9);
  next.OnChange(/*largest_seq=*/8);
  next.Follow(first);
  EXPECT_EQ(3, next.number());
  EXPECT_EQ(9, next.as_of());
}

// Entries that came in stay invisible to the same readers, whatever comes
// later.
TEST(MergedValueGenerationTest, AsOfNeverDecreases) {
  MergedValueGeneration first;
  first.OnChange(/*largest_seq=*/7);
  for (const SequenceNumber largest : {SequenceNumber{0}, SequenceNumber{5}}) {
    MergedValueGeneration next;
    next.OnChange(largest);
    next.Follow(first);
    EXPECT_EQ(2, next.number());
    EXPECT_EQ(7, next.as_of());
  }
}

// The Version of a failed edit never becomes current. The next one may have its
// number, and differs from the current Version all the same.
TEST(MergedValueGenerationTest, FailedVersionLeavesNoTrace) {
  MergedValueGeneration current;
  current.OnChange(/*largest_seq=*/1);
  MergedValueGeneration failed;
  failed.OnChange(/*largest_seq=*/2);
  MergedValueGeneration next;
  next.OnChange(/*largest_seq=*/3);
  next.Follow(current);
  EXPECT_EQ(2, next.number());
  EXPECT_EQ(3, next.as_of());
  MergedValueGeneration unchanged;
  unchanged.Follow(current);
  EXPECT_EQ(current.number(), unchanged.number());
  EXPECT_EQ(current.as_of(), unchanged.as_of());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
