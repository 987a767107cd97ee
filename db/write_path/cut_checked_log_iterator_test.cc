//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/write_path/cut_checked_log_iterator.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "port/stack_trace.h"
#include "rocksdb/write_batch.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Has batches with the sequence numbers from 1 on.
class NumberIterator final : public TransactionLogIterator {
 public:
  explicit NumberIterator(std::function<void()> on_next)
      : on_next_(std::move(on_next)) {}
  bool Valid() override { return true; }
  void Next() override {
    on_next_();
    ++sequence_;
  }
  Status status() override { return Status::OK(); }
  BatchResult GetBatch() override {
    BatchResult result;
    result.sequence = sequence_;
    result.writeBatchPtr = std::make_unique<WriteBatch>();
    return result;
  }

 private:
  const std::function<void()> on_next_;
  SequenceNumber sequence_ = 1;
};

}  // namespace

class CutCheckedLogIteratorTest : public testing::Test {
 protected:
  std::unique_ptr<TransactionLogIterator> New(uint64_t num_cuts_before) {
    return std::make_unique<CutCheckedLogIterator>(
        std::make_unique<NumberIterator>([this] {
          ++num_nexts_;
          num_cuts_ += cuts_by_next_;
        }),
        &num_cuts_, num_cuts_before);
  }

  std::atomic<uint64_t> num_cuts_{7};
  uint64_t cuts_by_next_ = 0;
  int num_nexts_ = 0;
};

TEST_F(CutCheckedLogIteratorTest, ReturnsAllBatchesWithoutACut) {
  const auto iter = New(7);
  for (SequenceNumber sequence = 1; sequence < 5; ++sequence) {
    ASSERT_TRUE(iter->Valid());
    ASSERT_OK(iter->status());
    ASSERT_EQ(sequence, iter->GetBatch().sequence);
    iter->Next();
  }
}

TEST_F(CutCheckedLogIteratorTest, EndsAfterACut) {
  const auto iter = New(7);
  iter->Next();
  ++num_cuts_;
  // The batch was read before.
  ASSERT_TRUE(iter->Valid());
  ASSERT_EQ(2, iter->GetBatch().sequence);
  for (int i = 0; i < 2; ++i) {
    iter->Next();
    ASSERT_FALSE(iter->Valid());
    ASSERT_TRUE(iter->status().IsTryAgain());
  }
  ASSERT_EQ(1, num_nexts_);
}

TEST_F(CutCheckedLogIteratorTest, EndsAfterACutDuringNext) {
  const auto iter = New(7);
  cuts_by_next_ = 1;
  iter->Next();
  ASSERT_FALSE(iter->Valid());
  ASSERT_TRUE(iter->status().IsTryAgain());
}

TEST_F(CutCheckedLogIteratorTest, EndsAfterACutDuringItsCreation) {
  const auto iter = New(6);
  ASSERT_FALSE(iter->Valid());
  ASSERT_TRUE(iter->status().IsTryAgain());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
