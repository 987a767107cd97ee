//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Compactions by a CompactionService, with a filter of merge operands. All
// options of Strata's are off.

#include <memory>
#include <string>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/snapshot.h"
#include "test_util/strata/compaction_worker_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

class OperandRemover : public CompactionFilter {
 public:
  const char* Name() const override { return "OperandRemover"; }
  bool FilterMergeOperand(int /*level*/, const Slice& /*key*/,
                          const Slice& /*operand*/) const override {
    return true;
  }
};

}  // namespace

class RemoteCompactionFilterTest : public DBTestBase {
 protected:
  RemoteCompactionFilterTest()
      : DBTestBase("remote_compaction_filter_test", /*env_do_fsync=*/false) {}
};

// A filter is not asked for operands that a snapshot sees, neither here nor in
// a worker, to which the snapshots are sent.
TEST_F(RemoteCompactionFilterTest, OperandsOfASnapshotStay) {
  const OperandRemover filter;
  for (const bool is_remote : {false, true}) {
    SCOPED_TRACE(is_remote);
    Options options = CurrentOptions();
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.compaction_filter = &filter;
    options.disable_auto_compactions = true;
    const auto worker =
        std::make_shared<CompactionWorkerHere>(dbname_, options);
    if (is_remote) {
      options.compaction_service = worker;
    }
    DestroyAndReopen(options);
    ASSERT_OK(Merge("k", "old"));
    const Snapshot* const snapshot = db_->GetSnapshot();
    ASSERT_OK(Flush());
    ASSERT_OK(Merge("k", "new"));
    ASSERT_OK(Flush());
    CompactRangeOptions compact;
    compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
    ASSERT_OK(worker->status);
    EXPECT_EQ(worker->compactions > 0, is_remote);
    EXPECT_EQ(Get("k", snapshot), "old");
    EXPECT_EQ(Get("k"), "old");
    db_->ReleaseSnapshot(snapshot);
  }
  Close();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
