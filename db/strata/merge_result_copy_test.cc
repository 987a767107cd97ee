//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/merge_result_copy.h"

#include <string>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// The base value is in the middle of a buffer, as in a block: other values lie
// before and after it, without a gap.
class MergeResultCopyTest : public testing::Test {
 protected:
  MergeResultCopyTest() : buffer_("beforebaseafter"), base_(Part(6, 4)) {}

  Slice Part(size_t offset, size_t size) const {
    return Slice(buffer_.data() + offset, size);
  }

  void ExpectCopied(Slice chosen) {
    const std::string expected = chosen.ToString();
    std::string copy = "old";
    CopyChosenBaseValue(base_, &chosen, &copy);
    EXPECT_EQ(nullptr, chosen.data());
    EXPECT_EQ(0u, chosen.size());
    EXPECT_EQ(expected, copy);
  }

  void ExpectKept(const Slice& chosen) {
    Slice after = chosen;
    std::string copy = "old";
    CopyChosenBaseValue(base_, &after, &copy);
    EXPECT_EQ(chosen.data(), after.data());
    EXPECT_EQ(chosen.size(), after.size());
    EXPECT_EQ("old", copy);
  }

  const std::string buffer_;
  Slice base_;
};

TEST_F(MergeResultCopyTest, BaseIsCopied) { ExpectCopied(base_); }

// Operators may choose a part of a value.
TEST_F(MergeResultCopyTest, PartOfTheBaseIsCopied) {
  ExpectCopied(Part(6, 2));  // at the beginning
  ExpectCopied(Part(7, 2));
  ExpectCopied(Part(8, 2));  // at the end
}

TEST_F(MergeResultCopyTest, OtherOperandIsKept) {
  const std::string elsewhere = "base";
  ExpectKept(elsewhere);
  ExpectKept(Part(0, 6));   // ends where the base begins
  ExpectKept(Part(10, 5));  // begins where the base ends
}

// The operator has chosen nothing: it has made a new value.
TEST_F(MergeResultCopyTest, NullIsKept) { ExpectKept(Slice(nullptr, 0)); }

// An empty slice at the end of the base may be a part of it or of the operand
// behind it. It is empty either way, so it is copied.
TEST_F(MergeResultCopyTest, EmptySliceAtTheBoundaryIsCopied) {
  ExpectCopied(Part(6, 0));
  ExpectCopied(Part(8, 0));
  ExpectCopied(Part(10, 0));
  ExpectKept(Part(5, 0));
  ExpectKept(Part(11, 0));
}

TEST_F(MergeResultCopyTest, EmptyBaseIsCopied) {
  base_ = Part(6, 0);
  ExpectCopied(base_);
  ExpectKept(Part(6, 4));  // an operand that begins at the same place
  ExpectKept(Part(0, 6));
  base_ = Slice(nullptr, 0);
  ExpectKept(Part(6, 4));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
