//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of the garbage collection of blob files with an address map, in whole
// databases.

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "db/address_map/address_map_checkpoints.h"
#include "db/address_map/address_map_store.h"
#include "db/address_map/address_map_verifier.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/column_family.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "monitoring/thread_status_util.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/utilities/stackable_db.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/created_files_fs_test_util.h"
#include "test_util/strata/drop_before_edit_test_util.h"
#include "test_util/strata/job_pressure_test_util.h"
#include "test_util/strata/listed_files_test_util.h"
#include "test_util/strata/paused_call_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "util/cast_util.h"
#include "util/defer.h"
#include "util/random.h"
#include "utilities/fault_injection_env.h"
#include "utilities/fault_injection_fs.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Drops the keys with odd numbers, once it is told to.
class OddKeyFilter : public CompactionFilter {
 public:
  const char* Name() const override { return "OddKeyFilter"; }
  bool Filter(int /*level*/, const Slice& key, const Slice& /*value*/,
              std::string* /*new_value*/,
              bool* /*value_changed*/) const override {
    return drops_ && (key[key.size() - 1] - '0') % 2 == 1;
  }
  void SetDrops() { drops_ = true; }

 private:
  std::atomic<bool> drops_{false};
};

}  // namespace

class DBBlobGcTest : public AddressMapDBTestBase {
 protected:
  static constexpr int kKeys = 400;
  static constexpr size_t kValueSize = 1000;

  DBBlobGcTest() : AddressMapDBTestBase("db_blob_gc_test") {}
  ~DBBlobGcTest() override {
    Close();  // while fault_env_ exists
  }

  Options GcOptions(double limit) {
    Options options = MapOptions(/*min_blob_size=*/100);
    options.disable_auto_compactions = false;
    options.blob_file_size = 64 << 10;
    options.write_buffer_size = 40 << 10;
    options.blob_gc_space_amp_limit = limit;
    options.max_background_jobs = 4;
    return options;
  }

  // No collection starts by itself, the DB does not recover from errors by
  // itself, and FailWrites() works.
  Options FaultOptions() {
    fault_fs_ = std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
    fault_env_ = NewCompositeEnv(fault_fs_);
    Options options = GcOptions(0);
    options.env = fault_env_.get();
    options.max_bgerror_resume_count = 0;
    return options;
  }
  void FailWrites() { fault_fs_->SetFilesystemActive(false, RetryableError()); }

  std::string ValueOf(int key, int round) {
    Random rnd(key * 1000 + round + 1);
    return "r" + std::to_string(round) + " " + rnd.RandomString(kValueSize);
  }

  void PutKey(int key, int round) {
    const std::string value = ValueOf(key, round);
    ASSERT_OK(Put(Key(key), value));
    model_[Key(key)] = value;
  }
  // Makes garbage, by which flushes slow writes down, while no collection can
  // begin before *held is false.
  void MakeGarbageWhileHeld(std::atomic<bool>* held) {
    EnableCallBack("BackgroundJobScheduler::Work:BlobGc", [held](void*) {
      EXPECT_TRUE(WaitUntil([held] { return !held->load(); }))
          << "the job is not released";
    });
    for (int key = 0; key < kKeys; key += 3) {
      PutKey(key, 1);
    }
    for (int round = 2; round <= 3; ++round) {
      // The slowdown is computed before the flush makes garbage.
      PutKey(5, round);
      EXPECT_OK(Flush());
      EXPECT_OK(dbfull()->TEST_WaitForFlushMemTable());
    }
  }
  void DeleteKey(int key) {
    ASSERT_OK(Delete(Key(key)));
    model_.erase(Key(key));
  }

  void Load() {
    for (int key = 0; key < kKeys; ++key) {
      PutKey(key, 0);
    }
    ASSERT_OK(Flush());
    Wait();
  }

  // Makes every other value garbage, or every step-th one. Repeated calls with
  // the same step overwrite the same keys, so that whole files are dropped.
  void MakeGarbage(int round = 1, int step = 2) {
    for (int key = 0; key < kKeys; key += step) {
      PutKey(key, round);
    }
    ASSERT_OK(Flush());
    Wait();
  }

  // Makes a family "other" in which every other value is garbage.
  void OpenWithGarbageInAnotherFamily() {
    const Options options = GcOptions(0);
    DestroyAndReopen(options);
    CreateAndReopenWithCF({"other"}, options);
    for (int round = 0; round < 2; ++round) {
      for (int key = 0; key < kKeys; key += 1 + round) {
        ASSERT_OK(Put(1, Key(key), ValueOf(key, round)));
      }
      ASSERT_OK(Flush(1));
    }
  }

  // Removals from the map, which begin collections, count as a purge.
  void Wait() {
    WaitForCompactOptions wait;
    wait.wait_for_purge = true;
    ASSERT_OK(db_->WaitForCompact(wait));
  }

  // Waits up to a minute for something that other threads do.
  void WaitFor(const std::function<bool()>& condition) {
    const uint64_t deadline = env_->NowMicros() + 60 * 1000 * 1000;
    while (!condition() && env_->NowMicros() < deadline) {
      env_->SleepForMicroseconds(1000);
    }
    EXPECT_TRUE(condition()) << "It did not happen within a minute";
  }

  double Amplification() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return BlobGcPicker::SpaceOf(
               Blobs()->FilesForGc(*Family()->current()->storage_info()), 0)
        .Amplification();
  }

  std::set<uint64_t> BlobFilesOfVersion() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    std::set<uint64_t> numbers;
    for (const auto& meta :
         Family()->current()->storage_info()->GetBlobFiles()) {
      numbers.insert(meta->GetBlobFileNumber());
    }
    return numbers;
  }

  // Returns the bytes of live values in each blob file of the Version.
  std::map<uint64_t, uint64_t> LiveBytesOfFiles() {
    WaitForJobs();
    std::map<uint64_t, uint64_t> result;
    for (const uint64_t number : BlobFilesOfVersion()) {
      const BlobFileSlotTable* const files = Blobs()->files();
      result[number] = files->LiveBytes(files->Find(number));
    }
    return result;
  }

  // Checks all values with Get() and an iterator, the consistency of the map,
  // and that exactly the blob files of the Version exist.
  void Verify() {
    for (int key = 0; key < kKeys; ++key) {
      const auto found = model_.find(Key(key));
      ASSERT_EQ(found == model_.end() ? "NOT_FOUND" : found->second,
                Get(Key(key)));
    }
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    ASSERT_NO_FATAL_FAILURE(CheckForward(iter.get(), model_));
    iter.reset();
    // Wait for the removals that a snapshot has blocked, and for the deletion
    // of the files that become obsolete by them.
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
      ASSERT_OK(dbfull()->TEST_WaitForPurge());
    }
    Wait();
    ASSERT_OK(Blobs()->map()->TEST_Check());
    // A file that the iterator pinned is deleted by the next search for
    // obsolete files.
    ASSERT_OK(db_->DisableFileDeletions());
    ASSERT_OK(db_->EnableFileDeletions());
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
    ASSERT_EQ(BlobFilesOfVersion(), FilesOnDisk(kBlobFile));
  }

  // Checks that the keys of all survivors are known, and of no other file.
  void CheckKeyRanges() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    std::vector<BlobGcPicker::File> files =
        Blobs()->FilesForGc(*Family()->current()->storage_info());
    Blobs()->gc()->AddKeyRanges(&files);
    size_t num_survivors = 0;
    for (const BlobGcPicker::File& file : files) {
      EXPECT_EQ(file.keys != nullptr, file.is_survivor);
      num_survivors += file.is_survivor ? 1 : 0;
    }
    EXPECT_GT(num_survivors, 0u);
    EXPECT_EQ(Blobs()->gc()->TEST_NumKeyRanges(), num_survivors);
    for (const auto& [key, value] : model_) {
      const AddressMap::Lookup found =
          Blobs()->map()->FindDirect(Blobs()->HashOf(key), /*pin=*/false);
      const uint64_t number =
          Blobs()->file_table().Number(found.entry.address.slot);
      for (const BlobGcPicker::File& file : files) {
        if (found.found && file.number == number && file.keys != nullptr) {
          EXPECT_LE(file.keys->smallest, key);
          EXPECT_GE(file.keys->largest, key);
        }
      }
    }
  }

  // Returns the mean number of blob files that have the values of 50 neighbors.
  double MeanPlaces() {
    size_t places = 0;
    size_t n = 0;
    std::set<uint32_t> slots;
    for (const auto& [key, value] : model_) {
      const AddressMap::Lookup found =
          Blobs()->map()->FindDirect(Blobs()->HashOf(key), /*pin=*/false);
      EXPECT_TRUE(found.found);
      slots.insert(found.entry.address.slot);
      if (++n % 50 == 0) {
        places += slots.size();
        slots.clear();
      }
    }
    return static_cast<double>(places) / static_cast<double>(n / 50);
  }

  void VerifyAlsoReopened(const Options& options) {
    Verify();
    Reopen(options);
    Verify();
  }

  Status Collect(double limit = 1.0) {
    CollectBlobGarbageOptions options;
    options.space_amp_limit = limit;
    return db_->CollectBlobGarbage(options);
  }

  Status Sort(uint32_t max_sorted_runs = 1,
              std::atomic<bool>* canceled = nullptr) {
    CollectBlobGarbageOptions options;
    // Sorting alone: files are not collected because of their garbage.
    options.space_amp_limit = 1000;
    options.max_sorted_runs = max_sorted_runs;
    options.canceled = canceled;
    return db_->CollectBlobGarbage(options);
  }

  // Loads all keys with `flushes` flushes, each of which has keys from the
  // whole range.
  void LoadApart(int flushes) {
    for (int start = 0; start < flushes; ++start) {
      for (int key = start; key < kKeys; key += flushes) {
        PutKey(key, 0);
      }
      ASSERT_OK(Flush());
    }
    Wait();
  }

  // Returns the number of contiguous pieces in which a scan finds the values.
  int Pieces() {
    int pieces = 0;
    uint64_t file = 0;
    uint64_t end = 0;
    for (const auto& entry : model_) {
      const auto found =
          Blobs()->map()->FindDirect(Blobs()->HashOf(entry.first), false);
      EXPECT_TRUE(found.found) << entry.first;
      const MapAddress& address = found.entry.address;
      const uint64_t number = Blobs()->file_table().Number(address.slot);
      if (number != file || address.offset != end) {
        ++pieces;
      }
      file = number;
      end = uint64_t{address.offset} + address.size;
    }
    return pieces;
  }

  std::map<std::string, std::string> model_;
  std::shared_ptr<FaultInjectionTestFS> fault_fs_;
  std::unique_ptr<Env> fault_env_;
};

TEST_F(DBBlobGcTest, KeepsTheSpaceLimit) {
  for (const double limit : {1.2, 1.5}) {
    const Options options = GcOptions(limit);
    DestroyAndReopen(options);
    model_.clear();
    Load();
    Random rnd(301);
    for (int round = 1; round <= 5; ++round) {
      for (int i = 0; i < kKeys; ++i) {
        PutKey(static_cast<int>(rnd.Uniform(kKeys)), round);
        if (i % 40 == 39) {
          ASSERT_OK(Flush());
          Wait();
          ASSERT_LE(Amplification(), limit);
        }
      }
    }
    ASSERT_GT(Ticker(BLOB_MAP_GC_FILES), 0u);
    ASSERT_GT(Ticker(BLOB_MAP_GC_VALUES), 0u);
    ASSERT_GT(Ticker(BLOB_MAP_GC_BYTES_READ), 0u);
    ASSERT_GT(Ticker(BLOB_MAP_GC_BYTES_WRITTEN), 0u);
    ASSERT_EQ(0u, Ticker(BLOB_MAP_GC_FAILED));
    Verify();
    CheckKeyRanges();
    Reopen(options);
    Verify();
  }
}

// Values that are collected again and again come closer to their neighbors, if
// the picker knows which files have the same keys.
TEST_F(DBBlobGcTest, SurvivorsComeCloserToTheirNeighbors) {
  constexpr int kMany = 4000;
  double places[2] = {0, 0};
  for (const bool is_known : {false, true}) {
    EnableCallBack(
        "DBStrata::ScheduleBlobGc:KeyRanges", [is_known](void* files) {
          for (BlobGcPicker::File& file :
               *static_cast<std::vector<BlobGcPicker::File>*>(files)) {
            file.keys = is_known ? file.keys : nullptr;
          }
        });
    Options options = GcOptions(1.2);
    options.max_background_jobs = 2;
    DestroyAndReopen(options);
    model_.clear();
    for (int key = 0; key < kMany; ++key) {
      PutKey(key, 0);
    }
    Random rnd(301);
    for (int i = 0; i < 5 * kMany; ++i) {
      PutKey(static_cast<int>(rnd.Uniform(kMany)), i % 100 + 1);
      if (i % 40 == 39) {
        ASSERT_OK(Flush());
        Wait();
      }
    }
    places[is_known] = MeanPlaces();
  }
  DisableCallBacks();
  EXPECT_LE(places[1], places[0] * 0.9) << places[1] << " " << places[0];
}

TEST_F(DBBlobGcTest, IsOffAtZeroAndCanBeTurnedOnLive) {
  const Options options = GcOptions(0);
  DestroyAndReopen(options);
  Load();
  MakeGarbage();
  ASSERT_GT(Amplification(), 1.4);
  ASSERT_EQ(0u, Ticker(BLOB_MAP_GC_FILES));
  // The option can be changed while the DB is open.
  ASSERT_OK(db_->SetOptions({{"blob_gc_space_amp_limit", "1.5"}}));
  Wait();
  ASSERT_LE(Amplification(), 1.45);
  ASSERT_GT(Amplification(), 1.05);
  ASSERT_GT(Ticker(BLOB_MAP_GC_FILES), 0u);
  ASSERT_OK(db_->SetOptions({{"blob_gc_space_amp_limit", "1.05"}}));
  Wait();
  ASSERT_LE(Amplification(), 1.05);
  for (const char* const wrong :
       {"1", "1.005", "-1", "nan", "inf", "1001", "x"}) {
    ASSERT_NOK(db_->SetOptions({{"blob_gc_space_amp_limit", wrong}})) << wrong;
  }
  VerifyAlsoReopened(options);
}

TEST_F(DBBlobGcTest, CollectBlobGarbageReachesTheLimit) {
  const Options options = GcOptions(0);
  DestroyAndReopen(options);
  ASSERT_OK(Collect());
  Load();
  ASSERT_OK(Collect());
  ASSERT_EQ(0u, Ticker(BLOB_MAP_GC_FILES));
  MakeGarbage();
  ASSERT_TRUE(Collect(0.9).IsInvalidArgument());
  ASSERT_OK(Collect(1.3));
  ASSERT_LE(Amplification(), 1.3);
  ASSERT_GT(Amplification(), 1.1);
  ASSERT_OK(Collect());
  ASSERT_EQ(1.0, Amplification());
  // A second call finds nothing to do.
  const uint64_t files = Ticker(BLOB_MAP_GC_FILES);
  ASSERT_OK(Collect());
  ASSERT_EQ(files, Ticker(BLOB_MAP_GC_FILES));
  VerifyAlsoReopened(options);

  std::atomic<bool> canceled{true};
  MakeGarbage(2);
  CollectBlobGarbageOptions collect;
  collect.canceled = &canceled;
  ASSERT_TRUE(db_->CollectBlobGarbage(collect).IsManualCompactionPaused());
  db_->DisableManualCompaction();
  ASSERT_TRUE(Collect().IsManualCompactionPaused());
  db_->EnableManualCompaction();
  ASSERT_OK(Collect());
  Verify();

  MakeGarbage(4, 5);
  ASSERT_OK(ReadOnlyReopen(options));
  ASSERT_TRUE(Collect().IsNotSupported());

  Options without = CurrentOptions();
  DestroyAndReopen(without);
  ASSERT_TRUE(Collect().IsNotSupported());
  without.enable_blob_files = true;
  DestroyAndReopen(without);
  ASSERT_TRUE(Collect().IsNotSupported());
}

// The thread that has paused background work collects garbage, also by
// CompactRange(), whether there is any or not, and also if another pause has
// come.
TEST_F(DBBlobGcTest, CollectsGarbageDuringAPause) {
  const Options options = GcOptions(0);
  DestroyAndReopen(options);
  Load();
  MakeGarbage();
  ASSERT_NO_FATAL_FAILURE(WaitForJobs());
  CallDuringAPause(db_.get(), [&] {
    EXPECT_GT(Amplification(), 1.1);
    EXPECT_OK(Collect());
    EXPECT_LT(Amplification(), 1.1);
    EXPECT_OK(Collect());
  });
  MakeGarbage(2, 3);
  ASSERT_NO_FATAL_FAILURE(WaitForJobs());
  CallDuringAPause(db_.get(), [&] {
    EXPECT_OK(db_->PauseBackgroundWork());
    CompactRangeOptions compact;
    compact.blob_garbage_collection_policy =
        BlobGarbageCollectionPolicy::kForce;
    EXPECT_GT(Amplification(), 1.1);
    EXPECT_OK(db_->CompactRange(compact, nullptr, nullptr));
    EXPECT_LT(Amplification(), 1.1);
    EXPECT_OK(db_->ContinueBackgroundWork());
    EXPECT_OK(db_->CompactRange(compact, nullptr, nullptr));
  });
  VerifyAlsoReopened(options);
}

TEST_F(DBBlobGcTest, CopiesValuesThatOnlySnapshotsSee) {
  const Options options = GcOptions(0);
  DestroyAndReopen(options);
  Load();
  const auto before = model_;
  const Snapshot* const snapshot = db_->GetSnapshot();
  MakeGarbage(1);
  const Snapshot* const second = db_->GetSnapshot();
  const auto between = model_;
  for (int key = 0; key < kKeys; key += 4) {
    DeleteKey(key);
  }
  MakeGarbage(2);
  ReadOptions held;
  held.snapshot = snapshot;
  std::unique_ptr<Iterator> iter(db_->NewIterator(held));
  iter->SeekToFirst();

  ASSERT_OK(Collect());
  for (const auto& expected : before) {
    ASSERT_EQ(expected.second, Get(expected.first, snapshot));
  }
  for (const auto& expected : between) {
    ASSERT_EQ(expected.second, Get(expected.first, second));
  }
  db_->ReleaseSnapshot(second);
  Wait();
  ASSERT_OK(Collect());
  auto expected = before.begin();
  for (; iter->Valid(); iter->Next(), ++expected) {
    ASSERT_EQ(expected->first, iter->key());
    ASSERT_EQ(expected->second, iter->value());
  }
  ASSERT_OK(iter->status());
  ASSERT_TRUE(expected == before.end());
  iter.reset();
  db_->ReleaseSnapshot(snapshot);
  // The values that only the snapshots saw are garbage now. A compaction
  // removes them from the map.
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  Wait();
  ASSERT_OK(Collect());
  ASSERT_EQ(1.0, Amplification());
  VerifyAlsoReopened(options);
}

// Values that are overwritten, deleted or renamed between their copy and the
// end of the job read as written.
TEST_F(DBBlobGcTest, ChangesDuringTheJobAreKept) {
  const Options options = GcOptions(0);
  for (const char* const point :
       {"DBStrata::BackgroundBlobGc::Copy:Copied",
        "BlobGcStorage::Publish:Swapped",
        "DBStrata::BackgroundBlobGc::Run:AfterEdit"}) {
    SCOPED_TRACE(point);
    DestroyAndReopen(options);
    model_.clear();
    Load();
    const Snapshot* const snapshot = db_->GetSnapshot();
    MakeGarbage();
    db_->ReleaseSnapshot(snapshot);
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
    int round = 10;
    EnableCallBack(point, [&](void*) {
      if (round > 12) {
        return;
      }
      ++round;
      for (int key = round % 3; key < kKeys; key += 3) {
        if (key % 2 == 0) {
          PutKey(key, round);
        } else {
          DeleteKey(key);
        }
      }
      ASSERT_OK(Flush());
      if (round == 12) {
        // The compaction renames values.
        ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
      }
    });
    ASSERT_OK(Collect());
    DisableCallBacks();
    ASSERT_GT(round, 10);
    Verify();
    ASSERT_OK(Collect());
    ASSERT_EQ(1.0, Amplification());
    VerifyAlsoReopened(options);
  }
}

// A job writes to the MANIFEST once; this edit adds the copies and removes the
// old files.
TEST_F(DBBlobGcTest, JobWritesOneEdit) {
  Options options = GcOptions(0);
  options.blob_file_size = 256 << 10;  // flushed files are not small
  DestroyAndReopen(options);
  Load();
  MakeGarbage();
  std::atomic<int> edits{0};
  EnableCallBack("VersionSet::LogAndApply:WriteManifest",
                 [&](void*) { ++edits; });
  const uint64_t dropped = Ticker(BLOB_MAP_FILES_DROPPED);
  ASSERT_OK(Collect());
  ASSERT_EQ(1, edits);
  ASSERT_GT(Ticker(BLOB_MAP_FILES_DROPPED), dropped);
  SyncPoint::GetInstance()->DisableProcessing();
  ASSERT_EQ(1.0, Amplification());
  VerifyAlsoReopened(options);
}

TEST_F(DBBlobGcTest, FailedManifestWriteChangesNothing) {
  Options options = FaultOptions();
  DestroyAndReopen(options);
  Load();
  MakeGarbage();
  EnableCallBack("DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit",
                 [&](void*) { FailWrites(); });
  ASSERT_NOK(Collect());
  SyncPoint::GetInstance()->DisableProcessing();
  fault_fs_->SetFilesystemActive(true);
  // All values are still readable.
  for (const auto& expected : model_) {
    ASSERT_EQ(expected.second, Get(expected.first));
  }
  ASSERT_EQ(1u, Ticker(BLOB_MAP_GC_FAILED));
  ASSERT_OK(dbfull()->Resume());
  VerifyAlsoReopened(options);
  ASSERT_OK(Collect());
  ASSERT_EQ(1.0, Amplification());
  VerifyAlsoReopened(options);
  Destroy(options);
}

TEST_F(DBBlobGcTest, FailedCopyLeavesNoFileAndNoSpaceShrinksJobs) {
  Options options = FaultOptions();
  DestroyAndReopen(options);
  Load();
  MakeGarbage();
  const std::set<uint64_t> files = FilesOnDisk(kBlobFile);
  EnableCallBack("BlobGcJob::Merge:BeforeFinish", [&](void* arg) {
    *static_cast<Status*>(arg) = Status::IOError("no copy");
  });
  ASSERT_TRUE(Collect().IsIOError());
  DisableCallBacks();
  ASSERT_EQ(files, FilesOnDisk(kBlobFile));
  Reopen(options);
  Verify();

  // After an error for lack of space the limit of the next job is smaller, and
  // it grows again with success.
  uint64_t limit = 0;
  EnableCallBack("BlobGcJob::Merge:BeforeFinish", [&](void* arg) {
    if (limit == 0) {
      *static_cast<Status*>(arg) = Status::NoSpace("no room");
    }
  });
  ASSERT_TRUE(Collect().IsNoSpace());
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    limit = Blobs()->gc()->max_copies();
  }
  ASSERT_LT(limit, options.blob_file_size);
  PutKey(1, 3);
  ASSERT_OK(Flush());
  ASSERT_OK(Collect());
  SyncPoint::GetInstance()->DisableProcessing();
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    ASSERT_GT(Blobs()->gc()->max_copies(), limit);
  }
  VerifyAlsoReopened(options);
  Destroy(options);
}

// A damaged record is not copied, and its file stays. The other files are
// collected.
TEST_F(DBBlobGcTest, DamagedRecordIsNotCopied) {
  const Options options = GcOptions(0);
  DestroyAndReopen(options);
  Load();
  MakeGarbage();
  const uint64_t number = *FilesOnDisk(kBlobFile).begin();
  const std::string path = BlobFileName(dbname_, number);
  Close();
  std::string content;
  ASSERT_OK(ReadFileToString(env_, path, &content));
  // The damage is in the value of the second record; the first record is
  // garbage.
  content[kValueSize * 3 / 2 + 100] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, content, path));
  Reopen(options);
  const Status s = Collect();
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find(path)) << s.ToString();
  ASSERT_EQ(1u, FilesOnDisk(kBlobFile).count(number));
  ASSERT_GT(Ticker(BLOB_MAP_GC_FILES), 3u);

  // Without paranoid checks the DB stays writable, and the job does not try the
  // file again.
  Options careless = options;
  careless.paranoid_checks = false;
  careless.statistics = CreateDBStatistics();
  careless.blob_gc_space_amp_limit = 1.01;
  Reopen(careless);
  Wait();
  ASSERT_EQ(1u, Ticker(BLOB_MAP_GC_FAILED));
  PutKey(0, 5);
  ASSERT_OK(Flush());
  Wait();
  PutKey(0, 6);
  ASSERT_OK(Flush());
  Wait();
  ASSERT_EQ(1u, Ticker(BLOB_MAP_GC_FAILED));
  ASSERT_EQ(1u, FilesOnDisk(kBlobFile).count(number));
}

TEST_F(DBBlobGcTest, CopiesAreInKeyOrder) {
  Options options = GcOptions(0);
  options.blob_file_size = 1 << 20;
  DestroyAndReopen(options);
  LoadApart(8);
  MakeGarbage(1, 5);
  const std::set<uint64_t> before = FilesOnDisk(kBlobFile);
  ASSERT_OK(Collect());
  ASSERT_EQ(1.0, Amplification());
  // All old values are in one new file, in key order.
  uint64_t last_offset = 0;
  uint64_t number = 0;
  for (int key = 0; key < kKeys; ++key) {
    if (key % 5 == 0) {
      continue;
    }
    const auto found =
        Blobs()->map()->FindDirect(Blobs()->HashOf(Key(key)), /*pin=*/false);
    ASSERT_TRUE(found.found);
    const uint64_t file =
        Blobs()->file_table().Number(found.entry.address.slot);
    ASSERT_EQ(0u, before.count(file));
    ASSERT_TRUE(number == 0 || number == file);
    number = file;
    ASSERT_GT(found.entry.address.offset, last_offset);
    last_offset = found.entry.address.offset;
  }
  VerifyAlsoReopened(options);
}

TEST_F(DBBlobGcTest, SortReachesTheNumberOfRuns) {
  // The space limit decides how many runs are merged at a time.
  for (const double limit : {0.0, 1.5, 3.0}) {
    SCOPED_TRACE(limit);
    const Options options = GcOptions(limit);
    DestroyAndReopen(options);
    model_.clear();
    ASSERT_OK(Sort());
    LoadApart(8);
    ASSERT_EQ(kKeys, Pieces());
    // Only as many values are copied as are needed for six runs.
    ASSERT_OK(Sort(6));
    const uint64_t few = Ticker(BLOB_MAP_GC_VALUES);
    ASSERT_GT(few, 0u);
    ASSERT_LT(few, kKeys * 3u / 4);
    const uint64_t few_bytes = Ticker(BLOB_MAP_MANUAL_SORT_BYTES_WRITTEN);
    ASSERT_GT(few_bytes, few);
    ASSERT_OK(Sort());
    ASSERT_GT(Ticker(BLOB_MAP_MANUAL_SORT_BYTES_WRITTEN), few_bytes);
    ASSERT_LE(Ticker(BLOB_MAP_MANUAL_SORT_BYTES_WRITTEN),
              Ticker(BLOB_MAP_GC_BYTES_WRITTEN));
    ASSERT_EQ(Ticker(BLOB_MAP_SCAN_SORT_BYTES_WRITTEN), 0u);
    const int pieces = Pieces();
    ASSERT_LE(pieces, static_cast<int>(BlobFilesOfVersion().size()));
    ASSERT_LT(pieces, 20);
    // A second call copies nothing.
    const uint64_t moved = Ticker(BLOB_MAP_GC_VALUES);
    ASSERT_OK(Sort());
    ASSERT_EQ(moved, Ticker(BLOB_MAP_GC_VALUES));
    VerifyAlsoReopened(options);
    ASSERT_OK(Sort());
    ASSERT_EQ(moved, Ticker(BLOB_MAP_GC_VALUES));

    // New values are merged with the sorted ones, and so are runs with garbage.
    MakeGarbage(1, 7);
    for (int key = 1; key < kKeys; key += 50) {
      DeleteKey(key);
    }
    ASSERT_OK(Flush());
    ASSERT_OK(Sort(2));
    ASSERT_OK(Sort());
    ASSERT_LT(Pieces(), 40);
    VerifyAlsoReopened(options);
  }
}

// A merge of sorted runs that lacks space goes on in smaller pieces. It fails
// only if even a piece of one file lacks space.
TEST_F(DBBlobGcTest, SortsInSmallerPiecesForLackOfSpace) {
  const Options options = GcOptions(0);
  for (const bool is_full : {false, true}) {
    SCOPED_TRACE(is_full);
    DestroyAndReopen(options);
    model_.clear();
    LoadApart(6);
    const std::set<uint64_t> files = FilesOnDisk(kBlobFile);
    const uint64_t failed = Ticker(BLOB_MAP_GC_FAILED);
    std::atomic<int> failures{0};
    EnableCallBack("DBStrata::BackgroundBlobGc::Copy:Copied", [&](void* arg) {
      if (is_full || failures < 2) {
        ++failures;
        *static_cast<Status*>(arg) = Status::NoSpace("no room");
      }
    });
    const Status s = Sort();
    DisableCallBacks();
    EXPECT_EQ(s.IsNoSpace(), is_full) << s.ToString();
    EXPECT_EQ(s.ok(), !is_full) << s.ToString();
    // The limit is halved by each failure.
    EXPECT_GE(failures, 2);
    EXPECT_LE(failures, 5);
    EXPECT_EQ(Ticker(BLOB_MAP_GC_FAILED) - failed,
              static_cast<uint64_t>(failures));
    if (is_full) {
      WaitForJobs();
      EXPECT_EQ(files, FilesOnDisk(kBlobFile));
      ASSERT_OK(Sort());
    }
    ASSERT_LE(Pieces(), static_cast<int>(BlobFilesOfVersion().size()));
    Verify();
  }
}

TEST_F(DBBlobGcTest, CompactRangeSortsOnlyWithForceAndTheWholeRange) {
  const Options options = GcOptions(0);
  DestroyAndReopen(options);
  LoadApart(8);
  MakeGarbage();
  CompactRangeOptions compact;
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  compact.blob_garbage_collection_policy =
      BlobGarbageCollectionPolicy::kDisable;
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  // A part of the range is not sorted, even with kForce.
  compact.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::kForce;
  const std::string begin = Key(10);
  const Slice from(begin);
  ASSERT_OK(db_->CompactRange(compact, &from, nullptr));
  ASSERT_OK(db_->CompactRange(compact, nullptr, &from));
  ASSERT_EQ(0u, Ticker(BLOB_MAP_GC_VALUES));
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  ASSERT_LE(Pieces(), static_cast<int>(BlobFilesOfVersion().size()));
  ASSERT_EQ(1.0, Amplification());
  VerifyAlsoReopened(options);
}

// The end of a compaction makes collections due, whether or not the compaction
// has made garbage. Its garbage is collected without any other event.
TEST_F(DBBlobGcTest, CompactRangeMakesCollectionsDue) {
  OddKeyFilter filter;
  Options options = GcOptions(1.2);
  options.disable_auto_compactions = true;
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  Load();
  WaitForJobs();
  std::atomic<int> num_looks{0};
  EnableCallBack("DBStrata::ScheduleBlobGc:KeyRanges",
                 [&](void*) { ++num_looks; });
  CompactRangeOptions compact;
  compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  WaitFor([&] { return num_looks > 0; });
  WaitForJobs();
  ASSERT_EQ(1u * kKeys, Blobs()->map()->NumEntries());
  ASSERT_LE(Amplification(), 1.2);

  filter.SetDrops();
  num_looks = 0;
  const uint64_t num_copied = Ticker(BLOB_MAP_GC_VALUES);
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  for (int key = 1; key < kKeys; key += 2) {
    model_.erase(Key(key));
  }
  WaitFor([&] {
    return Blobs()->map()->NumEntries() == kKeys / 2 && Amplification() <= 1.2;
  });
  ASSERT_GT(num_looks, 0);
  // Every other value of each file was dropped.
  ASSERT_GT(Ticker(BLOB_MAP_GC_VALUES), num_copied);
  DisableCallBacks();
  VerifyAlsoReopened(options);
  Close();  // while the filter exists
}

// Values that only a snapshot sees are sorted behind the newer values of their
// key, and all readers still find them.
TEST_F(DBBlobGcTest, SortsOlderVersionsBehindNewerOnes) {
  const Options options = GcOptions(0);
  DestroyAndReopen(options);
  LoadApart(4);
  std::vector<const Snapshot*> snapshots;
  std::vector<std::map<std::string, std::string>> models;
  for (int round = 1; round <= 4; ++round) {
    snapshots.push_back(db_->GetSnapshot());
    models.push_back(model_);
    // One key has more versions than fit into a file.
    for (int i = 0; i < 100; ++i) {
      PutKey(200, 100 * round + i);
      if (i % 10 == 9) {
        snapshots.push_back(db_->GetSnapshot());
        models.push_back(model_);
      }
    }
    MakeGarbage(round, 3);
  }
  ReadOptions held;
  held.snapshot = snapshots[1];
  std::unique_ptr<Iterator> iter(db_->NewIterator(held));
  iter->SeekToFirst();
  ASSERT_OK(Sort());
  const uint64_t moved = Ticker(BLOB_MAP_GC_VALUES);
  ASSERT_OK(Sort());
  ASSERT_EQ(moved, Ticker(BLOB_MAP_GC_VALUES));
  for (size_t i = 0; i < snapshots.size(); ++i) {
    for (const auto& expected : models[i]) {
      ASSERT_EQ(expected.second, Get(expected.first, snapshots[i]));
    }
  }
  auto expected = models[1].begin();
  for (; iter->Valid(); iter->Next(), ++expected) {
    ASSERT_EQ(expected->first, iter->key());
    ASSERT_EQ(expected->second, iter->value());
  }
  ASSERT_OK(iter->status());
  ASSERT_TRUE(expected == models[1].end());
  iter.reset();
  for (const Snapshot* const snapshot : snapshots) {
    db_->ReleaseSnapshot(snapshot);
  }
  VerifyAlsoReopened(options);
}

// A sort that is canceled, fails, or meets overwrites between its jobs leaves
// the values intact, and the next sort completes.
TEST_F(DBBlobGcTest, InterruptedSortKeepsAllValues) {
  Options options = FaultOptions();
  // Small files divide each merge into many pieces.
  options.blob_file_size = 8 << 10;
  DestroyAndReopen(options);
  LoadApart(8);

  std::atomic<bool> canceled{false};
  int jobs = 0;
  EnableCallBack("DBStrata::BackgroundBlobGc::Copy:Copied",
                 [&](void*) { canceled = ++jobs == 3; });
  ASSERT_TRUE(Sort(1, &canceled).IsManualCompactionPaused());
  ASSERT_EQ(3, jobs);
  SyncPoint::GetInstance()->ClearAllCallBacks();
  Verify();

  jobs = 0;
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit", [&](void*) {
        if (++jobs == 3) {
          FailWrites();
        }
      });
  ASSERT_NOK(Sort());
  SyncPoint::GetInstance()->ClearAllCallBacks();
  fault_fs_->SetFilesystemActive(true);
  ASSERT_OK(db_->Resume());
  Verify();

  // A flush and another job run between the pieces of a merge.
  jobs = 0;
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::BackgroundBlobGc::Run:AfterEdit", [&](void*) {
        if (++jobs == 2) {
          for (int key = 0; key < kKeys; key += 2) {
            PutKey(key, 1);
          }
          ASSERT_OK(Flush());
          ASSERT_OK(Collect());
        }
      });
  ASSERT_OK(Sort());
  ASSERT_GT(jobs, 2);
  DisableCallBacks();
  Verify();
  ASSERT_OK(Sort());
  ASSERT_LE(Pieces(), static_cast<int>(BlobFilesOfVersion().size()));
  VerifyAlsoReopened(options);
  Destroy(options);
}

// A sort that ends early leaves copied values in the old files, too. A map that
// is rebuilt from the files must have the copies, or the old files would not
// become empty.
TEST_F(DBBlobGcTest, RebuiltMapHasTheCopiesOfAnUnfinishedSort) {
  Options options = GcOptions(0);
  // Small files divide each merge into many pieces.
  options.blob_file_size = 8 << 10;
  DestroyAndReopen(options);
  LoadApart(8);
  const std::set<uint64_t> old_files = BlobFilesOfVersion();
  std::atomic<bool> canceled{false};
  int jobs = 0;
  EnableCallBack("DBStrata::BackgroundBlobGc::Copy:Copied",
                 [&](void*) { canceled = ++jobs == 3; });
  ASSERT_TRUE(Sort(1, &canceled).IsManualCompactionPaused());
  DisableCallBacks();
  const std::map<uint64_t, uint64_t> live = LiveBytesOfFiles();
  ASSERT_GT(live.size(), old_files.size());

  AddressMapCheckpoints::UseInThisProcess(false);
  Reopen(options);
  AddressMapCheckpoints::UseInThisProcess(true);
  EXPECT_EQ(LiveBytesOfFiles(), live);
  Verify();
}

// A file whose key range cannot be read because its first record, which is
// garbage, is damaged, is left out of the sort.
TEST_F(DBBlobGcTest, SortLeavesOutADamagedFile) {
  const Options options = GcOptions(0);
  DestroyAndReopen(options);
  LoadApart(4);
  // Make the first record of one file garbage.
  const std::set<uint64_t> files = FilesOnDisk(kBlobFile);
  const uint64_t damaged = *files.begin();
  for (int key = 0; key < kKeys; ++key) {
    const auto found =
        Blobs()->map()->FindDirect(Blobs()->HashOf(Key(key)), false);
    ASSERT_TRUE(found.found);
    if (Blobs()->file_table().Number(found.entry.address.slot) == damaged &&
        found.entry.address.offset == BlobHeaderV2::kSize) {
      PutKey(key, 1);
    }
  }
  ASSERT_OK(Flush());
  Wait();
  Close();
  ASSERT_OK(test::CorruptFile(env_, BlobFileName(dbname_, damaged),
                              static_cast<int>(BlobHeaderV2::kSize), 4,
                              /*verify_checksum=*/false));
  Reopen(options);
  ASSERT_OK(Sort());
  ASSERT_EQ(1u, BlobFilesOfVersion().count(damaged));
  for (const auto& expected : model_) {
    ASSERT_EQ(expected.second, Get(expected.first));
  }
  // There are two runs: this file and all others.
  ASSERT_LT(Pieces(), 2 * 64 + 20);
}

// Close(), DisableManualCompaction() and AbortAllCompactions() end a running
// sort and wait for its end.
TEST_F(DBBlobGcTest, CloseDisableAndAbortEndASort) {
  Options options = GcOptions(1.5);
  const auto close = [&] { EXPECT_OK(db_->Close()); };
  const auto disable = [&] { db_->DisableManualCompaction(); };
  const auto abort = [&] { db_->AbortAllCompactions(); };
  const std::function<void()> ways[] = {close, disable, abort};
  // Each of them sets a flag and then waits. CompactRange() looks at the flags
  // before it looks at its options, which are invalid here.
  const auto is_flag_set = [&] {
    CompactRangeOptions invalid;
    invalid.target_path_id = 1;
    const std::string key = Key(0);
    const Slice only(key);
    return !db_->CompactRange(invalid, &only, &only).IsInvalidArgument();
  };
  for (size_t way = 0; way < 3; ++way) {
    for (const char* const point :
         {"DBStrata::ManualBlobGc::ReadRuns:File",
          "DBStrata::BackgroundBlobGc::Copy:Copied",
          "DBStrata::BackgroundBlobGc::Run:AfterEdit",
          "DBStrata::ManualBlobGc::RunPieces:Piece"}) {
      SCOPED_TRACE(std::to_string(way) + point);
      DestroyAndReopen(options);
      model_.clear();
      LoadApart(6);
      std::atomic<bool> reached{false};
      std::atomic<bool> went_on{false};
      std::atomic<bool> is_done{false};
      EnableCallBack(point, [&](void*) {
        if (!reached.exchange(true)) {
          WaitFor(is_flag_set);
          went_on = true;
        }
      });
      Status s;
      std::thread sorter([&] {
        s = Sort();
        is_done = true;
      });
      WaitFor([&] { return reached || is_done; });
      EXPECT_TRUE(reached);
      ways[way]();
      EXPECT_TRUE(went_on);
      {
        InstrumentedMutexLock lock(dbfull()->mutex());
        EXPECT_FALSE(dbfull()->strata()->HasManualBlobGc());
      }
      sorter.join();
      DisableCallBacks();
      EXPECT_EQ(Ticker(BLOB_MAP_GC_FAILED), 0u);
      EXPECT_TRUE(way == 2 ? s.IsCompactionAborted()
                           : s.IsManualCompactionPaused() ||
                                 (way == 0 && s.IsShutdownInProgress()))
          << s.ToString();
      if (way == 0) {
        db_.reset();
        Reopen(options);
      } else if (way == 1) {
        db_->EnableManualCompaction();
      } else {
        db_->ResumeAllCompactions();
      }
      ASSERT_OK(Sort());
      ASSERT_LE(Pieces(), static_cast<int>(BlobFilesOfVersion().size()));
      Verify();
    }
  }
}

// The space amplification stays near the limit while merges and writes run at
// the same time.
TEST_F(DBBlobGcTest, SortKeepsTheLimitDuringWrites) {
  const Options options = GcOptions(1.2);
  DestroyAndReopen(options);
  LoadApart(16);
  std::atomic<bool> stop{false};
  int calls = 0;
  std::thread sorter([&] {
    // A failure ends the writes, too.
    const Defer end([&] { stop = true; });
    while (!stop) {
      ASSERT_OK(Sort(1 + calls % 3));
      ++calls;
    }
  });
  Random rnd(301);
  double worst = 0;
  for (int i = 0; i < 3000 && !stop; ++i) {
    PutKey(static_cast<int>(rnd.Uniform(kKeys)), i);
    if (i % 40 == 39) {
      EXPECT_OK(Flush());
      Wait();
      worst = std::max(worst, Amplification());
    }
  }
  stop = true;
  sorter.join();
  ASSERT_GT(calls, 1);
  // The limit includes the room for flushes and for the copies of automatic
  // jobs. A merge may go beyond it by what one of its pieces has. Since all
  // values fit into a few files, that is much: a merge has two runs, each with
  // one file of which a part was copied, and which no other job may collect
  // meanwhile. A piece writes two files, because the second one is begun before
  // the values that were copied, without their headers, have the size of a
  // file, and an open file is filled.
  ASSERT_LT(worst, 1.2 + 4.0 * static_cast<double>(options.blob_file_size) /
                             static_cast<double>(kKeys * kValueSize));
  ASSERT_OK(Sort());
  VerifyAlsoReopened(options);
}

TEST_F(DBBlobGcTest, CopiesHaveTheCurrentCompression) {
  if (!Snappy_Supported()) {
    ROCKSDB_GTEST_SKIP("needs Snappy");
    return;
  }
  Options options = GcOptions(0);
  DestroyAndReopen(options);
  Load();
  const CompressionType kTypes[] = {kSnappyCompression, kSnappyCompression,
                                    kNoCompression};
  int round = 0;
  for (const CompressionType type : kTypes) {
    options.blob_compression_type = type;
    Reopen(options);
    // The rounds overwrite different keys, because otherwise their files would
    // be dropped.
    ++round;
    for (int key = round; key < kKeys; key += 5 + round) {
      PutKey(key, round);
    }
    ASSERT_OK(Flush());
    Wait();
    const uint64_t newest = *FilesOnDisk(kBlobFile).rbegin();
    ASSERT_OK(Collect());
    ASSERT_EQ(1.0, Amplification());
    // The copies have the current compression type.
    int copies = 0;
    for (const BlobFileSlotTable::Info& file : Blobs()->file_table().GetAll()) {
      if (file.number > newest) {
        ASSERT_EQ(type, file.compression);
        ++copies;
      }
    }
    ASSERT_GT(copies, 0);
    Verify();
  }
  VerifyAlsoReopened(options);
}

// A cached value is still cached after it was moved, or moved back, and a job
// inserts no other value into the cache.
TEST_F(DBBlobGcTest, CachedValuesStayCachedWhenMoved) {
  Options options = FaultOptions();
  LRUCacheOptions cache_options;
  cache_options.capacity = 8 << 20;
  for (const bool fails : {false, true}) {
    for (const CompressionType compression :
         {kNoCompression, kSnappyCompression}) {
      if (compression == kSnappyCompression && !Snappy_Supported()) {
        continue;
      }
      SCOPED_TRACE(std::to_string(fails) + " " + std::to_string(compression));
      options.blob_compression_type = compression;
      options.blob_cache = cache_options.MakeSharedCache();
      DestroyAndReopen(options);
      model_.clear();
      Load();
      MakeGarbage();
      const auto read = [&](int first) {
        for (int key = first; key < kKeys; key += 4) {
          ASSERT_EQ(model_[Key(key)], Get(Key(key)));
        }
      };
      // Read values that the job moves, and values that it does not move.
      read(0);
      read(1);
      const size_t usage = options.blob_cache->GetUsage();
      const size_t count = options.blob_cache->GetOccupancyCount();
      ASSERT_EQ(size_t{kKeys / 2}, count);
      if (fails) {
        EnableCallBack("DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit",
                       [&](void*) { FailWrites(); });
        ASSERT_NOK(Collect());
        DisableCallBacks();
        fault_fs_->SetFilesystemActive(true);
        ASSERT_OK(db_->Resume());
        ASSERT_GT(Amplification(), 1.4);
      } else {
        ASSERT_OK(Collect());
        ASSERT_EQ(1.0, Amplification());
      }
      ASSERT_EQ(count, options.blob_cache->GetOccupancyCount());
      // The size of an allocation differs by a few bytes.
      ASSERT_NEAR(static_cast<double>(usage),
                  static_cast<double>(options.blob_cache->GetUsage()),
                  static_cast<double>(usage) / 50);
      const uint64_t misses = Ticker(BLOB_DB_CACHE_MISS);
      read(0);
      read(1);
      ASSERT_EQ(misses, Ticker(BLOB_DB_CACHE_MISS));
      read(2);
      ASSERT_EQ(misses + kKeys / 4, Ticker(BLOB_DB_CACHE_MISS));
      Verify();
    }
  }
  Destroy(options);
}

TEST_F(DBBlobGcTest, CopiesStayOnTheirPath) {
  Options options = GcOptions(0);
  options.cf_paths = {{dbname_, 0}, {dbname_ + "_1", 0}};
  options.level_blob_path_ids = {1};
  DestroyAndReopen(options);
  Load();
  MakeGarbage();
  ASSERT_OK(Collect());
  for (const BlobFileSlotTable::Info& file : Blobs()->file_table().GetAll()) {
    ASSERT_EQ(1u, file.path_id);
  }
  // The property says what the collection has read and written there.
  std::map<std::string, std::string> stats;
  ASSERT_TRUE(db_->GetMapProperty(DB::Properties::kPathStats, &stats));
  EXPECT_EQ("0", stats["path0.gc-written-bytes"]);
  EXPECT_EQ("0", stats["path0.gc-written-share"]);
  EXPECT_GT(std::stoull(stats["path1.gc-written-bytes"]), kValueSize);
  EXPECT_GT(std::stoull(stats["path1.gc-job-read-bytes"]), kValueSize);
  const double share = std::stod(stats["path1.gc-written-share"]);
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 1);
  ASSERT_TRUE(FilesOnDisk(kBlobFile).empty());
  for (int i = 0; i < 2; ++i) {
    for (const auto& expected : model_) {
      ASSERT_EQ(expected.second, Get(expected.first));
    }
    Reopen(options);
  }
  Destroy(options);
}

// An old Version still names a file of the map that is deleted.
TEST_F(DBBlobGcTest, DeletedFilesDoNotCountForTheTotalSize) {
  DestroyAndReopen(GcOptions(0));
  Load();
  MakeGarbage();
  const auto property = [&](const std::string& name) {
    uint64_t value = 0;
    EXPECT_TRUE(db_->GetIntProperty(name, &value));
    return value;
  };
  const std::set<uint64_t> before = BlobFilesOfVersion();
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  ASSERT_OK(Collect());
  Wait();
  ASSERT_NE(before, BlobFilesOfVersion());
  ASSERT_EQ(BlobFilesOfVersion(), FilesOnDisk(kBlobFile));
  EXPECT_GT(property(DB::Properties::kTotalBlobFileSize), 0u);
  EXPECT_EQ(property(DB::Properties::kLiveBlobFileSize),
            property(DB::Properties::kTotalBlobFileSize));
}

TEST_F(DBBlobGcTest, WaitsForFileDeletionsAndBackgroundWork) {
  const Options options = GcOptions(0);
  DestroyAndReopen(options);
  Load();
  MakeGarbage();
  ASSERT_OK(db_->DisableFileDeletions());
  ASSERT_OK(db_->SetOptions({{"blob_gc_space_amp_limit", "1.1"}}));
  Wait();
  ASSERT_GT(Amplification(), 1.4);
  ASSERT_OK(db_->EnableFileDeletions());
  Wait();
  ASSERT_LE(Amplification(), 1.1);

  ASSERT_OK(db_->PauseBackgroundWork());
  ASSERT_OK(db_->SetOptions({{"blob_gc_space_amp_limit", "1.01"}}));
  Wait();
  ASSERT_GT(Amplification(), 1.01);
  ASSERT_OK(db_->ContinueBackgroundWork());
  Wait();
  ASSERT_LE(Amplification(), 1.01);
  VerifyAlsoReopened(options);
}

TEST_F(DBBlobGcTest, SlowsDownWritesFarAboveTheLimit) {
  Options options = GcOptions(1.1);
  options.soft_pending_compaction_bytes_limit = uint64_t{1} << 40;
  options.hard_pending_compaction_bytes_limit = uint64_t{1} << 41;
  DestroyAndReopen(options);
  Load();
  const auto property = [&](const std::string& name) {
    uint64_t value = 0;
    EXPECT_TRUE(db_->GetIntProperty(name, &value));
    return value;
  };
  std::atomic<bool> blocked{true};
  EnableCallBack("BackgroundJobScheduler::Work:BlobGc", [&](void*) {
    while (blocked) {
      env_->SleepForMicroseconds(100);
    }
  });
  ASSERT_EQ(0u, property(DB::Properties::kActualDelayedWriteRate));
  for (int round = 1; round <= 3; ++round) {
    for (int key = 0; key < 40; ++key) {
      PutKey(key * 10 + round, round);
    }
    ASSERT_OK(Flush());
    // The old values become garbage only after the flush has installed its
    // SuperVersion.
    ASSERT_OK(dbfull()->TEST_WaitForFlushMemTable());
  }
  ASSERT_GT(Amplification(), 1.1 * BlobGcState::kStallFactor);
  PutKey(5, 7);
  ASSERT_OK(Flush());
  ASSERT_GT(property(DB::Properties::kActualDelayedWriteRate), 0u);
  ASSERT_EQ(0u, property(DB::Properties::kIsWriteStopped));
  blocked = false;
  Wait();
  ASSERT_LE(Amplification(), 1.1);
  ASSERT_EQ(0u, property(DB::Properties::kActualDelayedWriteRate));
  SyncPoint::GetInstance()->DisableProcessing();
  VerifyAlsoReopened(options);
}

TEST_F(DBBlobGcTest, ListenersSeeEachJob) {
  class Listener : public EventListener {
   public:
    void OnBlobFileCreated(const BlobFileCreationInfo& info) override {
      if (info.reason == BlobFileCreationReason::kGarbageCollection) {
        ++files_;
      }
    }
    void OnBlobGarbageCollectionBegin(
        DB* db, const BlobGarbageCollectionInfo& info) override {
      EXPECT_NE(nullptr, db);
      EXPECT_EQ(kDefaultColumnFamilyName, info.cf_name);
      EXPECT_FALSE(info.input_files.empty());
      EXPECT_GT(info.input_bytes, 0u);
      EXPECT_TRUE(info.output_files.empty());
      EXPECT_TRUE(info.is_manual);
      ++begun_;
      std::vector<ThreadStatus> threads;
      EXPECT_OK(db->GetEnv()->GetThreadList(&threads));
    }
    void OnBlobGarbageCollectionCompleted(
        DB* /*db*/, const BlobGarbageCollectionInfo& info) override {
      EXPECT_OK(info.status);
      EXPECT_FALSE(info.output_files.empty());
      EXPECT_GT(info.output_bytes, 0u);
      EXPECT_GT(info.values_moved, 0u);
      outputs_ += static_cast<int>(info.output_files.size());
      ++completed_;
    }
    std::atomic<int> files_{0};
    std::atomic<int> begun_{0};
    std::atomic<int> completed_{0};
    std::atomic<int> outputs_{0};
  };
  Options options = GcOptions(0);
  const auto listener = std::make_shared<Listener>();
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  Load();
  MakeGarbage();
  ASSERT_OK(Collect());
  EXPECT_GT(listener->begun_, 0);
  EXPECT_EQ(listener->begun_, listener->completed_);
  EXPECT_EQ(listener->files_, listener->outputs_);
}

// GetThreadList() shows jobs of the background with enable_thread_tracking
// only, whichever DB has used their thread before.
TEST_F(DBBlobGcTest, JobsAreTrackedAsTheOptionSays) {
  class Listener : public EventListener {
   public:
    void OnBlobGarbageCollectionBegin(
        DB* db, const BlobGarbageCollectionInfo& /*info*/) override {
      std::vector<ThreadStatus> threads;
      EXPECT_OK(db->GetEnv()->GetThreadList(&threads));
      ++begun_;
      tracked_ += std::any_of(
          threads.begin(), threads.end(), [](const ThreadStatus& thread) {
            return thread.operation_type == ThreadStatus::OP_BLOB_GC;
          });
    }
    int begun_ = 0;
    int tracked_ = 0;
  };
  for (const bool tracks : {true, false}) {
    Options options = GcOptions(1.1);
    options.max_background_jobs = 1;  // one job after the other
    options.enable_thread_tracking = tracks;
    const auto listener = std::make_shared<Listener>();
    options.listeners.push_back(listener);
    DestroyAndReopen(options);
    model_.clear();
    Load();
    MakeGarbage();
    Wait();
    EXPECT_GT(listener->begun_, 0);
    EXPECT_EQ(listener->tracked_, tracks ? listener->begun_ : 0);
  }
}

// A collection asks the rate limiter with the priority that compactions have
// while writes are slowed down or stopped.
TEST_F(DBBlobGcTest, CollectionHasPriorityWhileWritesAreSlowedDown) {
  // Grants everything, and notes who asks.
  class Limiter : public RateLimiter {
   public:
    using RateLimiter::Request;

    void SetBytesPerSecond(int64_t /*bytes_per_second*/) override {}
    void Request(const int64_t /*bytes*/, const Env::IOPriority priority,
                 Statistics* /*stats*/, OpType /*op_type*/) override {
      ++requests_[priority];
    }
    int64_t GetSingleBurstBytes() const override { return 1 << 20; }
    int64_t GetTotalBytesThrough(const Env::IOPriority) const override {
      return 0;
    }
    int64_t GetTotalRequests(const Env::IOPriority) const override { return 0; }
    int64_t GetBytesPerSecond() const override { return 1 << 20; }
    bool IsRateLimited(OpType /*op_type*/) override { return true; }

    std::array<std::atomic<int>, Env::IO_TOTAL> requests_{};
  };
  enum class Writes { kNormal, kSlow, kStopped };
  for (const Writes writes :
       {Writes::kNormal, Writes::kSlow, Writes::kStopped}) {
    Options options = GcOptions(0);
    const auto limiter = std::make_shared<Limiter>();
    options.rate_limiter = limiter;
    DestroyAndReopen(options);
    model_.clear();
    Load();
    MakeGarbage();
    Wait();
    std::unique_ptr<WriteControllerToken> token;
    if (writes == Writes::kSlow) {
      token = dbfull()->TEST_write_controler().GetDelayToken(1 << 20);
    } else if (writes == Writes::kStopped) {
      token = dbfull()->TEST_write_controler().GetStopToken();
    }
    for (auto& requests : limiter->requests_) {
      requests = 0;
    }
    ASSERT_OK(Collect());
    const int user = limiter->requests_[Env::IO_USER];
    const int low = limiter->requests_[Env::IO_LOW];
    EXPECT_GT(writes == Writes::kNormal ? low : user, 0);
    EXPECT_EQ(writes == Writes::kNormal ? user : low, 0);
    EXPECT_EQ(limiter->requests_[Env::IO_MID], 0);
  }
}

// The hint that a copied value lives long is given for the compaction styles of
// calculate_sst_write_lifetime_hint_set only.
TEST_F(DBBlobGcTest, LifetimeHintIsAnOption) {
  const auto fs =
      std::make_shared<CreatedFilesFS>(env_->GetFileSystem(), ".blob");
  const std::unique_ptr<Env> env = NewCompositeEnv(fs);
  for (const bool is_on : {true, false}) {
    Options options = GcOptions(0);
    options.env = env.get();
    if (!is_on) {
      options.calculate_sst_write_lifetime_hint_set = {};
    }
    DestroyAndReopen(options);
    model_.clear();
    Load();
    MakeGarbage();
    Wait();
    fs->TakeCreated();
    ASSERT_OK(Collect());
    const std::vector<FileOptions> created = fs->TakeCreated();
    EXPECT_FALSE(created.empty());
    for (const FileOptions& file : created) {
      EXPECT_EQ(file.write_hint, is_on ? Env::WLTH_LONG : Env::WLTH_NOT_SET);
    }
    Close();
  }
}

// The DB can be closed while jobs wait for a thread and while one runs.
TEST_F(DBBlobGcTest, CloseWithWaitingOrRunningJobs) {
  Options options = GcOptions(0);
  options.env = Env::Default();
  for (const bool running : {false, true}) {
    DestroyAndReopen(options);
    model_.clear();
    Load();
    MakeGarbage();
    test::SleepingBackgroundTask sleeping;
    std::atomic<bool> copied{false};
    std::atomic<bool> closing{false};
    if (running) {
      SyncPoint::GetInstance()->SetCallBack(
          "DBStrata::BackgroundBlobGc::Copy:Copied", [&](void*) {
            copied = true;
            while (!closing) {
              env_->SleepForMicroseconds(100);
            }
          });
      SyncPoint::GetInstance()->SetCallBack("DBImpl::~DBImpl:WaitJob",
                                            [&](void*) { closing = true; });
      SyncPoint::GetInstance()->EnableProcessing();
    } else {
      env_->SetBackgroundThreads(1, Env::LOW);
      env_->Schedule(&test::SleepingBackgroundTask::DoSleepTask, &sleeping,
                     Env::LOW);
      sleeping.WaitUntilSleeping();
    }
    ASSERT_OK(db_->SetOptions({{"blob_gc_space_amp_limit", "1.1"}}));
    while (running && !copied) {
      env_->SleepForMicroseconds(100);
    }
    Close();
    if (!running) {
      sleeping.WakeUp();
      sleeping.WaitUntilDone();
    }
    DisableCallBacks();
    Reopen(options);
    Verify();
  }
}

// The jobs of a family with much garbage leave room for the others.
TEST_F(DBBlobGcTest, FamiliesTakeTurns) {
  Options options = GcOptions(0);
  options.max_background_jobs = 1;
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  std::map<uint64_t, int> family_of;
  for (int cf = 0; cf < 2; ++cf) {
    for (int round = 0; round < 2; ++round) {
      for (int key = 0; key < 4 * kKeys; key += 1 + round) {
        ASSERT_OK(Put(cf, Key(key), ValueOf(key, round)));
      }
      ASSERT_OK(Flush(cf));
    }
    InstrumentedMutexLock lock(dbfull()->mutex());
    auto* const cfd =
        static_cast_with_check<ColumnFamilyHandleImpl>(handles_[cf])->cfd();
    for (const auto& meta : cfd->current()->storage_info()->GetBlobFiles()) {
      family_of[meta->GetBlobFileNumber()] = cf;
    }
  }
  std::string order;
  EnableCallBack("DBStrata::ScheduleBlobGc", [&](void* arg) {
    for (const uint64_t number : static_cast<BlobGcPicker::Job*>(arg)->files) {
      const auto found = family_of.find(number);
      if (found != family_of.end()) {
        order += static_cast<char>('0' + found->second);
      }
    }
  });
  ASSERT_OK(db_->DisableFileDeletions());
  for (ColumnFamilyHandle* handle : handles_) {
    ASSERT_OK(db_->SetOptions(handle, {{"blob_gc_space_amp_limit", "1.1"}}));
  }
  ASSERT_OK(db_->EnableFileDeletions());
  Wait();
  DisableCallBacks();
  ASSERT_NE(order.find('0'), std::string::npos) << order;
  ASSERT_NE(order.find('1'), std::string::npos) << order;
  EXPECT_LT(order.find('1'), order.rfind('0')) << order;
  EXPECT_LT(order.find('0'), order.rfind('1')) << order;
}

// A collection that becomes due while the only job that may run belongs to
// another family is not forgotten if that job fails.
TEST_F(DBBlobGcTest, FailedJobMakesWayForOneThatWasRefused) {
  Options options = GcOptions(0);
  options.max_background_jobs = 1;
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"dropped"}, options);
  for (int round = 0; round < 2; ++round) {
    for (int cf = 0; cf < 2; ++cf) {
      for (int key = 0; key < kKeys; key += 1 + round) {
        ASSERT_OK(Put(cf, Key(key), ValueOf(key, round)));
      }
      ASSERT_OK(Flush(cf));
    }
  }
  Wait();
  ASSERT_GT(Amplification(), 1.4);
  const std::unordered_map<std::string, std::string> limited{
      {"blob_gc_space_amp_limit", "1.1"}};
  const auto reached =
      EnableCallBackOnce("DBStrata::BackgroundBlobGc::Copy:Copied", [&](void*) {
        EXPECT_OK(db_->SetOptions(handles_[0], limited));
        EXPECT_OK(db_->DropColumnFamily(handles_[1]));
      });
  ASSERT_OK(db_->SetOptions(handles_[1], limited));
  Wait();
  DisableCallBacks();
  ASSERT_TRUE(*reached);
  EXPECT_LE(Amplification(), 1.1);
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.pop_back();
}

// Listeners are told of the deletion of each file of which they were told that
// it was complete, also if its job fails later.
TEST_F(DBBlobGcTest, ListenersHearOfTheFilesOfAFailedJob) {
  const auto listed = std::make_shared<ListedFiles>();
  Options options = FaultOptions();
  options.blob_file_size = 16 << 10;
  options.listeners.push_back(listed);
  DestroyAndReopen(options);
  LoadApart(4);
  ASSERT_EQ(FilesOnDisk(kBlobFile), listed->Numbers(kBlobFile));
  const size_t num_created = listed->num_created();
  EnableCallBack("BlobGcJob::Merge:BeforeFinish", [&](void* arg) {
    *static_cast<Status*>(arg) = Status::IOError("no copy");
  });
  // All values go to sorted files, so that some are complete.
  ASSERT_TRUE(Sort().IsIOError());
  DisableCallBacks();
  EXPECT_GT(listed->num_created(), num_created);
  EXPECT_EQ(FilesOnDisk(kBlobFile), listed->Numbers(kBlobFile));
  Reopen(options);
  Verify();
}

// Collections that fail do not start each other again and again.
TEST_F(DBBlobGcTest, FailedJobsEndWithoutAnEvent) {
  Options options = GcOptions(0);
  options.max_background_jobs = 1;
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  for (int cf = 0; cf < 2; ++cf) {
    for (int round = 0; round < 2; ++round) {
      for (int key = 0; key < kKeys; key += 1 + round) {
        ASSERT_OK(Put(cf, Key(key), ValueOf(key, round)));
      }
      ASSERT_OK(Flush(cf));
    }
  }
  Wait();
  std::atomic<int> jobs{0};
  EnableCallBack("BlobGcJob::Merge:BeforeFinish", [&](void* arg) {
    if (++jobs < 10) {
      *static_cast<Status*>(arg) = Status::NoSpace("no room");
    }
  });
  for (ColumnFamilyHandle* const handle : handles_) {
    ASSERT_OK(db_->SetOptions(handle, {{"blob_gc_space_amp_limit", "1.1"}}));
  }
  Wait();
  DisableCallBacks();
  EXPECT_GE(jobs, 1);
  EXPECT_LE(jobs, 4);
}

// Listeners hear of a slowdown at the end of a flush, and of its end when the
// collections have ended, without another flush or a compaction.
TEST_F(DBBlobGcTest, ListenersHearOfSlowdowns) {
  const auto listener = std::make_shared<JobPressureListener>();
  Options options = GcOptions(1.1);
  options.soft_pending_compaction_bytes_limit = uint64_t{1} << 40;
  options.hard_pending_compaction_bytes_limit = uint64_t{1} << 41;
  // The files of level 0 are far from a slowdown and from a compaction.
  options.level0_file_num_compaction_trigger = 1000;
  options.level0_slowdown_writes_trigger = 1000;
  options.level0_stop_writes_trigger = 2000;
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  Load();
  EXPECT_TRUE(listener->HasNoSlowdown());
  EXPECT_FALSE(listener->HasSlowdown());

  std::atomic<bool> held{true};
  MakeGarbageWhileHeld(&held);
  EXPECT_TRUE(WaitUntil([&] { return listener->HasSlowdown(); }));
  listener->Forget();
  held = false;
  Wait();
  EXPECT_TRUE(listener->HasNoSlowdown());
  DisableCallBacks();
  VerifyAlsoReopened(options);
}

// A slowdown ends at once when a job leaves files that no job may collect for a
// while: slow writes would delay the flush with which the collection goes on.
TEST_F(DBBlobGcTest, FilesThatNoJobMayCollectEndTheSlowdown) {
  Options options = GcOptions(1.1);
  options.soft_pending_compaction_bytes_limit = uint64_t{1} << 40;
  options.hard_pending_compaction_bytes_limit = uint64_t{1} << 41;
  // Flushes do not stall writes. RocksDB tells of stalls after it has released
  // the mutex, so that two events may change places.
  options.max_write_buffer_number = 100;
  const auto listener = std::make_shared<JobPressureListener>();
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  Load();
  const auto delayed_rate = [&] {
    uint64_t rate = 0;
    EXPECT_TRUE(
        db_->GetIntProperty(DB::Properties::kActualDelayedWriteRate, &rate));
    return rate;
  };
  EnableCallBack("BlobGcJob::Merge:BeforeFinish", [&](void* arg) {
    *static_cast<Status*>(arg) = Status::Incomplete("injected");
  });
  std::atomic<bool> held{true};
  MakeGarbageWhileHeld(&held);
  EXPECT_GT(delayed_rate(), 0u);
  EXPECT_TRUE(WaitUntil(
      [&] { return listener->condition() == WriteStallCondition::kDelayed; }));
  const std::set<uint64_t> files = BlobFilesOfVersion();
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    Blobs()->gc()->OnFailed(files);
  }
  held = false;
  Wait();
  EXPECT_EQ(delayed_rate(), 0u);
  EXPECT_TRUE(WaitUntil(
      [&] { return listener->condition() == WriteStallCondition::kNormal; }));
  DisableCallBacks();
  VerifyAlsoReopened(options);
}

// A slowdown ends at once when file deletions are disabled, as no job collects
// garbage from then on, and begins again when they are enabled.
TEST_F(DBBlobGcTest, DisabledFileDeletionsEndTheSlowdown) {
  Options options = GcOptions(1.1);
  options.soft_pending_compaction_bytes_limit = uint64_t{1} << 40;
  options.hard_pending_compaction_bytes_limit = uint64_t{1} << 41;
  // Flushes do not stall writes. RocksDB tells of stalls after it has released
  // the mutex, so that two events may change places.
  options.max_write_buffer_number = 100;
  const auto listener = std::make_shared<JobPressureListener>();
  options.listeners.push_back(listener);
  DestroyAndReopen(options);
  Load();
  const auto delayed_rate = [&] {
    uint64_t rate = 0;
    EXPECT_TRUE(
        db_->GetIntProperty(DB::Properties::kActualDelayedWriteRate, &rate));
    return rate;
  };
  std::atomic<bool> blocked{true};
  EnableCallBack("BackgroundJobScheduler::Work:BlobGc", [&](void*) {
    while (blocked) {
      env_->SleepForMicroseconds(100);
    }
  });
  for (int key = 0; key < kKeys; key += 3) {
    PutKey(key, 1);
  }
  for (int round = 2; round <= 3; ++round) {
    // The slowdown is computed before the flush makes garbage.
    PutKey(5, round);
    EXPECT_OK(Flush());
    EXPECT_OK(dbfull()->TEST_WaitForFlushMemTable());
  }
  EXPECT_GT(delayed_rate(), 0u);
  EXPECT_TRUE(WaitUntil(
      [&] { return listener->condition() == WriteStallCondition::kDelayed; }));
  EXPECT_OK(db_->DisableFileDeletions());
  EXPECT_EQ(delayed_rate(), 0u);
  EXPECT_EQ(WriteStallCondition::kNormal, listener->condition());
  EXPECT_OK(db_->EnableFileDeletions());
  EXPECT_EQ(WriteStallCondition::kDelayed, listener->condition());
  EXPECT_OK(db_->DisableFileDeletions());
  EXPECT_EQ(WriteStallCondition::kNormal, listener->condition());
  PutKey(5, 4);
  EXPECT_OK(Flush());
  EXPECT_EQ(delayed_rate(), 0u);
  // The last call enables them.
  EXPECT_OK(db_->DisableFileDeletions());
  EXPECT_OK(db_->EnableFileDeletions());
  EXPECT_EQ(delayed_rate(), 0u);
  EXPECT_EQ(WriteStallCondition::kNormal, listener->condition());
  EXPECT_OK(db_->EnableFileDeletions());
  EXPECT_GT(delayed_rate(), 0u);
  EXPECT_EQ(WriteStallCondition::kDelayed, listener->condition());
  blocked = false;
  Wait();
  EXPECT_EQ(delayed_rate(), 0u);
  EXPECT_TRUE(WaitUntil(
      [&] { return listener->condition() == WriteStallCondition::kNormal; }));
  SyncPoint::GetInstance()->DisableProcessing();
  VerifyAlsoReopened(options);
}

// While file deletions are disabled no job collects garbage, so writes are not
// slowed down for it, also not those to a family that is made meanwhile.
TEST_F(DBBlobGcTest, NewFamiliesKnowThatFileDeletionsAreDisabled) {
  const Options options = GcOptions(1.2);
  DestroyAndReopen(options);
  const auto is_allowed = [&](ColumnFamilyHandle* handle) {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return static_cast_with_check<ColumnFamilyHandleImpl>(handle)
        ->cfd()
        ->address_map_store()
        ->gc()
        ->allowed();
  };
  EXPECT_TRUE(is_allowed(db_->DefaultColumnFamily()));
  ASSERT_OK(db_->DisableFileDeletions());
  EXPECT_FALSE(is_allowed(db_->DefaultColumnFamily()));
  PutKey(1, 0);
  ASSERT_OK(Flush());
  EXPECT_FALSE(is_allowed(db_->DefaultColumnFamily()));
  CreateColumnFamilies({"other"}, options);
  EXPECT_FALSE(is_allowed(handles_[0]));
  ASSERT_OK(db_->EnableFileDeletions());
  PutKey(1, 1);
  ASSERT_OK(Flush());
  EXPECT_TRUE(is_allowed(handles_[0]));
}

// A job in the background has the last reference to a family. Its files are
// deleted when the job ends, and not when another job comes by.
TEST_F(DBBlobGcTest, FilesOfADroppedFamilyAreDeletedAtTheEndOfTheJob) {
  ASSERT_NO_FATAL_FAILURE(OpenWithGarbageInAnotherFamily());
  Wait();
  const auto was_dropped =
      EnableCallBackOnce("DBStrata::BackgroundBlobGc::Copy:Copied", [&](void*) {
        ASSERT_OK(db_->DropColumnFamily(handles_[1]));
        ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
      });
  ASSERT_OK(
      db_->SetOptions(handles_[1], {{"blob_gc_space_amp_limit", "1.05"}}));
  WaitFor([&] { return was_dropped->load(); });
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  ASSERT_OK(dbfull()->TEST_WaitForPurge());
  DisableCallBacks();
  handles_.pop_back();
  EXPECT_TRUE(FilesOnDisk(kBlobFile).empty());
  EXPECT_TRUE(FilesOnDisk(kTableFile).empty());
}

TEST_F(DBBlobGcTest, DroppedColumnFamilyEndsTheJob) {
  ASSERT_NO_FATAL_FAILURE(OpenWithGarbageInAnotherFamily());
  EnableCallBack("BlobGcStorage::Publish:Swapped",
                 [&](void*) { ASSERT_OK(db_->DropColumnFamily(handles_[1])); });
  const Status s =
      db_->CollectBlobGarbage(CollectBlobGarbageOptions(), handles_[1]);
  ASSERT_TRUE(s.IsColumnFamilyDropped()) << s.ToString();
  SyncPoint::GetInstance()->DisableProcessing();
  for (int key = 0; key < kKeys; ++key) {
    ASSERT_EQ(ValueOf(key, key % 2 == 0 ? 1 : 0), Get(1, Key(key)));
  }
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.pop_back();
  // A background thread may hold the column family a little longer.
  for (int i = 0; i < 1000 && !FilesOnDisk(kBlobFile).empty(); ++i) {
    env_->SleepForMicroseconds(10000);
  }
  ASSERT_TRUE(FilesOnDisk(kBlobFile).empty());
}

// The same holds if the edit of the job is in the queue for the MANIFEST.
TEST_F(DBBlobGcTest, DroppedColumnFamilyEndsTheJobBeforeItsEdit) {
  ASSERT_NO_FATAL_FAILURE(OpenWithGarbageInAnotherFamily());
  Wait();
  DropBeforeEdit drop(db_.get(), handles_[1], "BlobGcStorage::Publish:Swapped",
                      /*in_group=*/false);
  const Status s =
      db_->CollectBlobGarbage(CollectBlobGarbageOptions(), handles_[1]);
  EXPECT_TRUE(s.IsColumnFamilyDropped()) << s.ToString();
  EXPECT_TRUE(drop.End());
  for (int key = 0; key < kKeys; ++key) {
    ASSERT_EQ(ValueOf(key, key % 2 == 0 ? 1 : 0), Get(1, Key(key)));
  }
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.pop_back();
  WaitFor([&] { return FilesOnDisk(kBlobFile).empty(); });
}

// If one value in fifty is never overwritten and the others are overwritten
// often, the old values do not hold up the space of their files.
TEST_F(DBBlobGcTest, FewOldValuesHoldNoFiles) {
  const Options options = GcOptions(1.2);
  DestroyAndReopen(options);
  Load();
  for (int round = 1; round <= 4; ++round) {
    for (int key = 0; key < kKeys; ++key) {
      if (key % 50 != 0) {
        PutKey(key, round);
      }
    }
    ASSERT_OK(Flush());
    Wait();
    ASSERT_LE(Amplification(), 1.2);
  }
  VerifyAlsoReopened(options);
}

// Values that were overwritten while an iterator was open become garbage as
// soon as the iterator is closed, without a compaction.
TEST_F(DBBlobGcTest, ValuesOfAClosedIteratorAreGarbageAtOnce) {
  for (const bool collects : {false, true}) {
    Options options = GcOptions(collects ? 1.2 : 0);
    options.disable_auto_compactions = true;
    DestroyAndReopen(options);
    model_.clear();
    Load();
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    for (int round = 1; round <= 5; ++round) {
      for (int key = 0; key < kKeys; ++key) {
        PutKey(key, round);
      }
      ASSERT_OK(Flush());
      Wait();
      // The map has the version that the iterator sees and the newest one; the
      // versions in between have no reader.
      ASSERT_EQ(2u * kKeys, Blobs()->map()->NumEntries());
    }
    int found = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      ASSERT_EQ(ValueOf(found++, 0), iter->value());
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(kKeys, found);
    iter.reset();
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
    Wait();
    ASSERT_EQ(1u * kKeys, Blobs()->map()->NumEntries());
    if (collects) {
      ASSERT_LE(Amplification(), 1.2);
    } else {
      ASSERT_OK(Collect());
      ASSERT_EQ(1.0, Amplification());
    }
    ASSERT_EQ(0u, Blobs()->NumBlockedRemovals());
    VerifyAlsoReopened(options);
    ASSERT_EQ(1u * kKeys, Blobs()->map()->NumEntries());
  }
}

// With random snapshots, deletions, inline values and operands, each snapshot
// reads what it saw when it was taken, and no value stays in the map longer
// than its readers.
TEST_F(DBBlobGcTest, VersionsLiveAsLongAsTheirReaders) {
  for (const bool bypass : {true, false}) {
    Options options = GcOptions(0);
    options.enable_lsm_bypass = bypass;
    options.disable_auto_compactions = true;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    DestroyAndReopen(options);
    Random rnd(301);
    struct Reader {
      const Snapshot* snapshot;
      std::map<std::string, std::string> values;
    };
    std::vector<Reader> readers;
    std::map<std::string, std::string> now;
    const auto check = [&](const Reader& reader) {
      for (int key = 0; key < 40; ++key) {
        const auto found = reader.values.find(Key(key));
        ASSERT_EQ(found == reader.values.end() ? "NOT_FOUND" : found->second,
                  Get(Key(key), reader.snapshot));
      }
    };
    for (int step = 0; step < 300; ++step) {
      for (int i = rnd.Uniform(20); i >= 0; --i) {
        const std::string key = Key(static_cast<int>(rnd.Uniform(40)));
        const uint32_t kind = rnd.Uniform(10);
        if (kind == 0) {
          ASSERT_OK(Delete(key));
          now.erase(key);
        } else if (kind == 1) {
          ASSERT_OK(Put(key, "inline"));
          now[key] = "inline";
        } else if (kind == 2) {
          ASSERT_OK(Merge(key, "operand"));
          now[key] += now.count(key) > 0 ? ",operand" : "operand";
        } else {
          now[key] = rnd.RandomString(200);
          ASSERT_OK(Put(key, now[key]));
        }
      }
      if (rnd.OneIn(3)) {
        readers.push_back(Reader{db_->GetSnapshot(), now});
      }
      if (rnd.OneIn(2)) {
        ASSERT_OK(Flush());
      }
      if (rnd.OneIn(20)) {
        ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
      }
      while (readers.size() > 5 || (!readers.empty() && rnd.OneIn(6))) {
        const size_t i = rnd.Uniform(static_cast<int>(readers.size()));
        check(readers[i]);
        db_->ReleaseSnapshot(readers[i].snapshot);
        readers.erase(readers.begin() + static_cast<ptrdiff_t>(i));
      }
    }
    for (const Reader& reader : readers) {
      check(reader);
      db_->ReleaseSnapshot(reader.snapshot);
    }
    readers.clear();
    ASSERT_OK(Flush());
    check(Reader{nullptr, now});
    WaitForJobs();
    ASSERT_EQ(0u, Blobs()->NumBlockedRemovals());
    // The map has at most the base of each key's operands.
    ASSERT_LE(Blobs()->map()->NumEntries(), now.size());
    Reopen(options);
    check(Reader{nullptr, now});
    ASSERT_LE(Blobs()->map()->NumEntries(), now.size());
  }
}

// Inline values from before the map keep new values of their keys versioned
// until a compaction meets them. Overwritten versioned values become garbage
// nevertheless.
TEST_F(DBBlobGcTest, KeepsTheLimitOverInlineValues) {
  Options options = GcOptions(1.2);
  options.disable_auto_compactions = true;
  Options without = options;
  without.enable_blob_address_map = false;
  without.enable_blob_files = false;
  DestroyAndReopen(without);
  Load();
  Reopen(options);
  for (int round = 1; round <= 5; ++round) {
    MakeGarbage(round, /*step=*/1);
    ASSERT_EQ(1u * kKeys, Blobs()->map()->NumEntries());
    ASSERT_LE(Amplification(), 1.2);
  }
  ASSERT_EQ(0u, Blobs()->NumBlockedRemovals());
  VerifyAlsoReopened(options);
}

// Blob files of BlobDB with garbage are collected once the map is enabled.
TEST_F(DBBlobGcTest, CollectsFilesFromBeforeTheMap) {
  for (const CompactionStyle style :
       {kCompactionStyleLevel, kCompactionStyleUniversal}) {
    for (const bool by_itself : {false, true}) {
      Options options = GcOptions(by_itself ? 1.2 : 0);
      options.compaction_style = style;
      Options without = options;
      without.enable_blob_address_map = false;
      without.enable_blob_garbage_collection = false;
      DestroyAndReopen(without);
      model_.clear();
      Load();
      ASSERT_OK(db_->PutEntity(WriteOptions(), db_->DefaultColumnFamily(),
                               "entity", {{"column", std::string(500, 'x')}}));
      for (int round = 1; round <= 3; ++round) {
        MakeGarbage(round, /*step=*/3);
      }
      ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
      const auto old_amplification = [&] {
        InstrumentedMutexLock lock(dbfull()->mutex());
        uint64_t total = 0;
        uint64_t garbage = 0;
        for (const auto& meta :
             Family()->current()->storage_info()->GetBlobFiles()) {
          if (!meta->IsMapped()) {
            total += meta->GetTotalBlobBytes();
            garbage += meta->GetGarbageBlobBytes();
          }
        }
        return total == garbage ? (total == 0 ? 1.0 : 1000.0)
                                : static_cast<double>(total) /
                                      static_cast<double>(total - garbage);
      };
      ASSERT_GT(old_amplification(), 1.3);
      Reopen(options);
      if (by_itself) {
        Wait();
        ASSERT_LE(old_amplification(), 1.2);
        ASSERT_LE(Amplification(), 1.2);
      } else {
        Wait();
        ASSERT_GT(old_amplification(), 1.3);
      }
      ASSERT_OK(Collect());
      ASSERT_EQ(1.0, old_amplification());
      ASSERT_EQ(1.0, Amplification());
      std::string stats;
      ASSERT_TRUE(db_->GetProperty(DB::Properties::kBlobStats, &stats));
      PinnableWideColumns columns;
      ASSERT_OK(db_->GetEntity(ReadOptions(), db_->DefaultColumnFamily(),
                               "entity", &columns));
      ASSERT_EQ(std::string(500, 'x'), columns.columns().front().value());
      ASSERT_OK(Delete("entity"));
      VerifyAlsoReopened(options);
    }
  }
}

// A program that collects the garbage of blob files by compactions turns the
// map on and changes nothing else.
TEST_F(DBBlobGcTest, TakesTheWorkOfCompactionsOver) {
  Options options = GcOptions(/*limit=*/0);
  options.blob_garbage_collection_age_cutoff = 1.0;
  options.blob_garbage_collection_force_threshold = 0.2;
  Options without = options;
  without.enable_blob_address_map = false;
  DestroyAndReopen(without);
  model_.clear();
  Load();
  for (int round = 1; round <= 3; ++round) {
    MakeGarbage(round, /*step=*/3);
  }
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  // Returns the number of SST files that forced collections would compact, and
  // the numbers of the blob files from before the map.
  const auto old_files = [&](size_t* num_marked) {
    InstrumentedMutexLock lock(dbfull()->mutex());
    const VersionStorageInfo* const files = Family()->current()->storage_info();
    *num_marked = files->FilesMarkedForForcedBlobGC().size();
    std::vector<uint64_t> numbers;
    for (const auto& meta : files->GetBlobFiles()) {
      if (!meta->IsMapped()) {
        numbers.push_back(meta->GetBlobFileNumber());
      }
    }
    return numbers;
  };
  size_t num_marked = 0;
  const std::vector<uint64_t> before = old_files(&num_marked);
  ASSERT_FALSE(before.empty());

  // No compaction collects.
  options.enable_blob_garbage_collection = true;
  Reopen(options);
  Wait();
  ASSERT_EQ(before, old_files(&num_marked));
  ASSERT_EQ(0u, num_marked);
  Verify();

  // The map's own limit does it.
  ASSERT_OK(db_->SetOptions({{"blob_gc_space_amp_limit", "1.01"}}));
  Wait();
  ASSERT_TRUE(old_files(&num_marked).empty());
  ASSERT_LE(Amplification(), 1.01);
  VerifyAlsoReopened(options);

  // Without the map, compactions collect again.
  Close();
  without.enable_blob_garbage_collection = true;
  Reopen(without);
  Verify();
}

// Many small flushes, of keys in order or in random order, leave few files.
TEST_F(DBBlobGcTest, MergesSmallFiles) {
  for (const bool in_order : {true, false}) {
    Options options = GcOptions(1.2);
    options.blob_file_size = 1 << 20;
    options.write_buffer_size = 1 << 20;
    DestroyAndReopen(options);
    model_.clear();
    Random rnd(301);
    for (int i = 0; i < kKeys; ++i) {
      PutKey(in_order ? i : static_cast<int>(rnd.Uniform(kKeys)), 0);
      if (i % 2 == 1) {
        ASSERT_OK(Flush());
      }
    }
    Wait();
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    Wait();
    // Each tier, of flushed files and of copies, keeps fewer than 16 of the 200
    // flushed files.
    ASSERT_LT(BlobFilesOfVersion().size(), 60u);
    // Each value was copied once or twice.
    ASSERT_LE(Ticker(BLOB_MAP_GC_BYTES_WRITTEN),
              2 * kKeys * (kValueSize + 100));
    ASSERT_LE(Amplification(), 1.2);
    ASSERT_OK(Collect());
    // Files of 128 KiB and more are not small, and a background job may have
    // written some.
    ASSERT_LE(BlobFilesOfVersion().size(), 8u);
    VerifyAlsoReopened(options);
  }
}

TEST_F(DBBlobGcTest, ConcurrentReadsSeeTheirWritesDuringCollections) {
  Options options = GcOptions(1.05);
  DestroyAndReopen(options);
  Load();
  constexpr int kThreads = 4;
  std::atomic<bool> stop{false};
  std::atomic<bool> has_failed{false};
  // For each thread, the rounds of the values that it wrote.
  std::vector<std::map<int, int>> rounds_of(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      // Each thread writes its own keys.
      bool is_done = false;
      const Defer end([&] {
        if (!is_done) {
          has_failed = true;
        }
      });
      Random rnd(t + 1);
      std::map<int, int>& rounds = rounds_of[static_cast<size_t>(t)];
      for (int i = 0; i < 1500 && !has_failed; ++i) {
        const int key =
            static_cast<int>(rnd.Uniform(kKeys / kThreads)) * kThreads + t;
        if (rnd.OneIn(2)) {
          ASSERT_OK(db_->Put(WriteOptions(), Key(key), ValueOf(key, i)));
          rounds[key] = i;
        } else {
          std::string value;
          ASSERT_OK(db_->Get(ReadOptions(), Key(key), &value));
          ASSERT_EQ(ValueOf(key, rounds.count(key) > 0 ? rounds[key] : 0),
                    value);
        }
      }
      for (const auto& round : rounds) {
        std::string value;
        ASSERT_OK(db_->Get(ReadOptions(), Key(round.first), &value));
        ASSERT_EQ(ValueOf(round.first, round.second), value);
      }
      is_done = true;
    });
  }
  std::thread collector([&] {
    bool is_done = false;
    const Defer end([&] {
      if (!is_done) {
        has_failed = true;
      }
    });
    for (uint32_t round = 0; !stop; ++round) {
      ASSERT_OK(round % 3 == 0 ? Sort(1 + round % 2) : Collect(1.01));
      std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
      int found = 0;
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        ++found;
      }
      ASSERT_OK(iter->status());
      ASSERT_EQ(kKeys, found);
    }
    is_done = true;
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  stop = true;
  collector.join();
  ASSERT_FALSE(has_failed);
  for (const std::map<int, int>& rounds : rounds_of) {
    for (const auto& [key, round] : rounds) {
      model_[Key(key)] = ValueOf(key, round);
    }
  }
  ASSERT_OK(Flush());
  VerifyAlsoReopened(options);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
