//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/atomic_group_numbering.h"

#include "db/version_edit.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class AtomicGroupNumberingTest : public testing::Test {
 protected:
  AtomicGroupNumberingTest() {
    edits_[0].MarkAtomicGroup(3);
    edits_[1].MarkAtomicGroup(2);
  }

  // Lowers the number of each edit, as the drop of a later family does.
  void Lower(AtomicGroupNumbering* numbering) {
    for (VersionEdit& edit : edits_) {
      numbering->Note(&edit);
      edit.SetRemainingEntries(edit.GetRemainingEntries() - 1);
    }
  }

  VersionEdit edits_[2];
};

TEST_F(AtomicGroupNumberingTest, NumbersAreRestoredUnlessTheyAreKept) {
  {
    AtomicGroupNumbering numbering;
    Lower(&numbering);
    ASSERT_EQ(2, edits_[0].GetRemainingEntries());
  }
  ASSERT_EQ(3, edits_[0].GetRemainingEntries());
  ASSERT_EQ(2, edits_[1].GetRemainingEntries());
  {
    AtomicGroupNumbering numbering;
    Lower(&numbering);
    numbering.Keep();
  }
  ASSERT_EQ(2, edits_[0].GetRemainingEntries());
  ASSERT_EQ(1, edits_[1].GetRemainingEntries());
}

TEST_F(AtomicGroupNumberingTest, FirstNumberOfSeveralIsRestored) {
  {
    AtomicGroupNumbering numbering;
    Lower(&numbering);
    Lower(&numbering);
    ASSERT_EQ(1, edits_[0].GetRemainingEntries());
  }
  ASSERT_EQ(3, edits_[0].GetRemainingEntries());
  ASSERT_EQ(2, edits_[1].GetRemainingEntries());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
