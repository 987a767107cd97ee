//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/continue_once_per_operand.h"

#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class ContinueOncePerOperandTest : public testing::Test {
 public:
  ContinueOncePerOperandTest() {
    given_.expected_max_number_of_operands = 7;
    given_.continue_cb = [this](const Slice& operand) {
      asked_.push_back(operand.ToString());
      return asked_.size() < limit_;
    };
  }

 protected:
  using Operands = std::vector<std::string>;

  // Asks for the operands until the answer is false. Returns the number of
  // questions.
  static size_t Attempt(ContinueOncePerOperand* once,
                        const Operands& operands) {
    const GetMergeOperandsOptions& options = *once->StartAttempt();
    size_t asked = 0;
    for (const std::string& operand : operands) {
      ++asked;
      if (!options.continue_cb(operand)) {
        break;
      }
    }
    return asked;
  }

  // The user's callback returns false at this question.
  size_t limit_ = 100;
  // Operands that the user's callback was asked for.
  Operands asked_;
  GetMergeOperandsOptions given_;
};

TEST_F(ContinueOncePerOperandTest, AsksForEachOperandOnce) {
  ContinueOncePerOperand once(given_);
  EXPECT_EQ(once.StartAttempt()->expected_max_number_of_operands, 7);
  EXPECT_EQ(Attempt(&once, {"c", "b"}), 2);
  EXPECT_EQ(Attempt(&once, {"c"}), 1);
  EXPECT_EQ(Attempt(&once, {"c", "b", "a"}), 3);
  EXPECT_EQ(asked_, (Operands{"c", "b", "a"}));
}

TEST_F(ContinueOncePerOperandTest, EndsAtTheSameOperandAgain) {
  limit_ = 2;
  ContinueOncePerOperand once(given_);
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EQ(Attempt(&once, {"c", "b", "a"}), 2);
  }
  EXPECT_EQ(asked_, (Operands{"c", "b"}));
}

TEST_F(ContinueOncePerOperandTest, EndsInALaterAttempt) {
  limit_ = 3;
  ContinueOncePerOperand once(given_);
  EXPECT_EQ(Attempt(&once, {"d", "c"}), 2);
  EXPECT_EQ(Attempt(&once, {"d", "c", "b", "a"}), 3);
  EXPECT_EQ(asked_, (Operands{"d", "c", "b"}));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
