//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/prefix_coverage.h"

#include <memory>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class PrefixCoverageTest : public testing::Test {
 public:
  const std::unique_ptr<const SliceTransform> extractor_{
      NewFixedPrefixTransform(2)};
  PrefixCoverage scope_{extractor_.get()};
};

TEST_F(PrefixCoverageTest, SeekCoversThePrefixOfItsTarget) {
  EXPECT_FALSE(scope_.Covers("aa1"));
  for (const bool forward : {true, false}) {
    scope_.OnSeek("aa1", forward);
    EXPECT_TRUE(scope_.Covers("aa0"));
    EXPECT_TRUE(scope_.Covers("aa"));
    EXPECT_FALSE(scope_.Covers("ab1"));
    EXPECT_FALSE(scope_.Covers("a"));
  }
}

TEST_F(PrefixCoverageTest, SeekWithoutAPrefixCoversNothing) {
  scope_.OnSeek("aa1", /*forward=*/true);
  scope_.OnSeek("a", /*forward=*/true);
  EXPECT_FALSE(scope_.Covers("a"));
  EXPECT_FALSE(scope_.Covers("aa1"));
}

TEST_F(PrefixCoverageTest, SeekToAnEndCoversNothing) {
  for (const bool forward : {true, false}) {
    scope_.OnSeek("aa1", forward);
    scope_.OnSeekToEnd(forward);
    EXPECT_FALSE(scope_.Covers("aa1"));
  }
}

TEST_F(PrefixCoverageTest, StepsInOneDirectionKeepTheCoverage) {
  scope_.OnSeek("aa1", /*forward=*/true);
  scope_.OnStep("aa1", /*forward=*/true);
  scope_.OnStep("ab1", /*forward=*/true);
  EXPECT_TRUE(scope_.Covers("aa1"));
  EXPECT_FALSE(scope_.Covers("ab1"));
}

TEST_F(PrefixCoverageTest, ChangeOfDirectionCoversThePrefixOfTheCurrentKey) {
  scope_.OnSeek("aa1", /*forward=*/true);
  // From here on, files without the prefix "ab" are excluded.
  scope_.OnStep("ab1", /*forward=*/false);
  EXPECT_FALSE(scope_.Covers("aa1"));
  EXPECT_TRUE(scope_.Covers("ab1"));
  scope_.OnStep("aa1", /*forward=*/false);
  EXPECT_FALSE(scope_.Covers("aa1"));
  EXPECT_TRUE(scope_.Covers("ab1"));
  scope_.OnStep("aa1", /*forward=*/true);
  EXPECT_TRUE(scope_.Covers("aa1"));
  EXPECT_FALSE(scope_.Covers("ab1"));
  scope_.OnStep("a", /*forward=*/false);
  EXPECT_FALSE(scope_.Covers("a"));
  EXPECT_FALSE(scope_.Covers("aa1"));
  scope_.OnSeekToEnd(/*forward=*/false);
  scope_.OnStep("zz1", /*forward=*/false);
  EXPECT_FALSE(scope_.Covers("zz1"));
  scope_.OnStep("zy1", /*forward=*/true);
  EXPECT_TRUE(scope_.Covers("zy1"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
