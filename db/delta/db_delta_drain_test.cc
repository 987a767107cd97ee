//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Column families with delta files that are opened without delta separation are
// drained: all operands become values, and then neither the files nor the
// MANIFEST show that there were delta files.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/delta/db_delta_model_test_util.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_store.h"
#include "db/log_reader.h"
#include "db/version_edit.h"
#include "file/filename.h"
#include "file/sequence_file_reader.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/concurrent_task_limiter.h"
#include "rocksdb/listener.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/paused_call_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "util/random.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::AppendOperator;
using delta_test::ModelDBTest;
using delta_test::SetValues;
using Values = delta_test::ValuePlace;

// Keeps the reasons of flushes.
class FlushListener : public EventListener {
 public:
  void OnFlushBegin(DB* /*db*/, const FlushJobInfo& info) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    reasons_.push_back(info.flush_reason);
  }
  // Returns the reasons of the flushes since the last call.
  std::vector<FlushReason> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(reasons_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<FlushReason> reasons_;
};

// Keeps all values, and notes them.
class SeenValues : public CompactionFilter {
 public:
  Decision FilterV2(int /*level*/, const Slice& /*key*/, ValueType type,
                    const Slice& value, std::string* /*new_value*/,
                    std::string* /*skip_until*/) const override {
    if (type == ValueType::kValue) {
      const std::lock_guard<std::mutex> lock(mutex_);
      values_.push_back(value.ToString());
    }
    return Decision::kKeep;
  }
  const char* Name() const override { return "SeenValues"; }
  // Returns the values since the last call.
  std::vector<std::string> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(values_, {});
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::string> values_;
};

class DBDeltaDrainTest : public ModelDBTest,
                         public testing::WithParamInterface<Values> {
 protected:
  DBDeltaDrainTest() : ModelDBTest("db_delta_drain_test") {}

  // Matches AppendOperator.
  std::string Appended(const std::string& value,
                       const std::string& operand) const override {
    return value + "," + operand;
  }

  Options DeltaOptions(bool separate = true) const {
    Options options = ModelDBTest::DeltaOptions();
    options.merge_operator = std::make_shared<AppendOperator>();
    options.enable_delta_separation = separate;
    options.num_levels = 4;
    options.max_bgerror_resume_count = 0;
    SetValues(GetParam(), &options);
    return options;
  }
  Options PlainOptions(bool auto_jobs) {
    Options options = DeltaOptions(/*separate=*/false);
    options.disable_auto_compactions = !auto_jobs;
    return options;
  }

  void FlushOperands(uint32_t first, uint32_t last, size_t size = 30) {
    ModelDBTest::FlushOperands(first, last, size);
  }
  // Writes bases of all kinds below operands, and above some of them, in all
  // tiers and several buckets.
  void WriteAll() {
    for (uint32_t i = 0; i < kNumKeys; i += 2) {
      DoPut(KeyOf(i), std::string(1 + i % 40, 'v'));
    }
    ASSERT_OK(Flush());
    FlushOperands(0, kNumKeys, /*size=*/100);
    DoPut(KeyOf(3), "put");
    DoDelete(KeyOf(4));
    DoDeleteRange(KeyOf(10), KeyOf(20));
    FlushOperands(11, 13);
    FlushOperands(20, 40);
    ASSERT_OK(CompactAll());
    EXPECT_GT(Stat("buckets"), 1);
    for (int i = 0; i < 4; ++i) {
      FlushOperands(30, 60);
    }
    DoDelete(KeyOf(31));
    DoDeleteRange(KeyOf(40), KeyOf(45));
    DoPut(KeyOf(50), std::string(50, 'p'));
    FlushOperands(50, 70);
  }

  // Ingests a file with key 1, which needs a sequence number and must not get
  // one: the ingestion fails when it is about to commit.
  // REQUIRES: key 1 is in an SST file
  void RefuseIngestion(const Options& options) {
    const std::string file = dbname_ + "/refused.sst";
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(file));
    ASSERT_OK(writer.Put(KeyOf(1), "w"));
    ASSERT_OK(writer.Finish());
    IngestExternalFileOptions ingestion;
    ingestion.allow_global_seqno = false;
    ASSERT_TRUE(db_->IngestExternalFile({file}, ingestion).IsInvalidArgument());
  }

  // ---- Checks.

  // Returns the number of edits with deltas in the MANIFEST that CURRENT names.
  int NumDeltaEdits() {
    std::string manifest;
    EXPECT_OK(ReadFileToString(env_, CurrentFileName(dbname_), &manifest));
    EXPECT_FALSE(manifest.empty());
    manifest.pop_back();  // the newline
    manifest = dbname_ + "/" + manifest;
    std::unique_ptr<SequentialFileReader> reader;
    EXPECT_OK(SequentialFileReader::Create(env_->GetFileSystem(), manifest,
                                           FileOptions(), &reader,
                                           /*dbg=*/nullptr,
                                           /*rate_limiter=*/nullptr));
    log::Reader log(/*info_log=*/nullptr, std::move(reader),
                    /*reporter=*/nullptr, /*checksum=*/true, /*log_num=*/0);
    Slice record;
    std::string scratch;
    int num_deltas = 0;
    int num_edits = 0;
    while (log.ReadRecord(&record, &scratch)) {
      VersionEdit edit;
      EXPECT_OK(edit.DecodeFrom(record));
      num_deltas += edit.GetDeltaEdit() != nullptr;
      ++num_edits;
    }
    EXPECT_GT(num_edits, 0);
    return num_deltas;
  }
  // Checks that nothing is left of the store, so that a version that does not
  // know delta files can open the DB.
  void CheckDrained() {
    ASSERT_EQ(0, Stat("files"));
    ASSERT_EQ(0, Stat("buckets"));
    ASSERT_EQ(0, Stat("draining"));
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      ASSERT_EQ(nullptr, Family()->current()->storage_info()->delta());
    }
    ASSERT_EQ(0, NumFilesOnDisk());
    ASSERT_EQ(0, NumDeltaEdits());
  }
  // Checks that the DB is drained and stays so.
  void CheckPlain() {
    CheckDrained();
    Check();
    FlushOperands(0, kNumKeys);
    CheckDrained();
    Check();
    ASSERT_OK(CompactAll());
    Check();
    Close();
    EXPECT_EQ(0, NumDeltaEdits());
    ASSERT_OK(TryReopen(PlainOptions(/*auto_jobs=*/false)));
    EXPECT_EQ(nullptr, Family()->delta_store());
    EXPECT_EQ(0, NumDeltaEdits());
    Check();
  }
};

INSTANTIATE_TEST_CASE_P(Values, DBDeltaDrainTest,
                        testing::Values(Values::kInline, Values::kBlobs,
                                        Values::kMap, Values::kMapVersioned));

TEST_P(DBDeltaDrainTest, BackgroundJobsDrainTheStore) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  Check();
  EXPECT_GT(NumFilesOnDisk(), 0);
  EXPECT_GT(NumDeltaEdits(), 0);
  Reopen(PlainOptions(/*auto_jobs=*/true));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

// More jobs may be scheduled than there are threads for, and a job in the queue
// must not keep the others from the end of the drain.
TEST_P(DBDeltaDrainTest, JobsDrainTheStoreInAPoolWithOneThread) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  Options options = PlainOptions(/*auto_jobs=*/false);
  options.max_background_jobs = 8;
  Reopen(options);
  env_->SetBackgroundThreads(1, Env::Priority::LOW);
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  ASSERT_TRUE(WaitUntil([this] { return Stat("draining") == 0; }));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

TEST_P(DBDeltaDrainTest, CompactRangeDrainsTheStore) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  Reopen(PlainOptions(/*auto_jobs=*/false));
  // Without automatic compactions the drain does not begin on its own.
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_GT(Stat("files"), 0);
  EXPECT_EQ(1, Stat("draining"));
  Check();
  // The drain includes operands of the memtable.
  DoMerge(KeyOf(0), "m");
  DoMerge(KeyOf(199), "m");
  state_.erase(KeyOf(199));
  ASSERT_OK(Delete(KeyOf(199)));
  ASSERT_OK(CompactAll());
  // The values of the folds have been compacted down with the other files.
  EXPECT_EQ(0, NumTableFilesAtLevel(0));
  CheckPlain();
}

// CompactRange() flushes the memtables once, as RocksDB does, and requests no
// other flush if they are empty or there is nothing to drain. The operands of
// all memtables are drained. Atomic flushes include the other column family.
TEST_P(DBDeltaDrainTest, DrainFlushesOnlyWhatThereIs) {
  const auto listener = std::make_shared<FlushListener>();
  std::atomic<int> requests{0};
  const auto compact = [&](int num_requests, size_t num_flushes) {
    listener->Take();
    requests = 0;
    for (const char* const point :
         {"DBImpl::FlushMemTable:StallWaitDone",
          "DBImpl::AtomicFlushMemTables:AfterScheduleFlush"}) {
      EnableCallBack(point, [&](void*) { ++requests; });
    }
    ASSERT_OK(CompactAll());
    DisableCallBacks();
    EXPECT_EQ(num_requests, requests);
    EXPECT_EQ(
        std::vector<FlushReason>(num_flushes, FlushReason::kManualCompaction),
        listener->Take());
    CheckDrained();
    Check();
  };
  for (const bool atomic : {false, true}) {
    SCOPED_TRACE(atomic);
    state_.clear();
    const auto reopen = [&](Options options) {
      options.atomic_flush = atomic;
      options.listeners.push_back(listener);
      // A flush request waits if one more immutable memtable would stall.
      options.max_write_buffer_number = 4;
      Options other = PlainOptions(/*auto_jobs=*/false);
      other.atomic_flush = atomic;
      other.max_write_buffer_number = 4;
      ReopenWithColumnFamilies({kDefaultColumnFamilyName, "other"},
                               std::vector<Options>{options, other});
    };
    DestroyAndReopen(DeltaOptions());
    CreateColumnFamilies({"other"}, PlainOptions(/*auto_jobs=*/false));
    for (const bool has_immutable : {false, true}) {
      for (const bool has_mutable : {false, true}) {
        SCOPED_TRACE(has_immutable);
        SCOPED_TRACE(has_mutable);
        reopen(DeltaOptions());
        FlushOperands(0, 20);
        reopen(PlainOptions(/*auto_jobs=*/false));
        if (has_immutable) {
          DoMerge(KeyOf(0), "m");
          ASSERT_OK(dbfull()->TEST_SwitchMemtable());
        }
        if (has_mutable) {
          DoMerge(KeyOf(1), "m");
        }
        // No drain requests a flush because of this one.
        ASSERT_OK(Put(1, "k", "v"));
        const size_t num_others = atomic ? 1 : 0;
        const bool has_any = has_immutable || has_mutable;
        compact(/*num_requests=*/has_any ? 2 : 1,
                /*num_flushes=*/(has_any ? 1 : 0) + num_others);
        // The flush makes no delta file any more.
        DoMerge(KeyOf(0), "n");
        ASSERT_OK(Put(1, "k", "v"));
        compact(/*num_requests=*/1, /*num_flushes=*/1 + num_others);
      }
    }
  }
}

// A flush that began before the store was empty may still add operands to it.
// CompactRange() waits for the flush and drains them before its compaction.
TEST_P(DBDeltaDrainTest, DrainWaitsForAFlushThatMayFillTheEmptyStore) {
  const std::string key = KeyOf(1);
  DestroyAndReopen(DeltaOptions());
  DoMerge(key, "hidden");
  ASSERT_OK(Flush());
  SeenValues filter;
  Options options = PlainOptions(/*auto_jobs=*/false);
  options.compaction_filter = &filter;
  // A flush beside the blocked one would not stall writes.
  options.max_write_buffer_number = 8;
  Reopen(options);
  DoPut(key, std::string(50, 'v'));
  ASSERT_OK(Flush());
  DoMerge(key, "m");
  std::atomic<bool> may_end{false};
  const auto is_flushing = EnableCallBackOnce(
      "DeltaFlush::Publish:BeforeFiles",
      [&](void*) { EXPECT_TRUE(WaitUntil([&] { return may_end.load(); })); });
  FlushOptions no_wait;
  no_wait.wait = false;
  no_wait.allow_write_stall = true;
  ASSERT_OK(db_->Flush(no_wait));
  EXPECT_TRUE(WaitUntil([&] { return is_flushing->load(); }));
  // All operands of the store are hidden, so no fold has to wait for the flush.
  EXPECT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  EXPECT_TRUE(WaitUntil([&] {
    const InstrumentedMutexLock lock(dbfull()->mutex());
    return Family()->current()->storage_info()->delta() == nullptr;
  }));
  EXPECT_OK(db_->SetOptions({{"disable_auto_compactions", "true"}}));
  std::atomic<bool> waits{false};
  EnableCallBack("DBImpl::FlushMemTable:StallWaitDone",
                 [&](void*) { waits = true; });
  std::atomic<bool> has_returned{false};
  std::thread compaction([&] {
    EXPECT_OK(CompactAll());
    has_returned = true;
  });
  EXPECT_TRUE(WaitUntil([&] { return waits.load(); }));
  EXPECT_FALSE(has_returned);
  may_end = true;
  compaction.join();
  DisableCallBacks();
  const std::vector<std::string> seen = filter.Take();
  EXPECT_FALSE(seen.empty());
  for (const std::string& value : seen) {
    EXPECT_EQ(state_[key], value);
  }
  CheckDrained();
  Check();
  Close();
}

// While the store has operands of a key, newer operands of the key go to delta
// files. Operands of other keys go to SST files.
TEST_P(DBDeltaDrainTest, OperandsOfStoredKeysGoToDeltaFiles) {
  DestroyAndReopen(DeltaOptions());
  FlushOperands(0, 10);
  Reopen(PlainOptions(/*auto_jobs=*/false));
  EXPECT_EQ(0, NumTableFilesAtLevel(0));
  DoPut(KeyOf(2), "put");
  FlushOperands(5, 15);
  // A false positive of a filter may send a few other operands to delta files.
  EXPECT_LT(Stat("operands"), 20);
  EXPECT_EQ(1, NumTableFilesAtLevel(0));
  for (uint32_t i = 5; i < 10; ++i) {
    EXPECT_EQ(2, NumOperands(KeyOf(i)));
  }
  EXPECT_EQ(0, NumOperands(KeyOf(2)));
  Check();
  // A compaction of a part of the keys does not drain.
  const std::string begin = KeyOf(0);
  const Slice begin_slice = begin;
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), &begin_slice, nullptr));
  Check();
  EXPECT_GT(Stat("files"), 0);
  FlushOperands(8, 20);
  Check();
  // With the option on, the store has newer operands of keys that SST files
  // have.
  Reopen(DeltaOptions());
  FlushOperands(0, 30);
  Check();
  Reopen(PlainOptions(/*auto_jobs=*/true));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

// A snapshot delays the drain of only those keys whose operands it needs.
TEST_P(DBDeltaDrainTest, SnapshotDelaysOnlyTheKeysItNeeds) {
  DestroyAndReopen(DeltaOptions());
  FlushOperands(0, 100);
  Reopen(PlainOptions(/*auto_jobs=*/false));
  DoSnapshot();
  // The snapshot needs one operand of each of these keys, below newer operands
  // or a newer base.
  FlushOperands(0, 10);
  DoPut(KeyOf(20), "put");
  DoDelete(KeyOf(21));
  DoDeleteRange(KeyOf(30), KeyOf(35));
  DoMerge(KeyOf(22), "m");
  ASSERT_OK(Flush());
  Check();
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_GT(Stat("files"), 0);
  EXPECT_GT(Stat("drain-waiting-files"), 0);
  // The other operands have become values.
  EXPECT_EQ(0, NumOperands(KeyOf(50)));
  EXPECT_GT(NumOperands(KeyOf(5)), 0);
  Check();
  // No job runs while the drain waits for the snapshot.
  const uint64_t collected =
      last_options_.statistics->getTickerCount(DELTA_BUCKETS_COLLECTED);
  ASSERT_OK(Put("other", "x"));
  ASSERT_OK(Flush());
  ASSERT_OK(Delete("other"));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(collected,
            last_options_.statistics->getTickerCount(DELTA_BUCKETS_COLLECTED));
  // CompactRange() drains what it can, and returns.
  ASSERT_OK(CompactAll());
  EXPECT_GT(Stat("files"), 0);
  Check();
  ReleaseSnapshots();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

// The drain begins a new MANIFEST even if its edit is the second one of a
// commit group, and the first edit does not ask for a new MANIFEST.
TEST_P(DBDeltaDrainTest, DrainBeginsANewManifestFromWithinAGroup) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  Reopen(PlainOptions(/*auto_jobs=*/false));
  std::atomic<int> num_waiting{0};
  std::atomic<bool> writes{false};
  // Waits for at most a minute.
  const auto wait_until = [this](const std::function<bool()>& is_true) {
    const uint64_t end = env_->NowMicros() + 60 * 1000 * 1000;
    while (!is_true()) {
      if (env_->NowMicros() > end) {
        ADD_FAILURE() << "The writers did not come";
        return;
      }
      std::this_thread::yield();
    }
  };
  const auto wait_for = [&](int num) {
    wait_until([&] { return num_waiting >= num; });
  };
  const auto log_an_edit = [this] {
    VersionSet* const versions = dbfull()->GetVersionSet();
    InstrumentedMutexLock lock(dbfull()->mutex());
    VersionEdit edit;
    EXPECT_OK(versions->LogAndApply(Family(), ReadOptions(), WriteOptions(),
                                    &edit, dbfull()->mutex(),
                                    /*dir_contains_current_file=*/nullptr));
  };
  std::thread first;
  std::thread second;
  const auto begin = [&](void*) {
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      if (first.joinable() ||
          Family()->current()->storage_info()->delta() != nullptr) {
        return;
      }
    }
    // The first edit is written when two more wait behind it. All three writers
    // pass the sync point.
    EnableCallBack("VersionSet::LogAndApply:BeforeWriterWaiting",
                   [&](void*) { ++num_waiting; });
    EnableCallBack("VersionSet::LogAndApply:WriteManifest", [&](void*) {
      if (!writes.exchange(true)) {
        wait_for(3);
      }
    });
    first = std::thread(log_an_edit);
    wait_until([&] { return writes.load(); });
    second = std::thread(log_an_edit);
    wait_for(2);
  };
  EnableCallBack("DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit",
                 begin);
  ASSERT_OK(CompactAll());
  ASSERT_TRUE(first.joinable());
  first.join();
  second.join();
  DisableCallBacks();
  CheckPlain();
}

// When the last column family with delta files is dropped, nothing is left of
// the store either. A MANIFEST that could not be begun is tried once more, and
// later jobs are not told of the failure.
TEST_P(DBDeltaDrainTest, DropOfTheLastFamilyBeginsANewManifest) {
  for (const bool roll_fails : {false, true}) {
    for (const bool one_call : {false, true}) {
      for (const bool atomic_flush : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << roll_fails << " " << one_call << " " << atomic_flush);
        state_.clear();
        Options options = PlainOptions(/*auto_jobs=*/false);
        options.atomic_flush = atomic_flush;
        DestroyAndReopen(options);
        DoPut(KeyOf(1), "v");
        ASSERT_OK(Flush());
        std::vector<ColumnFamilyHandle*> families;
        for (const char* name : {"one", "two", "never used"}) {
          ColumnFamilyHandle* handle = nullptr;
          ASSERT_OK(db_->CreateColumnFamily(DeltaOptions(), name, &handle));
          families.push_back(handle);
        }
        for (size_t i = 0; i < 2; ++i) {
          ASSERT_OK(db_->Merge(WriteOptions(), families[i], KeyOf(1), "m"));
          ASSERT_OK(db_->Flush(FlushOptions(), families[i]));
        }
        EXPECT_GT(NumDeltaEdits(), 1);
        std::atomic<int> num_rolls{0};
        std::atomic<bool> fails{false};
        EnableCallBack("DBStrata::RollManifestAndSchedule:Roll",
                       [&](void*) { fails = roll_fails && num_rolls++ == 0; });
        EnableCallBack("VersionSet::ProcessManifestWrites:AfterSyncManifest",
                       [&](void* status) {
                         if (fails.exchange(false)) {
                           *static_cast<IOStatus*>(status) =
                               IOStatus::IOError("injected");
                         }
                       });
        if (one_call) {
          ASSERT_OK(db_->DropColumnFamilies({families[0], families[1]}));
        } else {
          ASSERT_OK(db_->DropColumnFamily(families[0]));
          EXPECT_GT(NumDeltaEdits(), 0);
          ASSERT_OK(db_->DropColumnFamily(families[1]));
        }
        DisableCallBacks();
        EXPECT_EQ(roll_fails ? 2 : 0, num_rolls.load());
        EXPECT_EQ(0, NumDeltaEdits());
        if (atomic_flush) {
          DoPut(KeyOf(2), "v");
          ASSERT_OK(Flush());
        } else {
          ASSERT_NO_FATAL_FAILURE(RefuseIngestion(options));
        }
        ASSERT_OK(dbfull()->TEST_GetBGError());
        for (ColumnFamilyHandle* handle : families) {
          ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
        }
        DoPut(KeyOf(3), "v");
        ASSERT_OK(Flush());
        EXPECT_EQ(0, NumDeltaEdits());
        Check();
        Close();
        EXPECT_EQ(0, NumDeltaEdits());
        ReopenWithColumnFamilies({kDefaultColumnFamilyName, "never used"},
                                 std::vector<Options>{options, DeltaOptions()});
        EXPECT_EQ(Get(0, KeyOf(3)), "v");
        Close();
      }
    }
  }
}

// Each release of a snapshot lets the drain fold more operands.
TEST_P(DBDeltaDrainTest, EachReleasedSnapshotLetsTheDrainGoOn) {
  DestroyAndReopen(DeltaOptions());
  for (int i = 0; i < 4; ++i) {
    FlushOperands(10 * i, 10 * i + 30);
    DoSnapshot();
    DoDelete(KeyOf(10 * i));
  }
  FlushOperands(0, 60);
  ReleaseSnapshots();
  Reopen(PlainOptions(/*auto_jobs=*/false));
  for (int i = 0; i < 4; ++i) {
    DoSnapshot();
    DoDelete(KeyOf(10 * i + 5));
    FlushOperands(10 * i, 10 * i + 30);
  }
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  while (!snapshots_.empty()) {
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    EXPECT_GT(Stat("files"), 0);
    Check();
    db_->ReleaseSnapshot(snapshots_.front().first);
    snapshots_.erase(snapshots_.begin());
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

// An iterator delays the drain as a snapshot does, and so do the iterators of
// NewIterators().
TEST_P(DBDeltaDrainTest, ClosedIteratorLetsTheDrainGoOn) {
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared);
    DestroyAndReopen(DeltaOptions());
    DoPut(KeyOf(1), std::string(30, 'v'));
    ASSERT_OK(Flush());
    FlushOperands(1, 2);
    Reopen(PlainOptions(/*auto_jobs=*/false));
    std::vector<Iterator*> iterators(1);
    if (shared) {
      ASSERT_OK(db_->NewIterators(ReadOptions(), {Handle()}, &iterators));
    } else {
      iterators[0] = db_->NewIterator(ReadOptions());
    }
    FlushOperands(1, 2);
    ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    // Without a map an iterator has its SuperVersion, and delays nothing.
    const bool has_map =
        GetParam() == Values::kMap || GetParam() == Values::kMapVersioned;
    EXPECT_EQ(has_map, Stat("files") > 0);
    Check();
    delete iterators[0];
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    CheckPlain();
    state_.clear();
  }
}

// AbortAllCompactions() waits for a fold of the background that is about to be
// committed. Afterwards nothing changes until ResumeAllCompactions().
TEST_P(DBDeltaDrainTest, AbortWaitsForAFold) {
  DestroyAndReopen(DeltaOptions());
  DoPut(KeyOf(0), "base");
  ASSERT_OK(Flush());
  FlushOperands(0, 20);
  Reopen(PlainOptions(/*auto_jobs=*/false));
  ASSERT_GT(Stat("files"), 0);
  std::thread aborting;
  std::atomic<bool> waits{false};
  std::atomic<bool> is_over{false};
  EventCount went_on;
  EnableCallBack("DBStrata::HasAbortedJobs:Waits",
                 [&](void*) { waits = true; });
  EnableCallBackOnce("DBStrata::BeginDeltaFold:BeforeEdit", [&](void*) {
    dbfull()->mutex()->Unlock();
    aborting = std::thread([&] {
      db_->AbortAllCompactions();
      is_over = true;
    });
    EXPECT_TRUE(WaitUntil([&] { return waits || is_over; }));
    EXPECT_FALSE(is_over);
    dbfull()->mutex()->Lock();
    went_on.Add();
  });
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  ASSERT_TRUE(went_on.WaitFor(1));
  aborting.join();
  DisableCallBacks();
  const uint64_t num_files = Stat("files");
  const int num_tables = NumTableFilesAtLevel(0);
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  EXPECT_EQ(num_files, Stat("files"));
  EXPECT_EQ(num_tables, NumTableFilesAtLevel(0));
  Check();
  db_->ResumeAllCompactions();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

// A compaction of level 0 that is queued does not begin during a pause, and
// CompactRange() does not wait for it.
TEST_P(DBDeltaDrainTest, DrainDuringAPauseWaitsForNoQueuedCompaction) {
  DestroyAndReopen(DeltaOptions());
  for (uint32_t file = 0; file < 5; ++file) {
    DoPut(KeyOf(0), "v" + std::to_string(file));
    ASSERT_OK(Flush());
  }
  FlushOperands(0, 20);
  Reopen(PlainOptions(/*auto_jobs=*/false));
  ASSERT_GT(Stat("files"), 0);
  std::atomic<int> num_waits{0};
  EnableCallBack("DBStrata::ManualDeltaJob::MustWaitForCompactions:MaxWait",
                 [&](void*) { ++num_waits; });
  CallDuringAPause(db_.get(), [this] {
    EXPECT_OK(db_->SetOptions({{"level0_file_num_compaction_trigger", "2"},
                               {"level0_slowdown_writes_trigger", "4"},
                               {"level0_stop_writes_trigger", "100"},
                               {"disable_auto_compactions", "false"}}));
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      EXPECT_TRUE(Family()->queued_for_compaction());
    }
    CompactRangeOptions compact;
    compact.allow_write_stall = true;
    EXPECT_OK(db_->CompactRange(compact, nullptr, nullptr));
    EXPECT_EQ(0, Stat("files"));
  });
  EXPECT_EQ(0, num_waits);
  DisableCallBacks();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  Check();
}

// CompactRange() ends although a compaction of level 0 is queued and is never
// admitted.
TEST_P(DBDeltaDrainTest, DrainDoesNotWaitForACompactionThatIsRefused) {
  DestroyAndReopen(DeltaOptions());
  for (uint32_t file = 0; file < 5; ++file) {
    for (uint32_t i = 0; i < 20; ++i) {
      DoPut(KeyOf(i), "v" + std::to_string(file));
    }
    ASSERT_OK(Flush());
  }
  FlushOperands(0, 20);
  ASSERT_GT(Stat("files"), 0);
  const std::shared_ptr<ConcurrentTaskLimiter> limiter(
      NewConcurrentTaskLimiter("none", /*max_outstanding_task=*/0));
  Options options = PlainOptions(/*auto_jobs=*/true);
  options.level0_file_num_compaction_trigger = 2;
  options.level0_slowdown_writes_trigger = 4;
  options.level0_stop_writes_trigger = 100;
  options.compaction_thread_limiter = limiter;
  Reopen(options);
  std::atomic<int> num_waits{0};
  EnableCallBack("DBStrata::ManualDeltaJob::MustWaitForCompactions:MaxWait",
                 [&](void* arg) {
                   *static_cast<uint64_t*>(arg) = 100 * 1000;
                   ++num_waits;
                 });
  std::atomic<bool> is_canceled{false};
  std::atomic<bool> is_over{false};
  std::thread watch([&] {
    EXPECT_TRUE(WaitUntil([&] { return is_over.load(); }));
    is_canceled = true;
  });
  CompactRangeOptions compact;
  compact.canceled = &is_canceled;
  compact.allow_write_stall = true;
  EXPECT_OK(db_->CompactRange(compact, nullptr, nullptr));
  is_over = true;
  watch.join();
  DisableCallBacks();
  EXPECT_GT(num_waits, 1);
  EXPECT_EQ(0, Stat("files"));
  limiter->SetMaxOutstandingTask(-1);
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

// Universal compaction leaves files of unlike sizes in level 0 as they are,
// also beyond the trigger for the slowdown of writes.
TEST_P(DBDeltaDrainTest, DrainDoesNotWaitForACompactionThatDoesNotCome) {
  for (const bool manual : {false, true}) {
    SCOPED_TRACE(manual);
    const auto with_universal = [](Options options) {
      options.compaction_style = kCompactionStyleUniversal;
      options.num_levels = 1;
      options.disable_auto_compactions = false;
      options.level0_file_num_compaction_trigger = 2;
      options.level0_slowdown_writes_trigger = 4;
      options.level0_stop_writes_trigger = 100;
      options.compaction_options_universal.max_read_amp = 50;
      options.compaction_options_universal.max_size_amplification_percent =
          100000;
      options.compression = kNoCompression;
      return options;
    };
    DestroyAndReopen(with_universal(DeltaOptions()));
    FlushOptions no_wait;
    no_wait.allow_write_stall = true;
    const auto flush = [&] {
      ASSERT_OK(db_->Flush(no_wait));
      ASSERT_OK(dbfull()->TEST_WaitForCompact());
    };
    for (const uint32_t num_keys : {160, 80, 40, 20, 10}) {
      for (uint32_t i = 0; i < num_keys; ++i) {
        DoPut(KeyOf(i),
              std::string(19, static_cast<char>('a' + i % 26)) + KeyOf(i));
      }
      flush();
    }
    DoMerge(KeyOf(1), "m");
    flush();
    ASSERT_GE(NumTableFilesAtLevel(0), 4);
    ASSERT_GT(Stat("files"), 0);
    Options options = with_universal(PlainOptions(/*auto_jobs=*/true));
    options.disable_auto_compactions = manual;
    Reopen(options);
    if (manual) {
      ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
      std::atomic<bool> is_canceled{false};
      std::atomic<bool> is_over{false};
      std::thread watch([&] {
        EXPECT_TRUE(WaitUntil([&] { return is_over.load(); }));
        is_canceled = true;
      });
      CompactRangeOptions compact;
      compact.canceled = &is_canceled;
      compact.allow_write_stall = true;
      EXPECT_OK(db_->CompactRange(compact, nullptr, nullptr));
      is_over = true;
      watch.join();
    } else {
      EXPECT_TRUE(WaitUntil([&] { return Stat("files") == 0; }));
    }
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    CheckDrained();
    Check();
    Close();
    state_.clear();
  }
}

TEST_P(DBDeltaDrainTest, ReopenedDrainGoesOn) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  // Each call of CompactRange() is canceled after its first job.
  int num_calls = 0;
  for (;; ++num_calls) {
    ASSERT_LT(num_calls, 20);
    Reopen(PlainOptions(/*auto_jobs=*/false));
    Check();
    if (Stat("files") == 0) {
      break;
    }
    std::atomic<bool> canceled{false};
    for (const char* const point :
         {"DBStrata::BackgroundDeltaMerge::RunMarked:AfterEdit",
          "DBStrata::BackgroundDeltaCollection::RunMarked:AfterEdit"}) {
      EnableCallBack(point, [&](void*) { canceled = true; });
    }
    CompactRangeOptions compact;
    compact.canceled = &canceled;
    const Status s = CompactAll(compact);
    EXPECT_TRUE(s.ok() || s.IsIncomplete()) << s.ToString();
    EXPECT_TRUE(canceled);
    DisableCallBacks();
    Check();
  }
  // The first call has only merged the flushed files.
  EXPECT_GE(num_calls, 2);
  CheckPlain();
}

TEST_P(DBDeltaDrainTest, DrainStopsWhenTheOptionIsOnAgain) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  Reopen(PlainOptions(/*auto_jobs=*/false));
  DoSnapshot();
  FlushOperands(0, 100);
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_GT(Stat("files"), 0);
  Check();
  ReleaseSnapshots();
  Options options = DeltaOptions();
  options.disable_auto_compactions = false;
  Reopen(options);
  EXPECT_EQ(0, Stat("draining"));
  for (int i = 0; i < 5; ++i) {
    FlushOperands(50, 150);
  }
  Check();
  ASSERT_OK(CompactAll());
  Check();
  EXPECT_GT(Stat("files"), 0);
  Reopen(PlainOptions(/*auto_jobs=*/true));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

TEST_P(DBDeltaDrainTest, OnlyAKeyWhoseMergeFailsStays) {
  DestroyAndReopen(DeltaOptions());
  FlushOperands(0, 100);
  const std::string bad = KeyOf(50);
  ASSERT_OK(Merge(bad, "bad"));
  ASSERT_OK(Flush());
  Reopen(PlainOptions(/*auto_jobs=*/true));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  // The drain leaves only this key.
  EXPECT_EQ(1, Stat("drain-waiting-files"));
  EXPECT_EQ(2, Stat("operands"));
  EXPECT_EQ(2, NumOperands(bad));
  std::string value;
  EXPECT_TRUE(db_->Get(ReadOptions(), bad, &value).IsCorruption());
  EXPECT_EQ(state_[KeyOf(49)], Get(KeyOf(49)));
  ASSERT_OK(CompactAll());
  EXPECT_EQ(2, NumOperands(bad));
  // Operands of other keys come and are drained.
  for (int i = 0; i < 6; ++i) {
    DoMerge(KeyOf(51), "m");
    ASSERT_OK(Merge(bad, "m"));
    ASSERT_OK(Flush());
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
  }
  EXPECT_TRUE(db_->Get(ReadOptions(), bad, &value).IsCorruption());
  EXPECT_LE(Stat("files"), 8);
  // The key can be merged now.
  DoPut(bad, "good");
  ASSERT_OK(CompactAll());
  CheckPlain();
}

// A key whose merge fails does not keep the drain from folding others when the
// snapshot is released for which these were left by the same jobs.
TEST_P(DBDeltaDrainTest, ReleasedSnapshotFreesKeysBesideAFailedOne) {
  DestroyAndReopen(DeltaOptions());
  FlushOperands(0, 100);
  const std::string bad = KeyOf(50);
  const std::string seen = KeyOf(5);
  ASSERT_OK(Merge(bad, "bad"));
  ASSERT_OK(Flush());
  Reopen(PlainOptions(/*auto_jobs=*/false));
  DoSnapshot();
  DoMerge(seen, "m");
  ASSERT_OK(Flush());
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(2, NumOperands(seen));
  EXPECT_EQ(2, NumOperands(bad));
  EXPECT_EQ(4, Stat("operands"));
  ReleaseSnapshots();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, NumOperands(seen));
  EXPECT_EQ(state_[seen], Get(seen));
  EXPECT_EQ(2, NumOperands(bad));
  EXPECT_EQ(1, Stat("drain-waiting-files"));
  // The key can be merged now.
  DoPut(bad, "good");
  ASSERT_OK(CompactAll());
  CheckPlain();
}

// The drain folds 12 MiB of operands of one key.
TEST_P(DBDeltaDrainTest, LongChainIsFolded) {
  DestroyAndReopen(DeltaOptions());
  for (int i = 0; i < 3; ++i) {
    FlushOperands(7, 8, /*size=*/size_t{4} << 20);
  }
  FlushOperands(0, 20);
  Reopen(PlainOptions(/*auto_jobs=*/true));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

// If the values of a fold exceed its memory limit, later jobs fold the rest.
TEST_P(DBDeltaDrainTest, FoldsOverTheMemoryLimitTakeSeveralJobs) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  std::atomic<int> num_folds{0};
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::BackgroundDeltaCollection::MakeFolder:MaxBytes",
      [](void* arg) { *static_cast<uint64_t*>(arg) = 2000; });
  SyncPoint::GetInstance()->SetCallBack("DBStrata::BeginDeltaFold:Entered",
                                        [&](void*) { ++num_folds; });
  SyncPoint::GetInstance()->EnableProcessing();
  Reopen(PlainOptions(/*auto_jobs=*/true));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  DisableCallBacks();
  EXPECT_GT(num_folds, 2);
  CheckPlain();
}

// The drain ends although the same keys are merged all the time.
TEST_P(DBDeltaDrainTest, DrainEndsUnderASteadyLoad) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  Reopen(PlainOptions(/*auto_jobs=*/true));
  int rounds = 0;
  while (Stat("files") > 0) {
    ASSERT_LT(++rounds, 1000);
    FlushOperands(0, kNumKeys);
  }
  Check();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

TEST_P(DBDeltaDrainTest, DrainEndsUnderALoadOfThreads) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  Options options = PlainOptions(/*auto_jobs=*/true);
  options.write_buffer_size = 64 << 10;
  Reopen(options);
  std::atomic<bool> done{false};
  std::vector<std::vector<std::string>> written(2);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Random rnd(t);
      while (!done) {
        const std::string key = KeyOf(2 * rnd.Uniform(kNumKeys / 2) + t);
        ASSERT_OK(Merge(key, "mmmmmmmm"));
        written[t].push_back(key);
        if (written[t].size() % 256 == 0) {
          std::this_thread::yield();
        }
      }
    });
  }
  ASSERT_OK(CompactAll());
  for (int i = 0; Stat("files") > 0 && i < 600; ++i) {
    env_->SleepForMicroseconds(100 * 1000);
  }
  EXPECT_EQ(0, Stat("files"));
  done = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& keys : written) {
    for (const std::string& key : keys) {
      state_[key] += ",mmmmmmmm";
    }
  }
  Check();
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  CheckPlain();
}

// Operands that only the WAL has when the option is turned off are drained.
TEST_P(DBDeltaDrainTest, OperandsOfTheWalAreDrained) {
  for (bool flush : {false, true}) {
    DestroyAndReopen(DeltaOptions());
    state_.clear();
    FlushOperands(0, 50);
    Options options = DeltaOptions();
    options.avoid_flush_during_shutdown = true;
    Reopen(options);
    for (uint32_t i = 20; i < 80; ++i) {
      DoMerge(KeyOf(i), "wal");
    }
    DoPut(KeyOf(21), "put");
    DoDelete(KeyOf(75));
    options = PlainOptions(/*auto_jobs=*/true);
    options.avoid_flush_during_recovery = !flush;
    Reopen(options);
    Check();
    ASSERT_OK(Flush());
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    CheckPlain();
  }
}

// A column family is drained while another one keeps its delta files.
TEST_P(DBDeltaDrainTest, OneFamilyIsDrainedBesideAnother) {
  const Options on = DeltaOptions();
  DestroyAndReopen(on);
  CreateAndReopenWithCF({"other"}, on);
  for (int cf = 0; cf < 2; ++cf) {
    ASSERT_OK(Merge(cf, "k", "1"));
    ASSERT_OK(Flush(cf));
  }
  const Options off = PlainOptions(/*auto_jobs=*/true);
  ReopenWithColumnFamilies({"default", "other"}, std::vector<Options>{off, on});
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, Stat("files"));
  EXPECT_GT(NumDeltaEdits(), 0);
  EXPECT_EQ(",1", Get(0, "k"));
  EXPECT_EQ(",1", Get(1, "k"));
  ReopenWithColumnFamilies({"default", "other"},
                           std::vector<Options>{off, off});
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, NumDeltaEdits());
  EXPECT_EQ(",1", Get(0, "k"));
  EXPECT_EQ(",1", Get(1, "k"));
}

// If the tree cannot be read, no operand is lost, and the drain ends after a
// reopening.
TEST_P(DBDeltaDrainTest, DrainGoesOnAfterReadErrors) {
  if (GetParam() != Values::kInline) {
    ROCKSDB_GTEST_SKIP("The place of the values makes no difference");
    return;
  }
  const auto fs = std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> env(new CompositeEnvWrapper(env_, fs));
  Options options = DeltaOptions();
  options.env = env.get();
  DestroyAndReopen(options);
  WriteAll();
  options = PlainOptions(/*auto_jobs=*/false);
  options.env = env.get();
  Reopen(options);
  EnableCallBack("DeltaValueFolder::Fold",
                 [&](void*) { fs->SetFilesystemActive(false); });
  EXPECT_NOK(CompactAll());
  DisableCallBacks();
  fs->SetFilesystemActive(true);
  Reopen(options);
  Check();
  ASSERT_OK(CompactAll());
  CheckDrained();
  Check();
  Close();
}

// CompactRange() does not succeed if values that the drain needs cannot be
// read.
TEST_P(DBDeltaDrainTest, CompactRangeTellsOfUnreadableValues) {
  DestroyAndReopen(DeltaOptions());
  WriteAll();
  Reopen(PlainOptions(/*auto_jobs=*/false));
  const auto has_failed =
      EnableCallBackOnce("DeltaValueFolder::MergeKey:Sought", [](void* arg) {
        *static_cast<Status*>(arg) = Status::Corruption("injected");
      });
  EXPECT_TRUE(CompactAll().IsCorruption());
  EXPECT_TRUE(*has_failed);
  DisableCallBacks();
  EXPECT_GT(Stat("files"), 0);
  Check();
  ASSERT_OK(CompactAll());
  CheckPlain();
}

// A damaged block of an SST file costs the folds of its own keys only. They are
// not repeated in the background.
TEST_P(DBDeltaDrainTest, DamagedBlockLeavesOnlyItsKeys) {
  if (GetParam() != Values::kInline) {
    ROCKSDB_GTEST_SKIP("The values are not in SST files");
    return;
  }
  DestroyAndReopen(DeltaOptions());
  for (uint32_t i = 0; i < kNumKeys; ++i) {
    DoPut(KeyOf(i), std::string(200, 'v'));
  }
  ASSERT_OK(Flush());
  FlushOperands(0, kNumKeys);
  ASSERT_OK(CompactAll());
  ASSERT_GT(Stat("buckets"), 1);
  DeleteObsoleteFiles();
  const std::vector<std::string> tables = FilesIn(dbname_, kTableFile);
  ASSERT_EQ(1, tables.size());
  const std::string damaged = dbname_ + "/" + tables.front();
  Close();
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, damaged, &contents));
  std::string changed = contents;
  changed[20] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, changed, damaged));

  Options options = PlainOptions(/*auto_jobs=*/false);
  options.statistics = CreateDBStatistics();
  Reopen(options);
  for (int i = 0; i < 2; ++i) {
    const Status s = CompactAll();
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_LT(0, Stat("operands"));
    EXPECT_LT(Stat("operands"), kNumKeys / 2);
  }
  EXPECT_EQ(0, Ticker(DELTA_GC_FAILED));
  // Jobs of the background do not try again.
  std::atomic<int> num_folds{0};
  EnableCallBack("DeltaValueFolder::Fold", [&](void*) { ++num_folds; });
  {
    const InstrumentedMutexLock lock(dbfull()->mutex());
    EXPECT_TRUE(Family()->delta_store()->jobs().IsIdle());
    Family()->delta_store()->jobs().SetCollectionDue();
  }
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(0, num_folds);
  DisableCallBacks();
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "true"}}));

  Close();
  ASSERT_OK(WriteStringToFile(env_, contents, damaged));
  Reopen(PlainOptions(/*auto_jobs=*/false));
  Check();
  ASSERT_OK(CompactAll());
  CheckPlain();
}

TEST_P(DBDeltaDrainTest, RandomDrainsKeepAllValues) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    Random rnd(301 + seed + 10 * static_cast<uint32_t>(GetParam()));
    DestroyAndReopen(DeltaOptions());
    state_.clear();
    for (int round = 0; round < 30; ++round) {
      RandomWrites(1 + static_cast<int>(rnd.Uniform(200)), &rnd);
      if (rnd.OneIn(3)) {
        DoSnapshot();
      }
      if (rnd.OneIn(5)) {
        ReleaseSnapshots();
      }
      if (!rnd.OneIn(4)) {
        ASSERT_OK(Flush());
      }
      if (rnd.OneIn(6)) {
        ASSERT_OK(CompactAll());
      }
      if (rnd.OneIn(4)) {
        ReleaseSnapshots();
        Options options = DeltaOptions(/*separate=*/rnd.OneIn(2));
        options.disable_auto_compactions = rnd.OneIn(3);
        options.delta_max_buckets = rnd.OneIn(2) ? 6 : 64;
        options.paranoid_file_checks = rnd.OneIn(2);
        options.avoid_flush_during_shutdown = rnd.OneIn(2);
        Reopen(options);
      }
      if (rnd.OneIn(2)) {
        Check();
      }
      if (HasFatalFailure()) {
        return;
      }
    }
    ReleaseSnapshots();
    Reopen(PlainOptions(/*auto_jobs=*/true));
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    CheckPlain();
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
