//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/range_deletion_sweep.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/held_point_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "utilities/fault_injection_env.h"
#include "utilities/fault_injection_fs.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class RangeDeletionSweepTest : public AddressMapDBTestBase {
 protected:
  static constexpr int kKeys = 300;

  RangeDeletionSweepTest()
      : AddressMapDBTestBase("range_deletion_sweep_test") {}
  ~RangeDeletionSweepTest() override {
    Close();  // before fault_env_ goes
  }

  // There is no compaction and no garbage collection, so only sweeps free
  // values.
  Options SweepOptions() {
    Options options = MapOptions(/*min_blob_size=*/100);
    options.blob_file_size = 4 << 10;
    return options;
  }

  std::string ValueOf(int key, int round) {
    return std::string(200, static_cast<char>('a' + (key + round) % 26)) +
           std::to_string(round);
  }

  void Fill(int round, int first = 0, int end = kKeys, int cf = 0) {
    for (int key = first; key < end; ++key) {
      ASSERT_OK(
          db_->Put(WriteOptions(), Handle(cf), Key(key), ValueOf(key, round)));
      if (cf == 0) {
        model_[Key(key)] = ValueOf(key, round);
      }
    }
  }
  void FillAndFlush(int round, int first = 0, int end = kKeys) {
    Fill(round, first, end);
    ASSERT_OK(Flush());
  }

  void DeleteKeys(int first, int end, int cf = 0) {
    ASSERT_OK(
        db_->DeleteRange(WriteOptions(), Handle(cf), Key(first), Key(end)));
    if (cf == 0) {
      model_.erase(model_.lower_bound(Key(first)),
                   model_.lower_bound(Key(end)));
    }
  }
  void DeleteKeysAndFlush(int first, int end) {
    DeleteKeys(first, end);
    ASSERT_OK(Flush());
    Wait();
  }

  // Ingests a file with values of these keys.
  void Ingest(int round, int first, int end) {
    const std::string file = dbname_ + "/ingested.sst";
    SstFileWriter writer(EnvOptions(), last_options_);
    ASSERT_OK(writer.Open(file));
    for (int key = first; key < end; ++key) {
      ASSERT_OK(writer.Put(Key(key), ValueOf(key, round)));
      model_[Key(key)] = ValueOf(key, round);
    }
    ASSERT_OK(writer.Finish());
    ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
  }

  void Wait() {
    // Waits first for removals that a reader has delayed.
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
    ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
  }

  uint64_t Entries(int cf = 0) { return Blobs(cf)->map()->NumEntries(); }
  size_t Pending(int cf = 0) { return Blobs(cf)->range_deletions()->Count(); }
  size_t NumBlobFiles() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return Family()->current()->storage_info()->GetBlobFiles().size();
  }
  uint64_t Freed() { return Ticker(BLOB_MAP_RANGE_DELETED); }

  void Verify() {
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    ASSERT_NO_FATAL_FAILURE(CheckForward(iter.get(), model_));
    iter.reset();
    for (int key = 0; key < kKeys; ++key) {
      const auto found = model_.find(Key(key));
      ASSERT_EQ(found == model_.end() ? "NOT_FOUND" : found->second,
                Get(Key(key)));
    }
    ASSERT_OK(Blobs()->map()->TEST_Check());
  }

  // Also verifies after all deleted entries have left the tree.
  void VerifyAndCompact() {
    Verify();
    const Options options = last_options_;
    Reopen(options);
    Verify();
    ASSERT_OK(ForceCompaction());
    Verify();
  }

  // Runs fn once, when the next sweep has taken its deletions and its Version.
  void OnceInSweep(const std::function<void()>& fn) {
    was_in_sweep_ = EnableCallBackOnce(
        "DBStrata::BackgroundRangeSweep::Sweep:Begin", [fn](void*) { fn(); });
  }

  // Runs a sweep of the current Version in the calling thread.
  Status Sweep(uint64_t max_steps,
               std::vector<CommittedRangeDeletion>* deletions,
               uint64_t* entries, uint64_t* removed,
               const Status& check = Status::OK()) {
    Version* version;
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      version = Family()->current();
      version->Ref();
    }
    RangeDeletionSweep sweep(Family(), version, FileOptions(),
                             [check] { return check; });
    const Status s = sweep.Run(max_steps, deletions);
    *entries = sweep.entries_read();
    *removed = sweep.values_removed();
    InstrumentedMutexLock lock(dbfull()->mutex());
    version->Unref();
    return s;
  }

  std::map<std::string, std::string> model_;
  std::shared_ptr<std::atomic<bool>> was_in_sweep_;
  std::shared_ptr<FaultInjectionTestFS> fault_fs_;
  std::unique_ptr<Env> fault_env_;
};

TEST_F(RangeDeletionSweepTest, SweepFreesWithoutACompaction) {
  for (const bool bypass : {true, false}) {
    Options options = SweepOptions();
    options.enable_lsm_bypass = bypass;
    DestroyAndReopen(options);
    FillAndFlush(0);
    const size_t files = NumBlobFiles();
    ASSERT_GT(files, 3u);
    DeleteKeysAndFlush(100, 200);
    ASSERT_EQ(200u, Entries());
    ASSERT_EQ(100u, Freed());
    ASSERT_LT(NumBlobFiles(), files);
    Verify();
    // These deletions overlap each other and ranges that were deleted before.
    DeleteKeys(50, 150);
    DeleteKeys(40, 60);
    DeleteKeysAndFlush(140, 220);
    ASSERT_EQ(120u, Entries());
    ASSERT_EQ(180u, Freed());
    Verify();
    DeleteKeysAndFlush(0, kKeys);
    ASSERT_EQ(0u, Entries());
    ASSERT_EQ(0u, NumBlobFiles());
    ASSERT_EQ(0u, Pending());
    FillAndFlush(1, 120, 130);
    ASSERT_EQ(10u, Entries());
    VerifyAndCompact();
  }
}

// Values that are newer than the deletion stay in the map, in whatever file
// they are. Covered values of the deletion's own memtable are removed by the
// flush.
TEST_F(RangeDeletionSweepTest, NewerValuesStay) {
  DestroyAndReopen(SweepOptions());
  FillAndFlush(0);
  Fill(1, 90, 110);
  DeleteKeys(100, 200);
  Fill(2, 105, 115);
  ASSERT_OK(Flush());
  Wait();
  ASSERT_EQ(210u, Entries());
  Verify();
  // These values are written after the flush of the deletion and before its
  // sweep.
  OnceInSweep([&] { FillAndFlush(3, 20, 40); });
  DeleteKeysAndFlush(0, 60);
  ASSERT_TRUE(*was_in_sweep_);
  for (int key = 20; key < 40; ++key) {
    model_[Key(key)] = ValueOf(key, 3);
  }
  ASSERT_EQ(170u, Entries());
  VerifyAndCompact();
}

TEST_F(RangeDeletionSweepTest, RunStopsAfterMaxSteps) {
  DestroyAndReopen(SweepOptions());
  FillAndFlush(0);
  // The snapshot prevents a sweep in the background.
  const Snapshot* const snapshot = db_->GetSnapshot();
  DeleteKeys(0, 300);
  const SequenceNumber seq = db_->GetLatestSequenceNumber();
  std::vector<CommittedRangeDeletion> deletions{
      {Key(0), Key(10), seq, seq, kMaxBirth}};
  uint64_t entries = 0;
  uint64_t removed = 0;
  ASSERT_OK(Sweep(1000, &deletions, &entries, &removed));
  ASSERT_TRUE(deletions.empty());
  ASSERT_EQ(10u, entries);
  ASSERT_EQ(10u, removed);

  // Each range and each key is a step.
  deletions = {{Key(0), Key(20), seq, seq, kMaxBirth},
               {Key(30), Key(300), seq, seq, kMaxBirth}};
  ASSERT_OK(Sweep(52, &deletions, &entries, &removed));
  ASSERT_EQ(50u, entries);
  ASSERT_EQ(40u, removed);
  ASSERT_EQ((std::vector<CommittedRangeDeletion>{
                {Key(60), Key(300), seq, seq, kMaxBirth}}),
            deletions);
  int rounds = 0;
  for (; !deletions.empty(); ++rounds) {
    ASSERT_OK(Sweep(50, &deletions, &entries, &removed));
    ASSERT_LE(removed, 50u);
  }
  ASSERT_GE(rounds, 5);
  ASSERT_EQ(10u, Entries());

  // Entries that an older deletion hides are read, unless that deletion had a
  // sweep of its own.
  ASSERT_OK(Flush());
  deletions = {{Key(0), Key(300), seq + 1, seq, kMaxBirth}};
  ASSERT_OK(Sweep(1000, &deletions, &entries, &removed));
  ASSERT_EQ(300u, entries);
  ASSERT_EQ(10u, removed);
  deletions = {{Key(0), Key(300), seq + 1, seq + 1, kMaxBirth}};
  ASSERT_OK(Sweep(1000, &deletions, &entries, &removed));
  ASSERT_EQ(0u, entries);
  ASSERT_TRUE(deletions.empty());
  ASSERT_OK(Sweep(1000, &deletions, &entries, &removed));
  db_->ReleaseSnapshot(snapshot);
  Wait();
  VerifyAndCompact();
}

// A key may have more entries than one run has steps.
TEST_F(RangeDeletionSweepTest, EachRunGetsPastAKey) {
  constexpr int kMany = 3;
  constexpr int kVersions = 40;
  for (const uint64_t max_steps : {1u, 2u, 7u, 45u, 100u}) {
    SCOPED_TRACE(max_steps);
    DestroyAndReopen(SweepOptions());
    model_.clear();
    // The snapshots keep all versions, and prevent a sweep in the background.
    std::vector<const Snapshot*> snapshots;
    for (int round = 0; round < kVersions; ++round) {
      for (int key = 0; key < kMany; ++key) {
        ASSERT_OK(Put(Key(key), ValueOf(key, round)));
      }
      snapshots.push_back(db_->GetSnapshot());
    }
    DeleteKeysAndFlush(0, kMany);
    const SequenceNumber seq = db_->GetLatestSequenceNumber();
    // The map does not become empty.
    ASSERT_OK(Put(Key(kMany), ValueOf(kMany, 0)));
    model_[Key(kMany)] = ValueOf(kMany, 0);
    ASSERT_OK(Flush());
    std::vector<CommittedRangeDeletion> deletions{
        {Key(0), Key(kMany), seq, seq, kMaxBirth}};
    uint64_t all_entries = 0;
    for (int i = 0; i < kMany && !deletions.empty(); ++i) {
      uint64_t entries = 0;
      uint64_t removed = 0;
      ASSERT_OK(Sweep(max_steps, &deletions, &entries, &removed));
      all_entries += entries;
    }
    EXPECT_TRUE(deletions.empty());
    EXPECT_EQ(uint64_t{kMany * kVersions}, all_entries);
    for (const Snapshot* const snapshot : snapshots) {
      db_->ReleaseSnapshot(snapshot);
    }
    Wait();
    VerifyAndCompact();
  }
}

TEST_F(RangeDeletionSweepTest, RunStopsWhenTheCheckFails) {
  DestroyAndReopen(SweepOptions());
  constexpr int kMany = 5000;
  for (int key = 0; key < kMany; ++key) {
    ASSERT_OK(Put(Key(key), ValueOf(key, 0)));
  }
  ASSERT_OK(Flush());
  std::vector<CommittedRangeDeletion> deletions{
      {Key(10), Key(20), 10000, 10000, kMaxBirth},
      {Key(30), Key(kMany), 10000, 10000, kMaxBirth}};
  uint64_t entries = 0;
  uint64_t removed = 0;
  ASSERT_TRUE(
      Sweep(4096, &deletions, &entries, &removed, Status::ShutdownInProgress())
          .IsShutdownInProgress());
  // The check was called at the 1024th step; two of the steps were ranges.
  ASSERT_EQ(1u, deletions.size());
  ASSERT_EQ(1021u, entries);
  ASSERT_EQ(1021u, removed);
  ASSERT_EQ(Key(30 + 1021 - 10), deletions[0].start);
  // Ranges without a key count as steps, too.
  deletions.clear();
  for (int key = 0; key < 2000; ++key) {
    deletions.push_back(CommittedRangeDeletion{Key(key) + "a", Key(key) + "b",
                                               10000, 10000, kMaxBirth});
  }
  ASSERT_TRUE(
      Sweep(4096, &deletions, &entries, &removed, Status::ShutdownInProgress())
          .IsShutdownInProgress());
  ASSERT_EQ(2000u - 1023, deletions.size());
}

// A deletion frees its whole range although it covers another deletion that
// waited with it, or whose sweep has not finished.
TEST_F(RangeDeletionSweepTest, OverlappingDeletionsFreeAllCoveredValues) {
  DestroyAndReopen(SweepOptions());
  FillAndFlush(0);
  const Snapshot* snapshot = db_->GetSnapshot();
  DeleteKeysAndFlush(50, 200);
  DeleteKeysAndFlush(0, kKeys);
  ASSERT_EQ(300u, Entries());
  db_->ReleaseSnapshot(snapshot);
  Wait();
  ASSERT_EQ(0u, Entries());

  FillAndFlush(1);
  snapshot = db_->GetSnapshot();
  DeleteKeysAndFlush(50, 200);
  {
    // Sweeps a part of the range, as if the sweep had been stopped.
    std::vector<CommittedRangeDeletion> taken =
        Blobs()->range_deletions()->Take(kMaxSequenceNumber);
    ASSERT_EQ(1u, taken.size());
    uint64_t entries = 0;
    uint64_t removed = 0;
    ASSERT_OK(Sweep(60, &taken, &entries, &removed));
    ASSERT_EQ(1u, taken.size());
    Blobs()->range_deletions()->PutBack(std::move(taken), /*not_before=*/0);
  }
  ASSERT_EQ(241u, Entries());
  DeleteKeysAndFlush(0, kKeys);
  db_->ReleaseSnapshot(snapshot);
  Wait();
  ASSERT_EQ(0u, Entries());
  VerifyAndCompact();
}

// A range that is deleted again before its sweep has come to its end is not
// swept from its start again.
TEST_F(RangeDeletionSweepTest, RangeThatIsDeletedAgainIsSweptToItsEnd) {
  DestroyAndReopen(SweepOptions());
  FillAndFlush(0);
  std::atomic<int> sweeps{0};
  std::atomic<uint64_t> entries{kKeys};
  EnableCallBack(
      "DBStrata::BackgroundRangeSweep::Sweep:MaxSteps", [&](void* arg) {
        *static_cast<uint64_t*>(arg) = 50;
        if (++sweeps <= 12) {
          entries = Entries();
          ASSERT_OK(
              db_->DeleteRange(WriteOptions(), Handle(), Key(0), Key(kKeys)));
          ASSERT_OK(Flush());
        }
      });
  DeleteKeysAndFlush(0, kKeys);
  DisableCallBacks();
  // Each of the sweeps has read 49 keys that were not read before.
  EXPECT_EQ(0u, entries);
  EXPECT_EQ(0u, Entries());
  EXPECT_EQ(0u, Pending());
  VerifyAndCompact();
}

// A range that cannot be read does not keep other ranges from being swept.
TEST_F(RangeDeletionSweepTest, DamagedRangeDoesNotStopOtherRanges) {
  Options options = SweepOptions();
  BlockBasedTableOptions table_options;
  table_options.no_block_cache = true;
  table_options.block_size = 512;
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  DestroyAndReopen(options);
  FillAndFlush(0);
  std::vector<LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(1u, files.size());
  // Damages the first data block.
  ASSERT_OK(test::CorruptFile(env_, files[0].db_path + files[0].name, 10, 20));
  DeleteKeys(0, 10);
  DeleteKeys(100, 200);
  ASSERT_OK(Flush());
  Wait();
  ASSERT_EQ(200u, Entries());
  ASSERT_EQ(1u, Pending());
}

// If the DB is closed before the sweep or while it runs, the next open frees
// the values.
TEST_F(RangeDeletionSweepTest, NextOpenFreesIfClosedBeforeASweepEnds) {
  for (const bool running : {false, true}) {
    Options options = SweepOptions();
    DestroyAndReopen(options);
    model_.clear();
    for (int key = 0; key < 5000; ++key) {
      ASSERT_OK(Put(Key(key), ValueOf(key, 0)));
    }
    ASSERT_OK(Flush());
    std::atomic<bool> reached{false};
    std::atomic<bool> closing{false};
    SyncPoint::GetInstance()->SetCallBack("DBImpl::~DBImpl:WaitJob",
                                          [&](void*) { closing = true; });
    SyncPoint::GetInstance()->SetCallBack(
        running ? "RangeDeletionSweep::Step:Check"
                : "BackgroundJobScheduler::Work:RangeSweep",
        [&](void*) {
          reached = true;
          EXPECT_TRUE(WaitUntil([&] { return closing.load(); }))
              << "the DB is not closed";
        });
    SyncPoint::GetInstance()->EnableProcessing();
    DeleteKeys(0, 5000);
    ASSERT_OK(Flush());
    EXPECT_TRUE(WaitUntil([&] { return reached.load(); }))
        << "no sweep is scheduled";
    Close();
    DisableCallBacks();
    Reopen(options);
    ASSERT_EQ(0u, Entries());
    Wait();
    ASSERT_EQ(0u, NumBlobFiles());
    VerifyAndCompact();
  }
}

// A sweep that waits for a thread is canceled when the DB is closed.
TEST_F(RangeDeletionSweepTest, CloseCancelsAScheduledSweep) {
  Options options = SweepOptions();
  DestroyAndReopen(options);
  FillAndFlush(0);
  test::SleepingBackgroundTask sleeping;
  env_->SetBackgroundThreads(1, Env::LOW);
  env_->Schedule(&test::SleepingBackgroundTask::DoSleepTask, &sleeping,
                 Env::LOW);
  sleeping.WaitUntilSleeping();
  DeleteKeys(0, 200);
  ASSERT_OK(Flush());
  Close();
  sleeping.WakeUp();
  sleeping.WaitUntilDone();
  Reopen(options);
  ASSERT_EQ(100u, Entries());
  VerifyAndCompact();
}

// A read error delays the sweep and does no other harm. The next open frees the
// values.
TEST_F(RangeDeletionSweepTest, ReadErrorDelaysTheSweep) {
  fault_fs_ = std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  fault_env_ = NewCompositeEnv(fault_fs_);
  Options options = SweepOptions();
  options.env = fault_env_.get();
  BlockBasedTableOptions table_options;
  table_options.no_block_cache = true;
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  DestroyAndReopen(options);
  FillAndFlush(0);
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::BackgroundRangeSweep::Sweep:Begin", [&](void*) {
        fault_fs_->SetThreadLocalErrorContext(
            FaultInjectionIOType::kRead, /*seed=*/1, /*one_in=*/1,
            /*retryable=*/true, /*has_data_loss=*/false);
        fault_fs_->EnableThreadLocalErrorInjection(FaultInjectionIOType::kRead);
      });
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::BackgroundRangeSweep::Sweep:End", [&](void*) {
        fault_fs_->DisableThreadLocalErrorInjection(
            FaultInjectionIOType::kRead);
      });
  SyncPoint::GetInstance()->EnableProcessing();
  DeleteKeysAndFlush(0, 250);
  DisableCallBacks();
  ASSERT_EQ(1u, Pending());
  ASSERT_EQ(300u, Entries());
  // The sweep is not repeated at once.
  FillAndFlush(1, 0, 10);
  Wait();
  ASSERT_EQ(1u, Pending());
  Verify();
  Reopen(options);
  ASSERT_EQ(60u, Entries());
  VerifyAndCompact();
}

// While the sweep runs, a compaction removes the same entries and the deletion
// itself.
TEST_F(RangeDeletionSweepTest, SweepBesideACompactionRemovesByName) {
  DestroyAndReopen(SweepOptions());
  FillAndFlush(0);
  FillAndFlush(1, 100, 200);
  OnceInSweep([&] { ASSERT_OK(ForceCompaction()); });
  DeleteKeysAndFlush(50, 150);
  ASSERT_TRUE(*was_in_sweep_);
  ASSERT_EQ(200u, Entries());
  VerifyAndCompact();
}

// Before the sweep takes its deletion, that and its values leave the tree.
// Values that are ingested then have the sequence number zero, so they look
// older than the deletion.
TEST_F(RangeDeletionSweepTest, LateSweepKeepsIngestedValues) {
  for (const bool bypass : {true, false}) {
    SCOPED_TRACE(bypass);
    Options options = SweepOptions();
    options.enable_lsm_bypass = bypass;
    DestroyAndReopen(options);
    model_.clear();
    FillAndFlush(0);
    {
      HeldPoint sweep("BackgroundJobScheduler::Work:RangeSweep");
      DeleteKeys(0, kKeys);
      ASSERT_OK(Flush());
      ASSERT_TRUE(sweep.WaitUntilReached());
      ASSERT_OK(ForceCompaction());
      ASSERT_EQ(0u, Entries());
      ASSERT_NO_FATAL_FAILURE(Ingest(1, 100, 200));
      ASSERT_OK(ForceCompaction());
      ASSERT_EQ(100u, Entries());
      SequenceNumber seq = 1;
      ASSERT_EQ(bypass,
                Blobs()->map()->DirectSeq(Blobs()->HashOf(Key(100)), &seq));
      ASSERT_EQ(bypass ? 0u : 1u, seq);
      ASSERT_EQ(1u, Pending());
    }
    Wait();
    ASSERT_EQ(0u, Pending());
    ASSERT_EQ(100u, Entries());
    ASSERT_EQ(0u, Freed());
    VerifyAndCompact();
  }
}

// DeleteFilesInRange() deletes the deletion and the values that it covers. An
// older value, which no file has had in the map, is visible again, and a
// compaction moves it to a blob file.
TEST_F(RangeDeletionSweepTest, LateSweepKeepsUncoveredValues) {
  Options options = SweepOptions();
  options.num_levels = 4;
  options.min_blob_size = 1000;
  DestroyAndReopen(options);
  FillAndFlush(0);
  MoveFilesToLevel(3);
  ASSERT_EQ(0u, Entries());
  for (int key = 0; key < 10; ++key) {
    ASSERT_OK(Put(Key(key), std::string(2000, 'x')));
  }
  ASSERT_OK(Flush());
  MoveFilesToLevel(2);
  Wait();
  ASSERT_EQ(10u, Entries());
  {
    HeldPoint sweep("BackgroundJobScheduler::Work:RangeSweep");
    ASSERT_OK(db_->DeleteRange(WriteOptions(), Handle(), Key(0), Key(10)));
    ASSERT_OK(Flush());
    ASSERT_TRUE(sweep.WaitUntilReached());
    MoveFilesToLevel(1);
    ASSERT_EQ("0,1,1,1", FilesPerLevel());
    const std::string first = Key(0);
    const std::string last = Key(20);
    const Slice begin(first);
    const Slice end(last);
    ASSERT_OK(DeleteFilesInRange(db_.get(), Handle(), &begin, &end));
    ASSERT_EQ("0,0,0,1", FilesPerLevel());
    ASSERT_OK(dbfull()->SetOptions({{"min_blob_size", "100"}}));
    ASSERT_OK(ForceCompaction());
    // Another job removes the names of the deleted files.
    ASSERT_TRUE(WaitUntil([&] { return Entries() == kKeys; }));
    ASSERT_EQ(1u, Pending());
  }
  Wait();
  ASSERT_EQ(0u, Pending());
  ASSERT_EQ(uint64_t{kKeys}, Entries());
  VerifyAndCompact();
}

TEST_F(RangeDeletionSweepTest, FamilyIsDroppedDuringItsSweep) {
  const Options options = SweepOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other", "third"}, options);
  for (const int cf : {0, 1, 2}) {
    Fill(0, 0, kKeys, cf);
    ASSERT_OK(Flush(cf));
  }
  // One column family is dropped while its sweep runs.
  OnceInSweep([&] { ASSERT_OK(db_->DropColumnFamily(handles_[1])); });
  DeleteKeys(0, 200, 1);
  const Status s = Flush(1);
  ASSERT_TRUE(s.ok() || s.IsColumnFamilyDropped()) << s.ToString();
  Wait();
  ASSERT_TRUE(*was_in_sweep_);
  DisableCallBacks();
  DeleteKeys(0, 200, 2);
  ASSERT_OK(Flush(2));
  Wait();
  ASSERT_EQ(300u, Entries(0));
  ASSERT_EQ(100u, Entries(2));
  Verify();
}

// A deletion whose flush has failed frees nothing.
TEST_F(RangeDeletionSweepTest, DeletionOfAFailedFlushFreesNothing) {
  fault_fs_ = std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  fault_env_ = NewCompositeEnv(fault_fs_);
  Options options = SweepOptions();
  options.env = fault_env_.get();
  options.max_bgerror_resume_count = 0;
  DestroyAndReopen(options);
  FillAndFlush(0);
  DeleteKeys(0, 200);
  EnableCallBack("FlushMapping::Publish", [&](void*) {
    fault_fs_->SetFilesystemActive(false, RetryableError());
  });
  ASSERT_NOK(Flush());
  DisableCallBacks();
  ASSERT_EQ(0u, Pending());
  ASSERT_EQ(300u, Entries());
  fault_fs_->SetFilesystemActive(true);
  ASSERT_OK(dbfull()->Resume());
  ASSERT_OK(Flush());
  Wait();
  ASSERT_EQ(100u, Entries());
  VerifyAndCompact();
}

// Reads with ignore_range_deletions find the values that are not freed yet, and
// return no error.
TEST_F(RangeDeletionSweepTest, ReadsThatIgnoreDeletionsSeeNoError) {
  DestroyAndReopen(SweepOptions());
  FillAndFlush(0);
  const Snapshot* const snapshot = db_->GetSnapshot();
  DeleteKeysAndFlush(0, 200);
  ReadOptions ignore;
  ignore.ignore_range_deletions = true;
  const auto count = [&] {
    int found = 0;
    for (int key = 0; key < kKeys; ++key) {
      std::string value;
      const Status s = db_->Get(ignore, Key(key), &value);
      EXPECT_TRUE(s.ok() || s.IsNotFound()) << s.ToString();
      found += s.ok() ? 1 : 0;
    }
    int scanned = 0;
    std::unique_ptr<Iterator> iter(db_->NewIterator(ignore));
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      ++scanned;
    }
    EXPECT_OK(iter->status());
    EXPECT_EQ(found, scanned);
    return found;
  };
  ASSERT_EQ(kKeys, count());
  db_->ReleaseSnapshot(snapshot);
  Wait();
  ASSERT_EQ(100, count());
  Verify();
}

// A base that a range deletion hides is gone. Operands above it are not, also
// for reads that ignore the deletion.
TEST_F(RangeDeletionSweepTest, OperandsAboveAFreedValueAreLive) {
  for (const bool has_delta_files : {false, true}) {
    for (const bool is_flushed : {false, true}) {
      Options options = SweepOptions();
      options.merge_operator = MergeOperators::CreateStringAppendOperator();
      options.enable_delta_separation = has_delta_files;
      DestroyAndReopen(options);
      model_.clear();
      // The values are versioned, so reads look for them in the SST file.
      const Snapshot* const snapshot = db_->GetSnapshot();
      FillAndFlush(0);
      ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                 Key(0), Key(200)));
      ASSERT_OK(db_->Merge(WriteOptions(), Key(7), "operand"));
      if (is_flushed) {
        ASSERT_OK(Flush());
      }
      db_->ReleaseSnapshot(snapshot);
      if (!is_flushed) {
        ASSERT_OK(db_->Flush(FlushOptions()));
        ASSERT_OK(db_->Merge(WriteOptions(), Key(7), "second"));
      }
      Wait();
      ASSERT_EQ(100u, Entries());
      const std::string expected = is_flushed ? "operand" : "operand,second";

      for (const bool ignores : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << has_delta_files << is_flushed << ignores);
        ReadOptions read;
        read.ignore_range_deletions = ignores;
        ColumnFamilyHandle* const family = db_->DefaultColumnFamily();
        std::unique_ptr<Iterator> iter(db_->NewIterator(read));
        iter->Seek(Key(7));
        ASSERT_TRUE(iter->Valid());
        ASSERT_EQ(Key(7), iter->key().ToString());
        ASSERT_EQ(expected, iter->value().ToString());
        std::string value;
        ASSERT_OK(db_->Get(read, Key(7), &value));
        ASSERT_EQ(expected, value);
        ASSERT_TRUE(db_->Get(read, Key(8), &value).IsNotFound());
        PinnableWideColumns columns;
        ASSERT_OK(db_->GetEntity(read, family, Key(7), &columns));
        ASSERT_EQ(expected, columns.columns().front().value());
        const std::string names[] = {Key(6), Key(7)};
        const Slice keys[] = {names[0], names[1]};
        PinnableSlice values[2];
        Status statuses[2];
        db_->MultiGet(read, family, 2, keys, values, statuses);
        ASSERT_TRUE(statuses[0].IsNotFound()) << statuses[0].ToString();
        ASSERT_OK(statuses[1]);
        ASSERT_EQ(expected, values[1]);
        PinnableSlice operands[4];
        int num_operands = 0;
        GetMergeOperandsOptions operand_options;
        operand_options.expected_max_number_of_operands = 4;
        ASSERT_OK(db_->GetMergeOperands(read, family, Key(7), operands,
                                        &operand_options, &num_operands));
        ASSERT_EQ(is_flushed ? 1 : 2, num_operands);
        ASSERT_EQ("operand", operands[0]);
        ASSERT_TRUE(db_->KeyMayExist(read, family, Key(7), &value));
      }
    }
  }
}

// A sweep that is due while background work is paused runs later, and calls
// that wait for background work return.
TEST_F(RangeDeletionSweepTest, PausedSweepContinuesLater) {
  DestroyAndReopen(SweepOptions());
  FillAndFlush(0);
  const Snapshot* const snapshot = db_->GetSnapshot();
  DeleteKeysAndFlush(0, 200);
  ASSERT_OK(db_->PauseBackgroundWork());
  db_->ReleaseSnapshot(snapshot);
  // The release would have scheduled the sweep, and Wait() would wait for it.
  Wait();
  ASSERT_EQ(1u, Pending());
  ASSERT_EQ(300u, Entries());
  ASSERT_OK(db_->ContinueBackgroundWork());
  Wait();
  ASSERT_EQ(100u, Entries());
  // While file deletions are disabled, values are removed from the map and
  // files stay.
  ASSERT_OK(db_->DisableFileDeletions());
  DeleteKeysAndFlush(200, kKeys);
  ASSERT_EQ(0u, Entries());
  ASSERT_OK(db_->EnableFileDeletions());
  VerifyAndCompact();
}

TEST_F(RangeDeletionSweepTest, ReadsAreRightBesideSweepsAndWrites) {
  Options options = SweepOptions();
  options.disable_auto_compactions = false;
  options.write_buffer_size = 16 << 10;
  options.level0_file_num_compaction_trigger = 2;
  options.blob_gc_space_amp_limit = 1.1;
  DestroyAndReopen(options);
  Fill(0);
  StoppableThreads reader;
  reader.Start([&] {
    while (!reader.stopped()) {
      std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        // Other threads do not write to the last hundred keys.
        ASSERT_FALSE(iter->value().empty());
      }
      ASSERT_OK(iter->status());
      for (int key = 200; key < kKeys; ++key) {
        ASSERT_EQ(ValueOf(key, 0), Get(Key(key)));
      }
    }
  });
  for (int round = 1; round < 60; ++round) {
    Fill(round, 0, 200);
    const int first = round * 37 % 130;
    DeleteKeys(first, first + 50);
    if (round % 5 == 0) {
      const Snapshot* const snapshot = db_->GetSnapshot();
      const auto then = model_;
      Fill(round, first, first + 70);
      DeleteKeys(0, 180);
      ASSERT_OK(Flush());
      for (int key = 0; key < 200; ++key) {
        const auto found = then.find(Key(key));
        ASSERT_EQ(found == then.end() ? "NOT_FOUND" : found->second,
                  Get(Key(key), snapshot));
      }
      db_->ReleaseSnapshot(snapshot);
    }
  }
  reader.Stop();
  ASSERT_OK(Flush());
  Wait();
  ASSERT_GT(Freed(), 0u);
  VerifyAndCompact();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
