//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// CompactRange() whose compaction has returned, or was canceled, while Close()
// ends: what the call does afterwards touches no column family, as these, and
// the handle of the default one, are gone. AddressSanitizer sees it if it does.

#include <cstdarg>
#include <memory>
#include <string>
#include <thread>

#include "monitoring/instrumented_mutex.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Holds a thread at its next Flush(). CompactRange() flushes its LOG when its
// compaction has ended or was canceled.
class HoldingLogger : public Logger {
 public:
  using Logger::Logv;
  void Logv(const char* /*format*/, va_list /*args*/) override {}
  void Flush() override {
    if (holds_this_thread_) {
      holds_this_thread_ = false;
      held_.Add();
      EXPECT_TRUE(released_.WaitFor(1));
    }
  }

  // Flush() holds the thread that calls this, once.
  static void HoldThisThread() { holds_this_thread_ = true; }
  bool WaitUntilHeld() { return held_.WaitFor(1); }
  void Release() { released_.Add(); }

 private:
  static thread_local bool holds_this_thread_;
  EventCount held_;
  EventCount released_;
};

thread_local bool HoldingLogger::holds_this_thread_ = false;

}  // namespace

class CompactRangeCloseTest : public StrataDBTestBase {
 public:
  CompactRangeCloseTest() : StrataDBTestBase("compact_range_close_test") {}

 protected:
  Options TestOptions() const {
    Options options = CurrentOptions();
    options.disable_auto_compactions = true;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    return options;
  }
  Options DeltaOptions() const {
    Options options = TestOptions();
    options.enable_delta_separation = true;
    return options;
  }
  Options MapOptions() const {
    Options options = TestOptions();
    options.enable_blob_files = true;
    options.enable_blob_address_map = true;
    return options;
  }
  static CompactRangeOptions Force() {
    CompactRangeOptions compact;
    compact.blob_garbage_collection_policy =
        BlobGarbageCollectionPolicy::kForce;
    return compact;
  }

  // Makes a DB with two files in level 0, and two operands if has_operands.
  void MakeDB(Options options, bool has_operands) {
    logger_ = std::make_shared<HoldingLogger>();
    options.info_log = logger_;
    DestroyAndReopen(options);
    for (const char* const value : {"1", "2"}) {
      ASSERT_OK(Put("k", value));
      if (has_operands) {
        ASSERT_OK(Merge("m", value));
      }
      ASSERT_OK(Flush());
    }
  }

  // Returns what CompactRange() of all keys returns if Close() ends between the
  // compaction and the rest of the call.
  // cancels: Close() begins before the compaction, and cancels it.
  Status CompactRangeDuringClose(const CompactRangeOptions& options,
                                 bool cancels) {
    EventCount begun;
    EnableCallBackOnce(
        "DBImpl::RunManualCompaction:NotScheduled", [&](void* arg) {
          HoldingLogger::HoldThisThread();
          if (cancels) {
            auto* const mutex = static_cast<InstrumentedMutex*>(arg);
            mutex->Unlock();
            begun.Add();
            EXPECT_TRUE(WaitUntil([&] { return IsPaused(); }));
            mutex->Lock();
          }
        });
    Status s;
    std::thread compactor(
        [&] { s = db_->CompactRange(options, nullptr, nullptr); });
    EXPECT_TRUE(cancels ? begun.WaitFor(1) : logger_->WaitUntilHeld());
    EXPECT_OK(db_->Close());
    EXPECT_TRUE(logger_->WaitUntilHeld());
    logger_->Release();
    compactor.join();
    DisableCallBacks();
    db_.reset();
    return s;
  }

  // Returns true if manual compactions are paused. CompactRange() asks for that
  // before it looks at its options, which are invalid here.
  bool IsPaused() {
    CompactRangeOptions invalid;
    invalid.target_path_id = 1;
    const Slice key("k");
    return !db_->CompactRange(invalid, &key, &key).IsInvalidArgument();
  }

  std::shared_ptr<HoldingLogger> logger_;
};

// As in RocksDB.
TEST_F(CompactRangeCloseTest, WithoutOptions) {
  for (const CompactionStyle style :
       {kCompactionStyleLevel, kCompactionStyleUniversal}) {
    for (const bool cancels : {false, true}) {
      SCOPED_TRACE(std::to_string(style) + (cancels ? " canceled" : ""));
      Options options = TestOptions();
      options.compaction_style = style;
      MakeDB(options, /*has_operands=*/true);
      const Status s = CompactRangeDuringClose(Force(), cancels);
      EXPECT_EQ(s.ok(), !cancels) << s.ToString();
      EXPECT_TRUE(s.ok() || s.IsIncomplete() || s.IsShutdownInProgress())
          << s.ToString();
      Reopen(options);
      EXPECT_EQ(Get("k"), "2");
      EXPECT_EQ(Get("m"), "1,2");
    }
  }
}

TEST_F(CompactRangeCloseTest, DeltaSeparation) {
  for (const bool has_operands : {false, true}) {
    for (const bool cancels : {false, true}) {
      SCOPED_TRACE(std::string(has_operands ? "operands" : "") +
                   (cancels ? " canceled" : ""));
      MakeDB(DeltaOptions(), has_operands);
      const Status s = CompactRangeDuringClose(CompactRangeOptions(), cancels);
      EXPECT_TRUE(s.IsShutdownInProgress() || (cancels && s.IsIncomplete()))
          << s.ToString();
      Reopen(DeltaOptions());
      EXPECT_EQ(Get("k"), "2");
      EXPECT_EQ(Get("m"), has_operands ? "1,2" : "NOT_FOUND");
    }
  }
}

// The family has delta files and does not separate deltas: they become values
// before the compaction.
TEST_F(CompactRangeCloseTest, DrainOfDeltas) {
  for (const bool cancels : {false, true}) {
    SCOPED_TRACE(cancels);
    MakeDB(DeltaOptions(), /*has_operands=*/true);
    Options options = TestOptions();
    options.info_log = logger_;
    Reopen(options);
    const Status s = CompactRangeDuringClose(CompactRangeOptions(), cancels);
    EXPECT_TRUE(s.IsShutdownInProgress() || (cancels && s.IsIncomplete()))
        << s.ToString();
    Reopen(TestOptions());
    EXPECT_EQ(Get("k"), "2");
    EXPECT_EQ(Get("m"), "1,2");
  }
}

TEST_F(CompactRangeCloseTest, AddressMap) {
  for (const bool forces_gc : {false, true}) {
    for (const bool cancels : {false, true}) {
      SCOPED_TRACE(std::string(forces_gc ? "forced" : "") +
                   (cancels ? " canceled" : ""));
      MakeDB(MapOptions(), /*has_operands=*/true);
      const Status s = CompactRangeDuringClose(
          forces_gc ? Force() : CompactRangeOptions(), cancels);
      if (!forces_gc && !cancels) {
        EXPECT_OK(s);
      } else {
        EXPECT_TRUE(s.IsShutdownInProgress() || (cancels && s.IsIncomplete()))
            << s.ToString();
      }
      Reopen(MapOptions());
      EXPECT_EQ(Get("k"), "2");
      EXPECT_EQ(Get("m"), "1,2");
    }
  }
}

// The last step compacts the runs of misplaced files, one after another.
TEST_F(CompactRangeCloseTest, MisplacedFiles) {
  Options options = TestOptions();
  options.cf_paths = {{dbname_, 1 << 30}, {dbname_ + "_1", 1 << 30}};
  options.level_sst_path_ids = {0};
  MakeDB(options, /*has_operands=*/true);
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_OK(db_->SetOptions({{"level_sst_path_ids", "1"}}));
  EventCount begun;
  EnableCallBackOnce("MisplacedFiles::CompactRuns:BeforeCompaction",
                     [&](void* /*arg*/) {
                       begun.Add();
                       EXPECT_TRUE(WaitUntil([&] { return IsPaused(); }));
                     });
  Status s;
  std::thread compactor(
      [&] { s = db_->CompactRange(CompactRangeOptions(), nullptr, nullptr); });
  EXPECT_TRUE(begun.WaitFor(1));
  // Close() waits for the end of the call.
  EXPECT_OK(db_->Close());
  compactor.join();
  DisableCallBacks();
  db_.reset();
  EXPECT_TRUE(s.ok() || s.IsIncomplete() || s.IsShutdownInProgress())
      << s.ToString();
  Reopen(options);
  EXPECT_EQ(Get("k"), "2");
  EXPECT_EQ(Get("m"), "1,2");
  Destroy(options);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
