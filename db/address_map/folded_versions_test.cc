//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/folded_versions.h"

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class FoldedVersionsTest : public testing::Test {
 protected:
  FoldedVersions folded_;
};

TEST_F(FoldedVersionsTest, EveryVersionMayBeBeforeAFoldThatRuns) {
  ASSERT_FALSE(folded_.IsBefore(0));
  folded_.Begin();
  folded_.Begin();
  ASSERT_TRUE(folded_.IsBefore(1000));
  folded_.End(/*first_version=*/7);
  ASSERT_TRUE(folded_.IsBefore(1000));
  folded_.End(/*first_version=*/5);
  ASSERT_TRUE(folded_.IsBefore(6));
  ASSERT_FALSE(folded_.IsBefore(7));
}

TEST_F(FoldedVersionsTest, FoldThatFailedLeavesTheVersionsAsTheyWere) {
  folded_.Begin();
  folded_.End(/*first_version=*/7);
  folded_.Begin();
  ASSERT_TRUE(folded_.IsBefore(7));
  folded_.End(/*first_version=*/0);
  ASSERT_TRUE(folded_.IsBefore(6));
  ASSERT_FALSE(folded_.IsBefore(7));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
