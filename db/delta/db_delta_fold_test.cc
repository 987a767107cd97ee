//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Folds of merge operands into values in real databases: the answers of
// readers, and events during a fold.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/address_map_verifier.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/dbformat.h"
#include "db/delta/db_delta_model_test_util.h"
#include "db/version_edit.h"
#include "memory/arena.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/delta_fold_db_test_util.h"
#include "test_util/strata/drop_before_edit_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "util/coding.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class DBDeltaFoldTest : public DeltaFoldDBTestBase {
 public:
  DBDeltaFoldTest() : DeltaFoldDBTestBase("db_delta_fold_test") {}

 protected:
  // Folds ten operands. Before the fold reaches the gate, `flush` flushes what
  // hides some of its values. Checks that the commit leaves out these values:
  // the fold was not given up, and nothing was left for a second one.
  void CheckHiddenValuesAreLeftOut(const std::function<void()>& flush) {
    DestroyAndReopen(DeltaOptions());
    WriteFoldable();
    ForceFolds();
    // Values are compared with newer files before the commit.
    EnableCallBack("DeltaFoldCommit::Write:Validated", [this](void* arg) {
      EXPECT_OK(*static_cast<Status*>(arg));
      ++num_validated_;
    });
    ASSERT_OK(CollectBeside(flush));
    EXPECT_EQ(10, NumFolded());
    EXPECT_EQ(1, num_validated_);
    Check();
    CheckNoOperands();
    GoOn();
  }

  // Checks that there are delta files and that all are open, so that their
  // first readers need not open them.
  void CheckFilesAreOpen() {
    EXPECT_GT(Deltas().CountOpened([](const DeltaFileMeta& file) {
      ADD_FAILURE() << file.description().ToString();
    }),
              0);
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

  std::atomic<int> num_validated_{0};
  std::atomic<int> num_reused_{0};
};

INSTANTIATE_TEST_CASE_P(DBDeltaFoldTest, DBDeltaFoldTest,
                        testing::Values(delta_test::ValuePlace::kInline,
                                        delta_test::ValuePlace::kBlobs,
                                        delta_test::ValuePlace::kMap,
                                        delta_test::ValuePlace::kMapVersioned));

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

// A repeated fold may give another result for the same operands, so the name of
// a folded value in the address map includes the number of its blob file.
TEST_P(DBDeltaFoldTest, FoldedValuesHaveBirths) {
  const Options options = DeltaOptions();
  if (!options.enable_blob_address_map) {
    ROCKSDB_GTEST_SKIP("There is no address map");
    return;
  }
  DestroyAndReopen(options);
  WriteFoldable();
  ForceFolds();
  ASSERT_OK(Collect());
  EXPECT_EQ(10, NumFolded());
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  std::set<uint64_t> blob_files;
  for (const BlobMetaData& file : metadata.blob_files) {
    blob_files.insert(file.blob_file_number);
  }
  Arena arena;
  ReadOptions read_options;
  const ScopedArenaPtr<InternalIterator> iter(
      dbfull()->NewInternalIterator(read_options, &arena, kMaxSequenceNumber));
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    SCOPED_TRACE(key);
    iter->Seek(
        InternalKey(key, kMaxSequenceNumber, kValueTypeForSeek).Encode());
    ASSERT_TRUE(iter->Valid());
    ASSERT_EQ(key, ExtractUserKey(iter->key()).ToString());
    ASSERT_EQ(kTypeBlobIndex, ExtractValueType(iter->key()));
    MappedBlobIndex index;
    ASSERT_OK(index.DecodeFrom(iter->value()));
    EXPECT_EQ(MappedBlobIndex::Mode::kVersioned, index.mode);
    EXPECT_EQ(1, blob_files.count(index.birth)) << index.birth;
  }
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

TEST_P(DBDeltaFoldTest, ValuesOverwrittenBeforeTheGateAreLeftOut) {
  CheckHiddenValuesAreLeftOut([this] {
    DoPut("a", "over");
    DoPut("c", Long("over"));
    DoDelete("d");
    ASSERT_OK(Flush());
  });
}

TEST_P(DBDeltaFoldTest, ValuesRangeDeletedBeforeTheGateAreLeftOut) {
  CheckHiddenValuesAreLeftOut([this] {
    ASSERT_OK(
        db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "b", "e"));
    for (const char* key : {"b", "c", "d"}) {
      expected_.erase(key);
    }
    ASSERT_OK(Flush());
  });
}

TEST_P(DBDeltaFoldTest, FoldWhoseValuesAreAllOverwrittenSucceeds) {
  CheckHiddenValuesAreLeftOut([this] {
    for (const char* key : {"a", "b", "c", "d", "e"}) {
      DoPut(key, "over");
    }
    ASSERT_OK(Flush());
  });
}

// A snapshot sees operands that the fold has taken and not the value that hides
// them, so the fold is given up.
TEST_P(DBDeltaFoldTest, FoldIsGivenUpForASnapshotBelowAnAnchor) {
  DestroyAndReopen(DeltaOptions());
  WriteFoldable();
  const auto before = expected_;
  const Snapshot* snapshot = nullptr;
  ForceFolds();
  ASSERT_OK(CollectBeside([&] {
    snapshot = db_->GetSnapshot();
    DoPut("c", Long("over"));
    ASSERT_OK(Flush());
    no_more_folds_ = true;
  }));
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
  EnableCallBackOnce("DBStrata::EnterDeltaFold:Waits",
                     [&](void*) { waits.set_value(); });
  ASSERT_OK(CollectBeside([&] {
    DoPut("c", Long("over"));
    EnableCallBackOnce("BuildTable:BeforeFinishBuildTable", [&](void*) {
      flushing.set_value();
      waits.get_future().wait();
    });
    flusher = std::thread([this] { ASSERT_OK(Flush()); });
    flushing.get_future().wait();
  }));
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
  EnableCallBackOnce("DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit",
                     [&](void*) { given_up.set_value(); });
  ASSERT_OK(CollectBeside([&] {
    no_more_folds_ = true;
    DoMerge("c", "3");
    DoPut("f", Long("over"));
    EnableCallBackOnce("BuildTable:BeforeFinishBuildTable", [&](void*) {
      flushing.set_value();
      given_up.get_future().wait();
    });
    flusher = std::thread([this] { ASSERT_OK(Flush()); });
    flushing.get_future().wait();
  }));
  flusher.join();
  EXPECT_EQ(0, NumFolded());
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
  ASSERT_OK(CollectBeside([&] {
    no_more_folds_ = true;
    EnableCallBackOnce("DBStrata::RegisterReadBound:Registered", [&](void*) {
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
  }));
  go_on.set_value();
  reader.join();
  Check();
  GoOn();
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

// The same holds if the edit of the fold is in the queue for the MANIFEST. Its
// files are deleted.
TEST_P(DBDeltaFoldTest, FoldWithoutAnEditInADroppedFamilyIsGivenUp) {
  const Options options = DeltaOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  ASSERT_OK(Put(1, "k", Long("base")));
  ASSERT_OK(Flush(1));
  ASSERT_OK(Merge(1, "k", "1"));
  ASSERT_OK(Flush(1));
  ForceFolds();
  DropBeforeEdit drop(db_.get(), handles_[1],
                      "DBStrata::BeginDeltaFold:Entered", /*in_group=*/false);
  std::map<FileType, std::set<uint64_t>> before;
  EnableCallBackOnce(
      "DBStrata::BackgroundDeltaCollection::Write:Begin", [&](void*) {
        for (const FileType type : {kTableFile, kBlobFile, kDeltaFile}) {
          before[type] = FilesOnDisk(type);
        }
      });
  EXPECT_TRUE(Collect(1).IsColumnFamilyDropped());
  EXPECT_TRUE(drop.End());
  EXPECT_EQ(0, NumFolded());
  EXPECT_EQ(3, before.size());
  for (const auto& [type, files] : before) {
    const std::set<uint64_t> after = FilesOnDisk(type);
    EXPECT_TRUE(
        std::includes(files.begin(), files.end(), after.begin(), after.end()))
        << type;
  }
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

// While a read at a snapshot is at its end, its operands are folded, and a
// compaction keeps the map from finding the base by the key alone. The read has
// passed over the file of the base, and must not take the base for absent.
TEST_P(DBDeltaFoldTest, SnapshotReadFindsTheBaseAfterAFold) {
  if (GetParam() != Values::kMap) {
    ROCKSDB_GTEST_SKIP("No read passes over a file");
    return;
  }
  DestroyAndReopen(DeltaOptions());
  for (const bool multi_get : {false, true}) {
    SCOPED_TRACE(multi_get);
    const std::string key = multi_get ? "m" : "k";
    all_keys_.push_back(key);
    DoPut(key, Long("base"));
    // Keeps the flush from merging.
    const Snapshot* const first = db_->GetSnapshot();
    DoMerge(key, "1");
    const Snapshot* const second = db_->GetSnapshot();
    const auto flushed = EnableCallBackOnce(
        "MapPointRead::Start:LookedUp",
        [&](void*) { OnAnotherThread([&] { EXPECT_OK(Flush()); }); });
    const auto folded =
        EnableCallBackOnce("MapPointRead::ConfirmAbsence", [&](void*) {
          OnAnotherThread([&] {
            EXPECT_EQ(1u, NumOperands(key));
            db_->ReleaseSnapshot(first);
            EXPECT_OK(Collect());
            EXPECT_EQ(0u, NumOperands(key));
            EXPECT_OK(ForceCompaction());
          });
        });
    ForceFolds();
    EXPECT_EQ(expected_[key],
              multi_get ? MultiGet(std::vector<std::string>{key}, second)[0]
                        : Get(key, second));
    EXPECT_TRUE(*flushed);
    EXPECT_TRUE(*folded);
    DisableCallBacks();
    db_->ReleaseSnapshot(second);
    Check();
  }
  GoOn();
}

// The MANIFEST of an old RocksDB has no epoch numbers. A recovery that found it
// so once more after a fold would order level 0 by sequence number, and take
// the file of the fold for older than a file with the base. So it is reused
// only as long as no fold can come.
TEST_P(DBDeltaFoldTest, ManifestWithoutEpochsIsNotReused) {
  Options options = DeltaOptions();
  // Four flushes of one operand each are merged and collected.
  options.delta_bucket_size = 4096;
  options.delta_max_buckets = 64;
  const std::string operand(4096, '1');
  options.enable_delta_separation = false;
  DestroyAndReopen(options);
  EnableCallBack("VersionEdit::EncodeTo:NewFile4:CustomizeFields",
                 [](void* arg) {
                   // The last field of a kind counts.
                   std::string* const record = static_cast<std::string*>(arg);
                   std::string epoch;
                   PutVarint64(&epoch, kUnknownEpochNumber);
                   PutVarint32(record, NewFileCustomTag::kEpochNumber);
                   PutLengthPrefixedSlice(record, epoch);
                 });
  all_keys_ = {"a", "j", "k", "z"};
  // A file below the others keeps their sequence numbers from becoming zero.
  DoPut("a", "a");
  DoPut("z", "z");
  ASSERT_OK(Flush());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_EQ(0, NumTableFilesAtLevel(0));
  DisableCallBacks();

  EnableCallBack("VersionSet::ReopenManifestForAppend:Reopened",
                 [this](void*) { ++num_reused_; });
  options.reuse_manifest_on_open = true;
  Reopen(options);
  EXPECT_EQ(1, num_reused_);
  options.enable_delta_separation = true;
  options.level0_file_num_compaction_trigger = 100;
  Reopen(options);
  EXPECT_EQ(1, num_reused_);
  DoPut("k", "base");
  ASSERT_OK(Flush());
  for (int i = 0; i < 4; ++i) {
    DoMerge("k", operand);
    ASSERT_OK(Flush());
  }
  DoPut("j", "j");
  ASSERT_OK(Flush());
  std::vector<LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  std::vector<std::string> names;
  for (const LiveFileMetaData& file : files) {
    if (file.level == 0) {
      names.push_back(file.name);
    }
  }
  ASSERT_EQ(2, names.size());
  ASSERT_OK(db_->CompactFiles(CompactionOptions(), names, /*output_level=*/0));
  ASSERT_EQ(1, NumTableFilesAtLevel(0));
  // CompactRange() would move the file before it folds.
  ForceFolds();
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(4, NumFolded());
  EXPECT_EQ(0, NumOperands("k"));
  EXPECT_EQ(2, NumTableFilesAtLevel(0));
  Check();

  Restart();
  EXPECT_EQ(2, num_reused_);
  EXPECT_EQ(2, NumTableFilesAtLevel(0));
  Check();
  GoOn();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
