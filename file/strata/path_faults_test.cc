//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/path_faults.h"

#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Names = std::vector<std::string>;

TEST(PathFaultsTest, AFaultLastsUntilItsOwnerRemovesIt) {
  PathFaults faults;
  const int one = 1;
  const int two = 2;
  EXPECT_FALSE(faults.HasAny());
  EXPECT_FALSE(faults.Has("/a"));
  EXPECT_FALSE(faults.Remove(&one, "/a"));

  EXPECT_TRUE(faults.Add(&one, "/a"));
  EXPECT_FALSE(faults.Add(&one, "/a"));
  EXPECT_TRUE(faults.Add(&two, "/a"));
  EXPECT_TRUE(faults.Add(&one, "/b"));
  EXPECT_TRUE(faults.HasAny());
  EXPECT_TRUE(faults.Has("/a"));
  EXPECT_FALSE(faults.Has("/a/b"));
  EXPECT_EQ(faults.Of(&one), (Names{"/a", "/b"}));
  EXPECT_EQ(faults.Of(&two), Names{"/a"});

  EXPECT_TRUE(faults.Remove(&one, "/a"));
  EXPECT_FALSE(faults.Remove(&one, "/a"));
  EXPECT_TRUE(faults.Has("/a"));
  EXPECT_TRUE(faults.Remove(&two, "/a"));
  EXPECT_FALSE(faults.Has("/a"));
  EXPECT_TRUE(faults.HasAny());
}

TEST(PathFaultsTest, CountsTheDirectoriesThatWorkAgain) {
  PathFaults faults;
  const int one = 1;
  const int two = 2;
  EXPECT_FALSE(faults.HasHad(&one));
  EXPECT_FALSE(faults.Remove(&one, "/a"));
  EXPECT_FALSE(faults.HasHad(&one));
  EXPECT_EQ(faults.NumRemoved(&one), 0);
  faults.Add(&one, "/a");
  faults.Add(&two, "/a");
  faults.Add(&two, "/b");
  EXPECT_TRUE(faults.HasHad(&one));
  EXPECT_EQ(faults.NumRemoved(&one), 0);
  faults.Remove(&two, "/a");
  faults.Remove(&two, "/b");
  faults.Remove(&two, "/b");
  EXPECT_EQ(faults.NumRemoved(&one), 0);
  EXPECT_EQ(faults.NumRemoved(&two), 2);
  faults.Add(&two, "/a");
  EXPECT_EQ(faults.NumRemoved(&two), 2);
  EXPECT_TRUE(faults.HasHad(&two));
  faults.RemoveAll(&two);
  EXPECT_EQ(faults.NumRemoved(&two), 0);
  EXPECT_FALSE(faults.HasHad(&two));
  EXPECT_TRUE(faults.HasHad(&one));
}

TEST(PathFaultsTest, AnOwnerThatIsClosedLeavesNoFaults) {
  PathFaults faults;
  const int one = 1;
  const int two = 2;
  faults.Add(&one, "/a");
  faults.Add(&one, "/b");
  faults.Add(&two, "/b");
  faults.RemoveAll(&one);
  EXPECT_FALSE(faults.Has("/a"));
  EXPECT_TRUE(faults.Has("/b"));
  EXPECT_EQ(faults.Of(&one), Names{});
  faults.RemoveAll(&two);
  EXPECT_FALSE(faults.HasAny());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
