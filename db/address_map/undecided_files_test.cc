//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/undecided_files.h"

#include "db/dbformat.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class UndecidedFilesTest : public testing::Test {
 protected:
  UndecidedFiles files_;
};

TEST_F(UndecidedFilesTest, FirstIsThatOfAllFiles) {
  EXPECT_TRUE(files_.empty());
  EXPECT_EQ(files_.First(), kMaxSequenceNumber);
  files_.Add(7, 30);
  files_.Add(8, 20);
  EXPECT_FALSE(files_.empty());
  EXPECT_EQ(files_.First(), 20);
  files_.Remove(8);
  EXPECT_FALSE(files_.Has(8));
  EXPECT_EQ(files_.First(), 30);
  files_.Remove(9);
  EXPECT_TRUE(files_.Has(7));
}

TEST_F(UndecidedFilesTest, DecidedFilesAreRemoved) {
  files_.Add(7, 30);
  files_.Add(8, 20);
  EXPECT_FALSE(files_.RemoveDecided([](SequenceNumber) { return false; }));
  EXPECT_TRUE(files_.Has(7));
  EXPECT_TRUE(files_.Has(8));
  EXPECT_TRUE(
      files_.RemoveDecided([](SequenceNumber seq) { return seq == 30; }));
  EXPECT_FALSE(files_.Has(7));
  EXPECT_TRUE(files_.Has(8));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
