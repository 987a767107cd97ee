//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/pairwise_merge.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/merge_operator.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Appends operands, and counts merges and written bytes. Fails for the operand
// "fail".
class Appender : public AssociativeMergeOperator {
 public:
  bool Merge(const Slice&, const Slice* existing, const Slice& value,
             std::string* new_value, Logger*) const override {
    EXPECT_TRUE(new_value->empty());
    ++merges;
    if (value == "fail") {
      return false;
    }
    if (existing != nullptr) {
      new_value->assign(existing->data(), existing->size());
    }
    new_value->append(value.data(), value.size());
    bytes += new_value->size();
    return true;
  }
  const char* Name() const override { return "Appender"; }

  mutable uint64_t merges = 0;
  mutable uint64_t bytes = 0;
};

}  // namespace

class PairwiseMergeTest : public testing::Test {
 protected:
  // Makes `count` operands of less than `size` bytes.
  void MakeOperands(size_t count, uint32_t size) {
    owned_.clear();
    expected_.clear();
    for (size_t i = 0; i < count; ++i) {
      owned_.push_back(rnd_.RandomString(static_cast<int>(rnd_.Uniform(size))));
      expected_ += owned_.back();
    }
    operands_.assign(owned_.begin(), owned_.end());
  }
  bool FullMerge(const Slice* base, std::string* result) {
    const MergeOperator& merge_operator = appender_;
    Slice existing_operand(nullptr, 0);
    MergeOperator::MergeOperationOutput out(*result, existing_operand);
    return merge_operator.FullMergeV2(
        MergeOperator::MergeOperationInput("k", base, operands_, nullptr),
        &out);
  }

  Random rnd_{301};
  std::deque<std::string> owned_;
  std::vector<Slice> operands_;
  std::string expected_;
  Appender appender_;
};

TEST_F(PairwiseMergeTest, CombineKeepsTheOrderAndFailsWithAMerge) {
  for (size_t count = 1; count < 70; ++count) {
    MakeOperands(count, 5);
    uint64_t merges = 0;
    std::string result = "what was there";
    ASSERT_TRUE(PairwiseMerge::Combine(
        operands_,
        [&](const Slice& left, const Slice& right, std::string* merged) {
          ++merges;
          *merged = left.ToString() + right.ToString();
          return true;
        },
        &result));
    ASSERT_EQ(expected_, result);
    ASSERT_EQ(count - 1, merges);
    // A merge that fails makes Combine() fail at once.
    for (uint64_t failing = 1; failing < count; failing += 7) {
      merges = 0;
      ASSERT_FALSE(PairwiseMerge::Combine(
          operands_,
          [&](const Slice&, const Slice&, std::string*) {
            return ++merges != failing;
          },
          &result));
      ASSERT_EQ(failing, merges);
    }
  }
}

// With many operands, each byte is copied a logarithmic number of times only.
TEST_F(PairwiseMergeTest, FullMergeCopiesEachByteAFewTimes) {
  constexpr size_t kCount = 20000;
  MakeOperands(kCount, 40);
  for (const std::string& base : {std::string(), std::string(200000, 'b')}) {
    const Slice slice(base);
    appender_.bytes = appender_.merges = 0;
    std::string result;
    ASSERT_TRUE(FullMerge(base.empty() ? nullptr : &slice, &result));
    ASSERT_TRUE(result == base + expected_);
    ASSERT_EQ(kCount, appender_.merges);
    // kCount is less than 2^15, so each byte is copied in 15 rounds of merges,
    // and again when the result is merged with the base.
    ASSERT_LE(appender_.bytes, base.size() + 17 * expected_.size());
  }
}

TEST_F(PairwiseMergeTest, PartialMergeCopiesEachByteAFewTimes) {
  constexpr size_t kCount = 20000;
  MakeOperands(kCount, 40);
  const MergeOperator& merge_operator = appender_;
  std::string result;
  ASSERT_TRUE(merge_operator.PartialMergeMulti(
      "k", std::deque<Slice>(operands_.begin(), operands_.end()), &result,
      nullptr));
  ASSERT_TRUE(result == expected_);
  ASSERT_EQ(kCount - 1, appender_.merges);
  ASSERT_LE(appender_.bytes, 16 * expected_.size());
}

// Where merging in pairs would save nothing, operands are merged from the first
// to the last, as in RocksDB.
TEST_F(PairwiseMergeTest, FewOperandsAreMergedOneByOne) {
  MakeOperands(200, 40);
  ASSERT_FALSE(PairwiseMerge::Pays(nullptr, operands_));
  std::string result;
  ASSERT_TRUE(FullMerge(nullptr, &result));
  ASSERT_EQ(expected_, result);
  uint64_t bytes = 0;
  uint64_t so_far = 0;
  for (const Slice& operand : operands_) {
    so_far += operand.size();
    bytes += so_far;
  }
  ASSERT_EQ(bytes, appender_.bytes);
  // A large base would be copied by each merge.
  const std::string base(1 << 20, 'b');
  const Slice slice(base);
  ASSERT_TRUE(PairwiseMerge::Pays(&slice, operands_));
  operands_.resize(PairwiseMerge::kMinOperands - 1);
  ASSERT_FALSE(PairwiseMerge::Pays(&slice, operands_));
}

TEST_F(PairwiseMergeTest, FullMergeFailsIfAMergeFails) {
  MakeOperands(20000, 40);
  owned_.push_back("fail");
  operands_.emplace_back(owned_.back());
  std::string result;
  ASSERT_FALSE(FullMerge(nullptr, &result));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
