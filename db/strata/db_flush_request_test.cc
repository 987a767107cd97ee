//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A flush that was requested takes place, whatever else is flushed meanwhile.

#include <string>

#include "port/stack_trace.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class DBFlushRequestTest : public StrataDBTestBase {
 public:
  DBFlushRequestTest() : StrataDBTestBase("db_flush_request_test") {}

 protected:
  std::string NumImmutable() {
    std::string property;
    EXPECT_TRUE(db_->GetProperty("rocksdb.num-immutable-mem-table", &property));
    return property;
  }
};

// With two-phase commit, a flush syncs WALs before it picks memtables, and
// leaves those that were switched meanwhile. Here the flush of such a memtable
// is requested between the two steps.
TEST_F(DBFlushRequestTest, FlushOfAMemtableThatAnotherFlushLeavesTakesPlace) {
  for (const bool has_deltas : {false, true}) {
    SCOPED_TRACE(has_deltas);
    Options options = CurrentOptions();
    options.allow_2pc = true;
    options.min_write_buffer_number_to_merge = 2;
    options.max_write_buffer_number = 4;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.enable_delta_separation = has_deltas;
    DestroyAndReopen(options);
    const auto reached =
        EnableCallBackOnce("DBImpl::SyncClosedWals:Start", [&](void*) {
          FlushOptions flush_options;
          flush_options.wait = false;
          flush_options.allow_write_stall = true;
          ASSERT_OK(Put("b", "value"));
          ASSERT_OK(db_->Flush(flush_options));
        });
    ASSERT_OK(Put("a", "value"));
    ASSERT_OK(db_->Flush(FlushOptions()));
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    DisableCallBacks();
    EXPECT_TRUE(*reached);
    EXPECT_EQ(NumImmutable(), "0");
    EXPECT_EQ(Get("a"), "value");
    EXPECT_EQ(Get("b"), "value");
  }
}

// A flush that leaves nothing serves the request: the next memtable waits until
// there are enough to merge.
TEST_F(DBFlushRequestTest, RequestEndsWithAFlushOfAllMemtables) {
  Options options = CurrentOptions();
  options.allow_2pc = true;
  options.min_write_buffer_number_to_merge = 2;
  options.max_write_buffer_number = 4;
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", "value"));
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_OK(Put("b", "value"));
  ASSERT_OK(dbfull()->TEST_SwitchMemtable());
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  EXPECT_EQ(NumImmutable(), "1");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
