//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests folds of merge operands into values in real databases: the answers of
// readers, events during a fold, and failures.

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/address_map_verifier.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/db_delta_model_test_util.h"
#include "db/delta/delta_name_fs_test_util.h"
#include "db/delta/delta_picker.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "utilities/fault_injection_fs.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::AppendOperator;
using delta_test::SetValues;
using Values = delta_test::ValuePlace;

class DBDeltaFoldTest : public DeltaDBTestBase,
                        public testing::WithParamInterface<Values> {
 protected:
  DBDeltaFoldTest() : DeltaDBTestBase("db_delta_fold_test") {}

  Options DeltaOptions() const {
    Options options = DeltaDBTestBase::DeltaOptions();
    options.merge_operator = std::make_shared<AppendOperator>();
    // Tests call Resume() on their own.
    options.max_bgerror_resume_count = 0;
    options.num_levels = 4;
    SetValues(GetParam(), &options);
    return options;
  }

  static std::string Long(const std::string& text) {
    return text + std::string(30, '.');
  }

  // ---- The model: the value of each key; a key that is absent is not found.

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
    CheckIterator(iter.get(), expected);
  }
  void Check() { CheckAll(expected_); }

  // ---- Operands that are ready to be folded.

  // Writes keys with bases of all kinds in the tree, all flushed.
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
  // Writes two operands of each of these keys but "f", all flushed.
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

  // A compaction of all files, with the filter of the options. It begins in the
  // constructor and continues when GoOn() is called. If there are no operands
  // in delta files when it begins, it does not hold values for them
  // (DeltaHoldingFilter).
  class PausedCompaction {
   public:
    explicit PausedCompaction(DBDeltaFoldTest* test) {
      std::promise<void> began;
      EnableCallBackOnce("CompactFilesImpl:0", [this, &began](void*) {
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

  // Makes each collection fold, unless no_more_folds_ is set.
  void ForceFolds() {
    EnableCallBack(
        "DBStrata::BackgroundDeltaCollection::Begin:Picked", [this](void* arg) {
          auto* const pick = static_cast<DeltaPicker::Collection*>(arg);
          pick->plan.fold = !no_more_folds_;
          ++num_picked_;
        });
  }
  // Counts the folds whose values were compared with newer files before their
  // commit.
  void CountValidated() {
    EnableCallBack("DeltaFoldCommit::Write:Validated", [this](void* arg) {
      EXPECT_OK(*static_cast<Status*>(arg));
      ++num_validated_;
    });
  }
  Status Collect(int cf = -1) {
    return db_->CompactRange(CompactRangeOptions(),
                             cf < 0 ? db_->DefaultColumnFamily() : handles_[cf],
                             nullptr, nullptr);
  }
  uint64_t NumFolded() { return Ticker(DELTA_OPERANDS_FOLDED); }
  void CheckNoOperands() {
    for (const std::string& key : all_keys_) {
      EXPECT_EQ(0, NumOperands(key)) << key;
    }
  }

  // Checks that there are delta files and that all are open, so that their
  // first readers need not open them.
  void CheckFilesAreOpen() {
    EXPECT_GT(Deltas().CountOpened([](const DeltaFileMeta& file) {
      ADD_FAILURE() << file.description().ToString();
    }),
              0);
  }

  // Checks that there is an SST file on disk for each live one, and no other.
  void CheckFiles() {
    DeleteObsoleteFiles();
    EXPECT_EQ(0, NumUnknownTables());
  }
  // Returns the number of SST files on disk that are in no Version.
  size_t NumUnknownTables() {
    std::vector<LiveFileMetaData> live;
    db_->GetLiveFilesMetaData(&live);
    return FilesOnDisk(kTableFile).size() - live.size();
  }

  // Checks that the address map has an entry for each value in the blob files,
  // and that the entries are those of the values.
  void CheckAddressMap() {
    // Removals from the map run in the background, and one may make another one
    // possible.
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
      ASSERT_OK(dbfull()->TEST_WaitForPurge());
    }
    ColumnFamilyData* const cfd = Family();
    ASSERT_OK(cfd->address_map_store()->map()->TEST_Check());
    AddressMapVerifier::Result result;
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(dbfull());
    const Status s = AddressMapVerifier::Verify(
        cfd, sv->current, AddressMapVerifier::Options(),
        [](const std::string& line) { ADD_FAILURE() << line; }, &result);
    dbfull()->CleanupSuperVersion(sv);
    ASSERT_OK(s);
    EXPECT_GE(result.values.load(), all_keys_.size());
  }

  // Compacts all SST files, with the filter of the options.
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

  // Opens a new DB with operands that are ready to be folded.
  Options OpenFoldable(Env* env) {
    expected_.clear();
    all_keys_.clear();
    no_more_folds_ = false;
    Options options = DeltaOptions();
    options.env = env;
    DestroyAndReopen(options);
    WriteFoldable();
    // Tests watch which files are deleted, and in which order.
    WaitForCompactOptions wait_options;
    wait_options.wait_for_purge = true;
    EXPECT_OK(db_->WaitForCompact(wait_options));
    return options;
  }
  // Checks that readers still find the same values when sequence numbers have
  // become zero and no longer tell which entries are older.
  void CheckAndCompact() {
    Check();
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(ForceCompaction());
      Check();
    }
  }

  void Restart() {
    // Reopen() resets last_options_ before it reads its argument.
    const Options options = last_options_;
    Reopen(options);
  }

  // Checks that later reads, writes and jobs are correct.
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
  std::atomic<int> num_validated_{0};
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
  // New operands are folded on top of folded values.
  DoMerge("a", "3");
  DoMerge("c", "3");
  ASSERT_OK(Flush());
  Check();
  ASSERT_OK(Collect());
  EXPECT_EQ(10 + 2, NumFolded());
  Check();
  CheckNoOperands();
  // Compactions process folded values as any others.
  ASSERT_OK(ForceCompaction());
  ASSERT_OK(ForceCompaction());
  Check();
  GoOn();
}

TEST_P(DBDeltaFoldTest, FoldKeepsOtherColumns) {
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

TEST_P(DBDeltaFoldTest, OperandsWithoutBasesBecomeValues) {
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

TEST_P(DBDeltaFoldTest, OperandsAcrossASnapshotAreNotFolded) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  const auto before = expected_;
  const Snapshot* const snapshot = db_->GetSnapshot();
  DoMerge("c", "3");
  ASSERT_OK(Flush());
  ForceFolds();
  ASSERT_OK(Collect());
  CheckFilesAreOpen();
  // The snapshot sees not all operands of "c", but all of the other keys'.
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

// An old iterator still finds its operands and bases after a fold, and after a
// compaction in which the values of the fold hide the bases.
TEST_P(DBDeltaFoldTest, OldIteratorsKeepOperandsAndBases) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  const auto before = expected_;
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ForceFolds();
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  CheckIterator(iter.get(), before);
  ASSERT_OK(ForceCompaction());
  CheckIterator(iter.get(), before);
  CheckAll(before, snapshot);
  ASSERT_OK(ForceCompaction());
  CheckIterator(iter.get(), before);
  DoPut("c", Long("overwritten"));
  DoPut("d", Long("overwritten"));
  ASSERT_OK(Flush());
  ASSERT_OK(ForceCompaction());
  CheckIterator(iter.get(), before);
  CheckAll(before, snapshot);
  iter.reset();
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(ForceCompaction());
  Check();
  GoOn();
}

// If a flush before the gate overwrites folded keys, the commit leaves out
// their values.
TEST_P(DBDeltaFoldTest, ValuesOverwrittenBeforeTheGateAreLeftOut) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
      [this](void*) {
        DoPut("a", "over");
        DoPut("c", Long("over"));
        DoDelete("d");
        ASSERT_OK(Flush());
      });
  CountValidated();
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  EXPECT_EQ(1, num_validated_);
  CheckNoOperands();
  GoOn();
}

TEST_P(DBDeltaFoldTest, ValuesRangeDeletedBeforeTheGateAreLeftOut) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
      [this](void*) {
        ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                   "b", "e"));
        for (const char* key : {"b", "c", "d"}) {
          expected_.erase(key);
        }
        ASSERT_OK(Flush());
      });
  CountValidated();
  ASSERT_OK(Collect());
  // The fold was not given up, and nothing was left for a second one.
  EXPECT_EQ(10, NumFolded());
  EXPECT_EQ(1, num_validated_);
  Check();
  CheckNoOperands();
  GoOn();
}

TEST_P(DBDeltaFoldTest, FoldWhoseValuesAreAllOverwrittenSucceeds) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
      [this](void*) {
        for (const char* key : {"a", "b", "c", "d", "e"}) {
          DoPut(key, "over");
        }
        ASSERT_OK(Flush());
      });
  CountValidated();
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  EXPECT_EQ(1, num_validated_);
  EXPECT_EQ("over", expected_["a"]);
  Check();
  CheckNoOperands();
  GoOn();
}

// A snapshot sees operands that the fold has taken and not the value that hides
// them, so the fold is given up.
TEST_P(DBDeltaFoldTest, FoldIsGivenUpForASnapshotBelowAnAnchor) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  const auto before = expected_;
  const Snapshot* snapshot = nullptr;
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
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

// A flush during the commit of a fold is parked, and its file gets a higher
// epoch.
TEST_P(DBDeltaFoldTest, FlushDuringTheCommitIsParked) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  std::promise<void> parked;
  EnableCallBackOnce("FlushOrderGate::Park:Parked",
                     [&](void*) { parked.set_value(); });
  EnableCallBackOnce("DBStrata::BeginDeltaFold:Entered", [&](void*) {
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

TEST_P(DBDeltaFoldTest, FoldWaitsForARunningFlush) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  std::promise<void> flushing;
  std::promise<void> waits;
  std::thread flusher;
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        DoPut("c", Long("over"));
        EnableCallBackOnce("BuildTable:BeforeFinishBuildTable", [&](void*) {
          flushing.set_value();
          waits.get_future().wait();
        });
        flusher = std::thread([this] { ASSERT_OK(Flush()); });
        flushing.get_future().wait();
      });
  EnableCallBackOnce("DBStrata::EnterDeltaFold:Waits",
                     [&](void*) { waits.set_value(); });
  ASSERT_OK(Collect());
  flusher.join();
  EXPECT_EQ(10, NumFolded());
  CheckNoOperands();
  GoOn();
}

TEST_P(DBDeltaFoldTest, FoldIsGivenUpIfAFlushTakesTooLong) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::EnterDeltaFold:MaxWait",
      [](void* arg) { *static_cast<uint64_t*>(arg) = 0; });
  std::promise<void> flushing;
  std::promise<void> given_up;
  std::thread flusher;
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        no_more_folds_ = true;
        DoMerge("c", "3");
        DoPut("f", Long("over"));
        EnableCallBackOnce("BuildTable:BeforeFinishBuildTable", [&](void*) {
          flushing.set_value();
          given_up.get_future().wait();
        });
        flusher = std::thread([this] { ASSERT_OK(Flush()); });
        flushing.get_future().wait();
      });
  EnableCallBackOnce("DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit",
                     [&](void*) { given_up.set_value(); });
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

TEST_P(DBDeltaFoldIngestionTest, ValuesUnderIngestedOnesAreLeftOut) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  WriteExternal({"b", "c"});
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
      [this](void*) {
        no_more_folds_ = true;
        Ingest();
      });
  ASSERT_OK(Collect());
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
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
      [this](void*) {
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

// A snapshot sees operands that the fold has taken and not the ingested values,
// so the fold is given up.
TEST_P(DBDeltaFoldIngestionTest, FoldIsGivenUpForASnapshotBelowAnIngestion) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  WriteExternal({"b", "c"});
  const auto before = expected_;
  const Snapshot* snapshot = nullptr;
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
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
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        no_more_folds_ = true;
        // This sync point is passed without the mutex. The first edit only
        // reserves file numbers for the ingestion, which is not counted as
        // running yet.
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
  // The ingestion begins a new generation, but no file that the fold has read
  // is gone.
  EXPECT_EQ(10, NumFolded());
  GoOn();
}

namespace {

// Removes or changes values while *on is true.
class SwitchedFilter : public CompactionFilter {
 public:
  SwitchedFilter(const std::atomic<bool>* on, bool skips)
      : on_(on), skips_(skips) {}

  // Returns how often the filter decided to remove or to change a value.
  int num_decisions() const { return num_decisions_; }
  const char* Name() const override { return "SwitchedFilter"; }
  Decision FilterV2(int /*level*/, const Slice& key, ValueType value_type,
                    const Slice& /*existing_value*/, std::string* new_value,
                    std::string* skip_until) const override {
    if (!*on_ || value_type == ValueType::kMergeOperand) {
      return Decision::kKeep;
    }
    if (skips_) {
      ++num_decisions_;
      *skip_until = "z";
      return Decision::kRemoveAndSkipUntil;
    }
    if (key == "c") {
      ++num_decisions_;
      return Decision::kRemove;
    }
    if (key == "d") {
      ++num_decisions_;
      *new_value = "changed";
      return Decision::kChangeValue;
    }
    return Decision::kKeep;
  }

 private:
  const std::atomic<bool>* const on_;
  const bool skips_;
  mutable std::atomic<int> num_decisions_{0};
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

// If the filter of a compaction changes bases after the fold has read them, the
// fold is given up and the changes stay, with and without a cache of merged
// values. The compaction has begun before there were operands, so it does not
// hold the values.
TEST_P(DBDeltaFoldTest, FoldIsGivenUpAfterAFilterChangedItsBases) {
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
    EnableCallBackOnce(
        "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
        [&](void*) {
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

// The same holds if the edit of the compaction is still in the queue for the
// MANIFEST.
TEST_P(DBDeltaFoldTest, FoldIsGivenUpWhileAFilterIsCommitted) {
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
  const auto let_go = [&](void*) {
    if (!goes_on.exchange(true)) {
      go_on.set_value();
    }
  };
  EnableCallBackOnce("DBStrata::BeginDeltaFold:BeforeEdit", let_go);
  EnableCallBackOnce("DBStrata::EndDeltaFold:BeforeSettle", let_go);
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        filters = true;
        EnableCallBackOnce("VersionSet::LogAndApply:WriteManifest", [&](void*) {
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

// A filter that runs while a value has operands is held until the value is
// complete.
TEST_P(DBDeltaFoldTest, FilterIsHeldWhileThereAreOperands) {
  std::atomic<bool> filters{false};
  const SwitchedFilter filter(&filters, /*skips=*/false);
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  WriteFoldable();
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        filters = true;
        CompactAllFiles();
        filters = false;
        Check();
      });
  ASSERT_OK(Collect());
  // The filter has decided about "c" and "d", but neither has changed.
  EXPECT_GE(filter.num_decisions(), 2);
  Check();
  GoOn();
}

// A fold is not given up because a filter has changed other files than the fold
// has read.
TEST_P(DBDeltaFoldTest, FiltersOfOtherFilesDoNotStopAFold) {
  std::atomic<bool> filters{false};
  const SwitchedFilter filter(&filters, /*skips=*/true);
  Options options = DeltaOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  WriteFoldable();
  // The file of "x" is one that the compaction before the collection does not
  // rewrite.
  CompactAllFiles();
  DoPut("x", Long("x"));
  ASSERT_OK(Flush());
  ForceFolds();
  int num_filtered = 0;
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
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

// A tailing iterator that is in the middle of a key's operands when they are
// combined or folded applies each operand once.
TEST_P(DBDeltaFoldTest, TailingIteratorAppliesEachOperandOnce) {
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
    EnableCallBackOnce("DBIter::MergeValuesNewToOld:PushedFirstOperand",
                       [&](void*) {
                         std::thread([this] { ASSERT_OK(Collect()); }).join();
                         DoPut("c", "new");
                         ASSERT_OK(Flush());
                       });
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      found[iter->key().ToString()] = iter->value().ToString();
    }
    ASSERT_OK(iter->status());
    // The iterator also sees the entry that was written in the middle.
    EXPECT_EQ(expected_, found);
    EXPECT_EQ(is_fold ? 0 : 1, NumOperands("a"));
    DisableCallBacks();
  }
}

// A reader of several column families takes its sequence number together with
// the Versions, so no fold can be committed in between.
TEST_P(DBDeltaFoldTest, ReaderTakesItsSequenceNumberWithItsVersions) {
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
  EnableCallBackOnce("DBImpl::MultiCFSnapshot::LastTry", [this](void*) {
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

// A key whose operands are larger than a bucket, which cannot be split, is
// folded, whatever the size of the operands.
TEST_P(DBDeltaFoldTest, KeyLargerThanABucketIsFolded) {
  Options options = DeltaOptions();
  options.delta_bucket_size = 4096;
  DestroyAndReopen(options);
  all_keys_ = {"k"};
  DoPut("k", Long("k"));
  ASSERT_OK(Flush());
  // Few other keys have several operands.
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

// A fold also begins a new generation of merged values if a filter removes all
// of its values.
TEST_P(DBDeltaFoldTest, FoldThatAFilterEmptiesBeginsAGeneration) {
  std::atomic<bool> filters{false};
  Options options = DeltaOptions();
  options.enable_merged_value_cache = true;
  options.compaction_filter_factory =
      std::make_shared<SkippingFilters>(&filters);
  DestroyAndReopen(options);
  WriteFoldable();
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::Write:Begin", [&](void*) {
        // These reads fill the merged-value cache.
        Check();
        EXPECT_GT(options.statistics->getTickerCount(MERGED_VALUE_CACHE_HIT),
                  0);
        filters = true;
      });
  ASSERT_OK(Collect());
  EXPECT_GT(num_picked_, 0);
  CheckNoOperands();
  // The compaction after the fold has applied the filter to the entries below.
  CheckAll({});
  Restart();
  CheckAll({});
}

// An iterator has registered its sequence number and gets a Version without the
// operands: the Version has values that the iterator sees.
TEST_P(DBDeltaFoldTest, ReaderWithALaterVersionSeesFoldedValues) {
  const Options options = DeltaOptions();
  if (!options.enable_blob_address_map) {
    ROCKSDB_GTEST_SKIP("Without an address map the Version is taken first");
    return;
  }
  DestroyAndReopen(options);
  WriteFoldable();
  const std::map<std::string, std::string> before = expected_;
  ForceFolds();
  std::promise<void> registered;
  std::promise<void> go_on;
  std::thread reader;
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", [&](void*) {
        no_more_folds_ = true;
        EnableCallBackOnce("DBStrata::RegisterReadBound:Registered",
                           [&](void*) {
                             registered.set_value();
                             go_on.get_future().wait();
                           });
        reader = std::thread([&] {
          const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
          CheckIterator(iter.get(), before);
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

// Makes filters that hold a snapshot of the DB as long as they live.
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

// User-defined compaction filters may call the DB.
TEST_P(DBDeltaFoldTest, CompactionFiltersMayUseTheDB) {
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
  // Collect() merges and collects.
  ASSERT_OK(Collect());
  EXPECT_GT(filters->num_made, before);
  EXPECT_EQ(10, NumFolded());
  Check();
  DisableCallBacks();
}

// A flush runs beside a deletion of the files below its operand. The operand
// may be found afterwards or not, but older entries never come back.
TEST_P(DBDeltaFoldTest, FileDeletionBesideAFlushBringsNothingBack) {
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
  EnableCallBackOnce("FlushJob::WriteLevel0Table", [&](void*) {
    begun.set_value();
    go_on.get_future().wait();
  });
  ASSERT_OK(Merge("k", "2"));
  std::thread flusher([this] { ASSERT_OK(Flush()); });
  begun.get_future().wait();
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::BeginDeltaFileDeletion:Waits", let_go);
  EnableCallBackOnce("DeltaFileDeletion::Publish:Synced", [&](void*) {
    let_go(nullptr);
    flusher.join();
    // The flush may have triggered a merge of delta files.
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

TEST_P(DBDeltaFoldIngestionTest, FoldIsGivenUpAfterItsFilesAreDeleted) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  ForceFolds();
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
      [this](void*) {
        no_more_folds_ = true;
        ASSERT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(),
                                     nullptr, nullptr));
        expected_.clear();
      });
  ASSERT_OK(Collect());
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

TEST_P(DBDeltaFoldTest, KeyWhoseMergeFailsIsLeftAlone) {
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
  // The key can be overwritten.
  all_keys_.emplace_back("g");
  DoPut("g", "good");
  ASSERT_OK(Flush());
  GoOn();
}

// A fold that fails at any step loses nothing, and the next fold succeeds.
TEST_P(DBDeltaFoldTest, FoldSucceedsAfterAFailureAtAnyStep) {
  for (const char* step :
       {"DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
        "DeltaFoldCommit::Write:Validated", "DeltaFoldCommit::Write:Built",
        "DeltaFoldCommit::Publish:Synced",
        "DeltaFoldCommit::Publish:Published"}) {
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
      // With TryAgain, the bucket has been collected without a fold. The bucket
      // needs something to take in to be collected again.
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

TEST_P(DBDeltaFoldTest, CrashAtAnyStepLosesNothing) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  for (const char* step :
       {"DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
        "DBStrata::BeginDeltaFold:Entered", "DeltaFoldCommit::Write:Built",
        "DeltaFoldCommit::Publish:Synced",
        "VersionSet::LogAndApply:WriteManifest",
        "VersionSet::LogAndApply:WriteManifestDone",
        "DBStrata::EndDeltaFold:BeforeSettle",
        "DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit"}) {
    SCOPED_TRACE(step);
    expected_.clear();
    all_keys_.clear();
    Options options = DeltaOptions();
    options.env = fault_env.get();
    DestroyAndReopen(options);
    WriteFoldable();
    ForceFolds();
    // The crash must come after the fold has begun, as merges write the
    // MANIFEST as well.
    EnableCallBackOnce("DeltaValueFolder::Fold", [&](void*) {
      EnableCallBackOnce(step,
                         [&](void*) { fault_fs->SetFilesystemActive(false); });
    });
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

// After a crash at any step of a fold, a repair finds each operand exactly
// once, in a value or as an operand, and later compactions do not change this.
TEST_P(DBDeltaFoldTest, RepairAfterACrashFindsEachOperandOnce) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env(NewCompositeEnv(fault_fs));
  struct Step {
    const char* point;
    int call;
  };
  for (const Step& step :
       {Step{"DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit", 1},
        Step{"DeltaFoldCommit::Write:Built", 1},
        Step{"DeltaFoldCommit::Publish:Synced", 1},
        Step{"DeltaFileBuilder::Publish:BeforeRename", 1},
        Step{"DeltaFileBuilder::Publish:BeforeRename", 2},
        Step{"DeltaFoldCommit::Publish:Published", 1},
        Step{"DBStrata::BeginDeltaFold:BeforeEdit", 1},
        Step{"VersionSet::LogAndApply:WriteManifest", 1},
        Step{"VersionSet::LogAndApply:WriteManifestDone", 1},
        Step{"DBStrata::EndDeltaFold:BeforeSettle", 1}}) {
    // Some operands stay in delta files, or none. Files that were not synced
    // exist after the crash, or do not.
    for (const bool some_stay : {false, true}) {
      for (const bool files_vanish : {false, true}) {
        if (step.call == 2 && !some_stay) {
          continue;  // only one file is renamed
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
          // The snapshot keeps operands of "c" and an anchor of "x". A repair
          // puts all tables into level 0, in the order of their largest
          // sequence numbers. Therefore "x" has a table of its own: if the
          // table had older entries of other keys as well, point reads would
          // find those before newer entries in other tables.
          all_keys_.emplace_back("x");
          DoMerge("x", "1");
          snapshot = db_->GetSnapshot();
          DoMerge("c", "3");
          DoPut("x", Long("over"));
          ASSERT_OK(Flush());
        }
        // A repair would also use obsolete files.
        CheckFiles();
        ForceFolds();
        const auto calls = std::make_shared<std::atomic<int>>(0);
        EnableCallBackOnce("DeltaValueFolder::Fold", [&, calls](void*) {
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

// The directory is synced after delta files are renamed and before the edit.
// Some file systems may skip an fsync of a directory with new files, since new
// files are durable anyway; this does not hold for renamed files.
TEST_P(DBDeltaFoldTest, NamesAreDurableBeforeTheEdit) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  OpenFoldable(name_env.get());
  // Some operands stay, so the job writes files of operands and of anchors.
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

// If a fold is given up, its SST file is deleted only after the deletion of all
// of its delta files is durable. This also holds if a rename was done but
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
        "DeltaFoldCommit::Publish:Published", [&](void* arg) {
          Status* const s = static_cast<Status*>(arg);
          EXPECT_EQ(denies_renames, s->IsIOError()) << s->ToString();
          *s = Status::IOError("Injected");
        });
    name_fs->TakeEvents();
    EXPECT_NOK(Collect());
    name_fs->denies_renames = false;
    std::set<std::string> published;
    // State since the first rename.
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

// If published delta files of a fold cannot be deleted, the SST file with the
// values stays as well, because a repair would take these delta files for the
// newest ones.
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
        "DeltaFoldCommit::Publish:Published", [&](void* arg) {
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
    // A scan for obsolete files does not delete it either.
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

// The next open deletes the SST file that stayed with undeletable delta files.
TEST_P(DBDeltaFoldTest, NextOpenDeletesWhatHasStayed) {
  const auto name_fs =
      std::make_shared<delta_test::DeltaNameFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> name_env(NewCompositeEnv(name_fs));
  const Options options = OpenFoldable(name_env.get());
  ForceFolds();
  SyncPoint::GetInstance()->SetCallBack(
      "DeltaFoldCommit::Publish:Published", [&](void* arg) {
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

// A repair applies a folded operand once, although the WAL with the operand
// still exists because another column family needs it. No delta file has
// anything of the key.
TEST_P(DBDeltaFoldTest, RepairAppliesFoldedOperandsOfAWalOnce) {
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
  // The snapshot prevents a fold of the operands of "s".
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

TEST_P(DBDeltaFoldTest, FoldsOfManyKeysKeepTheirValues) {
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

TEST_P(DBDeltaFoldTest, AtomicFlushWaitsForTheFold) {
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
  EnableCallBackOnce("FlushOrderGate::Park:Parked",
                     [&](void*) { parked.set_value(); });
  EnableCallBackOnce("DBStrata::BeginDeltaFold:Entered", [&](void*) {
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

TEST_P(DBDeltaFoldTest, FoldInADroppedFamilyIsGivenUp) {
  const Options options = DeltaOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  ASSERT_OK(Put(1, "k", Long("base")));
  ASSERT_OK(Flush(1));
  ASSERT_OK(Merge(1, "k", "1"));
  ASSERT_OK(Flush(1));
  ForceFolds();
  EnableCallBackOnce("DBStrata::BeginDeltaFold:Entered", [this](void*) {
    ASSERT_OK(db_->DropColumnFamily(handles_[1]));
  });
  EXPECT_TRUE(Collect(1).IsColumnFamilyDropped());
  EXPECT_EQ(0, NumFolded());
  // The handle can still read the family.
  EXPECT_EQ(Long("base") + ",1", Get(1, "k"));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.pop_back();
  CheckFiles();
}

// After a fold, an old iterator and new readers find the values that the
// address map has.
TEST_P(DBDeltaFoldTest, OldIteratorFindsMappedValuesAfterAFold) {
  if (GetParam() != Values::kMap && GetParam() != Values::kMapVersioned) {
    ROCKSDB_GTEST_SKIP("There is no address map");
    return;
  }
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  const auto before = expected_;
  ForceFolds();
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(ForceCompaction());
    CheckIterator(iter.get(), before);
    Check();
  }
  // The values that were kept for the iterator are now dropped.
  iter.reset();
  ASSERT_OK(ForceCompaction());
  Check();
  CheckAddressMap();
  GoOn();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
