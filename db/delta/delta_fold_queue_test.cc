//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_fold_queue.h"

#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFoldQueueTest : public testing::Test {
 protected:
  // Adds `num` operands of `size` bytes each, including the key. The newest one
  // has the sequence number `newest`.
  void Add(const std::string& key, SequenceNumber newest, size_t num,
           size_t size = 10) {
    ASSERT_GE(size, key.size());
    for (size_t i = 0; i < num; ++i) {
      queue_.AddOperand(
          key, newest - i,
          std::string(size - key.size(), static_cast<char>('0' + i % 10)));
    }
  }
  // Returns the keys that are chosen.
  std::string Chosen() const {
    std::string text;
    for (const DeltaFoldQueue::Key& key : queue_.keys()) {
      if (key.is_chosen()) {
        text += queue_.UserKey(key).ToString();
      }
    }
    return text;
  }

  DeltaFoldQueue queue_;
};

TEST_F(DeltaFoldQueueTest, KeepsOperandsAndAnchorsOfKeys) {
  ASSERT_TRUE(queue_.empty());
  ASSERT_EQ(0u, queue_.BytesLeft());
  const size_t memory = queue_.Memory();
  for (int i = 0; i < 2; ++i) {
    // Keys and values may be empty.
    queue_.AddOperand("", 9, "of none");
    queue_.AddOperand("", 8, "");
    ASSERT_EQ("", queue_.LastKey());
    queue_.AddOperand("key", 7, "");
    queue_.AddAnchor(7);
    queue_.AddAnchor(3);
    Add("long", 100, 50, 20);
    ASSERT_EQ("long", queue_.LastKey());
    ASSERT_LT(50 * (16 + 20), queue_.Memory());
    ASSERT_EQ(7 + 3 + 50 * 20, queue_.BytesLeft());

    ASSERT_EQ(3u, queue_.keys().size());
    const auto& keys = queue_.keys();
    std::vector<DeltaFolder::Operand> operands;
    queue_.GetOperands(keys[0], &operands);
    ASSERT_EQ((std::vector<DeltaFolder::Operand>{{9, "of none"}, {8, ""}}),
              operands);
    ASSERT_EQ(7u, keys[0].bytes());
    ASSERT_FALSE(keys[0].has_anchors());
    size_t num_anchors = 1;
    queue_.Anchors(keys[0], &num_anchors);
    ASSERT_EQ(0u, num_anchors);
    ASSERT_EQ("key", queue_.UserKey(keys[1]));
    queue_.GetOperands(keys[1], &operands);
    ASSERT_EQ((std::vector<DeltaFolder::Operand>{{7, ""}}), operands);
    const SequenceNumber* const anchors = queue_.Anchors(keys[1], &num_anchors);
    ASSERT_EQ(2u, num_anchors);
    ASSERT_EQ(7u, anchors[0]);
    ASSERT_EQ(3u, anchors[1]);
    queue_.GetOperands(keys[2], &operands);
    ASSERT_EQ(50u, operands.size());
    ASSERT_EQ(std::string(16, '9'), operands[49].second);
    ASSERT_EQ(51u, operands[49].first);
    ASSERT_EQ(50u, keys[2].num_operands());

    queue_.ChooseAll();
    ASSERT_EQ("keylong", Chosen());
    ASSERT_TRUE(keys[0].is_chosen());
    ASSERT_EQ(0u, queue_.BytesLeft());
    queue_.Clear();
    ASSERT_TRUE(queue_.empty());
    ASSERT_EQ(memory, queue_.Memory());
  }
}

TEST_F(DeltaFoldQueueTest, ChooseFromTakesKeysFromANumberOrSize) {
  Add("a", 10, 3);
  Add("b", 20, 4);
  Add("c", 31, 4);
  Add("d", 20, 4);
  queue_.AddAnchor(18);
  Add("e", 30, 5);
  queue_.ChooseFrom(4, /*bytes=*/100, /*earliest_snapshot=*/30);
  // Key "c" is too new, and key "d" has an anchor.
  ASSERT_EQ("be", Chosen());
  ASSERT_EQ(11 * 10, queue_.BytesLeft());
  queue_.ChooseFrom(4, 31, 30);
  ASSERT_EQ(11 * 10, queue_.BytesLeft());
  // Key "a" has three operands of ten bytes.
  queue_.ChooseFrom(4, 30, 30);
  ASSERT_EQ("abe", Chosen());
  ASSERT_EQ(8 * 10, queue_.BytesLeft());
}

TEST_F(DeltaFoldQueueTest, ChooseIfSkipsKeysThatMayNotBeFolded) {
  Add("a", 10, 3);
  Add("b", 20, 4);
  Add("c", 31, 4);
  Add("d", 20, 4);
  queue_.AddAnchor(18);
  queue_.ChooseIf([](const Slice& key) { return key != "a"; },
                  /*earliest_snapshot=*/30);
  ASSERT_EQ("b", Chosen());
  queue_.ChooseIf([](const Slice&) { return true; }, 30);
  ASSERT_EQ("ab", Chosen());
}

TEST_F(DeltaFoldQueueTest, ChooseLargestTakesTheLargestKeysFirst) {
  const auto fill = [this] {
    queue_.Clear();
    Add("a", 10, 1);
    Add("b", 20, 3);
    Add("c", 30, 1, 50);
    Add("d", 40, 3);
    Add("e", 50, 9);
    queue_.AddAnchor(1);
  };
  fill();
  const uint64_t all = queue_.BytesLeft();
  ASSERT_EQ(210u, all);
  queue_.ChooseLargest(all, 100);
  ASSERT_EQ("", Chosen());
  // One operand of 50 bytes is larger than three of 10.
  queue_.ChooseLargest(all - 1, 100);
  ASSERT_EQ("c", Chosen());
  ASSERT_EQ(160u, queue_.BytesLeft());
  queue_.ChooseLargest(160, 100);
  ASSERT_EQ("c", Chosen());
  // The first of several keys of the same size is chosen.
  queue_.ChooseLargest(159, 100);
  ASSERT_EQ("bc", Chosen());
  queue_.ChooseLargest(129, 100);
  ASSERT_EQ("bcd", Chosen());
  // A key with anchors is not chosen.
  queue_.ChooseLargest(0, 100);
  ASSERT_EQ("abcd", Chosen());
  ASSERT_EQ(90u, queue_.BytesLeft());

  // A key with an operand above the snapshot is not chosen.
  fill();
  queue_.ChooseLargest(0, 29);
  ASSERT_EQ("ab", Chosen());
  fill();
  queue_.ChooseLargest(0, 0);
  ASSERT_EQ("", Chosen());
  queue_.ChooseAll();
  ASSERT_EQ("abcde", Chosen());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
