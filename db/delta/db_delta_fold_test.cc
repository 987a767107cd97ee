//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Folds of merge operands into values, in real databases: what readers see,
// what comes in between, and what fails.

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/delta/db_delta_model_test_util.h"
#include "db/delta/db_delta_test_util.h"
#include "db/delta/delta_name_fs_test_util.h"
#include "db/delta/delta_picker.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/sync_point.h"
#include "utilities/fault_injection_fs.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::AppendOperator;
using delta_test::DisableCallBacks;
using delta_test::SetValues;
using Values = delta_test::ValuePlace;

class DBDeltaFoldTest : public DBTestBase,
                        public testing::WithParamInterface<Values> {
 protected:
  DBDeltaFoldTest()
      : DBTestBase("db_delta_fold_test", /*env_do_fsync=*/false) {}
  ~DBDeltaFoldTest() override { DisableCallBacks(); }

  Options DeltaOptions() {
    Options options = CurrentOptions();
    options.merge_operator = std::make_shared<AppendOperator>();
    options.enable_delta_separation = true;
    options.disable_auto_compactions = true;
    options.statistics = CreateDBStatistics();
    // Tests resume by themselves.
    options.max_bgerror_resume_count = 0;
    options.num_levels = 4;
    SetValues(GetParam(), &options);
    return options;
  }

  static std::string Long(const std::string& text) {
    return text + std::string(30, '.');
  }

  // ---- The model: what each key should be. Absent: not found.

  void DoPut(const std::string& key, const std::string& value) {
    ASSERT_OK(Put(key, value));
    expected_[key] = value;
  }
  void DoMerge(const std::string& key, const std::string& operand) {
    ASSERT_OK(Merge(key, operand));
    expected_[key] += "," + operand;
  }
  void DoDelete(const std::string& key) {
    ASSERT_OK(Delete(key));
    expected_.erase(key);
  }
  void CheckAll(const std::map<std::string, std::string>& expected,
                const Snapshot* snapshot = nullptr) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::vector<Slice> keys;
    for (const std::string& key : all_keys_) {
      keys.emplace_back(key);
      std::string value;
      const Status s = db_->Get(read_options, key, &value);
      const auto found = expected.find(key);
      if (found == expected.end()) {
        EXPECT_TRUE(s.IsNotFound()) << key << ": " << s.ToString() << value;
      } else {
        EXPECT_OK(s);
        EXPECT_EQ(found->second, value) << key;
      }
    }
    std::vector<std::string> values;
    const std::vector<Status> statuses =
        db_->MultiGet(read_options, keys, &values);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto found = expected.find(all_keys_[i]);
      EXPECT_EQ(found == expected.end(), statuses[i].IsNotFound());
      EXPECT_EQ(found == expected.end() ? "" : found->second, values[i]);
    }
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    CheckIterator(expected, iter.get());
  }
  static void CheckIterator(const std::map<std::string, std::string>& expected,
                            Iterator* iter) {
    std::map<std::string, std::string> forward;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      forward[iter->key().ToString()] = iter->value().ToString();
    }
    EXPECT_OK(iter->status());
    EXPECT_EQ(expected, forward);
    std::map<std::string, std::string> backward;
    for (iter->SeekToLast(); iter->Valid(); iter->Prev()) {
      backward[iter->key().ToString()] = iter->value().ToString();
    }
    EXPECT_OK(iter->status());
    EXPECT_EQ(expected, backward);
  }
  void Check() { CheckAll(expected_); }

  // ---- Operands that are ready to be folded.

  // Keys with bases of all kinds in the tree, all flushed.
  void WriteBases() {
    for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
      all_keys_.emplace_back(key);
    }
    DoPut("b", "short");
    DoPut("c", Long("c"));
    DoPut("d", Long("d"));
    DoPut("e", Long("gone"));
    DoPut("f", Long("f"));
    ASSERT_OK(Flush());
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    DoPut("d", Long("d2"));
    DoDelete("e");
    ASSERT_OK(Flush());
  }
  // Two operands above them, all flushed.
  void WriteOperands() {
    for (const char* key : {"a", "b", "c", "d", "e"}) {
      DoMerge(key, "1");
    }
    ASSERT_OK(Flush());
    for (const char* key : {"a", "b", "c", "d", "e"}) {
      DoMerge(key, Long("2"));
    }
    ASSERT_OK(Flush());
  }
  void WriteFoldable() {
    WriteBases();
    WriteOperands();
    Check();
  }

  // A compaction of all files that begins now, with what filter there is, and
  // goes on when go_on() is called. If there are no operands in delta files
  // yet, it does not hold values for them (DeltaHoldingFilter).
  class PausedCompaction {
   public:
    explicit PausedCompaction(DBDeltaFoldTest* test) {
      std::promise<void> began;
      At("CompactFilesImpl:0", [this, &began] {
        began.set_value();
        go_on_.get_future().wait();
      });
      thread_ = std::thread([test] { test->CompactAllFiles(); });
      began.get_future().wait();
    }
    ~PausedCompaction() { Finish(); }
    void GoOn() {
      if (!goes_on_.exchange(true)) {
        go_on_.set_value();
      }
    }
    void Finish() {
      GoOn();
      if (thread_.joinable()) {
        thread_.join();
      }
    }

   private:
    std::promise<void> go_on_;
    std::atomic<bool> goes_on_{false};
    std::thread thread_;
  };

  // Whatever is collected is folded.
  void ForceFolds() {
    SyncPoint::GetInstance()->SetCallBack(
        "DBStrata::RunDeltaCollection:Picked", [this](void* arg) {
          auto* const pick = static_cast<DeltaPicker::Collection*>(arg);
          pick->plan.fold = !no_more_folds_;
          ++num_picked_;
        });
    SyncPoint::GetInstance()->EnableProcessing();
  }
  // Once, when a fold comes to it.
  static void At(const std::string& point, std::function<void()> fn) {
    auto fired = std::make_shared<std::atomic<bool>>(false);
    SyncPoint::GetInstance()->SetCallBack(point,
                                          [fired, fn = std::move(fn)](void*) {
                                            if (!fired->exchange(true)) {
                                              fn();
                                            }
                                          });
    SyncPoint::GetInstance()->EnableProcessing();
  }
  Status Collect(int cf = -1) {
    return db_->CompactRange(CompactRangeOptions(),
                             cf < 0 ? db_->DefaultColumnFamily() : handles_[cf],
                             nullptr, nullptr);
  }
  uint64_t NumFolded() {
    return last_options_.statistics->getTickerCount(DELTA_OPERANDS_FOLDED);
  }
  // Operands of the key in the store.
  size_t NumOperands(const std::string& key) {
    return delta_test::HandMadeDeltas(db_.get()).Read(key).size();
  }
  void CheckNoOperands() {
    for (const std::string& key : all_keys_) {
      EXPECT_EQ(0, NumOperands(key)) << key;
    }
  }

  // There are delta files, and who reads them first need not open them.
  void CheckFilesAreOpen() {
    EXPECT_GT(delta_test::HandMadeDeltas(db_.get()).CountOpened(
                  [](const DeltaFileMeta& file) {
                    ADD_FAILURE() << file.description().ToString();
                  }),
              0);
  }

  // No file is left over, and none is missing.
  void CheckFiles() {
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    dbfull()->TEST_DeleteObsoleteFiles();
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
    EXPECT_EQ(0, NumUnknownTables());
  }
  // On disk, but in no Version.
  size_t NumUnknownTables() {
    std::vector<LiveFileMetaData> live;
    db_->GetLiveFilesMetaData(&live);
    std::vector<std::string> children;
    EXPECT_OK(env_->GetChildren(dbname_, &children));
    const auto num_sst =
        std::count_if(children.begin(), children.end(), [](const auto& name) {
          uint64_t number = 0;
          FileType type = kTempFile;
          return ParseFileName(name, &number, &type) && type == kTableFile;
        });
    return static_cast<size_t>(num_sst) - live.size();
  }

  // With what filter there is.
  void CompactAllFiles() {
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    std::vector<std::string> names;
    for (const LiveFileMetaData& file : files) {
      names.push_back(file.name);
    }
    ASSERT_OK(
        db_->CompactFiles(CompactionOptions(), names, /*output_level=*/3));
  }

  void LoseManifest() {
    Close();
    delta_test::DeleteManifests(env_, dbname_);
  }
  // A new DB with something to fold.
  Options OpenFoldable(Env* env) {
    expected_.clear();
    all_keys_.clear();
    no_more_folds_ = false;
    Options options = DeltaOptions();
    options.env = env;
    DestroyAndReopen(options);
    WriteFoldable();
    return options;
  }
  // Readers find the same when sequence numbers are gone: nothing tells then
  // what is older.
  void CheckAndCompact() {
    Check();
    CompactRangeOptions all;
    all.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(db_->CompactRange(all, nullptr, nullptr));
      Check();
    }
  }

  void Restart() {
    // Reopen() resets those before it takes the new ones.
    const Options options = last_options_;
    Reopen(options);
  }

  // What others read and write still goes well.
  void GoOn() {
    DisableCallBacks();
    Check();
    DoMerge("a", "3");
    DoPut("b", "new");
    DoMerge("d", "3");
    Check();
    ASSERT_OK(Flush());
    Check();
    ASSERT_OK(Collect());
    Check();
    Restart();
    Check();
    CheckFiles();
  }

  std::map<std::string, std::string> expected_;
  std::vector<std::string> all_keys_;
  std::atomic<bool> no_more_folds_{false};
  std::atomic<int> num_picked_{0};
};

INSTANTIATE_TEST_CASE_P(DBDeltaFoldTest, DBDeltaFoldTest,
                        testing::Values(Values::kInline, Values::kBlobs,
                                        Values::kMap, Values::kMapVersioned));

TEST_P(DBDeltaFoldTest, OperandsBecomeValues) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  CheckNoOperands();
  EXPECT_EQ(1, NumTableFilesAtLevel(0));
  Check();
  CheckFiles();
  Restart();
  Check();
  // And once more, on top of them.
  DoMerge("a", "3");
  DoMerge("c", "3");
  ASSERT_OK(Flush());
  Check();
  ASSERT_OK(Collect());
  EXPECT_EQ(10 + 2, NumFolded());
  Check();
  CheckNoOperands();
  // Compactions find nothing special about the values.
  CompactRangeOptions options;
  options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
  ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
  Check();
  GoOn();
}

TEST_P(DBDeltaFoldTest, Entities) {
  DestroyAndReopen(DeltaOptions());
  ASSERT_OK(db_->PutEntity(WriteOptions(), db_->DefaultColumnFamily(), "e",
                           {{kDefaultWideColumnName, "v"}, {"x", "1"}}));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("e", "1"));
  ASSERT_OK(Flush());
  ForceFolds();
  ASSERT_OK(Collect());
  EXPECT_EQ(1, NumFolded());
  EXPECT_EQ(0, NumOperands("e"));
  EXPECT_EQ("v,1", Get("e"));
  PinnableWideColumns columns;
  ASSERT_OK(
      db_->GetEntity(ReadOptions(), db_->DefaultColumnFamily(), "e", &columns));
  EXPECT_EQ((WideColumns{{kDefaultWideColumnName, "v,1"}, {"x", "1"}}),
            columns.columns());
}

TEST_P(DBDeltaFoldTest, OnlyOperandsAtAll) {
  DestroyAndReopen(DeltaOptions());
  for (const char* key : {"a", "b", "d"}) {
    all_keys_.emplace_back(key);
    DoMerge(key, "1");
  }
  ASSERT_OK(Flush());
  EXPECT_EQ(0, NumTableFilesAtLevel(0));
  ForceFolds();
  ASSERT_OK(Collect());
  EXPECT_EQ(3, NumFolded());
  EXPECT_EQ(1, NumTableFilesAtLevel(0));
  GoOn();
}

TEST_P(DBDeltaFoldTest, SnapshotsBelowAndAbove) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  const auto before = expected_;
  const Snapshot* const snapshot = db_->GetSnapshot();
  DoMerge("c", "3");
  ASSERT_OK(Flush());
  ForceFolds();
  ASSERT_OK(Collect());
  CheckFilesAreOpen();
  // It sees not all of c's, but all of the others.
  EXPECT_EQ(8, NumFolded());
  EXPECT_EQ(3, NumOperands("c"));
  EXPECT_EQ(0, NumOperands("d"));
  Check();
  CheckAll(before, snapshot);
  DisableCallBacks();
  DoPut("d", Long("overwritten"));
  ASSERT_OK(Flush());
  ASSERT_OK(Collect());
  Check();
  CheckAll(before, snapshot);
  db_->ReleaseSnapshot(snapshot);
  Check();
  GoOn();
}

// The iterator's Version has operands and bases. Neither the fold nor a
// compaction that finds bases hidden by its values may take them away.
TEST_P(DBDeltaFoldTest, IteratorsThatWereThereBefore) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  const auto before = expected_;
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ForceFolds();
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  CheckIterator(before, iter.get());
  CompactRangeOptions options;
  options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
  CheckIterator(before, iter.get());
  CheckAll(before, snapshot);
  ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
  CheckIterator(before, iter.get());
  DoPut("c", Long("overwritten"));
  DoPut("d", Long("overwritten"));
  ASSERT_OK(Flush());
  ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
  CheckIterator(before, iter.get());
  CheckAll(before, snapshot);
  iter.reset();
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
  Check();
  GoOn();
}

TEST_P(DBDeltaFoldTest, OverwrittenBeforeTheGate) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  At("DBStrata::RunDeltaCollection:BeforeEdit", [this] {
    DoPut("a", "over");
    DoPut("c", Long("over"));
    DoDelete("d");
    ASSERT_OK(Flush());
  });
  std::atomic<int> num_validated{0};
  SyncPoint::GetInstance()->SetCallBack("DeltaFoldCommit::Write:Validated",
                                        [&](void* arg) {
                                          EXPECT_OK(*static_cast<Status*>(arg));
                                          ++num_validated;
                                        });
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  EXPECT_EQ(1, num_validated);
  CheckNoOperands();
  GoOn();
}

TEST_P(DBDeltaFoldTest, RangeDeletedBeforeTheGate) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  At("DBStrata::RunDeltaCollection:BeforeEdit", [this] {
    ASSERT_OK(
        db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "b", "e"));
    for (const char* key : {"b", "c", "d"}) {
      expected_.erase(key);
    }
    ASSERT_OK(Flush());
  });
  ASSERT_OK(Collect());
  Check();
  CheckNoOperands();
  GoOn();
}

TEST_P(DBDeltaFoldTest, AllOverwrittenBeforeTheGate) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  At("DBStrata::RunDeltaCollection:BeforeEdit", [this] {
    for (const char* key : {"a", "b", "c", "d", "e"}) {
      DoPut(key, "over");
    }
    ASSERT_OK(Flush());
  });
  ASSERT_OK(Collect());
  Check();
  CheckNoOperands();
  GoOn();
}

// It sees what the fold has taken, and not what hides it.
TEST_P(DBDeltaFoldTest, SnapshotBeforeWhatOverwrites) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  const auto before = expected_;
  const Snapshot* snapshot = nullptr;
  ForceFolds();
  At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
    snapshot = db_->GetSnapshot();
    DoPut("c", Long("over"));
    ASSERT_OK(Flush());
    no_more_folds_ = true;
  });
  ASSERT_OK(Collect());
  ASSERT_NE(nullptr, snapshot);
  EXPECT_EQ(0, NumFolded());
  Check();
  CheckAll(before, snapshot);
  CheckFiles();
  db_->ReleaseSnapshot(snapshot);
  GoOn();
}

// The flush is parked, and its file gets a higher epoch.
TEST_P(DBDeltaFoldTest, OverwrittenInsideTheGate) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  std::promise<void> parked;
  At("FlushOrderGate::Park:Parked", [&] { parked.set_value(); });
  At("DBStrata::BeginDeltaFold:Entered", [&] {
    DoPut("a", "over");
    DoPut("c", Long("over"));
    DoMerge("d", "over");
    FlushOptions flush_options;
    flush_options.wait = false;
    ASSERT_OK(db_->Flush(flush_options));
    parked.get_future().wait();
    Check();
  });
  ASSERT_OK(Collect());
  ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable());
  EXPECT_EQ(10, NumFolded());
  GoOn();
}

TEST_P(DBDeltaFoldTest, WaitsForARunningFlush) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  std::promise<void> flushing;
  std::promise<void> waits;
  std::thread flusher;
  At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
    DoPut("c", Long("over"));
    At("BuildTable:BeforeFinishBuildTable", [&] {
      flushing.set_value();
      waits.get_future().wait();
    });
    flusher = std::thread([this] { ASSERT_OK(Flush()); });
    flushing.get_future().wait();
  });
  At("DBStrata::BeginDeltaFold:Waits", [&] { waits.set_value(); });
  ASSERT_OK(Collect());
  flusher.join();
  EXPECT_EQ(10, NumFolded());
  CheckNoOperands();
  GoOn();
}

TEST_P(DBDeltaFoldTest, DoesNotWaitForEver) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::BeginDeltaFold:MaxWait",
      [](void* arg) { *static_cast<uint64_t*>(arg) = 0; });
  std::promise<void> flushing;
  std::promise<void> given_up;
  std::thread flusher;
  At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
    no_more_folds_ = true;
    DoMerge("c", "3");
    DoPut("f", Long("over"));
    At("BuildTable:BeforeFinishBuildTable", [&] {
      flushing.set_value();
      given_up.get_future().wait();
    });
    flusher = std::thread([this] { ASSERT_OK(Flush()); });
    flushing.get_future().wait();
  });
  At("DBStrata::RunDeltaCollection:AfterEdit", [&] { given_up.set_value(); });
  ASSERT_OK(Collect());
  flusher.join();
  EXPECT_EQ(0, NumFolded());
  GoOn();
}

class DBDeltaFoldIngestionTest : public DBDeltaFoldTest {
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
                        testing::Values(Values::kInline, Values::kMap));

TEST_P(DBDeltaFoldIngestionTest, BeforeTheGate) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  WriteExternal({"b", "c"});
  ForceFolds();
  At("DBStrata::RunDeltaCollection:BeforeEdit", [this] {
    no_more_folds_ = true;
    Ingest();
  });
  ASSERT_OK(Collect());
  // The anchors tell what of it is hidden.
  EXPECT_EQ(10, NumFolded());
  CheckNoOperands();
  GoOn();
}

TEST_P(DBDeltaFoldIngestionTest, RangeDeletionBeforeTheGate) {
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
  At("DBStrata::RunDeltaCollection:BeforeEdit", [this] {
    no_more_folds_ = true;
    Ingest();
    expected_.erase("b");
    expected_.erase("c");
  });
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  CheckNoOperands();
  CheckAndCompact();
  GoOn();
}

// It sees what the fold has taken, and not what was ingested.
TEST_P(DBDeltaFoldIngestionTest, SnapshotBeforeTheGate) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  WriteExternal({"b", "c"});
  const auto before = expected_;
  const Snapshot* snapshot = nullptr;
  ForceFolds();
  At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
    no_more_folds_ = true;
    snapshot = db_->GetSnapshot();
    Ingest();
  });
  ASSERT_OK(Collect());
  ASSERT_NE(nullptr, snapshot);
  EXPECT_EQ(0, NumFolded());
  Check();
  CheckAll(before, snapshot);
  db_->ReleaseSnapshot(snapshot);
  GoOn();
}

TEST_P(DBDeltaFoldIngestionTest, WaitsForTheFold) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  WriteExternal({"b", "c"});
  ForceFolds();
  std::promise<void> waits;
  std::thread ingester;
  At("DBStrata::WaitForDeltaFolds:Waits", [&] { waits.set_value(); });
  At("DBStrata::BeginDeltaFold:Entered", [&] {
    ingester = std::thread([this] { Ingest(); });
    waits.get_future().wait();
  });
  ASSERT_OK(Collect());
  ingester.join();
  EXPECT_EQ(10, NumFolded());
  GoOn();
}

TEST_P(DBDeltaFoldIngestionTest, FoldWaitsForIt) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  // Of keys that the fold has nothing to do with.
  all_keys_.emplace_back("x");
  WriteExternal({"x"});
  ForceFolds();
  std::promise<void> running;
  std::promise<void> waits;
  std::atomic<int> num_edits{0};
  std::thread ingester;
  At("DBStrata::BeginDeltaFold:Waits", [&] { waits.set_value(); });
  At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
    no_more_folds_ = true;
    // Without the mutex. The first edit of the ingestion is that which reserves
    // file numbers: it does not run yet.
    SyncPoint::GetInstance()->SetCallBack(
        "VersionSet::LogAndApply:WriteManifest", [&](void*) {
          if (++num_edits == 2) {
            running.set_value();
            waits.get_future().wait();
          }
        });
    ingester = std::thread([this] { Ingest(); });
    running.get_future().wait();
  });
  ASSERT_OK(Collect());
  ingester.join();
  // There is a new generation, but no file that was read is gone.
  EXPECT_EQ(10, NumFolded());
  GoOn();
}

namespace {

// Has an opinion of values only, and only while it is told to.
class SwitchedFilter : public CompactionFilter {
 public:
  SwitchedFilter(const std::atomic<bool>* on, bool skips)
      : on_(on), skips_(skips) {}

  const char* Name() const override { return "SwitchedFilter"; }
  Decision FilterV2(int /*level*/, const Slice& key, ValueType value_type,
                    const Slice& /*existing_value*/, std::string* new_value,
                    std::string* skip_until) const override {
    if (!*on_ || value_type == ValueType::kMergeOperand) {
      return Decision::kKeep;
    }
    if (skips_) {
      *skip_until = "z";
      return Decision::kRemoveAndSkipUntil;
    }
    if (key == "c") {
      return Decision::kRemove;
    }
    if (key == "d") {
      *new_value = "changed";
      return Decision::kChangeValue;
    }
    return Decision::kKeep;
  }

 private:
  const std::atomic<bool>* const on_;
  const bool skips_;
};

class SkippingFilters : public CompactionFilterFactory {
 public:
  explicit SkippingFilters(const std::atomic<bool>* on) : on_(on) {}

  const char* Name() const override { return "SkippingFilters"; }
  bool ShouldFilterTableFileCreation(
      TableFileCreationReason /*reason*/) const override {
    return true;
  }
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& /*context*/) override {
    return std::make_unique<SwitchedFilter>(on_, /*skips=*/true);
  }

 private:
  const std::atomic<bool>* const on_;
};

}  // namespace

// What a compaction's filter has taken away after a fold has read it does not
// come back, with and without merged values: the fold is given up. The
// compaction began before there were operands, so it did not hold the values.
TEST_P(DBDeltaFoldTest, FilteredBeforeTheGate) {
  for (const bool with_cache : {false, true}) {
    std::atomic<bool> filters{false};
    const SwitchedFilter filter(&filters, /*skips=*/false);
    expected_.clear();
    all_keys_.clear();
    num_picked_ = 0;
    Options options = DeltaOptions();
    options.enable_merged_value_cache = with_cache;
    options.compaction_filter = &filter;
    DestroyAndReopen(options);
    WriteBases();
    PausedCompaction compaction(this);
    WriteOperands();
    Check();
    ForceFolds();
    At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
      filters = true;
      compaction.Finish();
      filters = false;
      expected_["c"] = ",1," + Long("2");
      expected_["d"] = "changed,1," + Long("2");
      EXPECT_EQ(0, NumFolded());
      Check();
    });
    ASSERT_OK(Collect());
    EXPECT_EQ("changed,1," + Long("2"), expected_["d"]);
    EXPECT_GT(num_picked_, 1);
    Check();
    GoOn();
    Close();
  }
}

// Nor if the compaction is still on its way to the MANIFEST.
TEST_P(DBDeltaFoldTest, FilteredWhileItIsCommitted) {
  std::atomic<bool> filters{false};
  const SwitchedFilter filter(&filters, /*skips=*/false);
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  WriteBases();
  PausedCompaction compaction(this);
  WriteOperands();
  Check();
  ForceFolds();
  std::promise<void> writes;
  std::promise<void> go_on;
  std::atomic<bool> goes_on{false};
  const auto let_go = [&] {
    if (!goes_on.exchange(true)) {
      go_on.set_value();
    }
  };
  At("DBStrata::BeginDeltaFold:BeforeEdit", let_go);
  At("DBStrata::EndDeltaFold:BeforeSettle", let_go);
  At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
    filters = true;
    At("VersionSet::LogAndApply:WriteManifest", [&] {
      filters = false;
      expected_["c"] = ",1," + Long("2");
      expected_["d"] = "changed,1," + Long("2");
      writes.set_value();
      go_on.get_future().wait();
    });
    compaction.GoOn();
    writes.get_future().wait();
  });
  ASSERT_OK(Collect());
  compaction.Finish();
  EXPECT_EQ("changed,1," + Long("2"), expected_["d"]);
  EXPECT_GT(num_picked_, 1);
  GoOn();
}

// A filter that is asked when there are operands decides nothing: it is held
// until the values are whole.
TEST_P(DBDeltaFoldTest, FilterIsHeldBeforeTheGate) {
  std::atomic<bool> filters{false};
  const SwitchedFilter filter(&filters, /*skips=*/false);
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  WriteFoldable();
  ForceFolds();
  At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
    filters = true;
    CompactAllFiles();
    filters = false;
    Check();
  });
  ASSERT_OK(Collect());
  Check();
  GoOn();
}

// What a filter does elsewhere is no reason to give up.
TEST_P(DBDeltaFoldTest, OthersFiltered) {
  std::atomic<bool> filters{false};
  const SwitchedFilter filter(&filters, /*skips=*/true);
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  WriteFoldable();
  // A file of its own, which the compaction before the jobs leaves alone.
  CompactAllFiles();
  DoPut("x", Long("x"));
  ASSERT_OK(Flush());
  ForceFolds();
  int num_filtered = 0;
  At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
    no_more_folds_ = true;
    filters = true;
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    for (const LiveFileMetaData& file : files) {
      if (file.smallestkey == "x") {
        ++num_filtered;
        ASSERT_OK(db_->CompactFiles(CompactionOptions(), {file.name},
                                    /*output_level=*/3));
      }
    }
    filters = false;
  });
  CompactRangeOptions without_rewriting;
  without_rewriting.bottommost_level_compaction =
      BottommostLevelCompaction::kSkip;
  ASSERT_OK(db_->CompactRange(without_rewriting, nullptr, nullptr));
  EXPECT_EQ(1, num_filtered);
  EXPECT_EQ(10, NumFolded());
  expected_.erase("x");
  CheckNoOperands();
  GoOn();
}

// A tailing iterator that is among the operands of a key when they are combined
// or folded has all of them once.
TEST_P(DBDeltaFoldTest, TailingIterator) {
  for (const bool is_fold : {false, true}) {
    expected_.clear();
    all_keys_.clear();
    Options options = DeltaOptions();
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    DestroyAndReopen(options);
    all_keys_ = {"a", "b"};
    ASSERT_OK(Put("a", "base"));
    ASSERT_OK(Put("b", "base"));
    ASSERT_OK(Flush());
    for (const char* operand : {"1", "2", "3"}) {
      ASSERT_OK(Merge("a", operand));
      ASSERT_OK(Merge("b", operand));
      ASSERT_OK(Flush());
    }
    expected_ = {{"a", "base,1,2,3"}, {"b", "base,1,2,3"}};
    no_more_folds_ = !is_fold;
    ForceFolds();
    std::map<std::string, std::string> found;
    ReadOptions read_options;
    read_options.tailing = true;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    At("DBIter::MergeValuesNewToOld:PushedFirstOperand", [&] {
      std::thread([this] { ASSERT_OK(Collect()); }).join();
      DoPut("c", "new");
      ASSERT_OK(Flush());
    });
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      found[iter->key().ToString()] = iter->value().ToString();
    }
    ASSERT_OK(iter->status());
    // It also sees what came meanwhile.
    EXPECT_EQ(expected_, found);
    EXPECT_EQ(is_fold ? 0 : 1, NumOperands("a"));
    DisableCallBacks();
  }
}

// A reader of several column families has its sequence number when nothing can
// come between that and the Versions.
TEST_P(DBDeltaFoldTest, ReaderOfTwoFamilies) {
  Options options = DeltaOptions();
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"two"}, options);
  for (int cf = 0; cf < 2; ++cf) {
    ASSERT_OK(Put(cf, "k", "base"));
    ASSERT_OK(Flush(cf));
    ASSERT_OK(Merge(cf, "k", "1"));
    ASSERT_OK(Flush(cf));
  }
  At("DBImpl::MultiCFSnapshot::LastTry", [this] {
    ASSERT_OK(Merge(0, "k", "2"));
    ASSERT_OK(Flush(0));
    ASSERT_OK(Collect(0));
  });
  ReadOptions read_options;
  read_options.read_tier = kPersistedTier;
  std::vector<std::string> values;
  for (const Status& s :
       db_->MultiGet(read_options, handles_, {"k", "k"}, &values)) {
    ASSERT_OK(s);
  }
  EXPECT_EQ("base,1,2", values[0]);
  EXPECT_EQ("base,1", values[1]);
}

// A key with operands beyond a bucket's size, which cannot be split, is folded,
// however large they are.
TEST_P(DBDeltaFoldTest, LongChain) {
  Options options = DeltaOptions();
  options.delta_bucket_size = 4096;
  DestroyAndReopen(options);
  all_keys_ = {"k"};
  DoPut("k", Long("k"));
  ASSERT_OK(Flush());
  // Hardly any other key has several.
  for (int i = 0; i < 100; ++i) {
    all_keys_.push_back("m" + std::to_string(i));
    DoMerge(all_keys_.back(), "1");
  }
  for (int i = 0; i < 9; ++i) {
    DoMerge("k", std::string(size_t{1} << 20, static_cast<char>('0' + i)));
    ASSERT_OK(Flush());
  }
  ASSERT_OK(Collect());
  EXPECT_EQ(9, NumOperands("k"));
  DoMerge("k", Long("last"));
  ASSERT_OK(Flush());
  ASSERT_OK(Collect());
  EXPECT_EQ(0, NumOperands("k"));
  GoOn();
}

// A fold of which a filter leaves nothing at all begins a new generation of
// merged values as well.
TEST_P(DBDeltaFoldTest, FilterLeavesNothing) {
  std::atomic<bool> filters{false};
  Options options = DeltaOptions();
  options.enable_merged_value_cache = true;
  options.compaction_filter_factory =
      std::make_shared<SkippingFilters>(&filters);
  DestroyAndReopen(options);
  WriteFoldable();
  ForceFolds();
  At("DBStrata::RunDeltaCollection:Begin", [&] {
    // Merged values are kept now.
    Check();
    EXPECT_GT(options.statistics->getTickerCount(MERGED_VALUE_CACHE_HIT), 0);
    filters = true;
  });
  ASSERT_OK(Collect());
  EXPECT_GT(num_picked_, 0);
  CheckNoOperands();
  // The compaction after the fold has shown it what is below the operands.
  CheckAll({});
  Restart();
  CheckAll({});
}

// A reader that knows what it may see, but has no Version yet, gets one without
// the operands: then there must be a value that it sees.
TEST_P(DBDeltaFoldTest, ReaderWithoutAVersion) {
  const Options options = DeltaOptions();
  if (!options.enable_blob_address_map) {
    return;  // it takes the Version first
  }
  DestroyAndReopen(options);
  WriteFoldable();
  const std::map<std::string, std::string> before = expected_;
  ForceFolds();
  std::promise<void> registered;
  std::promise<void> go_on;
  std::thread reader;
  At("DBStrata::RunDeltaCollection:BeforeEdit", [&] {
    no_more_folds_ = true;
    At("DBStrata::RegisterReadBound:Registered", [&] {
      registered.set_value();
      go_on.get_future().wait();
    });
    reader = std::thread([&] {
      const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
      CheckIterator(before, iter.get());
    });
    registered.get_future().wait();
    DoPut("b", "new");
    DoPut("c", Long("new"));
    DoDelete("d");
    ASSERT_OK(Flush());
  });
  ASSERT_OK(Collect());
  go_on.set_value();
  reader.join();
  Check();
  GoOn();
}

namespace {

// Its filters have a snapshot of the DB as long as they live.
class SnapshotFilters : public CompactionFilterFactory {
 public:
  const char* Name() const override { return "SnapshotFilters"; }
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& /*context*/) override {
    ++num_made;
    return std::make_unique<Filter>(db);
  }

  DB* db = nullptr;
  std::atomic<int> num_made{0};

 private:
  class Filter : public CompactionFilter {
   public:
    explicit Filter(DB* of_db) : snapshot_(of_db) {}
    const char* Name() const override { return "SnapshotFilter"; }

   private:
    const ManagedSnapshot snapshot_;
  };
};

}  // namespace

// What is the user's own may use the DB.
TEST_P(DBDeltaFoldTest, FiltersThatUseTheDB) {
  const auto filters = std::make_shared<SnapshotFilters>();
  Options options = DeltaOptions();
  DestroyAndReopen(options);
  WriteFoldable();
  options.compaction_filter_factory = filters;
  options.avoid_flush_during_recovery = true;
  Reopen(options);
  filters->db = db_.get();
  ForceFolds();
  const int before = filters->num_made;
  // A merge and a collection.
  ASSERT_OK(Collect());
  EXPECT_GT(filters->num_made, before);
  EXPECT_EQ(10, NumFolded());
  Check();
  DisableCallBacks();
}

// An operand that was flushed beside the deletion of what is below it may be
// there afterwards, or not. But it does not bring back what is older.
TEST_P(DBDeltaFoldTest, FilesDeletedBesideAFlush) {
  Options options = DeltaOptions();
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  options.disable_auto_compactions = false;
  options.level0_file_num_compaction_trigger = 100;
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", "base"));
  ASSERT_OK(Put("m", "base"));
  ASSERT_OK(Flush());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  for (const char* key : {"k", "m", "m"}) {
    ASSERT_OK(Merge(key, "1"));
    ASSERT_OK(Flush());
  }
  std::promise<void> begun;
  std::promise<void> go_on;
  std::atomic<bool> goes_on{false};
  const auto let_go = [&](void*) {
    if (!goes_on.exchange(true)) {
      go_on.set_value();
    }
  };
  At("FlushJob::WriteLevel0Table", [&] {
    begun.set_value();
    go_on.get_future().wait();
  });
  ASSERT_OK(Merge("k", "2"));
  std::thread flusher([this] { ASSERT_OK(Flush()); });
  begun.get_future().wait();
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::BeginDeltaFileDeletion:Waits", let_go);
  At("DeltaFileDeletion::Write:Synced", [&] {
    let_go(nullptr);
    flusher.join();
    // The flush has made a merge possible.
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  });
  ASSERT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), nullptr,
                               nullptr));
  const std::string got = Get("k");
  EXPECT_TRUE(got == "2" || got == "NOT_FOUND") << got;
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  EXPECT_EQ(got, Get("k"));
  ASSERT_OK(Collect());
  EXPECT_EQ(got, Get("k"));
  DisableCallBacks();
}

TEST_P(DBDeltaFoldIngestionTest, FilesDeletedBeforeTheGate) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  At("DBStrata::RunDeltaCollection:BeforeEdit", [this] {
    no_more_folds_ = true;
    ASSERT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), nullptr,
                                 nullptr));
    expected_.clear();
  });
  ASSERT_OK(Collect());
  EXPECT_EQ(0, NumFolded());
  Check();
  CheckNoOperands();
}

TEST_P(DBDeltaFoldIngestionTest, DeletionOfFilesWaitsForTheFold) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  std::promise<void> waits;
  std::thread deleter;
  At("DBStrata::WaitForDeltaFolds:Waits", [&] { waits.set_value(); });
  At("DBStrata::BeginDeltaFold:Entered", [&] {
    deleter = std::thread([this] {
      ASSERT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(),
                                   nullptr, nullptr));
    });
    waits.get_future().wait();
  });
  ASSERT_OK(Collect());
  deleter.join();
  EXPECT_EQ(10, NumFolded());
  // What was folded is in level 0, and stays.
  expected_.erase("f");
  Check();
  CheckNoOperands();
}

TEST_P(DBDeltaFoldTest, MergesThatFail) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ASSERT_OK(Merge("g", "bad"));
  ASSERT_OK(Flush());
  ForceFolds();
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  EXPECT_EQ(1, NumOperands("g"));
  std::string value;
  EXPECT_TRUE(db_->Get(ReadOptions(), "g", &value).IsCorruption());
  // It can be overwritten.
  all_keys_.emplace_back("g");
  DoPut("g", "good");
  ASSERT_OK(Flush());
  GoOn();
}

// Nothing is lost, and it works the next time.
TEST_P(DBDeltaFoldTest, FailsAtEachStep) {
  for (const char* step :
       {"DBStrata::RunDeltaCollection:BeforeEdit",
        "DeltaFoldCommit::Write:Validated", "DeltaFoldCommit::Write:Built",
        "DeltaFoldCommit::Write:Synced", "DeltaFoldCommit::Write:Published"}) {
    for (const bool try_again : {false, true}) {
      SCOPED_TRACE(std::string(step) + (try_again ? ", try again" : ""));
      no_more_folds_ = false;
      expected_.clear();
      all_keys_.clear();
      DestroyAndReopen(DeltaOptions());
      WriteFoldable();
      ForceFolds();
      std::atomic<int> num_failures{0};
      SyncPoint::GetInstance()->SetCallBack(step, [&](void* arg) {
        if (num_failures.fetch_add(1) == 0) {
          no_more_folds_ = true;
          *static_cast<Status*>(arg) = try_again ? Status::TryAgain("Injected")
                                                 : Status::IOError("Injected");
        }
      });
      const Status s = Collect();
      EXPECT_EQ(try_again, s.ok()) << s.ToString();
      EXPECT_LE(1, num_failures);
      EXPECT_EQ(0, NumFolded());
      Check();
      DisableCallBacks();
      Restart();
      Check();
      CheckFiles();
      no_more_folds_ = false;
      // With "try again" the bucket has been collected without a fold, and
      // there must be something to take into it.
      DoMerge("b", "3");
      ASSERT_OK(Flush());
      ForceFolds();
      ASSERT_OK(Collect());
      Check();
      CheckNoOperands();
      GoOn();
    }
  }
}

TEST_P(DBDeltaFoldTest, CrashesAtEachStep) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  for (const char* step :
       {"DBStrata::RunDeltaCollection:BeforeEdit",
        "DBStrata::BeginDeltaFold:Entered", "DeltaFoldCommit::Write:Built",
        "DeltaFoldCommit::Write:Synced",
        "VersionSet::LogAndApply:WriteManifest",
        "VersionSet::LogAndApply:WriteManifestDone",
        "DBStrata::EndDeltaFold:BeforeSettle",
        "DBStrata::RunDeltaCollection:AfterEdit"}) {
    SCOPED_TRACE(step);
    expected_.clear();
    all_keys_.clear();
    Options options = DeltaOptions();
    options.env = fault_env.get();
    DestroyAndReopen(options);
    WriteFoldable();
    ForceFolds();
    // Only after the fold has begun: merges write the MANIFEST, too.
    At("DeltaValueFolder::Fold",
       [&] { At(step, [&] { fault_fs->SetFilesystemActive(false); }); });
    Collect().PermitUncheckedError();
    DisableCallBacks();
    EXPECT_FALSE(fault_fs->IsFilesystemActive());
    Close();
    ASSERT_OK(fault_fs->DropUnsyncedFileData());
    fault_fs->ResetState();
    fault_fs->SetFilesystemActive(true);
    Reopen(options);
    Check();
    ASSERT_OK(Collect());
    GoOn();
    Close();
  }
  last_options_.env = env_;
}

// Whatever a fold that did not come to its end has left, a repair finds each
// operand once, in a value or by itself, for good.
TEST_P(DBDeltaFoldTest, CrashesAndIsRepaired) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  struct Step {
    const char* point;
    int call;
  };
  for (const Step& step : {Step{"DBStrata::RunDeltaCollection:BeforeEdit", 1},
                           Step{"DeltaFoldCommit::Write:Built", 1},
                           Step{"DeltaFoldCommit::Write:Synced", 1},
                           Step{"DeltaFileBuilder::Publish:BeforeRename", 1},
                           Step{"DeltaFileBuilder::Publish:BeforeRename", 2},
                           Step{"DeltaFoldCommit::Write:Published", 1},
                           Step{"DBStrata::BeginDeltaFold:BeforeEdit", 1},
                           Step{"VersionSet::LogAndApply:WriteManifest", 1},
                           Step{"VersionSet::LogAndApply:WriteManifestDone", 1},
                           Step{"DBStrata::EndDeltaFold:BeforeSettle", 1}}) {
    // With and without operands that stay; and what was not synced may be there
    // or not.
    for (const bool some_stay : {false, true}) {
      for (const bool files_vanish : {false, true}) {
        if (step.call == 2 && !some_stay) {
          continue;  // one file only
        }
        SCOPED_TRACE(std::string(step.point) + " " + std::to_string(step.call) +
                     (some_stay ? " some stay" : "") +
                     (files_vanish ? " files vanish" : ""));
        expected_.clear();
        all_keys_.clear();
        Options options = DeltaOptions();
        options.env = fault_env.get();
        DestroyAndReopen(options);
        WriteFoldable();
        ASSERT_OK(Collect());
        EXPECT_LT(0, NumOperands("b"));
        DoMerge("b", "3");
        ASSERT_OK(Flush());
        const Snapshot* snapshot = nullptr;
        if (some_stay) {
          // Of "c", and an anchor of "x". A repair takes all tables to level 0,
          // in the order of their largest sequence numbers. So "x" has one of
          // its own: where older keys are in it, too, point reads would find
          // those before the newer ones of other tables.
          all_keys_.emplace_back("x");
          DoMerge("x", "1");
          snapshot = db_->GetSnapshot();
          DoMerge("c", "3");
          DoPut("x", Long("over"));
          ASSERT_OK(Flush());
        }
        // A repair finds what is obsolete, too.
        CheckFiles();
        ForceFolds();
        const auto calls = std::make_shared<std::atomic<int>>(0);
        At("DeltaValueFolder::Fold", [&, calls] {
          SyncPoint::GetInstance()->SetCallBack(step.point, [&, calls](void*) {
            if (calls->fetch_add(1) + 1 == step.call) {
              fault_fs->SetFilesystemActive(false);
            }
          });
        });
        Collect().PermitUncheckedError();
        DisableCallBacks();
        ASSERT_FALSE(fault_fs->IsFilesystemActive());
        if (snapshot != nullptr) {
          db_->ReleaseSnapshot(snapshot);
        }
        Close();
        ASSERT_OK(fault_fs->DropUnsyncedFileData());
        fault_fs->SetFilesystemActive(true);
        if (files_vanish) {
          ASSERT_OK(fault_fs->DeleteFilesCreatedAfterLastDirSync(IOOptions(),
                                                                 nullptr));
        }
        fault_fs->ResetState();
        LoseManifest();
        ASSERT_OK(RepairDB(dbname_, options));
        Reopen(options);
        CheckAndCompact();
        GoOn();
        Close();
      }
    }
  }
  last_options_.env = env_;
}

// Some file systems take an fsync of a directory because of new files for one
// that has nothing to do, as these are durable anyway. That is not so of
// renamed ones.
TEST_P(DBDeltaFoldTest, NamesAreDurableBeforeTheEdit) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  OpenFoldable(name_env.get());
  // Operands that stay: there are files of both kinds.
  const Snapshot* const snapshot = db_->GetSnapshot();
  DoMerge("c", "3");
  ASSERT_OK(Flush());
  ForceFolds();
  name_fs->TakeEvents();
  ASSERT_OK(Collect());
  EXPECT_LT(0, NumFolded());
  std::set<std::string> not_durable;
  int num_renamed = 0;
  const std::string renamed = "rename ";
  const std::string synced = "sync renamed ";
  for (const std::string& event : name_fs->TakeEvents()) {
    if (Slice(event).starts_with(renamed)) {
      not_durable.insert(event.substr(renamed.size()));
      ++num_renamed;
    } else if (Slice(event).starts_with(synced)) {
      not_durable.erase(event.substr(synced.size()));
    } else if (event == "sync all") {
      not_durable.clear();
    } else if (event == "write MANIFEST") {
      EXPECT_EQ(std::set<std::string>(), not_durable);
    }
  }
  EXPECT_LT(0, num_renamed);
  EXPECT_EQ(std::set<std::string>(), not_durable);
  db_->ReleaseSnapshot(snapshot);
  GoOn();
  Close();
  last_options_.env = env_;
}

// The SST file of a fold that is given up is deleted once no delta file without
// its operands is left, for good. That is so, too, if a rename was done and
// reported as an error.
TEST_P(DBDeltaFoldTest, WithdrawsDeltaFilesBeforeTheirValues) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  for (const bool denies_renames : {false, true}) {
    SCOPED_TRACE(denies_renames ? "denies renames" : "fails after them");
    OpenFoldable(name_env.get());
    ForceFolds();
    name_fs->denies_renames = denies_renames;
    SyncPoint::GetInstance()->SetCallBack(
        "DeltaFoldCommit::Write:Published", [&](void* arg) {
          Status* const s = static_cast<Status*>(arg);
          EXPECT_EQ(denies_renames, s->IsIOError()) << s->ToString();
          *s = Status::IOError("Injected");
        });
    name_fs->TakeEvents();
    EXPECT_NOK(Collect());
    name_fs->denies_renames = false;
    std::set<std::string> published;
    // Since the first of them has come.
    bool all_gone = true;
    bool sst_is_gone = false;
    const std::string renamed = "rename ";
    const std::string deleted = "delete ";
    for (const std::string& event : name_fs->TakeEvents()) {
      if (Slice(event).starts_with(renamed)) {
        published.insert(event.substr(renamed.size()));
        all_gone = false;
        sst_is_gone = false;
      } else if (event == "sync deleted" || event == "sync all") {
        all_gone = published.empty();
      } else if (Slice(event).starts_with(deleted)) {
        published.erase(event.substr(deleted.size()));
        if (Slice(event).ends_with(".sst")) {
          EXPECT_TRUE(all_gone) << event;
          sst_is_gone = true;
        }
      }
    }
    EXPECT_EQ(std::set<std::string>(), published);
    EXPECT_TRUE(all_gone);
    EXPECT_TRUE(sst_is_gone);
    dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
    EXPECT_EQ(0, NumUnknownTables());
    Check();
    DisableCallBacks();
    Restart();
    GoOn();
    Close();
  }
  last_options_.env = env_;
}

// The delta files without the operands have their names, and cannot be deleted.
// Whoever repairs the DB takes them for the newest ones.
TEST_P(DBDeltaFoldTest, ValuesStayWithDeltaFilesThatStay) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  for (const bool try_again : {false, true}) {
    SCOPED_TRACE(try_again ? "try again" : "error");
    const Options options = OpenFoldable(name_env.get());
    CheckFiles();
    ForceFolds();
    std::atomic<int> num_failures{0};
    SyncPoint::GetInstance()->SetCallBack(
        "DeltaFoldCommit::Write:Published", [&](void* arg) {
          if (num_failures.fetch_add(1) == 0) {
            no_more_folds_ = true;
            name_fs->keeps_delta_files = true;
            *static_cast<Status*>(arg) = try_again
                                             ? Status::TryAgain("Injected")
                                             : Status::IOError("Injected");
          }
        });
    const Status s = Collect();
    EXPECT_EQ(try_again, s.ok()) << s.ToString();
    EXPECT_EQ(1, num_failures);
    EXPECT_EQ(0, NumFolded());
    Check();
    // Not even by a scan for files that nobody needs.
    dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
    dbfull()->TEST_DeleteObsoleteFiles();
    EXPECT_EQ(1, NumUnknownTables());
    DisableCallBacks();
    LoseManifest();
    name_fs->keeps_delta_files = false;
    ASSERT_OK(RepairDB(dbname_, options));
    Reopen(options);
    CheckAndCompact();
    GoOn();
    Close();
  }
  last_options_.env = env_;
}

TEST_P(DBDeltaFoldTest, NextOpenDeletesWhatHasStayed) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  const Options options = OpenFoldable(name_env.get());
  ForceFolds();
  SyncPoint::GetInstance()->SetCallBack(
      "DeltaFoldCommit::Write:Published", [&](void* arg) {
        name_fs->keeps_delta_files = true;
        *static_cast<Status*>(arg) = Status::IOError("Injected");
      });
  EXPECT_NOK(Collect());
  dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
  EXPECT_EQ(1, NumUnknownTables());
  DisableCallBacks();
  Close();
  name_fs->keeps_delta_files = false;
  Reopen(options);
  CheckFiles();
  GoOn();
  Close();
  last_options_.env = env_;
}

// Operands that a fold has made into a value, whose WAL another column family
// still needs. No delta file that is left has any of the key.
TEST_P(DBDeltaFoldTest, RepairFindsFoldedOperandsInAWal) {
  const Options options = DeltaOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  all_keys_ = {"k", "s"};
  ASSERT_OK(Put(1, "a", "v"));
  ASSERT_OK(Flush(1));
  DoPut("k", Long("k"));
  DoPut("s", Long("s"));
  ASSERT_OK(Flush(0));
  ASSERT_OK(Put(1, "b", "not flushed"));
  DoMerge("k", "1");
  DoMerge("s", "1");
  ASSERT_OK(Flush(0));
  // So that the last operand of "s" cannot be folded.
  const Snapshot* const snapshot = db_->GetSnapshot();
  DoMerge("s", "2");
  ASSERT_OK(Flush(0));
  ForceFolds();
  ASSERT_OK(Collect());
  DisableCallBacks();
  EXPECT_EQ(1, NumFolded());
  EXPECT_EQ(0, NumOperands("k"));
  EXPECT_EQ(2, NumOperands("s"));
  db_->ReleaseSnapshot(snapshot);
  Check();
  CheckFiles();
  LoseManifest();
  ASSERT_OK(
      RepairDB(dbname_, options,
               {{kDefaultColumnFamilyName, options}, {"other", options}}));
  ReopenWithColumnFamilies({"default", "other"}, options);
  EXPECT_EQ("v", Get(1, "a"));
  EXPECT_EQ("not flushed", Get(1, "b"));
  CheckAndCompact();
  ReopenWithColumnFamilies({"default", "other"}, options);
  Check();
}

TEST_P(DBDeltaFoldTest, ManyKeysBySomeFolds) {
  DestroyAndReopen(DeltaOptions());
  for (int i = 0; i < 2000; ++i) {
    const std::string key = Key(i);
    all_keys_.push_back(key);
    if (i % 3 != 0) {
      DoPut(key, i % 3 == 1 ? "short" : Long(key));
    }
  }
  ASSERT_OK(Flush());
  ASSERT_OK(Collect());
  for (int round = 0; round < 4; ++round) {
    for (int i = round; i < 2000; i += 2 + round) {
      DoMerge(Key(i), std::to_string(round));
      if (i % 7 == 0) {
        DoMerge(Key(i), Long(std::to_string(round)));
      }
    }
    ASSERT_OK(Flush());
    if (round % 2 == 1) {
      ForceFolds();
      ASSERT_OK(Collect());
      CheckNoOperands();
      DisableCallBacks();
    }
    Check();
  }
  Restart();
  Check();
}

TEST_P(DBDeltaFoldTest, AtomicFlush) {
  Options options = DeltaOptions();
  options.atomic_flush = true;
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  ASSERT_OK(Put(0, "k", Long("base")));
  ASSERT_OK(Put(1, "k", Long("base")));
  ASSERT_OK(Flush({0, 1}));
  ASSERT_OK(Merge(0, "k", "1"));
  ASSERT_OK(Merge(1, "k", "1"));
  ASSERT_OK(Flush({0, 1}));
  ForceFolds();
  std::promise<void> parked;
  At("FlushOrderGate::Park:Parked", [&] { parked.set_value(); });
  At("DBStrata::BeginDeltaFold:Entered", [&] {
    ASSERT_OK(Put(0, "k", "over"));
    ASSERT_OK(Put(1, "k", Long("over")));
    FlushOptions flush_options;
    flush_options.wait = false;
    ASSERT_OK(db_->Flush(flush_options, handles_));
    parked.get_future().wait();
  });
  ASSERT_OK(Collect(1));
  EXPECT_EQ(1, NumFolded());
  ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable(handles_[0]));
  ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable(handles_[1]));
  EXPECT_EQ("over", Get(0, "k"));
  EXPECT_EQ(Long("over"), Get(1, "k"));
  DisableCallBacks();
  ReopenWithColumnFamilies({"default", "other"}, options);
  EXPECT_EQ("over", Get(0, "k"));
  EXPECT_EQ(Long("over"), Get(1, "k"));
}

TEST_P(DBDeltaFoldTest, DroppedColumnFamily) {
  const Options options = DeltaOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  ASSERT_OK(Put(1, "k", Long("base")));
  ASSERT_OK(Flush(1));
  ASSERT_OK(Merge(1, "k", "1"));
  ASSERT_OK(Flush(1));
  ForceFolds();
  At("DBStrata::BeginDeltaFold:Entered",
     [this] { ASSERT_OK(db_->DropColumnFamily(handles_[1])); });
  EXPECT_TRUE(Collect(1).IsColumnFamilyDropped());
  EXPECT_EQ(0, NumFolded());
  // The handle still reads it.
  EXPECT_EQ(Long("base") + ",1", Get(1, "k"));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.pop_back();
  CheckFiles();
}

// Values under the address map: the map names what files do, at all times.
TEST_P(DBDeltaFoldTest, AddressMapStaysExact) {
  if (GetParam() != Values::kMap && GetParam() != Values::kMapVersioned) {
    return;
  }
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  const auto before = expected_;
  ForceFolds();
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  // All that were not inline: a's value is long, because of its operands.
  for (int i = 0; i < 2; ++i) {
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
    CheckIterator(before, iter.get());
    Check();
  }
  // What was kept for it goes, or is found by a new open.
  iter.reset();
  GoOn();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
