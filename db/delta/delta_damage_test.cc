//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_damage.h"

#include <optional>
#include <string>

#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class DeltaDamageTest : public testing::Test {
 protected:
  using State = DeltaDamage::State;

  // The empty end is no bound.
  static DeltaEdit::KeyRange Range(const std::string& begin,
                                   const std::string& end) {
    DeltaEdit::KeyRange range;
    range.begin = begin;
    if (!end.empty()) {
      range.end = end;
    }
    return range;
  }
  void Suspect(const std::string& begin, const std::string& end) {
    damage_.Add(Range(begin, end), /*num_buckets=*/2,
                Status::Corruption("run " + begin), BytewiseComparator());
  }
  void Damage(const std::string& begin, const std::string& end) {
    damage_.Add(Range(begin, end), /*num_buckets=*/1,
                Status::Corruption("bucket " + begin), BytewiseComparator());
  }
  void Remove(const std::string& begin, const std::string& end) {
    damage_.Remove(Range(begin, end), BytewiseComparator());
  }
  State StateOf(const std::string& begin, const std::string& end) const {
    return damage_.StateOf(Range(begin, end), BytewiseComparator());
  }
  // Returns the ranges; suspected ones have a question mark.
  std::string Text() const {
    std::string text;
    for (const DeltaDamage::Range& range : damage_.ranges()) {
      text += text.empty() ? "" : " ";
      text += range.range.begin + "-" + range.range.end.value_or("");
      text += range.state == State::kSuspect ? "?" : "";
    }
    return text;
  }

  DeltaDamage damage_;
};

TEST_F(DeltaDamageTest, StatesOfRanges) {
  EXPECT_TRUE(damage_.empty());
  EXPECT_EQ(State::kSound, StateOf("", ""));
  Damage("k", "m");
  Suspect("c", "f");
  Damage("x", "");
  EXPECT_EQ("c-f? k-m x-", Text());
  EXPECT_FALSE(damage_.empty());
  EXPECT_EQ(State::kDamaged, StateOf("", ""));
  EXPECT_EQ(State::kSound, StateOf("", "c"));
  EXPECT_EQ(State::kSuspect, StateOf("", "d"));
  EXPECT_EQ(State::kSuspect, StateOf("d", "e"));
  EXPECT_EQ(State::kSuspect, StateOf("e", "k"));
  EXPECT_EQ(State::kSound, StateOf("f", "k"));
  EXPECT_EQ(State::kDamaged, StateOf("e", "l"));
  EXPECT_EQ(State::kDamaged, StateOf("l", "n"));
  EXPECT_EQ(State::kSound, StateOf("m", "x"));
  EXPECT_EQ(State::kDamaged, StateOf("y", "z"));
  EXPECT_EQ(State::kDamaged, StateOf("m", ""));
}

TEST_F(DeltaDamageTest, DamagedBucketEndsTheSuspicionOfItsRange) {
  Suspect("a", "d");
  Suspect("x", "");
  EXPECT_FALSE(damage_.HasDamaged());
  Damage("b", "c");
  EXPECT_EQ("b-c x-?", Text());
  EXPECT_TRUE(damage_.HasDamaged());
  // Two suspected ranges have a part of the bucket.
  damage_.Clear();
  Suspect("a", "d");
  Suspect("d", "g");
  Damage("c", "e");
  EXPECT_EQ("c-e", Text());
  damage_.Clear();
  Suspect("", "");
  Damage("", "b");
  EXPECT_EQ("-b", Text());
}

TEST_F(DeltaDamageTest, NewRangeReplacesWhatItOverlaps) {
  Suspect("a", "f");
  Suspect("d", "h");
  EXPECT_EQ("a-d? d-h?", Text());
  Suspect("b", "c");
  EXPECT_EQ("a-b? b-c? c-d? d-h?", Text());
  Suspect("", "");
  EXPECT_EQ("-?", Text());
  Damage("b", "c");
  Damage("f", "g");
  Suspect("a", "k");
  EXPECT_EQ("a-k?", Text());
  EXPECT_FALSE(damage_.HasDamaged());
  damage_.Clear();
  Damage("", "");
  Suspect("c", "f");
  EXPECT_EQ("-c c-f? f-", Text());
  EXPECT_TRUE(damage_.HasDamaged());
}

TEST_F(DeltaDamageTest, TouchingDamagedRangesAreJoined) {
  Damage("a", "b");
  Damage("c", "d");
  EXPECT_EQ("a-b c-d", Text());
  Damage("b", "c");
  EXPECT_EQ("a-d", Text());
  Damage("", "a");
  EXPECT_EQ("-d", Text());
  Damage("d", "");
  EXPECT_EQ("-", Text());
  Remove("", "");
  EXPECT_FALSE(damage_.HasDamaged());
  // Suspected ranges are not joined with others.
  Suspect("a", "c");
  Suspect("c", "e");
  Damage("e", "f");
  EXPECT_EQ("a-c? c-e? e-f", Text());
  // A part that is damaged again.
  Damage("d", "f");
  EXPECT_EQ("a-c? d-f", Text());
  Damage("d", "e");
  EXPECT_EQ("a-c? d-f", Text());
  Remove("d", "f");
  EXPECT_FALSE(damage_.HasDamaged());
}

TEST_F(DeltaDamageTest, SuccessCutsTheRangeOut) {
  Suspect("a", "f");
  Damage("k", "p");
  Remove("f", "k");
  EXPECT_EQ("a-f? k-p", Text());
  Remove("b", "c");
  EXPECT_EQ("a-b? c-f? k-p", Text());
  Remove("e", "l");
  EXPECT_EQ("a-b? c-e? l-p", Text());
  EXPECT_TRUE(damage_.HasDamaged());
  Remove("m", "n");
  EXPECT_EQ("a-b? c-e? l-m n-p", Text());
  Remove("l", "");
  EXPECT_EQ("a-b? c-e?", Text());
  EXPECT_FALSE(damage_.HasDamaged());
  // The suspicion of the rest of a range ends with its culprit.
  Damage("c", "d");
  EXPECT_EQ("a-b? c-d", Text());
  Remove("", "");
  EXPECT_TRUE(damage_.empty());
}

TEST_F(DeltaDamageTest, FirstErrorIsKept) {
  EXPECT_OK(damage_.error());
  Suspect("a", "d");
  Damage("b", "c");
  EXPECT_EQ("Corruption: run a", damage_.error().ToString());
  const DeltaDamage copy = damage_;
  damage_.Clear();
  EXPECT_OK(damage_.error());
  EXPECT_FALSE(damage_.HasDamaged());
  EXPECT_EQ("Corruption: run a", copy.error().ToString());
  EXPECT_TRUE(copy.HasDamaged());
  Damage("b", "c");
  Damage("x", "y");
  EXPECT_EQ("Corruption: bucket b", damage_.error().ToString());
  Remove("a", "d");
  EXPECT_EQ("Corruption: bucket b", damage_.error().ToString());
  // Nothing is left of it.
  Remove("x", "y");
  EXPECT_OK(damage_.error());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
