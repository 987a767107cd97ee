//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A flush that was requested takes place, whatever else is flushed meanwhile.

#include <memory>
#include <string>
#include <utility>

#include "port/stack_trace.h"
#include "rocksdb/listener.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Makes a call at the end of the first flush.
class FlushEndListener : public EventListener {
 public:
  explicit FlushEndListener(std::shared_ptr<BoundedCall> call)
      : call_(std::move(call)) {}
  void OnFlushCompleted(DB* /*db*/, const FlushJobInfo& /*info*/) override {
    call_->RunOnce();
  }

 private:
  const std::shared_ptr<BoundedCall> call_;
};

}  // namespace

class DBFlushRequestTest : public StrataDBTestBase {
 public:
  DBFlushRequestTest() : StrataDBTestBase("db_flush_request_test") {}

 protected:
  // Returns options of a column family with a map, or with delta separation:
  // its flushes are in order. There are threads for two flushes.
  Options OrderedOptions(bool has_map, bool atomic_flush,
                         const std::shared_ptr<BoundedCall>& call) {
    Options options = CurrentOptions();
    options.max_background_jobs = 8;
    options.max_write_buffer_number = 4;
    options.atomic_flush = atomic_flush;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.enable_delta_separation = !has_map;
    options.enable_blob_files = has_map;
    options.enable_blob_address_map = has_map;
    options.listeners = {std::make_shared<FlushEndListener>(call)};
    return options;
  }

  // Flushes "a", and requests a flush of "b" meanwhile, which has reached the
  // sync point `waits` before the first one ends. Listeners hear of the first
  // one by `call`.
  void FlushWhileAnotherWaits(const std::string& waits,
                              const std::shared_ptr<BoundedCall>& call) {
    EventCount waiting;
    EnableCallBackOnce(waits, [&](void*) { waiting.Add(); });
    EnableCallBackOnce("BuildTable:BeforeFinishBuildTable", [&](void*) {
      ASSERT_OK(Put("b", "value"));
      FlushOptions flush_options;
      flush_options.wait = false;
      flush_options.allow_write_stall = true;
      ASSERT_OK(db_->Flush(flush_options));
      EXPECT_TRUE(waiting.WaitFor(1));
    });
    ASSERT_OK(Put("a", "value"));
    ASSERT_OK(db_->Flush(FlushOptions()));
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    DisableCallBacks();
    ASSERT_TRUE(call->Join());
    EXPECT_EQ(NumImmutable(), "0");
    EXPECT_EQ(Get("a"), "value");
    EXPECT_EQ(Get("b"), "value");
  }

  std::string NumImmutable() {
    std::string property;
    EXPECT_TRUE(db_->GetProperty("rocksdb.num-immutable-mem-table", &property));
    return property;
  }
};

// An ingestion that replaces all keys waits for memtables that are being
// flushed, too: they would hide what it brings, and bring back what it removes.
TEST_F(DBFlushRequestTest, ReplacementOfAllKeysWaitsForImmutableMemtables) {
  DestroyAndReopen(CurrentOptions());
  const std::string name = dbname_ + "/replacement";
  SstFileWriter writer(EnvOptions(), CurrentOptions());
  ASSERT_OK(writer.Open(name));
  ASSERT_OK(writer.Put("k", "new"));
  ASSERT_OK(writer.Finish());
  EventCount held;
  EventCount released;
  EnableCallBackOnce("FlushJob::WriteLevel0Table", [&](void*) {
    held.Add();
    EXPECT_TRUE(released.WaitFor(1));
  });
  ASSERT_OK(Put("old", "value"));
  ASSERT_OK(Put("k", "stale"));
  FlushOptions no_wait;
  no_wait.wait = false;
  ASSERT_OK(db_->Flush(no_wait));
  ASSERT_TRUE(held.WaitFor(1));
  EXPECT_EQ(NumImmutable(), "1");

  IngestExternalFileArg arg;
  arg.column_family = db_->DefaultColumnFamily();
  arg.external_files = {name};
  arg.options.snapshot_consistency = false;
  arg.atomic_replace_range = {{nullptr, nullptr}};
  arg.options.allow_blocking_flush = false;
  const Status s = db_->IngestExternalFiles({arg});
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  arg.options.allow_blocking_flush = true;
  SyncPoint::GetInstance()->SetCallBack(
      "DBImpl::IngestExternalFile:NeedFlush", [&](void* is_needed) {
        EXPECT_TRUE(*static_cast<bool*>(is_needed));
        released.Add();
      });
  ASSERT_OK(db_->IngestExternalFiles({arg}));
  released.Add();
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  DisableCallBacks();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Get("old"), "NOT_FOUND");
    EXPECT_EQ(Get("k"), "new");
    Reopen(CurrentOptions());
  }
}

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

// A listener that is told of a flush waits for the next flush of the same
// column family, whose flushes are in order.
TEST_F(DBFlushRequestTest, ListenerMayWaitForTheNextFlush) {
  for (const bool has_map : {false, true}) {
    for (const bool atomic_flush : {false, true}) {
      SCOPED_TRACE(testing::Message() << has_map << " " << atomic_flush);
      const auto call = std::make_shared<BoundedCall>([this] {
        ASSERT_OK(Put("b", "value"));
        ASSERT_OK(db_->Flush(FlushOptions()));
      });
      DestroyAndReopen(OrderedOptions(has_map, atomic_flush, call));
      ASSERT_OK(Put("a", "value"));
      ASSERT_OK(Merge("m", "1"));
      ASSERT_OK(db_->Flush(FlushOptions()));
      ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
      ASSERT_TRUE(call->Join());
      EXPECT_EQ(NumImmutable(), "0");
      EXPECT_EQ(Get("a"), "value");
      EXPECT_EQ(Get("b"), "value");
      EXPECT_EQ(Get("m"), "1");
    }
  }
}

// The same with an atomic flush of a column family whose flushes are in any
// order. The next flush has written its file before the first one, and waits to
// install its result.
TEST_F(DBFlushRequestTest, ListenerMayWaitForAnAtomicFlushThatInstallsLater) {
  const auto call = std::make_shared<BoundedCall>(
      [this] { ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable()); });
  Options options = CurrentOptions();
  options.max_background_jobs = 8;
  options.max_write_buffer_number = 4;
  options.atomic_flush = true;
  options.listeners = {std::make_shared<FlushEndListener>(call)};
  DestroyAndReopen(options);
  FlushWhileAnotherWaits("DBImpl::AtomicFlushMemTablesToOutputFiles:WaitCV",
                         call);
}

// The same with a flush that was requested before the first one had ended, and
// has waited for it. The listener requests nothing.
TEST_F(DBFlushRequestTest, ListenerMayWaitForAFlushThatHasWaited) {
  for (const bool has_map : {false, true}) {
    for (const bool atomic_flush : {false, true}) {
      SCOPED_TRACE(testing::Message() << has_map << " " << atomic_flush);
      const auto call = std::make_shared<BoundedCall>(
          [this] { ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable()); });
      DestroyAndReopen(OrderedOptions(has_map, atomic_flush, call));
      ASSERT_NO_FATAL_FAILURE(
          FlushWhileAnotherWaits("FlushOrderGate::Park:Parked", call));
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
