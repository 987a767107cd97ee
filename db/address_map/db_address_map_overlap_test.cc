//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with enable_blob_address_map: jobs that depend on the edit of a
// compaction before the names that it has removed leave the map, and concurrent
// readers. The rules are in docs/architecture.md, "Jobs and readers of the
// map".

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/deferred_removals.h"
#include "db/address_map/map_point_read.h"
#include "db/db_impl/db_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/listener.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/sst_file_manager.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Merged values become short, and therefore inline, or stay long.
class Merger : public AssociativeMergeOperator {
 public:
  explicit Merger(bool shortens) : shortens_(shortens) {}
  bool Merge(const Slice&, const Slice* existing, const Slice& operand,
             std::string* result, Logger*) const override {
    *result = existing == nullptr ? operand.ToString()
              : shortens_         ? "merged"
                                  : existing->ToString() + operand.ToString();
    return true;
  }
  const char* Name() const override { return "Merger"; }

 private:
  const bool shortens_;
};

// Removes the values of some keys.
class Remover : public CompactionFilter {
 public:
  void Remove(const std::string& key) { keys_.insert(key); }
  Decision FilterV2(int, const Slice& key, ValueType type, const Slice&,
                    std::string*, std::string*) const override {
    return type == ValueType::kValue && keys_.count(key.ToString()) > 0
               ? Decision::kRemove
               : Decision::kKeep;
  }
  const char* Name() const override { return "Remover"; }

 private:
  std::set<std::string> keys_;
};

// Removes all values.
class CountingRemover : public CompactionFilter {
 public:
  Decision FilterV2(int, const Slice&, ValueType, const Slice&, std::string*,
                    std::string*) const override {
    ++num_removed;
    return Decision::kRemove;
  }
  const char* Name() const override { return "CountingRemover"; }

  mutable std::atomic<int> num_removed{0};
};

// A file system that makes no temporary file while it is told so.
class NoTemporaryFilesFS : public FileSystemWrapper {
 public:
  // error: what it returns then.
  NoTemporaryFilesFS(const std::shared_ptr<FileSystem>& base,
                     const IOStatus& error)
      : FileSystemWrapper(base), error_(error) {}

  static const char* kClassName() { return "NoTemporaryFilesFS"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    return fails && name.ends_with(".dbtmp")
               ? error_
               : target()->NewWritableFile(name, options, result, dbg);
  }

  std::atomic<bool> fails{false};

 private:
  const IOStatus error_;
};

// Keeps the last error that was told.
class ErrorListener : public EventListener {
 public:
  ~ErrorListener() override { error.PermitUncheckedError(); }
  void OnBackgroundError(BackgroundErrorReason /*reason*/,
                         Status* bg_error) override {
    error = *bg_error;
  }

  Status error;
};

}  // namespace

// The parameter says whether there is a filter policy.
class DBAddressMapOverlapTest : public AddressMapDBTestBase,
                                public testing::WithParamInterface<bool> {
 protected:
  static constexpr int kBottom = 3;

  DBAddressMapOverlapTest()
      : AddressMapDBTestBase("db_address_map_overlap_test") {}

  Options MapOptions() {
    Options options = AddressMapDBTestBase::MapOptions(/*min_blob_size=*/32);
    // Garbage is collected as by default.
    options.blob_gc_space_amp_limit = Options().blob_gc_space_amp_limit;
    options.num_levels = kBottom + 1;
    options.max_background_jobs = 4;
    options.max_bgerror_resume_count = 0;
    BlockBasedTableOptions table_options;
    if (GetParam()) {
      table_options.filter_policy.reset(NewBloomFilterPolicy(10));
    }
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
    return options;
  }

  static std::string Long(const std::string& text) {
    return text + std::string(40, '.');
  }

  // Flushes the memtable and compacts its keys into the bottommost level.
  void FlushToBottom() {
    ASSERT_OK(Flush());
    ASSERT_OK(CompactInto(0, kBottom));
  }

  // Runs `second` beside `first`, a compaction that has committed its edit but
  // has not yet removed its names from the map. `first` continues when `second`
  // has ended or waits for it. `check` is called at that time and after both
  // have ended.
  void Overtake(const std::function<void()>& first,
                const std::function<void()>& second,
                const std::function<void(bool second_is_over)>& check) {
    std::atomic<bool> waits{false};
    std::atomic<bool> is_over{false};
    std::atomic<bool> was_reached{false};
    std::thread thread;
    SyncPoint::GetInstance()->SetCallBack("DBStrata::WaitForSettledMap:Waits",
                                          [&](void*) { waits = true; });
    EnableCallBackOnce("CompactionMapping::Settle", [&](void*) {
      was_reached = true;
      thread = std::thread([&] {
        second();
        is_over = true;
      });
      EXPECT_TRUE(WaitUntil([&] { return waits || is_over; }))
          << "the second job neither ends nor waits";
      EXPECT_TRUE(waits) << "the second job did not wait for the first";
      check(is_over);
    });
    first();
    ASSERT_TRUE(was_reached);
    thread.join();
    check(/*second_is_over=*/true);
  }

  // Adds names until some cannot be stored. REQUIRES: no temporary file can be
  // made.
  void LoseNames(DeferredRemovals* removals) {
    const std::vector<MapName> names(
        1024, MapName{Blobs()->HashOf("other"), /*seq=*/1, /*birth=*/0});
    while (removals->complete()) {
      removals->Add(names.data(), names.size());
    }
  }

  // Compacts level 0, and lets the names of removed values be lost at the sync
  // point, whose argument is the DeferredRemovals.
  void CompactWithLostNames(const char* point) {
    const auto reached = EnableCallBackOnce(point, [this](void* arg) {
      env_->non_writeable_rate_.store(100);
      LoseNames(static_cast<DeferredRemovals*>(arg));
      env_->non_writeable_rate_.store(0);
    });
    const Status s = CompactInto(0, kBottom);
    EXPECT_TRUE(reached->load());
    DisableCallBacks();
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(s.ToString().find("could not be stored"), std::string::npos)
        << s.ToString();
  }

  void CheckValue(const std::string& key, const std::string& expected) {
    EXPECT_EQ(Get(key), expected);
    EXPECT_EQ(MultiGet(std::vector<std::string>{key})[0], expected);
    const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    iter->Seek(key);
    EXPECT_OK(iter->status());
    const bool found = iter->Valid() && iter->key() == key;
    EXPECT_EQ(found ? iter->value().ToString() : "NOT_FOUND", expected);
  }
};

INSTANTIATE_TEST_CASE_P(Filters, DBAddressMapOverlapTest, testing::Bool());

// The first compaction merges operands and direct values into short values. The
// second one sets the sequence numbers of these to zero, so a direct value that
// was still found by its key would be read instead.
TEST_P(DBAddressMapOverlapTest, ShortMergeResultIsNotReplacedByItsBase) {
  Options options = MapOptions();
  options.merge_operator = std::make_shared<Merger>(/*shortens=*/true);
  Reopen(options);
  ASSERT_OK(Put("a", Long("a")));
  ASSERT_OK(Put("k", Long("base")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  ASSERT_TRUE(IsDirect("k"));
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Flush());
  CheckValue("k", "merged");
  Overtake([&] { EXPECT_OK(CompactInto(0, kBottom)); },
           [&] { EXPECT_OK(CompactInto(kBottom, kBottom)); },
           [&](bool) {
             CheckValue("k", "merged");
             CheckValue("a", Long("a"));
           });
  EXPECT_FALSE(IsDirect("k"));
}

// While a compaction waits, its input files are not among the files that are
// marked for compaction, so no other compaction picks them.
TEST_P(DBAddressMapOverlapTest, InputsOfAWaitingCompactionAreNotMarked) {
  Options options = MapOptions();
  options.merge_operator = std::make_shared<Merger>(/*shortens=*/true);
  Reopen(options);
  ASSERT_OK(Put("a", Long("a")));
  ASSERT_OK(Put("k", Long("base")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Put("s", "1"));
  const Snapshot* snapshot = db_->GetSnapshot();
  ASSERT_OK(Put("s", "2"));
  ASSERT_OK(Flush());
  // A file is marked if all its entries are older than the oldest snapshot.
  ASSERT_OK(Put("later", "1"));
  // Returns the number of marked files, and how many of these are being
  // compacted.
  const auto count_marked = [&] {
    InstrumentedMutexLock lock(dbfull()->mutex());
    const auto& marked =
        static_cast<ColumnFamilyHandleImpl*>(db_->DefaultColumnFamily())
            ->cfd()
            ->current()
            ->storage_info()
            ->BottommostFilesMarkedForCompaction();
    size_t num_busy = 0;
    for (const auto& level_and_file : marked) {
      num_busy += level_and_file.second->being_compacted ? 1 : 0;
    }
    return std::make_pair(marked.size(), num_busy);
  };
  Overtake([&] { EXPECT_OK(CompactInto(0, kBottom)); },
           [&] {
             // Only the snapshot has kept both entries of "s".
             db_->ReleaseSnapshot(snapshot);
             EXPECT_EQ(count_marked(), std::make_pair(size_t{1}, size_t{0}));
             EXPECT_OK(CompactInto(kBottom, kBottom));
           },
           [&](bool) { EXPECT_EQ(count_marked().second, 0); });
  CheckValue("k", "merged");
  CheckValue("s", "2");
}

// The merge results are long and become direct in the second compaction. An
// iterator from before the first compaction must still find the bases by their
// names.
TEST_P(DBAddressMapOverlapTest, OldIteratorReadsTheBaseOfALongMergeResult) {
  Options options = MapOptions();
  options.merge_operator = std::make_shared<Merger>(/*shortens=*/false);
  Reopen(options);
  ASSERT_OK(Put("a", Long("a")));
  ASSERT_OK(Put("k", Long("base")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  ASSERT_OK(Merge("k", "1"));
  ASSERT_OK(Flush());
  std::unique_ptr<Iterator> old(db_->NewIterator(ReadOptions()));
  old->SeekToFirst();
  ASSERT_TRUE(old->Valid());
  Overtake([&] { EXPECT_OK(CompactInto(0, kBottom)); },
           [&] { EXPECT_OK(CompactInto(kBottom, kBottom)); },
           [&](bool) {
             CheckValue("k", Long("base") + "1");
             old->Seek("k");
             EXPECT_OK(old->status());
             ASSERT_TRUE(old->Valid());
             EXPECT_EQ(old->value(), Long("base") + "1");
             EXPECT_OK(old->status());
             old->SeekForPrev("k");
             ASSERT_TRUE(old->Valid());
             EXPECT_EQ(old->value(), Long("base") + "1");
           });
  old.reset();
  CheckValue("k", Long("base") + "1");
}

// A filter removes the only entry of the key in the bottommost level. A
// tombstone above it then covers nothing, and the second compaction drops it.
// The value must not become visible again.
TEST_P(DBAddressMapOverlapTest, FilteredValueStaysGoneWithoutItsTombstone) {
  Remover filter;
  Options options = MapOptions();
  options.compaction_filter = &filter;
  Reopen(options);
  ASSERT_OK(Put("k", Long("old")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  const Snapshot* snapshot = db_->GetSnapshot();
  ASSERT_OK(Delete("k"));
  ASSERT_OK(Flush());
  ASSERT_TRUE(IsDirect("k"));
  // The snapshot keeps the value in the map. The removal that its release
  // allows is blocked during the test.
  std::atomic<bool> may_remove{false};
  SyncPoint::GetInstance()->SetCallBack(
      "BackgroundJobScheduler::Work:MapRemovals", [&](void*) {
        while (!may_remove) {
          env_->SleepForMicroseconds(1000);
        }
      });
  filter.Remove("k");
  Overtake([&] { EXPECT_OK(CompactInto(kBottom, kBottom)); },
           [&] {
             db_->ReleaseSnapshot(snapshot);
             EXPECT_OK(CompactInto(0, kBottom));
           },
           [&](bool) { CheckValue("k", "NOT_FOUND"); });
  may_remove = true;
  WaitForJobs();
  CheckValue("k", "NOT_FOUND");
  DisableCallBacks();
}

// The value must not become visible either if the file with the tombstone is
// deleted instead of being compacted.
TEST_P(DBAddressMapOverlapTest, FilteredValueStaysGoneWithoutItsTombstoneFile) {
  Remover filter;
  Options options = MapOptions();
  options.compaction_filter = &filter;
  Reopen(options);
  ASSERT_OK(Put("k", Long("old")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  const Snapshot* snapshot = db_->GetSnapshot();
  ASSERT_OK(Delete("k"));
  ASSERT_OK(Flush());
  ASSERT_OK(CompactInto(0, kBottom - 1));
  ASSERT_TRUE(IsDirect("k"));
  filter.Remove("k");
  Overtake([&] { EXPECT_OK(CompactInto(kBottom, kBottom)); },
           [&] {
             const Slice begin("a"), end("z");
             EXPECT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(),
                                          &begin, &end));
           },
           [&](bool) { CheckValue("k", "NOT_FOUND"); });
  EXPECT_TRUE(FilesOf(kBottom - 1).empty());
  db_->ReleaseSnapshot(snapshot);
}

// The ingested file overlaps no other file, so its entries have the sequence
// number zero. They must not be hidden by the filtered value.
TEST_P(DBAddressMapOverlapTest, IngestedValueIsReadAboveAFilteredOne) {
  Remover filter;
  Options options = MapOptions();
  options.compaction_filter = &filter;
  Reopen(options);
  ASSERT_OK(Put("k", Long("old")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  const std::string file = dbname_ + "/ingested.sst";
  {
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(file));
    ASSERT_OK(writer.Put("k", "new"));
    ASSERT_OK(writer.Finish());
  }
  filter.Remove("k");
  Overtake(
      [&] { EXPECT_OK(CompactInto(kBottom, kBottom)); },
      [&] {
        EXPECT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
      },
      [&](bool second_is_over) {
        if (second_is_over) {
          CheckValue("k", "new");
        }
      });
  CheckValue("k", "new");
}

// While the ingestion waits for the second family, a compaction of the first
// one commits its edit.
TEST_P(DBAddressMapOverlapTest, IngestionWaitsForAllFamilies) {
  Remover filter;
  Options options = MapOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"one"}, options);
  filter.Remove("k");
  std::vector<IngestExternalFileArg> args(2);
  std::vector<std::string> compacted;
  for (int cf = 0; cf < 2; ++cf) {
    ASSERT_OK(Put(cf, "k", Long("old")));
    ASSERT_OK(Flush(cf));
    ColumnFamilyMetaData meta;
    db_->GetColumnFamilyMetaData(Handle(cf), &meta);
    const SstFileMetaData& flushed = meta.levels[0].files.at(0);
    compacted.push_back(flushed.db_path + flushed.name);
    ASSERT_TRUE(IsDirect(Handle(cf), "k"));
    args[cf].column_family = Handle(cf);
    args[cf].external_files = {dbname_ + "/" + std::to_string(cf) +
                               "_ingested.sst"};
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(args[cf].external_files[0]));
    ASSERT_OK(writer.Put("k", "new"));
    ASSERT_OK(writer.Finish());
  }
  // The compaction of each family stops where it is about to publish its
  // names, and where it is about to take away the old ones.
  enum Step { kPublish, kSettle, kNumSteps };
  std::atomic<bool> is_at[2][kNumSteps] = {};
  std::atomic<bool> may_pass[2][kNumSteps] = {};
  std::atomic<bool> ingestion_waits{false};
  static thread_local int family = -1;
  const auto stop = [&](Step step) {
    return [&, step](void*) {
      if (family >= 0) {
        is_at[family][step] = true;
        EXPECT_TRUE(WaitUntil([&] { return may_pass[family][step].load(); }));
      }
    };
  };
  EnableCallBack("CompactionMapping::Publish", stop(kPublish));
  EnableCallBack("CompactionMapping::Settle", stop(kSettle));
  EnableCallBack("DBStrata::WaitForSettledMap:Waits",
                 [&](void*) { ingestion_waits = true; });
  const auto compact = [&](int cf) {
    family = cf;
    EXPECT_OK(db_->CompactFiles(CompactionOptions(), Handle(cf),
                                {compacted[cf]}, kBottom));
    family = -1;
  };
  std::thread first([&] { compact(0); });
  ASSERT_TRUE(WaitUntil([&] { return is_at[0][kPublish].load(); }));
  may_pass[1][kPublish] = true;
  std::thread second([&] { compact(1); });
  ASSERT_TRUE(WaitUntil([&] { return is_at[1][kSettle].load(); }));
  std::atomic<bool> is_ingested{false};
  std::thread ingestion([&] {
    EXPECT_OK(db_->IngestExternalFiles(args));
    // Acknowledged, so it is read.
    EXPECT_EQ(Get(0, "k"), "new");
    EXPECT_EQ(Get(1, "k"), "new");
    is_ingested = true;
  });
  ASSERT_TRUE(WaitUntil([&] { return ingestion_waits.load(); }));
  may_pass[0][kPublish] = true;
  ASSERT_TRUE(WaitUntil([&] { return is_at[0][kSettle].load(); }));
  ingestion_waits = false;
  may_pass[1][kSettle] = true;
  second.join();
  // Without the second wait the ingestion ends instead.
  EXPECT_TRUE(WaitUntil([&] { return ingestion_waits || is_ingested; }));
  may_pass[0][kSettle] = true;
  first.join();
  ingestion.join();
  EXPECT_EQ(Get(0, "k"), "new");
  EXPECT_EQ(Get(1, "k"), "new");
}

// Readers may use a Version from before a fold of merge operands, so a
// compaction leaves hidden names in the map for them. The entries that hide
// these names may be dropped by the compaction's edit, or get the sequence
// number zero. So the names must no longer be found by the key alone.
TEST_P(DBAddressMapOverlapTest, HiddenValueStaysGoneBesideAFold) {
  enum class Hider { kTombstone, kRangeDeletion, kInlineValue };
  for (const Hider hider :
       {Hider::kTombstone, Hider::kRangeDeletion, Hider::kInlineValue}) {
    SCOPED_TRACE(static_cast<int>(hider));
    DestroyAndReopen(MapOptions());
    ASSERT_OK(Put("a", Long("a")));
    ASSERT_OK(Put("k", Long("old")));
    ASSERT_NO_FATAL_FAILURE(FlushToBottom());
    const Snapshot* snapshot = db_->GetSnapshot();
    std::string expected = "NOT_FOUND";
    switch (hider) {
      case Hider::kTombstone:
        ASSERT_OK(Delete("k"));
        break;
      case Hider::kRangeDeletion:
        ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                   "k", "l"));
        break;
      case Hider::kInlineValue:
        expected = "new";
        ASSERT_OK(Put("k", expected));
        break;
    }
    ASSERT_OK(Flush());
    ASSERT_TRUE(IsDirect("k"));
    // The removals that the release of the snapshot allows are blocked.
    std::atomic<bool> may_remove{false};
    const auto wait = [&](void*) {
      while (!may_remove) {
        env_->SleepForMicroseconds(1000);
      }
    };
    SyncPoint::GetInstance()->SetCallBack(
        "BackgroundJobScheduler::Work:MapRemovals", wait);
    SyncPoint::GetInstance()->SetCallBack(
        "BackgroundJobScheduler::Work:RangeSweep", wait);
    SyncPoint::GetInstance()->EnableProcessing();
    db_->ReleaseSnapshot(snapshot);
    dbfull()->TEST_LockMutex();
    Blobs()->folded_versions()->Begin();
    dbfull()->TEST_UnlockMutex();
    bool was_reached = false;
    EnableCallBackOnce("CompactionMapping::Settle", [&](void*) {
      was_reached = true;
      CheckValue("k", expected);
      CheckValue("a", Long("a"));
    });
    ASSERT_OK(CompactInto(0, kBottom));
    EXPECT_TRUE(was_reached);
    dbfull()->TEST_LockMutex();
    Blobs()->folded_versions()->End(/*first_version=*/0);
    dbfull()->TEST_UnlockMutex();
    CheckValue("k", expected);
    may_remove = true;
    WaitForJobs();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    CheckValue("k", expected);
    CheckValue("a", Long("a"));
  }
}

// While a fold is running, a reader with a snapshot must not rely on its
// SuperVersion, even if it is current. It must end nevertheless.
TEST_P(DBAddressMapOverlapTest, SnapshotReadEndsBesideAFold) {
  Reopen(MapOptions());
  ASSERT_OK(Put("a", Long("a")));
  ASSERT_OK(Flush());
  const Snapshot* snapshot = db_->GetSnapshot();
  dbfull()->TEST_LockMutex();
  Blobs()->folded_versions()->Begin();
  const uint64_t version =
      static_cast<ColumnFamilyHandleImpl*>(db_->DefaultColumnFamily())
          ->cfd()
          ->current()
          ->GetVersionNumber();
  EXPECT_TRUE(Blobs()->folded_versions()->IsBefore(version));
  dbfull()->TEST_UnlockMutex();
  EXPECT_EQ(Get("k", snapshot), "NOT_FOUND");
  EXPECT_EQ(Get("a", snapshot), Long("a"));
  dbfull()->TEST_LockMutex();
  Blobs()->folded_versions()->End(version + 1);
  dbfull()->TEST_UnlockMutex();
  EXPECT_TRUE(Blobs()->folded_versions()->IsBefore(version));
  EXPECT_FALSE(Blobs()->folded_versions()->IsBefore(version + 1));
  // The second fold is not committed.
  dbfull()->TEST_LockMutex();
  Blobs()->folded_versions()->Begin();
  EXPECT_TRUE(Blobs()->folded_versions()->IsBefore(version + 1));
  Blobs()->folded_versions()->End(/*first_version=*/0);
  dbfull()->TEST_UnlockMutex();
  EXPECT_FALSE(Blobs()->folded_versions()->IsBefore(version + 1));
  db_->ReleaseSnapshot(snapshot);
}

// If the names that a compaction has removed cannot be read, they stay in the
// map. Reads are right nevertheless, because all jobs that depend on the
// compaction fail until the next open.
TEST_P(DBAddressMapOverlapTest, LostRemovalsFailLaterJobsAndNoReads) {
  for (const bool paranoid : {true, false}) {
    Options options = MapOptions();
    options.merge_operator = std::make_shared<Merger>(/*shortens=*/true);
    options.paranoid_checks = paranoid;
    DestroyAndReopen(options);
    ASSERT_OK(Put("a", Long("a")));
    ASSERT_OK(Put("k", Long("base")));
    ASSERT_NO_FATAL_FAILURE(FlushToBottom());
    ASSERT_OK(Merge("k", "1"));
    ASSERT_OK(Flush());
    EnableCallBack("DeferredRemovals::ForEach", [](void* arg) {
      *static_cast<Status*>(arg) = Status::IOError("injected");
    });
    CompactInto(0, kBottom).PermitUncheckedError();
    ASSERT_TRUE(IsDirect("k"));
    CheckValue("k", "merged");

    const Status s = CompactInto(kBottom, kBottom);
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(s.ToString().find("injected"), std::string::npos) << s.ToString();
    const Slice begin("a"), end("z");
    EXPECT_NOK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin,
                                  &end));
    CheckValue("k", "merged");

    Reopen(options);
    SyncPoint::GetInstance()->ClearAllCallBacks();
    EXPECT_FALSE(IsDirect("k"));
    CheckValue("k", "merged");
    EXPECT_OK(CompactInto(kBottom, kBottom));
    CheckValue("k", "merged");
    CheckValue("a", Long("a"));
  }
}

// The same for a compaction that moves values to another path: their old names
// are those that an older iterator reads.
TEST_P(DBAddressMapOverlapTest, LostRemovalsLeaveOldIteratorsTheirValues) {
  const std::string second = dbname_ + "_second";
  Options options = MapOptions();
  options.cf_paths = {{dbname_, uint64_t{1} << 30},
                      {second, uint64_t{1} << 30}};
  options.level_blob_path_ids = {0};
  DestroyAndReopen(options);
  const std::vector<std::string> keys = {"a", "b", "c"};
  for (const std::string& key : keys) {
    ASSERT_OK(Put(key, Long(key)));
  }
  // CompactFiles() takes one path only.
  CompactRangeOptions compact;
  compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(Flush());
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  ASSERT_OK(db_->SetOptions({{"level_blob_path_ids", "1"}}));
  EnableCallBack("DeferredRemovals::ForEach", [](void* arg) {
    *static_cast<Status*>(arg) = Status::IOError("injected");
  });
  db_->CompactRange(compact, nullptr, nullptr).PermitUncheckedError();
  DisableCallBacks();
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(second, &names));
  EXPECT_TRUE(std::any_of(
      names.begin(), names.end(),
      [](const std::string& name) { return name.ends_with(".blob"); }));

  const auto check = [&keys](Iterator* it) {
    size_t i = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next(), ++i) {
      ASSERT_LT(i, keys.size());
      EXPECT_EQ(keys[i], it->key().ToString());
      EXPECT_EQ(Long(keys[i]), it->value().ToString());
    }
    EXPECT_OK(it->status());
    EXPECT_EQ(keys.size(), i);
  };
  check(iter.get());
  iter.reset(db_->NewIterator(ReadOptions()));
  check(iter.get());
  iter.reset();
  for (const std::string& key : keys) {
    CheckValue(key, Long(key));
  }

  options.level_blob_path_ids = {1};
  Reopen(options);
  iter.reset(db_->NewIterator(ReadOptions()));
  check(iter.get());
  iter.reset();
  CheckMap(keys.size());
  Destroy(options);
}

// If a compaction could not store the names that it removes, their values would
// stay in the map, so the compaction fails and changes nothing.
TEST_P(DBAddressMapOverlapTest, CompactionThatLosesItsRemovalsFails) {
  Remover filter;
  filter.Remove("k");
  Options options = MapOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", Long("a")));
  ASSERT_OK(Put("k", Long("k")));
  ASSERT_OK(Flush());
  WaitForJobs();
  const std::vector<std::string> inputs = FilesOf(0);
  CompactWithLostNames("CompactionMapping::Publish");
  EXPECT_EQ(FilesOf(0), inputs);
  CheckValue("k", Long("k"));
  CheckMap(2);

  Reopen(options);
  ASSERT_OK(CompactInto(0, kBottom));
  WaitForJobs();
  CheckValue("k", "NOT_FOUND");
  CheckValue("a", Long("a"));
  CheckMap(1);
}

// If a compaction cannot store the names that it removes, the DB goes on as
// after the same error of an SST file of the compaction.
TEST_P(DBAddressMapOverlapTest, LostRemovalsAreTheErrorOfTheirFile) {
  const std::string second = dbname_ + "_second";
  struct Case {
    std::string name;
    IOStatus error;
    bool has_two_paths;
    Status::Severity severity;
  };
  const std::vector<Case> cases = {
      {"no space", IOStatus::NoSpace("injected"), false,
       Status::Severity::kSoftError},
      {"no space, two paths", IOStatus::NoSpace("injected"), true,
       Status::Severity::kSoftError},
      {"retryable", RetryableError(), false, Status::Severity::kNoError},
      {"device of a path", IOStatus::IOError("injected"), true,
       Status::Severity::kNoError}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto fs =
        std::make_shared<NoTemporaryFilesFS>(env_->GetFileSystem(), c.error);
    const std::unique_ptr<Env> env = NewCompositeEnv(fs);
    const auto listener = std::make_shared<ErrorListener>();
    Remover filter;
    filter.Remove("k");
    Options options = MapOptions();
    options.env = env.get();
    options.compaction_filter = &filter;
    options.listeners = {listener};
    options.sst_file_manager.reset(NewSstFileManager(env.get()));
    if (c.has_two_paths) {
      options.cf_paths = {{dbname_, uint64_t{1} << 30},
                          {second, uint64_t{1} << 30}};
      options.level_blob_path_ids = {1};
    }
    DestroyAndReopen(options);
    EXPECT_OK(Put("a", Long("a")));
    EXPECT_OK(Put("k", Long("k")));
    EXPECT_OK(Flush());
    WaitForJobs();
    const auto reached =
        EnableCallBackOnce("CompactionMapping::Publish", [&](void* arg) {
          fs->fails = true;
          LoseNames(static_cast<DeferredRemovals*>(arg));
          fs->fails = false;
        });
    const Status s = ForceCompaction();
    EXPECT_TRUE(reached->load());
    DisableCallBacks();
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_EQ(s.subcode(), c.error.subcode()) << s.ToString();
    for (const std::string& part :
         {std::string("The names of values that the compaction removes could "
                      "not be stored: ") +
              dbname_ + "/",
          std::string(".dbtmp: injected")}) {
      EXPECT_NE(s.ToString().find(part), std::string::npos) << s.ToString();
    }
    EXPECT_EQ(listener->error.severity(), c.severity)
        << listener->error.ToString();
    const bool is_of_device = c.has_two_paths && !c.error.IsNoSpace();
    EXPECT_EQ(listener->error.ToString().find(
                  "(" + dbname_ + " is path id 0") != std::string::npos,
              is_of_device)
        << listener->error.ToString();

    // Writes go on, and the next compaction succeeds.
    EXPECT_OK(Put("b", Long("b")));
    EXPECT_TRUE(WaitUntil([&] { return dbfull()->TEST_GetBGError().ok(); }));
    EXPECT_OK(ForceCompaction());
    WaitForJobs();
    CheckValue("k", "NOT_FOUND");
    CheckValue("a", Long("a"));
    CheckValue("b", Long("b"));
    CheckMap(2);
    Destroy(options);
    EXPECT_OK(DestroyDir(env_, second));
    last_options_ = CurrentOptions();  // the Env of the others is gone
  }
}

// A compaction that cannot be committed any more does not read its whole input.
TEST_P(DBAddressMapOverlapTest, CompactionEndsWhenItsRemovalsAreLost) {
  constexpr int kKeys = 2000;
  CountingRemover filter;
  Options options = MapOptions();
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(Put(Key(i), Long("v")));
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  CompactWithLostNames("CompactionMapping::AddParts");
  EXPECT_GT(filter.num_removed.load(), 0);
  EXPECT_LT(filter.num_removed.load(), kKeys / 2);

  Reopen(options);
  EXPECT_EQ(Get(Key(0)), Long("v"));
  EXPECT_EQ(Get(Key(kKeys - 1)), Long("v"));
  CheckMap(kKeys);
  ASSERT_OK(CompactInto(0, kBottom));
  WaitForJobs();
  CheckMap(0);
}

// A deletion of files fails, and so does its undo, so the map lacks values that
// the files call direct. Point reads fail until the next open and do not report
// these values as absent.
TEST_P(DBAddressMapOverlapTest, FailedUndoOfAFileDeletionFailsPointReads) {
  Options options = MapOptions();
  Reopen(options);
  ASSERT_OK(Put("k", Long("k")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  SyncPoint::GetInstance()->SetCallBack(
      "MappedFileRemoval::Settle:Status", [](void* arg) {
        *static_cast<Status*>(arg) = Status::IOError("injected");
      });
  SyncPoint::GetInstance()->SetCallBack(
      "MappedFileRemoval::Publish:Status", [](void* arg) {
        *static_cast<Status*>(arg) = Status::IOError("injected before");
      });
  SyncPoint::GetInstance()->EnableProcessing();
  const Slice begin("a"), end("z");
  EXPECT_NOK(
      DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin, &end));
  SyncPoint::GetInstance()->ClearAllCallBacks();
  std::string value;
  const Status s = db_->Get(ReadOptions(), "k", &value);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(s.ToString().find("Open the DB again"), std::string::npos)
      << s.ToString();
  std::vector<std::string> values;
  EXPECT_TRUE(db_->MultiGet(ReadOptions(), {"k"}, &values)[0].IsIOError());
  Reopen(options);
  CheckValue("k", Long("k"));
}

// The names of the values in a damaged file cannot be read, so the file is not
// deleted. As nothing was demoted, there is nothing to undo: point reads of
// other keys, and writes, go on.
TEST_P(DBAddressMapOverlapTest, DamagedFileThatIsNotDeletedLeavesOthersAlone) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("a", Long("a")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  ASSERT_OK(Put("k", Long("k")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  std::vector<LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(files.size(), 2u);
  for (const LiveFileMetaData& file : files) {
    if (file.smallestkey == "k") {
      ASSERT_OK(test::CorruptFile(
          env_, file.directory + "/" + file.relative_filename, 0, 8));
    }
  }
  const Slice begin("j"), end("l");
  const Status s =
      DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin, &end);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  files.clear();
  db_->GetLiveFilesMetaData(&files);
  EXPECT_EQ(files.size(), 2u);
  EXPECT_EQ(Get("a"), Long("a"));
  ASSERT_OK(Put("b", Long("b")));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("b"), Long("b"));
}

// The file that a deletion of files writes for its names is new. A full scan
// keeps new files only if the number of an older one is among the pending
// outputs.
TEST_P(DBAddressMapOverlapTest, FileDeletionProtectsTheFilesThatItWrites) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Long("k")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  const auto oldest_kept = [&] {
    uint64_t number = 0;
    EXPECT_TRUE(db_->GetIntProperty(DB::Properties::kMinObsoleteSstNumberToKeep,
                                    &number));
    return number;
  };
  EXPECT_EQ(oldest_kept(), UINT64_MAX);
  const auto reached =
      EnableCallBackOnce("MappedFileRemoval::Publish:Demoted", [&](void*) {
        EXPECT_LE(oldest_kept(), dbfull()->TEST_Current_Next_FileNo());
      });
  const Slice begin("j"), end("l");
  EXPECT_OK(
      DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin, &end));
  EXPECT_TRUE(reached->load());
  DisableCallBacks();
  EXPECT_EQ(oldest_kept(), UINT64_MAX);
  CheckValue("k", "NOT_FOUND");
}

// A compaction has moved an old value into the map and is not yet committed. A
// flush removes the value from the map, because its entry hides it, and that
// entry goes to a file that could be deleted.
TEST_P(DBAddressMapOverlapTest, FileAboveAConversionIsNotDeleted) {
  Options options = MapOptions();
  options.enable_blob_address_map = false;
  options.enable_blob_files = false;
  DestroyAndReopen(options);
  for (const char* key : {"a", "k", "z"}) {
    ASSERT_OK(Put(key, Long(key)));
  }
  ASSERT_OK(Flush());
  MoveFilesToLevel(kBottom);
  Reopen(MapOptions());
  const auto reached =
      EnableCallBackOnce("MapTransaction::Publish:Inserted", [&](void*) {
        OnAnotherThread([&] {
          ASSERT_OK(Put("k", Long("new")));
          ASSERT_OK(Flush());
          ASSERT_OK(CompactInto(0, 1));
          const Slice k("k");
          EXPECT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(),
                                       &k, &k));
        });
      });
  ASSERT_OK(CompactInto(kBottom, kBottom));
  ASSERT_TRUE(reached->load());
  DisableCallBacks();
  EXPECT_EQ(FilesPerLevel(), "0,1,0,1");
  for (const bool reopens : {false, true}) {
    if (reopens) {
      Reopen(MapOptions());
    }
    CheckValue("a", Long("a"));
    CheckValue("k", Long("new"));
    CheckValue("z", Long("z"));
  }
}

// CompactRange() moves all files of a level, also those out of its range.
TEST_P(DBAddressMapOverlapTest, FilesThatAreBeingDeletedAreNotMoved) {
  Options options = MapOptions();
  options.level_compaction_dynamic_level_bytes = false;
  DestroyAndReopen(options);
  for (const char* key : {"a", "k"}) {
    ASSERT_OK(Put(key, Long(key)));
    ASSERT_OK(Flush());
    ASSERT_OK(CompactInto(0, 1));
  }
  CompactRangeOptions to_level2;
  to_level2.change_level = true;
  to_level2.target_level = 2;
  const Slice a("a"), k("k");
  const auto reached =
      EnableCallBackOnce("MappedFileRemoval::Publish:Demoted", [&](void*) {
        OnAnotherThread([&] {
          const Status s = db_->CompactRange(to_level2, &k, &k);
          EXPECT_TRUE(s.IsAborted()) << s.ToString();
        });
      });
  EXPECT_OK(DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &a, &a));
  EXPECT_TRUE(reached->load());
  DisableCallBacks();
  EXPECT_EQ(FilesPerLevel(), "0,1");
  CheckValue("a", "NOT_FOUND");
  EXPECT_OK(db_->CompactRange(to_level2, &k, &k));
  EXPECT_EQ(FilesPerLevel(), "0,0,1");
  CheckValue("k", Long("k"));
}

// An ingestion of a file, beside which MANIFEST records begin to fail. The
// listener that hears of the first error writes.
class DBAddressMapIngestionErrorTest : public DBAddressMapOverlapTest {
 protected:
  void Open();
  Status Ingest() {
    return db_->IngestExternalFile({File()}, IngestExternalFileOptions());
  }
  void BeginToFail() { fails_ = true; }
  // Returns true if the write has ended. It fails once the DB has stopped.
  bool HasListenerWritten() { return listener_->call->Join(); }

 private:
  struct Listener : public EventListener {
    void OnBackgroundError(BackgroundErrorReason, Status* error) override {
      error->PermitUncheckedError();
      call->RunOnce();
    }
    std::shared_ptr<BoundedCall> call;
  };
  std::string File() const { return dbname_ + "/ingested.sst"; }

  const std::shared_ptr<Listener> listener_ = std::make_shared<Listener>();
  std::atomic<bool> fails_{false};
};

void DBAddressMapIngestionErrorTest::Open() {
  Options options = MapOptions();
  options.listeners.push_back(listener_);
  // The DB recovers after the next open only.
  options.max_bgerror_resume_count = 0;
  DestroyAndReopen(options);
  SstFileWriter writer(EnvOptions(), options);
  ASSERT_OK(writer.Open(File()));
  ASSERT_OK(writer.Put("x", "ingested"));
  ASSERT_OK(writer.Finish());
  listener_->call = std::make_shared<BoundedCall>(
      [&] { Put("listener", "written").PermitUncheckedError(); });
  EnableCallBack(
      "VersionSet::ProcessManifestWrites:AfterSyncManifest", [&](void* arg) {
        if (fails_) {
          *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
        }
      });
}

INSTANTIATE_TEST_CASE_P(Filters, DBAddressMapIngestionErrorTest,
                        ::testing::Bool());

// The record of the ingestion itself fails, after it has stopped all writes.
TEST_P(DBAddressMapIngestionErrorTest, ListenersMayWriteAfterAFailedIngestion) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EnableCallBack("DBImpl::IngestExternalFile:NeedFlush",
                 [&](void*) { BeginToFail(); });
  EXPECT_NOK(Ingest());
  EXPECT_TRUE(HasListenerWritten());
  DisableCallBacks();
}

// The ingestion has stopped all writes and waits for a deletion of files, whose
// record fails.
TEST_P(DBAddressMapIngestionErrorTest, ListenersMayWriteAfterAFailedDeletion) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_OK(Put("k", Long("k")));
  ASSERT_NO_FATAL_FAILURE(FlushToBottom());
  std::atomic<bool> ingestion_waits{false};
  EnableCallBack("DBStrata::WaitForSettledMap:Waits",
                 [&](void*) { ingestion_waits = true; });
  std::thread ingestion;
  const auto reached =
      EnableCallBackOnce("MappedFileRemoval::Publish:Demoted", [&](void*) {
        ingestion = std::thread([&] { Ingest().PermitUncheckedError(); });
        EXPECT_TRUE(WaitUntil([&] { return ingestion_waits.load(); }));
        BeginToFail();
      });
  const Slice begin("j"), end("l");
  EXPECT_NOK(
      DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin, &end));
  ASSERT_TRUE(reached->load());
  ingestion.join();
  EXPECT_TRUE(HasListenerWritten());
  DisableCallBacks();
}

// A read finds an entry that is covered by a range deletion in the same file.
// If a flush has inserted a direct value above that entry since the read looked
// for one, the read must return the direct value.
TEST_P(DBAddressMapOverlapTest, CoveredEntryDoesNotHideANewDirectValue) {
  for (const bool multi_get : {false, true}) {
    DestroyAndReopen(MapOptions());
    ASSERT_OK(Put("k", Long("old")));
    const Snapshot* snapshot = db_->GetSnapshot();
    ASSERT_OK(
        db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "a", "z"));
    ASSERT_OK(Flush());
    db_->ReleaseSnapshot(snapshot);
    ASSERT_TRUE(WaitUntil([&] {
      return Blobs()->range_deletions()->Count() == 0 && !IsDirect("k");
    })) << "the deleted value is not swept";
    ASSERT_OK(Put("k", Long("new")));
    EnableCallBackOnce("MapPointRead::Start:LookedUp", [&](void*) {
      std::thread([&] { EXPECT_OK(Flush()); }).join();
      EXPECT_TRUE(IsDirect("k"));
    });
    EXPECT_EQ(multi_get ? MultiGet(std::vector<std::string>{"k"})[0] : Get("k"),
              Long("new"));
    SyncPoint::GetInstance()->ClearAllCallBacks();
    CheckValue("k", Long("new"));
  }
}

// From the fourth attempt on, a MultiGet reads at a fixed sequence number.
// Range deletions in SST files that are newer must not hide keys from it:
// together with the other keys, the answers would be of no moment.
TEST_P(DBAddressMapOverlapTest, FixedSequenceHidesLaterRangeDeletions) {
  DestroyAndReopen(MapOptions());
  CreateAndReopenWithCF({"second"}, MapOptions());
  const auto flush_all = [&] {
    // Not the thread that reads.
    std::thread([&] {
      EXPECT_OK(db_->Flush(FlushOptions(), handles_));
    }).join();
  };
  for (const size_t family_of_b : {0, 1}) {
    SCOPED_TRACE(family_of_b);
    ColumnFamilyHandle* const other = handles_[family_of_b];
    ASSERT_OK(Put(0, "a", Long("old")));
    ASSERT_OK(db_->Put(WriteOptions(), other, "b", Long("b")));
    ASSERT_OK(db_->Put(WriteOptions(), other, "c", "short"));
    flush_all();
    int restarts = 0;
    SyncPoint::GetInstance()->SetCallBack(
        "MapPointRead::ConfirmAbsence", [&](void*) {
          if (restarts < MapPointRead::kMaxPlainAttempts) {
            ++restarts;
            EXPECT_OK(Put(0, "x", "new SuperVersion"));
            flush_all();
          }
        });
    bool is_fixed = false;
    EnableCallBack("MapPointRead::Start", [&](void*) {
      if (restarts == MapPointRead::kMaxPlainAttempts && !is_fixed) {
        is_fixed = true;
        EXPECT_OK(Put(0, "a", Long("new")));
        EXPECT_OK(db_->DeleteRange(WriteOptions(), other, "b", "d"));
        flush_all();
      }
    });
    std::vector<ColumnFamilyHandle*> families{handles_[0], handles_[0], other,
                                              other};
    const std::vector<Slice> keys{"a", "absent", "b", "c"};
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    db_->MultiGet(ReadOptions(), keys.size(), families.data(), keys.data(),
                  values.data(), statuses.data());
    DisableCallBacks();
    EXPECT_TRUE(is_fixed);
    EXPECT_EQ(values[0], Long("old"));
    EXPECT_TRUE(statuses[1].IsNotFound());
    EXPECT_OK(statuses[2]);
    EXPECT_EQ(values[2], Long("b"));
    EXPECT_OK(statuses[3]);
    EXPECT_EQ(values[3], "short");
    CheckValue("a", Long("new"));
    std::string value;
    EXPECT_TRUE(db_->Get(ReadOptions(), other, "b", &value).IsNotFound());
  }
}

// The same for lookups of one key. The key exists at every moment, because it
// is deleted and written in one step.
TEST_P(DBAddressMapOverlapTest, FixedSequenceOfOneKeyHidesLaterDeletions) {
  const Options options = MapOptions();
  const auto replace_by_batch = [&] {
    WriteBatch batch;
    EXPECT_OK(batch.DeleteRange("a", "z"));
    EXPECT_OK(batch.Put("k", "new"));
    EXPECT_OK(db_->Write(WriteOptions(), &batch));
    EXPECT_OK(Flush());
  };
  const auto replace_by_ingestion = [&] {
    const std::string file = dbname_ + "_ingested.sst";
    SstFileWriter writer(EnvOptions(), options);
    EXPECT_OK(writer.Open(file));
    EXPECT_OK(writer.DeleteRange("a", "z"));
    EXPECT_OK(writer.Put("k", "new"));
    EXPECT_OK(writer.Finish());
    EXPECT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
    EXPECT_OK(env_->DeleteFile(file));
  };
  const auto in_another_thread = [](const std::function<void()>& fn) {
    std::thread(fn).join();
  };
  for (const auto& replace : {std::function<void()>(replace_by_batch),
                              std::function<void()>(replace_by_ingestion)}) {
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", "old"));
    ASSERT_OK(Flush());
    // A callback counts operands, so this lookup has a fixed sequence number
    // from the start.
    auto reached = EnableCallBackOnce(
        "MapPointRead::Start", [&](void*) { in_another_thread(replace); });
    GetMergeOperandsOptions operands_options;
    operands_options.expected_max_number_of_operands = 4;
    operands_options.continue_cb = [](const Slice&) { return true; };
    std::vector<PinnableSlice> operands(4);
    int count = 0;
    EXPECT_OK(db_->GetMergeOperands(ReadOptions(), db_->DefaultColumnFamily(),
                                    "k", operands.data(), &operands_options,
                                    &count));
    DisableCallBacks();
    EXPECT_TRUE(*reached);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(operands[0], "old");
    EXPECT_EQ(Get("k"), "new");

    // A Get() has one after several restarts.
    DestroyAndReopen(options);
    std::string last = Long("0");
    ASSERT_OK(Put("k", last));
    ASSERT_OK(Flush());
    int restarts = 0;
    SyncPoint::GetInstance()->SetCallBack(
        "MapPointRead::TakeDirect", [&](void*) {
          if (restarts < MapPointRead::kMaxPlainAttempts) {
            last = Long(std::to_string(++restarts));
            in_another_thread([&] {
              EXPECT_OK(Put("k", last));
              EXPECT_OK(Flush());
            });
          }
        });
    bool is_fixed = false;
    EnableCallBack("MapPointRead::Start", [&](void*) {
      if (restarts == MapPointRead::kMaxPlainAttempts && !is_fixed) {
        is_fixed = true;
        in_another_thread(replace);
      }
    });
    EXPECT_EQ(Get("k"), last);
    DisableCallBacks();
    EXPECT_TRUE(is_fixed);
    EXPECT_EQ(Get("k"), "new");
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
