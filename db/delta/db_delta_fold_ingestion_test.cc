//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Folds of merge operands into values beside ingestions and deletions of files.

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/delta/db_delta_model_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/listener.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/delta_fold_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Calls a function when the first fold begins to write its SST file.
class FoldListener : public EventListener {
 public:
  explicit FoldListener(std::function<void()> fn) : call_(std::move(fn)) {}

  void OnTableFileCreationStarted(
      const TableFileCreationBriefInfo& info) override {
    if (info.reason == TableFileCreationReason::kMisc) {
      call_.RunOnce();
    }
  }
  // See BoundedCall::Join().
  bool Join() { return call_.Join(); }

 private:
  BoundedCall call_;
};

}  // namespace

class DBDeltaFoldIngestionTest : public DeltaFoldDBTestBase {
 public:
  DBDeltaFoldIngestionTest()
      : DeltaFoldDBTestBase("db_delta_fold_ingestion_test") {}

 protected:
  void WriteExternal(const std::vector<std::string>& keys) {
    file_ = dbname_ + "/external.sst";
    Options options;
    options.env = env_;
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(file_));
    for (const std::string& key : keys) {
      ASSERT_OK(writer.Put(key, "ingested"));
    }
    ASSERT_OK(writer.Finish());
    keys_ = keys;
  }
  void Ingest() {
    ASSERT_OK(db_->IngestExternalFile({file_}, IngestExternalFileOptions()));
    for (const std::string& key : keys_) {
      expected_[key] = "ingested";
    }
  }

  std::string file_;
  std::vector<std::string> keys_;
};

INSTANTIATE_TEST_CASE_P(DBDeltaFoldIngestionTest, DBDeltaFoldIngestionTest,
                        testing::Values(delta_test::ValuePlace::kInline,
                                        delta_test::ValuePlace::kMap));

TEST_P(DBDeltaFoldIngestionTest, ValuesUnderIngestedOnesAreLeftOut) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  WriteExternal({"b", "c"});
  ForceFolds();
  ASSERT_OK(CollectBeside([this] {
    no_more_folds_ = true;
    Ingest();
  }));
  // The anchors of the ingestion show which values are hidden.
  EXPECT_EQ(10, NumFolded());
  CheckNoOperands();
  GoOn();
}

TEST_P(DBDeltaFoldIngestionTest, ValuesUnderAnIngestedRangeDeletionAreLeftOut) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  file_ = dbname_ + "/external.sst";
  Options options;
  options.env = env_;
  SstFileWriter writer(EnvOptions(), options);
  ASSERT_OK(writer.Open(file_));
  ASSERT_OK(writer.DeleteRange("b", "d"));
  ASSERT_OK(writer.Finish());
  ForceFolds();
  ASSERT_OK(CollectBeside([this] {
    no_more_folds_ = true;
    Ingest();
    expected_.erase("b");
    expected_.erase("c");
  }));
  EXPECT_EQ(10, NumFolded());
  CheckNoOperands();
  CheckAndCompact();
  GoOn();
}

// A snapshot sees operands that the fold has taken and not the ingested values,
// so the fold is given up.
TEST_P(DBDeltaFoldIngestionTest, FoldIsGivenUpForASnapshotBelowAnIngestion) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  WriteExternal({"b", "c"});
  const auto before = expected_;
  const Snapshot* snapshot = nullptr;
  ForceFolds();
  ASSERT_OK(CollectBeside([&] {
    no_more_folds_ = true;
    snapshot = db_->GetSnapshot();
    Ingest();
  }));
  ASSERT_NE(nullptr, snapshot);
  EXPECT_EQ(0, NumFolded());
  Check();
  CheckAll(before, snapshot);
  db_->ReleaseSnapshot(snapshot);
  GoOn();
}

TEST_P(DBDeltaFoldIngestionTest, IngestionWaitsForTheFold) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  WriteExternal({"b", "c"});
  ForceFolds();
  std::promise<void> waits;
  std::thread ingester;
  EnableCallBackOnce("DBStrata::WaitForDeltaFolds:Waits",
                     [&](void*) { waits.set_value(); });
  EnableCallBackOnce("DBStrata::BeginDeltaFold:Entered", [&](void*) {
    ingester = std::thread([this] { Ingest(); });
    waits.get_future().wait();
  });
  ASSERT_OK(Collect());
  ingester.join();
  EXPECT_EQ(10, NumFolded());
  GoOn();
}

// A listener that a fold calls may write. An ingestion that waits for the fold,
// whatever its column family is, does not stop writes meanwhile.
TEST_P(DBDeltaFoldIngestionTest, ListenerOfAFoldWritesBesideAnIngestion) {
  EventCount waits;
  std::thread ingester;
  const auto listener = std::make_shared<FoldListener>([&] {
    ingester = std::thread([this] {
      EXPECT_OK(db_->IngestExternalFile(handles_[0], {file_},
                                        IngestExternalFileOptions()));
    });
    EXPECT_TRUE(waits.WaitFor(1));
    DoPut("x", "v");
  });
  Options options = DeltaOptions();
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  Options other = DeltaOptions();
  other.enable_delta_separation = false;
  CreateColumnFamilies({"other"}, other);
  WriteFoldable();
  all_keys_.emplace_back("x");
  WriteExternal({"y"});
  ForceFolds();
  EnableCallBackOnce("DBStrata::WaitForDeltaFolds:Waits",
                     [&](void*) { waits.Add(); });
  EXPECT_OK(Collect());
  EXPECT_TRUE(listener->Join());
  if (ingester.joinable()) {
    ingester.join();
  }
  DisableCallBacks();
  EXPECT_EQ(10, NumFolded());
  EXPECT_EQ("ingested", Get(0, "y"));
  CheckNoOperands();
  CheckAndCompact();
}

TEST_P(DBDeltaFoldIngestionTest, FoldWaitsForTheIngestion) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  // The fold has nothing to do with the key of the ingested file.
  all_keys_.emplace_back("x");
  WriteExternal({"x"});
  ForceFolds();
  std::promise<void> running;
  std::promise<void> waits;
  std::atomic<int> num_edits{0};
  std::thread ingester;
  EnableCallBackOnce("DBStrata::EnterDeltaFold:Waits",
                     [&](void*) { waits.set_value(); });
  ASSERT_OK(CollectBeside([&] {
    no_more_folds_ = true;
    // This sync point is passed without the mutex. The first edit only reserves
    // file numbers for the ingestion, which is not counted as running yet.
    SyncPoint::GetInstance()->SetCallBack(
        "VersionSet::LogAndApply:WriteManifest", [&](void*) {
          if (++num_edits == 2) {
            running.set_value();
            waits.get_future().wait();
          }
        });
    ingester = std::thread([this] { Ingest(); });
    running.get_future().wait();
  }));
  ingester.join();
  // The ingestion begins a new generation, but no file that the fold has read
  // is gone.
  EXPECT_EQ(10, NumFolded());
  GoOn();
}

TEST_P(DBDeltaFoldIngestionTest, FoldIsGivenUpAfterItsFilesAreDeleted) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  ASSERT_OK(CollectBeside([this] {
    no_more_folds_ = true;
    ASSERT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), nullptr,
                                 nullptr));
    expected_.clear();
  }));
  EXPECT_EQ(0, NumFolded());
  Check();
  CheckNoOperands();
}

TEST_P(DBDeltaFoldIngestionTest, FileDeletionWaitsForTheFold) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  std::promise<void> waits;
  std::thread deleter;
  EnableCallBackOnce("DBStrata::WaitForDeltaFolds:Waits",
                     [&](void*) { waits.set_value(); });
  EnableCallBackOnce("DBStrata::BeginDeltaFold:Entered", [&](void*) {
    deleter = std::thread([this] {
      ASSERT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(),
                                   nullptr, nullptr));
    });
    waits.get_future().wait();
  });
  ASSERT_OK(Collect());
  deleter.join();
  EXPECT_EQ(10, NumFolded());
  // The folded values are in level 0, so they stay.
  expected_.erase("f");
  Check();
  CheckNoOperands();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
