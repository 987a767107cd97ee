//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A tailing iterator that meets a new SuperVersion in the middle of a merge
// shows each operand once.

#include <functional>
#include <memory>
#include <string>

#include "port/stack_trace.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class ForwardIteratorOperandsTest : public StrataDBTestBase,
                                    public testing::WithParamInterface<bool> {
 public:
  ForwardIteratorOperandsTest()
      : StrataDBTestBase("forward_iterator_operands_test") {}

  void Open() {
    Options options = CurrentOptions();
    options.disable_auto_compactions = true;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    DestroyAndReopen(options);
  }

  // Returns what a tailing iterator shows from "k" on if `job` runs as soon as
  // the iterator has made its first step.
  std::string ReadWhile(const std::function<void()>& job) {
    ReadOptions read_options;
    read_options.tailing = true;
    read_options.async_io = GetParam();
    std::unique_ptr<Iterator> iterator(db_->NewIterator(read_options));
    bool has_run = false;
    EnableCallBack("ForwardIterator::Next:Return", [&](void*) {
      if (!has_run) {
        has_run = true;
        job();
      }
    });
    iterator->Seek("k");
    std::string seen;
    for (; iterator->Valid(); iterator->Next()) {
      seen +=
          iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
    }
    DisableCallBacks();
    EXPECT_OK(iterator->status());
    EXPECT_TRUE(has_run);
    return seen;
  }
};

// The flush merges the base and the operands into one value.
TEST_P(ForwardIteratorOperandsTest, ValueIsRightIfAFlushMergesAll) {
  Open();
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Merge("k", "a"));
  ASSERT_OK(Merge("k", "b"));
  ASSERT_OK(Put("z", "1"));
  EXPECT_EQ(ReadWhile([&] { ASSERT_OK(Flush()); }), "k=base,a,b z=1 ");
}

// The compaction merges all entries into one value. Its sequence number is 0,
// so its internal key is behind those of the operands.
TEST_P(ForwardIteratorOperandsTest, ValueIsRightIfACompactionMergesAll) {
  Open();
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Put("z", "1"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "a"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "b"));
  ASSERT_OK(Flush());
  EXPECT_EQ(ReadWhile([&] { ASSERT_OK(ForceCompaction()); }),
            "k=base,a,b z=1 ");
}

// The flush merges the operands into one operand, which has the internal key of
// the newest one.
TEST_P(ForwardIteratorOperandsTest, ValueIsRightIfAFlushMergesOperands) {
  Open();
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Put("z", "1"));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "a"));
  ASSERT_OK(Merge("k", "b"));
  ASSERT_OK(Merge("k", "c"));
  EXPECT_EQ(ReadWhile([&] { ASSERT_OK(Flush()); }), "k=base,a,b,c z=1 ");
}

// The iterator shows newer writes as soon as it is behind the key.
TEST_P(ForwardIteratorOperandsTest, NewerWritesAreShownBehindTheKey) {
  Open();
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Merge("k", "a"));
  ASSERT_OK(Put("z", "1"));
  EXPECT_EQ(ReadWhile([&] {
              ASSERT_OK(Flush());
              ASSERT_OK(Merge("k", "b"));
              ASSERT_OK(Put("l", "new"));
              ASSERT_OK(Put("z", "2"));
              ASSERT_OK(Flush());
            }),
            "k=base,a l=new z=2 ");
}

INSTANTIATE_TEST_CASE_P(AsyncIo, ForwardIteratorOperandsTest, testing::Bool());

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
